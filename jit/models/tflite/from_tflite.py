"""TensorFlow Lite -> TOSA. Signatures, control flow and variables are read here (`lowering.tflite`); the remaining parts of the
model, which have none of these, go through Arm's converter (the extra `tflite`).

The converter is native code that may abort on a malformed file, so it runs in a separate process: its messages become part of a
Problem, and its end never ends this process. It writes MLIR bytecode, in which constants are bytes; if that cannot be read, or
the graph is wrong, it writes text, so that messages have positions.
"""
from __future__ import annotations

import importlib.util
import json
import mmap
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ....runtime.errors import Label, Problem, temporary_file
from ....runtime.limits import seconds_left

if TYPE_CHECKING:
    from ....lowering.graph.graph import Module
    from ....lowering.graph.types import Array

PACKAGE = "tosa_converter_for_tflite"
SECONDS = 600.0
"""Seconds after which the converter is given up."""

PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[5])
from tosa_converter_for_tflite import TosaConverterDebugInfo, TosaConverterOutputFormat
from tosa_converter_for_tflite import tflite_flatbuffer_to_tosa_mlir as convert
form, names = getattr(TosaConverterOutputFormat, sys.argv[3]), getattr(TosaConverterDebugInfo, sys.argv[4])
convert(sys.argv[1], sys.argv[2], form, names)
"""
"""The converter's program, which runs with the search path of this process, and without `site`, whose import takes longer than
the conversion of a small model."""

STAMP = re.compile(r"^[IWEF]\d{4} [^\]]*\] ")
"""Pattern of the level, time and source position that TensorFlow writes before a line."""

NOISE = ("Traceback", "  File", "    ", "WARNING: All log messages before")

LOG_LINES = 12
"""Maximum number of lines of the converter's log in a message."""


def module_of_tflite(data: bytes, name: str, meanwhile: Callable[[], None] | None = None) -> Module:
    """Return the verified module of a .tflite file's bytes: one function for each of its signatures, or `main`; they share
    variables. `meanwhile` is called while the converter works. Raises a Problem at the operator that is wrong or not supported,
    and like `mlir_of_tflite`."""
    from ....lowering.tflite import load

    def bytecode(file: Sequence[bytes], name: str) -> memoryview:
        nonlocal meanwhile
        once, meanwhile = meanwhile, None
        with converted(file, name, "Bytecode", SECONDS, once, True) as result:
            return mapped(result)

    def text(file: Sequence[bytes], name: str) -> str:
        return mlir_of_parts(file, name, SECONDS, located=True)

    return load.module_of_tflite(data, name, load.Converter(bytecode, text), values_of)


def values_of(initialiser: Module) -> dict[str, Array | None]:
    """Return the values of variables after a function that initialises them."""
    from ....lowering.pipeline import rewritten
    from ....runtime.interpreter import InterpreterVariables, interpret
    variables = InterpreterVariables()
    interpret(rewritten(initialiser), None, [], variables)
    return variables.snapshot()


def mapped(path: Path) -> memoryview:
    """Return a file's bytes, memory-mapped where possible so that they outlive its name; the module's constants are views of
    them."""
    if os.name != "posix":
        return memoryview(path.read_bytes())
    with open(path, "rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def mlir_of_tflite(data: bytes, name: str, seconds: float = SECONDS, located: bool = False) -> str:
    """Return the MLIR text of a .tflite file's bytes, with the names of its tensors as locations if `located`. Raises a Problem
    if the converter is missing, refuses the file, ends abnormally, or takes longer than `seconds`."""
    return mlir_of_parts((data,), name, seconds, located)


def mlir_of_parts(file: Sequence[bytes], name: str, seconds: float, located: bool) -> str:
    """Return the MLIR text of a file that is given in parts (`mlir_of_tflite`)."""
    with converted(file, name, "Text", seconds, located=located) as result:
        return result.read_text(encoding="utf-8", errors="replace")


@contextmanager
def converted(file: Sequence[bytes], name: str, form: Literal["Bytecode", "Text"], seconds: float,
              meanwhile: Callable[[], None] | None = None, located: bool = False) -> Iterator[Path]:
    """Yield the file that the converter writes, which is removed at the end of the context."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None:
        raise Problem(f"{name} is a .tflite, and the converter to TOSA is not installed", kind="file",
                      help='pip install "tosaic[tflite]"')
    with tempfile.TemporaryDirectory(prefix="tosaic-") as folder:
        source, result = Path(folder, "model.tflite"), Path(folder, "model.mlir")
        with temporary_file(), open(source, "wb") as opened:
            opened.writelines(file)
        arguments = [str(source), str(result), form, "Enable" if located else "Disabled"]
        log, status = run(arguments, folder, name, seconds, meanwhile)
        if status or not result.exists():
            ended = f"was ended by signal {-status}" if status < 0 else "refused it"
            raise Problem(f"{name} cannot be converted to TOSA: the converter {ended}", kind="file",
                          labels=tuple(Label(None, line) for line in readable(log, str(source), name)),
                          help="the file is damaged, or has an operator that the converter does not know")
        yield result


def run(arguments: list[str], folder: str, name: str, seconds: float, meanwhile: Callable[[], None] | None
        ) -> tuple[bytes, int]:
    """Run the converter, and return its log and exit status."""
    path = json.dumps([os.path.abspath(entry) for entry in sys.path])
    seconds = min(seconds, seconds_left() or seconds)
    with subprocess.Popen([sys.executable, "-S", "-c", PROGRAM, *arguments, path], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder) as process:
        try:
            if meanwhile is not None:
                meanwhile()
            log = process.communicate(timeout=seconds)[1]
        except BaseException as error:
            process.kill()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise Problem(f"converting {name} took longer than {seconds:g} seconds", kind="file") from None
        return log, process.returncode


def readable(log: bytes, path: str, name: str) -> list[str]:
    """Return the relevant lines of the converter's log, without Python's traceback."""
    lines = [STAMP.sub("", line.replace(path, name)).rstrip() for line in log.decode(errors="replace").splitlines()]
    kept = [line[:200] for line in lines if line and not line.startswith(NOISE)]
    return kept[-LOG_LINES:]
