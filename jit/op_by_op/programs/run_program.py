"""`tosaic run program.mlir` with a kernel program instead of a model, detected by its text.

The program's output goes to the answer, errors at run time to standard error as they begin. The exit code is 1 if a function's
result is an error.
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
    """Return the text of a file and its name, if it is a kernel program; None if it is a model."""
    if model != "-" and not Path(model).is_file():  # a folder is no program, and a missing file is reported elsewhere
        return None
    data, name = (standard_input(), "<stdin>") if model == "-" else read_bytes(Path(model))
    if is_onnx(data) or data[4:8] in MODEL_MARKS or not any(mark in data for mark in MARKS):
        return None
    from ..program_text.reader import is_program
    return (data, name) if is_program(data) else None


def run_text(data: bytes, name: str, entry: str | None) -> tuple[bool, str, dict[str, Any]]:
    """Run a program. Return whether no result is an error, the output, and the same as JSON."""
    from .running import as_json, run_program
    lines: list[str] = []
    outcomes = run_program(data, write=lines.append, report=tell, entry=entry, name=name)
    text = "\n".join(printed(lines))
    return not any(o.failed for o in outcomes), text, {"functions": as_json(outcomes), "printed": lines}


def printed(lines: Sequence[str]) -> list[str]:
    """Return lines without anything that could drive a terminal."""
    return [printable(line) for line in lines]


def tell(position: Position | None, message: str) -> None:
    """Print an error at run time."""
    from .running import position_text
    print(printable(position_text(position, message)), file=sys.stderr)
