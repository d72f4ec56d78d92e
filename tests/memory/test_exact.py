"""Small instances of every kind: what the search finds is the optimum that trying everything finds."""
from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Sequence

import pytest
from tosaic.lowering.memory.algorithms.capacity_search import Effort
from tosaic.lowering.memory.algorithms.lower_bound import lower_bound
from tosaic.lowering.memory.algorithms.portfolio import planned
from tosaic.lowering.memory.algorithms.run import allocate
from tosaic.lowering.memory.buffers import BufferInfo, PoolInfo, symmetric, with_conflicts
from tosaic.lowering.memory.check.verify import conflict_faults, placement_faults
from tosaic.runtime.errors import Problem

from .brute_force import cheapest, optimum, pool_sizes, score

ARENA = (PoolInfo("arena"),)
NAMES = "fast", "slow", "far"


def intervals(draw: random.Random, most: int, largest: int = 20) -> tuple[BufferInfo, ...]:
    """Buffers with lifetimes of one or two spans."""
    def live() -> tuple[tuple[int, int], ...]:
        points = sorted(draw.sample(range(14), 4 if draw.random() < 0.2 else 2))
        return tuple(zip(points[::2], points[1::2]))

    alignments = draw.choice([(1,), (1,), (8,), (1, 4, 8), (2, 16)])
    return with_conflicts([BufferInfo(f"b{i}", draw.randint(0, largest), draw.choice(alignments), live=live())
                           for i in range(draw.randint(1, most))])


def graph(draw: random.Random, most: int, largest: int = 20) -> tuple[BufferInfo, ...]:
    """Buffers with any conflicts, some given one way."""
    count, chance = draw.randint(1, most), draw.choice([0.2, 0.5, 0.8])
    alignments = draw.choice([(1,), (1,), (4,), (1, 4, 8)])
    return symmetric([BufferInfo(f"b{i}", draw.randint(1, largest), draw.choice(alignments), conflicts=frozenset(
        f"b{j}" for j in range(count) if draw.random() < chance / 2)) for i in range(count)])


def sound(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], plan: dict) -> bool:
    return not [*placement_faults(buffers, pools, plan), *conflict_faults(buffers, plan)]


def compare(seeds: range, most: int) -> None:
    for seed in seeds:
        draw = random.Random(seed)
        buffers = (intervals if seed % 2 else graph)(draw, most)
        outcome = planned(buffers, ARENA, Effort(50_000_000))
        found, = pool_sizes(buffers, ARENA, outcome.allocations)
        best = optimum(buffers)
        assert sound(buffers, ARENA, dict(outcome.allocations))
        assert lower_bound(buffers) <= best == found == outcome.bounds["arena"], f"seed {seed}: {best}"


def test_the_search_finds_the_optimum_of_small_instances_and_proves_it() -> None:
    compare(range(600), 6)


@pytest.mark.long
def test_the_search_finds_the_optimum_of_many_instances_of_seven_buffers() -> None:
    compare(range(1000, 11000), 7)


def test_an_algorithm_by_name_finds_the_same_optimum() -> None:
    for seed in range(60):
        buffers = (intervals if seed % 2 else graph)(random.Random(seed), 5)
        for name in ("exact", "portfolio"):
            found, = pool_sizes(buffers, ARENA, allocate(buffers, ARENA, name))
            assert found == optimum(buffers) or name == "portfolio"


def test_a_graph_that_no_lifetimes_make_is_searched_too() -> None:
    """Five buffers in a ring: two at a time conflict, and three levels are needed."""
    ring = [BufferInfo(f"b{i}", 10, conflicts=frozenset({f"b{(i + 1) % 5}"})) for i in range(5)]
    assert pool_sizes(ring, ARENA, allocate(ring, ARENA, "exact")) == [30] == [optimum(symmetric(ring))]
    assert planned(symmetric(ring), ARENA, Effort(10_000_000)).bounds == {"arena": 30}


