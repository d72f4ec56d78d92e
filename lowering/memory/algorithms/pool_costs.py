"""The cost of a buffer in a pool: the time to move the bytes that a run reads and writes of it, if the bandwidths or latencies
of its pools are known; otherwise the bytes moved, times the index of the pool in the user's order, which goes from fast to
slow. Bytes are counted in whole bursts of the pool.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Literal, get_args

from ....runtime.errors import ValueProblem
from ..buffers import BufferInfo, PoolAllocation, PoolInfo, aligned, sizes_of

Objective = Literal["traffic", "bytes"]
"""First criterion with several pools: the bytes that a run moves through slow ones (or the time), or the bytes of each pool,
the least wanted one first."""

Costs = Mapping[str, Mapping[str, Fraction]]
"""Cost of each buffer in each pool that may hold it, the cheapest first."""


def checked_objective(value: Objective) -> Objective:
    """Return the objective; raise a Problem if the value is none."""
    if value not in get_args(Objective):
        raise ValueProblem(f"objective is {value!r}", kind="option", help=f"it may be {', '.join(get_args(Objective))}")
    return value


def access_cost(pool: PoolInfo, read: int, written: int) -> Fraction | None:
    """Return the seconds (cycles if the clock is not known) to read and to write these bytes; None if nothing is known of
    the pool."""
    bandwidths = pool.read_bandwidth_bytes_per_cycle, pool.write_bandwidth_bytes_per_cycle
    if not any(bandwidths) and not pool.write_latency_cycles and not pool.read_latency_cycles:
        return None
    cycles = sum((Fraction(nbytes, b) for nbytes, b in zip(in_bursts(pool, read, written), bandwidths) if b),
                 Fraction(pool.write_latency_cycles + pool.read_latency_cycles))
    return cycles / (pool.clock_frequency_hz or 1)


def in_bursts(pool: PoolInfo, *moved: int) -> list[int]:
    """Return the bytes that move through a pool, each amount rounded up to whole bursts."""
    return [aligned(nbytes, pool.burst_bytes) for nbytes in moved]


def costs_of(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> Costs:
    """Return the cost of each buffer in each of its pools. Pools are compared by time only if the times of all are known, and
    the clock of all or of none."""
    def costs(b: BufferInfo) -> dict[str, Fraction]:
        candidates = b.candidates(pools)
        times = {p.name: access_cost(p, *b.traffic) for p in candidates}
        known = {name: time for name, time in times.items() if time is not None}
        if len(known) < len(candidates) or len({p.clock_frequency_hz is None for p in candidates}) > 1:
            return {p.name: Fraction(sum(in_bursts(p, *b.traffic)) * i) for i, p in enumerate(candidates)}
        return dict(sorted(known.items(), key=lambda item: item[1]))

    return {b.name: costs(b) for b in buffers}


def cost_of(buffers: Sequence[BufferInfo], costs: Costs, allocations: Mapping[str, PoolAllocation]) -> Fraction:
    """Return the cost of a plan."""
    return sum((costs[b.name][allocations[b.name].pool] for b in buffers), Fraction(0))


def score_of(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], allocations: Mapping[str, PoolAllocation],
             objective: Objective, costs: Costs | None = None) -> list[Fraction]:
    """Return the score of a plan: the chosen objective first, then the other one; less is better."""
    sizes = list(map(Fraction, sizes_of(buffers, pools, allocations)))
    traffic = cost_of(buffers, costs or costs_of(buffers, pools), allocations) if len(pools) > 1 else Fraction(0)
    return [traffic, *sizes] if objective == "traffic" else [*sizes, traffic]
