"""Packing of one pool: the least size of its buffers, whether they fit into the size of the pool, and which of them do."""
from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ....runtime.errors import Problem
from ....runtime.records import dataclass
from ..buffers import BufferInfo, PoolInfo
from .capacity_search import Effort
from .exact_search import smallest
from .first_fit import Placement
from .first_fit_compiled import Method, Placer
from .instance import Instance
from .lower_bound import lower_bound
from .orders import Key, conflicts_first, ordered, size_first

SHARE = 8
"""Divisor of the effort that is left, for a question about some of the buffers."""

SEARCHABLE = 3_000_000
"""Maximum number of conflicts of an instance that the exact search is tried on."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Offsets by name, the size that they need, and a proved lower bound of that size."""
    offsets: Mapping[str, int]
    size: int
    bound: int


class Packer:
    """Plans for one pool each, which share an effort. The best plan of each set of buffers is kept, and no question is worked
    on twice."""

    def __init__(self, effort: Effort) -> None:
        self.effort = effort
        self.plans: dict[frozenset[str], Packed] = {}
        self.asked: set[tuple[frozenset[str], int]] = set()
        self.bounds: dict[frozenset[str], int] = {}

    def bound(self, buffers: Sequence[BufferInfo]) -> int:
        """Return the lower bound of these buffers."""
        names = frozenset(b.name for b in buffers)
        if names not in self.bounds:
            self.bounds[names] = lower_bound(buffers)
        return self.bounds[names]

    def smallest(self, buffers: Sequence[BufferInfo], limit: int | None = None, questions: int = 1) -> Packed:
        """Return the smallest plan that is found with the effort that is left, divided by `questions`; a plan of at most
        `limit` bytes matters more than others."""
        return self.ask(buffers, self.bound(buffers), limit, self.effort.visits // questions)

    def fits(self, buffers: Sequence[BufferInfo], limit: int) -> bool:
        """True if a plan of at most `limit` bytes is found."""
        return self.bound(buffers) <= limit and self.ask(buffers, limit, limit, self.effort.visits // SHARE).size <= limit

    def know(self, buffers: Sequence[BufferInfo], offsets: Mapping[str, int]) -> Packed:
        """Record a plan; return the best one of these buffers."""
        size = max((offsets[b.name] + b.size_bytes for b in buffers), default=0)
        names = frozenset(b.name for b in buffers)
        if names not in self.plans or size < self.plans[names].size:
            self.plans[names] = Packed(offsets, size, self.bound(buffers))
        return self.plans[names]

    def ask(self, buffers: Sequence[BufferInfo], goal: int, limit: int | None, visits: int) -> Packed:
        """Return the best plan of these buffers that is found; it need not be smaller than `goal`."""
        names = frozenset(b.name for b in buffers)
        best = self.plans[names] if names in self.plans else self.know(buffers, greedy(buffers, goal))
        edges = sum(len(b.conflicts) for b in buffers)
        if best.size <= goal or (names, goal) in self.asked or edges > SEARCHABLE or len(buffers) ** 2 + edges > visits:
            return best
        self.asked.add((names, goal))
        instance, share = Instance.of(buffers), self.effort.share(visits)
        given = share.visits
        found = smallest(instance, np.array([best.offsets[b.name] for b in instance.buffers], np.int64), goal, share, limit)
        self.effort.spend(share, given)
        assert found.offsets is not None
        offsets = dict.fromkeys((b.name for b in buffers), 0)
        offsets |= dict(zip((b.name for b in instance.buffers), found.offsets.tolist()))
        self.plans[names] = Packed(offsets, found.size, found.bound if goal <= best.bound else best.bound)
        return self.plans[names]

    def first_that_fit(self, buffers: Sequence[BufferInfo], pool: PoolInfo) -> tuple[list[BufferInfo], dict[str, int]]:
        """Return those of the buffers, given in order of value, that first fit finds room for, and their offsets."""
        placement = self.placement(pool)
        found = []
        for buffer in buffers:
            try:
                placement.place(dataclasses.replace(buffer, pool_candidates=()))
            except Problem:
                continue
            found.append(buffer)
        return found, {name: place.byte_offset for name, place in placement.allocations.items()}

    def placement(self, pool: PoolInfo) -> Placement:
        """Return an empty pool, to be filled by first fit."""
        return Placement([pool])



def greedy(buffers: Sequence[BufferInfo], goal: int) -> dict[str, int]:
    """Return offsets by a static order, the better of two if the first does not reach `goal`."""
    free = [dataclasses.replace(b, pool_candidates=()) for b in buffers]
    placer = Placer(free, (PoolInfo("pool"),))
    ways: Iterable[tuple[Method, Key]] = ("first_fit", size_first), ("lowest_first", conflicts_first)
    best: tuple[int, dict[str, int]] | None = None
    for method, key in ways:
        placed = placer.place(method, ordered(free, key))
        if best is None or placed.sizes["pool"] < best[0]:
            best = placed.sizes["pool"], {name: place.byte_offset for name, place in placed.allocations.items()}
        if best[0] <= goal:
            break
    assert best is not None
    return best[1]
