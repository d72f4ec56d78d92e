"""Scales of a picture: bytes to height, columns to width, and the positions of their labels. A picture is drawn in three sizes,
for a phone, for paper and for a desktop, because shrinking a picture shrinks its letters, too.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .columns import Columns
from .figures import Figures
from .lettering import Label, width

KIB = 1 << 10

RIGHT = 12
"""Margin of a picture, in its own units."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A size of a picture: its width and the heights of its parts in its own units, which are about pixels; the maximum number
    of rectangles, and of steps of the scale of offsets."""
    name: str
    width: int
    plan_height: int
    curve_height: int
    most_buffers: int
    ticks: int


LAYOUTS = (Layout("wide", 1040, 350, 130, 800, 8), Layout("medium", 680, 250, 90, 400, 8),
           Layout("narrow", 330, 260, 90, 200, 6))
"""For desktops, for paper and tablets, for phones; `page.css` selects the one to show."""


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
        """Return round numbers of bytes, at most `count` steps."""
        step = 1
        while self.most / step > count:
            step *= 2
        return list(range(0, self.most + 1, step))

    def label(self, nbytes: int) -> str:
        return f"{nbytes / KIB:,.10g}" if self.unit == "KiB" else str(nbytes)

    def margin(self, count: int) -> float:
        """Return the width of the labels to the left."""
        return max(width(self.label(nbytes)) for nbytes in self.ticks(count)) + 10


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Columns from `left` to `right`."""
    columns: Columns
    left: float
    right: float

    @property
    def step(self) -> float:
        """Width of a column."""
        return (self.right - self.left) / max(len(self.columns), 1)

    def x(self, column: float) -> float:
        return self.left + self.step * column


def kernel_labels(report: Figures, scale: TimeScale, y: float) -> Iterator[Label]:
    """Yield numbers of kernels, in the middle of their columns; none in stretches by rows, which have a label of their own."""
    taken = {c for (first, end), _ in scale.columns.stretches for c in range(first, end + 1)}
    for column, (tick, _) in enumerate(scale.columns.spans):
        kernel = report.timeline[tick].kernel
        if kernel is not None and column not in taken:
            yield Label(str(kernel), scale.x(column + 0.5), y, "middle")


def stretch_labels(report: Figures, scale: TimeScale, y: float) -> Iterator[tuple[float, float, list[Label]]]:
    """Yield the start and end of each stretch of kernels that run by rows, with the possible labels, the longest first."""
    for (first, end), count in scale.columns.stretches:
        start, stop = scale.x(first), scale.x(end + 1)
        begin, last = scale.columns.spans[first][0], scale.columns.spans[end][1]
        inside = [s.kernel for s in report.timeline[begin:last + 1] if s.kernel is not None] or [0]
        low, high = min(inside), max(inside)
        texts = (f"kernels {low} to {high} by rows, {count:,} steps", f"{low}–{high} by rows", f"{low}–{high}")
        yield start, stop, [Label(t, (start + stop) / 2, y, "middle") for t in texts if width(t) <= stop - start]


def title_of_axis(scale: ByteScale, what: str, above: float) -> Label:
    """Return the title of a scale of bytes, `above` units above it."""
    return Label(f"{what}, {scale.unit}", 0, scale.top - above)
