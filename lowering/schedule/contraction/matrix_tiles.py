"""What all products on a matrix unit (AMX) share, whose tiles have up to 16 rows of 16 sums: how rows and columns are cut into
blocks of them, and what is the same in all rows of a block when outputs are made of its sums.

All blocks have the same number of rows, so that tiles keep their shapes, whose setting takes hundreds of cycles: the last block
computes some rows again.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...elements.affine import Axis
from ...elements.expression import Expr, Reduce
from ...elements.traverse import nodes
from ...loops.builder import Builder
from ...loops.ir import TILE_ROWS
from ...target.target import Target
from ..nest.loop_nest import At, free_axes, operands
from ..nest.padding_conditions import PaddingConditions
from ..nest.tile_axis import Cut, Piece, Tiles, chunks, interior
from ..vectorize.vectorize import Vectorizer
from .pattern import Contraction

LANES = 16
"""Sums in a row of a tile register."""
MAX_ROWS = 2 * TILE_ROWS
"""Rows of a block: those of two tile registers."""
MAX_SETTLED_BLOCKS = 6
"""Blocks of rows whose conditions are settled one by one while compiling."""


def rows_of(pattern: Contraction) -> int:
    """Rows of m in a block."""
    return -(-pattern.rows // -(-pattern.rows // MAX_ROWS))


def starts(extent: int, rows: int) -> list[int]:
    """Where blocks begin; the last one ends with the axis."""
    return [*range(0, extent - rows, rows), extent - rows]


def border_blocks(pattern: Contraction) -> list[int]:
    """Starts of blocks of which some rows meet conditions, and some do not."""
    if pattern.m is None:
        return []
    rows = rows_of(pattern)
    low, high = interior(pattern.m, PaddingConditions.of(pattern.reduce, pattern.m, pattern.n).rows)
    return [s for s in starts(pattern.rows, rows) if not low <= s <= high - rows]


def blocks_of(extent: int, rows: int, border: Sequence[int] = (), again: bool = False) -> list[Tiles]:
    """Blocks of `rows` rows; those that begin at `border` each on their own, and the last one, where it computes rows again,
    unless that may be done in the iterations of one loop."""
    alone, result = set(border), list[Tiles]()
    for start in starts(extent, rows):
        last = result[-1] if result else None
        if last and start not in alone and last.start not in alone and (again or start == last.end):
            result[-1] = Tiles(last.start, rows, last.count + 1, last.end - start)
        else:
            result.append(Tiles(start, rows, 1))
    return result


def panels_of(extent: int, width: int = LANES) -> Cut:
    """Panels of `width` columns, then the remainder, in vectors of a tile's row."""
    return [(t, tuple(Piece(s, LANES, min(LANES, t.size - s)) for s in range(0, t.size, LANES)))
            for t in chunks(extent, width)]


def is_plain(pattern: Contraction, known: Expr) -> bool:
    """True if sums are outputs, if `known` is what they are the values of, and whole tiles of them."""
    nest, m = pattern.nest, pattern.m
    straight = m is not None and m not in nest.index.hidden and nest.index.coefficient(m) > 0
    return nest.value is known and straight and pattern.n.extent % LANES == 0


def unchanging(value: Expr, around: frozenset[Axis | None], known: Expr) -> Iterator[Expr]:
    """The largest subexpressions of a value, under arithmetic, that are the same for all places of the axes `around`, where
    `known` is known."""
    stack, seen = [value], set[int]()
    while stack:
        e = stack.pop()
        if id(e) in seen or e is known:
            continue
        seen.add(id(e))
        if not any(isinstance(x, Reduce) for x in nodes(e)) and not free_axes(e) & around:
            yield e
        else:
            stack.extend(operands(e))


def outside_rows(b: Builder, target: Target, pattern: Contraction, at: At, piece: Piece, around: frozenset[Axis | None],
                 known: Expr) -> Vectorizer:
    """What is the same in all rows of a vector of outputs, computed."""
    n = pattern.n
    v = Vectorizer(b, target, {**at, n: at[n] + piece.start}, n, piece.lanes, piece.active)
    for e in unchanging(pattern.nest.value, around, known):
        v.value(e)
    return v
