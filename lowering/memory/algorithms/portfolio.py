"""The default algorithm, and the thorough one: cheap static orders first; then, while the plan is larger than the lower
bound, the exact search, within an effort that is counted and never timed, so that plans do not vary.

With one pool, the answer is the smallest arena if its size is the lower bound, or if the search has ruled out every smaller
one; otherwise it is the best that was found. The pool's limit does not affect the search: it only decides whether the plan is
refused, so that a smaller limit never leads to a better plan than a larger one, or none. With several pools, the answer is the
cheapest assignment of buffers to pools (`assign_pools`), and then the smallest pools, the least wanted first; that is optimal
with few assignments, and often otherwise. With the objective "bytes" the sizes of the pools come first (`smallest_pools`). The
hill climb runs as well, and the better plan is taken.
"""
from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

from ....runtime.errors import Label, Problem
from ....runtime.records import dataclass
from ..buffers import BufferInfo, PoolAllocation, PoolInfo, sizes_of
from .assign_pools import Score, allocated, are_few, cheapest
from .capacity_search import PYTHON_VISITS, Effort
from .first_fit import no_room
from .first_fit_compiled import Method, Placer
from .hill_climb import hill_climb
from .lower_bound import lower_bound, memory_pressure
from .orders import Key, area_first, birth_first, conflicts_first, crowd_first, death_last, lifetime_first, ordered, size_first
from .outcome import Outcome, is_only, judged
from .packer import Packer
from .pool_costs import Objective, cost_of, costs_of, score_of
from .registry import algorithm
from .smallest_pools import with_smaller_pools

PORTFOLIO_VISITS = 16_000_000
"""The effort of `portfolio`: some 80 ms."""
TRIFLE = 64
"""Largest saving, in bytes, for which `portfolio` spends no more than a few milliseconds, in Python."""
EXACT_VISITS = 500_000_000
"""The effort of `exact`: some 2 s."""

SHOWN = 5
"""Maximum number of buffers that a message lists."""

FIRST_ATTEMPTS = 5
"""Number of static orders that are tried before a search; without a search, all are tried."""
ATTEMPT_VISITS = 60_000_000
"""Maximum number of conflicts that static orders may visit, all together."""


@algorithm("portfolio")
def portfolio(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], objective: Objective = "traffic") -> Outcome:
    """Plan with cheap orders, and a short search if they leave a gap: quick on every model, and optimal on most. If the plan is
    not proved optimal in one pool, or nothing fits into several, plan as `exact`."""
    if len(pools) == 1:
        return within(buffers, pools, in_one_pool(buffers, pools[0]))
    try:
        return quick(buffers, pools, objective)
    except Problem:
        return thorough(buffers, pools, objective)


def quick(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], objective: Objective = "traffic") -> Outcome:
    """Return the plan that `portfolio` tries first."""
    return by_objective(buffers, pools, objective, PORTFOLIO_VISITS, TRIFLE)


@algorithm("exact")
def exact(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], objective: Objective = "traffic") -> Outcome:
    """Plan as `portfolio`, and in several pools always with thirty times its effort for the search."""
    if len(pools) == 1:
        return within(buffers, pools, in_one_pool(buffers, pools[0]))
    found = thorough(buffers, pools, objective)
    with contextlib.suppress(Problem):
        return min(found, quick(buffers, pools, objective), key=lambda x: score_of(buffers, pools, x.allocations, objective))
    return found


def thorough(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], objective: Objective = "traffic") -> Outcome:
    """Return the plan with the effort of `exact`, which is also the last attempt of `portfolio`."""
    return by_objective(buffers, pools, objective, EXACT_VISITS, 0)


def by_objective(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], objective: Objective, visits: int, trifle: int
                 ) -> Outcome:
    """Return the plan of one pool, or of several the better one of the search and of `hill_climb`, by the objective."""
    if len(pools) == 1:
        return planned(buffers, pools, Effort(visits), trifle)
    found, refused = list[Outcome](), None
    for way in (lambda: planned(buffers, pools, Effort(visits), trifle),
                lambda: climbed(buffers, pools)):
        try:
            found.append(way())
        except Problem as problem:
            refused = refused or problem
        if found and found[0].proved and objective == "traffic":
            return found[0]
    if not found:
        assert refused is not None
        raise refused
    best = min(found, key=lambda x: score_of(buffers, pools, x.allocations, objective))
    return best if objective == "traffic" else smallest_in(buffers, pools, best)


def climbed(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> Outcome:
    """Return the plan of the hill climb."""
    found = hill_climb(buffers, pools, memory_pressure(buffers))
    return found if isinstance(found, Outcome) else judged(buffers, pools, found)


def smallest_in(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], first: Outcome) -> Outcome:
    """Return a plan with smaller pools, the least wanted first. It is proved only if all is in the first, at its least size."""
    best = with_smaller_pools(buffers, pools, first, lambda limited: planned(buffers, limited, Effort(PORTFOLIO_VISITS)))
    *others, first_size = sizes_of(buffers, pools, best.allocations)
    return dataclasses.replace(best, proved=not any(others) and first_size == best.bounds[pools[0].name])


def in_one_pool(buffers: Sequence[BufferInfo], pool: PoolInfo) -> Outcome:
    """Return the plan of `portfolio` for one pool, as if the pool had no limit."""
    free = [unlimited(pool)]
    first = quick(buffers, free)
    if first.proved:
        return first
    second = thorough(buffers, free)
    best = min((first, second), key=lambda found: sizes_of(buffers, free, found.allocations))
    bound = max(first.bounds[pool.name], second.bounds[pool.name])
    return Outcome(best.allocations, {pool.name: bound}, sizes_of(buffers, free, best.allocations) == [bound])


