"""What code costs: a rule for all schedules that weigh the size of code against the cycles it saves.

A line of LLVM's text takes about as long to compile as a hundred thousand cycles, and a program is run a thousand times for
each time that it is compiled: so that a line must save a hundred cycles of a run. Large work has all the code that makes it
fast, and what is between is at most a little slower for less code; small work has little code.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ...runtime.records import dataclass
from ..elements.expression import Apply, Cast, Expr, is_float
from ..elements.traverse import loads
from ..graph.types import ITEM_SIZES

LINE_CYCLES = 100
"""Cycles of a run that a line of LLVM's text must save: what it takes to compile one, over a thousand runs."""
SLOWDOWN_FRACTION, SLOWDOWN_CYCLES = 0.03, 5_000
"""How much longer a kernel may take for less code, in relation or in cycles."""
LONG_CODE_LINES, LITTLE_WORK_CYCLES, LITTLE_WORK_SLOWDOWN_CYCLES = 250, 70_000, 10_000
"""Where the fastest has more lines than this, with which a graph of one operator takes too long to compile, and takes no more
cycles than these: how many may be added."""
NARROW_LINE_CYCLES, NARROW_SLOWDOWN_FRACTION, NARROW_SLOWDOWN_CYCLES = 4000, 0.25, 20_000
"""The same where it reads floats narrower than it computes with: each is converted at each use, which is much of its code,
and of its time, too, that no count of products tells."""
ENCODING_INSTRUCTIONS = {"bfloat16": 10, "float8_e5m2": 18, "float8_e4m3fn": 16}
DECODING_INSTRUCTIONS = {"bfloat16": 2, "float8_e5m2": 3, "float8_e4m3fn": 9}
"""For a vector of floats that no processor converts by itself, from and to float32. Counted."""
MULTIPLY_HIGH_INSTRUCTIONS = 14
"""For a vector of upper halves of products (exact rescaling). Counted."""
Choice = TypeVar("Choice")


def instructions(e: Expr) -> int:
    """About how many an operation on a vector takes."""
    if isinstance(e, Apply) and e.primitive.startswith("multiply_high"):
        return MULTIPLY_HIGH_INSTRUCTIONS
    if isinstance(e, Cast) and not e.bits and e.dtype != e.arg.dtype:
        return ENCODING_INSTRUCTIONS.get(e.dtype, 1) + DECODING_INSTRUCTIONS.get(e.arg.dtype, 1) - 1
    return 1


def share_of(value: Expr) -> float:
    """How much longer, in relation, a kernel of this value may take for less code."""
    narrow = any(is_float(x.dtype) and ITEM_SIZES[x.dtype] < 4 for x in loads(value))
    return NARROW_SLOWDOWN_FRACTION if narrow else SLOWDOWN_FRACTION


def price_of(share: float) -> float:
    """Cycles of a run that a line must save, where all may take so much longer."""
    return LINE_CYCLES if share == SLOWDOWN_FRACTION else NARROW_LINE_CYCLES


def tolerated(cycles: float, share: float = SLOWDOWN_FRACTION, free: float = SLOWDOWN_CYCLES) -> float:
    """Cycles that may be added to these for less code, `free` ones at least."""
    return max(share * cycles, free, NARROW_SLOWDOWN_CYCLES if share > SLOWDOWN_FRACTION else 0)


def cheapest(choices: Iterable[Choice], cycles: Callable[[Choice], float], lines: Callable[[Choice], float], passes: float = 1,
             share: float = SLOWDOWN_FRACTION, free: float = SLOWDOWN_CYCLES, long: bool = False, dear: float = 1) -> Choice:
    """The choice that costs least, its cycles and its lines, of those that are not much slower than the fastest; somewhat more
    where that is `long` for its work. All is done `passes` times in as many cycles. Lines are as `dear` as on a host,
    or less."""
    found = [(cycles(choice) * passes, choice) for choice in choices]
    least, fastest = min(found, key=lambda f: f[0])
    if long and least <= LITTLE_WORK_CYCLES and lines(fastest) > LONG_CODE_LINES:
        free = max(free, LITTLE_WORK_SLOWDOWN_CYCLES)
    allowed, price = least + tolerated(least, share, free * dear), price_of(share) * dear
    return min((f for f in found if f[0] <= allowed), key=lambda f: f[0] + price * lines(f[1]))[1]


LOOP_LINES, SUM_LINES, ROW_LINES, VECTOR_LINES = 40, 6, 4, 3
"""Lines of LLVM's text of a tile of a contraction, counted: for its loops; for each sum, which loops carry and which is stored;
for an element of a row, which goes to all lanes; for a vector of a panel."""


@dataclass(frozen=True, slots=True)
class TileCode:
    """How many steps of K there are over the whole matrix, and how many operations for each element of a row, and for each
    vector of results; how many places of a window have code of their own at a border, and how many steps the last axis has;
    how much longer all may take for less code."""
    passes: int
    row: int
    result: int
    taps: int = 1
    last: int = 1
    share: float = SLOWDOWN_FRACTION

    def lines(self, rows: int, vectors: int) -> int:
        """About how many lines the code of a tile has."""
        return LOOP_LINES + rows * vectors * (SUM_LINES + self.result) + self.step(rows, vectors)

    def step(self, rows: int, vectors: int) -> int:
        """Of these, those of one step of K."""
        return rows * vectors + rows * (ROW_LINES + self.row) + VECTOR_LINES * vectors

    def border(self, rows: int, vectors: int) -> int:
        """Of a tile at a border whose window is unrolled."""
        return self.lines(rows, vectors) + (self.taps - 1) * (self.step(rows, vectors) + 2 * rows * vectors)
