"""Matrix products in cache blocks (`cache_blocking`): for each block of columns and each block of K, pack the panels that are
not constant; then compute the sums of each panel, tile by tile of rows, packed if the choice says so. Between blocks of K the
sums are spilled to scratch, in the order of their use; each sum adds its terms in the same order as without blocks.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...elements.expression import Buffer
from ...elements.traverse import loads
from ...loops.builder import Builder
from ...loops.ir import Literal, Operand, Type
from ...target.target import Target
from ..nest.axis_blocks import Terms
from ..nest.padding_conditions import PaddingConditions
from ..nest.row_range import RowRange
from ..nest.tile_axis import Cut, Piece, Tiles, balanced
from ..vectorize.epilogue import EpilogueWriter, OutputBlock
from .cache_blocking import CacheBlocks
from .choice import ContractionChoice
from .layout import PanelLayout, width_of
from .macro_kernel import START, MacroKernel, Place, Run, packing, run
from .micro_kernel import MicroKernel, epilogue
from .micro_kernels.multiply import Multiply
from .pack_b import Panels, narrow, packed, unpacked
from .pack_blocks import PackedRows
from .pack_panels import BlockPacking, Each
from .pattern import Contraction
from .prefetch import Prefetching

MAX_UNROLLED_TERMS = 8
"""Maximum number of terms of one row that are unrolled."""
COPIED_TILES = 8
"""Number of tiles whose rows are packed at a time if rows are contiguous: packing then reads whole cache lines."""
MAX_PREFETCHED_ROWS = 2
"""Maximum rows of the next tile that are prefetched with each panel."""


@dataclass(frozen=True, slots=True)
class PanelGroup:
    """Panels of one shape, of `size` columns each, from column `start` on. The panels of a block are packed from column
    `offset` on, padding included."""
    start: int
    size: int
    vectors: tuple[Piece, ...]
    offset: int

    @property
    def width(self) -> int:
        """Number of columns of a panel, padding included."""
        return width_of(self.vectors)


GroupRun = Callable[[Place, PanelGroup, Each], None]
"""A callback for the panels of one shape: the place of the first panel, the group, and a loop over the panel numbers."""


@dataclass(frozen=True, slots=True)
class BlockLoops:
    """The loops over blocks. A block of columns has some of the `main` panels, which `panels` numbers; the last block has
    `rest`, too. `terms` are the terms of a block of K, `tiles` the tiles of rows of each height that are packed together."""
    pattern: Contraction
    panels: Terms
    terms: Terms
    tiles: Sequence[tuple[Tiles, Terms]]
    main: PanelGroup
    rest: PanelGroup | None

    @staticmethod
    def of(b: Builder, pattern: Contraction, blocks: CacheBlocks, cut: Cut, rows: int) -> BlockLoops:
        """Return the loops for these panels, and tiles of at most `rows` rows."""
        (k,), ((t, vectors), *others) = pattern.reduce.axes, cut
        each = min(blocks.panels, t.count)
        main = PanelGroup(t.start, t.size, vectors, 0)
        rest = [PanelGroup(t.start, t.size, vectors, each * main.width) for t, vectors in others]
        together = COPIED_TILES if blocks.copied == "m" else 1
        tiles = [(t, Terms.of(b, Axis("tile", t.count), together, "tiles")) for t in balanced(pattern.rows, rows)]
        return BlockLoops(pattern, Terms.of(b, Axis("panel", t.count), each, "columns"), Terms.of(b, k, blocks.depth, "block"),
                          tiles, main, rest[0] if rest else None)

    @property
    def layout(self) -> PanelLayout:
        """Layout of the panels that are packed for a block."""
        rest: Cut = [(Tiles(self.rest.start, self.rest.size, 1), self.rest.vectors)] if self.rest else []
        return PanelLayout([(Tiles(0, self.main.size, self.panels.size), self.main.vectors), *rest], self.terms.size)

    def blocks_of_columns(self, place: Place, body: Run) -> None:
        self.panels.over_blocks(lambda: body(place))

    def blocks_of_terms(self, place: Place, body: Run) -> None:
        self.terms.over_blocks(lambda: body(place))

    def groups_of_tiles(self, place: Place, body: Run) -> None:
        """Write a loop over the groups of tiles that are packed together, with the place of the first tile of each."""
        for t, tiles in self.tiles:
            here = replace(place, rows=t.size)
            tiles.over_blocks(lambda: body(self.row(here, tiles.start * t.size + t.start)))

    def tiles_of_group(self, place: Place, body: Run) -> None:
        self.tiles_of(place).loop(lambda tile: body(replace(self.row(place, tile * place.rows), tile=tile)))

    def tiles_of(self, place: Place) -> Terms:
        """Return the tiles that have the place's number of rows."""
        return next(tiles for t, tiles in self.tiles if t.size == place.rows)

    def row(self, place: Place, row: Affine) -> Place:
        """Return the place `row` rows further."""
        m = self.pattern.m
        return place.moved({m: place.at.get(m, START) + row}) if m else place

    def panels_of_block(self, place: Place, body: Run) -> None:
        n = self.pattern.n

        def of_shape(first: Place, group: PanelGroup, each: Each) -> None:
            each(lambda number: body(replace(first.moved({n: first.at[n] + number * group.size}), number=number,
                                             column=number * group.width + group.offset)))

        self.over_shapes(place, of_shape)

    def over_shapes(self, place: Place, body: GroupRun) -> None:
        """Run `body` for the panels of each shape in the block of columns."""
        main, rest, n = self.main, self.rest, self.pattern.n
        body(replace(place.moved({n: self.panels.start * main.size + main.start}), vectors=main.vectors, panel=main.size), main,
             self.panels.loop)
        if rest:
            last = replace(place.moved({n: Affine.of(rest.start)}), vectors=rest.vectors, panel=rest.size)
            self.panels.when_last(lambda: body(last, rest, lambda one: one(START)))


