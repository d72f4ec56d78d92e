"""The document's third algorithm: from the order of `greedy_by_size`, swap a buffer that tops a pool with one that it
conflicts with, or one that conflicts with that, and keep what comes out smaller.
"""
from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from ....runtime.errors import Problem
from ..buffers import BufferInfo, PoolAllocation, PoolInfo
from .first_fit_compiled import Placed, Placer
from .lower_bound import lower_bound
from .orders import ordered, size_first
from .registry import algorithm

TRIES = 500
VISITS = 60_000_000
"""Conflicts that all tries together may look at."""
SEED = 0
WORSE = 0.06
"""Larger by this fraction, a try is never taken; by less, the more often the less (by a third of it, three in ten). The best is
kept."""


@algorithm("hill_climb")
def hill_climb(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], memory_pressure: int) -> Mapping[str, PoolAllocation]:
    """The best of up to 500 neighbouring orders, each placed by first fit; stops at the memory pressure, or the lower bound."""
    least = lower_bound(buffers) if len(pools) == 1 else memory_pressure
    placer, order = Placer(buffers, pools), ordered(buffers, size_first)
    draw, known = random.Random(SEED), {b.name: b for b in buffers}
    best = now = placer.place("first_fit", order)
    for _ in range(min(TRIES, VISITS // placer.visits)):
        if cost(best) <= least:
            break
        first, second = swap(draw, order, known, now)
        order[first], order[second] = order[second], order[first]
        try:
            found = placer.place("first_fit", order)
        except Problem:
            found = None
        if found is not None and is_taken(draw, cost(found), cost(now)):
            now = found
            best = now if cost(now) < cost(best) else best
        else:
            order[first], order[second] = order[second], order[first]
    return best.allocations


def cost(placed: Placed) -> int:
    return sum(placed.sizes.values())


def is_taken(draw: random.Random, found: int, now: int) -> bool:
    """True if to go on from a try. Products alone, which are the same on every machine."""
    close = max(0.0, 1 - (found - now) / (WORSE * now))
    return found <= now or draw.random() < close * close * close


def swap(draw: random.Random, order: Sequence[BufferInfo], known: Mapping[str, BufferInfo], now: Placed) -> tuple[int, int]:
    """Positions of a buffer that ends where its pool does, and of one near it."""
    def pick(names: Sequence[str]) -> str:
        return names[int(draw.random() * len(names))]

    tops = [b.name for b in order if b.size_bytes and
            now.allocations[b.name].byte_offset + b.size_bytes == now.sizes[now.allocations[b.name].pool]]
    one = pick(tops)
    near = sorted(known[one].conflicts & known.keys()) or [b.name for b in order]
    other = pick(near)
    if draw.random() < 0.5:
        one, other = other, pick(sorted(known[other].conflicts & known.keys()) or near)
    position = {b.name: i for i, b in enumerate(order)}
    return position[one], position[other]
