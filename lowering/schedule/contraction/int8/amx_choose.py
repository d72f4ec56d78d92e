"""The choice of a matrix unit for a product of bytes, and of its blocks, by pattern and target; `micro_kernels.amx_bytes`
writes the loops.

A block uses few tiles, two of sums, one of a and one of b, although eight would need fewer loads. Two threads of a processor
share the physical memory of the tile registers, and when the other thread uses it, each instruction waits until one that writes
a tile ends. With half as many tiles in use there is room for the next ones.
"""
from __future__ import annotations

from .....runtime.records import dataclass
from ....elements.affine import Axis
from ....elements.expression import Load
from ....loops.cost import tile_step_cycles
from ....loops.ir import TILE_BYTES, TILE_ROWS
from ....target.costs import COSTS
from ....target.target import Target
from ...nest.constant_data import is_constant
from ...nest.tile_axis import Cut, Tiles, chunks
from ...strategy import Constraints
from ..choice import ContractionChoice, has_byte_products, lanes_of_sums, packing_of
from ..matrix_tiles import LANES, MAX_ROWS, MAX_SETTLED_BLOCKS, border_blocks, rows_of
from ..pattern import Contraction
from ..register_tile import Tile, choose_tile, panels
from .byte_factors import GROUP, Bytes, bytes_of, is_one_run

MIN_ALIGNED_COLUMNS, MIN_ALIGNED_TERMS = 8 * LANES, 4 * TILE_BYTES
"""Minimum number of columns and of terms for which rows that cross cache lines are worth an aligned copy."""
MAX_STEPS_OF_TWO_PANELS = 2
"""Maximum steps of K for which a panel computes its sums before the outputs of the previous panel, whose sums stay in the cache
until then."""