@dataclass(frozen=True, slots=True)
class BlockedTiles:
    """The register tiles of a block of K, computed by steps of `kernel`. If there are several blocks, `sums` holds the sums
    between them. `packing` packs panels that are neither constant nor read in place, `rows` the rows of a tile, if packed."""
    b: Builder
    pattern: Contraction
    blocks: CacheBlocks
    loops: BlockLoops
    kernel: MicroKernel
    packing: BlockPacking | None
    rows: PackedRows | None
    sums: Buffer | None

    def tile(self, place: Place) -> None:
        terms, is_short = self.loops.terms, self.blocks.depth <= MAX_UNROLLED_TERMS and place.rows == 1
        block = OutputBlock(place.at, self.pattern.m, place.rows, self.pattern.n, place.vectors)
        times = self.steps_at_once

        def steps(term: Affine, *sums: Operand) -> Sequence[Operand]:
            for number in range(times):
                sums = tuple(self.step(place, term + number, sums))
            return sums

        sums = terms.loop(steps, self.initial(place), times, unrolled=is_short)
        terms.when_last(lambda: self.kernel.finish(place, block, sums))
        terms.when_more(lambda: self.keep(place, sums))

    @property
    def steps_at_once(self) -> int:
        """Number of steps whose row elements are loaded at once, if contiguous and if all blocks have whole groups of steps."""
        times, terms = self.kernel.step.unroll, self.loops.terms
        return 1 if (self.rows and self.rows.interleaved) or terms.axis.extent % times or terms.size % times else times

    def initial(self, place: Place) -> list[Operand]:
        """Return the sums of the previous block of K, or zeros; in the first of several blocks, store the zeros first."""
        types = [Type(self.pattern.reduce.dtype, piece.lanes) for piece in place.vectors] * place.rows
        if self.sums is None:
            return [Literal(0, t) for t in types]
        self.loops.terms.when_first(lambda: self.keep(place, [Literal(0, t) for t in types]))
        return [self.b.load(self.sums, self.waiting(place, v), t.lanes) for v, t in enumerate(types)]

    def keep(self, place: Place, sums: Sequence[Operand]) -> None:
        assert self.sums is not None
        for v, x in enumerate(sums):
            self.b.store(self.sums, self.waiting(place, v), x)

    def waiting(self, place: Place, vector: int) -> Affine:
        """Return the offset of a vector's spilled sums: those of a tile are contiguous, and so are those of a row of tiles."""
        row, piece = divmod(vector, len(place.vectors))
        start = place.at[self.pattern.m] if self.pattern.m else START
        tile = start * self.loops.layout.columns + place.column * place.rows
        return tile + row * width_of(place.vectors) + place.vectors[piece].start

    def step(self, place: Place, term: Affine, sums: Sequence[Operand]) -> list[Operand]:
        """Write one step of K for all sums of a tile."""
        k = self.loops.terms.axis
        here = replace(place.moved({k: self.loops.terms.start + term}), term=term)
        self.prefetch(here)
        if self.packing:
            return self.kernel.products(here, term, sums)
        return self.kernel.products(replace(here, column=here.at[self.pattern.n]), here.at[k], sums)

    def prefetch(self, place: Place) -> None:
        """Prefetch data for the next tiles, spread evenly over the terms: of the rows of the next tile, one or two with each
        panel, and the sums of the next panel."""
        if place.panel != self.loops.main.size or not self.blocks.filled:
            return
        m = self.pattern.m
        for x in loads(self.pattern.a)[:MAX_PREFETCHED_ROWS]:
            if m and all(isinstance(t, Axis) for t, _ in x.index[0].terms):
                for row in self.rows_prefetched(place, x.index[0].coefficient(m)):
                    self.b.prefetch(x.buffer, x.index[0].substitute({**place.at, m: place.at[m] + row + place.rows}))
        if self.sums:
            size = place.rows * width_of(place.vectors)
            self.b.prefetch(self.sums, self.waiting(place, 0) + size + place.term * -(-size // self.blocks.depth))

    def rows_prefetched(self, place: Place, stride: int) -> list[Affine]:
        """Return the rows of the next tile to prefetch; if rows are contiguous in memory, the first is enough."""
        if stride in (0, 1):
            return [START]
        each = self.loops.panels.size
        return [place.number + i * each for i in range(min(-(-place.rows // each), MAX_PREFETCHED_ROWS))]

    def pack_b(self, place: Place) -> None:
        if packing := self.packing:
            self.loops.over_shapes(place, lambda here, group, each: packing.fill_block(
                here.at, each, group.size, group.vectors, group.offset))

    def pack_a(self, place: Place) -> None:
        if self.rows:
            self.rows.fill(place.at, place.rows, self.loops.tiles_of(place).loop)


def lower(b: Builder, pattern: Contraction, choice: ContractionChoice, target: Target, rows: RowRange | None) -> None:
    """Write the loops: see `macro_kernel`."""
    blocks, cut = choice.blocks, choice.cut(pattern.n.extent, target)
    assert blocks
    loops = BlockLoops.of(b, pattern, blocks, cut, choice.tile.rows)
    tiles = blocked_tiles(b, pattern, choice, blocks, loops, cut, target)
    run([MacroKernel(b, pattern).places(pattern.outer, rows), loops.blocks_of_columns, loops.blocks_of_terms,
         packing(tiles.pack_b), loops.groups_of_tiles, packing(tiles.pack_a), loops.tiles_of_group, loops.panels_of_block],
        tiles.tile)


def blocked_tiles(b: Builder, pattern: Contraction, choice: ContractionChoice, blocks: CacheBlocks, loops: BlockLoops, cut: Cut,
                  target: Target) -> BlockedTiles:
    """Return the tiles with the packing of their operands."""
    depth, name, dtype, packing, rows, sums = blocks.depth, pattern.nest.name, pattern.reduce.dtype, None, None, None
    writer = EpilogueWriter(b, target, pattern.nest, pattern.reduce, choice.tile.rows * loops.main.width)
    if choice.packing == "compiling":
        panels = packed(b, pattern, cut, target)
    elif choice.packing == "never":
        panels = unpacked(pattern)
    else:
        source, layout = narrow(pattern.b), loops.layout
        to = b.scratch(Buffer(f"{name}.packed", source.dtype, (layout.size,), "scratch"))
        packing = BlockPacking(b, target, source, pattern.n, loops.terms.axis, layout, to, loops.terms, choice.lanes)
        panels = Panels(pattern.n, pattern.reduce.axes, dtype, source, layout, to)
    if pattern.m and (along := blocks.copied):
        (height, tiles), *_ = loops.tiles
        size = PackedRows.size(height.size, tiles.size, depth, choice.lanes, along == "m")
        to = b.scratch(Buffer(f"{name}.rows", pattern.a.dtype, (size,), "scratch"))
        rows = PackedRows(b, target, to, pattern.a, pattern.m, loops.terms, choice.lanes, along == "m")
    if depth < loops.terms.axis.extent:
        sums = b.scratch(Buffer(f"{name}.sums", dtype, (pattern.rows * loops.layout.columns,), "scratch"))
    step = Multiply(b, target, pattern, PaddingConditions.of(pattern.reduce, pattern.m, pattern.n), panels, rows=rows)
    kernel = MicroKernel(b, pattern, step, target, epilogue(writer), Prefetching(b, pattern, None, (), 1, 1))
    return BlockedTiles(b, pattern, blocks, loops, kernel, packing, rows, sums)
