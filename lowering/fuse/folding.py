"""Constant folding: compute operators on constants while compiling, if that takes little time and the result little memory."""
from __future__ import annotations

import math
from collections.abc import Iterable

from ..elements.affine import Axis
from ..elements.expression import Expr, Load, Reduce
from ..elements.traverse import loads, nodes
from ..graph.types import TensorType

FOLD_BYTES = 1 << 20
"""Maximum bytes of a folded result, unless it is at most four times as large as the constants that it reads."""
FOLD_TERMS = 1 << 15
"""Maximum terms of folded sums, unless there are at most four for each element that is read: a term takes up to a microsecond.
Also the maximum elements, or terms, of a folded result of the function."""


def may_fold(type: TensorType, expression: Expr, axes: tuple[Axis, ...], leaves: bool) -> bool:
    """True if a value of this type is folded. With `leaves`, the value is a result of the function."""
    read = loads(expression)
    if any(load.buffer.role != "constant" for load in read):
        return False
    if isinstance(expression, Load) and type.nbytes > expression.buffer.nbytes:
        return False  # a constant that is only repeated is read in place
    buffers = {load.buffer for load in read}
    if type.nbytes > max(FOLD_BYTES, 4 * sum(b.nbytes for b in buffers)):
        return False
    if leaves and terms(expression, axes) > FOLD_TERMS:
        return False  # folding it lets nothing else be folded
    return not has_sums(expression) or terms(expression, axes) <= max(FOLD_TERMS, 4 * sum(b.size for b in buffers))


def terms(e: Expr, axes: Iterable[Axis]) -> int:
    """Return the number of elements of an expression over these axes, times the terms of its sums."""
    sums = {a for node in nodes(e) if isinstance(node, Reduce) for a in node.axes}
    return math.prod(a.extent for a in {*axes, *sums})


def has_sums(e: Expr) -> bool:
    return any(isinstance(node, Reduce) for node in nodes(e))
