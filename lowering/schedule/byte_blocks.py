"""When a window of bytes (`byte_window`) is done by vectors full of bytes, four vectors of sums at a time, and in which blocks.
A choice by form and target; `byte_block_loops` writes the loops.

Bytes of four taps are put side by side by two rounds of shuffles, each inside of 16 bytes, which leaves the sums in an order of
their own; packing sums to bytes is the same turned round. So whatever is constant for a column (weights, what sums start
from, factors) is laid out in that order while compiling, and nothing has to be put in order when running.

Columns that do not fill a vector are done for several rows of a tile at a time, side by side.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..elements.affine import Axis
from ..elements.expression import Apply, Cast, Const, Expr, Guard, IndexValue, Load, Reduce
from ..elements.traverse import children
from ..native.target import Target
from .code_size import LINE_CYCLES
from .nest import Nest
from .tiles import Tiles

GROUP_BYTES = 16
"""Shuffles and packing stay inside of so many bytes."""
VECTORS = 4
"""Of sums, for a vector of bytes."""
SAVED_CYCLES, BLOCK_LINES = 2, 300
"""Cycles of a vector of outputs that blocks save, and the lines of one more form of block."""


@dataclass(frozen=True, slots=True)
class Band:
    """`count` blocks from column `start` on, of so many columns and `side` rows of a tile side by side; the first slot, of
    sums in their order, that belongs to it."""
    start: int
    columns: int
    count: int
    side: int
    slot: int

    @property
    def size(self) -> int:
        """Bytes of a block."""
        return self.columns * self.side

    @property
    def end(self) -> int:
        return self.start + self.columns * self.count

    @property
    def slots(self) -> int:
        return self.size * self.count

    def order(self) -> list[int]:
        """The column of each slot."""
        groups = range(0, self.size, GROUP_BYTES)
        block = [g + GROUP_BYTES // VECTORS * v + i for v in range(VECTORS) for g in groups
                 for i in range(GROUP_BYTES // VECTORS)]
        return [self.start + number * self.columns + place % self.columns for number in range(self.count) for place in block]

    def __str__(self) -> str:
        beside = f" by {self.side} rows" if self.side > 1 else ""
        return f"{self.count} blocks of {self.columns}{beside}"


def bands(nest: Nest, known: Expr, n: Axis, lines: Sequence[Tiles], target: Target) -> tuple[Band, ...]:
    """The blocks of the columns, from the first one on; none where outputs are not packed sums. `lines` are the tiles of rows,
    `known` is what sums are the values of."""
    size = target.vector_bytes
    if size < 2 * GROUP_BYTES or narrow(nest, known, n) is None or nest.index.coefficient(n) != 1 or n in nest.index.hidden:
        return ()
    result, start, slot = list[Band](), 0, 0
    others = math.prod(a.extent for a in nest.axes) // n.extent
    for side in (1, 2, 4):
        columns = size // side
        count = (n.extent - start) // columns
        worth = SAVED_CYCLES * others * count * columns * VECTORS // size >= LINE_CYCLES * BLOCK_LINES
        if columns < GROUP_BYTES or not count or any(t.size % side for t in lines) or not (side == 1 or worth):
            continue
        result.append(Band(start, columns, count, side, slot))
        start, slot = result[-1].end, slot + result[-1].slots
    return tuple(result)


def narrow(nest: Nest, known: Expr, n: Axis) -> Expr | None:
    """What packing makes the outputs of, which clips by itself: an int32 that is known from the sums and from constants of the
    column alone. None where there is no such."""
    match nest.value:
        case Cast(Apply("min", (Apply("max", (x, Const(low))), Const(high))) as clipped, "int8", False) if (
                clipped.dtype == "int32" and low >= -128 and high <= 127):
            value = x if (low, high) == (-128, 127) else clipped
            return value if found_beside(value, known, n) is not None else None
    return None


def found_beside(value: Expr, known: Expr, n: Axis) -> list[Load] | None:
    """The constants of a column, beside what is known; None where there is anything else than arithmetic."""
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
