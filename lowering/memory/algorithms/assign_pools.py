"""The assignment of buffers to several pools: the one of least cost (`pool_costs`) that can be packed into the pools. The
problem is a knapsack over time, as buffers that are not live together can have the same bytes of the fast pool.

Rules give a first answer: a pool that cannot hold all buffers that want it keeps the most valuable, in several orders of value.
Prices of bytes (`pool_prices`) give a lower bound and a better order. Branch and bound (`pool_search`) then searches for
cheaper assignments, over all buffers and over those of some time, until the bound is reached or its effort is spent. With few
assignments the search is exact, and of those of the same cost it finds the one with the smallest pools, the least wanted first.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from ....runtime.records import dataclass
from ..buffers import BufferInfo, PoolAllocation, PoolInfo
from .packer import Packer
from .pool_costs import Costs
from .pool_prices import Prices, Usage, prices_of
from .pool_search import PoolSearch

Homes = dict[str, str]
"""The pool of each buffer, by name."""
Worth = Mapping[str, Fraction]
"""Value of keeping a buffer in its cheapest pool, by the buffer's name."""

RETRIES = 20_000
"""Number of searches, divided by the number of buffers, for buffers that first fit finds no room for."""
MOST_ASSIGNMENTS = 5000
"""Number of assignments up to which all that could cost least are compared by their sizes."""
NODES, WINDOW_NODES = 8_000, 400
"""Maximum number of nodes of branch and bound: over all buffers and again over all windows, and over one window."""
MOST_PACKED, WINDOW_PACKED = 20, 20
"""Maximum number of packing attempts if there are many assignments: of those found over all buffers, and in all windows."""
REPAIRS = 4
"""Number of assignments that cannot be packed from which rules derive others."""
WINDOW, PASSES = 14, 2
"""Minimum number of buffers in a window, and maximum number of passes over all windows."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The pool of each buffer, and the buffers that no pool has room for. It is `proved` if every other assignment costs more,
    or cannot be packed, or has larger pools."""
    homes: Homes
    homeless: tuple[str, ...] = ()
    proved: bool = False


Score = tuple[Fraction, list[int]]
"""Cost of an assignment of buffers to pools, and sizes of the pools, the least wanted first."""


def cheapest(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], costs: Costs, packer: Packer,
             usage: Usage | None = None) -> Assignment:
    """Return the cheapest assignment that fits if there are few, otherwise a good one. `usage` is what buffers take of pools,
    if that is not all their bytes while they are live."""
    return Assigning(buffers, pools, costs, packer, usage or Usage.of(buffers)).best()


def are_few(costs: Costs) -> bool:
    """True if all assignments of buffers to pools can be examined."""
    count = 1
    for c in costs.values():
        count = min(count * len(c), MOST_ASSIGNMENTS + 1)
    return count <= MOST_ASSIGNMENTS


