"""torch-mlir's output -> the tensor graph: the bridge to PyTorch.

torch-mlir's passes run in a separate process (`torch_mlir_process`), which returns MLIR bytecode, in which weights are bytes;
if that cannot be read, or the graph is wrong, it returns text, so that messages have positions. An operation that it cannot
lower is a Problem that names the operation and the Python line, or the node, that it comes from.
"""
from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....runtime.errors import Label, Position, Problem, Source
from ..read import import_compiler
from ..tflite.from_tflite import mapped, readable

if TYPE_CHECKING:
    from ....lowering.graph.graph import Module

SECONDS = 600.0
"""Seconds after which the passes are given up."""

ILLEGAL = re.compile(r"failed to legalize operation '([\w.]+)'")
SPELLED = re.compile(r'"torch\.operator"\(.*?name = "([^"]+)"', re.DOTALL)
FRAME = re.compile(r'File "([^"]+)", line (\d+)')
"""Pattern of a frame in a traceback that Python prints."""
FILE_LOCATION = re.compile(r'"([^"]+)":(\d+)')
NAME_LOCATION = re.compile(r'loc\("([^"]*)"')


@dataclass(frozen=True, slots=True)
class ConversionRequest:
    """A model for torch-mlir: the file that holds it, and its name for messages."""
    source: Path
    name: str

    def command(self, result: Path, is_text: bool) -> list[str]:
        """Return the child's command: with the search path of this process, and without `site`, whose import takes time."""
        from . import process as torch_mlir_process
        fields = {"source": str(self.source), "result": str(result), "is_text": is_text,
                  "path": [os.path.abspath(entry) for entry in sys.path]}
        return [sys.executable, "-S", torch_mlir_process.__file__, json.dumps(fields)]


def need(extra: str, what: str, packages: Sequence[str]) -> None:
    """Raise a Problem that names the extra unless the packages are installed."""
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        names = " and ".join(package.replace("torch_mlir", "torch-mlir") for package in missing)
        raise Problem(f"{what} needs {names}, which is not installed", kind="file", help=f'pip install "tosaic[{extra}]"')


def package_folder(package: str) -> str:
    """Return the folder of an installed package, with a separator at the end."""
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or []) if spec else []
    return (places[0] if places else f"<no {package}>") + os.sep


def lowered(request: ConversionRequest, metadata: dict[str, Any] | None = None, seconds: float = SECONDS) -> Module:
    """Return the verified module of a model, with f32 for torch-mlir's intermediate f64; `metadata` receives the child's
    answer, even if the child refuses the model. Raises a Problem if torch-mlir cannot lower the model, ends abnormally, or
    takes longer than `seconds`, or if its result has anything but TOSA."""
    from ....lowering.bytecode.reader import read_module
    from ....lowering.bytecode.sections import Unreadable
    metadata = {} if metadata is None else metadata
    with tempfile.TemporaryDirectory(prefix="tosaic-") as folder:
        result = Path(folder, "module.mlir")
        run(request, request.command(result, False), folder, metadata, seconds)
        try:
            return finished(read_module(mapped(result), request.name))
        except (Unreadable, Problem):
            run(request, request.command(result, True), folder, metadata, seconds)
            text = result.read_text(encoding="utf-8")
    from ....lowering.text.reader import read_module as read_text
    return finished(read_text(text, f"{request.name} (as MLIR)"))


def finished(module: Module) -> Module:
    """Return the module with f64 narrowed and open bounds open, verified."""
    from ....lowering.rewrite.infer_shapes import verified
    from ....lowering.rewrite.narrow_doubles import narrow_doubles
    from ....lowering.rewrite.open_bounds import open_bounds
    return verified(open_bounds(narrow_doubles(module)))


