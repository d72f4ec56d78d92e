"""Scales of a picture: bytes to height, columns to width, and where their labels stand."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .columns import Columns
from .text import Report

KIB = 1 << 10

LEFT, RIGHT, WIDTH = 62, 132, 1000
"""Margins and width of a picture, in its own units."""

LABEL_DISTANCE = 30
"""Least distance between two labels of the time axis."""


@dataclass(frozen=True, slots=True)
class ByteScale:
    """Bytes from 0 to `most`, upwards from `bottom` to `top`."""
    most: int
    top: float
    bottom: float

    def y(self, nbytes: float) -> float:
        return self.bottom - (self.bottom - self.top) * nbytes / max(self.most, 1)

    @property
    def unit(self) -> str:
        return "KiB" if self.most >= KIB else "bytes"

    def ticks(self, count: int) -> list[int]:
        """Round numbers of bytes, at most `count` steps."""
        step = 1
        while self.most / step > count:
            step *= 2
        return list(range(0, self.most + 1, step))

    def label(self, nbytes: int) -> str:
        return f"{nbytes / KIB:,.10g}" if self.unit == "KiB" else str(nbytes)


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Columns from left to right."""
    columns: Columns

    @property
    def step(self) -> float:
        """Width of a column."""
        return (WIDTH - LEFT - RIGHT) / max(len(self.columns), 1)

    def x(self, column: float) -> float:
        return LEFT + self.step * column


def kernel_labels(report: Report, scale: TimeScale) -> Iterator[tuple[float, str]]:
    """Where the numbers of kernels stand: in the middle of their columns, not too near to each other, none in stretches by
    rows, which have a label of their own."""
    last = -1e9
    taken = {c for (first, end), _ in scale.columns.stretches for c in range(first, end + 1)}
    for column, (tick, _) in enumerate(scale.columns.spans):
        kernel, x = report.timeline[tick].kernel, scale.x(column + 0.5)
        if kernel is not None and column not in taken and x - last >= LABEL_DISTANCE:
            last = x
            yield x, str(kernel)


def stretch_labels(report: Report, scale: TimeScale) -> Iterator[tuple[float, float, str]]:
    """From where to where kernels run by rows, and what to write there."""
    for (first, end), count in scale.columns.stretches:
        start, stop = scale.x(first), scale.x(end + 1)
        kernels = [step.kernel for tick in (scale.columns.spans[first][0], scale.columns.spans[end][1])
                   for step in report.timeline[tick:tick + 1]]
        inside = [s.kernel for s in report.timeline[scale.columns.spans[first][0]:scale.columns.spans[end][1] + 1]
                  if s.kernel is not None]
        low, high = min(inside, default=kernels[0]), max(inside, default=kernels[0])
        texts = (f"kernels {low} to {high} by rows, {count:,} steps", f"{low}–{high} by rows", f"{low}–{high}", "")
        yield start, stop, next(t for t in texts if len(t) * 5.8 <= stop - start or not t)