class Assigning:
    """The search for one assignment, and the best one so far. Costs are integers, in units of `unit`."""

    def __init__(self, buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], costs: Costs, packer: Packer,
                 usage: Usage) -> None:
        self.buffers, self.pools, self.costs, self.packer, self.usage = buffers, pools, costs, packer, usage
        self.number = {pool.name: i for i, pool in enumerate(pools)}
        self.unit = Fraction(1, math.lcm(*(cost.denominator for c in costs.values() for cost in c.values())))
        self.own = {name: {pool: int(cost / self.unit) for pool, cost in c.items()} for name, c in costs.items()}
        self.loss = {name: values[1] - values[0] if len(values) > 1 else 0
                     for name, c in self.own.items() for values in [list(c.values())]}
        self.is_small = are_few(costs)
        self.is_certain = True
        """True if all conclusions about sizes are proved."""
        self.score: tuple[int, list[int]] | None = None
        self.homes: Homes = {}
        self.homeless: tuple[str, ...] | None = None
        self.left, self.repairs = 0, REPAIRS

    def best(self) -> Assignment:
        for worth in (self.by_saving(), self.by_bytes(), self.by_loss()):
            self.follow(worth)
        upper = self.score[0] if self.score else sum(max(c.values(), default=0) for c in self.own.values())
        prices = prices_of(self.buffers, self.pools, self.costs, self.usage, upper * self.unit)
        are_all_tried = False
        if not self.is_proved(prices) or self.is_small:
            self.follow(self.by_price(prices))
            are_all_tried = self.branch(prices)
        largest_first = sorted(self.buffers, key=lambda b: (-b.size_bytes, b.name))
        homeless = () if self.score else self.homeless or ()
        return Assignment(self.homes, tuple(b.name for b in largest_first if b.name in homeless),
                          self.is_small and are_all_tried and self.is_certain)

    def is_proved(self, prices: Prices) -> bool:
        """True if no assignment can cost less than the best so far."""
        return self.score is not None and prices.scaled(self.score[0] * self.unit) <= prices.bound

    def note(self, homes: Homes) -> bool:
        """Keep an assignment if it is better and can be packed; return whether it can be packed, or is no better."""
        cost = sum(self.own[name][pool] for name, pool in homes.items())
        if self.score is not None and (cost > self.score[0] or (cost == self.score[0] and not self.is_small)):
            return True
        self.left -= 1
        sizes = self.least_sizes(homes) if self.is_small else [] if self.fits(homes) else None
        if sizes is None:
            return False
        if self.score is None or (cost, sizes) < self.score:
            self.score, self.homes = (cost, sizes), dict(homes)
        return True

    def fits(self, homes: Homes) -> bool:
        """True if each pool is found to hold its buffers."""
        held = [(pool.size_hint_bytes, [b for b in self.buffers if homes[b.name] == pool.name]) for pool in self.pools]
        limited = [(limit, inside) for limit, inside in held if limit is not None]
        return all(self.packer.bound(inside) <= limit for limit, inside in limited) and all(
            self.packer.fits(inside, limit) for limit, inside in limited)

    def least_sizes(self, homes: Homes) -> list[int] | None:
        """Return the least sizes of the pools, the least wanted first; None if a pool is too small."""
        held = [(pool.size_hint_bytes, [b for b in self.buffers if homes[b.name] == pool.name])
                for pool in reversed(self.pools)]
        if any(limit is not None and self.packer.bound(inside) > limit for limit, inside in held):
            return None
        sizes = []
        for limit, inside in held:
            packed = self.packer.smallest(inside, limit)
            sizes.append(packed.size)
            if limit is not None and packed.size > limit:
                self.is_certain = self.is_certain and packed.bound > limit
                return None
            self.is_certain = self.is_certain and packed.size == packed.bound
        return sizes

    # ---- by rules ------------------------------------------------------------------------------------------------------
    def follow(self, worth: Worth) -> None:
        """Try each buffer in its cheapest pool; those that a pool cannot hold move to their next, the least valuable first."""
        found = spilled(self.buffers, self.pools, self.costs, self.packer, worth)
        if not found.homeless:
            self.note(found.homes)
        elif self.homeless is None:
            self.homeless = found.homeless

    def by_saving(self) -> Worth:
        """Return the loss of each buffer outside of its cheapest pool, per byte and tick."""
        return {b.name: Fraction(self.loss[b.name], max(1, b.size_bytes * b.lifetime)) for b in self.buffers}

    def by_bytes(self) -> Worth:
        return {b.name: Fraction(self.loss[b.name], max(1, b.size_bytes)) for b in self.buffers}

    def by_loss(self) -> Worth:
        return {name: Fraction(loss) for name, loss in self.loss.items()}

    def by_price(self, prices: Prices) -> Worth:
        """Return the loss of each buffer outside of its cheapest pool, with each byte paid for."""
        found = {}
        for b, row in zip(self.buffers, prices.reduced.tolist()):
            first, second = ([row[self.number[name]] for name in self.costs[b.name]] + [0, 0])[:2]
            found[b.name] = Fraction(second - first if len(self.costs[b.name]) > 1 else 0)
        return found

    # ---- branch and bound ----------------------------------------------------------------------------------------------
    def branch(self, prices: Prices) -> bool:
        """Search for better assignments: over all buffers first, then over the buffers of one time after the other. Return
        whether all that could be better have been examined."""
        search = PoolSearch(self.usage, [p.size_hint_bytes for p in self.pools], prices)
        self.left = MOST_PACKED
        if self.run(search, list(range(len(self.buffers))), NODES):
            return True
        if self.score is None:
            return False
        self.left, stop = WINDOW_PACKED, search.nodes + NODES
        for _ in range(PASSES):
            before = self.score
            for window in self.windows():
                if self.left > 0 and search.nodes < stop and not self.is_proved(prices):
                    self.run(search, window, WINDOW_NODES)
            if self.score == before:
                break
        return False

    def run(self, search: PoolSearch, free: Sequence[int], nodes: int) -> bool:
        """Try other pools for some buffers; return whether all that could be better has been tried."""
        prices = search.prices

        def below() -> int:
            return prices.scaled(self.score[0] * self.unit) if self.score else 1 << 60

        def judge(found: list[int]) -> int | None:
            homes = {b.name: self.pools[pool].name for b, pool in zip(self.buffers, found)}
            if not self.note(homes) and self.repairs > 0:
                self.repairs -= 1
                self.follow({b.name: Fraction(next(iter(self.costs[b.name])) == homes[b.name]) for b in self.buffers})
            return below() if self.is_small or (self.left > 0 and not self.is_proved(prices)) else None

        start = [self.number[self.homes[b.name]] if self.score else 0 for b in self.buffers]
        return search.run(start, free, below(), nodes, self.is_small, judge)

    def windows(self) -> Iterator[list[int]]:
        """Yield groups of buffers that take bytes in consecutive sections."""
        taken = self.usage.nbytes > 0
        window: dict[int, None] = {}
        for row in taken:
            window |= dict.fromkeys(row.nonzero()[0].tolist())
            if len(window) >= WINDOW:
                yield list(window)
                window = {}
        if window:
            yield list(window)


