"""The choice of blocks for a window of bytes (`int8_window`) that is computed by full vectors of bytes, four vectors of sums at
a time, by pattern and target; `int8_window_loops` writes the loops.

Two rounds of shuffles within 16 bytes interleave the bytes of four taps, which leaves the sums in a permuted order; packing
sums to bytes inverts that permutation. So all constants of a column (weights, initial sums, factors) are laid out in that order
at compile time, and nothing is reordered at run time.

Columns that fill half a vector are computed for two rows of a tile at a time, side by side.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ....runtime.records import dataclass
from ...elements.affine import Axis
from ...elements.expression import Expr, Guard, IndexValue, Load, Reduce
from ...elements.traverse import children
from ...graph.types import ITEM_SIZES
from ...target.target import Target
from ..code_size_model import LINE_CYCLES
from ..nest.loop_nest import Nest
from ..nest.tile_axis import Tiles
from ..vectorize.saturating_pack import GROUP_BYTES, unclipped

SUM_VECTORS = 4
"""Number of vectors of sums for one vector of bytes."""
MIN_COLUMNS = 8
"""Minimum columns of a row of a block: fewer bytes are no vector load."""
SIDES = (1, 2)
"""Numbers of rows of a tile that are tried side by side."""
MIN_ROWS, MAX_ROWS = 4, 8
"""Minimum and maximum rows of a tile, one below the other: neighbouring rows share words."""
MAX_SUM_BYTES_PER_RESULT_BYTE = 1
"""Maximum bytes of spilled sums for each byte of the result: in small models a step computes less than the sums need."""
SAVED_VECTOR_CYCLES, ROW_LINES = 2, 40
"""Cycles that blocks save for each vector of outputs, and lines of LLVM's text for a row of a block, less the lines that blocks
save. Chosen."""


@dataclass(frozen=True, slots=True)
class Band:
    """`count` blocks from column `start` on, each of `columns` columns and `side` rows of a tile. Slots number the sums in
    their permuted order."""
    start: int
    columns: int
    count: int
    side: int

    @property
    def size(self) -> int:
        """Number of bytes of a block."""
        return self.columns * self.side

    @property
    def end(self) -> int:
        return self.start + self.columns * self.count

    def order(self) -> list[int]:
        """Return the column of each slot."""
        groups = range(0, self.size, GROUP_BYTES)
        block = [g + GROUP_BYTES // SUM_VECTORS * v + i for v in range(SUM_VECTORS) for g in groups
                 for i in range(GROUP_BYTES // SUM_VECTORS)]
        return [self.start + number * self.columns + place % self.columns for number in range(self.count) for place in block]

    def __str__(self) -> str:
        beside = f" by {self.side} rows" if self.side > 1 else ""
        return f"{self.count} blocks of {self.columns}{beside}"


def choose(nest: Nest, known: Expr, n: Axis, lines_of: Callable[[int], Sequence[Tiles] | None], target: Target
           ) -> tuple[int, tuple[Band, ...]] | None:
    """Return the rows of a tile and the blocks of the columns, from the first column on; None if outputs are not packed sums.
    `lines_of` cuts rows into tiles, `known` is the expression that sums are the values of. Blocks of one shape cover all
    columns, unless there is enough work for additional code."""
    size = target.vector_bytes
    is_contiguous = nest.index.coefficient(n) == 1 and n not in nest.index.hidden
    if not target.packs or not is_contiguous or narrow(nest, known, n) is None:
        return None
    for side in SIDES:
        columns = size // side
        if columns >= MIN_COLUMNS and n.extent % columns == 0 and (rows := few(nest, size, least_code(lines_of, side))):
            return rows, (Band(0, columns, n.extent // columns, side),)
    vectors = math.prod(a.extent for a in nest.axes) * SUM_VECTORS // size
    if n.extent < size or not (rows := few(nest, size, least_code(lines_of, 1))):
        return None
    code = sum(t.size for t in lines_of(rows) or ()) * ROW_LINES
    return (rows, (Band(0, size, n.extent // size, 1),)) if SAVED_VECTOR_CYCLES * vectors >= LINE_CYCLES * code else None


def few(nest: Nest, size: int, rows: int) -> int:
    """Return `rows` if their sums, in vectors of `size` bytes, need little memory compared with the result; else 0."""
    return rows if rows * size * ITEM_SIZES["int32"] <= MAX_SUM_BYTES_PER_RESULT_BYTE * nest.out.nbytes else 0


def least_code(lines_of: Callable[[int], Sequence[Tiles] | None], side: int) -> int:
    """Return the rows of a tile, `side` of them side by side, for which all shapes of tiles together have the fewest rows of
    code; if equal, the largest tile. Return 0 if there are no such tiles."""
    cut = [(rows, lines) for rows in range(MIN_ROWS * side, MAX_ROWS * side + 1) if (lines := lines_of(rows))]
    found = [(sum(t.size for t in lines), -rows) for rows, lines in cut if not any(t.size % side for t in lines)]
    return -min(found)[1] if found else 0


def narrow(nest: Nest, known: Expr, n: Axis) -> Expr | None:
    """Return the int32 that packing clips to the outputs, computed from the sums and from constants of the column alone; None
    if there is no such value."""
    value = unclipped(nest.value)
    return value if value is not None and found_beside(value, known, n) is not None else None


def found_beside(value: Expr, known: Expr, n: Axis) -> list[Load] | None:
    """Return the constants of a column that `value` reads beside `known`; None if it contains anything but arithmetic."""
    found, seen, stack = list[Load](), {id(known)}, [value]
    while stack:
        e = stack.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        match e:
            case Load(buffer, (i,)) if buffer.data is not None and i.axes <= {n} and not i.hidden:
                found.append(e)
            case Load() | Guard() | Reduce() | IndexValue():
                return None
        stack.extend(children(e))
    return found
