"""The choice of bfloat16 products on a matrix unit for a contraction of float32, if the user allows it, and of their shapes, by
pattern and machine. `micro_kernels.amx_limbs` writes the loops.

A number is the sum of its limbs: the number rounded to 8 bits, the rest rounded to 8 bits, and the rest of that: three limbs
hold all 24 bits of a float32. Of the nine products of three limbs by three the six largest are summed, "bf16x6"; of two limbs
by two the three largest, "bf16x3". With u = 2^-24, K terms, 32 in a step, s = ceil(K / 32) steps, and S the sum of |a| |b|, a
result differs from the exact one by at most

    bf16x6: (17 + 6.2 s) u S + 224 s 2^-126        bf16x3: (528 + 3.1 s) u S + 112 s 2^-126

The omitted products are u S (512 u S); a product goes through 15 roundings in its step, and one for each product of tiles in
its own step and later ones; the products of limbs together are 1.016 S at most. A chain of fused multiply-adds has K u S, which
is more than bf16x6 from K = 29 on. The last term is for sums below 2^-126, which the unit flushes to zero.

In range are 0, and values whose three limbs are normal numbers and whose sums cannot overflow. A row of a, or 16 columns of b,
with any other value (subnormal, nearly infinite, infinite, NaN) are detected while they are split, and computed in float32.

Vectors without a matrix unit gain nothing: VDPBF16PS makes twice as many products as a fused multiply-add, or half as many
if it starts every second cycle, and bf16x3 needs three products for one.

The use of limbs is chosen for a whole kernel, by properties that do not depend on the cut of its rows, so that results depend
neither on that cut nor on the number of threads.
"""
from __future__ import annotations

import math
from collections.abc import Mapping
from typing import cast

import numpy as np

from .....runtime.records import dataclass
from ....elements.affine import Axis
from ....elements.expression import Load
from ....elements.traverse import computed, loads
from ....loops.ir import TILE_BYTES, TILE_ROWS
from ....target.target import Target
from ...nest.constant_data import constant, is_constant
from ...nest.tile_axis import Tiles, chunks
from ...strategy import Constraints
from ..choice import ContractionChoice, lanes_of_sums, packing_of
from ..matrix_tiles import LANES, MAX_SETTLED_BLOCKS, blocks_of, border_blocks, rows_of
from ..pack_a import run_of
from ..pattern import Contraction
from ..register_tile import Tile

PRODUCTS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "bf16x6": ((2, 0), (1, 0), (1, 1), (0, 1), (0, 2), (0, 0)),
    "bf16x3": ((1, 0), (0, 1), (0, 0)),
}
"""Pairs of limbs of a and b that are multiplied: small products first, and in steps that change one limb each."""
STEP = 32
"""Number of terms of K in a row of a tile."""
TILE = TILE_ROWS * STEP
"""Number of elements of a tile in scratch."""
MIN_EXPONENT = -103
"""Minimum exponent of two in range: no bit of a number from 2^-103 on is below 2^-126, so that all limbs are normal."""
MIN_RUN_TIME_EXPONENT = 16
"""Minimum power of two up to which values at run time must be in range."""
MIN_PASSES = 16
"""Minimum rows: with fewer, weights come from memory for hardly any work, and their limbs take more memory than the weights."""
MAX_DEPTH = 1024
"""Maximum terms of K for which rows are split at a time, if K may be cut."""


