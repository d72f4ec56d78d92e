"""How the rows of a contraction are cut into tiles where its window leaves the input at the border.

Either the tiles at the border have their windows taken apart, which is much code; or the rows at the border are computed one
by one, where loops' bounds say what of the window is inside. For these, several panels are taken together, because one
row of few vectors waits for its own sums.
"""
from __future__ import annotations

from collections.abc import Sequence

from ..native.target import Target
from .panels import Cut
from .register_tile import Tile, steps
from .tiles import Piece, Tiles, balanced, peel

ONE_BY_ONE, FEW_CYCLES = 1.2, 4000
"""How much longer, in relation or in cycles, all may take for the smaller code."""
MOST_VECTORS = 8
"""Vectors of a single row: as many as make two sums start each cycle, with some to spare."""


def heights(extent: int, inside: tuple[int, int], tile: Tile, single: bool, cut: Cut, passes: int, target: Target,
            tested: bool = False) -> list[Tiles]:
    """The tiles of `extent` rows, of which those `inside` meet no condition. With `single` the border goes by single
    rows in any case; `cut` is how these cut the columns, `passes` how often all is done. With `tested` some rows at the border
    are none, so that they are tested one by one."""
    low, high = inside
    if tested:
        if low == high:
            return [Tiles(0, 1, extent)]
        middle = [Tiles(low + t.start, t.size, t.count) for t in balanced(high - low, tile.rows)]
        return [t for t in (Tiles(0, 1, low), *middle, Tiles(high, 1, extent - high)) if t.count]
    whole = peel(balanced(extent, tile.rows), low, high, single)
    if low == high or high - low == extent:
        return whole
    middle = [Tiles(low + t.start, t.size, t.count) for t in balanced(high - low, tile.rows)]
    apart = [t for t in (Tiles(0, 1, low), *middle, Tiles(high, 1, extent - high)) if t.count]
    fewest, cycles = (sum(lasting(t, tile, cut, target) for t in tiles) for tiles in (whole, apart))
    return apart if cycles <= ONE_BY_ONE * fewest or (cycles - fewest) * passes <= FEW_CYCLES else whole


def lasting(rows: Tiles, tile: Tile, cut: Cut, target: Target) -> float:
    """Cycles of one step of K for some rows and all columns."""
    if rows.size == 1:
        return rows.count * sum(t.count * steps(1, len(vectors), target) for t, vectors in cut)
    vectors = sum(t.count * len(pieces) for t, pieces in cut)
    return rows.count * -(-vectors // tile.vectors) * steps(rows.size, min(tile.vectors, vectors), target)


def together(cut: Cut) -> Cut:
    """The columns of single rows: several panels at a time."""
    return [grouped(t, vectors) for t, vectors in cut]


def grouped(t: Tiles, vectors: Sequence[Piece]) -> tuple[Tiles, tuple[Piece, ...]]:
    count = max(n for n in range(1, t.count + 1) if t.count % n == 0 and (n == 1 or n * len(vectors) <= MOST_VECTORS))
    return Tiles(t.start, t.size * count, t.count // count), tuple(
        Piece(number * t.size + p.start, p.lanes, p.active) for number in range(count) for p in vectors)
