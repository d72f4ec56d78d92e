"""A lower bound of the cost of an assignment of buffers to pools, and the value of a byte of a pool at each time: the
Lagrangian relaxation of "at no time do the buffers of a pool have more bytes than it".

Every byte that a buffer takes of a pool at a time has a price, and the value of all bytes of the pools is refunded; for any
prices, the cheapest pools of the buffers, each by itself, cost no more than the best assignment. Prices rise where the demand
for a pool exceeds its size, and fall elsewhere (the subgradient method). Prices are integers, so that the bound is exact and a
plan is the same on every machine.
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
"""Number of bits of the sum of all scaled costs."""
NOWHERE = 1 << 56
"""Cost of a pool that may not hold a buffer."""
ROUNDS, PATIENCE = 80, 5
"""Maximum number of changes of prices, and of changes without a better bound before the step is halved."""
MOST_CELLS = 4_000_000
"""Maximum number of sections times buffers; if there are more, only the fullest sections are used."""
MOST_EDGES = 100_000
"""Maximum number of conflicts that do not come from lifetimes; more take too long to cover with sections."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The bytes that each buffer takes in each section: [section, buffer]. A section is a time, or a set of buffers that share
    no byte; the buffers of a pool fit into it only if those of each section fit into it together."""
    nbytes: Array

    @staticmethod
    def of(buffers: Sequence[BufferInfo]) -> Usage:
        """Return the usage of buffers that share no bytes while they are in conflict."""
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
        """Return the usage with no more sections than can be handled quickly; leaving some out makes no bound wrong."""
        most = max(MOST_CELLS // max(self.nbytes.shape[1], 1), 1)
        if len(self.nbytes) <= most:
            return self
        fullest = np.argsort(-self.nbytes.sum(axis=1), kind="stable")[:most]
        return Usage(self.nbytes[np.sort(fullest)])


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of bytes of pools. `own` is the cost of each buffer in each pool, `reduced` that cost plus the price of the bytes
    that the buffer takes, [buffer, pool]; the sum of the least reduced cost of each buffer, less `refund`, is a lower bound.
    Numbers are costs times `scale`, rounded down."""
    own: Array
    reduced: Array
    refund: int
    scale: Fraction

    @property
    def bound(self) -> int:
        return int(self.reduced.min(axis=1, initial=NOWHERE).sum()) - self.refund

    @property
    def cost(self) -> Fraction:
        """Lower bound of the cost of an assignment."""
        return self.bound / self.scale

    def scaled(self, cost: Fraction) -> int:
        """Return a cost times `scale`, rounded up: an assignment with a greater bound costs more."""
        return math.ceil(cost * self.scale)


def prices_of(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], costs: Costs, usage: Usage, upper: Fraction) -> Prices:
    """Return the prices with the best bound that is found; `upper` is the cost, or a possible cost, of some assignment."""
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
    """Return a factor that makes costs integers, or nearly: exactly if that takes few bits."""
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
        """Maximum prices: higher ones would not change the result, and would overflow."""

    def best(self, upper: int) -> tuple[Array, int]:
        """Return the reduced costs and the refund of the best bound."""
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
        """Return the bytes of each limited pool that are wanted in each section beyond its limit, [pool, section]."""
        wanted = reduced.argmin(axis=1)
        inside = np.array([wanted == pool for pool in self.limited]).reshape(len(self.limited), len(wanted))
        return np.asarray((inside.astype(np.int64) @ self.nbytes.T) - self.limits)
