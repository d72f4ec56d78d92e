"""Cache blocking of a large matrix product (GEMM), so that data that is read again stays in a cache. K is cut into blocks (KC
of BLIS), for which the rows of a register tile fit the first-level cache, and the columns into blocks (NC) whose panels fit the
second-level cache. A heuristic by pattern and target; `blocked_loops` writes the loops.
"""
from __future__ import annotations

from ....runtime.records import dataclass
from ...elements.expression import Load, is_float
from ...elements.traverse import loads
from ...graph.types import ITEM_SIZES
from ...target.costs import Costs
from ...target.target import Target
from .pattern import Contraction
from .register_tile import Tile

MIN_RECOMPUTED_PANELS = 3
"""Minimum number of panels for which recomputing the values of a is too much."""
MIN_UNPACKED_TERMS, UNPACKED_TERMS = 8, 32
"""Terms of K in a block if b is not packed: all columns of each term are read, because contiguous reads are fastest. The first
number is for blocks in which nothing is read again."""


@dataclass(frozen=True, slots=True)
class CacheBlocks:
    """Blocks of `depth` elements of K and `panels` panels of columns. `copied` is the axis, "k" or "m", along which the rows of
    a tile are contiguous in a copy made first, or None without a copy. With `filled`, panels that are not constant are packed
    first."""
    depth: int
    panels: int
    copied: str | None = None
    filled: bool = True

    def __str__(self) -> str:
        rows = f", rows copied along {self.copied}" if self.copied else ""
        return f"blocks of {self.depth} terms by {self.panels} panels{rows}"


def choose_blocks(pattern: Contraction, tile: Tile, lanes: int, constant: bool, target: Target) -> CacheBlocks | None:
    """Return blocks if b is large for the second-level cache, and a is large, too, or b is not constant; or if many panels
    would recompute a; else None. With few rows b is read in place."""
    size = ITEM_SIZES[pattern.reduce.dtype]
    a, b = pattern.rows * pattern.depth * size, pattern.n.extent * pattern.depth * size
    if not can_block(pattern, lanes, constant, target):
        return None
    few, width, large = pattern.rows < 4 * tile.rows, tile.vectors * lanes, b > target.l2_bytes // 3
    if few and not constant and large and contiguous(pattern):
        terms = MIN_UNPACKED_TERMS if pattern.rows <= tile.rows else UNPACKED_TERMS
        panels = target.block_bytes // (max(pattern.rows, terms) * width * size)
        return CacheBlocks(terms, even(-(-pattern.n.extent // width), max(1, panels), 1), filled=False)
    again = (
        is_float(pattern.reduce.dtype) and not isinstance(pattern.a, Load) and pattern.n.extent >= MIN_RECOMPUTED_PANELS * width
    )
    if not (large and not constant) and (few or not (again or (large and a > target.l2_bytes // 4))):
        return None
    most = max(lanes, target.l1_bytes * 5 // 8 // (tile.rows * size))
    depth = even(pattern.depth, most, lanes)
    panels = even(-(-pattern.n.extent // width), max(1, target.block_bytes // (depth * width * size)), 1)
    return CacheBlocks(depth, panels, copied(pattern, tile, target.costs))


def can_block(pattern: Contraction, lanes: int, constant: bool, target: Target) -> bool:
    """True if K is one axis, every sum covers all of K, and panels are packed for one product only."""
    whole = len(pattern.reduce.axes) == 1 and not pattern.reduce.where and not pattern.nest.where
    return whole and lanes > 1 and target.has_cache and (constant or pattern.outer == pattern.batch)


def contiguous(pattern: Contraction) -> bool:
    """True if columns of b are contiguous in memory."""
    return all(x.index[0].coefficient(pattern.n) == 1 and not x.index[0].hidden for x in loads(pattern.b))


def even(extent: int, most: int, step: int) -> int:
    """Return the size, a multiple of `step`, of as few blocks as possible of about at most `most`."""
    count = -(-extent // most)
    size = -(-extent // count)
    return -(-size // step) * step


def copied(pattern: Contraction, tile: Tile, costs: Costs) -> str | None:
    """Return the axis along which rows are copied, or None if rows are better read in place. Copies are better if a value is
    computed, if K is not contiguous in memory, or if rows map to the same cache sets."""
    (k,) = pattern.reduce.axes
    if pattern.m is None:
        return None
    found = loads(pattern.a)
    if any(x.index[0].coefficient(k) not in (0, 1) for x in found):
        return "m" if all(x.index[0].coefficient(pattern.m) in (0, 1) for x in found) else "k"
    crowded = any(most_in_a_set(x.index[0].coefficient(pattern.m) * ITEM_SIZES[x.dtype], tile.rows, costs) > max(
        4, tile.rows // 2) for x in found)
    return "k" if crowded or not isinstance(pattern.a, Load) else None


def most_in_a_set(stride: int, rows: int, costs: Costs) -> int:
    """Return the maximum number of cache lines in one set, of the lines in which `rows` rows, `stride` bytes apart, begin."""
    lines = {r * stride // costs.cache_line_bytes for r in range(rows)}
    sets = [line % (costs.cache_set_stride_bytes // costs.cache_line_bytes) for line in lines]
    return max(sets.count(s) for s in sets)
