"""The macro-kernel of products of bytes on a matrix unit (AMX): a block of up to 32 rows by panels of 16 columns, 64 elements
of K at a step. `amx_choose` says when, and in which shapes; `amx_micro_kernel` writes what is done with one panel.

Rows of a are read where they lie, if K is one run of memory there, else they are packed; b is packed as for `vnni`. Panels are
taken as many at a time as stay in the second-level cache, and of a long K as much as stays in the first-level one: sums of
the chunks before wait in scratch. What is done with the sums of a panel, a loop over rows of vectors, is written between the
steps of the panel after it, so that both units work at the same time.
"""
from __future__ import annotations

import dataclasses
import math

from .....runtime.records import dataclass
from ....elements.affine import Affine, Axis, Wrapped
from ....elements.expression import Buffer
from ....loops.builder import Builder
from ....loops.ir import TILE_BYTES
from ....target.target import Target
from ...nest.constant_data import is_constant
from ...nest.loop_nest import At
from ...nest.row_range import RowRange, nested
from ...nest.tile_axis import Cut, Piece, Tiles, over
from ...vectorize.epilogue import EpilogueWriter
from ..layout import PanelLayout
from ..pack_a import RowPacking
from ..pattern import Contraction
from .amx_choose import LANES, ByteBlockShape, blocks_of, border_blocks, columns, groups, is_direct, is_plain
from .amx_micro_kernel import BytePanel, TilePanels
from .vnni import Bytes, bytes_of
from .vnni_pack_b import BytePanels, at_run_time, of_constants

START = Affine()
MIN_SHARED_BLOCKS = 8
"""Blocks of rows that threads can divide evenly; where there are fewer, threads divide the panels."""


def lower(b: Builder, pattern: Contraction, target: Target, rows: RowRange | None) -> None:
    found = bytes_of(pattern)
    assert found
    TileProduct.of(b, pattern, found, target, pattern.outer[1:] if rows else pattern.outer).lower(rows)


