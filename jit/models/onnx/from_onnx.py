"""ONNX files as models: `tosaic.from_onnx`. The file becomes a module of `onnx` operations (`lowering/onnx`), which stays the
model's own graph; entries are translated for the shapes of their inputs."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....runtime.errors import Problem
from ....runtime.later import now
from ....runtime.public_names import public
from ..model import Model, outlines_of
from ..read import read_bytes

if TYPE_CHECKING:
    from ....lowering.graph.graph import Module, Value


@public("tosaic.from_onnx")
def from_onnx(model: Any, *, shapes: Mapping[str, Sequence[int]] | None = None, name: str | None = None) -> Model:
    """A model from an ONNX file's path, its bytes, an open file, or an `onnx.ModelProto`.

        model = tosaic.from_onnx("model.onnx", shapes={"image": (1, 3, 224, 224)})
        y = model(x)

    Inputs are called as in the file. `shapes` gives inputs their extents where the file leaves some open; those that stay open
    are compiled for the shapes of each call. Weights in files beside the model are found where a path is given; the file is
    mapped, so it must stay as it is.

    Raises a Problem where the package onnx is missing, the file is no ONNX model, or a node has no place here.
    """
    from ....lowering.graph.verify import verify
    from ....lowering.onnx.read import read_model, read_path
    from .run_onnx import onnx_source
    source: Path | bytes
    if isinstance(model, str | os.PathLike):
        source = Path(os.path.abspath(os.fspath(model)))
        module = read_path(model)
    else:
        source, shown = serialized(model)
        module = read_model(source, name or shown)
    verify(module)
    if shapes:
        module = with_shapes(module, {key: tuple(map(int, value)) for key, value in shapes.items()})
    return Model(now(module), outlines_of(module, None), imported=onnx_source(source))


def with_shapes(module: Module, shapes: Mapping[str, tuple[int, ...]]) -> Module:
    """The module with inputs of these shapes, by their names."""
    from ....lowering.graph.types import TensorType
    from ....lowering.rewrite.substitute import ValueSubstitution
    arguments = {v: v.name for v in module.function("main").arguments}
    unknown = next((key for key in shapes if key not in arguments.values()), None)
    if unknown is not None:
        raise Problem(f"the model has no input named {unknown}", kind="argument",
                      help=f"its inputs: {', '.join(arguments.values())}")

    def shaped(value: Value) -> Value:
        shape = shapes.get(arguments.get(value, ""))
        return value if shape is None else replace(value, type=TensorType(shape, value.tensor.element))
    return ValueSubstitution(shaped).module(module)


def serialized(model: Any) -> tuple[bytes, str]:
    """The bytes of a model that is no path, and what messages call it."""
    if not hasattr(model, "SerializeToString"):
        return read_bytes(model)
    try:
        return model.SerializeToString(), str(model.graph.name or "<model>")
    except Exception as error:  # protobuf's own, for more than 2 GiB
        raise Problem(f"the model cannot be written: {error}", kind="file",
                      help="save it with its weights in files beside it, and pass the path") from None
