"""Open extents of an ONNX model's inputs that have names: one name is one extent, in whichever inputs it stands."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ....runtime.errors import KeyProblem, Problem, ValueProblem

if TYPE_CHECKING:
    from ....lowering.graph.graph import Function, Value
    from ....lowering.graph.types import Type


def input_types(function: Function, shapes: Mapping[str, Sequence[int]], extents: Mapping[str, int]) -> list[Type]:
    """The types of the inputs, some of which have these shapes, and some of whose extents, by name, are known; others that have
    a name which a given shape tells follow. A Problem where that contradicts the file or itself."""
    from ....lowering.graph.types import TensorType
    known = dict(extents)
    names = {v.name for v in function.arguments}
    if unknown := next((each for each in shapes if each not in names), None):
        raise KeyProblem(f"the model has no input named {unknown}", kind="argument",
                         help=f"its inputs: {', '.join(sorted(names))}")
    check_names(function, extents)
    for value, own in zip(function.arguments, names_of(function)):
        if value.name in shapes:
            learn(value, own, tuple(shapes[value.name]), known)
    types: list[Type] = []
    for value, own in zip(function.arguments, names_of(function)):
        match value.type:
            case TensorType(shape=shape, element=element) if value.name in shapes:
                types.append(TensorType(tuple(shapes[value.name]), element))
            case TensorType(shape=tuple() as shape, element=element):
                named = [known.get(name) if n is None and name else n for n, name in zip(shape, own or [""] * len(shape))]
                types.append(TensorType(tuple(named), element))
            case other:
                types.append(other)
    return types


def stated_shapes(function: Function) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The shapes of inputs with open extents if the leading ones that have names, as a batch has, are 1; none where others stay
    open."""
    from ....lowering.graph.types import TensorType
    leading = {own[0]: 1 for v, own in zip(function.arguments, names_of(function))
               if own and own[0] and (getattr(v.type, "shape", None) or (0,))[0] is None}
    types = input_types(function, {}, leading)
    if not leading or not all(isinstance(t, TensorType) and t.is_static for t in types):
        return ()
    return tuple((v.name, t.dims) for v, t in zip(function.arguments, types)
                 if isinstance(t, TensorType) and t != v.type)


def learn(value: Value, names: Sequence[str], shape: tuple[int, ...], known: dict[str, int]) -> None:
    """What the shape of one input says of named extents."""
    declared = getattr(value.type, "shape", None)
    if declared is None:
        return
    if len(declared) != len(shape) or any(n is not None and n != m for n, m in zip(declared, shape)):
        raise ValueProblem(f"input {value.name} is {value.type}, it cannot be of shape {list(shape)}", kind="argument",
                           help="give each extent that the model leaves open, and the others as they are")
    for name, extent, own in zip(names, shape, declared):
        if own is None and name and known.setdefault(name, extent) != extent:
            raise Problem(f"{name} is {known[name]} elsewhere, and {extent} in the shape of input {value.name}",
                          kind="argument", help="the model calls both extents by one name, so they are one")


def check_names(function: Function, extents: Mapping[str, int]) -> None:
    """A Problem where the model has no extent of such a name."""
    names = dict.fromkeys(name for own in names_of(function) for name in own if name)
    if unknown := next((each for each in extents if each not in names), None):
        raise KeyProblem(f"the model has no input or extent named {unknown}", kind="argument", help=", ".join((
            f"its inputs: {', '.join(v.name for v in function.arguments)}", *(f"the extent {n}" for n in names))))


def names_of(function: Function) -> list[Sequence[str]]:
    """For each input the names of its extents; empty ones for those without."""
    attributes = function.argument_attributes or ({},) * len(function.arguments)
    return [a.get("onnx.dimensions", ()) for a in attributes]
