"""The search for plans whose buffers share bytes: what it finds keeps every distance, and is found every time."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.memory.buffers import BufferInfo, PoolInfo, symmetric
from tosaic.lowering.memory.sharing.climb import Climb
from tosaic.lowering.memory.sharing.occupancy import Spacing
from tosaic.lowering.memory.sharing.overlap import both_ways, climbed, orders, place_all

POOLS = (PoolInfo("workspace"),)


def instance(seed: int, count: int = 14) -> tuple[tuple[BufferInfo, ...], dict[tuple[str, str], Spacing]]:
    """Buffers of random sizes and conflicts, some of which may overlap in part."""
    rng = np.random.default_rng(seed)
    nbytes = [int(n) * 16 for n in rng.integers(1, 40, count)]
    names = [f"b{i}" for i in range(count)]
    conflicts: dict[str, set[str]] = {name: set() for name in names}
    spacings: dict[tuple[str, str], Spacing] = {}
    for i in range(count):
        for j in range(i):
            if rng.random() < 0.5:
                conflicts[names[i]].add(names[j])
                if rng.random() < 0.4:  # the one's end may lie on the other's beginning
                    spacings[names[j], names[i]] = ((-nbytes[i] + int(rng.integers(0, nbytes[i])), nbytes[j]),)
    return symmetric([BufferInfo(name, n, int(rng.choice([1, 16, 64])), conflicts=frozenset(conflicts[name]))
                      for name, n in zip(names, nbytes)]), spacings


def faults(buffers: tuple[BufferInfo, ...], spacings: dict[tuple[str, str], Spacing], offsets: dict[str, int]) -> list[str]:
    both, found = both_ways(spacings), []
    for b in buffers:
        assert offsets[b.name] % b.alignment == 0 and offsets[b.name] >= 0
        for other in buffers:
            if other.name in b.conflicts:
                refused = both.get((other.name, b.name), ((-b.size_bytes, other.size_bytes),))
                distance = offsets[b.name] - offsets[other.name]
                if any(low < distance < high for low, high in refused):
                    found.append(f"{b.name} lies {distance} bytes behind {other.name}")
    return found


@pytest.mark.parametrize("seed", range(12))
def test_a_plan_that_is_found_keeps_all_distances_and_is_smaller(seed: int) -> None:
    buffers, spacings = instance(seed)
    order = next(iter(orders(buffers)))
    before = place_all(order, POOLS, both_ways(spacings)).sizes["workspace"]
    found = climbed(order, both_ways(spacings), before, 0)
    if found is not None:
        assert not faults(buffers, spacings, found)
        assert max(found[b.name] + b.size_bytes for b in buffers) < before
    assert found == climbed(order, both_ways(spacings), before, 0)


def test_most_first_fits_can_be_made_better() -> None:
    better = 0
    for seed in range(12):
        buffers, spacings = instance(seed)
        order = next(iter(orders(buffers)))
        before = place_all(order, POOLS, both_ways(spacings)).sizes["workspace"]
        better += climbed(order, both_ways(spacings), before, 0) is not None
    assert better >= 6


@pytest.mark.parametrize("seed", range(6))
def test_first_fit_is_that_of_the_planner(seed: int) -> None:
    buffers, spacings = instance(seed)
    for order in orders(buffers):
        plan = Climb(order, both_ways(spacings)).fit(range(len(order)), 1 << 40)
        placed = place_all(order, POOLS, both_ways(spacings))
        assert plan is not None and plan[0] == placed.sizes["workspace"]
        assert plan[1] == [placed.allocations[b.name].byte_offset for b in order]


def test_a_plan_at_the_bound_ends_the_search() -> None:
    buffers, spacings = instance(3)
    order = next(iter(orders(buffers)))
    assert climbed(order, both_ways(spacings), 100, 100) is None


def test_what_grows_lies_below_what_shrinks() -> None:
    """Three buffers, each written while the one before is read: first fit of the largest first wastes what they could share."""
    names, size, lag = ("first", "second", "third"), 1000, 50
    spacings: dict[tuple[str, str], Spacing] = {pair: ((-lag, size),) for pair in (("first", "second"), ("second", "third"))}
    buffers = symmetric([BufferInfo(name, size - i, conflicts=frozenset({names[i - 1]} if i else set()))
                         for i, name in enumerate(names)])
    before = place_all(buffers, POOLS, both_ways(spacings)).sizes["workspace"]
    found = climbed(buffers, both_ways(spacings), before, size + lag)
    assert before > size + 2 * lag and found is not None and not faults(buffers, spacings, found)
    assert max(found[b.name] + b.size_bytes for b in buffers) <= size + 2 * lag
