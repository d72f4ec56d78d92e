"""`tosaic run program.mlir`: a kernel program instead of a model; that it is one shows in its text.

What the program prints goes to the answer, errors at run time to standard error as they begin. The exit code is 1 where a
function's result is an error.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ....runtime.errors import Position, printable
from ...models.read import is_onnx, read_bytes

MARKS = (b"tfrt.", b"corert.")
MODEL_MARKS = (b"TOSA", b"TFL3")


def program_text(model: str, standard_input: Callable[[], bytes]) -> tuple[bytes, str] | None:
    """The text of a file and its name, if it is a kernel program; None where it is a model."""
    if model != "-" and not Path(model).is_file():  # a folder is no program, and what is not there is said elsewhere
        return None
    data, name = (standard_input(), "<stdin>") if model == "-" else read_bytes(Path(model))
    if is_onnx(data) or data[4:8] in MODEL_MARKS or not any(mark in data for mark in MARKS):
        return None
    from ..program_text.reader import is_program
    return (data, name) if is_program(data) else None


def run_text(data: bytes, name: str, entry: str | None) -> tuple[bool, str, dict[str, Any]]:
    """Run a program: whether no result is an error, what it printed, and the same as JSON."""
    from .running import as_json, run_program
    lines: list[str] = []
    outcomes = run_program(data, write=lines.append, report=tell, entry=entry, name=name)
    text = "\n".join(printed(lines))
    return not any(o.failed for o in outcomes), text, {"functions": as_json(outcomes), "printed": lines}


def printed(lines: Sequence[str]) -> list[str]:
    """Lines without anything that could drive a terminal."""
    return [printable(line) for line in lines]


def tell(position: Position | None, message: str) -> None:
    """An error at run time."""
    from .running import position_text
    print(printable(position_text(position, message)), file=sys.stderr)
