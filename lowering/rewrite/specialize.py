"""Graph -> graph: a function with dynamic extents, rewritten for arguments of known shapes.

`infer_shapes` infers the extents. A declared extent that contradicts the inferred one is a Problem.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...runtime.errors import Problem
from ..graph.graph import Function, Module
from ..graph.types import TensorType
from ..graph.verify import compatible
from .infer_shapes import Inference, declared_types


def specialize(module: Module, name: str, types: Sequence[TensorType]) -> Module:
    """Return the module with function `name` rewritten for arguments of these types, the other functions unchanged."""
    function = module.function(name)
    check_inputs(function, types)
    special = Inference(declared_types(module), strict=True).function(function, types)
    return replace(module, functions=tuple(special if f is function else f for f in module.functions))


def specialized(function: Function, types: Sequence[TensorType]) -> Function:
    """Return the function rewritten for arguments of these types."""
    check_inputs(function, types)
    return Inference({}, strict=True).function(function, types)


def check_inputs(function: Function, types: Sequence[TensorType]) -> None:
    """Raise a Problem unless the function's inputs can have these types."""
    if len(types) != len(function.arguments):
        raise Problem(f"{function.name} takes {len(function.arguments)} inputs, not {len(types)}", kind="argument")
    for argument, type in zip(function.arguments, types):
        if not compatible(argument.type, type):
            raise Problem(f"input {argument.name} is {argument.type}, an array of {type} does not fit", kind="argument")
