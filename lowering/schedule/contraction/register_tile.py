"""The register tile of a micro-kernel: the number of rows (MR) and vectors of columns (NR) of a matrix product (matmul, GEMM,
convolution) that are computed at a time, with all sums in registers. `choose` uses this module, and makes the other choices of
a contraction.
"""
from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from ....runtime.records import dataclass
from ...elements.expression import is_float
from ...graph.types import ITEM_SIZES
from ...loops.cost import tile_step_cycles
from ...target.costs import LoadPrices
from ...target.target import Target
from ..code_size_model import TileCode, cheapest
from ..nest.tile_axis import Tiles, balanced, chunks, repeating

MAX_TILE_VECTORS = 6
"""Maximum vectors of a register tile that are tried: with more, too few rows are left to share them."""
MAX_ROW_VECTORS = 8
"""Maximum vectors of a product of one row."""


@dataclass(frozen=True, slots=True)
class Tile:
    rows: int
    vectors: int


def of_sums(dtype: str, target: Target) -> Target:
    """Return the target as sums of products of this type see it: no integer addition waits for the one before."""
    if is_float(dtype) or not target.has_slow_integer_products:
        return target
    cycles = {4: target.costs.int32_product_cycles, 8: target.costs.int64_product_cycles}
    return replace(target, fma_per_cycle=1 / cycles.get(ITEM_SIZES[dtype], 1), fma_latency=1)


def panels(columns: int, lanes: int, tile: Tile) -> list[Tiles]:
    """Return the panels of the columns."""
    return chunks(columns, lanes * tile.vectors)


@functools.lru_cache(maxsize=1024)
def choose_tile(rows: int, columns: int, lanes: int, target: Target, few: bool, prices: LoadPrices | None = None,
                code: TileCode | None = None, again: bool = False, even: bool = False) -> Tile:
    """Return the tile with the fewest cycles for one step of K over the whole matrix. The prices of loads assume that rows are
    in the first-level cache and panels in the second. The code of another shape of tile must pay for itself, and so must, with
    `code`, that of a larger tile. Rows may be computed `again`, so that tiles are alike. An `even` tile has pairs of
    vectors."""
    product = OutputMatrix(rows, columns, lanes, target, prices or target.costs.tile_prices)
    tiles = [t for t in product.tiles(few) if t.vectors % 2 == 0 or not even]
    if code is None:
        return min(tiles, key=product.cycles)
    tiles += [Tile(n, t.vectors) for t in tiles for n in range(2, t.rows)]
    tried = [(t, heights) for t in tiles if t.rows > 1 or rows == 1 for heights in product.heights(t, again)]
    return cheapest(tried, lambda c: product.cycles(*c), lambda c: product.lines(*c, code), code.passes, code.share,
                    long=True, dear=target.costs.tile_line_fraction)[0]


def ranked_tiles(rows: int, columns: int, lanes: int, target: Target, few: bool) -> list[Tile]:
    """Return the tiles by their cycles for one step of K over the whole matrix, the fewest first."""
    product = OutputMatrix(rows, columns, lanes, target, target.costs.tile_prices)
    return sorted(product.tiles(few), key=product.cycles)


@dataclass(frozen=True, slots=True)
class OutputMatrix:
    """A matrix of sums, `rows` by `columns`."""
    rows: int
    columns: int
    lanes: int
    target: Target
    prices: LoadPrices

    def tiles(self, few: bool) -> list[Tile]:
        """Return the tiles whose sums and panel vectors fill the registers, with one register for the element of a row, or one
        for each row if products take lanes of vectors; some registers are left to LLVM."""
        held = int(self.target.has_lane_products)
        free = self.target.vector_registers - self.target.costs.spare_registers
        most = self.target.costs.crowded_tile_rows if few else free
        tiles = [Tile(max(1, min(self.rows, most, (free - v) // (v + held))), v)
                 for v in range(1, MAX_TILE_VECTORS + 1) if free > v]
        return [*tiles, Tile(1, min(MAX_ROW_VECTORS, free // 2))] if self.rows == 1 else tiles

    def heights(self, tile: Tile, again: bool) -> list[list[Tiles]]:
        """Return the possible cuts of the rows."""
        found = balanced(self.rows, tile.rows)
        return [found, repeating(self.rows, tile.rows)] if again and len(found) > 1 else [found]

    def cycles(self, tile: Tile, heights: Sequence[Tiles] = ()) -> float:
        total, target, prices = 0.0, self.target, self.prices
        heights, widths = heights or balanced(self.rows, tile.rows), panels(self.columns, self.lanes, tile)
        vectors_of = [(n.count, -(-n.size // self.lanes)) for n in widths]
        for m in heights:
            row = prices.row_element_cycles * m.size
            for count, vectors in vectors_of:
                loads = row + prices.panel_vector_cycles * vectors
                total += m.count * count * (tile_step_cycles(m.size, vectors, target) + loads)
        return total * (1 + self.target.costs.tile_shape_fraction * (len(heights) * len(widths) - 1))

    def lines(self, tile: Tile, heights: Sequence[Tiles], code: TileCode) -> int:
        """Return the lines of code for all shapes of tiles that occur."""
        return sum(code.lines(m.size, -(-n.size // self.lanes)) for m in heights
                   for n in panels(self.columns, self.lanes, tile))
