"""The macro-kernel of products of bytes on a matrix unit (AMX): a block of up to 32 rows by panels of 16 columns, 64 elements
of K at a step. `amx_choose` says when, and in which shapes; `micro_kernels.amx_bytes` writes what is done with one panel.

Rows of a are read where they lie, if K is one run of memory there, else they are packed; b is packed as for VNNI. Panels are
taken as many at a time as stay in the second-level cache, and of a long K as much as stays in the first-level one: sums of
the chunks before wait in scratch. What is done with the sums of a panel, a loop over rows of vectors, is written between the
steps of the panel after it, so that both units work at the same time.
"""
from __future__ import annotations

import math
from dataclasses import replace

from .....runtime.records import dataclass
from ....elements.affine import Affine, Axis
from ....elements.expression import Buffer
from ....loops.builder import Builder
from ....loops.ir import TILE_BYTES
from ....target.target import Target
from ...nest.constant_data import is_constant
from ...nest.row_range import RowRange, nested
from ...nest.tile_axis import Cut, Piece, Tiles
from ...vectorize.epilogue import EpilogueWriter
from ..choice import has_outer_iterations
from ..layout import PanelLayout
from ..macro_kernel import START, MacroKernel, Place, Run, packing, run
from ..matrix_tiles import LANES, blocks_of, border_blocks, is_plain, panels_of
from ..micro_kernels.amx_bytes import TilePanels
from ..pack_a import RowPacking
from ..pattern import Contraction
from .amx_choose import ByteBlockShape, groups, is_direct
from .byte_factors import Bytes, bytes_of
from .pack_b import at_run_time, of_constants

MIN_SHARED_BLOCKS = 8
"""Blocks of rows that threads can divide evenly; where there are fewer, threads divide the panels."""


def lower(b: Builder, pattern: Contraction, target: Target, rows: RowRange | None) -> None:
    """The loops: see `macro_kernel`."""
    found = bytes_of(pattern)
    assert found
    product = TileProduct.of(b, pattern, found, target, pattern.outer[1:] if rows else pattern.outer)
    macro, line, fill = MacroKernel(b, pattern), product.panels.line, product.panels.packed.fill
    batches, places = macro.outer(fill is not None, rows, line)
    loops = [batches, macro.columns(product.groups)]
    if fill:
        loops.append(packing(lambda place: fill(place.at, place.first, place.cut or [])))
    b.shape_tiles(product.shape.tiles)
    start = Place({pattern.m: START} if line and pattern.m else {})
    run([*loops, places, product.blocks, packing(product.pack)], product.block, start)


@dataclass(frozen=True, slots=True)
class TileProduct:
    """The product: groups of columns, and what is done with their panels."""
    b: Builder
    pattern: Contraction
    shape: ByteBlockShape
    groups: list[tuple[Tiles, Cut]]
    panels: TilePanels

    @staticmethod
    def of(b: Builder, pattern: Contraction, found: Bytes, target: Target, outer: tuple[Axis, ...]) -> TileProduct:
        shape, cut, direct = ByteBlockShape.of(pattern, found, target, outer), panels_of(pattern.n.extent), is_direct(pattern,
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
        plain = is_plain(pattern, packed.known) and not found.of_y
        writer = EpilogueWriter(b, target, pattern.nest, pattern.reduce, LANES, known=packed.known)
        sums = sums_of(b, pattern, shape, panel_groups, plain)
        panels = TilePanels(b, pattern, found, target, shape, packed, row_packing, line, sums, plain, writer)
        return TileProduct(b, pattern, shape, panel_groups, panels)

    @property
    def macro(self) -> MacroKernel:
        return MacroKernel(self.b, self.pattern)

    @property
    def is_packed(self) -> bool:
        """Whether the panels of a group are packed while running."""
        return self.panels.packed.fill is not None

    def blocks(self, place: Place, body: Run) -> None:
        """Blocks of rows, or of places of the axis around."""
        again, line, m = self.b.keeps == 0 or has_outer_iterations(self.pattern, LANES), self.panels.line, self.pattern.m
        tiles = blocks_of(line.extent, self.shape.lines, again=again) if line else blocks_of(
            self.pattern.rows, self.shape.rows, border_blocks(self.pattern), again)
        axis = line or m
        assert axis
        self.macro.along(axis, tiles)(place, body)

    @property
    def blocks_around(self) -> int:
        """How many blocks of rows there are."""
        places = math.prod(a.extent for a in self.pattern.outer)
        return places // self.shape.lines if self.panels.line else places * -(-self.pattern.rows // self.shape.rows)

    def pack(self, place: Place) -> None:
        """Copy the rows of a block, if they are not read as they lie."""
        row_packing, line, width = self.panels.row_packing, self.panels.line, self.shape.width
        if row_packing is None:
            return
        if line is None:
            row_packing.pack(place.at, width)
            return
        number = Axis("line", self.shape.lines)
        at = {**place.at, line: place.at[line] + number}
        self.b.loop(number, lambda: replace(row_packing, first=Affine.of(number) * width).pack(at, width))

    def block(self, place: Place) -> None:
        """A block of rows: all of its chunks of K but the last, then that, which makes outputs of the sums."""
        before, size = self.shape.chunks - 1, self.shape.chunk
        if before:
            self.chunk(place, START, True)
        if before > 1:
            number = Axis("chunk", before - 1)
            self.b.loop(number, lambda: self.chunk(place, Affine.of(number) * size + size, False))
        for t, vectors in place.cut or []:
            self.last(replace(place, cut=[(t, vectors)]), t, vectors)

    def chunk(self, place: Place, number: Affine, begins: bool) -> None:
        """Steps from `number` on, for all panels."""
        run([self.macro.panels(is_packed=self.is_packed)], lambda panel: self.panels.add(panel, number, begins), place)

    def last(self, place: Place, t: Tiles, vectors: tuple[Piece, ...]) -> None:
        """The last chunk of neighbouring panels: each finishes the one before."""
        if self.panels.plain or (self.b.depth < self.b.keeps and self.blocks_around < MIN_SHARED_BLOCKS):
            def alone(panel: Place) -> None:
                self.panels.end(panel, None)
                self.panels.finish(panel)
            run([self.macro.panels(is_packed=self.is_packed)], alone, place)
            return

        once = tuple(Axis("once", 1) for _ in range(self.b.depth, self.b.keeps))  # threads cannot share what comes inside
        nested(self.b, once, {}, lambda _: self.one_by_one(place, t, vectors))

    def one_by_one(self, place: Place, t: Tiles, vectors: tuple[Piece, ...]) -> None:
        def panel(number: Affine) -> Place:
            found = self.macro.panel(place, number * t.size + t.start, t.size, vectors, self.is_packed)
            return replace(found, number=number)

        self.panels.end(panel(START), None)
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
