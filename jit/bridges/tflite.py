"""TensorFlow Lite -> TOSA, through Arm's converter (the extra `tflite`).

The converter is native code that may abort on a file that is wrong, so it runs in a process of its own: what it says
becomes part of a Problem, and its end never ends this process.
"""
from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from ...runtime.errors import Label, Problem

PACKAGE = "tosa_converter_for_tflite"

PROGRAM = """
import sys
from tosa_converter_for_tflite import TosaConverterDebugInfo, TosaConverterOutputFormat
from tosa_converter_for_tflite import tflite_flatbuffer_to_tosa_mlir as convert
convert(sys.argv[1], sys.argv[2], TosaConverterOutputFormat.Text, TosaConverterDebugInfo.Disabled)
"""

STAMP = re.compile(r"^[IWEF]\d{4} [^\]]*\] ")
"""Level, time and place that TensorFlow writes before a line."""

NOISE = ("Traceback", "  File", "    ", "WARNING: All log messages before")

LOG_LINES = 12
"""Lines of the converter's log that a message holds at most."""


def mlir_of_tflite(data: bytes, name: str, seconds: float = 600) -> str:
    """The MLIR text of a .tflite file's bytes. Raises a Problem where the converter is missing, refuses the file, ends
    abnormally, or takes longer than `seconds`."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise Problem(f"{name} is a .tflite, and the converter to TOSA is not installed", kind="file",
                      help='pip install "tosaic[tflite]"')
    with tempfile.TemporaryDirectory(prefix="tosaic-") as folder:
        source, result = Path(folder, "model.tflite"), Path(folder, "model.mlir")
        source.write_bytes(data)
        try:
            done = subprocess.run([sys.executable, "-c", PROGRAM, str(source), str(result)], capture_output=True,
                                  stdin=subprocess.DEVNULL, timeout=seconds, check=False, cwd=folder)
        except subprocess.TimeoutExpired:
            raise Problem(f"converting {name} took longer than {seconds:g} seconds", kind="file") from None
        if done.returncode or not result.exists():
            ended = f"was ended by signal {-done.returncode}" if done.returncode < 0 else "refused it"
            log = readable(done.stderr, str(source), name)
            raise Problem(f"{name} cannot be converted to TOSA: the converter {ended}", kind="file",
                          labels=tuple(Label(None, line) for line in log),
                          help="the file is damaged, or has an operator that the converter does not know")
        return result.read_text(encoding="utf-8", errors="replace")


def readable(log: bytes, path: str, name: str) -> list[str]:
    """What is worth reading of the converter's log, without Python's traceback."""
    lines = [STAMP.sub("", line.replace(path, name)).rstrip() for line in log.decode(errors="replace").splitlines()]
    kept = [line[:200] for line in lines if line and not line.startswith(NOISE)]
    return kept[-LOG_LINES:]
