"""Common code of all products on a matrix unit (AMX), whose tiles have up to 16 rows of 16 sums: the cut of rows and columns
into blocks of tiles, and the epilogue values that are equal in all rows of a block.

All blocks have the same number of rows, so that tiles keep their shapes, because setting these takes hundreds of cycles: the
last block recomputes some rows.
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
"""Number of sums in a row of a tile register."""
MAX_ROWS = 2 * TILE_ROWS
"""Maximum rows of a block: those of two tile registers."""
MAX_SETTLED_BLOCKS = 6
"""Maximum number of blocks of rows whose conditions are settled one by one at compile time."""


def rows_of(pattern: Contraction) -> int:
    """Return the number of rows of m in a block."""
    return -(-pattern.rows // -(-pattern.rows // MAX_ROWS))


def starts(extent: int, rows: int) -> list[int]:
    """Return the starts of blocks; the last block ends with the axis."""
    return [*range(0, extent - rows, rows), extent - rows]


def border_blocks(pattern: Contraction) -> list[int]:
    """Return the starts of blocks of which some rows meet conditions, and some do not."""
    if pattern.m is None:
        return []
    rows = rows_of(pattern)
    low, high = interior(pattern.m, PaddingConditions.of(pattern.reduce, pattern.m, pattern.n).rows)
    return [s for s in starts(pattern.rows, rows) if not low <= s <= high - rows]


def blocks_of(extent: int, rows: int, border: Sequence[int] = (), again: bool = False) -> list[Tiles]:
    """Return blocks of `rows` rows. Blocks that begin at `border` are separate, and so is a last block that recomputes rows,
    unless iterations of one loop may do that (`again`)."""
    alone, result = set(border), list[Tiles]()
    for start in starts(extent, rows):
        last = result[-1] if result else None
        if last and start not in alone and last.start not in alone and (again or start == last.end):
            result[-1] = Tiles(last.start, rows, last.count + 1, last.end - start)
        else:
            result.append(Tiles(start, rows, 1))
    return result


def panels_of(extent: int, width: int = LANES) -> Cut:
    """Return panels of `width` columns, then the remainder, in vectors of the size of a tile's row."""
    return [(t, tuple(Piece(s, LANES, min(LANES, t.size - s)) for s in range(0, t.size, LANES)))
            for t in chunks(extent, width)]


def is_plain(pattern: Contraction, known: Expr) -> bool:
    """True if sums, which are values of `known`, are outputs in whole tiles."""
    nest, m = pattern.nest, pattern.m
    straight = m is not None and m not in nest.index.hidden and nest.index.coefficient(m) > 0
    return nest.value is known and straight and pattern.n.extent % LANES == 0


def unchanging(value: Expr, around: frozenset[Axis | None], known: Expr) -> Iterator[Expr]:
    """Yield the largest subexpressions of a value, under arithmetic, that do not vary along the axes `around`, given the value
    of `known`."""
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
    """Compute the values that are equal in all rows of a vector of outputs."""
    n = pattern.n
    v = Vectorizer(b, target, {**at, n: at[n] + piece.start}, n, piece.lanes, piece.active)
    for e in unchanging(pattern.nest.value, around, known):
        v.value(e)
    return v
