"""The number of live bytes over time: the curve under a picture of a plan, and its peak.

A byte counts once however many buffers hold it, so that buffers which share bytes on purpose (one computed in place of another,
a view) are not counted twice. Computed from offsets and lifetimes alone.
"""
from __future__ import annotations

from collections.abc import Sequence

from .figures import BufferLine, Peak, StepLine


def live_bytes(buffers: Sequence[BufferLine], count: int) -> list[int]:
    """Return the bytes in use at each of `count` ticks, by the planned buffers given."""
    found: list[int] = []
    total = 0
    starts, ends = edges(buffers, count)
    alive: dict[int, BufferLine] = {}
    for tick in range(count):
        for i in ends[tick]:
            del alive[i]
        alive.update((i, buffers[i]) for i in starts[tick])
        if starts[tick] or ends[tick]:
            total = bytes_covered(list(alive.values()))
        found.append(total)
    return found


def edges(buffers: Sequence[BufferLine], count: int) -> tuple[list[list[int]], list[list[int]]]:
    """Return for each tick the numbers of the buffers that become live, and of those that were live until the tick before."""
    starts: list[list[int]] = [[] for _ in range(count + 1)]
    ends: list[list[int]] = [[] for _ in range(count + 1)]
    for i, b in enumerate(buffers):
        for first, last in b.live:
            if first < count:
                starts[first].append(i)
                ends[min(last + 1, count)].append(i)
    return starts, ends


def bytes_covered(buffers: Sequence[BufferLine]) -> int:
    """Return the bytes that at least one of the buffers holds, over all pools."""
    total, pool, top = 0, None, 0
    for b in sorted(buffers, key=lambda b: (b.pool or "", b.offset or 0)):
        if b.pool != pool:
            pool, top = b.pool, 0
        total += max(0, b.end - max(top, b.offset or 0))
        top = max(top, b.end)
    return total


def peak_of(buffers: Sequence[BufferLine], timeline: Sequence[StepLine]) -> Peak | None:
    """Return the first tick at which these buffers take the most bytes; None if they never take any."""
    curve = live_bytes(buffers, len(timeline))
    most = max(curve, default=0)
    if not most:
        return None
    tick = curve.index(most)
    alive = sorted((b for b in buffers if alive_at(b, tick) and b.nbytes), key=lambda b: (-b.nbytes, b.name))
    return Peak(tick, timeline[tick].kernel, most, tuple(b.name for b in alive))


def bytes_shared(buffers: Sequence[BufferLine], peak: Peak) -> int:
    """Return the bytes that sharing saves at a peak: the sum of the live buffers' sizes minus the bytes that they take."""
    alive = set(peak.alive)
    return sum(b.nbytes for b in buffers if b.name in alive) - peak.nbytes


def alive_at(buffer: BufferLine, tick: int) -> bool:
    return any(first <= tick <= last for first, last in buffer.live)


def sharing(buffers: Sequence[BufferLine]) -> dict[str, list[str]]:
    """Return for each buffer the names of those that hold some of its bytes while it is live, in the order in which they are
    found."""
    found: dict[str, dict[str, None]] = {}
    planned = [b for b in buffers if b.nbytes and b.live]
    count = max((last for b in planned for _, last in b.live), default=-1) + 1
    starts, ends = edges(planned, count)
    alive: dict[int, BufferLine] = {}
    for tick in range(count):
        for i in ends[tick]:
            del alive[i]
        for i in starts[tick]:
            for other in alive.values():
                if overlaps(planned[i], other):
                    found.setdefault(planned[i].name, {})[other.name] = None
                    found.setdefault(other.name, {})[planned[i].name] = None
            alive[i] = planned[i]
    return {name: list(others) for name, others in found.items()}


def overlaps(a: BufferLine, b: BufferLine) -> bool:
    return a.pool == b.pool and (a.offset or 0) < b.end and (b.offset or 0) < a.end
