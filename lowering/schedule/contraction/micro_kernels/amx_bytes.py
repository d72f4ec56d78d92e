"""The micro-kernel of products of bytes on a matrix unit (AMX): a block of up to 32 rows by panels of 16 columns, 64 elements
of K at a step. `int8.amx_choose` makes the choice, with the shapes.

Rows of a are read in place if K is one run of memory there, else they are packed; b is packed as for VNNI. As many panels at a
time are processed as stay in the second-level cache, and as much of a long K as stays in the first-level cache: the sums of
earlier chunks are spilled to scratch. The epilogue of a panel, a loop over rows of vectors, is interleaved with the steps of
the next panel, so that both units work at the same time.
"""
from __future__ import annotations

import math
from dataclasses import replace

from .....runtime.records import dataclass
from ....elements.affine import Affine, Axis, Wrapped
from ....elements.expression import Buffer, Load
from ....loops.builder import Builder
from ....loops.ir import TILE_BYTES, Operand
from ....target.target import Target
from ...nest.constant_data import is_constant
from ...nest.loop_nest import At
from ...nest.row_range import RowRange, nested
from ...nest.tile_axis import Cut, Piece, Tiles, over
from ...vectorize.epilogue import EpilogueWriter, OutputBlock
from ...vectorize.vectorize import Vectorizer
from ..choice import ContractionChoice, has_outer_iterations
from ..int8.amx_choose import ByteBlockShape, groups, is_direct
from ..int8.byte_factors import GROUP, bytes_of
from ..int8.pack_b import BytePanels, at_run_time, of_constants
from ..layout import PanelLayout
from ..macro_kernel import START, MacroKernel, Place, Run, packing, run
from ..matrix_tiles import LANES, blocks_of, border_blocks, is_plain, outside_rows, panels_of
from ..pack_a import RowPacking
from ..pattern import Contraction

TOTALS, ROWS, COLUMNS, OTHER_ROWS = (0, 1), 2, 3, 4
"""Tile registers of sums, of a and of b; one more of a, if its second tile has another shape."""
MIN_SHARED_BLOCKS = 8
"""Minimum number of blocks of rows that threads can divide evenly; with fewer, threads divide the panels."""


def lower(b: Builder, pattern: Contraction, _: ContractionChoice, target: Target, rows: RowRange | None) -> None:
    """Write the loops: see `macro_kernel`."""
    tiles = ByteTiles.of(b, pattern, target, pattern.outer[1:] if rows else pattern.outer)
    macro, line, fill = tiles.macro, tiles.line, tiles.packed.fill
    batches, places = macro.outer(fill is not None, rows, line)
    loops = [batches, macro.columns(tiles.groups)]
    if fill:
        loops.append(packing(lambda place: fill(place.at, place.first, place.cut or [])))
    b.shape_tiles(tiles.shape.tiles)
    start = Place({pattern.m: START} if line and pattern.m else {})
    run([*loops, places, tiles.blocks, packing(tiles.pack)], tiles.block, start)


