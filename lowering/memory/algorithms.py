"""The planner's algorithms, by name. An algorithm is a function from buffers (with symmetric conflicts) and pools to
the place of each buffer; `allocate` runs one and checks what it did. All are deterministic: ties go to the name.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ...runtime.errors import Problem
from .buffers import BufferInfo, PoolAllocation, PoolInfo, symmetric
from .lower_bound import lower_bound
from .placement import Placement, first_fit
from .verify import allocation_faults, require_sound

Algorithm = Callable[[Sequence[BufferInfo], Sequence[PoolInfo]], Mapping[str, PoolAllocation]]
Key = Callable[[BufferInfo], tuple[int, ...]]

ALGORITHMS: dict[str, Algorithm] = {}


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
    """The place of each buffer, by name, in the order of `buffers`. Conflicts may be given one way.

    Raises a Problem where a buffer fits in none of its pools, or the algorithm breaks a rule.
    """
    if len({p.name for p in pools}) < len(pools):
        raise Problem(f"two pools have the same name: {', '.join(p.name for p in pools)}", kind="option")
    both_ways = symmetric(buffers)
    run = find_algorithm(algorithm) if isinstance(algorithm, str) else algorithm
    found = run(both_ways, pools)
    require_sound(allocation_faults(both_ways, pools, found))
    return {b.name: found[b.name] for b in both_ways}


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


def static_orders(buffers: Sequence[BufferInfo]) -> Iterator[list[BufferInfo]]:
    """Orders worth trying, the best on average first, each once."""
    sizes = {b.name: b.size_bytes for b in buffers}
    crowd = {b.name: b.size_bytes + sum(sizes[name] for name in b.conflicts) for b in buffers}
    keys: list[Key] = [
        size_first, conflicts_first,
        lambda b: (b.size_bytes * b.lifetime, b.size_bytes),
        lambda b: (b.lifetime, b.size_bytes),
        lambda b: (b.size_bytes * len(b.conflicts), b.size_bytes),
        lambda b: (crowd[b.name], b.size_bytes),
    ]
    seen = set()
    for key in keys:
        order = ordered(buffers, key)
        names = tuple(b.name for b in order)
        if names not in seen:
            seen.add(names)
            yield order


@algorithm("portfolio")
def portfolio(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> Mapping[str, PoolAllocation]:
    """The best of several static orders: the last pool as small as possible, then the one before it, and so on. Stops
    where the first pool holds everything in no more than the lower bound."""
    best: Placement | None = None
    refused: Problem | None = None
    least = [0] * (len(pools) - 1) + [lower_bound(buffers)]
    for order in static_orders(buffers):
        try:
            found = first_fit(order, pools)
        except Problem as problem:
            refused = refused or problem
            continue
        if best is None or cost(found) < cost(best):
            best = found
        if cost(best) <= least:
            break
    if best is None:
        assert refused is not None
        raise refused
    return best.allocations


def cost(placement: Placement) -> list[int]:
    """Sizes of the pools, the least wanted one first."""
    return [placement.sizes[p.name] for p in reversed(placement.pools)]