@dataclass(frozen=True, slots=True)
class TileProduct:
    """The product. `row_packing` is None where a is read as it lies; `line` is the axis around m of which blocks take in more
    than one place."""
    b: Builder
    pattern: Contraction
    shape: ByteBlockShape
    groups: list[tuple[Tiles, Cut]]
    packed: BytePanels
    row_packing: RowPacking | None
    line: Axis | None
    panels: TilePanels

    @staticmethod
    def of(b: Builder, pattern: Contraction, found: Bytes, target: Target, outer: tuple[Axis, ...]) -> TileProduct:
        shape, cut, direct = ByteBlockShape.of(pattern, found, target, outer), columns(pattern.n.extent), is_direct(pattern,
                                                                                                                    found)
        zero_points, panel_groups = (found.of_x, found.of_y), groups(pattern, shape, cut, target)
        if is_constant(found.y):
            packed = of_constants(b, pattern, found.y, zero_points, cut, shape.step, direct and pattern.depth > shape.step)
        else:
            largest = max((panels for _, panels in panel_groups), key=lambda cut: PanelLayout(cut, shape.depth).columns)
            packed = at_run_time(b, pattern, found.y, zero_points, largest, target, shape.step)
        row_packing = None
        if not direct:
            stride = shape.depth + (TILE_BYTES if shape.depth % 512 == 0 else 0)
            row_packing = RowPacking.of(b, pattern, found.x, zero_points, shape.rows, shape.depth, stride, False, target)
        line = outer[-1] if shape.lines > 1 else None
        plain, writer = is_plain(pattern, found, packed.known), EpilogueWriter(
            b, target, pattern.nest, pattern.reduce, LANES, known=packed.known)
        sums = sums_of(b, pattern, shape, panel_groups, plain)
        panels = TilePanels(b, pattern, found, target, shape, packed, row_packing, line, sums, plain, writer)
        return TileProduct(b, pattern, shape, panel_groups, packed, row_packing, line, panels)

    def lower(self, rows: RowRange | None) -> None:
        """All of it: for each batch of b, for as many panels at a time as stay in the second-level cache."""
        outer, fill = self.pattern.outer, self.packed.fill
        first: tuple[Axis, ...] = ()
        if fill:
            first = tuple(a for d, a in enumerate(outer) if a in self.pattern.batch or (rows and d == 0 and self.pattern.batch))
        rest = tuple(a for a in outer if a not in first and a is not self.line)
        self.b.shape_tiles(self.shape.tiles)
        nested(self.b, first, {}, lambda at: self.product(at, rest, None if first else rows), rows if first else None,
               self.pattern.nest.where)

    def product(self, at: At, axes: tuple[Axis, ...], rows: RowRange | None) -> None:
        for t, cut in self.groups:
            over(self.b, [t], lambda start, _: self.group(at, axes, rows, start, cut))

    def group(self, at: At, axes: tuple[Axis, ...], rows: RowRange | None, first: Affine, cut: Cut) -> None:
        """All rows, for the panels from column `first` on."""
        if self.packed.fill:
            self.packed.fill(at, first, cut)
        nested(self.b, axes, at, lambda at: self.blocks(at, first, cut), rows, self.pattern.nest.where)

    def blocks(self, at: At, first: Affine, cut: Cut) -> None:
        from ..choose import has_outer_iterations
        m, again = self.pattern.m, self.b.keeps == 0 or has_outer_iterations(self.pattern, LANES)
        assert m
        if self.line:
            line = self.line
            over(self.b, blocks_of(line.extent, self.shape.lines, again=again), lambda start, _: self.block(
                {**at, line: start, m: Affine()}, first, cut))
        else:
            tiles = blocks_of(self.pattern.rows, self.shape.rows, border_blocks(self.pattern), again)
            over(self.b, tiles, lambda start, _: self.block(
                {**at, m: start}, first, cut))

    @property
    def blocks_around(self) -> int:
        """How many blocks of rows there are."""
        places = math.prod(a.extent for a in self.pattern.outer)
        return places // self.shape.lines if self.line else places * -(-self.pattern.rows // self.shape.rows)

    def block(self, at: At, first: Affine, cut: Cut) -> None:
        """A block of rows: all of its chunks of K but the last, then that, which makes outputs of the sums."""
        if self.row_packing:
            self.pack(self.row_packing, at)
        before, size = self.shape.chunks - 1, self.shape.chunk
        if before:
            self.chunk(at, first, cut, Affine(), True)
        if before > 1:
            number = Axis("chunk", before - 1)
            self.b.loop(number, lambda: self.chunk(at, first, cut, Affine.of(number) * size + size, False))
        for t, (piece,) in cut:
            self.last(at, first, t, piece)

    def pack(self, row_packing: RowPacking, at: At) -> None:
        """Copy the rows of a block."""
        line, width = self.line, self.shape.width
        if line is None:
            row_packing.pack(at, width)
            return
        number = Axis("line", self.shape.lines)
        place = {**at, line: at[line] + number}
        self.b.loop(number, lambda: dataclasses.replace(row_packing, first=Affine.of(number) * width).pack(place, width))

    def panel(self, at: At, first: Affine, start: Affine, piece: Piece, number: Affine = START) -> BytePanel:
        """The panel of columns from first + start on; `number` counts those that are finished one after the other."""
        if self.shape.chunks > 1:
            slot = start * self.shape.rows
        else:
            slot = Affine.of(Wrapped(number, self.shape.slots)).substitute({}) * (self.shape.rows * LANES)
        return BytePanel({**at, self.pattern.n: first + start}, start if self.packed.fill else first + start, slot, piece)

    def chunk(self, at: At, first: Affine, cut: Cut, number: Affine, begins: bool) -> None:
        """Steps from `number` on, for all panels."""
        for t, (piece,) in cut:
            over(self.b, [t], lambda start, _: self.panels.add(self.panel(at, first, start, piece), number, begins))

    def last(self, at: At, first: Affine, t: Tiles, piece: Piece) -> None:
        """The last chunk of neighbouring panels: each finishes the one before."""
        if self.panels.plain or (self.b.depth < self.b.keeps and self.blocks_around < MIN_SHARED_BLOCKS):
            def alone(start: Affine, _: Tiles) -> None:
                panel = self.panel(at, first, start, piece)
                self.panels.end(panel, None)
                self.panels.finish(panel)
            over(self.b, [t], alone)
            return

        once = tuple(Axis("once", 1) for _ in range(self.b.depth, self.b.keeps))  # threads cannot share what comes inside
        nested(self.b, once, {}, lambda _: self.one_by_one(at, first, t, piece))

    def one_by_one(self, at: At, first: Affine, t: Tiles, piece: Piece) -> None:
        def panel(number: Affine) -> BytePanel:
            return self.panel(at, first, number * t.size + t.start, piece, number)

        self.panels.end(panel(Affine()), None)
        number = Axis("panel", t.count - 1)
        if t.count > 1:
            self.b.loop(number, lambda: self.panels.end(panel(Affine.of(number) + 1), panel(Affine.of(number))))
        self.panels.finish(panel(Affine.of(t.count - 1)))


def sums_of(b: Builder, pattern: Contraction, shape: ByteBlockShape, panel_groups: list[tuple[Tiles, Cut]],
            plain: bool) -> Buffer | None:
    """Scratch for the sums of a panel, or of as many as there are in a group, where K is done in chunks."""
    if plain and shape.chunks == 1:
        return None
    panels = max(sum(t.count for t, _ in cut) for _, cut in panel_groups) if shape.chunks > 1 else shape.slots
    return b.scratch(Buffer(f"{pattern.nest.name}.tiles", "int32", (panels * shape.rows * LANES,), "scratch"))
