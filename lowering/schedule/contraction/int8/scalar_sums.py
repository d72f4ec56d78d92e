"""Products of bytes whose sum over a whole vector is added to a scalar register in one instruction (Helium's VMLADAVA): a
register tile of rows by columns, sixteen elements of K at a step.

Rows are read where they lie, if K is one run of whole vectors there and nothing is left out; else those of a tile are packed
first (`pack_a`). b is packed by columns while compiling; what the zero point of a adds is in the sums' initial values. The sums
of a tile of rows wait in scratch for an epilogue by vectors along the columns.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from .....runtime.records import dataclass
from ....elements.affine import Affine
from ....elements.expression import Buffer
from ....loops.builder import Builder
from ....loops.ir import Operand
from ....target.target import Target
from ...nest.constant_data import is_constant
from ...nest.loop_nest import At
from ...nest.padding_conditions import PaddingConditions
from ...nest.reduction_loops import reduce_loops
from ...nest.row_range import RowRange, nested
from ...nest.tile_axis import Cut, Piece, Tiles, balanced, chunks, interior, over, peel, pieces
from ...vectorize.epilogue import EpilogueWriter, OutputBlock
from ..pack_a import RowPacking, run_of
from ..pattern import Contraction
from ..register_tile import Tile
from .vnni import Bytes, bytes_of
from .vnni_pack_b import BytePanels, of_constants

GROUP = 16
"""Elements of K at a step: a vector of bytes."""
MAX_SUMS, MAX_COLUMNS = 6, 6
"""Sums of a register tile: as many even registers as the instruction has beside pointers and the counter of the loop."""
MAX_WAITING_COLUMNS = 36
"""Columns whose sums wait at a time: with 64 they took more than twice the memory, and 2 % fewer instructions. Measured."""
UNROLLED_STEPS, SHORT_STEPS = 2, 4
"""Steps in an iteration of the loop over K, and steps that need no loop."""
SUM_INSTRUCTIONS, PANEL_INSTRUCTIONS, ROW_INSTRUCTIONS = 2, 6, 20
"""Instructions of a sum beside its products, of a panel beside its sums, and of a tile of rows for each vector that is packed.
Counted."""


@dataclass(frozen=True, slots=True)
class ByteFactors:
    """The factors, and whether rows are read as they lie. `zero_point` is that of a as signed bytes."""
    found: Bytes
    is_direct: bool

    @property
    def zero_point(self) -> int:
        return self.found.of_x - 128 * (self.found.x.dtype == "uint8")


def factors_of(pattern: Contraction, target: Target) -> ByteFactors | None:
    """The factors, if b is constant and has no zero point; weights that are kept as four bits stay so."""
    if not target.sums_bytes or pattern.reduce.dtype != "int32" or pattern.inside or pattern.tested:
        return None
    found = bytes_of(pattern)
    if found is None or found.of_y or not is_constant(found.y):
        return None
    run = run_of(found.x, pattern.reduce.axes, ())
    whole = run == pattern.reduce.axes and pattern.depth % GROUP == 0 and not pattern.reduce.where
    return ByteFactors(found, whole and found.x.dtype == "int8")


def tile_of(pattern: Contraction) -> Tile:
    """The register tile with the fewest instructions."""
    columns = range(1, min(MAX_COLUMNS, pattern.n.extent) + 1)
    tiles = [Tile(r, c) for c in columns for r in range(1, min(MAX_SUMS // c, pattern.rows) + 1)]
    return min(tiles, key=lambda tile: instructions(pattern, tile))


def instructions(pattern: Contraction, tile: Tile) -> float:
    """About how many a matrix takes, without its epilogue."""
    steps = -(-pattern.depth // GROUP)
    loop = 0 if steps <= SHORT_STEPS else 1 / UNROLLED_STEPS if steps % UNROLLED_STEPS == 0 else 1
    total = 0.0
    for m in balanced(pattern.rows, tile.rows):
        for n in chunks(pattern.n.extent, tile.vectors):
            sums = m.size * n.size
            panel = steps * (m.size + n.size + sums + loop) + SUM_INSTRUCTIONS * sums + PANEL_INSTRUCTIONS
            total += m.count * n.count * panel
        total += m.count * ROW_INSTRUCTIONS
    return total


def lower(b: Builder, pattern: Contraction, tile: Tile, target: Target, rows: RowRange | None) -> None:
    product = ScalarSums.of(b, pattern, tile, target)
    if product.packing:
        product.packing.fill_up(tile.rows)
    nested(b, pattern.outer, {}, product.rows_of, rows, pattern.nest.where)


@dataclass(frozen=True, slots=True)
class ScalarSums:
    """The product. `blocks` are the columns whose sums wait at a time, with the panels of each; `packing` is None where rows
    are read as they lie."""
    b: Builder
    pattern: Contraction
    target: Target
    factors: ByteFactors
    heights: Sequence[Tiles]
    blocks: Sequence[tuple[Tiles, Cut]]
    packed: BytePanels
    packing: RowPacking | None
    waiting: Buffer
    writer: EpilogueWriter

    @staticmethod
    def of(b: Builder, pattern: Contraction, tile: Tile, target: Target) -> ScalarSums:
        factors = factors_of(pattern, target)
        assert factors
        heights, name = heights_of(pattern, tile), pattern.nest.name
        width = min(pattern.n.extent, MAX_WAITING_COLUMNS // tile.vectors * tile.vectors)
        blocks = [(block, cut_of(block.size, tile.vectors)) for block in chunks(pattern.n.extent, width)]
        whole = [(replace(t, start=t.start + block.start + i * block.size), vectors)
                 for block, cut in blocks for i in range(block.count) for t, vectors in cut]
        packed = of_constants(b, pattern, factors.found.y, (factors.zero_point, 0), whole, GROUP, group=GROUP)
        (k,) = packed.panels.axes
        packing = None if factors.is_direct else RowPacking.of(
            b, pattern, factors.found.x, (factors.found.of_x, 0), tile.rows, k.extent, k.extent, False, target, signed=True,
            fills=False)
        waiting = b.scratch(Buffer(f"{name}.sums", "int32", (tile.rows * width,), "scratch"))
        writer = EpilogueWriter(b, target, pattern.nest, pattern.reduce, known=packed.known)
        return ScalarSums(b, pattern, target, factors, heights, blocks, packed, packing, waiting, writer)

    # ---- loops -------------------------------------------------------------------------------------------------------
    def rows_of(self, at: At) -> None:
        m = self.pattern.m
        if m is None:
            self.tile_of_rows(at, 1)
        else:
            over(self.b, self.heights, lambda start, t: self.tile_of_rows({**at, m: start}, t.size))

    def tile_of_rows(self, at: At, rows: int) -> None:
        if self.packing:
            self.packing.pack(at, rows)
        for block, cut in self.blocks:
            over(self.b, [block], lambda start, t: self.block_of_columns(at, rows, start, t.size, cut))

    def block_of_columns(self, at: At, rows: int, first: Affine, width: int, cut: Cut) -> None:
        """The sums of a block, then what is done with them."""
        for t, vectors in cut:
            over(self.b, [t], lambda start, _: self.panel(at, rows, first, start, vectors, width))
        lanes = self.target.lanes(4)
        for t in chunks(width, lanes):
            over(self.b, [t], lambda start, t: self.writer.write_waiting(
                OutputBlock({**at, self.pattern.n: first + start}, self.pattern.m, rows, self.pattern.n,
                            pieces(t.size, lanes, False)), self.waiting, start, width))

    # ---- one tile ----------------------------------------------------------------------------------------------------
    def panel(self, at: At, rows: int, first: Affine, start: Affine, vectors: tuple[Piece, ...], width: int) -> None:
        """The sums of one register tile."""
        column, panels = first + start, self.packed.panels
        place, columns = {**at, self.pattern.n: column}, len(vectors)
        initial = [self.b.load(self.packed.initial, self.packed.start(at, column + i)) for i in range(columns)]
        reads = [self.reader(at, r) for r in range(rows)]

        def step(here: At, sums: Sequence[Operand]) -> list[Operand]:
            (k,) = panels.axes
            weights, result = panels.load(self.b, self.target, here, vectors, columns, here[k]), list(sums)
            for r, read in enumerate(reads):
                x = read(here[k])
                for c, w in enumerate(weights):
                    i = r * columns + c
                    result[i] = self.b.op("dot", result[i], x, w, type=result[i].type)
            return result

        sums = reduce_loops(self.b, panels.axes, (), place, initial * rows, step, unroll=UNROLLED_STEPS, group=GROUP)
        for i, total in enumerate(sums):
            row, number = divmod(i, columns)
            self.b.store(self.waiting, start + (row * width + number), total)

    def reader(self, at: At, row: int) -> Callable[[Affine], Operand]:
        """Sixteen elements of a row of the tile, from one of K on."""
        if self.packing:
            buffer, start = self.packing.buffer, Affine() + row * self.packing.stride
        else:
            x, m = self.factors.found.x, self.pattern.m
            here = {**at, **({m: at[m] + row} if m else {}), **{a: Affine() for a in self.pattern.reduce.axes}}
            buffer, start = x.buffer, x.index[0].substitute(here)
        return lambda k: self.b.load(buffer, start + k, GROUP)


def heights_of(pattern: Contraction, tile: Tile) -> list[Tiles]:
    """The tiles of rows; those at a border stand where it is known which elements are left out."""
    whole, m = balanced(pattern.rows, tile.rows), pattern.m
    return peel(whole, *interior(m, PaddingConditions.of(pattern.reduce, m, pattern.n).rows)) if m else whole


def cut_of(columns: int, width: int) -> Cut:
    return [(t, pieces(t.size, 1, False)) for t in chunks(columns, width)]
