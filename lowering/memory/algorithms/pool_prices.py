"""A lower bound of what an assignment of buffers to pools costs, and what a byte of a pool is worth at each time: the
Lagrangian relaxation of "at no time do the buffers of a pool have more bytes than it".

Every byte that a buffer takes of a pool at a time has a price, and the pools are given back what they are worth; for any
prices the cheapest pools of the buffers, each by itself, cost no more than the best assignment. Prices rise where a pool is
asked for more than it has, and fall elsewhere (the subgradient method). They are whole numbers, so that the bound is exact
and a plan is the same on every machine.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ....runtime.records import dataclass
from ..buffers import BufferInfo, PoolInfo
from .instance import Instance
from .pool_costs import Costs
from .ragged_arrays import Array

COST_BITS = 40
"""All costs together are numbers of so many bits."""
NOWHERE = 1 << 56
"""The cost of a pool that a buffer may not lie in."""
ROUNDS, PATIENCE = 80, 5
"""How often prices change, and how often without a better bound before they change by half as much."""
MOST_CELLS = 4_000_000
"""Sections times buffers; where there are more, the fullest sections are looked at."""
MOST_EDGES = 100_000
"""Of conflicts that do not come from lifetimes, more take too long to cover with sections."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The bytes that each buffer takes in each section: [section, buffer]. A section is a time, or a set of buffers that share
    no byte; what it has of a pool's buffers fits into the pool together, or these do not fit at all."""
    nbytes: Array

    @staticmethod
    def of(buffers: Sequence[BufferInfo]) -> Usage:
        """That of buffers which share no bytes while they are in conflict."""
        instance = Instance.of(buffers)
        number = {b.name: i for i, b in enumerate(buffers)}
        own = [number[b.name] for b in instance.buffers]
        if not instance.is_intervals and len(instance.conflicts.items) > MOST_EDGES:
            sections = [[i] for i in range(len(own))]
        else:
            sections = [row.tolist() for row in instance.sections]
        nbytes = np.zeros((len(sections), len(buffers)), np.int64)
        for row, members in zip(nbytes, sections):
            row[[own[i] for i in members]] = instance.size[members]
        return Usage(nbytes).limited()

    def limited(self) -> Usage:
        """No more sections than can be looked at quickly; leaving some out makes no bound wrong."""
        most = max(MOST_CELLS // max(self.nbytes.shape[1], 1), 1)
        if len(self.nbytes) <= most:
            return self
        fullest = np.argsort(-self.nbytes.sum(axis=1), kind="stable")[:most]
        return Usage(self.nbytes[np.sort(fullest)])


@dataclass(frozen=True, slots=True)
class Prices:
    """`own` is the cost of each buffer in each pool, and `reduced` that with the price of what it takes of the pool, [buffer,
    pool]; the least of each buffer, all together, less `refund`, is a lower bound. Numbers are costs times `scale`, rounded
    down."""
    own: Array
    reduced: Array
    refund: int
    scale: Fraction

    @property
    def bound(self) -> int:
        return int(self.reduced.min(axis=1, initial=NOWHERE).sum()) - self.refund

    @property
    def cost(self) -> Fraction:
        """What no assignment undercuts."""
        return self.bound / self.scale

    def scaled(self, cost: Fraction) -> int:
        """A cost as such a number, rounded up: an assignment with a greater bound costs more."""
        return math.ceil(cost * self.scale)


def prices_of(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], costs: Costs, usage: Usage, upper: Fraction) -> Prices:
    """The prices with the best bound that is found; `upper` is what some assignment costs, or might."""
    scale = scale_of(buffers, costs)
    own = np.full((len(buffers), len(pools)), NOWHERE, np.int64)
    for row, b in zip(own, buffers):
        for i, pool in enumerate(pools):
            if pool.name in costs[b.name]:
                row[i] = math.floor(costs[b.name][pool.name] * scale)
    limited = [i for i, pool in enumerate(pools) if pool.size_hint_bytes is not None]
    limits = np.array([pools[i].size_hint_bytes for i in limited], np.int64).reshape(-1, 1)
    search = PriceSearch(own, usage.nbytes, limited, limits)
    return Prices(own, *search.best(math.ceil(upper * scale)), scale)


def scale_of(buffers: Sequence[BufferInfo], costs: Costs) -> Fraction:
    """A factor that makes whole numbers of costs, or nearly: exact where that takes few bits."""
    every = [cost for b in buffers for cost in costs[b.name].values()]
    whole = math.lcm(*(cost.denominator for cost in every))
    total = sum(max(costs[b.name].values(), default=Fraction(0)) for b in buffers)
    bits = math.ceil(total * whole).bit_length()
    return Fraction(whole) * Fraction(2) ** (COST_BITS - bits)


class PriceSearch:
    """The subgradient method. `own` are costs, [buffer, pool]; `limited` the pools that have a limit."""

    def __init__(self, own: Array, nbytes: Array, limited: Sequence[int], limits: Array) -> None:
        self.own, self.nbytes, self.limited, self.limits = own, nbytes, list(limited), limits
        self.most = (4 << COST_BITS) // np.maximum(nbytes.max(axis=1, initial=1), 1)
        """More would not change anything, and numbers would not have bits enough."""

    def best(self, upper: int) -> tuple[Array, int]:
        """The reduced costs and the refund of the best bound."""
        prices = np.zeros((len(self.limited), len(self.nbytes)), np.int64)
        best: tuple[int, Array, int] | None = None
        factor, useless = 1.0, 0
        for _ in range(ROUNDS):
            reduced, refund = self.reduced(prices)
            bound = int(reduced.min(axis=1, initial=NOWHERE).sum()) - refund
            if best is None or bound > best[0]:
                best, useless = (bound, reduced, refund), 0
            elif (useless := useless + 1) > PATIENCE:
                factor, useless = factor / 2, 0
            lacking = self.lacking(reduced)
            counts = lacking[(lacking > 0) | (prices > 0)]
            norm = sum(n * n for n in counts.tolist())
            if not norm or best[0] >= upper:
                break
            step = factor * float(max(upper - bound, 1)) / float(norm)
            prices = np.minimum(np.maximum(prices + np.floor(step * lacking).clip(-2.0 ** 60, 2.0 ** 60).astype(np.int64), 0),
                                self.most)
        assert best is not None
        return best[1], best[2]

    def reduced(self, prices: Array) -> tuple[Array, int]:
        reduced = self.own.copy()
        reduced[:, self.limited] += (prices @ self.nbytes).T
        return reduced, int((prices * self.limits).sum())

    def lacking(self, reduced: Array) -> Array:
        """Bytes of each limited pool that are wanted in each section and not there, [pool, section]."""
        wanted = reduced.argmin(axis=1)
        inside = np.array([wanted == pool for pool in self.limited]).reshape(len(self.limited), len(wanted))
        return np.asarray((inside.astype(np.int64) @ self.nbytes.T) - self.limits)
