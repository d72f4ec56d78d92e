"""Graph -> graph: a concatenation of very many tensors becomes a concatenation of concatenations. This bounds the size of its
element's expression, which has a condition for each operand, and the number of its loops in one kernel.
"""
from __future__ import annotations

from ..dialects.tosa.layout import Concat
from ..graph.graph import BlockBuilder, Module, Operation, Value
from .expand import expand

MOST_OPERANDS = 64
"""Maximum number of operands of a concatenation: the longest list of tensors that level 8K allows."""


def split_concats(module: Module) -> Module:
    """Return the module with at most that number of operands in each concatenation."""
    return expand(module, is_long, split)


def is_long(operation: Operation) -> bool:
    return isinstance(operation.op, Concat) and len(operation.operands) > MOST_OPERANDS


def split(builder: BlockBuilder, operation: Operation) -> tuple[Value, ...]:
    """Concatenate neighbours until one tensor is left."""
    values = operation.operands
    while len(values) > 1:
        groups = [values[start:start + MOST_OPERANDS] for start in range(0, len(values), MOST_OPERANDS)]
        values = tuple(builder.add(operation.op, *group, position=operation.position)[0] for group in groups)
    return values
