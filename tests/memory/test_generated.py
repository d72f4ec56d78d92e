"""Thousands of generated instances: every plan is held against the lifetimes by code of its own, and every fault planted in a
plan is caught by the verifier.
"""
from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import pytest
from tosaic.lowering.memory.algorithms.lower_bound import lower_bound
from tosaic.lowering.memory.algorithms.portfolio import quick
from tosaic.lowering.memory.algorithms.run import allocate
from tosaic.lowering.memory.buffers import BufferInfo, PoolAllocation, PoolInfo, with_conflicts
from tosaic.lowering.memory.check.verify import conflict_faults, placement_faults

from .brute_force import Plan, overlaps, pool_sizes
from .instances import ALIGNMENTS, cut, scattered, training

ARENA = (PoolInfo("arena"),)
POOLS = (PoolInfo("fast", 600), PoolInfo("slow", 4000, 16), PoolInfo("far"))


def interval_set(seed: int) -> tuple[BufferInfo, ...]:
    """Up to 24 buffers, mostly of one alignment."""
    draw = random.Random(seed)
    alignments = ALIGNMENTS if draw.random() < 0.15 else (draw.choice(ALIGNMENTS),)
    ticks, largest = draw.choice([4, 12, 40]), draw.choice([8, 300, 5000])

    def live() -> tuple[tuple[int, int], ...]:
        first = draw.randint(0, ticks)
        return ((first, first + draw.randint(0, draw.choice([1, 3, ticks]))),)

    return with_conflicts([BufferInfo(f"b{i:02}", draw.randint(0, largest), draw.choice(alignments), live=live())
                           for i in range(draw.randint(1, 24))])


def check(seeds: range) -> None:
    """Plans of interval sets: sound, not below the bound, and mostly at it."""
    reached = 0
    for seed in seeds:
        buffers = interval_set(seed)
        pools = POOLS if seed % 10 == 9 else ARENA
        name = ("greedy_by_size", "greedy_by_conflicts")[seed % 2] if seed % 5 == 4 else quick
        plan = allocate(buffers, pools, name)
        assert overlaps(buffers, plan) == [], f"seed {seed}"
        if pools is ARENA:
            size, = pool_sizes(buffers, pools, plan)
            assert lower_bound(buffers) <= size, f"seed {seed}"
            reached += size == lower_bound(buffers)
        else:
            assert all(p.size_hint_bytes is None or size <= p.size_hint_bytes
                       for p, size in zip(pools, pool_sizes(buffers, pools, plan)))
    assert reached > 0.7 * len(seeds)


def test_plans_of_interval_sets_are_right() -> None:
    check(range(1000))


@pytest.mark.long
def test_plans_of_ten_thousand_interval_sets_are_right() -> None:
    check(range(10_000, 20_000))


@pytest.mark.sampled(4)
def test_no_plan_of_any_algorithm_overlaps() -> None:
    for name in ("greedy_by_size", "greedy_by_conflicts", "hill_climb", "portfolio", "exact"):
        for seed in range(2):
            for buffers in (cut(seed, 50), scattered(seed, 16), training(seed, 12)):
                plan = allocate(buffers, ARENA, name)
                assert overlaps(buffers, plan) == []


# ---- planted faults --------------------------------------------------------------------------------------------------
Fault = Callable[[random.Random, Sequence[BufferInfo], Plan], dict[str, PoolAllocation] | None]


def overlapping(draw: random.Random, buffers: Sequence[BufferInfo], plan: Plan) -> dict[str, PoolAllocation] | None:
    """Two buffers in conflict share at least one byte."""
    known = {b.name: b for b in buffers if b.size_bytes}
    pairs = [(b, known[name]) for b in known.values() for name in sorted(b.conflicts) if name in known]
    if not pairs:
        return None
    one, other = draw.choice(pairs)
    start = plan[other.name].byte_offset
    at = [o for o in range(max(0, start - one.size_bytes + 1), start + other.size_bytes) if o % one.alignment == 0]
    return {**plan, one.name: PoolAllocation(plan[other.name].pool, draw.choice(at))} if at else None


def misaligned(draw: random.Random, buffers: Sequence[BufferInfo], plan: Plan) -> dict[str, PoolAllocation] | None:
    b = draw.choice(buffers)
    if b.alignment == 1:
        return None
    place = plan[b.name]
    return {**plan, b.name: PoolAllocation(place.pool, place.byte_offset + draw.randint(1, b.alignment - 1))}


def outside(draw: random.Random, buffers: Sequence[BufferInfo], plan: Plan) -> dict[str, PoolAllocation] | None:
    """Before the first byte of a pool, or behind its last."""
    b = draw.choice(buffers)
    pool = draw.choice(POOLS)
    limit = pool.size_hint_bytes
    if draw.random() < 0.5 or limit is None:
        return {**plan, b.name: PoolAllocation(pool.name, -b.alignment * draw.randint(1, 9))}
    least = (max(0, limit - b.size_bytes) // b.alignment + 1) * b.alignment
    return {**plan, b.name: PoolAllocation(pool.name, least + b.alignment * draw.randint(0, 9))}


def elsewhere(draw: random.Random, buffers: Sequence[BufferInfo], plan: Plan) -> dict[str, PoolAllocation] | None:
    """In a pool that does not exist, or that is not among the buffer's own."""
    b = draw.choice(buffers)
    others = [p.name for p in POOLS if b.pool_candidates and p.name not in b.pool_candidates]
    return {**plan, b.name: PoolAllocation(draw.choice([*others, "nowhere"]), plan[b.name].byte_offset)}


def missing(draw: random.Random, buffers: Sequence[BufferInfo], plan: Plan) -> dict[str, PoolAllocation] | None:
    gone = draw.choice(buffers).name
    return {name: place for name, place in plan.items() if name != gone}


def unwanted(draw: random.Random, buffers: Sequence[BufferInfo], plan: Plan) -> dict[str, PoolAllocation] | None:
    return {**plan, "no buffer": PoolAllocation("far", 0)}


def badly_aligned_pool(draw: random.Random, buffers: Sequence[BufferInfo], plan: Plan) -> dict[str, PoolAllocation] | None:
    """In a pool whose first byte is not aligned well enough."""
    found = [b for b in buffers if b.alignment > 16]
    return {**plan, found[0].name: PoolAllocation("slow", 0)} if found else None


def plans(count: int) -> Iterator[tuple[random.Random, tuple[BufferInfo, ...], Plan]]:
    for seed in range(count):
        draw, buffers = random.Random(seed), interval_set(seed)
        yield draw, buffers, allocate(buffers, POOLS, draw.choice(["greedy_by_size", "greedy_by_conflicts", "hill_climb"]))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fault", [overlapping, misaligned, outside, elsewhere, missing, unwanted, badly_aligned_pool],
                         ids=lambda f: f.__name__)
def test_every_fault_planted_in_a_plan_is_caught(fault: Fault) -> None:
    planted = 0
    for draw, buffers, plan in plans(60):
        assert [*placement_faults(buffers, POOLS, plan), *conflict_faults(buffers, plan)] == []
        for _ in range(5):
            wrong = fault(draw, buffers, plan)
            if wrong is not None:
                planted += 1
                assert [*placement_faults(buffers, POOLS, wrong), *conflict_faults(buffers, wrong)], fault
    assert planted > 25
