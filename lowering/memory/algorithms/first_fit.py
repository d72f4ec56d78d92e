"""Placing buffers one by one: each at the lowest aligned offset where a gap between the buffers that it conflicts with
is large enough, in the first of its pools that can take it. What differs is who comes next.
"""
from __future__ import annotations

import heapq
from collections.abc import Sequence

from ....runtime.errors import Problem
from ..buffers import BufferInfo, PoolAllocation, PoolInfo, aligned

Bytes = tuple[int, int]
"""Offset of a buffer's first byte, and of the first byte behind it."""


class Placement:
    """The buffers placed so far. Conflicts must be symmetric."""

    def __init__(self, pools: Sequence[PoolInfo]) -> None:
        self.pools = tuple(pools)
        self.sizes = {p.name: 0 for p in pools}
        self.allocations: dict[str, PoolAllocation] = {}
        self._occupied: dict[str, dict[str, Bytes]] = {p.name: {} for p in pools}

    def place(self, buffer: BufferInfo) -> PoolAllocation:
        """Give `buffer` its place; a Problem where none of its pools has room."""
        tried: list[tuple[PoolInfo, int]] = []
        for pool in buffer.candidates(self.pools):
            offset = self._lowest(buffer, self._occupied[pool.name])
            end = offset + buffer.size_bytes
            if pool.size_hint_bytes is None or end <= pool.size_hint_bytes:
                self._occupied[pool.name][buffer.name] = offset, end
                self.sizes[pool.name] = max(self.sizes[pool.name], end)
                self.allocations[buffer.name] = PoolAllocation(pool.name, offset)
                return self.allocations[buffer.name]
            tried.append((pool, end))
        raise no_room(buffer, tried, self.pools)

    def _lowest(self, buffer: BufferInfo, occupied: dict[str, Bytes]) -> int:
        offset = 0
        for start, end in sorted([occupied[name] for name in buffer.conflicts if name in occupied]):
            if offset + buffer.size_bytes <= start:
                break
            if end > offset:
                offset = aligned(end, buffer.alignment)
        return offset


def first_fit(order: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> Placement:
    """Place the buffers in this order."""
    placement = Placement(pools)
    for buffer in order:
        placement.place(buffer)
    return placement


def lowest_first(order: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> Placement:
    """Fill the pools from the bottom: next is always a buffer that could lie lowest, on top of what it conflicts with;
    of several the first in this order. Far better than `first_fit` where many lifetimes mix."""
    placement = Placement(pools)
    floor = {b.name: 0 for b in order}
    waiting = [(0, i) for i in range(len(order))]
    while waiting:
        offset, i = heapq.heappop(waiting)
        buffer = order[i]
        if floor[buffer.name] > offset:
            heapq.heappush(waiting, (floor[buffer.name], i))
            continue
        top = placement.place(buffer).byte_offset + buffer.size_bytes
        for other in buffer.conflicts:
            if floor.get(other, top) < top:
                floor[other] = top
    return placement


def no_room(buffer: BufferInfo, tried: Sequence[tuple[PoolInfo, int]], pools: Sequence[PoolInfo]) -> Problem:
    """Why `buffer` has no place; `tried` are its pools, with the size that each would need."""
    what = f"buffer {buffer.name} of {buffer.size_bytes} bytes"
    if not tried:
        offered = ", ".join(f"{p.name} (alignment {p.alignment or 'any'})" for p in pools) or "none"
        wanted = f" named {', '.join(buffer.pool_candidates)}" if buffer.pool_candidates else ""
        return Problem(f"{what} and alignment {buffer.alignment} may lie in no pool{wanted}; there are: {offered}",
                       kind="memory", help="name a pool that the target may read and write and that is aligned enough")
    full = ", ".join(f"{pool.name} holds {pool.size_hint_bytes} bytes and would need {end}" for pool, end in tried)
    return Problem(f"{what} fits in none of its pools beside the buffers that are live with it: {full}",
                   kind="memory", help="make a pool larger, or add one that the buffer may fall back to")