@dataclass(frozen=True, slots=True)
class ByteTiles:
    """The lowering of the product. `groups` are the groups of columns, with their panels. `rows` packs the rows of a block, if
    they are not read in place. `line` is the axis around m of which a block has more than one position, if any. `plain` sums
    are outputs themselves. `sums` is None if the sums need no scratch."""
    b: Builder
    target: Target
    pattern: Contraction
    x: Load
    shape: ByteBlockShape
    groups: list[tuple[Tiles, Cut]]
    packed: BytePanels
    rows: RowPacking | None
    line: Axis | None
    sums: Buffer | None
    plain: bool
    writer: EpilogueWriter

    @staticmethod
    def of(b: Builder, pattern: Contraction, target: Target, outer: tuple[Axis, ...]) -> ByteTiles:
        found = bytes_of(pattern)
        assert found
        shape, cut = ByteBlockShape.of(pattern, found, target, outer), panels_of(pattern.n.extent)
        direct, zero_points = is_direct(pattern, found), (found.of_x, found.of_y)
        panel_groups = groups(pattern, shape, cut, target)
        if is_constant(found.y):
            packed = of_constants(b, pattern, found.y, zero_points, cut, shape.step, direct and pattern.depth > shape.step)
        else:
            largest = max((panels for _, panels in panel_groups), key=lambda cut: PanelLayout(cut, shape.depth).columns)
            packed = at_run_time(b, pattern, found.y, zero_points, largest, target, shape.step)
        stride = shape.depth + (TILE_BYTES if shape.depth % 512 == 0 else 0)
        rows = None if direct else RowPacking.of(
            b, pattern, found.x, zero_points, shape.rows, shape.depth, stride, target)
        plain = is_plain(pattern, packed.known) and not found.of_y
        writer = EpilogueWriter(b, target, pattern.nest, pattern.reduce, LANES, known=packed.known)
        return ByteTiles(b, target, pattern, found.x, shape, panel_groups, packed, rows, outer[-1] if shape.lines > 1 else None,
                         sums_of(b, pattern, shape, panel_groups, plain), plain, writer)

    @property
    def macro(self) -> MacroKernel:
        return MacroKernel(self.b, self.pattern)

    @property
    def is_packed(self) -> bool:
        """True if the panels of a group are packed at run time."""
        return self.packed.fill is not None

    # ---- blocks of rows ----------------------------------------------------------------------------------------------
    def blocks(self, place: Place, body: Run) -> None:
        """Write a loop over blocks of rows, or over blocks of positions of the axis around m."""
        again, line, m = self.b.keeps == 0 or has_outer_iterations(self.pattern, LANES), self.line, self.pattern.m
        tiles = blocks_of(line.extent, self.shape.lines, again=again) if line else blocks_of(
            self.pattern.rows, self.shape.rows, border_blocks(self.pattern), again)
        axis = line or m
        assert axis
        self.macro.along(axis, tiles)(place, body)

    @property
    def blocks_around(self) -> int:
        """Total number of blocks of rows."""
        places = math.prod(a.extent for a in self.pattern.outer)
        return places // self.shape.lines if self.line else places * -(-self.pattern.rows // self.shape.rows)

    def pack(self, place: Place) -> None:
        """Copy the rows of a block, if they are not read in place."""
        rows, line, width = self.rows, self.line, self.shape.width
        if rows is None:
            return
        if line is None:
            rows.pack(place.at, width)
            return
        number = Axis("line", self.shape.lines)
        at = {**place.at, line: place.at[line] + number}
        self.b.loop(number, lambda: replace(rows, first=Affine.of(number) * width).pack(at, width))

    def block(self, place: Place) -> None:
        """Write a block of rows: all chunks of K but the last, then the last chunk, which turns sums into outputs."""
        before, size = self.shape.chunks - 1, self.shape.chunk
        if before:
            self.chunk(place, START, True)
        if before > 1:
            number = Axis("chunk", before - 1)
            self.b.loop(number, lambda: self.chunk(place, Affine.of(number) * size + size, False))
        for t, vectors in place.cut or []:
            self.last(replace(place, cut=[(t, vectors)]), t, vectors)

    def chunk(self, place: Place, number: Affine, begins: bool) -> None:
        """Write the chunk of steps from `number` on, for all panels."""
        run([self.macro.panels(is_packed=self.is_packed)], lambda panel: self.add(panel, number, begins), place)

    def last(self, place: Place, t: Tiles, vectors: tuple[Piece, ...]) -> None:
        """Write the last chunk of neighbouring panels, each of which finishes the panel before it."""
        if self.plain or (self.b.depth < self.b.keeps and self.blocks_around < MIN_SHARED_BLOCKS):
            def alone(panel: Place) -> None:
                self.end(panel, None)
                self.finish(panel)
            run([self.macro.panels(is_packed=self.is_packed)], alone, place)
            return

        once = tuple(Axis("once", 1) for _ in range(self.b.depth, self.b.keeps))  # threads cannot divide the loops inside
        nested(self.b, once, {}, lambda _: self.one_by_one(place, t, vectors))

    def one_by_one(self, place: Place, t: Tiles, vectors: tuple[Piece, ...]) -> None:
        def panel(number: Affine) -> Place:
            found = self.macro.panel(place, number * t.size + t.start, t.size, vectors, self.is_packed)
            return replace(found, number=number)

        self.end(panel(START), None)
        number = Axis("panel", t.count - 1)
        if t.count > 1:
            self.b.loop(number, lambda: self.end(panel(Affine.of(number) + 1), panel(Affine.of(number))))
        self.finish(panel(Affine.of(t.count - 1)))

    # ---- sums --------------------------------------------------------------------------------------------------------
    def slot(self, panel: Place) -> Affine:
        """Return the offset of a panel's sums in scratch. With K in chunks, all panels of a group have a slot; else the panels
        that are finished one after the other take turns."""
        if self.shape.chunks > 1:
            return (panel.at[self.pattern.n] - panel.first) * self.shape.rows
        return Affine.of(Wrapped(panel.number, self.shape.slots)).substitute({}) * (self.shape.rows * LANES)

    def add(self, panel: Place, first: Affine, begins: bool) -> None:
        """Write a chunk of steps from `first` on, other than the last chunk."""
        self.begin(panel, begins)
        self.steps(panel, first, self.shape.chunk)
        self.keep(panel)

    def end(self, panel: Place, before: Place | None) -> None:
        """Write the last chunk of steps, and the outputs of the panel `before`."""
        first = (self.shape.chunks - 1) * self.shape.chunk
        short = self.pattern.depth % self.shape.step if self.rows is None else 0
        self.begin(panel, first == 0)
        count = self.shape.count - first - bool(short)
        pace = self.shape.pace(count) if before and self.shape.slots == 1 else None
        if before and pace:
            self.steps_and_outputs(panel, first, count, before, pace)
        else:
            if before and self.shape.slots == 1:
                self.finish(before)
            self.steps(panel, Affine.of(first), count)
        if short:  # the last step begins earlier, and b has zeros for repeated elements
            self.step(panel, Affine.of(self.shape.count - 1), Affine.of(self.pattern.depth - self.shape.step))
        self.store_sums(panel)
        if before and self.shape.slots > 1:
            self.finish(before)

    def store_sums(self, panel: Place) -> None:
        """Store the sums to the outputs, or keep them in scratch."""
        if not self.plain:
            self.keep(panel)
            return
        assert self.pattern.m
        stride = self.pattern.nest.index.coefficient(self.pattern.m)
        self.store(self.pattern.nest.out, self.pattern.nest.index.substitute(panel.at), stride)

    @property
    def halves(self) -> list[tuple[int, int]]:
        """First row and number of each tile of rows."""
        first, second = self.shape.heights
        return [(0, 0), (first, 1)] if second else [(0, 0)]

    def begin(self, panel: Place, begins: bool) -> None:
        """Load the kept sums, or the initial sums of the columns."""
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
        """Write one step: 64 elements of K from k on, or all of K."""
        panels = self.packed.panels
        assert panels.buffer
        place = panels.place(panel.at, panel.column, number * self.shape.step, LANES)
        self.b.load_tile(COLUMNS, panels.buffer, place, LANES * GROUP)
        for first, i in self.halves:
            tile = OTHER_ROWS if len(self.shape.tiles) > OTHER_ROWS and i else ROWS
            self.load_rows(panel.at, tile, first, k)
            self.b.multiply_tiles(TOTALS[i], tile, COLUMNS, self.x.dtype == "int8")

    def load_rows(self, at: At, tile: int, first: int, k: Affine) -> None:
        """Load a tile of rows, from the block's row `first` on."""
        if self.rows:
            stride = self.rows.stride
            self.b.load_tile(tile, self.rows.buffer, k + first * stride, stride)
            return
        x, m, start = self.x, self.pattern.m, {a: Affine() for a in self.pattern.reduce.axes}
        assert m
        place = x.index[0].substitute({**self.pattern.row_at(at, first), **start})
        self.b.load_tile(tile, x.buffer, place + k, x.index[0].coefficient(m))

    # ---- outputs -----------------------------------------------------------------------------------------------------
    def steps_and_outputs(self, panel: Place, first: int, count: int, before: Place, pace: int) -> None:
        """Write steps, with `pace` rows of outputs in each of the first steps."""
        outer, iterations = self.known(before), self.shape.width // pace
        line, iteration = Axis("line", self.shape.lines), Axis("step", iterations)

        def both() -> None:
            number = Affine.of(line) * iterations + iteration + first
            self.step(panel, number, number * self.shape.step)
            over(self.b, [Tiles(0, 1, pace)], lambda row, _: self.row(
                before, Affine.of(line), Affine.of(iteration) * pace + row, outer))

        self.b.loop(line, lambda: self.b.loop(iteration, both))
        done = self.shape.lines * iterations
        self.steps(panel, Affine.of(first + done), count - done)

    def finish(self, panel: Place) -> None:
        """Write the outputs of a panel, if its sums are not the outputs."""
        if not self.plain:
            outer, line = self.known(panel), Axis("line", self.shape.lines)
            self.b.loop(line, lambda: over(self.b, [Tiles(0, 1, self.shape.width)], lambda row, _: self.row(
                panel, Affine.of(line), row, outer)))

    def known(self, panel: Place) -> Vectorizer:
        """Compute the values that are equal in all rows."""
        around = frozenset({self.pattern.m, self.line} if self.line else {self.pattern.m})
        return outside_rows(self.b, self.target, self.pattern, panel.at, panel.vectors[0], around, self.packed.known)

    def row(self, panel: Place, line: Affine, row: Affine, outer: Vectorizer) -> None:
        """Write the outputs of one row of the block."""
        assert self.sums and self.pattern.m
        at = {**panel.at, self.pattern.m: panel.at[self.pattern.m] + row}
        if self.line:
            at[self.line] = panel.at[self.line] + line
        number = line * self.shape.width + row
        value: Operand = self.b.load(self.sums, self.slot(panel) + number * LANES, LANES)
        if self.rows and self.rows.terms:
            value = self.b.op("add", value, self.b.splat(self.b.load(self.rows.terms, number), LANES))
        self.writer.write(OutputBlock(at, self.pattern.m, 1, self.pattern.n, panel.vectors), [value], outer)


def sums_of(b: Builder, pattern: Contraction, shape: ByteBlockShape, panel_groups: list[tuple[Tiles, Cut]],
            plain: bool) -> Buffer | None:
    """Return scratch for the sums of the panels in progress, or of all panels of a group if K is cut into chunks, or None."""
    if plain and shape.chunks == 1:
        return None
    panels = max(sum(t.count for t, _ in cut) for _, cut in panel_groups) if shape.chunks > 1 else shape.slots
    return b.scratch(Buffer(f"{pattern.nest.name}.tiles", "int32", (panels * shape.rows * LANES,), "scratch"))
