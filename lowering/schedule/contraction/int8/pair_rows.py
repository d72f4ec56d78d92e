"""Pack A for products by pairs of 16 bits (`dual_multiply`): the rows of a tile in scratch, each byte less its zero point as 16
bits, in the order in which SXTB16 unpacks words. K lies flat; what padding leaves out is 0, and so is what fills K up.

Where K consists of runs of whole words, these are widened from where they lie. Else the bytes are copied first, so that they
are such a run (`pack_a`).
"""
from __future__ import annotations

from .....runtime.records import dataclass
from ....elements.affine import Affine
from ....elements.expression import Buffer, Load
from ....loops.builder import Builder
from ....loops.ir import Literal, Operand, Type
from ....target.target import Target
from ...nest.loop_nest import At, number_of
from ...nest.tile_axis import Tiles, chunks, over
from ..pack_a import RowPacking
from ..pack_b import divided
from ..pattern import Contraction
from .byte_factors import GROUP
from .word_panels import PAIRS

RUN = 16
"""Elements that an iteration of the loop over a run widens."""


class ByteCopies(RowPacking):
    """Rows as bytes, copied by words."""
    __slots__ = ()

    @property
    def lanes(self) -> int:
        return GROUP


class WidenedRows(RowPacking):
    """Rows whose runs are of whole words, widened as they are copied. Four elements of each row lie beside each other, so that
    a step of K reads all rows at one place."""
    __slots__ = ()

    @property
    def rows(self) -> int:
        return 2 * self.buffer.size // self.depth

    def copy(self, at: At, rows: range, length: int, inside: bool) -> None:
        """One run of each row."""
        k = number_of(self.pattern.reduce.axes, at)

        def some(row: Affine, start: Affine, count: int) -> None:
            for first in (start + i for i in range(0, count, GROUP)):
                x = self.x.index[0].substitute(self.pattern.row_at(at, row)) + first
                self.store(self.first + row, k + first, self.b.load(self.x.buffer, x, GROUP) if inside else None)

        over(self.b, [Tiles(rows.start, 1, len(rows))], lambda row, _: over(
            self.b, chunks(length, RUN), lambda start, t: some(row, start, t.size)))

    def store(self, row: Affine, k: Affine, four: Operand | None) -> None:
        """Four elements of a row, or zeros."""
        pairs = Literal(0, PAIRS) if four is None else widened(self.b, four, self.zero_point)
        self.b.store(self.buffer, self.place(row, k), pairs)

    def place(self, row: Affine, k: Affine) -> Affine:
        return divided(k * self.rows + row * GROUP, 2)


def widened(b: Builder, four: Operand, zero_point: int) -> Operand:
    return b.op("pairs", four, Literal(-zero_point, Type("int32")), type=PAIRS)


@dataclass(frozen=True, slots=True)
class PairRows:
    """Rows of `depth` elements each. `copies` are their bytes, where these have to be put together first."""
    b: Builder
    rows: WidenedRows
    copies: ByteCopies | None

    @staticmethod
    def of(b: Builder, pattern: Contraction, x: Load, zero_point: int, rows: int, depth: int, target: Target) -> PairRows:
        """With scratch for `rows` rows."""
        name = pattern.nest.name
        words = b.scratch(Buffer(f"{name}.pairs", "int32", (rows * depth // 2,), "scratch"))
        packed = WidenedRows(b, target, pattern, x, zero_point, words, depth, GROUP, False)
        last = pattern.reduce.axes[-1]
        if last.extent % GROUP == 0 and not any(w.index.coefficient(last) for w in pattern.reduce.where):
            return PairRows(b, packed, None)
        copied = b.scratch(Buffer(f"{name}.rows", x.dtype, (rows * depth,), "scratch"))
        return PairRows(b, packed, ByteCopies(b, target, pattern, x, zero_point, copied, depth, depth, False))

    def pack(self, at: At, rows: int) -> None:
        if self.copies is None:
            self.rows.pack(at, rows)
            return
        copies = self.copies
        copies.pack(at, rows)
        over(self.b, [Tiles(0, 1, rows)], lambda row, _: over(
            self.b, chunks(self.rows.depth, RUN), lambda start, t: self.widen(copies, row, start, t.size)))

    def widen(self, copies: ByteCopies, row: Affine, start: Affine, count: int) -> None:
        """Some elements of a row that lies flat."""
        for k in (start + i for i in range(0, count, GROUP)):
            self.rows.store(row, k, self.b.load(copies.buffer, row * copies.stride + k, GROUP))

    def load(self, k: Affine, row: int) -> Operand:
        """Four elements of a row."""
        return self.b.load(self.rows.buffer, self.rows.place(Affine.of(row), k), PAIRS.lanes)
