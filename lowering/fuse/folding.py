"""Which operators on constants are computed while compiling: where that takes little time, and the result little room."""
from __future__ import annotations

import math
from collections.abc import Iterable

from ..elements.affine import Axis
from ..elements.expression import Expr, Load, Reduce
from ..elements.traverse import loads, nodes
from ..graph.types import TensorType

FOLD_BYTES = 1 << 20
"""Results are computed up to this size, or as long as they do not grow."""
FOLD_TERMS = 1 << 15
"""And sums of at most this number of terms, or a few for each element that is read: one takes up to a microsecond. What leaves
the function is computed then only up to this number of elements, or terms."""


def may_fold(type: TensorType, expression: Expr, axes: tuple[Axis, ...], leaves: bool) -> bool:
    """True if a value of this type is computed from its expression now; `leaves`: it is a result of the function."""
    read = loads(expression)
    if any(load.buffer.role != "constant" for load in read):
        return False
    if isinstance(expression, Load) and type.nbytes > expression.buffer.nbytes:
        return False  # a constant that is only repeated is read where it lies
    buffers = {load.buffer for load in read}
    if type.nbytes > max(FOLD_BYTES, 4 * sum(b.nbytes for b in buffers)):
        return False
    if leaves and terms(expression, axes) > FOLD_TERMS:
        return False  # nothing else that is computed from it could be known, too
    return not has_sums(expression) or terms(expression, axes) <= max(FOLD_TERMS, 4 * sum(b.size for b in buffers))


def terms(e: Expr, axes: Iterable[Axis]) -> int:
    """How many elements an expression has over these axes; the terms of its sums."""
    sums = {a for node in nodes(e) if isinstance(node, Reduce) for a in node.axes}
    return math.prod(a.extent for a in {*axes, *sums})


def has_sums(e: Expr) -> bool:
    return any(isinstance(node, Reduce) for node in nodes(e))
