"""The default algorithm, and the thorough one: cheap static orders first; then, while the plan is larger than the lower
bound, the exact search, within an effort that is counted and never timed, so that plans do not vary.

With one pool the answer is the smallest arena where its size is the lower bound, or the search has ruled out every smaller
one; else the best that was found. With several pools it is the cheapest assignment of buffers to pools (`assign_pools`), and
then the smallest pools, the least wanted first; that is optimal where there are few assignments, and often elsewhere.
"""
from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

from ....runtime.errors import Label, Problem
from ....runtime.records import dataclass
from ..buffers import BufferInfo, PoolAllocation, PoolInfo, sizes_of
from .assign_pools import Assignment, Score, allocated, cheapest
from .capacity_search import PYTHON_VISITS, Effort
from .first_fit import no_room
from .first_fit_compiled import Method, Placer
from .lower_bound import lower_bound
from .orders import Key, area_first, birth_first, conflicts_first, crowd_first, death_last, lifetime_first, ordered, size_first
from .packer import Packer
from .pool_costs import cost_of, costs_of
from .registry import algorithm

PORTFOLIO_VISITS = 16_000_000
"""The effort of `portfolio`: some 80 ms."""
TRIFLE = 64
"""Bytes that `portfolio` spends no more on than a few milliseconds, in Python."""
EXACT_VISITS = 500_000_000
"""The effort of `exact`: some 2 s."""

SHOWN = 5
"""How many buffers a message lists."""

FIRST_ATTEMPTS = 5
"""Static orders that are tried before a search; where there is no search, all are tried."""
ATTEMPT_VISITS = 60_000_000
"""Conflicts that static orders may look at, all together."""


@algorithm("portfolio")
def portfolio(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> Mapping[str, PoolAllocation]:
    """Cheap orders, and a short search where they leave a gap: quick on every model, and on most of them optimal."""
    return planned(buffers, pools, Effort(PORTFOLIO_VISITS), TRIFLE).allocations


@algorithm("exact")
def exact(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> Mapping[str, PoolAllocation]:
    """As `portfolio`, with thirty times the effort for the search."""
    return planned(buffers, pools, Effort(EXACT_VISITS)).allocations


@dataclass(frozen=True, slots=True)
class Outcome:
    """A plan, and the least size that each pool can have with the same buffers, as far as that is proved."""
    allocations: Mapping[str, PoolAllocation]
    bounds: Mapping[str, int]


def planned(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], effort: Effort,
            trifle: int = 0) -> Outcome:
    """The best plan that is found with this effort, or with very little where it could save `trifle` bytes at most; a Problem
    where none is."""
    task = PlanningProblem(buffers, pools)
    best, refused = task.attempts(effort)
    if best is not None and best.score[0] == task.least[0]:
        is_little = sum(best.score[1]) - sum(task.least[1]) <= trifle
        return task.tightened(best, Packer(effort.share(PYTHON_VISITS) if is_little else effort))
    packer = Packer(effort)
    found = cheapest(buffers, pools, task.costs, packer)
    if not found.homeless:
        other = task.scored(allocated(buffers, pools, found.homes, packer))
        best = other if best is None or other.score < best.score else best
    if best is None:
        assert refused is not None
        raise explained(refused, task, found, packer)
    return task.tightened(best, packer)


@dataclass(frozen=True, slots=True)
class Scored:
    """A plan, and how good it is: less is better."""
    allocations: Mapping[str, PoolAllocation]
    score: Score


class PlanningProblem:
    """Buffers and pools, and what the best plan could be."""

    def __init__(self, buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> None:
        self.pools, self.costs = pools, costs_of(buffers, pools)
        for b in buffers:
            if not self.costs[b.name]:
                raise no_room(b, [], pools)
        self.buffers = [dataclasses.replace(b, pool_candidates=tuple(self.costs[b.name])) for b in buffers]
        first = {b.name: b.pool_candidates[0] for b in self.buffers}
        self.least: Score = (sum((self.costs[name][pool] for name, pool in first.items()), Fraction(0)),
                             [lower_bound([b for b in self.buffers if first[b.name] == p.name]) for p in reversed(pools)])

    def scored(self, allocations: Mapping[str, PoolAllocation]) -> Scored:
        return Scored(allocations, (cost_of(self.buffers, self.costs, allocations),
                                    sizes_of(self.buffers, self.pools, allocations)))

    def attempts(self, effort: Effort) -> tuple[Scored | None, Problem | None]:
        """The best of some static orders, and why the first that failed did; ends with the first that none can beat."""
        placer = Placer(self.buffers, self.pools)
        is_searched = len(self.buffers) ** 2 + 2 * placer.visits <= effort.visits
        count = FIRST_ATTEMPTS if is_searched else max(2, ATTEMPT_VISITS // placer.visits)
        best: Scored | None = None
        refused: Problem | None = None
        for method, order in itertools.islice(static_orders(self.buffers), count):
            try:
                found = self.scored(placer.place(method, order).allocations)
            except Problem as problem:
                refused = refused or problem
                continue
            if best is None or found.score < best.score:
                best = found
            if best.score <= self.least:
                break
        return best, refused

    def tightened(self, best: Scored, packer: Packer) -> Outcome:
        """The same buffers in the same pools, in less room if there is a way."""
        found, bounds = dict(best.allocations), {}
        for i, pool in enumerate(self.pools):
            inside = [b for b in self.buffers if best.allocations[b.name].pool == pool.name]
            packer.know(inside, {b.name: best.allocations[b.name].byte_offset for b in inside})
            packed = packer.smallest(inside, pool.size_hint_bytes, len(self.pools) - i)
            found |= {name: PoolAllocation(pool.name, offset) for name, offset in packed.offsets.items()}
            bounds[pool.name] = packed.bound
        return Outcome(found, bounds)


def static_orders(buffers: Sequence[BufferInfo]) -> Iterator[tuple[Method, list[BufferInfo]]]:
    """Ways to place the buffers that are worth trying, each once: those first that often reach the lower bound."""
    keys: list[tuple[Method, Callable[[], Key]]] = [
        ("first_fit", lambda: size_first), ("first_fit", lambda: conflicts_first), ("lowest_first", lambda: conflicts_first),
        ("lowest_first", lambda: death_last), ("lowest_first", lambda: crowd_first(buffers)),
        ("lowest_first", lambda: birth_first), ("lowest_first", lambda: lifetime_first), ("lowest_first", lambda: area_first),
        ("lowest_first", lambda: size_first), ("first_fit", lambda: area_first), ("first_fit", lambda: lifetime_first)]
    seen = set()
    for method, key in keys:
        order = ordered(buffers, key())
        names = method, tuple(b.name for b in order)
        if names not in seen:
            seen.add(names)
            yield method, order


def explained(refused: Problem, task: PlanningProblem, found: Assignment, packer: Packer) -> Problem:
    """Why there is no plan: what did not fit, and for one pool how small it can be."""
    names = list(found.homeless)
    shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    notes = [f"there is no room for {shown}"]
    if len(task.pools) == 1:
        packed = packer.smallest(task.buffers)
        proof = "no plan has less" if packed.bound == packed.size else f"none has less than {packed.bound}"
        notes.append(f"the smallest plan that was found has {packed.size} bytes; {proof}")
    return Problem(refused.message, refused.position, kind=refused.kind, help=refused.help,
                   labels=tuple(Label(None, note) for note in notes))
