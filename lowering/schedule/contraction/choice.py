"""The choice of a contraction's lowering, as data, and the criteria of all choices: pattern, machine, and code size."""
from __future__ import annotations

import math
from dataclasses import replace

from ....runtime.records import dataclass
from ...elements.expression import Load, is_float
from ...elements.traverse import loads, loads_beside
from ...graph.types import ITEM_SIZES
from ...target.target import Target
from ..code_size_model import TileCode, share_of
from ..nest.constant_data import constant, is_constant
from ..nest.padding_conditions import PaddingConditions
from ..nest.tile_axis import Cut, pieces
from ..vectorize.epilogue import operations
from .cache_blocking import CacheBlocks
from .int8.byte_factors import bytes_of
from .pack_b import have_four_bits
from .pattern import Contraction
from .register_tile import Tile, of_sums, panels

MAX_PADDED_PLACES = 512
"""Maximum taps of a padded kernel for products of four bytes, where each tap has code of its own."""
MIN_OUTER_ITERATIONS = 16
"""Minimum iterations of the outer loops that are enough to divide among threads."""
MAX_UNDIVIDED_TERMS = 30_000
"""Maximum terms per lane of a product that threads do not divide: two of `Costs.task_grain_cycles`."""


@dataclass(frozen=True, slots=True)
class ContractionChoice:
    """The lowering of a contraction. `step` is the kind of a step of K: "fma", "multiply", "dot2", "dot4", "dot8", "dual",
    "pairs", "bytes", "dot", "widen", "tiles", "bf16x6", "bf16x3". `packing` is the time when b is packed: "compiling",
    "running" or "never". With `columns_first` each panel stays in the cache while all rows, or those of a `group`, pass. With
    `prefetching`, panels are prefetched."""
    tile: Tile
    lanes: int
    step: str
    packing: str
    columns_first: bool
    blocks: CacheBlocks | None = None
    prefetching: bool = False
    group: int | None = None
    """Rows of a product of bytes that are packed together. None: all rows if columns come first, else those of a tile."""
    wide_weights: bool = False
    """True if byte weights are stored as 16-bit numbers."""

    def cut(self, columns: int, target: Target) -> Cut:
        """Return the panels of the columns, and the vectors of each panel."""
        least = min(4, self.lanes) if self.step in ("dot2", "dot4", "dot8") else 1
        return [(t, pieces(t.size, self.lanes, target.has_masked, least)) for t in panels(columns, self.lanes, self.tile)]

    def __str__(self) -> str:
        when = {"compiling": "packed while compiling", "running": "packed while running", "never": "not packed"}
        within = f" in groups of {self.group} rows" if self.group else ""
        order = str(self.blocks) if self.blocks else ("columns" if self.columns_first else "rows") + " outermost" + within
        tile = f"tiles of {self.tile.rows} rows by {self.tile.vectors} vectors of {self.lanes}"
        prefetching = ", panels prefetched" if self.prefetching else ""
        wide = " as int16" if self.wide_weights else ""
        return f"contraction: {self.step}, {tile}, {when[self.packing]}{wide}, {order}{prefetching}"


def in_pairs(pattern: Contraction, target: Target) -> bool:
    """True if the weights of two neighbouring columns fit in one byte."""
    if not target.keeps_int4 or is_float(pattern.reduce.dtype) or pattern.n.extent % 2:
        return False
    return have_four_bits(constant(pattern.b, (*pattern.batch, pattern.n, *pattern.reduce.axes)))


def lanes_of_sums(pattern: Contraction, target: Target) -> int:
    return target.lanes(ITEM_SIZES[pattern.reduce.dtype])


def packing_of(pattern: Contraction) -> str:
    """Return the time when b is packed, if it is packed."""
    return "compiling" if is_constant(pattern.b) else "running"


def has_byte_products(pattern: Contraction, target: Target) -> bool:
    """True if each lane computes four products of bytes at a time."""
    return (target.dot_product is not None and bytes_of(pattern) is not None and lanes_of_sums(pattern, target) >= 4
            and places_with_conditions(pattern) <= MAX_PADDED_PLACES)


def machine(pattern: Contraction, step: str, target: Target) -> Target:
    """Return the target as products of this step see it: products of bytes share their registers with pointers."""
    if step == "bytes":
        return replace(target, vector_registers=target.integer_registers)
    return of_sums(pattern.reduce.dtype, target) if step == "multiply" else target


def code_of(pattern: Contraction, group: int = 1) -> TileCode:
    """Return the parameters of the code size of a tile."""
    steps = pattern.depth * pattern.iterations * math.prod(a.extent for a in pattern.outer)
    taps = math.prod(a.extent for a in PaddingConditions.of(pattern.reduce, pattern.m, pattern.n).tapped)
    last = pattern.reduce.axes[-1].extent if group == 1 else -(-pattern.depth // group)
    return TileCode(steps, operations(pattern.a), operations(pattern.nest.value, pattern.reduce), taps, last,
                    share_of(pattern.nest.value))


def places_with_conditions(pattern: Contraction) -> int:
    """Return the maximum number of positions of K for which "dot4" needs code of their own, because of conditions."""
    return math.prod(a.extent for a in pattern.reduce.axes if any(w.index.coefficient(a) for w in pattern.reduce.where))


def may_repeat(pattern: Contraction, lanes: int) -> bool:
    """True if rows may be computed twice: their outputs cannot overlay anything that is read with the sums, and iterations of
    a loop may overlap."""
    read = [x for x in loads_beside(pattern.nest.value, pattern.reduce) if x.buffer.data is None]
    return has_outer_iterations(pattern, lanes) and not any(pattern.m in x.index[0].axes for x in read)


def has_outer_iterations(pattern: Contraction, lanes: int) -> bool:
    """True if threads can divide other loops than the loop over rows, or there is little work to divide."""
    iterations = pattern.iterations * math.prod(a.extent for a in pattern.outer)
    return (
        iterations >= MIN_OUTER_ITERATIONS
        or iterations * pattern.rows * pattern.n.extent * pattern.depth <= MAX_UNDIVIDED_TERMS * lanes
    )


def aliased(pattern: Contraction, target: Target) -> bool:
    """True if all rows of a tile map to the same few sets of the first-level cache, and exceed the second-level cache."""
    stride = target.costs.cache_set_stride_bytes
    return pattern.m is not None and any(x.index[0].coefficient(pattern.m) * ITEM_SIZES[x.dtype] % stride == 0
                                      and bytes_read(pattern, x) > target.l2_bytes for x in loads(pattern.a))


def bytes_read(pattern: Contraction, x: Load) -> int:
    """Return the maximum number of bytes of a buffer that all rows read."""
    return min(x.buffer.nbytes, pattern.passes * pattern.depth * ITEM_SIZES[x.dtype])
