"""How many rows and vectors of a product of matrices are computed at a time, with all sums in registers."""
from __future__ import annotations

import functools
from dataclasses import dataclass

from ..native.target import Target
from .tiles import Tiles, balanced, chunks

FEW_ROWS = 8
"""Rows of a tile where they lie a multiple of 4096 bytes apart: more would not fit the ways of the first-level
cache."""
PRICES, BLOCK_PRICES = (0.05, 0.3), (0.1, 0.8)
"""Cycles that a row's element and a panel's vector cost beside others; and in products so large that nothing else counts."""
SHAPE_PRICE = 0.02
"""How much faster the whole has to be for one more shape of tile."""


@dataclass(frozen=True, slots=True)
class Tile:
    rows: int
    vectors: int


def steps(rows: int, vectors: int, target: Target) -> float:
    """Cycles of one step of K in a tile."""
    return max(rows * vectors / target.fma_per_cycle, (rows + vectors) / target.loads_per_cycle, target.fma_latency)


def panels(columns: int, lanes: int, tile: Tile) -> list[Tiles]:
    """How the columns are cut."""
    return chunks(columns, lanes * tile.vectors)


@functools.lru_cache(maxsize=1024)
def choose_tile(rows: int, columns: int, lanes: int, target: Target, few: bool, prices: tuple[float, float] = PRICES
                ) -> Tile:
    """The tile with the fewest cycles for one step of K over the whole matrix."""
    return ranked_tiles(rows, columns, lanes, target, few, prices)[0]


def ranked_tiles(rows: int, columns: int, lanes: int, target: Target, few: bool, prices: tuple[float, float] = PRICES
                 ) -> list[Tile]:
    """Tiles by their cycles for one step of K over the whole matrix, the fewest first. The prices of loads say that rows are in
    the first-level cache and panels in the second; a further shape of tile is code that must pay for itself."""
    def cycles(tile: Tile) -> float:
        total = 0.0
        heights, widths = balanced(rows, tile.rows), panels(columns, lanes, tile)
        for m in heights:
            for n in widths:
                vectors = -(-n.size // lanes)
                total += m.count * n.count * (steps(m.size, vectors, target) + prices[0] * m.size + prices[1] * vectors)
        return total * (1 + SHAPE_PRICE * (len(heights) * len(widths) - 1))

    free = target.vector_registers - 1
    most = FEW_ROWS if few else free
    tiles = [Tile(max(1, min(rows, most, (free - v) // v)), v) for v in range(1, 7) if free > v]
    if rows == 1:
        tiles.append(Tile(1, min(8, free // 2)))
    return sorted(tiles, key=cycles)
