"""The micro-kernel of a contraction, the sum over K of a[m, k] * b[n, k] for one register tile (MR rows, NR columns): its sums
stay in registers while a loop runs over K; b comes from packed panels, and one element of a is broadcast to a whole vector.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Range
from ...elements.expression import Load, is_float
from ...elements.traverse import computed
from ...loops.builder import Builder
from ...loops.ir import Literal, Operand, Type
from ...target.target import Target
from ..nest.loop_nest import At
from ..nest.padding_conditions import PaddingConditions
from ..nest.reduction_loops import alike, reduce_loops, unsettled
from ..nest.tile_axis import Cut, Piece, Tiles, pieces
from ..vectorize.epilogue import EpilogueWriter, OutputBlock
from ..vectorize.vectorize import Vectorizer
from .border_tiles import sums_beside
from .choose import ContractionChoice
from .pack_b import Panels
from .pattern import Contraction
from .prefetch import Prefetching
from .register_tile import panels
from .row_lanes import ROW_STEPS, in_all_lanes, lanes_of_row

MIN_SUMS_OF_ONE_STEP = 6
"""With at least this number of sums one step of K hides the cost of its loop; unrolling more would only be more code."""


class Step(Protocol):
    """How one step of K is done. `axes` and `conditions` are K and its conditions as the step sees them; `group` is
    how many elements of K it takes."""
    @property
    def axes(self) -> tuple[Axis, ...]: ...

    @property
    def conditions(self) -> PaddingConditions: ...

    @property
    def group(self) -> int: ...

    @property
    def packs_rows(self) -> bool:
        """Whether rows are prepared."""

    @property
    def unroll(self) -> int:
        """Steps whose factors of a row are loaded at once."""

    def pack(self, at: At, rows: int) -> None:
        """Prepare a tile of rows."""

    def initial(self, at: At, row: int, piece: Piece) -> Operand:
        """What the sums of a vector, in a row of the tile, start from."""

    def row(self, at: At, row: int) -> Callable[[int], Operand]:
        """The element of a (or a group of them), broadcast to a number of lanes."""

    def accumulate(self, total: Operand, row: Operand, column: Operand) -> Operand: ...


@dataclass(frozen=True, slots=True)
class Multiply:
    """One element at a time: total + a * b."""
    b: Builder
    target: Target
    pattern: Contraction
    conditions: PaddingConditions
    group: int = 1
    packs_rows: bool = False

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self.pattern.reduce.axes

    def pack(self, at: At, rows: int) -> None:
        pass

    def initial(self, at: At, row: int, piece: Piece) -> Operand:
        return Literal(0, Type(self.pattern.reduce.dtype, piece.lanes))

    @property
    def unroll(self) -> int:
        return ROW_STEPS if self.run else 1

    @property
    def run(self) -> Load | None:
        """What rows are read from, if they are floats whose neighbours are elements of K, of which none is left out."""
        last, a = self.pattern.reduce.axes[-1], self.pattern.a
        if not self.target.has_lane_products or not isinstance(a, Load) or a.dtype != "float32" or computed(a.index):
            return None
        beside = any(w.index.coefficient(last) or last in w.index.hidden for w in self.pattern.reduce.where)
        return None if beside or a.index[0].coefficient(last) != 1 or last in a.index[0].hidden else a

    def row(self, at: At, row: int) -> Callable[[int], Operand]:
        place = at if self.pattern.m is None else {**at, self.pattern.m: at[self.pattern.m] + row}
        last = self.pattern.reduce.axes[-1]
        if (x := self.run) and (found := lanes_of_row(
                self.b, x.buffer, x.index[0].substitute(place), at[last], last.extent, 1)):
            return lambda lanes: in_all_lanes(self.b, *found, lanes)
        value = Vectorizer(self.b, self.target, place).value(self.pattern.a)
        return lambda lanes: self.b.splat(value, lanes)

    def accumulate(self, total: Operand, row: Operand, column: Operand) -> Operand:
        if is_float(total.type.dtype):
            return self.b.op("fma", row, column, total)
        return self.b.op("add", total, self.b.op("mul", row, column))


def columns(pattern: Contraction, choice: ContractionChoice, target: Target) -> Cut:
    least = min(4, choice.lanes) if choice.step == "dot4" else 1
    return [(t, pieces(t.size, choice.lanes, target.has_masked, least))
            for t in panels(pattern.n.extent, choice.lanes, choice.tile)]


@dataclass(frozen=True, slots=True)
class MicroKernel:
    """The body: the loops over K, and what is done with the sums of one tile."""
    b: Builder
    pattern: Contraction
    step: Step
    panels: Panels
    target: Target
    writer: EpilogueWriter
    prefetching: Prefetching

    def tile(self, at: At, line: Tiles, vectors: tuple[Piece, ...], panel: int) -> None:
        """One tile of rows, for vectors of panels that are `panel` columns each."""
        block = OutputBlock(at, self.pattern.m, line.size, self.pattern.n, vectors)
        conditions = self.step.conditions
        places = [block.place(row, 0) for row in range(line.size)]
        failing = unsettled(conditions.rows, (places[0], places[-1]))
        single = line.size == 1  # then the loops' bounds hold them
        bounds = (*conditions.bounds, *failing) if single else conditions.bounds
        unrolled = alike(conditions.tapped, failing, places) if failing and not single else {}
        inits = [self.step.initial(block.place(row, piece.start), row, piece) for row, piece in block.vectors]
        many = len(inits) >= MIN_SUMS_OF_ONE_STEP
        last, group = self.step.axes[-1], self.step.group
        whole = single and not any(w.index.coefficient(last) for w in bounds)
        beside = sums_beside(len(inits), last.extent // group, self.most_beside(vectors)) if whole else 1
        tested, n = () if single else failing, len(inits)

        def products(at: At, acc: Sequence[Operand]) -> list[Operand]:
            """A step for each of the sums that run beside each other."""
            return [total for i in range(beside) for total in self.products(
                {**at, last: at[last] + i * group}, acc[i * n:(i + 1) * n], tested, line.size, vectors, panel)]

        zeros = [Literal(0, x.type) for x in inits] * (beside - 1)
        sums = reduce_loops(
            self.b, self.step.axes, bounds, at, [*inits, *zeros], products, unrolled, max(1 if many else 2, self.step.unroll),
            group * beside)
        self.writer.write(block, [self.added(sums[i::n]) for i in range(n)])

    def most_beside(self, vectors: tuple[Piece, ...]) -> int:
        """How many times the sums of a row fit the registers, beside a vector of b."""
        each = sum(max(1, piece.lanes // self.target.lanes(4)) for piece in vectors)
        return max(1, (self.target.vector_registers - 1) // each)

    def added(self, sums: Sequence[Operand]) -> Operand:
        """The sum of some."""
        total = sums[0]
        for x in sums[1:]:
            total = self.b.op("add", total, x)
        return total

    def products(self, at: At, sums: Sequence[Operand], failing: Sequence[Range], rows: int, vectors: tuple[Piece, ...],
                 panel: int) -> list[Operand]:
        """One step of K for all sums of the tile."""
        result, k = list(sums), Affine()
        for axis in self.step.axes:
            k = k * axis.extent + at[axis]
        columns = self.panels.load(self.b, self.target, at, vectors, panel, k)
        self.prefetching.panel(at, k, rows, vectors)
        self.prefetching.epilogue(at, k, rows, vectors)
        for r in range(rows):
            if failing and self.pattern.m:
                place = {**at, self.pattern.m: at[self.pattern.m] + r}
                if any(w.substitute(place).known is False for w in failing):
                    continue
            row = self.step.row(at, r)
            for v, piece in enumerate(vectors):
                position = r * len(vectors) + v
                result[position] = self.step.accumulate(result[position], row(piece.lanes), columns[v])
        return result
