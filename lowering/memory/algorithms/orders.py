"""Static orders of buffers, for algorithms that place them one after the other: what comes first, by size, conflicts,
lifetime or both; ties go to the name, so that a plan never varies.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..buffers import BufferInfo

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
    spans = [(first, last, i, b.size_bytes) for i, b in enumerate(buffers) for first, last in b.live or ()]
    if not spans:
        return [0] * len(buffers)
    first, last, owner, size = np.array(spans, np.int64).T
    starts, ends = np.sort(first), np.sort(last)
    begun = np.concatenate(([0], np.cumsum(size[np.argsort(first, kind="stable")])))
    ended = np.concatenate(([0], np.cumsum(size[np.argsort(last, kind="stable")])))
    totals = begun[np.searchsorted(starts, starts, side="right")] - ended[np.searchsorted(ends, starts, side="left")]
    most = np.zeros(len(buffers), np.int64)
    np.maximum.at(most, owner, greatest_between(totals, np.searchsorted(starts, first, side="left"),
                                                np.searchsorted(starts, last, side="right")))
    return list(map(int, most))


def greatest_between(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The greatest of `values[low:high]` for each pair; none is empty. Each range is two that overlap, of 2^k values."""
    table = [values]
    while 2 << len(table) - 1 <= len(values):
        half = 1 << len(table) - 1
        table.append(np.maximum(table[-1][:-half], table[-1][half:]))
    level = np.frexp(high - low)[1] - 1
    found = np.zeros(len(low), values.dtype)
    for k, row in enumerate(table):
        at = level == k
        found[at] = np.maximum(row[low[at]], row[high[at] - (1 << k)])
    return found
