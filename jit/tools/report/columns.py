"""The time axis of a picture: ticks merged into columns, so that a program of thousands of steps stays readable.

A stretch of kernels that run by rows, a few of each at a time, would take nearly all of an even axis; instead it gets a few
columns for each of its kernels. If there are still too many columns, neighbours share one.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .figures import Span, StepLine

PER_KERNEL = 4
"""Number of columns of a stretch by rows, for each of its kernels."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of an axis: each is a span of ticks. `stretches` are the spans of columns in which kernels run by rows, each
    with its number of ticks."""
    spans: tuple[Span, ...]
    stretches: tuple[tuple[Span, int], ...]
    of: tuple[int, ...]
    """Column of each tick."""

    def __len__(self) -> int:
        return len(self.spans)

    def cover(self, live: Iterable[Span]) -> list[Span]:
        """Return spans of ticks as spans of columns, neighbours joined."""
        found: list[Span] = []
        for first, last in live:
            start, end = self.of[first], self.of[min(last, len(self.of) - 1)]
            if found and start <= found[-1][1] + 1:
                found[-1] = found[-1][0], max(end, found[-1][1])
            else:
                found.append((start, end))
        return found

    def highest(self, curve: Sequence[int]) -> list[int]:
        """Return the highest value of a curve over ticks in each column."""
        return [max(curve[first:last + 1]) for first, last in self.spans]


def columns(timeline: Sequence[StepLine], most: int) -> Columns:
    """Return the columns of a program's ticks, at most `most`."""
    pieces = [(piece, split(piece, timeline)) for piece in pieces_of(timeline)]
    fine = [span for _, spans in pieces for span in spans]
    group = -(-len(fine) // most)
    spans = tuple((fine[i][0], fine[min(i + group, len(fine)) - 1][1]) for i in range(0, len(fine), group or 1))
    of = tuple(column for column, (first, last) in enumerate(spans) for _ in range(first, last + 1))
    stretches = tuple(((of[first], of[last]), last - first + 1) for (first, last), parts in pieces
                      if last - first + 1 > len(parts))
    return Columns(spans, stretches, of)


def split(piece: Span, timeline: Sequence[StepLine]) -> list[Span]:
    """Return the columns of a piece: one per tick, but few for a long stretch."""
    first, last = piece
    count = last - first + 1
    kernels = {timeline[t].kernel for t in range(first, last + 1)}
    wanted = min(count, PER_KERNEL * len(kernels))
    return [(first + count * i // wanted, first + count * (i + 1) // wanted - 1) for i in range(wanted)]


def pieces_of(timeline: Sequence[StepLine]) -> Iterator[Span]:
    """Yield the ticks as pieces: one piece for each group of kernels that run by rows."""
    last_step = {step.kernel: tick for tick, step in enumerate(timeline) if step.rows is not None}
    start = end = -1
    for tick, step in enumerate(timeline):
        if step.rows is None or tick > end:
            if start >= 0:
                yield start, tick - 1
            start = -1 if step.rows is None else tick
            end = -1
        if step.rows is None:
            yield tick, tick
        else:
            end = max(end, last_step[step.kernel])
    if start >= 0:
        yield start, len(timeline) - 1
