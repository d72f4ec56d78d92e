"""The micro-kernel of products of bytes whose sum over a whole vector is added to a scalar register in one instruction
(Helium's VMLADAVA): a register tile of rows by columns, sixteen elements of K at a step.

Rows are read in place, if K is one run of whole vectors there and nothing is left out; else the rows of a tile are packed first
(`pack_a`). b is packed by columns at compile time; the contribution of a's zero point is part of the initial sums. The sums of
a tile of rows are spilled to scratch for an epilogue by vectors along the columns.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from .....runtime.records import dataclass
from ....elements.expression import Buffer, Load
from ....loops.builder import Builder
from ....loops.ir import Operand
from ....target.target import Target
from ...nest.padding_conditions import PaddingConditions
from ...nest.row_range import RowRange
from ...nest.tile_axis import Cut, Tiles, balanced, chunks, interior, over, peel, pieces
from ...strategy import Constraints
from ...vectorize.epilogue import EpilogueWriter, OutputBlock
from ..choice import ContractionChoice, in_pairs
from ..int8.byte_factors import Bytes, constant_bytes, is_one_run
from ..int8.pack_b import of_constants
from ..macro_kernel import MacroKernel, Place, finishing, packing, run
from ..micro_kernel import MicroKernel
from ..pack_a import RowPacking
from ..pattern import Contraction
from ..prefetch import Prefetching
from ..register_tile import Tile
from .byte_step import ByteStep

GROUP = 16
"""Elements of K in a step: a vector of bytes."""
MAX_SUMS, MAX_COLUMNS = 6, 6
"""Maximum sums, and maximum columns, of a register tile: the even registers that pointers and the loop counter leave."""
MAX_WAITING_COLUMNS = 36
"""Maximum columns whose sums are spilled at a time: 64 took over twice the memory, and 2 % fewer instructions. Measured."""
UNROLLED_STEPS, SHORT_STEPS = 2, 4
"""Steps in an iteration of the loop over K, and maximum steps that need no loop."""
SUM_INSTRUCTIONS, PANEL_INSTRUCTIONS, ROW_INSTRUCTIONS = 2, 6, 20
"""Instructions of a sum besides its products, of a panel besides its sums, and of a tile of rows for each packed vector.
Counted."""


def factors_of(pattern: Contraction, target: Target) -> Bytes | None:
    """Return the factors, if b is constant and has no zero point; else None."""
    return constant_bytes(pattern) if target.sums_bytes and not pattern.tested else None


def is_direct(pattern: Contraction, x: Load) -> bool:
    """True if rows are read in place: whole vectors of signed bytes."""
    return is_one_run(pattern, x) and pattern.depth % GROUP == 0 and x.dtype == "int8"


def tile_of(pattern: Contraction) -> Tile:
    """Return the register tile with the fewest instructions."""
    columns = range(1, min(MAX_COLUMNS, pattern.n.extent) + 1)
    tiles = [Tile(r, c) for c in columns for r in range(1, min(MAX_SUMS // c, pattern.rows) + 1)]
    return min(tiles, key=lambda tile: instructions(pattern, tile))


def instructions(pattern: Contraction, tile: Tile) -> float:
    """Return the approximate number of instructions of a matrix, without its epilogue."""
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


def choose(pattern: Contraction, constraints: Constraints) -> ContractionChoice | None:
    """Return a choice for products of bytes, a vector of them at a time added to a register; None for weights of four bits."""
    target = constraints.target
    if not factors_of(pattern, target) or in_pairs(pattern, target):
        return None
    return ContractionChoice(tile_of(pattern), 1, "dot", "compiling", False)


def lower(b: Builder, pattern: Contraction, choice: ContractionChoice, target: Target, rows: RowRange | None) -> None:
    """Write the loops: see `macro_kernel`."""
    tile, blocks = choice.tile, blocks_of(pattern, choice, target)
    step, width = VectorDot.of(b, pattern, tile, blocks, target), max(block.size for block, _ in blocks)
    sums = WaitingSums(b, pattern, target, b.scratch(Buffer(
        f"{pattern.nest.name}.sums", "int32", (tile.rows * width,), "scratch")), EpilogueWriter(
            b, target, pattern.nest, pattern.reduce, known=step.packed.known))
    kernel = MicroKernel(b, pattern, step, target, sums.keep, Prefetching(b, pattern, None, (), GROUP, 1), beside=False)
    macro = MacroKernel(b, pattern)
    if step.rows:
        step.rows.fill_up(tile.rows)
    run([macro.outer(False, rows)[1], macro.rows(heights_of(pattern, tile)), packing(step.pack), macro.columns(blocks),
         finishing(sums.write), macro.panels()], kernel.tile)


class VectorDot(ByteStep):
    """One step of K: add a vector of products to a scalar."""
    __slots__ = ()

    @staticmethod
    def of(b: Builder, pattern: Contraction, tile: Tile, blocks: Sequence[tuple[Tiles, Cut]], target: Target) -> VectorDot:
        found = factors_of(pattern, target)
        assert found
        zero_point = found.of_x - 128 * (found.x.dtype == "uint8")
        whole = [(replace(t, start=t.start + block.start + i * block.size), vectors)
                 for block, cut in blocks for i in range(block.count) for t, vectors in cut]
        packed = of_constants(b, pattern, found.y, (zero_point, 0), whole, GROUP, group=GROUP)
        (k,) = packed.panels.axes
        packing = None if is_direct(pattern, found.x) else RowPacking.of(
            b, pattern, found.x, (found.of_x, 0), tile.rows, k.extent, k.extent, target, "int8", fills=False)
        return VectorDot(b, target, pattern, found.x, packed, packing, group=GROUP, unroll=UNROLLED_STEPS)

    def row(self, place: Place, row: int) -> Callable[[int], Operand]:
        """Load sixteen elements of a row of the tile."""
        vector = self.b.load(*self.bytes_of(place.at, row), GROUP)
        return lambda _: vector

    def accumulate(self, total: Operand, row: Operand, column: Operand) -> Operand:
        return self.b.op("dot", total, row, column, type=total.type)


@dataclass(frozen=True, slots=True)
class WaitingSums:
    """The spilled sums of a tile of rows and a block of columns, for an epilogue by vectors."""
    b: Builder
    pattern: Contraction
    target: Target
    buffer: Buffer
    writer: EpilogueWriter

    def keep(self, place: Place, block: OutputBlock, sums: Sequence[Operand]) -> None:
        for total, (row, piece) in zip(sums, block.vectors, strict=True):
            start = place.column - place.first + (row * place.columns + piece.start)
            self.b.store(self.buffer, start, total)

    def write(self, place: Place) -> None:
        """Write the outputs of a block of columns."""
        lanes, n = self.target.lanes(4), self.pattern.n
        for t in chunks(place.columns, lanes):
            over(self.b, [t], lambda start, t: self.writer.write_waiting(
                OutputBlock({**place.at, n: place.first + start}, self.pattern.m, place.rows, n, pieces(t.size, lanes, False)),
                self.buffer, start, place.columns))


def blocks_of(pattern: Contraction, choice: ContractionChoice, target: Target) -> list[tuple[Tiles, Cut]]:
    """Return the blocks of columns whose sums are spilled at a time, and the panels of each block."""
    width = min(pattern.n.extent, MAX_WAITING_COLUMNS // choice.tile.vectors * choice.tile.vectors)
    return [(block, choice.cut(block.size, target)) for block in chunks(pattern.n.extent, width)]


def heights_of(pattern: Contraction, tile: Tile) -> list[Tiles]:
    """Return the tiles of rows; those at a border have constant positions, at which the omitted elements are known."""
    whole, m = balanced(pattern.rows, tile.rows), pattern.m
    return peel(whole, *interior(m, PaddingConditions.of(pattern.reduce, m, pattern.n).rows)) if m else whole
