"""What a pool's limit does to the default planner: it refuses plans, and changes none; and before it refuses, the search has
gone as far as `exact` goes.
"""
from __future__ import annotations

import random

import pytest
from tosaic.lowering.memory.algorithms.portfolio import quick
from tosaic.lowering.memory.algorithms.run import allocate
from tosaic.lowering.memory.buffers import BufferInfo, PoolInfo
from tosaic.lowering.memory.planner import Memory, plan
from tosaic.runtime.errors import Problem

from .brute_force import pool_sizes
from .instances import SHAPES, cut
from .test_exact import graph, intervals
from .test_overlap import program_of, residual

ARENA = (PoolInfo("arena"),)


def limited(size: int) -> tuple[PoolInfo, ...]:
    return (PoolInfo("arena", size),)


def check(buffers: tuple[BufferInfo, ...]) -> None:
    """With any limit there is the plan that there is without one, or none."""
    free = allocate(buffers, ARENA)
    size, = pool_sizes(buffers, ARENA, free)
    for limit in (size, size + 1, 2 * size):
        assert allocate(buffers, limited(limit)) == free
    for limit in {size - 1, size * 9 // 10} - {size}:
        with pytest.raises(Problem) as error:
            allocate(buffers, limited(max(limit, 0)))
        assert f"the smallest plan that was found has {size} bytes" in str(error.value)


@pytest.mark.parametrize("name", ["nested 130", "training 250", "loose 150"])
def test_a_limit_changes_no_plan(name: str) -> None:
    check(SHAPES[name](1))


def test_a_limit_changes_no_plan_of_small_instances() -> None:
    for seed in range(60):
        buffers = (intervals if seed % 2 else graph)(random.Random(seed), 8)
        if any(b.size_bytes for b in buffers):
            check(buffers)


def test_the_search_goes_on_before_a_plan_is_refused() -> None:
    """What the first part of the search leaves too large is packed without a gap by the second."""
    buffers, size = cut(2, 120), 1024 * 16
    assert pool_sizes(buffers, ARENA, dict(quick(buffers, ARENA).allocations))[0] > size
    assert pool_sizes(buffers, ARENA, allocate(buffers, limited(size))) == [size]
    assert pool_sizes(buffers, ARENA, allocate(buffers, ARENA)) == [size]


def test_a_limit_changes_no_plan_in_which_buffers_share_bytes() -> None:
    program, _ = program_of(residual())
    free = plan(program)
    size = free.size_bytes
    for limit in (size, size + 64):
        found = plan(program, Memory(pools=(PoolInfo("workspace", limit),)))
        assert found.buffers == free.buffers and found.is_proved == free.is_proved
    with pytest.raises(Problem) as error:
        plan(program, Memory(pools=(PoolInfo("workspace", size - 1),)))
    assert f"the smallest plan that was found has {size} bytes" in str(error.value)
