"""Pack A for products by pairs of 16 bits (`dual_multiply`): the rows of a tile in scratch, each byte less its zero point as 16
bits, in the order in which SXTB16 unpacks words. K is flat; elements that padding leaves out are 0, and so is the padding of K.

If K consists of runs of whole words, these are widened in place. Else the bytes are first copied to such a run (`pack_a`).
"""
from __future__ import annotations

from .....runtime.records import dataclass
from ....elements.affine import Affine
from ....elements.expression import Buffer, Load
from ....loops.builder import Builder
from ....loops.ir import Literal, Operand, Type
from ....target.target import Target
from ...nest.loop_nest import At
from ...nest.tile_axis import Tiles, chunks, over
from ..pack_a import RowPacking
from ..pack_b import divided
from ..pattern import Contraction
from .byte_factors import GROUP, has_words
from .word_panels import PAIRS

RUN = 16
"""Number of elements that an iteration of the loop over a run widens."""


@dataclass(frozen=True, slots=True)
class WidenedRows(RowPacking):
    """The packing of rows in whole words, widened as they are copied, from `copies` of their bytes if these are not contiguous.
    Groups of four elements of all rows are adjacent, so that a step of K reads all rows at one offset."""
    copies: RowPacking | None = None

    @staticmethod
    def in_pairs(b: Builder, pattern: Contraction, x: Load, zero_point: int, rows: int, depth: int, target: Target
                 ) -> WidenedRows:
        """Return the packing with scratch for `rows` rows of `depth` elements."""
        words = b.scratch(Buffer(f"{pattern.nest.name}.pairs", "int32", (rows * depth // 2,), "scratch"))
        copies = None if has_words(pattern) else RowPacking.of(b, pattern, x, (zero_point, 0), rows, depth, depth, target)
        return WidenedRows(b, target, pattern, x, zero_point, words, depth, GROUP, x.dtype, copies=copies)

    def pack(self, at: At, rows: int) -> None:
        if copies := self.copies:
            copies.pack(at, rows)
            over(self.b, [Tiles(0, 1, rows)], lambda row, _: self.run(row * copies.stride, row, Affine(), self.depth))
        else:
            RowPacking.pack(self, at, rows)

    def run(self, source: Affine | int, row: Affine, k: Affine, length: int) -> None:
        """Store elements of a row, less their zero point, or zeros if `source` is a constant."""
        def some(start: Affine, t: Tiles) -> None:
            for at in (start + i for i in range(0, t.size, GROUP)):
                pairs: Operand = Literal(0, PAIRS)
                if not isinstance(source, int):
                    four = self.b.load((self.copies or self.x).buffer, source + at, GROUP)
                    pairs = self.b.op("pairs", four, Literal(-self.zero_point, Type("int32")), type=PAIRS)
                self.b.store(self.buffer, self.place(row, k + at), pairs)

        over(self.b, chunks(length, RUN), some)

    def place(self, row: Affine, k: Affine) -> Affine:
        rows = 2 * self.buffer.size // self.depth
        return divided(k * rows + row * GROUP, 2)

    def load(self, k: Affine, row: int) -> Operand:
        """Load four elements of a row."""
        return self.b.load(self.buffer, self.place(Affine.of(row), k), PAIRS.lanes)
