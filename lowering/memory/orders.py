"""Static orders of buffers, for algorithms that place them one after the other: what comes first, by size, conflicts,
lifetime or both; ties go to the name, so that a plan never varies.
"""
from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence

from .buffers import BufferInfo

Key = Callable[[BufferInfo], tuple[int, ...]]


def ordered(buffers: Sequence[BufferInfo], key: Key) -> list[BufferInfo]:
    """By falling key; ties by falling name."""
    return sorted(buffers, key=lambda b: (*key(b), b.name), reverse=True)


def size_first(b: BufferInfo) -> tuple[int, ...]:
    return b.size_bytes, len(b.conflicts)


def conflicts_first(b: BufferInfo) -> tuple[int, ...]:
    return len(b.conflicts), b.size_bytes


def area_first(b: BufferInfo) -> tuple[int, ...]:
    return b.size_bytes * b.lifetime, b.size_bytes


def lifetime_first(b: BufferInfo) -> tuple[int, ...]:
    return b.lifetime, b.size_bytes


def birth_first(b: BufferInfo) -> tuple[int, ...]:
    return -b.live[0][0] if b.live else 0, b.size_bytes


def death_last(b: BufferInfo) -> tuple[int, ...]:
    return b.live[-1][1] if b.live else 0, b.size_bytes


def crowd_first(buffers: Sequence[BufferInfo]) -> Key:
    """By the most bytes that are live together at some tick of a buffer's life, then by lifetime."""
    crowds = {b.name: crowd for b, crowd in zip(buffers, crowding(buffers))}
    return lambda b: (crowds[b.name], b.lifetime)


def crowding(buffers: Sequence[BufferInfo]) -> list[int]:
    """For each buffer the most bytes that are live at one tick while it is; 0 where that is not known."""
    spans = [(first, last, b.size_bytes) for b in buffers for first, last in b.live or ()]
    events = sorted([(first, 0, size) for first, _, size in spans] + [(last, 1, -size) for _, last, size in spans])
    starts = [tick for tick, ends, _ in events if not ends]
    totals = [total for total, (_, ends, _) in zip(itertools.accumulate(e[2] for e in events), events) if not ends]

    def most(first: int, last: int) -> int:
        return max(totals[bisect.bisect_left(starts, first):bisect.bisect_right(starts, last)])

    return [max((most(*span) for span in b.live or ()), default=0) for b in buffers]
