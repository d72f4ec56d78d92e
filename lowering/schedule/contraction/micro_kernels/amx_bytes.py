"""The micro-kernel of products of bytes on a matrix unit (AMX), one panel of `amx_macro_loops`: the steps of its sums, and
their epilogue, vector by vector, between the steps of the panel after it.
"""
from __future__ import annotations

from .....runtime.records import dataclass
from ....elements.affine import Affine, Axis, Wrapped
from ....elements.expression import Buffer
from ....loops.builder import Builder
from ....loops.ir import Operand
from ....target.target import Target
from ...nest.loop_nest import At
from ...nest.tile_axis import Tiles, over
from ...vectorize.epilogue import EpilogueWriter, OutputBlock
from ...vectorize.vectorize import Vectorizer
from ..int8.amx_choose import ByteBlockShape
from ..int8.byte_factors import GROUP, Bytes
from ..int8.pack_b import BytePanels
from ..macro_kernel import Place
from ..matrix_tiles import LANES, unchanging
from ..pack_a import RowPacking
from ..pattern import Contraction

TOTALS, ROWS, COLUMNS, OTHER_ROWS = (0, 1), 2, 3, 4
"""Tiles of sums, of a and of b; one more of a, if its second tile has another shape."""


@dataclass(frozen=True, slots=True)
class TilePanels:
    """`plain` sums are outputs as they are. `sums` are none where these need no scratch."""
    b: Builder
    pattern: Contraction
    found: Bytes
    target: Target
    shape: ByteBlockShape
    packed: BytePanels
    row_packing: RowPacking | None
    line: Axis | None
    sums: Buffer | None
    plain: bool
    writer: EpilogueWriter

    # ---- sums --------------------------------------------------------------------------------------------------------
    def slot(self, panel: Place) -> Affine:
        """Where the sums of a panel are kept: of all panels of a group where K is done in chunks, else of those of which one is
        finished after the other."""
        if self.shape.chunks > 1:
            return (panel.at[self.pattern.n] - panel.first) * self.shape.rows
        return Affine.of(Wrapped(panel.number, self.shape.slots)).substitute({}) * (self.shape.rows * LANES)

    def add(self, panel: Place, first: Affine, begins: bool) -> None:
        """A chunk of steps from `first` on, one that is not the last."""
        self.begin(panel, begins)
        self.steps(panel, first, self.shape.chunk)
        self.keep(panel)

    def end(self, panel: Place, before: Place | None) -> None:
        """The last chunk of steps, and the outputs of the panel `before`."""
        first = (self.shape.chunks - 1) * self.shape.chunk
        short = self.pattern.depth % self.shape.step if self.row_packing is None else 0
        self.begin(panel, first == 0)
        count = self.shape.count - first - bool(short)
        pace = self.shape.pace(count) if before and self.shape.slots == 1 else None
        if before and pace:
            self.steps_and_outputs(panel, first, count, before, pace)
        else:
            if before and self.shape.slots == 1:
                self.finish(before)
            self.steps(panel, Affine.of(first), count)
        if short:  # the last step begins earlier, and b has zeros for what comes again
            self.step(panel, Affine.of(self.shape.count - 1), Affine.of(self.pattern.depth - self.shape.step))
        self.store_sums(panel)
        if before and self.shape.slots > 1:
            self.finish(before)

    def store_sums(self, panel: Place) -> None:
        """They are outputs, or are kept."""
        if not self.plain:
            self.keep(panel)
            return
        assert self.pattern.m
        stride = self.pattern.nest.index.coefficient(self.pattern.m)
        self.store(self.pattern.nest.out, self.pattern.nest.index.substitute(panel.at), stride)

    @property
    def halves(self) -> list[tuple[int, int]]:
        """The first row and the number of each tile of rows."""
        first, second = self.shape.heights
        return [(0, 0), (first, 1)] if second else [(0, 0)]

    def begin(self, panel: Place, begins: bool) -> None:
        """Sums are what was kept, or what those of a column start from."""
        for first, i in self.halves:
            if not begins:
                assert self.sums
                self.b.load_tile(TOTALS[i], self.sums, self.slot(panel) + first * LANES, LANES)
            elif self.packed.is_zero:
                self.b.zero_tile(TOTALS[i])
            else:
                self.b.load_tile(TOTALS[i], self.packed.initial, self.packed.start(panel.at, panel.column), 0)

    def keep(self, panel: Place) -> None:
        assert self.sums
        self.store(self.sums, self.slot(panel), LANES)

    def store(self, buffer: Buffer, place: Affine, stride: int) -> None:
        for first, i in self.halves:
            self.b.store_tile(TOTALS[i], buffer, place + first * stride, stride)

    def steps(self, panel: Place, first: Affine, count: int) -> None:
        if count:
            loop = Axis("step", count)
            self.b.loop(loop, lambda: self.step(panel, first + loop, (first + loop) * self.shape.step))

    def step(self, panel: Place, number: Affine, k: Affine) -> None:
        """64 elements of K, from k on, or all of it."""
        panels = self.packed.panels
        assert panels.buffer
        place = panels.place(panel.at, panel.column, number * self.shape.step, LANES)
        self.b.load_tile(COLUMNS, panels.buffer, place, LANES * GROUP)
        for first, i in self.halves:
            rows = OTHER_ROWS if len(self.shape.tiles) > OTHER_ROWS and i else ROWS
            self.load_rows(panel.at, rows, first, k)
            self.b.multiply_tiles(TOTALS[i], rows, COLUMNS, self.found.x.dtype == "int8")

    def load_rows(self, at: At, tile: int, first: int, k: Affine) -> None:
        """A tile of rows, from the block's row `first` on."""
        if self.row_packing:
            stride = self.row_packing.stride
            self.b.load_tile(tile, self.row_packing.buffer, k + first * stride, stride)
            return
        x, m, start = self.found.x, self.pattern.m, {a: Affine() for a in self.pattern.reduce.axes}
        assert m
        place = x.index[0].substitute({**at, **start, m: at[m] + first})
        self.b.load_tile(tile, x.buffer, place + k, x.index[0].coefficient(m))

    # ---- outputs -----------------------------------------------------------------------------------------------------
    def steps_and_outputs(self, panel: Place, first: int, count: int, before: Place, pace: int) -> None:
        """Steps, and in each of the first ones `pace` rows of outputs."""
        outer, iterations = self.known(before), self.shape.width // pace
        line, iteration = Axis("line", self.shape.lines), Axis("turn", iterations)

        def both() -> None:
            number = Affine.of(line) * iterations + iteration + first
            self.step(panel, number, number * self.shape.step)
            over(self.b, [Tiles(0, 1, pace)], lambda row, _: self.row(
                before, Affine.of(line), Affine.of(iteration) * pace + row, outer))

        self.b.loop(line, lambda: self.b.loop(iteration, both))
        done = self.shape.lines * iterations
        self.steps(panel, Affine.of(first + done), count - done)

    def finish(self, panel: Place) -> None:
        """The outputs of a panel, if they are not what its sums are."""
        if not self.plain:
            outer, line = self.known(panel), Axis("line", self.shape.lines)
            self.b.loop(line, lambda: over(self.b, [Tiles(0, 1, self.shape.width)], lambda row, _: self.row(
                panel, Affine.of(line), row, outer)))

    def known(self, panel: Place) -> Vectorizer:
        """What is the same in all rows."""
        v = Vectorizer(self.b, self.target, panel.at, self.pattern.n, LANES, panel.vectors[0].active)
        around = frozenset({self.pattern.m, self.line} if self.line else {self.pattern.m})
        for e in unchanging(self.pattern.nest.value, around, self.packed.known):
            v.value(e)
        return v

    def row(self, panel: Place, line: Affine, row: Affine, outer: Vectorizer) -> None:
        """The outputs of one row of the block."""
        assert self.sums and self.pattern.m
        at = {**panel.at, self.pattern.m: panel.at[self.pattern.m] + row}
        if self.line:
            at[self.line] = panel.at[self.line] + line
        number = line * self.shape.width + row
        value: Operand = self.b.load(self.sums, self.slot(panel) + number * LANES, LANES)
        if self.row_packing and self.row_packing.terms:
            value = self.b.op("add", value, self.b.splat(self.b.load(self.row_packing.terms, number), LANES))
        self.writer.write(OutputBlock(at, self.pattern.m, 1, self.pattern.n, panel.vectors), [value], outer)