def planned(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], effort: Effort,
            trifle: int = 0) -> Outcome:
    """Return the best plan that is found with this effort, or with very little if it could save at most `trifle` bytes. Raises
    a Problem if none is found."""
    if len(pools) == 1:
        return within(buffers, pools, PlanningProblem(buffers, [unlimited(pools[0])]).solved(effort, trifle))
    return PlanningProblem(buffers, pools).solved(effort, trifle)


def unlimited(pool: PoolInfo) -> PoolInfo:
    return dataclasses.replace(pool, size_hint_bytes=None)


def within(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], found: Outcome) -> Outcome:
    """Return the plan of one pool; raise a Problem if the plan exceeds the pool's limit."""
    (size,), (pool,) = sizes_of(buffers, pools, found.allocations), pools
    if pool.size_hint_bytes is not None and size > pool.size_hint_bytes:
        raise too_large(buffers, pool, size, found.bounds[pool.name])
    return found


@dataclass(frozen=True, slots=True)
class Scored:
    """A plan and its score: less is better."""
    allocations: Mapping[str, PoolAllocation]
    score: Score


class PlanningProblem:
    """Buffers and pools, and a lower bound of the score of the best plan."""

    def __init__(self, buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> None:
        self.pools, self.costs = pools, costs_of(buffers, pools)
        for b in buffers:
            if not self.costs[b.name]:
                raise no_room(b, [], pools)
        self.buffers = [dataclasses.replace(b, pool_candidates=tuple(self.costs[b.name])) for b in buffers]
        first = {b.name: b.pool_candidates[0] for b in self.buffers}
        self.least: Score = (sum((self.costs[name][pool] for name, pool in first.items()), Fraction(0)),
                             [lower_bound([b for b in self.buffers if first[b.name] == p.name]) for p in reversed(pools)])
        self.has_ties = not is_only(first, self.costs)

    def solved(self, effort: Effort, trifle: int) -> Outcome:
        """Return the best plan that is found with this effort; raise a Problem if none is."""
        best, refused = self.attempts(effort)
        if best is not None and best.score[0] == self.least[0] and not (self.has_ties and are_few(self.costs)):
            is_little = sum(best.score[1]) - sum(self.least[1]) <= trifle
            packer = Packer(effort.share(PYTHON_VISITS) if is_little else effort)
            return self.tightened(best, packer, not self.has_ties)
        packer = Packer(effort)
        found = cheapest(self.buffers, self.pools, self.costs, packer)
        if not found.homeless:
            other = self.scored(allocated(self.buffers, self.pools, found.homes, packer))
            best = other if best is None or other.score < best.score else best
        if best is None:
            assert refused is not None
            raise noted(refused, [no_room_for(found.homeless)])
        return self.tightened(best, packer, found.proved)

    def scored(self, allocations: Mapping[str, PoolAllocation]) -> Scored:
        return Scored(allocations, (cost_of(self.buffers, self.costs, allocations),
                                    sizes_of(self.buffers, self.pools, allocations)))

    def attempts(self, effort: Effort) -> tuple[Scored | None, Problem | None]:
        """Return the best of some static orders, and the Problem of the first that failed; stop at an order that none can
        beat."""
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

    def tightened(self, best: Scored, packer: Packer, is_cheapest: bool) -> Outcome:
        """Return the plan with the same buffers in the same pools, in less room if there is a way. The plan is proved to be the
        best if `is_cheapest` says so of the pools, and no pool can be smaller."""
        found, bounds, is_least = dict(best.allocations), {}, True
        for i, pool in enumerate(self.pools):
            inside = [b for b in self.buffers if best.allocations[b.name].pool == pool.name]
            packer.know(inside, {b.name: best.allocations[b.name].byte_offset for b in inside})
            packed = packer.smallest(inside, pool.size_hint_bytes, len(self.pools) - i)
            found |= {name: PoolAllocation(pool.name, offset) for name, offset in packed.offsets.items()}
            bounds[pool.name], is_least = packed.bound, is_least and packed.size == packed.bound
        return Outcome(found, bounds, is_cheapest and is_least)


def static_orders(buffers: Sequence[BufferInfo]) -> Iterator[tuple[Method, list[BufferInfo]]]:
    """Yield methods and orders worth trying, each once: those first that often reach the lower bound."""
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


def too_large(buffers: Sequence[BufferInfo], pool: PoolInfo, size: int, bound: int) -> Problem:
    """Return the Problem of buffers that do not fit into one pool: the smallest plan that was found has `size` bytes, and none
    has less than `bound`."""
    free = [dataclasses.replace(b, pool_candidates=()) for b in buffers]
    kept, _ = Packer(Effort(0)).first_that_fit(ordered(free, size_first), pool)
    names = {b.name for b in kept}
    left = [b.name for b in sorted(free, key=lambda b: (-b.size_bytes, b.name)) if b.name not in names]
    rules = "no plan of this schedule, by the same rules of sharing,"
    proof = f"{rules} has less" if bound == size else f"{rules} has less than {bound}"
    notes = [*([no_room_for(left)] if left else []), f"the smallest plan that was found has {size} bytes; {proof}"]
    try:
        Placer(buffers, [pool]).place("first_fit", ordered(buffers, size_first))
    except Problem as refused:
        return noted(refused, notes)
    raise AssertionError("a plan of first fit is among those that were tried")


def no_room_for(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"there is no room for {', '.join(names[:SHOWN])}{more}"


def noted(refused: Problem, notes: Sequence[str]) -> Problem:
    """Return the same Problem with notes."""
    return Problem(refused.message, refused.position, kind=refused.kind, help=refused.help,
                   labels=tuple(Label(None, note) for note in notes))