# ---- by rules --------------------------------------------------------------------------------------------------------
def spilled(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], costs: Costs, packer: Packer,
            worth: Worth) -> Assignment:
    """Return the assignment of each buffer to its cheapest pool; buffers that a pool cannot hold spill to their next pool,
    until all pools hold their buffers. A pool keeps buffers that have no other pool first, and then the most valuable."""
    options = {b.name: list(costs[b.name]) for b in buffers}
    homeless: list[BufferInfo] = []
    waiting = list(pools)

    def value(b: BufferInfo) -> tuple[bool, Fraction, str]:
        return (False, worth[b.name], b.name) if len(options[b.name]) > 1 else (True, Fraction(b.size_bytes), b.name)

    while waiting:
        pool = waiting.pop(0)
        inside = [b for b in buffers if options[b.name] and options[b.name][0] == pool.name]
        kept = kept_by(pool, sorted(inside, key=value, reverse=True), packer)
        for b in inside:
            if b.name not in kept:
                options[b.name].pop(0)
                if not options[b.name]:
                    homeless.append(b)
                elif all(p.name != options[b.name][0] for p in waiting):
                    waiting += [p for p in pools if p.name == options[b.name][0]]
    return Assignment({name: left[0] for name, left in options.items() if left}, tuple(b.name for b in homeless))


def kept_by(pool: PoolInfo, inside: Sequence[BufferInfo], packer: Packer) -> set[str]:
    """Return the buffers that a pool keeps, of those `inside` that want it, the most valuable first."""
    if pool.size_hint_bytes is None or packer.fits(inside, pool.size_hint_bytes):
        return {b.name for b in inside}
    kept, offsets = packer.first_that_fit(inside, pool)
    packer.know(kept, offsets)
    names = {b.name for b in kept}
    for b in [b for b in inside if b.name not in names][:1 + RETRIES // len(inside)]:
        if packer.fits([*kept, b], pool.size_hint_bytes):
            kept.append(b)
    return {b.name for b in kept}


def allocated(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], homes: Homes,
              packer: Packer) -> dict[str, PoolAllocation]:
    """Return the allocation of each buffer, in pools as small as can be found."""
    found: dict[str, PoolAllocation] = {}
    for pool in pools:
        inside = [b for b in buffers if homes[b.name] == pool.name]
        offsets = packer.smallest(inside, pool.size_hint_bytes).offsets
        found |= {name: PoolAllocation(pool.name, offset) for name, offset in offsets.items()}
    return found
