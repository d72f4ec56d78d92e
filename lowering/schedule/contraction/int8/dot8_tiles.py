"""When products of bytes are done by pairs of rows and of columns (SMMLA of 64-bit Arm's I8MM: two rows by two columns, eight
elements of K), and with which register tile; `dot8_kernel` writes the loops.
"""
from __future__ import annotations

from ....target.target import Target
from ...nest.constant_data import is_constant
from ...nest.tile_axis import balanced, chunks
from ..pattern import Contraction
from ..register_tile import Tile
from .vnni import Bytes, bytes_of

GROUP = 8
"""Elements of K at a step."""
LANES = 4
"""Sums of a vector: of two rows and two columns, or of a row and four columns."""
MIN_FILLED_TERMS = 0.7
"""Less of K than this part, the rest being what fills it up to whole steps, is done by fours. Estimated: an instruction makes
twice as many products as the one by fours."""
TILES = (Tile(12, 1), Tile(8, 2), Tile(6, 3), Tile(4, 4))
"""Those whose sums, and two steps of rows and one of columns, fit 32 registers."""
ROW_LOADS, VECTOR_LOADS, PANEL_INSTRUCTIONS = 1, 1, 8
"""Instructions of a step beside its products: for a row, half a load and half of what puts two together; for four columns, a
load of two registers; and those of a panel beside its steps. Counted."""


def factors_of(pattern: Contraction, target: Target) -> Bytes | None:
    """The factors, if b is constant and has no zero point, and there are pairs of rows."""
    if not target.has_byte_pairs or pattern.reduce.dtype != "int32" or pattern.inside or pattern.rows < 2:
        return None
    filled = -(-pattern.depth // GROUP) * GROUP
    if pattern.depth < MIN_FILLED_TERMS * filled or pattern.n.extent < LANES:
        return None
    found = bytes_of(pattern)
    return found if found and not found.of_y and is_constant(found.y) else None


def tile_of(pattern: Contraction) -> Tile:
    """The register tile with the fewest instructions."""
    tiles = [Tile(min(tile.rows, pattern.rows), tile.vectors) for tile in TILES]
    return min(tiles, key=lambda tile: instructions(pattern, tile))


def instructions(pattern: Contraction, tile: Tile) -> float:
    """About how many a matrix takes, without its epilogue."""
    steps, total = -(-pattern.depth // GROUP), 0.0
    for m in balanced(pattern.rows, tile.rows):
        for n in chunks(pattern.n.extent, tile.vectors * LANES):
            rows, vectors = m.size + m.size % 2, -(-n.size // LANES)
            step = rows * vectors + ROW_LOADS * rows + VECTOR_LOADS * vectors
            total += m.count * n.count * (steps * step + PANEL_INSTRUCTIONS)
    return total
