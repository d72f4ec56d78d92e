"""The least size that any plan in one pool can have, as far as it can be told quickly: the bytes of buffers that are
all live together, padded where alignment forces it. Printed beside every plan, and where a search stops.
"""
from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from .buffers import BufferInfo, aligned

SEEDS = 64
"""How many buffers to grow a set of mutual conflicts from, where lifetimes are not known."""


def lower_bound(buffers: Sequence[BufferInfo]) -> int:
    """Bytes that one pool needs at least to hold all `buffers`; never more than the best plan has.

    With lifetimes it is the largest sum of bytes live at one tick. Where only conflicts are known (they must be
    symmetric) it is the heaviest set of mutual conflicts that a greedy search finds.
    """
    buffers = [b for b in buffers if b.size_bytes]
    if any(b.live is None for b in buffers):
        return max((bytes_together(clique) for clique in cliques(buffers)), default=0)
    return max((largest_together(buffers, grain) for grain in {b.alignment for b in buffers}), default=0)


def largest_together(buffers: Sequence[BufferInfo], grain: int) -> int:
    """The largest size of what is live at one tick, counting buffers aligned to `grain` bytes or more.

    Their offsets are multiples of `grain`, so each of them takes up its size rounded up to that; but for the topmost
    one, which may be any of them: the one with the most padding, in the best case.
    """
    starts = sorted((first, last, b.size_bytes) for b in buffers if b.alignment >= grain
                    for first, last in b.live or ())
    ends: list[tuple[int, int]] = []
    paddings: list[tuple[int, int]] = []
    total = result = 0
    for first, last, size in starts:
        while ends and ends[0][0] < first:
            total -= heapq.heappop(ends)[1]
        taken = aligned(size, grain)
        total += taken
        heapq.heappush(ends, (last, taken))
        heapq.heappush(paddings, (size - taken, last))
        while paddings[0][1] < first:
            heapq.heappop(paddings)
        result = max(result, total + paddings[0][0])
    return result


def bytes_together(clique: Sequence[BufferInfo]) -> int:
    """The least size of a pool in which the buffers of `clique` share no byte, as `largest_together` counts."""
    def size(grain: int) -> int:
        sizes = [b.size_bytes for b in clique if b.alignment >= grain]
        taken = [aligned(s, grain) for s in sizes]
        return sum(taken) - max(t - s for t, s in zip(taken, sizes))

    return max(size(grain) for grain in {b.alignment for b in clique})


def cliques(buffers: Sequence[BufferInfo]) -> Iterable[list[BufferInfo]]:
    """Some sets of mutual conflicts: around each of the buffers with the heaviest neighbours, the heaviest ones that
    all conflict."""
    sizes = {b.name: b.size_bytes for b in buffers}
    known = {b.name: b for b in buffers}
    crowd = {b.name: b.size_bytes + sum(sizes.get(name, 0) for name in b.conflicts) for b in buffers}
    for seed in sorted(buffers, key=lambda b: (-crowd[b.name], b.name))[:SEEDS]:
        clique, open_ = [seed], seed.conflicts & sizes.keys()
        while open_:
            name = max(open_, key=lambda n: (sizes[n], crowd[n], n))
            clique.append(known[name])
            open_ = open_ & known[name].conflicts
        yield clique
