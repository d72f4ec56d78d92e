"""Interpreter of ONNX graphs, node by node, by the operators' references. Everything made of these graphs is checked against
it.

A tensor is an array, a sequence a tuple of arrays, an omitted operand or result None. Strings are arrays of Python objects.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....runtime.errors import Problem
from ...graph.foreign import find, spelling
from ...graph.graph import Block, Module, Operation, Value
from ...graph.types import Array, TensorType
from .node import CONSTANT, NO_VALUE, label
from .operator import interpreted
from .operators import operator_of

Scope = dict[Value, Any]


Observe = Callable[[Operation, Sequence[Any]], None]
"""A function that is called after every node, with its results."""


def interpret(module: Module, name: str | None, arguments: Sequence[Any], observe: Observe | None = None) -> tuple[Any, ...]:
    """Return the results of a function for these arrays."""
    function = module.function(name)
    if len(arguments) != len(function.arguments):
        raise Problem(f"@{function.name} takes {len(function.arguments)} inputs, not {len(arguments)}", kind="argument")
    scope: Scope = {value: checked(datum, value) for value, datum in zip(function.arguments, arguments, strict=True)}
    with np.errstate(all="ignore"):
        return run_block(module, function.body, scope, observe)


def checked(datum: Any, value: Value) -> Any:
    """Return an argument after checking it against its type."""
    if not isinstance(value.type, TensorType):
        return datum
    array = in_bytes(np.asarray(datum))
    known = value.type.shape is None or (len(value.type.shape) == array.ndim and all(
        n is None or n == m for n, m in zip(value.type.shape, array.shape)))
    if array.dtype != value.type.element.dtype or not known:
        raise Problem(f"input {value.name} is {value.type}, not {array.dtype}{list(array.shape)}", kind="argument")
    return array


def in_bytes(array: Array) -> Array:
    """Return four-bit or two-bit integers in their storage type, one per byte."""
    storage = {"int4": "int8", "uint4": "uint8", "int2": "int8", "uint2": "uint8"}.get(array.dtype.name)
    return array if storage is None else array.astype(storage)


def run_block(module: Module, block: Block, scope: Scope, observe: Observe | None = None) -> tuple[Any, ...]:
    """Run the nodes of a block in order, with the enclosing values in `scope`; return the block's results."""
    for operation in block.operations:
        try:
            results = run(module, operation, scope, observe)
        except Problem as problem:
            raise problem.of(label(operation, module)).at(operation.position) from None
        scope.update(zip(operation.results, results, strict=True))
        if observe is not None:
            observe(operation, results)
    return tuple(scope[v] for v in block.yields)


def run(module: Module, operation: Operation, scope: Scope, observe: Observe | None = None) -> Sequence[Any]:
    """Return the results of one node."""
    if spelling(operation) == NO_VALUE:
        return [None]
    if spelling(operation) == CONSTANT and hasattr(find(operation, "value"), "array"):
        return [find(operation, "value").array]

    def inside(number: int, arguments: Sequence[Any]) -> Sequence[Any]:
        region = operation.regions[number]
        if len(arguments) != len(region.arguments):
            raise Problem(f"subgraph {number} takes {len(region.arguments)} values, it is given {len(arguments)}", kind="type")
        return run_block(module, region, {**scope, **dict(zip(region.arguments, arguments, strict=True))}, observe)
    found = operator_of(operation, module, inside)
    return [as_datum(r) for r in interpreted(found, [scope[v] for v in operation.operands])]


def as_datum(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, np.generic | np.ndarray) else value
