"""The default planner's word against trying everything, on some of the problems of `exhaustive`; and what is wrong with a plan
by the rules there, the verifier refuses: thousands of plans that are changed a little.
"""
from __future__ import annotations

import collections
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tosaic.lowering.loops.program import Program
from tosaic.lowering.memory.buffers import PoolAllocation, PoolInfo
from tosaic.lowering.memory.check.verify import conflict_faults, placement_faults, plan_faults
from tosaic.lowering.memory.planner import Memory, plan

from .exhaustive import Case, Places, answer, case, faults, verdict
from .mutants import mutants, spoilt
from .programs import programs


def test_what_the_planner_says_is_proved_is_the_optimum() -> None:
    found = collections.Counter(verdict(seed) for seed in range(150))
    assert found["apart: proved"] > 60 and found["shared: proved"] > 15
    assert found["apart: refused"] > 5 and found["shared: refused"] > 2
    assert not found["apart: not the best"] and not found["apart: not proved, but the best"]


@pytest.mark.long
def test_what_the_planner_says_is_proved_is_the_optimum_of_five_thousand() -> None:
    assert sum(collections.Counter(verdict(seed) for seed in range(1000, 6000)).values()) == 5000


def test_the_verifier_refuses_exactly_the_wrong_ones_of_thousands_of_changed_answers() -> None:
    wrong = right = 0
    for seed in range(250):
        problem = case(seed)
        found = None if problem.sharing() else answer(problem)
        if found is None:
            continue
        draw = random.Random(seed)
        for _ in range(20):
            places = mutants(draw, problem, {name: (p.pool, p.byte_offset) for name, p in found.allocations.items()})
            is_wrong = bool(faults(problem, places))
            assert bool(refused(problem, places)) == is_wrong, f"seed {seed}: {places}"
            wrong, right = wrong + is_wrong, right + (not is_wrong)
    assert wrong > 1500 and right > 200


def refused(problem: Case, places: Places) -> list[str]:
    """What the verifier of answers says."""
    given = {name: PoolAllocation(*place) for name, place in places.items()}
    alone = list(placement_faults(problem.buffers, problem.pools, given))
    return alone + list(conflict_faults(problem.buffers, given))


@pytest.mark.sampled(4)
def test_the_verifier_refuses_thousands_of_spoilt_plans() -> None:
    counts: collections.Counter[str] = collections.Counter()

    @settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(programs(), st.randoms(use_true_random=False))
    def refused_each_time(program: Program, draw: random.Random) -> None:
        pools = PoolInfo("fast", 256, pool_offset=16), PoolInfo("slow")
        found = plan(program, Memory(pools=pools, alignment=16))
        assert not plan_faults(found, program)
        for kind in [kind for kind in spoilt for _ in range(4)]:
            changed = spoilt[kind](draw, found, program)
            if changed is not None:
                counts[kind] += 1
                assert plan_faults(changed, program), f"{kind}: {changed}"

    refused_each_time()
    assert sum(counts.values()) > 750 and all(counts[kind] > 20 for kind in spoilt), counts
