"""ONNX -> TOSA, through torch-mlir (the extra `onnx`; PyTorch is not needed): `tosaic.from_onnx`.

The packages that read the model are native code that may abort, so the whole conversion runs in a process of its own
(`torch_mlir`); here the model is only a file.
"""
from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...runtime.errors import Problem
from ..model import Model, model_of
from ..reading import read_bytes
from .torch_mlir import Lowered, Request, lowered, need, with_names


def from_onnx(model: Any, *, shapes: Mapping[str, Sequence[int]] | None = None, name: str | None = None) -> Model:
    """A model from an ONNX file's path, its bytes, an open file, or an `onnx.ModelProto`.

        model = tosaic.from_onnx("model.onnx", shapes={"image": (1, 3, 224, 224)})
        y = model(x)

    Inputs are called as in the file. `shapes` gives inputs their extents where the file leaves some open; those that stay open
    are compiled for the shapes of each call, if torch-mlir can lower the model so. Weights in files beside the model are found
    where a path is given.

    Raises a Problem where a package is missing, the file is no ONNX model, or torch-mlir cannot lower an operation.
    """
    need("onnx", "an ONNX model", ("onnx", "torch_mlir"))
    extents = {key: tuple(map(int, value)) for key, value in (shapes or {}).items()}
    if isinstance(model, str | os.PathLike):
        shown = name or os.fspath(model)
        read_first_byte(model)
        found = lowered(Request("onnx", Path(os.path.abspath(os.fspath(model))), shown, extents))
    else:
        found = of_bytes(*serialized(model), name, extents)
    named = with_names(found.module, found.inputs)
    return model_of(lambda: named, None)


def read_first_byte(path: str | os.PathLike[str]) -> None:
    """A Problem unless the file can be read and is not empty."""
    try:
        with open(path, "rb") as file:
            is_empty = not file.read(1)
    except (OSError, ValueError) as error:
        raise Problem(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}", kind="file") from None
    if is_empty:
        raise Problem(f"{path} is empty, it is no ONNX model", kind="file")


def serialized(model: Any) -> tuple[bytes, str]:
    """The bytes of a model that is no path, and what messages call it."""
    if not hasattr(model, "SerializeToString"):
        return read_bytes(model)
    try:
        return model.SerializeToString(), str(model.graph.name or "<model>")
    except Exception as error:  # protobuf's own, for more than 2 GiB
        raise Problem(f"the model cannot be written: {error}", kind="file",
                      help="save it with its weights in files beside it, and pass the path") from None


def of_bytes(data: bytes, shown: str, name: str | None, shapes: Mapping[str, Sequence[int]]) -> Lowered:
    with tempfile.TemporaryDirectory(prefix="tosaic-") as folder:
        source = Path(folder, "model.onnx")
        source.write_bytes(data)
        return lowered(Request("onnx", source, name or shown, shapes))
