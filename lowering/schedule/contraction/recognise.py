"""Pattern matching of the sum over K of a[m, k] * b[n, k]: find the factors and axes of a nest by role. A convolution has this
pattern, too (an implicit GEMM: no im2col, its window is read in place). `choose` chooses the lowering,
`contraction_strategies` performs it.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ...elements.affine import Axis
from ...elements.expression import Apply, Reduce
from ...elements.traverse import loads, nodes
from ...graph.types import ITEM_SIZES
from ...loops.cost import tile_step_cycles
from ...target.target import Target
from ..code_size_model import price_of, share_of
from ..nest.constant_data import is_constant
from ..nest.loop_nest import Nest, free_axes, main_reduction
from ..nest.padding_conditions import PaddingConditions, kept_in_range
from .int8.byte_factors import are_summed_in_lanes
from .pattern import Contraction

NEAR_L2_PART = 8
"""Divisor: rows that are not adjacent may read a tensor of at most 1/8 of the second-level cache."""
COMPARED_SUMS, MAX_COMPARED_VECTORS = 12, 4
"""Approximate number of sums, and maximum number of vectors of columns, of the register tile by which patterns are compared."""
BORDER_TILE_LINES = 150
"""Minimum number of lines of LLVM's text of tiles of rows at a border. Counted."""
MIN_ROWS_EXTENT = 5
"""Minimum extent of an axis, other than the innermost, that is worth tiles of rows that are not adjacent."""


def recognise(nest: Nest, rows: bool, target: Target | None = None) -> Contraction | None:
    """Return the pattern of a nest, or None. Rows are neighbours in memory; with a target, other rows that meet no condition
    are preferred if they take less code."""
    found = patterns(nest, rows)
    first = next(found, None)
    if first is None or target is None or not (first.tested or PaddingConditions.of(first.reduce, first.m, first.n).rows):
        return first
    return next((pattern for pattern in found if are_plain_rows(pattern, first, target)), first)


def are_plain_rows(pattern: Contraction, first: Contraction, target: Target) -> bool:
    """True if rows that are not adjacent meet no condition, and take hardly more cycles than those of the first pattern."""
    if pattern.tested or PaddingConditions.of(pattern.reduce, pattern.m,
                                              pattern.n).rows or are_summed_in_lanes(pattern, target):
        return False
    if any(x.buffer.nbytes > target.l2_bytes // NEAR_L2_PART for x in loads(pattern.a)):
        return False
    lanes = target.lanes(ITEM_SIZES[pattern.reduce.dtype])
    vectors = min(-(-pattern.n.extent // lanes), MAX_COMPARED_VECTORS)
    most = COMPARED_SUMS // vectors
    each = [tile_step_cycles(rows, vectors, target) / rows for rows in (min(f.rows, most) for f in (pattern, first))]
    iterations = (
        pattern.depth
        * pattern.iterations
        * math.prod(a.extent for a in pattern.outer)
        * pattern.rows
        * pattern.n.extent
        / (lanes * vectors)
    )
    return iterations * (each[0] - each[1]) <= price_of(share_of(pattern.nest.value)) * BORDER_TILE_LINES


def patterns(nest: Nest, rows: bool) -> Iterator[Contraction]:
    """Yield the possible contractions of a nest."""
    inner = nest.axes[1:] if rows else nest.axes
    n = inner[-1] if inner else None
    reduction = main_reduction(nest, n) if n else None
    match reduction:
        case Reduce("add", _, Apply("mul", factors)) if n and nest.index.coefficient(n) == 1:
            for m in tiled(inner[:-1]):
                for a, b in (factors, factors[::-1]):
                    pattern = Contraction(nest, reduction, a, b, m, n, tuple(x for x in nest.axes[:-1] if x is not m))
                    if fits(pattern):
                        yield pattern
                        break


def tiled(axes: tuple[Axis, ...]) -> Sequence[Axis | None]:
    """Return the axes that tiles may run along: the innermost, else a long outer axis."""
    long = [a for a in axes[:-1] if a.extent >= MIN_ROWS_EXTENT]
    return (axes[-1], *sorted(long, key=lambda a: -a.extent)) if axes else (None,)


def fits(pattern: Contraction) -> bool:
    """True if the factors fit a tile: b does not vary between rows, nor a between columns, and no column is left out."""
    in_a, in_b = free_axes(pattern.a), free_axes(pattern.b)
    if any(pattern.n in w.index.axes for w in pattern.nest.where):
        return False
    if pattern.n in in_a or pattern.n not in in_b or pattern.m in in_b or not set(pattern.reduce.axes) <= in_a | in_b:
        return False
    if (
        any(isinstance(e, Reduce) for e in nodes(pattern.reduce.body))
        or PaddingConditions.of(pattern.reduce, pattern.m, pattern.n).tests
    ):
        return False
    if is_constant(pattern.b):
        return True
    return in_range(pattern) and (pattern.passes >= 4 or contiguous(pattern))


def in_range(pattern: Contraction) -> bool:
    """True if b can be read at all values of K for which the conditions on b alone hold."""
    return all(kept_in_range(x, pattern.inside) for x in loads(pattern.b))


def contiguous(pattern: Contraction) -> bool:
    """True if b can be read in place: whole vectors, no index that comes from data."""
    return all(x.index[0].coefficient(pattern.n) in (0, 1) and pattern.n not in x.index[0].hidden for x in loads(pattern.b))
