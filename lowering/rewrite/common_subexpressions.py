"""Graph -> graph: a costly operator on the same operands is computed once instead of twice (value numbering).

Values get the same number if they are results of the same operator, with the same attributes, on operands with the same
numbers; constants if their bits are the same. The number of a value holds in its block and in the regions inside it. Operators
with effects, with regions of their own, or that read a variable have no number.

Only the results of costly operators are replaced. Elementwise arithmetic and moves of elements are fused into the kernels that
read them: shared by two readers they would be stored. `prune` drops the values that only a replaced operator has read.
"""
from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from ...runtime.records import dataclass
from ..graph.graph import Block, Function, Module, Operation, Value

COSTLY = frozenset(f"tosa.{name}" for name in (
    "argmax", "avg_pool2d", "conv2d", "conv3d", "conv2d_block_scaled", "cos", "depthwise_conv2d", "erf", "exp", "fft2d", "log",
    "matmul", "matmul_t", "matmul_t_block_scaled", "max_pool2d", "pow", "reciprocal", "reduce_all", "reduce_any", "reduce_max",
    "reduce_min", "reduce_product", "reduce_sum", "rfft2d", "rsqrt", "sigmoid", "sin", "tanh", "transpose_conv2d"))
"""Reductions, and functions that take more than ten operations an element."""

MAX_COMPARED_BYTES = 1 << 16
"""Maximum number of bytes of a constant that is compared: weights are longer, do not occur twice, and would take time to
compare."""

Number = tuple[int, int]
"""Index of the first equal operation and index of the result: equal for values that are equal whenever they are computed."""


def eliminate_common_subexpressions(module: Module) -> Module:
    """Return the module with each costly operator once in its block; the same object if there are no duplicates."""
    functions = tuple(map(in_function, module.functions))
    if all(new is old for new, old in zip(functions, module.functions)):
        return module
    return replace(module, functions=functions)


def in_function(function: Function) -> Function:
    counts = Counter(o.op.name for o in function.body.walk())
    if all(counts[name] < 2 for name in COSTLY):
        return function
    body = Numbering({}, {}, {}).block(function.body)
    return function if body is function.body else replace(function, body=body)


@dataclass(frozen=True, slots=True)
class Numbering:
    """The state of value numbering at one point of a function: the numbers of values, the number and the first results of each
    expression, and the replacements of values."""
    numbers: dict[Value, Number]
    first: dict[Hashable, tuple[int, tuple[Value, ...]]]
    replaced: dict[Value, Value]

    def block(self, block: Block) -> Block:
        """Return the block with its duplicates replaced; the same object if it has none."""
        operations = tuple(map(self.operation, block.operations))
        yields = tuple(self.replaced.get(v, v) for v in block.yields)
        if yields == block.yields and all(new is old for new, old in zip(operations, block.operations)):
            return block
        return replace(block, operations=operations, yields=yields)

    def operation(self, operation: Operation) -> Operation:
        operands = tuple(self.replaced.get(v, v) for v in operation.operands)
        regions = tuple(map(self.region, operation.regions))
        if operands != operation.operands or any(new is not old for new, old in zip(regions, operation.regions)):
            operation = replace(operation, operands=operands, regions=regions)
        if is_pure(operation):
            self.number_results(operation)
        return operation

    def region(self, region: Block) -> Block:
        """Number a region, and forget what was numbered inside it afterwards."""
        tables: list[dict[Any, Any]] = [self.numbers, self.first, self.replaced]
        sizes = list(map(len, tables))
        found = self.block(region)
        for table, size in zip(tables, sizes):
            while len(table) > size:
                table.popitem()
        return found

    def number_results(self, operation: Operation) -> None:
        types = tuple(r.type for r in operation.results)
        attributes = tuple([bits_of(getattr(operation.op, f.name)) for f in operation.op._fields])
        computes = operation.op.name, attributes, types, tuple([self.numbers.get(v, v) for v in operation.operands])
        number, known = self.first.setdefault(computes, (len(self.first), operation.results))
        for place, (result, same) in enumerate(zip(operation.results, known)):
            self.numbers[result] = number, place
            if same is not result and operation.op.name in COSTLY:
                self.replaced[result] = same


def is_pure(operation: Operation) -> bool:
    """True if the results follow from the operands alone. The behaviour of a user's own operator is not known."""
    op = operation.op
    return bool(operation.results) and not (
        operation.regions or op.variable_effect or op.is_check or op.foreign or op.name in ("", "tosa.custom"))


def bits_of(attribute: object) -> Hashable:
    """Return a key that distinguishes attributes: 0.0 and -0.0 compare equal but differ in their bits. A long array equals only
    itself."""
    match attribute:
        case float():
            return struct.pack("<d", attribute)
        case np.ndarray() as array if array.nbytes <= MAX_COMPARED_BYTES:
            return array.dtype.name, array.shape, array.tobytes()
        case np.ndarray() as array:
            return id(array)
        case tuple() as several:
            return tuple(map(bits_of, several))
        case _:
            return attribute
