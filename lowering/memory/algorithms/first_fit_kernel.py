"""Placement of buffers one by one, in the subset of Python that `compiled` takes: each at the lowest aligned offset where a gap
between the buffers that it conflicts with is large enough, in the first of its pools that can take it.
"""
from __future__ import annotations

from ....runtime.records import dataclass
from .compiled_python import Ints

NOWHERE = -1


@dataclass(slots=True)
class Placing:
    """Buffers and pools by number; row i of a list goes from `start[i]` to `start[i + 1]`."""
    size: Ints
    alignment: Ints
    conflict_start: Ints
    conflict: Ints
    candidate_start: Ints
    candidate: Ints
    """Pools that may hold a buffer, the best first."""
    limit: Ints
    """Bytes that a pool may hold."""
    order: Ints
    pool: Ints
    """Pool of a buffer; NOWHERE before the buffer is placed."""
    offset: Ints
    floor: Ints
    heap: Ints
    refused: Ints
    """The buffer that fitted nowhere, as the only element."""


def first_fit(s: Placing, count: int) -> int:
    """Place the first `count` buffers of `order`. Returns the number placed before one fitted nowhere."""
    for k in range(count):
        if place(s, s.order[k]) == 0:
            return k
    return count


def place(s: Placing, i: int) -> int:
    """Place a buffer; return 1 if one of its pools has room, otherwise 0."""
    for p in range(s.candidate_start[i], s.candidate_start[i + 1]):
        pool = s.candidate[p]
        offset = lowest(s, i, pool)
        if offset + s.size[i] <= s.limit[pool]:
            s.pool[i], s.offset[i] = pool, offset
            return 1
    s.refused[0] = i
    return 0


def lowest(s: Placing, i: int, pool: int) -> int:
    """Return the lowest offset in a pool at which a buffer shares no byte with those that it conflicts with. Each buffer that
    it meets rules out all offsets up to that buffer's end."""
    offset, size, met = 0, s.size[i], 1
    while met:
        met = 0
        for p in range(s.conflict_start[i], s.conflict_start[i + 1]):
            j = s.conflict[p]
            if s.pool[j] == pool and s.offset[j] < offset + size:
                end = s.offset[j] + s.size[j]
                if end > offset:
                    offset, met = (end + s.alignment[i] - 1) & -s.alignment[i], 1
    return offset


def lowest_first(s: Placing, count: int) -> int:
    """Fill the pools from the bottom: next is always a buffer that could be lowest, on top of those that it conflicts with; of
    several the first in `order`. The heap holds (floor, position) as one number. Returns the number placed before one
    fitted nowhere."""
    for k in range(count):
        s.heap[k] = k
    waiting, placed = count, 0
    while waiting > 0:
        k = s.heap[0] % count
        i = s.order[k]
        if s.heap[0] // count < s.floor[i]:
            sink(s, s.floor[i] * count + k, waiting)
            continue
        waiting -= 1
        if waiting > 0:
            sink(s, s.heap[waiting], waiting)
        if place(s, i) == 0:
            return placed
        placed += 1
        top = s.offset[i] + s.size[i]
        for p in range(s.conflict_start[i], s.conflict_start[i + 1]):
            j = s.conflict[p]
            s.floor[j] = max(s.floor[j], top)
    return placed


def sink(s: Placing, key: int, count: int) -> int:
    """Replace the least number of the heap."""
    at, child = 0, 1
    while child < count:
        if child + 1 < count and s.heap[child + 1] < s.heap[child]:
            child += 1
        if key <= s.heap[child]:
            break
        s.heap[at] = s.heap[child]
        at, child = child, 2 * child + 1
    s.heap[at] = key
    return at
