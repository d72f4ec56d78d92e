"""Branch and bound over the pools of buffers: depth first, the buffer first that would lose most outside of its best pool,
within a number of nodes that is counted.

A branch ends if at some time the buffers of a pool have more bytes than the pool, or if the decisions so far make the bound of
`pool_prices`, or the cost with each other buffer in its cheapest pool, no better than the best assignment known. The caller
judges whether the remaining assignments can be packed.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....runtime.records import dataclass
from .pool_prices import NOWHERE, Prices, Usage
from .ragged_arrays import Array

Judge = Callable[[list[int]], int | None]
"""Given the pool of each buffer: the scaled cost that an assignment has to beat from now on; None to end the search."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The sections in which a buffer takes bytes, and the bytes that it takes in each."""
    sections: Array
    nbytes: Array


class PoolSearch:
    """A search of assignments of buffers to pools; `limits` are the bytes of each pool (None: no limit)."""

    def __init__(self, usage: Usage, limits: Sequence[int | None], prices: Prices) -> None:
        self.limits, self.prices = limits, prices
        self.own: list[list[int]] = prices.own.tolist()
        self.reduced: list[list[int]] = prices.reduced.tolist()
        self.sections = len(usage.nbytes)
        self.taken = [Taken(at := np.flatnonzero(column), column[at]) for column in usage.nbytes.T]
        self.nodes = 0

    def run(self, homes: Sequence[int], free: Sequence[int], below: int, nodes: int, ties: bool, judge: Judge) -> bool:
        """Try pools for the buffers in `free`, with the others in the pools of `homes`, and with a bound below `below` (or not
        above it, for `ties`). Return whether all have been tried."""
        room = self.room(homes, set(free))
        if room is None:
            return True
        options = {b: sorted((cost, pool) for pool, cost in enumerate(self.reduced[b]) if cost < NOWHERE) for b in free}
        order = sorted(free, key=lambda b: (-regret(options[b]), b))
        fixed = sum(self.reduced[b][pool] for b, pool in enumerate(homes) if b not in options)
        start = fixed + sum(options[b][0][0] for b in free) - self.prices.refund
        found, tried = list(homes), [0] * len(order)
        spent = [start] + [0] * len(order)
        cheap = {b: min(self.own[b][pool] for _, pool in options[b]) for b in free}
        paid = [sum(self.own[b][pool] for b, pool in enumerate(homes) if b not in options) + sum(cheap.values())]
        paid += [0] * len(order)
        level, stop = 0, self.nodes + nodes
        while level >= 0:
            if level == len(order):
                answer = judge(found)
                if answer is None:
                    return False
                below = answer
                level = self.back(level, order, found, room)
                continue
            b, at = order[level], tried[level]
            tried[level] += 1
            bound = spent[level] + options[b][at][0] - options[b][0][0] if at < len(options[b]) else below + 1
            if bound > below or (bound == below and not ties):
                tried[level] = 0
                level = self.back(level, order, found, room)
                continue
            pool = options[b][at][1]
            cost = paid[level] + self.own[b][pool] - cheap[b]
            if (cost < below or (cost == below and ties)) and self.enters(b, pool, room):
                found[b] = pool
                level += 1
                spent[level], paid[level] = bound, cost
                self.nodes += 1
                if self.nodes > stop:
                    return False
        return True

    def room(self, homes: Sequence[int], free: set[int]) -> list[Array | None] | None:
        """Return the bytes left of each pool in each section; None if the buffers that are not free take too many."""
        room = [None if limit is None else np.full(self.sections, limit, np.int64) for limit in self.limits]
        for b, pool in enumerate(homes):
            if b not in free and not self.enters(b, pool, room):
                return None
        return room

    def enters(self, b: int, pool: int, room: Sequence[Array | None]) -> bool:
        """True if a buffer has room in a pool; the buffer then takes that room."""
        left, taken = room[pool], self.taken[b]
        if left is None:
            return True
        after = left[taken.sections] - taken.nbytes
        if after.size and after.min() < 0:
            return False
        left[taken.sections] = after
        return True

    def back(self, level: int, order: Sequence[int], found: Sequence[int], room: Sequence[Array | None]) -> int:
        """Go one level up, where the buffer leaves its pool; return the new level."""
        if level:
            b = order[level - 1]
            left = room[found[b]]
            if left is not None:
                left[self.taken[b].sections] += self.taken[b].nbytes
        return level - 1


def regret(options: Sequence[tuple[int, int]]) -> int:
    """Return the cost of the second pool above that of the first; `NOWHERE` if there is no second."""
    return options[1][0] - options[0][0] if len(options) > 1 else NOWHERE
