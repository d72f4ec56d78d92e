"""Modules of ONNX's dialect as models: the graph is the entry `main`, and its TOSA graph is made for inputs of known shapes."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ....runtime.errors import Problem
from ...cache.models import Outline
from .carried_state import CarriedCalls, bound, output_names, state_of
from .known_values import CallsByValue, EntryOf
from .named_extents import input_types, stated_shapes

if TYPE_CHECKING:
    from ....lowering.graph.graph import Module
    from ....lowering.graph.types import Array, Type
    from ....lowering.rewrite.tensorflow import Bindings
    from ...source import SourceRun


def outlines(module: Module, bindings: Bindings | None = None) -> tuple[Outline, ...]:
    """The entries as far as a call needs to know them."""
    return tuple(Outline(f.name, not all(is_static(v.type) for v in f.arguments),
                         tuple(v.name for v in f.arguments if v.name not in state_of(f)), stated_shapes(f))
                 for f in module.functions if not f.is_private)


def is_static(type: Type) -> bool:
    return bool(getattr(type, "is_static", False))


def graph_of(module: Module, name: str, shapes: Mapping[str, Sequence[int]], bindings: Bindings | None = None) -> Module:
    """The TOSA graph of entry `name`, for inputs of these shapes; those that are not named have the shapes that the file gives
    them. An extent that has a name is given as a shape of one number."""
    from ....lowering.dialects.onnx.node import WITHOUT_ELEMENTS
    from ....lowering.graph.graph import Module
    from ....lowering.rewrite.onnx.translate import to_tosa
    function = module.function(name)
    names = {v.name for v in function.arguments}
    extents = {key: int(shape[0]) for key, shape in shapes.items() if key not in names and len(shape) == 1}
    types = input_types(function, {k: tuple(map(int, s)) for k, s in shapes.items() if k not in extents}, extents)
    if not shapes and not all(map(is_static, types)):
        free = tuple(v for v in function.arguments if v.name not in state_of(function))
        return Module((replace(function, body=replace(function.body, arguments=free, operations=())),))
    made = to_tosa(module, name, types)
    if empty := made.attributes.get(WITHOUT_ELEMENTS):
        number, type = empty[0]
        raise Problem(f"output {output_names(function)[number]} is {type}: it has no elements", kind="shape",
                      help="TOSA has no such tensors; a call gives it")
    return bound(made, function)


def calls_by_value(module: Module, name: str, entry_of: EntryOf) -> CallsByValue | None:
    """Calls of an entry for which there is no graph for shapes alone; None of one that carries state."""
    return None if state_of(module.function(name)) else CallsByValue(module, name, entry_of)


def calls_of(module: Module, name: str, bindings: Bindings | None = None) -> SourceRun:
    """Calls of an entry in the interpreter of ONNX's dialect."""
    from ....lowering.dialects.onnx.interpret import interpret
    from ...source import StatelessRun

    def call(arrays: Sequence[Array]) -> Sequence[Array]:
        return interpret(module, name, arrays)
    function = module.function(name)
    return CarriedCalls(function, call) if state_of(function) else StatelessRun(call)