@dataclass(frozen=True, slots=True)
class LimbBlockShape:
    """The blocks of a product. `heights` are the rows of the tiles of a block of rows, `wide` is the number of tiles of columns
    that they are multiplied with. `depth` terms of K (all of K, or a divisor of K) are processed at a time, for
    `grouped_blocks` blocks of rows, and for `lines` values of the last outer axis."""
    products: tuple[tuple[int, int], ...]
    heights: tuple[int, ...]
    wide: int
    depth: int
    blocks: int
    grouped_blocks: int
    lines: int = 1

    @property
    def limbs(self) -> int:
        return 1 + max(i for i, _ in self.products)

    @property
    def rows(self) -> int:
        return sum(self.heights)

    @property
    def width(self) -> int:
        """Number of terms in a row of a tile."""
        return min(STEP, -(-self.depth // 2) * 2)

    @property
    def steps(self) -> int:
        return -(-self.depth // STEP)

    @property
    def halves(self) -> list[tuple[int, int, int]]:
        """First row, number of the tile, and number of rows, for each tile of rows."""
        return [(sum(self.heights[:i]), i, n) for i, n in enumerate(self.heights)]

    @property
    def tiles(self) -> tuple[tuple[int, int], ...]:
        """Rows and bytes a row of tiles 0 to 7: sums row by row, rows of a, columns of b."""
        count = len(self.heights)
        sums = [(n, TILE_BYTES) for n in self.heights for _ in range(self.wide)]
        return (*sums, *[(n, 2 * self.width) for n in self.heights], *[(self.width // 2, TILE_BYTES)] * (4 - count))

    @staticmethod
    def of(pattern: Contraction, target: Target, precision: str, by_rows: bool = False) -> LimbBlockShape:
        """Return the blocks of a product. With `by_rows` the first outer axis is not cut."""
        products = PRODUCTS[precision]
        limbs, rows = 1 + max(i for i, _ in products), rows_of(pattern)
        heights = (rows,) if rows <= TILE_ROWS else (-(-rows // 2), rows // 2)
        depth = even_depth(pattern.depth) if is_direct(pattern) else pattern.depth
        regular = pattern.rows // rows
        most = max(1, target.block_bytes * 3 // 4 // (-(-depth // STEP) * limbs * 2 * STEP * rows))
        grouped_blocks, lines = even(regular, min(most, regular)) if is_direct(pattern) else 1, 1
        if depth == pattern.depth and (last := last_outer(pattern, by_rows)) and pattern.rows % rows == 0 and regular <= most:
            grouped_blocks, lines = regular, even(last.extent, min(last.extent, most // regular))
        return LimbBlockShape(products, heights, 4 // len(heights), depth, pattern.depth // depth, grouped_blocks, lines)


def last_outer(pattern: Contraction, by_rows: bool) -> Axis | None:
    """Return the outer axis of which several values may be processed together, or None."""
    *others, last = pattern.outer or (None,)
    if last is None or last in pattern.batch or (by_rows and not others) or pattern.m is None:
        return None
    if any(w.index.coefficient(last) for w in pattern.nest.where) or last in pattern.nest.index.hidden:
        return None
    return last


def even_depth(depth: int) -> int:
    """Return all of K, or the largest divisor of K, in whole steps, that is not too deep."""
    steps = depth // STEP
    if depth <= MAX_DEPTH or depth % STEP:
        return depth
    each = next(n for n in range(MAX_DEPTH // STEP, 0, -1) if steps % n == 0)
    return each * STEP if 2 * each * STEP > MAX_DEPTH // 2 else depth


def even(count: int, most: int) -> int:
    """Return the largest divisor of `count` that is at most `most`, if it is more than half of `most`; else `most`."""
    return next((n for n in range(most, most // 2, -1) if count % n == 0), most)


# ---- choice ----------------------------------------------------------------------------------------------------------
def refusal(pattern: Contraction, target: Target, precision: str) -> str | None:
    """Return the reason why a contraction uses float32 although limbs are allowed; None if it uses limbs."""
    if "bfloat16" not in target.matrix_unit:
        return "this machine has no tiles of bfloat16"
    if not is_possible(pattern):
        return "its operands are not read along rows"
    if pattern.passes < MIN_PASSES:
        return "it has few rows"
    if TILE * 2 * 6 * -(-even_depth(pattern.depth) // STEP) > target.block_bytes:
        return "its rows are long"
    if cycles_of_limbs(pattern, target, precision) > cycles_of_floats(pattern, target):
        return "that is faster"
    return None if power_of(pattern) is not None else "its constants are out of range"


def is_possible(pattern: Contraction) -> bool:
    """True if rows of a can be split, by vectors along K or after a copy, and b can be packed."""
    if pattern.reduce.dtype != "float32" or pattern.inside or any(computed(x.index) for x in loads(pattern.b)):
        return False
    return is_direct(pattern) or (packs_rows(pattern) and is_constant(pattern.b))


def is_direct(pattern: Contraction) -> bool:
    """True if vectors of a can be read, or computed, along K."""
    (k, *others), m = pattern.reduce.axes, pattern.m
    found = loads(pattern.a)
    return not others and not pattern.reduce.where and bool(found) and all(
        x.index[0].coefficient(k) in (0, 1) and not computed(x.index) and k not in x.index[0].hidden and (
            m is None or m not in x.index[0].hidden) for x in found)


def packs_rows(pattern: Contraction) -> bool:
    """True if rows can be copied first, so that K is one run and conditions are settled."""
    x = pattern.a
    return (isinstance(x, Load) and x.dtype == "float32" and not computed(x.index)
            and x.index[0].coefficient(pattern.reduce.axes[-1]) == 1 and len(border_blocks(pattern)) <= MAX_SETTLED_BLOCKS)


def cycles_of_limbs(pattern: Contraction, target: Target, precision: str) -> float:
    """Return the cycles of 32 rows by limbs. A product of tiles takes one cycle for each row; the rest is measured."""
    steps, panels, shape = -(-pattern.depth // STEP), -(-pattern.n.extent // (2 * LANES)), LimbBlockShape.of(pattern, target,
                                                                                                             precision)
    products = len(PRODUCTS[precision]) * 4 * TILE_ROWS * 1.25
    split = pattern.depth / LANES * 32 * 12
    if not is_direct(pattern):
        run = math.prod(a.extent for a in run_of(cast(Load, pattern.a), pattern.reduce.axes, ()))
        split += pattern.depth / run * (-(-run // LANES) * 4 + 12) * 32
    far = pattern.n.extent * pattern.depth * 2 * shape.limbs / (shape.rows * shape.grouped_blocks * shape.lines)
    packed = 0.0 if is_constant(pattern.b) else 32 / pattern.passes * pattern.depth * pattern.n.extent / LANES * 22
    rate = target.costs.memory_bytes_per_cycle if is_constant(pattern.b) else target.costs.l3_bytes_per_cycle
    read = from_afar(pattern, far, 2 * shape.limbs, rate, target)
    return max(steps * panels * products, read) + split + packed + panels * 250


def from_afar(pattern: Contraction, nbytes: float, size: int, rate: float, target: Target) -> float:
    """Return the cycles of 32 rows to read `nbytes` bytes of columns for each row, at `rate` bytes a cycle, if the columns, of
    `size` bytes a number, exceed the second-level cache; else 0."""
    return 32 * nbytes / rate if pattern.n.extent * pattern.depth * size > target.block_bytes else 0.0


def cycles_of_floats(pattern: Contraction, target: Target) -> float:
    """Return the cycles of 32 rows in float32."""
    packed = 0.0 if is_constant(pattern.b) else 32 / pattern.passes * pattern.depth * pattern.n.extent / LANES
    products = 32 * pattern.depth * -(-pattern.n.extent // LANES) / target.fma_per_cycle * 1.1
    far = pattern.n.extent * pattern.depth * 4 / pattern.rows if pattern.rows < MIN_PASSES else 0.0  # with more, panels stay
    return max(products, from_afar(pattern, far, 4, target.costs.l3_bytes_per_cycle, target)) + packed


def power_of(pattern: Contraction) -> int | None:
    """Return the power of two up to which values of a (and of b, if it is not constant) may go, so that no sum overflows; None
    if b is constant, and out of range."""
    terms = math.log2(pattern.depth * 1.05)
    if not is_constant(pattern.b):
        return math.floor((127 - terms) / 2)
    bits = constants(pattern).view(np.uint32) & np.uint32(0x7FFF_FFFF)
    before = (bits - np.uint32(1)).min()  # so that 0 is not the least
    least, most = (np.array([before, bits.max()], np.uint32) + np.array([1, 0], np.uint32)).view(np.float32)
    if not np.isfinite(most) or 0 < least < 2.0**MIN_EXPONENT:
        return None
    largest = max(float(most), 2.0**MIN_EXPONENT)
    power = min(126, math.floor(127 - terms - math.log2(largest) - 0.01))
    return power if power >= MIN_RUN_TIME_EXPONENT and largest < 2.0**126 else None


def constants(pattern: Contraction) -> np.ndarray:
    """Return b as [batch, n, k]."""
    data = constant(pattern.b, (*pattern.batch, pattern.n, *pattern.reduce.axes))
    return np.asarray(data).reshape(-1, pattern.n.extent, pattern.depth).astype(np.float32)


def choose_limbs(pattern: Contraction, constraints: Constraints) -> ContractionChoice | None:
    """Return a choice with a block of tiles, in vectors of 16 sums, if the precision allows it; None for float32."""
    target, precision = constraints.target, constraints.precision
    if precision not in PRODUCTS or "bfloat16" not in target.matrix_unit or not is_possible(pattern):
        return None
    shape = LimbBlockShape.of(pattern, target, precision)
    tile = Tile(shape.rows, min(shape.wide, -(-pattern.n.extent // LANES)))
    return ContractionChoice(tile, lanes_of_sums(pattern, target), precision, packing_of(pattern), False)


# ---- blocks of rows --------------------------------------------------------------------------------------------------
def row_groups(pattern: Contraction, shape: LimbBlockShape) -> list[Tiles]:
    """Return the groups of blocks of rows that are processed together, with the rows of a group as the size. The last block may
    recompute some rows."""
    rows = shape.rows
    whole = chunks(pattern.rows // rows * rows, shape.grouped_blocks * rows)
    return whole + ([Tiles(pattern.rows - rows, rows, 1)] if pattern.rows % rows else [])


def row_blocks(pattern: Contraction, rows: int) -> list[Tiles]:
    """Return the blocks of rows; each block that meets conditions is separate."""
    return blocks_of(pattern.rows, rows, border_blocks(pattern))
