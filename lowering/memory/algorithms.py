"""The planner's algorithms, by name. An algorithm is a function from buffers (with symmetric conflicts) and pools to
the place of each buffer; `allocate` runs one and checks what it did. All are deterministic: ties go to the name.
"""
from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from ...runtime.errors import Problem
from .buffers import BufferInfo, PoolAllocation, PoolInfo, symmetric
from .lower_bound import lower_bound
from .placement import Placement, first_fit, lowest_first
from .verify import conflict_faults, placement_faults, require_sound

Algorithm = Callable[[Sequence[BufferInfo], Sequence[PoolInfo]], Mapping[str, PoolAllocation]]
Key = Callable[[BufferInfo], tuple[int, ...]]

ALGORITHMS: dict[str, Algorithm] = {}

EFFORT = 2_000_000
"""How many conflicts `portfolio` looks at in all its attempts: a count and no time, so that plans never vary."""


def algorithm(name: str) -> Callable[[Algorithm], Algorithm]:
    """Register a planner's algorithm, so that an option can name it."""
    def register(function: Algorithm) -> Algorithm:
        if name in ALGORITHMS:
            raise Problem(f"there is a planner's algorithm named {name} already", kind="option")
        ALGORITHMS[name] = function
        return function

    return register


def find_algorithm(name: str) -> Algorithm:
    """The algorithm of that name."""
    if name not in ALGORITHMS:
        raise Problem(f"there is no planner's algorithm named {name}", kind="option",
                      help=f"there are {', '.join(sorted(ALGORITHMS))}")
    return ALGORITHMS[name]


def allocate(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo],
             algorithm: str | Algorithm = "portfolio") -> dict[str, PoolAllocation]:
    """The place of each buffer, by name, in the order of `buffers`. Conflicts may be given one way; the answer is
    checked against them.

    Raises a Problem where a buffer fits in none of its pools, or the algorithm breaks a rule.
    """
    both_ways = symmetric(buffers)
    found = run_algorithm(both_ways, pools, algorithm)
    require_sound(list(conflict_faults(both_ways, found)))
    return found


def run_algorithm(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo],
                  algorithm: str | Algorithm) -> dict[str, PoolAllocation]:
    """`allocate` for conflicts that are symmetric, with no check of them: the caller verifies the plan."""
    if len({p.name for p in pools}) < len(pools):
        raise Problem(f"two pools have the same name: {', '.join(p.name for p in pools)}", kind="option")
    run = find_algorithm(algorithm) if isinstance(algorithm, str) else algorithm
    found = run(buffers, pools)
    require_sound(list(placement_faults(buffers, pools, found)))
    return {b.name: found[b.name] for b in buffers}


# ---- static orders, placed by first fit ------------------------------------------------------------------------------
def ordered(buffers: Sequence[BufferInfo], key: Key) -> list[BufferInfo]:
    """By falling key; ties by falling name."""
    return sorted(buffers, key=lambda b: (*key(b), b.name), reverse=True)


def size_first(b: BufferInfo) -> tuple[int, ...]:
    return b.size_bytes, len(b.conflicts)


def conflicts_first(b: BufferInfo) -> tuple[int, ...]:
    return len(b.conflicts), b.size_bytes


@algorithm("greedy_by_size")
def greedy_by_size(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> Mapping[str, PoolAllocation]:
    """The largest buffer first; of equal ones, the one with most conflicts."""
    return first_fit(ordered(buffers, size_first), pools).allocations


@algorithm("greedy_by_conflicts")
def greedy_by_conflicts(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> Mapping[str, PoolAllocation]:
    """The buffer with most conflicts first; of equal ones, the largest."""
    return first_fit(ordered(buffers, conflicts_first), pools).allocations


def area_first(b: BufferInfo) -> tuple[int, ...]:
    return b.size_bytes * b.lifetime, b.size_bytes


def lifetime_first(b: BufferInfo) -> tuple[int, ...]:
    return b.lifetime, b.size_bytes


def birth_first(b: BufferInfo) -> tuple[int, ...]:
    return -b.live[0][0] if b.live else 0, b.size_bytes


def death_last(b: BufferInfo) -> tuple[int, ...]:
    return b.live[-1][1] if b.live else 0, b.size_bytes


def crowd_first(buffers: Sequence[BufferInfo]) -> Key:
    """By the most bytes that are live together at some tick of a buffer's life, then by lifetime."""
    crowds = {b.name: crowd for b, crowd in zip(buffers, crowding(buffers))}
    return lambda b: (crowds[b.name], b.lifetime)


def crowding(buffers: Sequence[BufferInfo]) -> list[int]:
    """For each buffer the most bytes that are live at one tick while it is; 0 where that is not known."""
    spans = [(first, last, b.size_bytes) for b in buffers for first, last in b.live or ()]
    events = sorted([(first, 0, size) for first, _, size in spans] + [(last, 1, -size) for _, last, size in spans])
    starts = [tick for tick, ends, _ in events if not ends]
    totals = [total for total, (_, ends, _) in zip(itertools.accumulate(e[2] for e in events), events) if not ends]

    def most(first: int, last: int) -> int:
        return max(totals[bisect.bisect_left(starts, first):bisect.bisect_right(starts, last)])

    return [max((most(*span) for span in b.live or ()), default=0) for b in buffers]


def attempts(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> Iterator[Callable[[], Placement]]:
    """Ways to place the buffers that are worth trying, each once: those first that often reach the lower bound."""
    keys: list[tuple[Callable[..., Placement], Callable[[], Key]]] = [
        (first_fit, lambda: size_first), (first_fit, lambda: conflicts_first), (lowest_first, lambda: conflicts_first),
        (lowest_first, lambda: death_last), (lowest_first, lambda: crowd_first(buffers)),
        (lowest_first, lambda: birth_first), (lowest_first, lambda: lifetime_first), (lowest_first, lambda: area_first),
        (lowest_first, lambda: size_first), (first_fit, lambda: area_first), (first_fit, lambda: lifetime_first)]
    seen = set()
    for place, key in keys:
        order = ordered(buffers, key())
        names = place, tuple(b.name for b in order)
        if names not in seen:
            seen.add(names)
            yield functools.partial(place, order, pools)


@algorithm("portfolio")
def portfolio(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> Mapping[str, PoolAllocation]:
    """The best of several static orders: the last pool as small as possible, then the one before it, and so on. Stops
    where the first pool holds everything in no more than the lower bound."""
    best: Placement | None = None
    refused: Problem | None = None
    least = [0] * (len(pools) - 1) + [lower_bound(buffers)]
    visits = 1 + sum(len(b.conflicts) for b in buffers)
    for attempt in itertools.islice(attempts(buffers, pools), max(2, EFFORT // visits)):
        try:
            found = attempt()
        except Problem as problem:
            refused = refused or problem
            continue
        if best is None or cost(found) < cost(best):
            best = found
        if cost(best) <= least:
            break
    if best is None:
        raise refused or Problem("there are no pools to plan into", kind="option")
    return best.allocations


def cost(placement: Placement) -> list[int]:
    """Sizes of the pools, the least wanted one first."""
    return [placement.sizes[p.name] for p in reversed(placement.pools)]
