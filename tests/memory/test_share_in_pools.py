"""Buffers that share bytes in several pools: plans stand the replay, and none of first fit's orders moves less through the slow
pool.
"""
from __future__ import annotations

import contextlib
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tosaic.lowering.loops.program import Program
from tosaic.lowering.loops.traffic import program_traffic
from tosaic.lowering.memory.algorithms.pool_costs import cost_of, costs_of
from tosaic.lowering.memory.algorithms.pool_prices import prices_of
from tosaic.lowering.memory.buffers import BufferInfo, PoolInfo
from tosaic.lowering.memory.check.verify import plan_faults
from tosaic.lowering.memory.planner import Memory, plan, planned_buffers, share
from tosaic.lowering.memory.sharing.overlap import both_ways, orders, place_all
from tosaic.lowering.memory.sharing.share_in_pools import place_in_pools, usage_of
from tosaic.runtime.errors import Problem

from .test_overlap import program_of, residual


@pytest.fixture(scope="module")
def program() -> Program:
    return program_of(residual())[0]


def moving(program: Program, pools: tuple[PoolInfo, ...]) -> tuple[BufferInfo, ...]:
    return planned_buffers(program, Memory(pools=pools), program_traffic(program))


@pytest.mark.parametrize("part", [0.2, 0.4, 0.6, 0.8])
def test_no_order_of_first_fit_moves_less_through_the_slow_pool(program: Program, part: float) -> None:
    whole = plan(program).size_bytes
    pools = PoolInfo("fast", int(whole * part)), PoolInfo("slow")
    buffers = moving(program, pools)
    sharing, costs = share(program, buffers), costs_of(buffers, pools)
    found = place_in_pools(buffers, pools, sharing)
    assert found is not None
    cost = cost_of(buffers, costs, found.allocations)
    for order in orders(buffers):
        with contextlib.suppress(Problem):
            assert cost <= cost_of(buffers, costs, place_all(order, pools, both_ways(sharing.spacings)).allocations)
    most = sum((max(c.values()) for c in costs.values()), Fraction(0))
    assert 0 < prices_of(buffers, pools, costs, usage_of(buffers, sharing), most).cost <= cost
    planned = plan(program, Memory(pools=pools))
    assert not list(plan_faults(planned, program)) and cost_of(buffers, costs, planned.allocations) <= cost


def test_bandwidths_count_where_buffers_share_bytes(program: Program) -> None:
    """The quick pool has what it can hold, wherever the user names it; and what costs less by order costs more by time."""
    whole = plan(program).size_bytes
    quick = PoolInfo("quick", whole // 2, read_bandwidth_bytes_per_cycle=16, write_bandwidth_bytes_per_cycle=16)
    slow = PoolInfo("slow", None, read_bandwidth_bytes_per_cycle=1, write_bandwidth_bytes_per_cycle=1)
    there = [{b.name: b.pool for b in plan(program, Memory(pools=pools)).buffers} for pools in ((slow, quick), (quick, slow))]
    assert there[0] == there[1] and set(there[0].values()) == {"quick", "slow"}
    large = replace(quick, size_hint_bytes=whole)
    assert {b.pool for b in plan(program, Memory(pools=(slow, large))).buffers if b.size_bytes} == {"quick"}


def test_what_buffers_take_at_one_time_fits_into_a_plan_that_shares(program: Program) -> None:
    """No plan has less than the fullest time of `usage_of`, or the bound would be none."""
    buffers = moving(program, (PoolInfo("a"), PoolInfo("b")))
    fullest = int(usage_of(buffers, share(program, buffers)).nbytes.sum(axis=1).max())
    assert 0 < fullest <= plan(program).size_bytes
    assert np.all(usage_of(buffers, share(program, buffers)).nbytes >= 0)


def test_all_lies_in_the_fast_pool_where_sharing_lets_it_fit(program: Program) -> None:
    """A pool of what one pool needs with sharing is less than what is live together."""
    size = plan(program).size_bytes
    assert size < plan(program, Memory(overlap=False)).size_bytes
    found = plan(program, Memory(pools=(PoolInfo("fast", size), PoolInfo("slow"))))
    assert {b.pool for b in found.buffers if b.size_bytes} == {"fast"}
