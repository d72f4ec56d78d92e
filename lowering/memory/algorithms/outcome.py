"""The outcome of a planner's algorithm, from which a plan is made: the allocations, and the proved bounds."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....runtime.records import dataclass
from ..buffers import BufferInfo, PoolAllocation, PoolInfo, sizes_of
from .lower_bound import lower_bound
from .pool_costs import Costs, costs_of


@dataclass(frozen=True, slots=True)
class Outcome:
    """The allocation of each buffer, by name, and a proved lower bound of the size of each pool with the same buffers. An
    outcome is `proved` if no plan costs less (`pool_costs`), and none of the same cost has smaller pools, the least wanted one
    compared first."""
    allocations: Mapping[str, PoolAllocation]
    bounds: Mapping[str, int]
    proved: bool = False


def judged(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], allocations: Mapping[str, PoolAllocation]) -> Outcome:
    """Return the outcome of an algorithm that gives allocations only."""
    held = {p.name: [b for b in buffers if allocations[b.name].pool == p.name] for p in pools}
    bounds = {name: lower_bound(inside) for name, inside in held.items()}
    are_least = sizes_of(buffers, pools, allocations) == list(bounds.values())[::-1]
    homes = {name: place.pool for name, place in allocations.items()}
    return Outcome(allocations, bounds, are_least and is_only(homes, costs_of(buffers, pools)))


def is_only(homes: Mapping[str, str], costs: Costs) -> bool:
    """True if every other assignment of buffers to pools costs more."""
    return all(all(cost > of_buffer[homes[name]] for pool, cost in of_buffer.items() if pool != homes[name])
               for name, of_buffer in costs.items())
