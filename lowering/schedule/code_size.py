"""What code costs: a rule for all schedules that weigh the size of code against the cycles it saves.

A line of LLVM's text takes about as long to compile as a hundred thousand cycles, and a program is run a thousand times for
each time that it is compiled: so that a line must save a hundred cycles of a run. Large work has all the code that makes it
fast; small work has little.
"""
from __future__ import annotations

from dataclasses import dataclass

LINE_CYCLES = 100
"""Cycles of a run that a line of code must save."""
TURN_LINES, SUM_LINES, ROW_LINES, VECTOR_LINES = 40, 7, 4, 3
"""Lines of a tile of a contraction: for its loops; for each sum, which loops carry and which is stored; for an element of a
row, which goes to all lanes; for a vector of a panel."""


@dataclass(frozen=True, slots=True)
class Code:
    """The price of a line, in cycles of one step of K over the whole matrix, and how many operations there are for each
    element of a row, and for each vector of results."""
    price: float
    row: int
    result: int

    def lines(self, rows: int, vectors: int) -> int:
        """About how many lines the code of a tile has."""
        return TURN_LINES + rows * vectors * (SUM_LINES + self.result) + rows * (ROW_LINES + self.row) + VECTOR_LINES * vectors