@dataclass(frozen=True, slots=True)
class ByteBlockShape:
    """The shape of a block: `heights` are the rows of its two tiles (0 for the second, if one is enough), `step` is the bytes
    of K in a step."""
    heights: tuple[int, int]
    step: int
    count: int
    """Number of steps."""
    chunk: int
    """Number of steps for which a block's rows stay in the first-level cache; the last chunk may have fewer."""
    lines: int = 1
    """Number of positions of the axis around m in a block; if more than one, a block has all of m."""

    @staticmethod
    def of(pattern: Contraction, found: Bytes, target: Target, outer: tuple[Axis, ...]) -> ByteBlockShape:
        """Return the shape of a block; `outer` are the axes around m that a block may include."""
        lines = lines_of(pattern, found, outer)
        rows = rows_of(pattern) * lines
        first = rows if rows <= TILE_ROWS else -(-rows // 2)
        step = min(TILE_BYTES, -(-pattern.depth // GROUP) * GROUP)
        count = -(-pattern.depth // step)
        return ByteBlockShape((first, rows - first), step, count, chunk_of(count, target.l1_bytes * 2 // 3 // (rows * step)),
                              lines)

    @property
    def rows(self) -> int:
        return sum(self.heights)

    @property
    def width(self) -> int:
        """Number of rows of one line."""
        return self.rows // self.lines

    @property
    def depth(self) -> int:
        """Elements of K, padded to whole steps."""
        return self.step * self.count

    @property
    def chunks(self) -> int:
        return -(-self.count // self.chunk)

    @property
    def slots(self) -> int:
        """Number of panels whose sums are kept at a time, if K is not cut into chunks."""
        return 2 if self.count <= MAX_STEPS_OF_TWO_PANELS else 1

    @property
    def tiles(self) -> tuple[tuple[int, int], ...]:
        """Rows and bytes of the tiles: two of sums, one or two of a, one of b."""
        (first, second), high = self.heights, self.step // GROUP
        if second in (0, first):
            return (first, TILE_BYTES), (first, TILE_BYTES), (first, self.step), (high, TILE_BYTES)
        return (first, TILE_BYTES), (second, TILE_BYTES), (first, self.step), (high, TILE_BYTES), (second, self.step)

    def pace(self, steps: int) -> int | None:
        """Return the number of rows of another panel that are finished in each of the first steps: a divisor of a line, so that
        all rows are finished; None if there are too few steps."""
        return next((n for n in range(1, self.width + 1)
                     if self.width % n == 0 and self.lines * (self.width // n) <= steps), None)


def chunk_of(count: int, most: int) -> int:
    """Return the size of chunks, equal but for the last; one chunk slightly over `most` is better than two."""
    number = -(-count // max(most, 1)) if count > most + most // 4 else 1
    return -(-count // number)


def lines_of(pattern: Contraction, found: Bytes, outer: tuple[Axis, ...]) -> int:
    """Return the number of positions of the last of these axes that fill the rows of a block, if a is packed and has few rows;
    else 1."""
    few = pattern.rows <= TILE_ROWS and outer and not pattern.nest.where and not is_direct(pattern, found)
    if not few or outer[-1] in pattern.batch or any(w.index.hidden for w in pattern.reduce.where):
        return 1
    return min(MAX_ROWS // pattern.rows, outer[-1].extent)


def choose_amx(pattern: Contraction, constraints: Constraints) -> ContractionChoice | None:
    """Return a choice with a block of tiles, in vectors of 16 sums; None if the matrix unit is unsuitable, or no faster than
    `dot4`."""
    target, found = constraints.target, bytes_of(pattern)
    if "int8" not in target.matrix_unit or found is None or pattern.m is None or pattern.inside:
        return None
    if not has_byte_products(pattern, target) or not (
            is_direct(pattern, found) or len(border_blocks(pattern)) <= MAX_SETTLED_BLOCKS):
        return None
    if cycles_of_tiles(pattern, found, target) >= cycles_of_dot4(pattern, target):
        return None
    tile = Tile(ByteBlockShape.of(pattern, found, target, pattern.outer).rows, 1)
    return ContractionChoice(tile, lanes_of_sums(pattern, target), "tiles", packing_of(pattern), False)


def cycles_of_tiles(pattern: Contraction, found: Bytes, target: Target) -> float:
    """Return the cycles for all rows and columns: a product takes a cycle for each row of a, a tile load half a cycle."""
    shape = ByteBlockShape.of(pattern, found, target, pattern.outer)
    blocks, panels = -(-pattern.rows // shape.width) / shape.lines, -(-pattern.n.extent // LANES)
    step = max(shape.rows, (shape.rows + shape.step // GROUP) / 1.5)
    row_packing = 0.0 if is_direct(pattern, found) else shape.rows * shape.depth / TILE_BYTES * 2
    costs, sums = target.costs, 2 * shape.rows
    return costs.tile_configuration_cycles + blocks * (
        panels * (shape.count * step + sums + costs.tile_panel_cycles) + row_packing)


def cycles_of_dot4(pattern: Contraction, target: Target) -> float:
    tile = choose_tile(pattern.rows, pattern.n.extent, LANES, target, False)
    step = sum(
        t.count * tile_step_cycles(tile.rows, -(-t.size // LANES), target) for t in panels(pattern.n.extent, LANES, tile)
    )
    row_packing = pattern.rows * pattern.depth / TILE_BYTES * 2
    return -(-pattern.rows // tile.rows) * step * -(-pattern.depth // GROUP) * 1.1 + row_packing


def is_direct(pattern: Contraction, found: Bytes) -> bool:
    """True if tiles are loaded from a in place: K is one run, nothing is left out, no sums of rows are needed, and rows neither
    map to the same few cache sets, nor, if they are read often, cross cache lines."""
    x = found.x
    if found.of_y or not is_one_run(pattern, x) or pattern.m is None or pattern.m in x.index[0].hidden:
        return False
    stride = x.index[0].coefficient(pattern.m)
    if pattern.depth < TILE_BYTES:
        return stride > 0 and pattern.depth % GROUP == 0
    if pattern.n.extent >= MIN_ALIGNED_COLUMNS and pattern.depth >= MIN_ALIGNED_TERMS and not is_aligned(pattern, x):
        return False
    whole = pattern.depth % TILE_BYTES == 0 or is_constant(found.y)
    return stride > 0 and whole and stride % COSTS.cache_set_stride_bytes != 0


def is_aligned(pattern: Contraction, x: Load) -> bool:
    """True if rows begin at cache lines; arrays that the caller passes may not be aligned."""
    index = x.index[0]
    strides = [c for term, c in index.terms if term not in pattern.reduce.axes]
    return x.buffer.role in ("temporary", "constant", "scratch") and not any(n % TILE_BYTES for n in (index.const, *strides))


def groups(pattern: Contraction, shape: ByteBlockShape, cut: Cut, target: Target) -> list[tuple[Tiles, Cut]]:
    """Return the columns in groups that stay in the second-level cache, and the panels of each group."""
    (whole, vectors), *rest = cut
    most = max(1, target.block_bytes // (whole.size * shape.depth))
    if whole.count <= most:
        return [(Tiles(0, pattern.n.extent, 1), cut)]
    each = -(-whole.count // -(-whole.count // most))
    result: list[tuple[Tiles, Cut]] = [
        (Tiles(t.start * whole.size, t.size * whole.size, t.count), [(Tiles(0, whole.size, t.size), vectors)])
        for t in chunks(whole.count, each)]
    return result + [(t, [(Tiles(0, t.size, 1), pieces)]) for t, pieces in rest]
