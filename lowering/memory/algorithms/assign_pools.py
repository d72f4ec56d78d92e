"""Which buffer lies in which pool, where there are several: what it costs to have it there, and assignments that cost little
and fit.

Where the bandwidths or latencies of a buffer's pools are known, the cost is the time to write it and to read it once;
otherwise it is its bytes times the place of the pool in the user's order. A pool that cannot hold all that want it keeps
what saves most for each byte and tick: short-lived and small buffers.
"""
from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction

from ....runtime.records import dataclass
from ..buffers import BufferInfo, PoolAllocation, PoolInfo
from .packer import Packer, first_that_fit

Costs = Mapping[str, Mapping[str, Fraction]]
"""Of each buffer, the cost of each pool that it may lie in, the cheapest first."""
Homes = dict[str, str]
"""The pool of each buffer, by name."""

RETRIES = 20_000
"""For a buffer that first fit finds no room for, the search is asked; so often, divided by the number of buffers."""
MOST_ASSIGNMENTS = 5000
"""Up to this number, assignments are tried one by one; where there are more, they are made by rules."""


def access_cost(pool: PoolInfo, nbytes: int) -> Fraction | None:
    """Seconds (cycles where the clock is not known) to write `nbytes` bytes and to read them once; None where nothing is
    known of the pool."""
    bandwidths = pool.write_bandwidth_bytes_per_cycle, pool.read_bandwidth_bytes_per_cycle
    if not any(bandwidths) and not pool.write_latency_cycles and not pool.read_latency_cycles:
        return None
    cycles = sum((Fraction(nbytes, b) for b in bandwidths if b), Fraction(pool.write_latency_cycles + pool.read_latency_cycles))
    return cycles / (pool.clock_frequency_hz or 1)


def costs_of(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> Costs:
    """What each buffer costs in each of its pools. Pools are compared by time only where all of them are known, and the
    clock of all or of none."""
    def costs(b: BufferInfo) -> dict[str, Fraction]:
        candidates = b.candidates(pools)
        times = {p.name: access_cost(p, b.size_bytes) for p in candidates}
        known = {name: time for name, time in times.items() if time is not None}
        if len(known) < len(candidates) or len({p.clock_frequency_hz is None for p in candidates}) > 1:
            return {p.name: Fraction(b.size_bytes * i) for i, p in enumerate(candidates)}
        return dict(sorted(known.items(), key=lambda item: item[1]))

    return {b.name: costs(b) for b in buffers}


@dataclass(frozen=True, slots=True)
class Assignment:
    """The pool of each buffer, and those that no pool has room for."""
    homes: Homes
    homeless: tuple[str, ...] = ()


def cheapest(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], costs: Costs, packer: Packer) -> Assignment:
    """The cheapest assignment that fits where there are few, and else one that is good."""
    count = 1
    for b in buffers:
        count = min(count * len(costs[b.name]), MOST_ASSIGNMENTS + 1)
    found = best_of_all(buffers, pools, costs, packer) if count <= MOST_ASSIGNMENTS else None
    return found or spilled(buffers, pools, costs, packer)


def best_of_all(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], costs: Costs, packer: Packer) -> Assignment | None:
    """Of all assignments that fit the cheapest; of those, the one with the smallest pools, the least wanted pool first."""
    best: tuple[Fraction, list[int]] | None = None
    answer: Homes | None = None
    for total, homes in assignments(buffers, costs):
        if best is not None and total > best[0]:
            break
        sizes = sizes_of(buffers, pools, homes, packer)
        if sizes is not None and (best is None or (total, sizes) < best):
            best, answer = (total, sizes), homes
    return None if answer is None else Assignment(answer)


def assignments(buffers: Sequence[BufferInfo], costs: Costs) -> list[tuple[Fraction, Homes]]:
    """All of them, the cheapest first."""
    options = [[(cost, b.name, pool) for pool, cost in costs[b.name].items()] for b in buffers]
    found = [(sum((cost for cost, _, _ in choice), Fraction(0)), {name: pool for _, name, pool in choice})
             for choice in itertools.product(*options)]
    return sorted(found, key=lambda f: f[0])


def sizes_of(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], homes: Homes, packer: Packer) -> list[int] | None:
    """The least sizes of the pools, the least wanted first; None where one is too small."""
    held = [(pool.size_hint_bytes, [b for b in buffers if homes[b.name] == pool.name]) for pool in reversed(pools)]
    if any(limit is not None and packer.bound(inside) > limit for limit, inside in held):
        return None
    sizes = []
    for limit, inside in held:
        sizes.append(packer.smallest(inside, limit).size)
        if limit is not None and sizes[-1] > limit:
            return None
    return sizes


# ---- by rules --------------------------------------------------------------------------------------------------------
def spilled(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], costs: Costs, packer: Packer) -> Assignment:
    """Every buffer in its cheapest pool; what a pool cannot hold goes on to the next, until all pools hold what they have."""
    options = {b.name: list(costs[b.name]) for b in buffers}
    homeless: list[BufferInfo] = []
    waiting = list(pools)
    while waiting:
        pool = waiting.pop(0)
        inside = [b for b in buffers if options[b.name] and options[b.name][0] == pool.name]
        kept = kept_by(pool, sorted(inside, key=lambda b: value(b, pool, options, costs), reverse=True), packer)
        for b in inside:
            if b.name not in kept:
                options[b.name].pop(0)
                if not options[b.name]:
                    homeless.append(b)
                elif all(p.name != options[b.name][0] for p in waiting):
                    waiting += [p for p in pools if p.name == options[b.name][0]]
    largest_first = sorted(homeless, key=lambda b: (-b.size_bytes, b.name))
    return Assignment({name: left[0] for name, left in options.items() if left}, tuple(b.name for b in largest_first))


def value(b: BufferInfo, pool: PoolInfo, options: Mapping[str, Sequence[str]], costs: Costs) -> tuple[bool, Fraction, str]:
    """What it is worth to keep a buffer in a pool: what its next pool costs more, for each byte and tick; most of all where
    there is no other."""
    left = options[b.name]
    if len(left) < 2:
        return True, Fraction(b.size_bytes), b.name
    saved = costs[b.name][left[1]] - costs[b.name][pool.name]
    return False, saved / max(1, b.size_bytes * b.lifetime), b.name


def kept_by(pool: PoolInfo, inside: Sequence[BufferInfo], packer: Packer) -> set[str]:
    """Which buffers a pool keeps, of those that want it, the most valuable first."""
    if pool.size_hint_bytes is None or packer.fits(inside, pool.size_hint_bytes):
        return {b.name for b in inside}
    kept, offsets = first_that_fit(inside, pool)
    packer.know(kept, offsets)
    names = {b.name for b in kept}
    for b in [b for b in inside if b.name not in names][:1 + RETRIES // len(inside)]:
        if packer.fits([*kept, b], pool.size_hint_bytes):
            kept.append(b)
    return {b.name for b in kept}


def allocated(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], homes: Homes,
              packer: Packer) -> dict[str, PoolAllocation]:
    """The place of each buffer, in pools as small as can be found."""
    found: dict[str, PoolAllocation] = {}
    for pool in pools:
        inside = [b for b in buffers if homes[b.name] == pool.name]
        offsets = packer.smallest(inside, pool.size_hint_bytes).offsets
        found |= {name: PoolAllocation(pool.name, offset) for name, offset in offsets.items()}
    return found
