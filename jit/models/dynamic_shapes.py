"""Entries whose inputs have extents that the model leaves open (`tensor<?x8xf32>`): one static graph for each set of shapes.

Code and its memory plan have fixed shapes. A call with arrays of new shapes rewrites the graph for them and compiles the
result; the most recent ones are kept.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...runtime.errors import KeyProblem, Problem, TypeProblem, ValueProblem, class_of
from ...runtime.foreign_arrays import Unreadable, borrowed, has_memory, is_untyped
from ...runtime.public_names import missing_input, unknown_name

if TYPE_CHECKING:
    from ...lowering.graph.graph import Function, Module, Value
    from ...lowering.graph.types import TensorType

Shape = Sequence[int]
Shapes = tuple[tuple[str, tuple[int, ...]], ...]
KEPT = 64
"""Maximum number of sets of shapes whose code an entry keeps."""


def is_dynamic(function: Function) -> bool:
    """True if the shape of an input is not known."""
    return any(map(is_open, function.arguments))


def is_open(value: Value) -> bool:
    """True if the tensor has an extent that is not known."""
    from ...lowering.graph.types import TensorType
    return isinstance(value.type, TensorType) and not value.type.is_static


def stated_shapes(function: Function) -> Shapes:
    """Return the shapes that the file states for the inputs whose extents it leaves open; none unless it states all of them."""
    from ...lowering.graph.graph import STATED_SHAPE
    from ...lowering.text.attributes import Numbers
    attributes = function.argument_attributes or ({},) * len(function.arguments)
    found = {v.name: own.get(STATED_SHAPE) for v, own in zip(function.arguments, attributes) if is_open(v)}
    stated = {name: tuple(map(int, shape.values)) for name, shape in found.items() if isinstance(shape, Numbers)}
    return tuple(stated.items()) if len(stated) == len(found) else ()


def with_shapes(module: Module, function: Function, shapes: Mapping[str, Shape]) -> Module:
    """Return the module with `function` specialized to inputs of these shapes, by name; other inputs keep their shapes."""
    from ...lowering.rewrite.specialize import specialize
    return specialize(module, function.name, input_types(function, shapes))


def input_types(function: Function, shapes: Mapping[str, Shape]) -> list[TensorType]:
    """Return the types of a function's inputs, with the given shapes for those that are named."""
    names = [v.name for v in function.arguments]
    for name in shapes:
        if name not in names:
            raise unknown_name(function.name, "input", name, {"inputs": names}, KeyProblem)
    types = [shaped(v, shapes.get(v.name)) for v in function.arguments]
    for value, attributes, type in zip(function.arguments, function.argument_attributes, types):
        check_bounds(value, attributes, type)
    return types


def check_bounds(value: Value, attributes: Mapping[str, Any], type: TensorType) -> None:
    """Raise a Problem if an extent is outside the bounds with which the model was exported."""
    from ...lowering.graph.graph import EXTENT_BOUNDS
    numbers = list(map(int, getattr(attributes.get(EXTENT_BOUNDS), "values", ())))
    for axis, (extent, least, most) in enumerate(zip(type.dims, numbers[::2], numbers[1::2])):
        if extent < least or -1 < most < extent:
            span = f"{least} and more" if most < 0 else f"{least} to {most}"
            raise ValueProblem(f"extent {axis} of input {value.name} is {extent}, the model was exported for {span}",
                               kind="argument", help="export it with other bounds: torch.export.Dim(name, min=, max=)")


def shaped(value: Value, shape: Shape | None) -> TensorType:
    """Return the type of an input with that shape."""
    type = value.tensor
    if shape is None:
        if not type.is_static:
            raise ValueProblem(f"input {value.name} is {type}: its shape must be given", kind="argument")
        return type
    from ...lowering.graph.types import TensorType
    return TensorType(tuple(map(int, shape)), type.element)


def shapes_of(function: str, names: Sequence[str], inputs: Sequence[Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays of a call, by the names of the inputs; raise a Problem if one is missing."""
    arrays: Mapping[str, Any] = dict(zip(names, inputs))
    if len(inputs) == 1 and isinstance(inputs[0], Mapping):
        arrays = inputs[0]
    missing = next((name for name in names if name not in arrays), None)
    if missing is not None:
        raise missing_input(function, missing, names)
    return {name: shape_of(function, name, arrays[name]) for name in names}


def shape_of(function: str, name: str, value: Any) -> tuple[int, ...]:
    """Return the shape of an argument; raise a Problem if it is no array."""
    if is_untyped(value):
        raise TypeProblem(f"input {name} of {function} is {class_of(value)}, which has no shape", kind="argument",
                          help="numpy.frombuffer(value, dtype).reshape(shape) has one")
    try:
        return tuple(np.shape(value if hasattr(value, "shape") or not has_memory(value) else borrowed(value)))
    except Unreadable as error:
        raise TypeProblem(f"input {name} of {function} cannot be read: {error}", kind="argument",
                          help=error.help) from error
    except ValueError:
        raise ValueProblem(f"input {name} of {function} is no array: its parts have other shapes", kind="argument") from None


def named_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Return the name and the shape in `x=2x8`; `x=` is a scalar."""
    name, equals, extents = text.rpartition("=")
    try:
        shape = tuple(int(n) for n in extents.split("x")) if extents else ()
    except ValueError:
        shape = (0,)
    if not equals or min(shape, default=1) < 1:
        raise Problem(f"{text} is not INPUT=SHAPE", kind="option", help="as in --shape x=2x8")
    return name, shape
