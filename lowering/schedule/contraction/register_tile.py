"""How many rows and vectors of a product of matrices are computed at a time, with all sums in registers."""
from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from ....runtime.records import dataclass
from ...elements.expression import is_float
from ...graph.types import ITEM_SIZES
from ...target.target import Target
from ..code_size_model import Code, cheapest
from ..nest.tile_axis import Tiles, balanced, chunks, repeating

FEW_ROWS = 8
"""Rows of a tile where they lie a multiple of 4096 bytes apart: more would not fit the ways of the first-level
cache."""
PRICES, BLOCK_PRICES = (0.05, 0.3), (0.1, 0.8)
"""Cycles that a row's element and a panel's vector cost beside others; and in products so large that nothing else counts."""
BYTES_PRICES = (0.25, 0.35)
"""The same in large products of bytes: many rows are many streams of few bytes each."""
MULTIPLIED_PRICES = (0.5, 0.15)
"""The same where products are slow: an element goes to all lanes by the unit that multiplies."""
SHAPE_PRICE = 0.02
"""How much faster the whole has to be for one more shape of tile."""
MULTIPLIED = {4: 1.5, 8: 2.0}
"""Cycles that x86 takes to multiply a vector of integers of so many bytes, which is several instructions, and to add it."""


@dataclass(frozen=True, slots=True)
class Tile:
    rows: int
    vectors: int


def of_sums(dtype: str, target: Target) -> Target:
    """The machine as sums of products of this type see it: none of integers waits for the one before."""
    if is_float(dtype) or target.architecture != "x86":
        return target
    return replace(target, fma_per_cycle=1 / MULTIPLIED.get(ITEM_SIZES[dtype], 1), fma_latency=1)


def steps(rows: int, vectors: int, target: Target) -> float:
    """Cycles of one step of K in a tile."""
    return max(rows * vectors / target.fma_per_cycle, (rows + vectors) / target.loads_per_cycle, target.fma_latency)


def panels(columns: int, lanes: int, tile: Tile) -> list[Tiles]:
    """How the columns are cut."""
    return chunks(columns, lanes * tile.vectors)


@functools.lru_cache(maxsize=1024)
def choose_tile(rows: int, columns: int, lanes: int, target: Target, few: bool, prices: tuple[float, float] = PRICES,
                code: Code | None = None, again: bool = False) -> Tile:
    """The tile with the fewest cycles for one step of K over the whole matrix. The prices of loads say that rows are in
    the first-level cache and panels in the second; a further shape of tile is code that must pay for itself, and so is, with
    `code`, a larger tile. Rows may be computed `again`, so that tiles are alike."""
    product = Product(rows, columns, lanes, target, prices)
    tiles = product.tiles(few)
    if code is None:
        return min(tiles, key=product.cycles)
    tiles += [Tile(n, t.vectors) for t in tiles for n in range(2, t.rows)]
    tried = [(t, heights) for t in tiles if t.rows > 1 or rows == 1 for heights in product.heights(t, again)]
    return cheapest(tried, lambda c: product.cycles(*c), lambda c: product.lines(*c, code), code.passes, code.share,
                    long=True)[0]


def ranked_tiles(rows: int, columns: int, lanes: int, target: Target, few: bool) -> list[Tile]:
    """Tiles by their cycles for one step of K over the whole matrix, the fewest first."""
    product = Product(rows, columns, lanes, target)
    return sorted(product.tiles(few), key=product.cycles)


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix of sums, `rows` by `columns`."""
    rows: int
    columns: int
    lanes: int
    target: Target
    prices: tuple[float, float] = PRICES

    def tiles(self, few: bool) -> list[Tile]:
        """Those whose sums and a panel's vectors fill the registers."""
        free = self.target.vector_registers - 1
        most = FEW_ROWS if few else free
        tiles = [Tile(max(1, min(self.rows, most, (free - v) // v)), v) for v in range(1, 7) if free > v]
        return [*tiles, Tile(1, min(8, free // 2))] if self.rows == 1 else tiles

    def heights(self, tile: Tile, again: bool) -> list[list[Tiles]]:
        """The ways to cut the rows."""
        found = balanced(self.rows, tile.rows)
        return [found, repeating(self.rows, tile.rows)] if again and len(found) > 1 else [found]

    def cycles(self, tile: Tile, heights: Sequence[Tiles] = ()) -> float:
        total = 0.0
        heights, widths = heights or balanced(self.rows, tile.rows), panels(self.columns, self.lanes, tile)
        for m in heights:
            for n in widths:
                vectors = -(-n.size // self.lanes)
                loads = self.prices[0] * m.size + self.prices[1] * vectors
                total += m.count * n.count * (steps(m.size, vectors, self.target) + loads)
        return total * (1 + SHAPE_PRICE * (len(heights) * len(widths) - 1))

    def lines(self, tile: Tile, heights: Sequence[Tiles], code: Code) -> int:
        """Of code, for all shapes of tile that there are."""
        return sum(code.lines(m.size, -(-n.size // self.lanes)) for m in heights
                   for n in panels(self.columns, self.lanes, tile))
