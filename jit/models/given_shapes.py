"""Shapes that a caller gives a model's inputs when it is loaded (`load(shapes=)`), whatever importer reads the model."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...runtime.errors import KeyProblem, TypeProblem
from ...runtime.public_names import unknown_name
from .entry import Entry
from .entry_graphs import dialect_of
from .model import Model


def with_given_shapes(model: Model, shapes: Mapping[str, Sequence[int] | int] | None) -> Model:
    """Return the model with inputs of these shapes, in each entry that has inputs of these names. For ONNX models, extents can
    be given by name, too."""
    if not shapes:
        return model
    from .onnx import graph_entries as onnx
    from .onnx.from_onnx import closed
    if dialect_of(model.module) is onnx:
        return closed(model, shapes, may_be_cached=True)
    given = {name: checked(name, shape) for name, shape in shapes.items()}
    inputs = [name for entry in model for name in entry.input_names]
    if unknown := next((name for name in given if name not in inputs), None):
        raise unknown_name("the model", "input", unknown, {"inputs": inputs}, KeyProblem)
    return model.with_entries({entry.name: specialized(entry, given) for entry in model})


def specialized(entry: Entry, shapes: Mapping[str, Sequence[int]]) -> Entry:
    """Return the entry with these shapes for those of its inputs that are named."""
    own = {name: shape for name, shape in shapes.items() if name in entry.input_names}
    return entry.specialize(own) if own else entry


def checked(name: str, shape: Sequence[int] | int) -> tuple[int, ...]:
    if isinstance(shape, int):
        raise TypeProblem(f"the shape of {name} is the number {shape}", kind="argument",
                          help=f"a shape is a tuple: shapes={{{name!r}: ({shape},)}}; extents by name are for ONNX models")
    return tuple(map(int, shape))