def test_conflicts_and_lifetimes_count_both() -> None:
    """Lifetimes may say more or less than the conflicts that were given."""
    one, other = BufferInfo("a", 10, live=((0, 5),)), BufferInfo("b", 10, live=((3, 8),))
    assert sorted(p.byte_offset for p in allocate([one, other], ARENA).values()) == [0, 10]
    third = BufferInfo("c", 10, live=((7, 9),), conflicts=frozenset("a"))
    assert sorted(p.byte_offset for p in allocate([one, third], ARENA).values()) == [0, 10]


# ---- several pools ---------------------------------------------------------------------------------------------------
def with_pools(draw: random.Random, most: int) -> tuple[tuple[BufferInfo, ...], tuple[PoolInfo, ...]]:
    """Buffers with candidates in any order, and two or three pools of which all but the last are small."""
    pools = tuple(PoolInfo(name, draw.choice([0, 8, 20, 30, 40]), draw.choice([None, None, 16]))
                  for name in NAMES[:draw.choice([1, 2])])
    pools += (PoolInfo("last", draw.choice([None, 20, 40])),)
    names = [p.name for p in pools]
    buffers = (intervals if draw.random() < 0.5 else graph)(draw, most)
    found = [dataclasses.replace(b, pool_candidates=tuple(draw.sample(names, draw.randint(1, len(names)))))
             if draw.random() < 0.4 else b for b in buffers]
    if draw.random() < 0.7:
        found = [dataclasses.replace(b, bytes_read=draw.randint(0, 100), bytes_written=draw.choice([0, b.size_bytes]))
                 for b in found]
    return tuple(found), pools


def compare_pools(name: str, seeds: range, most: int) -> None:
    refused = 0
    for seed in seeds:
        buffers, pools = with_pools(random.Random(seed), most)
        best = cheapest(buffers, pools)
        try:
            plan = allocate(buffers, pools, name)
        except Problem as problem:
            assert best is None, f"seed {seed}: {best}\n{problem}"
            refused += 1
        else:
            assert score(buffers, pools, plan) == best, f"seed {seed}"
    assert len(seeds) / 40 < refused < len(seeds) / 2


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["portfolio", "exact"])
def test_small_instances_go_to_the_cheapest_pools_that_hold_them(name: str) -> None:
    compare_pools(name, range(240), 5)


@pytest.mark.long
def test_seven_buffers_go_to_the_cheapest_pools_that_hold_them() -> None:
    compare_pools("portfolio", range(400, 1400), 7)


def test_a_capacity_that_some_plan_meets_is_met() -> None:
    for seed in range(150):
        buffers = (intervals if seed % 2 else graph)(random.Random(seed), 6)
        best = optimum(buffers)
        pools = (PoolInfo("arena", best),)
        assert pool_sizes(buffers, pools, allocate(buffers, pools, "portfolio")) == [best]
        if best:
            with pytest.raises(Problem, match=f"arena holds {best - 1} bytes"):
                allocate(buffers, (PoolInfo("arena", best - 1),), "portfolio")


def test_a_pool_that_holds_only_a_plan_that_no_order_finds_is_packed_by_the_search() -> None:
    """An arena cut to pieces without a gap: exactly its size is enough, and the greedy orders need more."""
    from .instances import pinwheels
    buffers = pinwheels(1, 15)
    for pools in ((PoolInfo("fast", 4096),), (PoolInfo("fast", 4096), PoolInfo("slow"))):
        plan = allocate(buffers, pools, "portfolio")
        assert {p.pool for p in plan.values()} == {"fast"} and pool_sizes(buffers, pools, plan)[0] == 4096
    with pytest.raises(Problem):
        allocate(buffers, (PoolInfo("fast", 4096),), "greedy_by_size")


def test_the_brute_force_knows_the_optimum_of_a_clique() -> None:
    sizes = [(1, 64), (10, 64), (60, 64), (5, 16)]
    buffers = with_conflicts([BufferInfo(f"b{i}", size, alignment, live=((0, 0),))
                              for i, (size, alignment) in enumerate(sizes)])
    stacked = []
    for order in itertools.permutations(sizes):
        top = 0
        for size, alignment in order:
            top = -(-top // alignment) * alignment + size
        stacked.append(top)
    assert optimum(buffers) == min(stacked) == 129
