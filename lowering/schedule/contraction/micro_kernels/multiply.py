"""The micro-kernel of fused multiply-adds, and of integer multiplies and adds: one element of K at a step, with the element of
a row of a broadcast to a vector of columns.
"""
from __future__ import annotations

from collections.abc import Callable

from .....runtime.records import dataclass
from ....elements.affine import Axis
from ....elements.expression import Expr, Load, is_float
from ....elements.traverse import computed
from ....loops.builder import Builder
from ....loops.ir import Literal, Operand, Type
from ....target.target import Target
from ...nest.loop_nest import At
from ...nest.padding_conditions import PaddingConditions
from ...nest.tile_axis import Cut, Piece
from ...vectorize.vectorize import Vectorizer
from ..choice import ContractionChoice
from ..macro_kernel import Place
from ..pack_b import Panels, packed, unpacked
from ..pack_blocks import PackedRows
from ..pack_panels import pack_at_run_time
from ..pattern import Contraction
from ..row_lanes import ROW_STEPS, in_all_lanes, lanes_of_row, steps_of_run


@dataclass(frozen=True, slots=True)
class Multiply:
    """One step of one element of K: total + a * b. Rows that are not packed are read, or computed, in place."""
    b: Builder
    target: Target
    pattern: Contraction
    conditions: PaddingConditions
    panels: Panels
    fills: Callable[[At], None] | None = None
    """Function that packs panels for the batch at a point, if they are packed at run time."""
    rows: PackedRows | None = None
    group: int = 1
    packs_rows: bool = False
    test_cycles: float | None = None

    @staticmethod
    def of(b: Builder, pattern: Contraction, choice: ContractionChoice, target: Target, cut: Cut,
           _: Axis | None = None) -> Multiply:
        fills = None
        match choice.packing:
            case "compiling":
                panels = packed(b, pattern, cut, target)
            case "running":
                panels, fills = pack_at_run_time(b, pattern, cut, target)
            case _:
                panels = unpacked(pattern)
        return Multiply(b, target, pattern, PaddingConditions.of(pattern.reduce, pattern.m, pattern.n), panels, fills)

    @property
    def known(self) -> Expr:
        return self.pattern.reduce

    def pack(self, place: Place) -> None:
        """Do nothing: rows are packed block by block, if at all."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self.pattern.reduce.axes

    def initial(self, at: At, row: int, piece: Piece) -> Operand:
        return Literal(0, Type(self.pattern.reduce.dtype, piece.lanes))

    @property
    def unroll(self) -> int:
        """Number of steps whose row elements are loaded at once; for a short run, all its steps."""
        if not self.run:
            return 1
        extent = self.axes[-1].extent
        return ROW_STEPS if extent % ROW_STEPS == 0 else steps_of_run(extent)

    @property
    def run(self) -> Load | None:
        """Load of a row, if rows are contiguous floats along K, of which none is left out; else None."""
        last, a = self.axes[-1], self.pattern.a
        if not self.target.has_lane_products or not isinstance(a, Load) or a.dtype != "float32" or computed(a.index):
            return None
        beside = any(w.index.coefficient(last) or last in w.index.hidden for w in self.pattern.reduce.where)
        return None if beside or a.index[0].coefficient(last) != 1 or last in a.index[0].hidden else a

    def row(self, place: Place, row: int) -> Callable[[int], Operand]:
        at = self.pattern.row_at(place.at, row)
        if found := self.lanes_of(place, row, at):
            return lambda lanes: in_all_lanes(self.b, *found, lanes)
        value = self.rows.load(place, row) if self.rows else Vectorizer(self.b, self.target, at).value(self.pattern.a)
        return lambda lanes: self.b.splat(value, lanes)

    def lanes_of(self, place: Place, row: int, at: At) -> tuple[Operand, int] | None:
        """Return the vector that contains the element of a row, and its lane, if products take lanes of a vector; else None."""
        if self.rows:
            return self.rows.lanes_of(place, row) if self.target.has_lane_products else None
        if (x := self.run) is None:
            return None
        last = self.axes[-1]
        return lanes_of_row(self.b, x.buffer, x.index[0].substitute(at), at[last], last.extent, 1)

    def accumulate(self, total: Operand, row: Operand, column: Operand) -> Operand:
        if is_float(total.type.dtype):
            return self.b.op("fma", row, column, total)
        return self.b.op("add", total, self.b.op("mul", row, column))
