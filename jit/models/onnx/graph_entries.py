"""Modules of ONNX's dialect as models: the graph is the entry `main`, and its TOSA graph is made for inputs of known shapes."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...cache.models import Outline
from .carried_state import CarriedCalls, bound, state_of
from .named_extents import input_types

if TYPE_CHECKING:
    from ....lowering.graph.graph import Module
    from ....lowering.graph.types import Array, Type
    from ....lowering.rewrite.tensorflow import Bindings
    from ...source import SourceRun


def outlines(module: Module, bindings: Bindings | None = None) -> tuple[Outline, ...]:
    """The entries as far as a call needs to know them."""
    return tuple(Outline(f.name, not all(is_static(v.type) for v in f.arguments),
                         tuple(v.name for v in f.arguments if v.name not in state_of(f)))
                 for f in module.functions if not f.is_private)


def is_static(type: Type) -> bool:
    return bool(getattr(type, "is_static", False))


def graph_of(module: Module, name: str, shapes: Mapping[str, Sequence[int]], bindings: Bindings | None = None) -> Module:
    """The TOSA graph of entry `name`, for inputs of these shapes; those that are not named have the shapes that the file gives
    them."""
    from ....lowering.graph.graph import Module
    from ....lowering.rewrite.onnx.translate import to_tosa
    function = module.function(name)
    types = input_types(function, {key: tuple(map(int, shape)) for key, shape in shapes.items()}, {})
    if not shapes and not all(map(is_static, types)):
        free = tuple(v for v in function.arguments if v.name not in state_of(function))
        return Module((replace(function, body=replace(function.body, arguments=free, operations=())),))
    return bound(to_tosa(module, name, types), function)


def calls_of(module: Module, name: str, bindings: Bindings | None = None) -> SourceRun:
    """Calls of an entry in the interpreter of ONNX's dialect."""
    from ....lowering.dialects.onnx.interpret import interpret
    from ...source import StatelessRun

    def call(arrays: Sequence[Array]) -> Sequence[Array]:
        return interpret(module, name, arrays)
    function = module.function(name)
    return CarriedCalls(function, call) if state_of(function) else StatelessRun(call)
