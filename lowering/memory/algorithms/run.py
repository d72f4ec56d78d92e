"""The planner's algorithms, and what runs one. An algorithm is a function from buffers (with symmetric conflicts) and pools
to the place of each buffer; `allocate` runs one and checks what it did. All are deterministic: ties go to the name.

`greedy_by_size`, `greedy_by_conflicts` and `hill_climb` are those of TVM's Unified Static Memory Planner, without their
faults; `portfolio` is the default; `exact` searches on. `registry` says how to add one.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....runtime.errors import Problem
from ..buffers import BufferInfo, PoolAllocation, PoolInfo, with_conflicts
from ..check.verify import conflict_faults, lifetime_faults, placement_faults, require_sound
from .first_fit_compiled import Placer
from .hill_climb import hill_climb
from .lower_bound import memory_pressure
from .orders import Key, area_first, birth_first, conflicts_first, death_last, lifetime_first, ordered, size_first
from .outcome import Outcome, judged
from .pool_costs import Objective, checked_objective
from .pool_offsets import behind_offsets
from .portfolio import exact, portfolio
from .registry import ALGORITHMS, Algorithm, algorithm, find_algorithm, planner
from .search_state import HUGE

__all__ = ["ALGORITHMS", "Algorithm", "Key", "algorithm", "allocate", "area_first", "birth_first", "conflicts_first",
           "death_last", "exact", "find_algorithm", "greedy_by_conflicts", "greedy_by_size", "hill_climb", "lifetime_first",
           "ordered", "portfolio", "run_algorithm", "size_first"]


def allocate(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo],
             algorithm: str | Algorithm = "portfolio", objective: Objective = "traffic") -> dict[str, PoolAllocation]:
    """Return the place of each buffer, by name, in the order of `buffers`. Two buffers share no byte where one names the other
    among its conflicts, or where both are `live` at one tick; the answer is checked against the conflicts and the lifetimes
    as they are given. Where there are several pools, `objective` says what counts first: "traffic" through slow pools, or the
    "bytes" of each pool, the last one first.

    Raises a Problem where a buffer fits in none of its pools, or the algorithm breaks a rule.
    """
    found = run_algorithm(with_conflicts(buffers), pools, algorithm, checked_objective(objective)).allocations
    require_sound([*conflict_faults(buffers, found), *lifetime_faults(buffers, found)])
    return dict(found)


def run_algorithm(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo],
                  algorithm: str | Algorithm, objective: Objective = "traffic") -> Outcome:
    """`allocate` for conflicts that are symmetric, with no check of them: the caller verifies the plan."""
    if len({p.name for p in pools}) < len(pools):
        raise Problem(f"two pools have the same name: {', '.join(p.name for p in pools)}", kind="option")
    total = sum(b.size_bytes + b.alignment for b in buffers)
    if total >= HUGE:
        raise Problem(f"the buffers have {total} bytes together, more than any memory", kind="memory")
    run = planner(find_algorithm(algorithm) if isinstance(algorithm, str) else algorithm, lambda: memory_pressure(buffers),
                  objective)

    def place(pools: Sequence[PoolInfo]) -> Outcome:
        answer = run(buffers, pools)
        places = answer.allocations if isinstance(answer, Outcome) else answer
        require_sound(list(placement_faults(buffers, pools, places)))
        in_order = {b.name: places[b.name] for b in buffers}
        return replace(answer, allocations=in_order) if isinstance(answer, Outcome) else judged(buffers, pools, in_order)

    return behind_offsets(buffers, pools, place)


@algorithm("greedy_by_size")
def greedy_by_size(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> Mapping[str, PoolAllocation]:
    """The largest buffer first; of equal ones, the one with most conflicts."""
    return Placer(buffers, pools).place("first_fit", ordered(buffers, size_first)).allocations


@algorithm("greedy_by_conflicts")
def greedy_by_conflicts(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> Mapping[str, PoolAllocation]:
    """The buffer with most conflicts first; of equal ones, the largest."""
    return Placer(buffers, pools).place("first_fit", ordered(buffers, conflicts_first)).allocations
