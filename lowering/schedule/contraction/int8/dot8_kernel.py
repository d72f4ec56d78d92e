"""The micro-kernel of products of bytes by pairs of rows and of columns (SMMLA): a vector of sums has those of two rows and two
columns, and a vector of each operand has eight elements of K of two of them.

Rows come as for `vnni`: as they lie, or packed. Panels have eight elements of a column together. Before the epilogue, which
takes rows of columns, the sums of two rows change places.
"""
from __future__ import annotations

from collections.abc import Sequence

from .....runtime.records import dataclass
from ....elements.affine import Affine
from ....loops.ir import Operand
from ...nest.loop_nest import At
from ...nest.reduction_loops import reduce_loops
from ...nest.tile_axis import Piece
from ...vectorize.epilogue import OutputBlock
from ..macro_kernel import Place
from ..micro_kernel import MicroKernel
from .dot8_tiles import GROUP
from .vnni import Dot4

STEPS_OF_A_LOAD = 2
"""Steps whose elements of a row are loaded at once: those of a register."""
HALVES = tuple(range(2 * GROUP)), tuple(range(2 * GROUP, 4 * GROUP))
"""Two columns, and two more."""
LOWER, UPPER = (0, 1, 4, 5), (2, 3, 6, 7)
"""The first and the second row of two vectors of sums."""


@dataclass(frozen=True, slots=True)
class Dot8Kernel(MicroKernel):
    """The body of one register tile."""

    def tile(self, place: Place) -> None:
        block = OutputBlock(place.at, self.pattern.m, place.rows, self.pattern.n, place.vectors)
        pairs = [(r, min(r + 1, place.rows - 1)) for r in range(0, place.rows, 2)]
        inits = [self.initial(block, piece, half) for _ in pairs for piece in place.vectors for half in (0, 1)]

        def steps(at: At, sums: Sequence[Operand]) -> list[Operand]:
            return self.pair_products(place.moved(at), self.flat(at, 0), sums, pairs)

        sums = reduce_loops(self.b, self.step.axes, (), place.at, inits, steps, unroll=STEPS_OF_A_LOAD, group=GROUP)
        self.finish(place, block, self.by_rows(sums, place.rows, len(place.vectors)))

    def initial(self, block: OutputBlock, piece: Piece, half: int) -> Operand:
        """What the sums of two columns start from, in both rows."""
        four = self.step.initial(block.place(0, piece.start), 0, piece)
        return self.b.shuffle(four, four, (2 * half, 2 * half + 1) * 2)

    def pair_products(self, place: Place, k: Affine, sums: Sequence[Operand], pairs: Sequence[tuple[int, int]]
                      ) -> list[Operand]:
        """One step of K for all sums of the tile."""
        result = list(sums)
        loaded = self.panels.load(self.b, self.target, place, k)
        columns = [self.b.shuffle(four, four, half) for four in loaded for half in HALVES]
        for number, (first, second) in enumerate(pairs):
            rows = self.both(place.at, first, second)
            for c, column in enumerate(columns):
                i = number * len(columns) + c
                result[i] = self.b.op("dot8", result[i], rows, column, type=result[i].type)
        return result

    def both(self, at: At, first: int, second: int) -> Operand:
        """Eight elements of one row, then of another."""
        assert isinstance(self.step, Dot4)
        (k,) = self.step.axes
        steps = (at[k].terms[0][1] if at[k].terms else k.extent) // GROUP
        count = STEPS_OF_A_LOAD if steps % STEPS_OF_A_LOAD == 0 else 1
        which = at[k].const // GROUP % count
        loaded = []
        for row in (first, second):
            buffer, start = self.step.place_of(at, row)
            loaded.append(self.b.load(buffer, start - which * GROUP, count * GROUP))
        lanes = range(which * GROUP, (which + 1) * GROUP)
        return self.b.shuffle(loaded[0], loaded[1], (*lanes, *(lane + count * GROUP for lane in lanes)))

    def by_rows(self, sums: Sequence[Operand], rows: int, vectors: int) -> list[Operand]:
        """The sums as vectors of four columns of a row."""
        return [self.b.shuffle(sums[i], sums[i + 1], UPPER if r % 2 else LOWER)
                for r in range(rows) for v in range(vectors) for i in [2 * (r // 2 * vectors + v)]]
