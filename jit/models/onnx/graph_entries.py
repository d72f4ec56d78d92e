"""Modules of ONNX's dialect as models: the graph is the entry `main`, and its TOSA graph is made for inputs of known shapes."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ....runtime.errors import Problem
from ...cache.models import Outline

if TYPE_CHECKING:
    from ....lowering.graph.graph import Module, Value
    from ....lowering.graph.types import Array, Type
    from ....lowering.rewrite.tensorflow import Bindings
    from ...source import SourceRun


def outlines(module: Module, bindings: Bindings | None = None) -> tuple[Outline, ...]:
    """The entries as far as a call needs to know them."""
    return tuple(Outline(f.name, not all(map(is_static, f.arguments)), tuple(v.name for v in f.arguments))
                 for f in module.functions if not f.is_private)


def is_static(value: Value) -> bool:
    return bool(getattr(value.type, "is_static", False))


def graph_of(module: Module, name: str, shapes: Mapping[str, Sequence[int]], bindings: Bindings | None = None) -> Module:
    """The TOSA graph of entry `name`, for inputs of these shapes; those that are not named have the shapes that the file gives
    them."""
    from ....lowering.graph.graph import Module
    from ....lowering.rewrite.onnx.translate import to_tosa
    function = module.function(name)
    names = [v.name for v in function.arguments]
    for each in shapes:
        if each not in names:
            raise Problem(f"the model has no input named {each}", kind="argument", help=f"its inputs: {', '.join(names)}")
    if not shapes and not all(map(is_static, function.arguments)):
        return Module((replace(function, body=replace(function.body, operations=())),))
    return to_tosa(module, name, [shaped(v, shapes.get(v.name)) for v in function.arguments])


def shaped(value: Value, shape: Sequence[int] | None) -> Type:
    from ....lowering.graph.types import TensorType
    if shape is None or not isinstance(value.type, TensorType):
        return value.type
    return TensorType(tuple(map(int, shape)), value.type.element)


def calls_of(module: Module, name: str, bindings: Bindings | None = None) -> SourceRun:
    """Calls of an entry in the interpreter of ONNX's dialect."""
    from ....lowering.dialects.onnx.interpret import interpret
    from ...source import StatelessRun

    def call(arrays: Sequence[Array]) -> Sequence[Array]:
        return interpret(module, name, arrays)
    return StatelessRun(call)
