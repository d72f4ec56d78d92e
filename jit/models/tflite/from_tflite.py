"""TensorFlow Lite -> TOSA. Signatures, control flow and variables are read here (`lowering.tflite`); what remains, parts of the
model without any of these, goes through Arm's converter (the extra `tflite`).

The converter is native code that may abort on a file that is wrong, so it runs in a process of its own: what it says
becomes part of a Problem, and its end never ends this process. It writes MLIR bytecode, in which constants are bytes; where
that is not understood, or something is wrong with the graph, it writes text, to which messages have positions.
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
"""A converter that takes longer is given up."""

PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[5])
from tosa_converter_for_tflite import TosaConverterDebugInfo, TosaConverterOutputFormat
from tosa_converter_for_tflite import tflite_flatbuffer_to_tosa_mlir as convert
form, names = getattr(TosaConverterOutputFormat, sys.argv[3]), getattr(TosaConverterDebugInfo, sys.argv[4])
convert(sys.argv[1], sys.argv[2], form, names)
"""
"""Runs with the search path of this process, and without `site`, which takes longer than a small model."""

STAMP = re.compile(r"^[IWEF]\d{4} [^\]]*\] ")
"""Level, time and place that TensorFlow writes before a line."""

NOISE = ("Traceback", "  File", "    ", "WARNING: All log messages before")

LOG_LINES = 12
"""Lines of the converter's log that a message holds at most."""


def module_of_tflite(data: bytes, name: str, meanwhile: Callable[[], None] | None = None) -> Module:
    """The verified module of a .tflite file's bytes: a function for each of its signatures, or `main`; they share variables.
    `meanwhile` is called while the converter works. Raises a Problem at the operator that is wrong or not supported, and as
    `mlir_of_tflite` does."""
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
    """What variables hold after a function that initialises them."""
    from ....lowering.pipeline import rewritten
    from ....runtime.interpreter import InterpreterVariables, interpret
    variables = InterpreterVariables()
    interpret(rewritten(initialiser), None, [], variables)
    return variables.snapshot()


def mapped(path: Path) -> memoryview:
    """A file's bytes, which stay when its name is gone; the module's constants are views of them."""
    if os.name != "posix":
        return memoryview(path.read_bytes())
    with open(path, "rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def mlir_of_tflite(data: bytes, name: str, seconds: float = SECONDS, located: bool = False) -> str:
    """The MLIR text of a .tflite file's bytes, `located` with the names of its tensors as locations. Raises a Problem where the
    converter is missing, refuses the file, ends abnormally, or takes longer than `seconds`."""
    return mlir_of_parts((data,), name, seconds, located)


def mlir_of_parts(file: Sequence[bytes], name: str, seconds: float, located: bool) -> str:
    """The same of a file that is given in parts."""
    with converted(file, name, "Text", seconds, located=located) as result:
        return result.read_text(encoding="utf-8", errors="replace")


@contextmanager
def converted(file: Sequence[bytes], name: str, form: Literal["Bytecode", "Text"], seconds: float,
              meanwhile: Callable[[], None] | None = None, located: bool = False) -> Iterator[Path]:
    """The file that the converter makes, which is gone when the context ends."""
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
    """The converter's log and exit status."""
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
    """What is worth reading of the converter's log, without Python's traceback."""
    lines = [STAMP.sub("", line.replace(path, name)).rstrip() for line in log.decode(errors="replace").splitlines()]
    kept = [line[:200] for line in lines if line and not line.startswith(NOISE)]
    return kept[-LOG_LINES:]
