"""The cost model of code size, for all schedules that weigh lines of code against the cycles that the lines save.

A line of LLVM's text takes about a hundred thousand cycles to compile, and a program runs a thousand times for each
compilation, so a line must save a hundred cycles of a run. Large work gets all the code that makes it fast, small work gets
little code, and work in between may be slightly slower for less code.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ...runtime.records import dataclass
from ..elements.expression import Apply, Cast, Expr, is_float
from ..elements.traverse import loads
from ..graph.types import ITEM_SIZES

LINE_CYCLES = 100
"""Cycles of a run that a line of LLVM's text must save: the cycles to compile a line, spread over a thousand runs."""
SLOWDOWN_FRACTION, SLOWDOWN_CYCLES = 0.03, 5_000
"""Maximum slowdown of a kernel for less code: the larger of a fraction of its cycles and a number of cycles."""
LONG_CODE_LINES, LITTLE_WORK_CYCLES, LITTLE_WORK_SLOWDOWN_CYCLES = 250, 70_000, 10_000
"""Maximum slowdown in cycles, if the fastest code has more than `LONG_CODE_LINES` lines, with which a graph of one operator
takes too long to compile, and takes at most `LITTLE_WORK_CYCLES` cycles."""
NARROW_LINE_CYCLES, NARROW_SLOWDOWN_FRACTION, NARROW_SLOWDOWN_CYCLES = 4000, 0.25, 20_000
"""Cycles that a line must save, and maximum slowdown, of a kernel that reads floats narrower than it computes with. Each use
converts such a float: much of the kernel's code, and of its time, which no count of products includes."""
ENCODING_INSTRUCTIONS = {"bfloat16": 10, "float8_e5m2": 18, "float8_e4m3fn": 16}
DECODING_INSTRUCTIONS = {"bfloat16": 2, "float8_e5m2": 3, "float8_e4m3fn": 9}
"""Instructions that convert a vector of floats that no processor converts by itself, from and to float32. Counted."""
MULTIPLY_HIGH_INSTRUCTIONS = 14
"""Instructions that compute a vector of upper halves of products (exact rescaling). Counted."""
Choice = TypeVar("Choice")


def instructions(e: Expr) -> int:
    """Return the approximate number of instructions of an operation on a vector."""
    if isinstance(e, Apply) and e.primitive.startswith("multiply_high"):
        return MULTIPLY_HIGH_INSTRUCTIONS
    if isinstance(e, Cast) and not e.bits and e.dtype != e.arg.dtype:
        return ENCODING_INSTRUCTIONS.get(e.dtype, 1) + DECODING_INSTRUCTIONS.get(e.arg.dtype, 1) - 1
    return 1


def share_of(value: Expr) -> float:
    """Return the maximum slowdown, as a fraction of the cycles, of a kernel of this value for less code."""
    narrow = any(is_float(x.dtype) and ITEM_SIZES[x.dtype] < 4 for x in loads(value))
    return NARROW_SLOWDOWN_FRACTION if narrow else SLOWDOWN_FRACTION


def price_of(share: float) -> float:
    """Return the cycles of a run that a line must save, if the maximum slowdown is this fraction."""
    return LINE_CYCLES if share == SLOWDOWN_FRACTION else NARROW_LINE_CYCLES


def tolerated(cycles: float, share: float = SLOWDOWN_FRACTION, free: float = SLOWDOWN_CYCLES) -> float:
    """Return the cycles, at least `free`, that may be added to `cycles` for less code."""
    return max(share * cycles, free, NARROW_SLOWDOWN_CYCLES if share > SLOWDOWN_FRACTION else 0)


def cheapest(choices: Iterable[Choice], cycles: Callable[[Choice], float], lines: Callable[[Choice], float], passes: float = 1,
             share: float = SLOWDOWN_FRACTION, free: float = SLOWDOWN_CYCLES, long: bool = False, dear: float = 1) -> Choice:
    """Return the choice with the least cost, cycles and lines together, of those that are not much slower than the fastest.
    With `long`, more slowdown is allowed if the fastest is long code for little work. The work runs `passes` times, in the
    choice's cycles each. `dear` is the price of a line in relation to a host, at most 1."""
    found = [(cycles(choice) * passes, choice) for choice in choices]
    least, fastest = min(found, key=lambda f: f[0])
    if long and least <= LITTLE_WORK_CYCLES and lines(fastest) > LONG_CODE_LINES:
        free = max(free, LITTLE_WORK_SLOWDOWN_CYCLES)
    allowed, price = least + tolerated(least, share, free * dear), price_of(share) * dear
    return min((f for f in found if f[0] <= allowed), key=lambda f: f[0] + price * lines(f[1]))[1]


LOOP_LINES, SUM_LINES, ROW_LINES, VECTOR_LINES = 40, 6, 4, 3
"""Lines of LLVM's text of a contraction tile, counted: for its loops; for each sum, which loops carry and which is stored; for
an element of a row, which is broadcast to all lanes; for a vector of a panel."""


@dataclass(frozen=True, slots=True)
class TileCode:
    """Parameters of the code size of a tile: `passes` K steps over the whole matrix, `row` operations for each element of a
    row, `result` operations for each vector of results, `taps` window positions with separate code at a border, `last` steps
    of the last axis, and `share`, the maximum slowdown for less code, as a fraction of the cycles."""
    passes: int
    row: int
    result: int
    taps: int = 1
    last: int = 1
    share: float = SLOWDOWN_FRACTION

    def lines(self, rows: int, vectors: int) -> int:
        """Return the approximate number of lines of a tile's code."""
        return LOOP_LINES + rows * vectors * (SUM_LINES + self.result) + self.step(rows, vectors)

    def step(self, rows: int, vectors: int) -> int:
        """Return the number of lines of a tile's code that belong to one K step."""
        return rows * vectors + rows * (ROW_LINES + self.row) + VECTOR_LINES * vectors

    def border(self, rows: int, vectors: int) -> int:
        """Return the number of lines of a border tile whose window is unrolled."""
        return self.lines(rows, vectors) + (self.taps - 1) * (self.step(rows, vectors) + 2 * rows * vectors)
