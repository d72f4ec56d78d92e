"""Initial values of integer sums: constants that the epilogue adds, and from which accumulators can start instead."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...elements.affine import Axis
from ...elements.expression import Apply, Expr, Reduce, is_float
from ...elements.traverse import children, nodes
from ...graph.types import Array
from ..nest.constant_data import constant, is_constant
from ..nest.loop_nest import Nest, free_axes


def biased(nest: Nest, reduce: Reduce, axes: Sequence[Axis]) -> tuple[Expr, tuple[Expr, ...]]:
    """Return the expression whose value the sums have if they start from constants, and these constants, which depend on `axes`
    only. Without such constants, return the reduction itself and none. Integers only: float sums depend on their order."""
    total: Expr = reduce
    constants: list[Expr] = []
    every = [] if is_float(reduce.dtype) else list(nodes(nest.value))
    while len(users := [e for e in every if any(x is total for x in children(e))]) == 1:
        match users[0]:
            case Apply("add", (x, y)) if x is not y and is_constant(other := y if x is total else x) and (
                    free_axes(other) <= set(axes)):
                total, constants = users[0], [*constants, other]
            case _:
                break
    return total, tuple(constants)


def sum_of(constants: Sequence[Expr], axes: tuple[Axis, ...]) -> Array:
    """Return the initial values of the sums, [axes]."""
    total = np.zeros([a.extent for a in axes], np.int64)
    for e in constants:
        total += np.asarray(constant(e, axes)).astype(np.int64)
    return total