def run(request: ConversionRequest, command: Sequence[str], folder: str, metadata: dict[str, Any], seconds: float) -> None:
    """Run the child, and import the compiler here meanwhile; `metadata` receives its answer. Raise a Problem if the answer is a
    failure."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          cwd=folder) as process:
        try:
            import_compiler()
            output, log = process.communicate(timeout=seconds)
        except BaseException as error:
            process.kill()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise Problem(f"torch-mlir took longer than {seconds:g} seconds for {request.name}", kind="file") from None
    answer = parsed(output)
    if answer is None:
        raise aborted(request, process.returncode, log)
    metadata.update(answer)
    if "failure" in answer:
        raise refused(request, answer)


def parsed(output: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(output.splitlines()[-1])
    except (ValueError, IndexError):
        return None
    return answer if isinstance(answer, dict) else None


# ---- what goes wrong -------------------------------------------------------------------------------------------------------
def aborted(request: ConversionRequest, status: int, log: bytes) -> Problem:
    ended = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
    return Problem(f"{request.name} cannot be lowered to TOSA: torch-mlir {ended}", kind="unsupported",
                   labels=tuple(Label(None, line) for line in readable(log, str(request.source), request.name)),
                   help="another version of torch-mlir may take it: pip install --upgrade torch-mlir")


def refused(request: ConversionRequest, answer: Mapping[str, Any]) -> Problem:
    """Return the Problem for the first operation that torch-mlir could not lower, with its messages."""
    diagnostics = answer["diagnostics"]
    if answer.get("step") != "lower" or not diagnostics:
        said = answer["failure"].replace(str(request.source), request.name)
        what = "read" if answer.get("step") == "read" else "lowered to TOSA"
        return Problem(f"{request.name} cannot be {what} by torch-mlir: {said.splitlines()[0]}", kind="unsupported",
                       labels=tuple(Label(None, line) for line in said.splitlines()[1:8] if line.strip()),
                       help=HELP)
    first = diagnostics[0]
    name = operation_name(first)
    position, place = place_of(first["location"])
    what = f"{name} cannot be lowered to TOSA" if name else f"torch-mlir cannot lower it: {shortened(first['message'])}"
    others = [other for d in diagnostics[1:] if (other := operation_name(d)) and other != name]
    notes = [f"in {request.name}, {place}"] if place else [f"in {request.name}"]
    notes += [f"torch-mlir says: {shortened(first['message'])}"] if name else []
    notes += [f"the same holds for {', '.join(dict.fromkeys(others))}"] if others else []
    return Problem(what, position, kind="unsupported", labels=tuple(Label(None, note) for note in notes),
                   help=HELP)


def operation_name(diagnostic: Mapping[str, Any]) -> str | None:
    """Return PyTorch's or ONNX's name of the operation that could not be lowered: aten.linalg_det, onnx.Foo."""
    found = ILLEGAL.search(diagnostic["message"])
    if not found:
        return None
    name = found.group(1)
    if name == "torch.operator":
        inner = SPELLED.search(" ".join((diagnostic["message"], *diagnostic["notes"])))
        name = inner.group(1) if inner else name
    return name.removeprefix("torch.")


def place_of(location: str) -> tuple[Position | None, str]:
    """Return the Python line in an MLIR location that is not in PyTorch's own code, or otherwise the name of the node."""
    for path, line in FILE_LOCATION.findall(location):
        if not path.startswith(("<", package_folder("torch"))) and int(line) > 0:
            return Position(Source(path), int(line), 1), ""
    name = NAME_LOCATION.search(location)
    return None, f"node {name.group(1)}" if name and name.group(1) else ""


def shortened(message: str) -> str:
    return message.splitlines()[0][:200]


HELP = "compute it outside of the module, or write it with other operators"


def with_names(module: Module, names: Sequence[str]) -> Module:
    """Return the module with these names for its entry's inputs."""
    from ....lowering.rewrite.function_interface import rename_inputs
    return rename_inputs(module, module.function("main"), spelled_names(names))


def spelled_names(names: Sequence[str]) -> list[str]:
    """Return unique names in characters that MLIR and the command line allow."""
    spelled = [re.sub(r"[^\w.$-]", "_", name, flags=re.ASCII) or "_" for name in names]
    return [name if spelled.count(name) == 1 else f"{name}_{number}" for number, name in enumerate(spelled)]
