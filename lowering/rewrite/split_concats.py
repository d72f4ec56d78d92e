"""Graph -> graph: a concatenation of very many tensors becomes one of concatenations: the expression of its element, which has
a condition for each operand, stays of a bounded size then, and its loops are of a bounded number in one kernel.
"""
from __future__ import annotations

from ..dialects.tosa.layout import Concat
from ..graph.graph import BlockBuilder, Module, Operation, Value
from .expand import expand

MOST_OPERANDS = 64
"""Operands of a concatenation: the longest list of tensors that level 8K allows."""


def split_concats(module: Module) -> Module:
    """The module with no more operands to a concatenation than that."""
    return expand(module, is_long, split)


def is_long(operation: Operation) -> bool:
    return isinstance(operation.op, Concat) and len(operation.operands) > MOST_OPERANDS


def split(builder: BlockBuilder, operation: Operation) -> tuple[Value, ...]:
    """Concatenations of neighbours, until one is left."""
    values = operation.operands
    while len(values) > 1:
        groups = [values[start:start + MOST_OPERANDS] for start in range(0, len(values), MOST_OPERANDS)]
        values = tuple(builder.add(operation.op, *group, position=operation.position)[0] for group in groups)
    return values
