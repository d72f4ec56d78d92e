"""The macro-kernel of a product of matrices in blocks (`cache_blocking`), the loops around its micro-kernel: for a block of
columns, for a block of K, the panels are filled where they are not constant; then tile by tile of rows, copied where the
choice says so, come the sums of each panel. Between blocks of K sums wait in scratch, in the order of their use; each has its
terms in the same order as without blocks.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...elements.expression import Buffer
from ...elements.traverse import loads
from ...loops.builder import Builder
from ...loops.ir import Literal, Operand, Type
from ...target.target import Target
from ..nest.axis_blocks import Terms
from ..nest.loop_nest import At
from ..nest.padding_conditions import PaddingConditions
from ..nest.row_range import RowRange, nested
from ..nest.tile_axis import Piece, Tiles, balanced
from ..vectorize.epilogue import EpilogueWriter, OutputBlock
from .cache_blocking import CacheBlocks
from .choose import ContractionChoice
from .micro_kernel import Multiply, columns
from .pack_b import Panels, narrow, packed, unpacked
from .pack_blocks import BlockPacking, Each, Lines, widened
from .pattern import Contraction

MAX_UNROLLED_TERMS = 8
"""Terms of one row that are unrolled, at most."""
COPIED_TILES = 8
"""Tiles whose rows are copied at a time where rows are neighbours in memory: these are then whole lines of a cache."""
MAX_PREFETCHED_ROWS = 2
"""Rows of the next tile that are prefetched beside one panel."""


@dataclass(frozen=True, slots=True)
class PanelGroup:
    """Panels of one shape: `count` of `size` columns from `start` on; those of a block lie in scratch from column `offset`
    on, padding counted."""
    start: int
    size: int
    count: int
    vectors: tuple[Piece, ...]
    offset: int

    @property
    def width(self) -> int:
        """Columns with padding."""
        return sum(piece.lanes for piece in self.vectors)


@dataclass(frozen=True, slots=True)
class Copies:
    """What of the operands is copied for a block, and where sums wait; `panels` are those packed while compiling."""
    panels: Panels | None
    packing: BlockPacking | None
    lines: Lines | None
    sums: Buffer | None


def lower(
    b: Builder, pattern: Contraction, choice: ContractionChoice, blocks: CacheBlocks, target: Target, rows: RowRange | None
) -> None:
    product = Blocked(b, pattern, choice, blocks, target)
    nested(b, pattern.outer, {}, product.batch, rows)


class Blocked:
    """The product, while its loops are written."""

    def __init__(self, b: Builder, pattern: Contraction, choice: ContractionChoice, blocks: CacheBlocks,
                 target: Target) -> None:
        self.b, self.pattern, self.blocks, self.target, self.lanes = b, pattern, blocks, target, choice.lanes
        (self.k,) = pattern.reduce.axes
        self.m, self.n, self.dtype = pattern.m, pattern.n, pattern.reduce.dtype
        (t, vectors), *others = cut = columns(pattern, choice, target)
        self.main = PanelGroup(t.start, t.size, t.count, vectors, 0)
        self.each = min(blocks.panels, t.count)
        self.width = self.each * self.main.width
        self.rest = None
        for t, vectors in others:
            self.rest = PanelGroup(t.start, t.size, 1, vectors, self.width)
            self.width += self.rest.width
        self.heights = balanced(pattern.rows, choice.tile.rows)
        self.tiles = COPIED_TILES if blocks.copied == "m" else 1
        self.writer = EpilogueWriter(b, target, pattern.nest, pattern.reduce, choice.tile.rows * self.main.width)
        self.multiply = Multiply(b, target, pattern, PaddingConditions.of(pattern.reduce, pattern.m, pattern.n))
        self.copies = self.scratch(choice, cut)

    def scratch(self, choice: ContractionChoice, cut: list[tuple[Tiles, tuple[Piece, ...]]]) -> Copies:
        b, pattern, depth, name = self.b, self.pattern, self.blocks.depth, self.pattern.nest.name
        panels = packing = lines = sums = None
        if choice.packing == "compiling":
            panels = packed(b, pattern, cut, self.target)
        elif choice.packing == "never":
            panels = unpacked(pattern)
        else:
            source = narrow(pattern.b)
            to = b.scratch(Buffer(f"{name}.packed", source.dtype, (self.width * depth,), "scratch"))
            packing = BlockPacking(b, self.target, to, source, self.n, self.k, self.lanes)
        if self.m and (along := self.blocks.copied):
            size = Lines.size(self.heights[0].size, self.tiles, depth, self.lanes, along == "m")
            to = b.scratch(Buffer(f"{name}.rows", pattern.a.dtype, (size,), "scratch"))
            lines = Lines(b, self.target, to, pattern.a, self.m, self.k, self.lanes, along == "m")
        if depth < self.k.extent:
            sums = b.scratch(Buffer(f"{name}.sums", self.dtype, (pattern.rows * self.width,), "scratch"))
        return Copies(panels, packing, lines, sums)

    # ---- loops over blocks -------------------------------------------------------------------------------------------
    def batch(self, at: At) -> None:
        panels = Terms(self.b, Axis("panel", self.main.count), self.each, Affine())
        number = Axis("columns", panels.blocks)
        self.b.loop(number, lambda: self.column_block(at, replace(panels, number=Affine.of(number))))

    def column_block(self, at: At, panels: Terms) -> None:
        number = Axis("block", -(-self.k.extent // self.blocks.depth))
        self.b.loop(number, lambda: self.block(at, panels, Terms(self.b, self.k, self.blocks.depth, Affine.of(number))))

    def block(self, at: At, panels: Terms, terms: Terms) -> None:
        """A block of columns and of K."""
        if packing := self.copies.packing:
            self.groups(panels, lambda group, each: packing.fill(
                self.column(at, panels, group), terms, each, group.size, group.vectors, group.offset))
        for t in self.heights:
            tiles = Terms(self.b, Axis("tile", t.count), self.tiles, Affine())
            number = Axis("tiles", tiles.blocks)
            self.b.loop(number, lambda: self.rows(at, panels, terms, t, replace(tiles, number=Affine.of(number))))

    def groups(self, panels: Terms, run: Callable[[PanelGroup, Each], None]) -> None:
        """Run for the panels of each shape that the block has."""
        run(self.main, panels.loop)
        if rest := self.rest:
            panels.when_last(lambda: run(rest, lambda inside: inside(Affine())))

    def column(self, at: At, panels: Terms, group: PanelGroup) -> At:
        """Where the first panel of the block begins."""
        return {**at, self.n: panels.start * group.size + group.start if group is self.main else Affine.of(group.start)}

    def rows(self, at: At, panels: Terms, terms: Terms, t: Tiles, tiles: Terms) -> None:
        """Some tiles of rows, copied together, for all panels of a block."""
        def place(tile: Affine) -> At:
            return {**at, self.m: (tiles.start + tile) * t.size + t.start} if self.m else at

        def row(tile: Affine) -> None:
            self.groups(panels, lambda group, each: of_group(tile, group, each))

        def of_group(tile: Affine, group: PanelGroup, each: Each) -> None:
            here = self.column(place(tile), panels, group)
            each(lambda number: self.tile(BlockedTile(
                {**here, self.n: here[self.n] + number * group.size}, terms, t.size, group, number, tile)))

        if self.copies.lines:
            self.copies.lines.fill(place(Affine()), terms, t.size, tiles.loop)
        tiles.loop(row)

    # ---- one tile ----------------------------------------------------------------------------------------------------
    def tile(self, tile: BlockedTile) -> None:
        block = OutputBlock(tile.at, self.m, tile.rows, self.n, tile.group.vectors)
        sums = tile.terms.loop(lambda term, *acc: self.products(tile, term, list(acc)), self.initial(tile),
                               unrolled=self.blocks.depth <= MAX_UNROLLED_TERMS and tile.rows == 1)
        tile.terms.when_last(lambda: self.writer.write(block, sums))
        tile.terms.when_more(lambda: self.keep(tile, sums))

    def initial(self, tile: BlockedTile) -> list[Operand]:
        """The sums of the block of K before; zeros, which are stored first where there is none."""
        types = [Type(self.dtype, piece.lanes) for piece in tile.group.vectors] * tile.rows
        if self.copies.sums is None:
            return [Literal(0, t) for t in types]
        tile.terms.when_first(lambda: self.keep(tile, [Literal(0, t) for t in types]))
        return [self.b.load(self.copies.sums, self.waiting(tile, v), t.lanes) for v, t in enumerate(types)]

    def keep(self, tile: BlockedTile, sums: list[Operand] | tuple[Operand, ...]) -> None:
        assert self.copies.sums is not None
        for v, x in enumerate(sums):
            self.b.store(self.copies.sums, self.waiting(tile, v), x)

    def waiting(self, tile: BlockedTile, vector: int) -> Affine:
        """Where the sums of a vector wait: those of a tile are neighbours, and so are a row of tiles."""
        group = tile.group
        row, piece = divmod(vector, len(group.vectors))
        panel = (tile.number * group.width + group.offset) * tile.rows
        return (tile.at[self.m] if self.m else Affine()) * self.width + panel + row * group.width + group.vectors[piece].start

    def products(self, tile: BlockedTile, term: Affine, sums: list[Operand]) -> list[Operand]:
        """One step of K for all sums of a tile."""
        place, vectors = {**tile.at, self.k: tile.terms.start + term}, tile.group.vectors
        self.prefetching(tile, place, term)
        columns = self.columns(tile, place, term)
        result = []
        for r in range(tile.rows):
            row = self.element(tile, place, r, term)
            for v, piece in enumerate(vectors):
                total = sums[r * len(vectors) + v]
                result.append(self.multiply.accumulate(total, self.b.splat(row, piece.lanes), columns[v]))
        return result

    def prefetching(self, tile: BlockedTile, place: At, term: Affine) -> None:
        """Ask for what comes next: term by term, so evenly that nothing waits for it. For the rows of the next tile, a row or
        two beside each panel; for the sums of the next panel."""
        if tile.group is not self.main or not self.blocks.filled:
            return
        for x in loads(self.pattern.a)[:MAX_PREFETCHED_ROWS]:
            if self.m and all(isinstance(t, Axis) for t, _ in x.index[0].terms):
                for row in self.rows_prefetched(tile, x.index[0].coefficient(self.m)):
                    self.b.prefetch(x.buffer, x.index[0].substitute({**place, self.m: place[self.m] + row + tile.rows}))
        if self.copies.sums:
            size = tile.rows * tile.group.width
            self.b.prefetch(self.copies.sums, self.waiting(tile, 0) + size + term * -(-size // self.blocks.depth))

    def rows_prefetched(self, tile: BlockedTile, stride: int) -> list[Affine]:
        """Rows of the next tile; where rows are neighbours in memory the first is enough."""
        if stride in (0, 1):
            return [Affine()]
        return [tile.number + i * self.each for i in range(min(-(-tile.rows // self.each), MAX_PREFETCHED_ROWS))]

    def columns(self, tile: BlockedTile, place: At, term: Affine) -> list[Operand]:
        """One term of all vectors of a panel."""
        group = tile.group
        if self.copies.panels:
            return self.copies.panels.load(self.b, self.target, place, group.vectors, group.size, place[self.k])
        assert self.copies.packing
        start = (tile.number * group.width + group.offset) * self.blocks.depth + term * group.width
        found = [self.b.load(self.copies.packing.scratch, start + piece.start, piece.lanes) for piece in group.vectors]
        return [widened(self.b, x, self.dtype) for x in found]

    def element(self, tile: BlockedTile, place: At, row: int, term: Affine) -> Operand:
        """One term of a row."""
        if self.copies.lines:
            return self.copies.lines.load(tile.terms, tile.among, row, tile.rows, term)
        return self.multiply.row(place, row)(1)


@dataclass(frozen=True, slots=True)
class BlockedTile:
    """`rows` rows of panel `number` of those of one shape in a block, which begins where `at` is; for some of K. Rows are
    tile `among` those copied together."""
    at: At
    terms: Terms
    rows: int
    group: PanelGroup
    number: Affine
    among: Affine
