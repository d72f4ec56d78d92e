"""Graph -> graph: a costly operator that is computed twice for the same operands is computed once (value numbering).

Values get the same number where they are the same operator, with the same attributes, of operands with the same numbers;
constants where their bits are the same. The number of a value holds in its block and in the regions inside. Operators with
effects, with regions of their own, or that read a variable have no number.

Only the results of operators that cost something to compute are replaced. One element's arithmetic and moves of elements are
part of the kernels that read them: shared by two readers they would be stored. What only a replaced operator has read,
`prune` drops.
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
"""Sums, and functions that take more than ten operations an element."""

MAX_COMPARED_BYTES = 1 << 16
"""Of a constant: weights are longer, are never there twice, and would take time to compare."""

Number = tuple[int, int]
"""Of an operation that came first, and of its result: what values have in common that are equal whenever they are computed."""


def eliminate_common_subexpressions(module: Module) -> Module:
    """The module with each costly operator once in its block; the same object where none is twice."""
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
    """What is known at a place of a function: numbers of values, by what an operation computes its number and the results that
    came first, and what stands for replaced values."""
    numbers: dict[Value, Number]
    first: dict[Hashable, tuple[int, tuple[Value, ...]]]
    replaced: dict[Value, Value]

    def block(self, block: Block) -> Block:
        """The block with its duplicates replaced; the same object where it has none."""
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
        """A region: what is numbered inside is not known after it."""
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
    """True if its results follow from its operands alone. What an operator of a user's own does is not known."""
    op = operation.op
    return bool(operation.results) and not (
        operation.regions or op.variable_effect or op.is_check or op.foreign or op.name in ("", "tosa.custom"))


def bits_of(attribute: object) -> Hashable:
    """What distinguishes attributes: 0.0 and -0.0 are equal, and not the same. A long array is the same only as itself."""
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
