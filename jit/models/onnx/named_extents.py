"""Named open extents of an ONNX model's inputs: extents of the same name are equal, in all inputs."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ....runtime.errors import KeyProblem, Problem, ValueProblem

if TYPE_CHECKING:
    from ....lowering.graph.graph import Function, Value
    from ....lowering.graph.types import Type


def input_types(function: Function, shapes: Mapping[str, Sequence[int]], extents: Mapping[str, int]) -> list[Type]:
    """Return the types of the inputs. `shapes` gives the shapes of some inputs, `extents` the values of some named extents;
    other named extents follow from the given shapes. Raise a Problem if these contradict the file or each other."""
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
    """Return the shapes of inputs with open extents if the named leading extents, such as a batch, are 1; none if others stay
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
    """Derive named extents from the shape of one input."""
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
    """Raise a Problem if the model has no extent of such a name."""
    names = dict.fromkeys(name for own in names_of(function) for name in own if name)
    if unknown := next((each for each in extents if each not in names), None):
        raise KeyProblem(f"the model has no input or extent named {unknown}", kind="argument", help=", ".join((
            f"its inputs: {', '.join(v.name for v in function.arguments)}", *(f"the extent {n}" for n in names))))


def names_of(function: Function) -> list[Sequence[str]]:
    """Return the names of the extents of each input; an empty name for an extent without one."""
    attributes = function.argument_attributes or ({},) * len(function.arguments)
    return [a.get("onnx.dimensions", ()) for a in attributes]
