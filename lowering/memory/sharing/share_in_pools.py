"""Buffers of one pool that may share bytes while both are live, as the assignment of buffers to several pools asks for
them: how small they can be packed, whether they fit, and what they take of a pool at each time.
"""
from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from ....runtime.errors import Problem
from ..algorithms.assign_pools import allocated, cheapest
from ..algorithms.capacity_search import Effort
from ..algorithms.first_fit import Placement
from ..algorithms.outcome import Outcome, is_only
from ..algorithms.packer import Packed, Packer
from ..algorithms.pool_costs import cost_of, costs_of
from ..algorithms.pool_prices import Usage
from ..buffers import BufferInfo, PoolAllocation, PoolInfo, sizes_of
from .climb import Climb
from .overlap import Overlapping, Sharing, both_ways, orders, place_all

CLIMBED = 3_000
"""Buffers and conflicts that all searches of an assignment may have; each goes through its own some hundred times."""


class SharingPacker(Packer):
    """Plans for one pool each, in which buffers share bytes as `sharing` allows."""

    def __init__(self, effort: Effort, sharing: Sharing) -> None:
        super().__init__(effort)
        self.sharing, self.spacings = sharing, both_ways(sharing.spacings)
        self.left = CLIMBED

    def bound(self, buffers: Sequence[BufferInfo]) -> int:
        names = frozenset(b.name for b in buffers)
        if names not in self.bounds:
            self.bounds[names] = self.sharing.bound(buffers) if buffers else 0
        return self.bounds[names]

    def ask(self, buffers: Sequence[BufferInfo], goal: int, limit: int | None, visits: int) -> Packed:
        """The best of some orders, and of a search where they leave a gap."""
        names = frozenset(b.name for b in buffers)
        if names not in self.plans:
            self.know(buffers, self.ordered(buffers, goal))
        best, least = self.plans[names], max(goal, self.bound(buffers))
        work = len(buffers) + sum(len(b.conflicts & names) for b in buffers)
        if best.size <= least or (names, goal) in self.asked or work > self.left:
            return best
        self.asked.add((names, goal))
        self.left -= work
        by_offset = sorted(buffers, key=lambda b: (best.offsets[b.name], b.name))
        offsets = Climb(by_offset, self.spacings).search(range(len(by_offset)), best.size, least)
        return best if offsets is None else self.know(buffers, {b.name: o for b, o in zip(by_offset, offsets)})

    def ordered(self, buffers: Sequence[BufferInfo], goal: int) -> Mapping[str, int]:
        """Offsets by first fit, in several orders until one reaches `goal`."""
        pool = PoolInfo("pool")
        free = [dataclasses.replace(b, pool_candidates=()) for b in buffers]
        best: Overlapping | None = None
        for order in orders(free):
            found = place_all(order, [pool], self.spacings)
            if best is None or found.sizes["pool"] < best.sizes["pool"]:
                best = found
            if best.sizes["pool"] <= goal:
                break
        return {name: place.byte_offset for name, place in best.allocations.items()} if best else {}

    def placement(self, pool: PoolInfo) -> Placement:
        return Overlapping([pool], self.spacings)


def usage_of(buffers: Sequence[BufferInfo], sharing: Sharing) -> Usage:
    """The bytes that each buffer holds something in at moments that matter; a result that may lie on its operand takes that
    much less when it is written."""
    spans = [sharing.counts[b.name] for b in buffers]
    ticks = np.unique([o.written for b in buffers for o in sharing.occupied[b.name]]) if spans else np.zeros(0, np.int64)
    nbytes = np.zeros((len(ticks), len(buffers)), np.int64)
    for column, span in zip(nbytes.T, spans):
        for first, end, written, read in span.tolist():
            column[np.searchsorted(ticks, written):np.searchsorted(ticks, read, side="right")] += end - first
    number = {b.name: i for i, b in enumerate(buffers)}
    for operand, result, tick in sharing.over:
        if operand in number and result in number:
            row, at = np.searchsorted(ticks, tick), number[result]
            if row < len(ticks) and ticks[row] == tick:
                nbytes[row, at] = max(0, nbytes[row, at] - buffers[number[operand]].size_bytes)
    return Usage(nbytes).limited()


def place_in_pools(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], sharing: Sharing) -> Outcome | None:
    """The cheapest plan of several pools that is found; None where none fits."""
    costs = costs_of(buffers, pools)
    if not all(costs.values()):
        return None
    packer, found = SharingPacker(Effort(0), sharing), list[dict[str, PoolAllocation]]()
    free = [dataclasses.replace(b, pool_candidates=tuple(costs[b.name])) for b in buffers]
    for order in orders(free):
        with contextlib.suppress(Problem):
            found.append(place_all(order, pools, packer.spacings).allocations)
    assigned = cheapest(free, pools, costs, packer, usage_of(free, sharing))
    if not assigned.homeless:
        found.append(allocated(free, pools, assigned.homes, packer))
    if not found:
        return None
    best = min(found, key=lambda places: (cost_of(buffers, costs, places), sizes_of(buffers, pools, places)))
    bounds = {p.name: packer.bound([b for b in buffers if best[b.name].pool == p.name]) for p in pools}
    is_least = sizes_of(buffers, pools, best) == list(bounds.values())[::-1]
    is_cheapest = assigned.proved or is_only({name: place.pool for name, place in best.items()}, costs)
    return Outcome(best, bounds, is_cheapest and is_least)
