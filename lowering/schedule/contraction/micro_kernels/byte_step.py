"""The common part of the steps of products of bytes: b is packed together with initial sums, and the bytes of a row are packed,
or read in place."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .....runtime.records import dataclass
from ....elements.affine import Affine, Axis
from ....elements.expression import Buffer, Expr, Load
from ....loops.builder import Builder
from ....loops.ir import Literal, Operand, Type
from ....target.target import Target
from ...nest.loop_nest import At
from ...nest.padding_conditions import PaddingConditions
from ...nest.tile_axis import Piece
from ..int8.pack_b import BytePanels
from ..macro_kernel import Place
from ..pack_a import RowPacking
from ..pack_b import Panels
from ..pattern import Contraction

NO_CONDITIONS = PaddingConditions((), (), (), frozenset())
"""Conditions of rows in which nothing is left out, or which are packed."""


@dataclass(frozen=True, slots=True)
class ByteStep:
    """A step of K over bytes: `packed` is b, `x` is the load of a row, `rows` packs the rows, if they are packed."""
    b: Builder
    target: Target
    pattern: Contraction
    x: Load
    packed: BytePanels
    rows: RowPacking | None = None
    conditions: PaddingConditions = NO_CONDITIONS
    group: int = 1
    unroll: int = 1
    packs_many_rows: bool = False
    """True if all rows, or those of a group, are packed one after the other; False if the rows of a tile are packed."""
    groups: Axis | None = None

    @property
    def panels(self) -> Panels:
        return self.packed.panels

    @property
    def known(self) -> Expr:
        return self.packed.known

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Axes of K: one flat axis, padding included, or those of lines."""
        return self.pattern.reduce.axes if self.reads_lines else self.panels.axes

    @property
    def reads_lines(self) -> bool:
        """True if bytes are read from line buffers."""
        return self.rows is None and self.pattern.lines is not None

    @property
    def packs_rows(self) -> bool:
        return self.rows is not None

    @property
    def test_cycles(self) -> float | None:
        return self.rows.test_cycles if self.rows else None

    @property
    def fills(self) -> Callable[[At], None] | None:
        """Function that packs b for the batch at a point, or None if b is constant."""
        fill, cut = self.packed.fill, self.panels.layout.cut
        return None if fill is None else lambda at: fill(at, Affine(), cut)

    def pack(self, place: Place) -> None:
        if self.rows:
            replace(self.rows, first=self.packed_row(place.at, 0)).pack(place.at, place.rows)

    def initial(self, at: At, row: int, piece: Piece) -> Operand:
        if self.packed.is_zero:
            return Literal(0, Type("int32", piece.lanes))
        return self.b.load(self.packed.initial, self.packed.start(at, at[self.pattern.n]), piece.lanes)

    def bytes_of(self, at: At, row: int) -> tuple[Buffer, Affine]:
        """Return the buffer and offset of the bytes of a row of the tile for a step."""
        if self.reads_lines:
            return self.x.buffer, self.x.index[0].substitute(self.pattern.row_at(at, row))
        (k,) = self.axes
        if self.rows:
            return self.rows.buffer, at[k] + self.packed_row(at, row) * self.rows.stride
        here = {**self.pattern.row_at(at, row), **{a: Affine() for a in self.pattern.reduce.axes}}
        return self.x.buffer, self.x.index[0].substitute(here) + at[k]

    def packed_row(self, at: At, row: int) -> Affine:
        """Return the number of a row of the tile among the packed rows."""
        number = self.pattern.number_of_row(at) if self.packs_many_rows else Affine()
        if self.groups:
            number -= Affine.of(self.groups) * (self.pattern.rows // self.groups.extent)
        return number + row
