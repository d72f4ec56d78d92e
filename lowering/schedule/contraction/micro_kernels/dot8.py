"""The micro-kernel of products of bytes by pairs of rows and of columns (SMMLA of 64-bit Arm's I8MM): a vector of sums holds
those of two rows by two columns, and a vector of each operand holds eight elements of K for two rows or columns.

Rows are read in place or packed, as for `dot4`. Panels have eight contiguous elements of a column. Before the epilogue, which
takes vectors of columns of one row, the sums of each pair of rows are separated.
"""
from __future__ import annotations

from collections.abc import Sequence

from .....runtime.records import dataclass
from ....elements.affine import Affine
from ....loops.ir import Operand
from ....target.target import Target
from ...nest.loop_nest import At, number_of
from ...nest.reduction_loops import reduce_loops
from ...nest.tile_axis import Piece, balanced, chunks
from ...strategy import Constraints
from ...vectorize.epilogue import OutputBlock
from ..choice import MAX_PADDED_PLACES, ContractionChoice, places_with_conditions
from ..int8.byte_factors import Bytes, constant_bytes
from ..macro_kernel import Place
from ..micro_kernel import MicroKernel
from ..pattern import Contraction
from ..register_tile import Tile
from .dot4 import DOT8_GROUP as GROUP
from .dot4 import Dot4

LANES = 4
"""Number of sums in a vector: of two rows and two columns, or of a row and four columns."""
MIN_FILLED_TERMS = 0.7
"""Minimum fraction of K in K padded to whole steps; with less, `dot4` is used. Estimated: an instruction computes twice as many
products as that of `dot4`."""
TILES = (Tile(12, 1), Tile(8, 2), Tile(6, 3), Tile(4, 4))
"""Register tiles whose sums, with two steps of rows and one of columns, fit 32 registers."""
ROW_LOADS, VECTOR_LOADS, PANEL_INSTRUCTIONS = 1, 1, 8
"""Instructions of a step besides its products: for a row, half a load and half of the shuffle that joins two rows; for four
columns, a load of two registers; and instructions of a panel besides its steps. Counted."""
STEPS_OF_A_LOAD = 2
"""Number of steps whose row elements are loaded at once: those of a register."""
HALVES = tuple(range(2 * GROUP)), tuple(range(2 * GROUP, 4 * GROUP))
"""Lanes of the first two columns, and of the next two."""
LOWER, UPPER = (0, 1, 4, 5), (2, 3, 6, 7)
"""Lanes of the first and of the second row in two vectors of sums."""


# ---- choice ----------------------------------------------------------------------------------------------------------
def choose(pattern: Contraction, constraints: Constraints) -> ContractionChoice | None:
    """Return a choice for products of bytes by pairs of rows and of columns, or None."""
    if not factors_of(pattern, constraints.target) or places_with_conditions(pattern) > MAX_PADDED_PLACES:
        return None
    return ContractionChoice(tile_of(pattern), LANES, "dot8", "compiling", False)


def factors_of(pattern: Contraction, target: Target) -> Bytes | None:
    """Return the factors, if b is constant and has no zero point, and there are pairs of rows; else None."""
    filled = -(-pattern.depth // GROUP) * GROUP
    if not target.has_byte_pairs or pattern.rows < 2 or pattern.n.extent < LANES or pattern.depth < MIN_FILLED_TERMS * filled:
        return None
    return constant_bytes(pattern)


def tile_of(pattern: Contraction) -> Tile:
    """Return the register tile with the fewest instructions."""
    tiles = [Tile(min(tile.rows, pattern.rows), tile.vectors) for tile in TILES]
    return min(tiles, key=lambda tile: instructions(pattern, tile))


def instructions(pattern: Contraction, tile: Tile) -> float:
    """Return the approximate number of instructions of a matrix, without its epilogue."""
    steps, total = -(-pattern.depth // GROUP), 0.0
    for m in balanced(pattern.rows, tile.rows):
        for n in chunks(pattern.n.extent, tile.vectors * LANES):
            rows, vectors = m.size + m.size % 2, -(-n.size // LANES)
            step = rows * vectors + ROW_LOADS * rows + VECTOR_LOADS * vectors
            total += m.count * n.count * (steps * step + PANEL_INSTRUCTIONS)
    return total


# ---- a register tile -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Dot8Kernel(MicroKernel):
    """The micro-kernel of one register tile."""

    def tile(self, place: Place) -> None:
        block = OutputBlock(place.at, self.pattern.m, place.rows, self.pattern.n, place.vectors)
        pairs = [(r, min(r + 1, place.rows - 1)) for r in range(0, place.rows, 2)]
        inits = [self.initial(block, piece, half) for _ in pairs for piece in place.vectors for half in (0, 1)]

        def steps(at: At, sums: Sequence[Operand]) -> list[Operand]:
            return self.pair_products(place.moved(at), number_of(self.step.axes, at), sums, pairs)

        sums = reduce_loops(self.b, self.step.axes, (), place.at, inits, steps, unroll=STEPS_OF_A_LOAD, group=GROUP)
        self.finish(place, block, self.by_rows(sums, place.rows, len(place.vectors)))

    def initial(self, block: OutputBlock, piece: Piece, half: int) -> Operand:
        """Return the initial sums of two columns, in both rows."""
        four = self.step.initial(block.place(0, piece.start), 0, piece)
        return self.b.shuffle(four, four, (2 * half, 2 * half + 1) * 2)

    def pair_products(self, place: Place, k: Affine, sums: Sequence[Operand], pairs: Sequence[tuple[int, int]]
                      ) -> list[Operand]:
        """Write one step of K for all sums of the tile."""
        result = list(sums)
        loaded = self.step.panels.load(self.b, self.target, place, k)
        columns = [self.b.shuffle(four, four, half) for four in loaded for half in HALVES]
        for number, (first, second) in enumerate(pairs):
            rows = self.both(place.at, first, second)
            for c, column in enumerate(columns):
                i = number * len(columns) + c
                result[i] = self.b.op("dot8", result[i], rows, column, type=result[i].type)
        return result

    def both(self, at: At, first: int, second: int) -> Operand:
        """Return eight elements of one row, then of another."""
        assert isinstance(self.step, Dot4)
        k = self.step.axes[-1]
        steps = (at[k].terms[0][1] if at[k].terms else k.extent) // GROUP
        count = STEPS_OF_A_LOAD if steps % STEPS_OF_A_LOAD == 0 else 1
        which = at[k].const // GROUP % count
        loaded = []
        for row in (first, second):
            buffer, start = self.step.bytes_of(at, row)
            loaded.append(self.b.load(buffer, start - which * GROUP, count * GROUP))
        lanes = range(which * GROUP, (which + 1) * GROUP)
        return self.b.shuffle(loaded[0], loaded[1], (*lanes, *(lane + count * GROUP for lane in lanes)))

    def by_rows(self, sums: Sequence[Operand], rows: int, vectors: int) -> list[Operand]:
        """Return the sums as vectors of four columns of a row."""
        return [self.b.shuffle(sums[i], sums[i + 1], UPPER if r % 2 else LOWER)
                for r in range(rows) for v in range(vectors) for i in [2 * (r // 2 * vectors + v)]]
