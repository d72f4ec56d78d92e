"""Several memories: what goes where, by the user's order or by what it costs, and what is said when nothing fits."""
from __future__ import annotations

import dataclasses
import json
import pathlib
import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from tosaic.lowering.memory.algorithms.first_fit_compiled import Placer
from tosaic.lowering.memory.algorithms.lower_bound import lower_bound
from tosaic.lowering.memory.algorithms.pool_costs import Objective, access_cost, costs_of, score_of
from tosaic.lowering.memory.algorithms.pool_prices import Usage, prices_of
from tosaic.lowering.memory.algorithms.run import allocate, area_first, conflicts_first, death_last, ordered, size_first
from tosaic.lowering.memory.buffers import BufferInfo, PoolInfo, symmetric, with_conflicts
from tosaic.runtime.errors import Problem

from .brute_force import cheapest, moved, overlaps, pool_sizes, score
from .instances import SHAPES, chain, scattered
from .test_exact import with_pools


def timed(name: str, size: int | None, bandwidth: int, latency: int = 0, clock: int | None = None) -> PoolInfo:
    return PoolInfo(name, size, read_bandwidth_bytes_per_cycle=bandwidth, write_bandwidth_bytes_per_cycle=bandwidth,
                    read_latency_cycles=latency, write_latency_cycles=latency, clock_frequency_hz=clock)


def together(*sizes: int) -> tuple[BufferInfo, ...]:
    return with_conflicts([BufferInfo(f"b{i}", size, live=((0, 0),)) for i, size in enumerate(sizes)])


# ---- what it costs ---------------------------------------------------------------------------------------------------
def test_a_cost_is_the_time_to_write_and_read_once() -> None:
    assert access_cost(timed("sram", None, 8), 80, 80) == 20
    assert access_cost(timed("sram", None, 8, 5), 80, 80) == 30
    assert access_cost(timed("sram", None, 8, 5, 1000), 80, 80) == pytest.approx(0.03)
    assert access_cost(PoolInfo("sram", read_latency_cycles=3), 80, 80) == 3
    assert access_cost(PoolInfo("sram"), 80, 80) is None


def test_what_is_not_known_of_every_pool_does_not_count() -> None:
    buffers = together(10)
    known, unknown = timed("slow", None, 1), PoolInfo("odd")
    assert costs_of(buffers, (unknown, known)) == {"b0": {"odd": 0, "slow": 20}}
    assert costs_of(buffers, (known, timed("fast", None, 4))) == {"b0": {"fast": 5, "slow": 20}}
    assert costs_of(buffers, (known, timed("fast", None, 4, clock=100))) == {"b0": {"slow": 0, "fast": 20}}


def test_the_cheaper_pool_comes_first_whatever_the_order() -> None:
    buffers = together(10, 20)
    for pools in ((timed("slow", None, 1), timed("fast", None, 8)), (timed("fast", None, 8), timed("slow", None, 1))):
        assert {p.pool for p in allocate(buffers, pools).values()} == {"fast"}


def test_small_buffers_of_a_slow_first_access_go_to_the_quick_pool() -> None:
    """Ten small ones save more than one large one in the same bytes."""
    pools = timed("sram", 1000, 8, 0), timed("flash", None, 8, 50)
    buffers = together(1000, *[100] * 10)
    found = allocate(buffers, pools)
    assert found["b0"].pool == "flash" and {found[f"b{i}"].pool for i in range(1, 11)} == {"sram"}


def test_short_lived_buffers_go_to_the_small_pool_where_many_could() -> None:
    """The bytes of a pool that many use in turn save more than those that one keeps."""
    live = [((0, 29),), *[((i, i),) for i in range(30)]]
    buffers = with_conflicts([BufferInfo(f"b{i:02}", 100, live=span) for i, span in enumerate(live)])
    found = allocate(buffers, (timed("sram", 100, 8), timed("dram", None, 1)))
    assert [n for n, p in found.items() if p.pool == "dram"] == ["b00"]


def test_what_is_moved_counts_and_not_the_size() -> None:
    """Of two that fit one at a time the fast pool has the one that a run reads more of, whatever a list of them says."""
    buffers = [dataclasses.replace(b, bytes_read=read, bytes_written=b.size_bytes)
               for b, read in zip(together(100, 80), (100, 1000))]
    pools = PoolInfo("sram", 128), PoolInfo("psram")
    assert {name: p.pool for name, p in allocate(buffers, pools).items()} == {"b0": "psram", "b1": "sram"}


def test_reads_and_writes_cost_by_their_own_bandwidths() -> None:
    reads = [dataclasses.replace(b, bytes_read=read, bytes_written=written)
             for b, (read, written) in zip(together(10, 10), ((50, 10), (10, 50)))]
    pools = (PoolInfo("a", 10, read_bandwidth_bytes_per_cycle=8, write_bandwidth_bytes_per_cycle=1),
             PoolInfo("b", 10, read_bandwidth_bytes_per_cycle=1, write_bandwidth_bytes_per_cycle=8))
    assert {name: p.pool for name, p in allocate(reads, pools).items()} == {"b0": "a", "b1": "b"}


def test_bytes_count_in_whole_bursts() -> None:
    """Ten small buffers move more through a pool of long bursts than one large buffer does."""
    assert access_cost(dataclasses.replace(timed("sram", None, 8), target_burst_bytes={"c": 32}), 80, 4) == 16
    buffers = together(1000, *[100] * 10)
    slow = PoolInfo("slow", target_burst_bytes={"c": 512})
    assert allocate(buffers, (PoolInfo("fast", 1000), slow))["b0"].pool == "slow"
    assert allocate(buffers, (PoolInfo("fast", 1000), PoolInfo("slow")))["b0"].pool == "fast"


def test_a_target_sees_its_own_bursts() -> None:
    pool = PoolInfo("sram", target_burst_bytes={"c": 8, "npu": 64})
    assert [pool.seen_by(target).burst_bytes for target in (None, "c", "npu", "dsp")] == [64, 8, 64, 1]


# ---- offsets ---------------------------------------------------------------------------------------------------------
def test_no_buffer_lies_before_the_offset_of_a_pool() -> None:
    for name in ("portfolio", "exact", "greedy_by_size", "hill_climb"):
        buffers = scattered(3, 12)
        pools = PoolInfo("first", lower_bound(buffers) // 2, pool_offset=192), PoolInfo("second", pool_offset=64)
        plan = allocate(buffers, pools, name)
        assert not overlaps(buffers, plan) and {p.pool for p in plan.values()} == {"first", "second"}
        assert all(p.byte_offset >= (192 if p.pool == "first" else 64) for p in plan.values())
        assert pool_sizes(buffers, pools, plan)[0] <= lower_bound(buffers) // 2


def test_buffers_begin_where_all_are_aligned_behind_an_offset() -> None:
    buffers = with_conflicts([BufferInfo("a", 10, 1, live=((0, 0),)), BufferInfo("b", 64, 64, live=((0, 0),))])
    assert pool_sizes(buffers, (PoolInfo("sram"),), allocate(buffers, (PoolInfo("sram", pool_offset=65),))) == [128 + 74]


def test_an_offset_leaves_less_of_a_limit() -> None:
    buffers = together(50, 40)
    assert pool_sizes(buffers, (PoolInfo("a"),), allocate(buffers, (PoolInfo("a", 100, pool_offset=10),))) == [100]
    with pytest.raises(Problem) as error:
        allocate(buffers, (PoolInfo("a", 100, pool_offset=11),))
    assert [label.text for label in error.value.labels][-1] == "bytes 0 to 11 of a are not for buffers"
    with pytest.raises(Problem, match="pool a has an offset of 11 bytes and a size of 10"):
        PoolInfo("a", 10, pool_offset=11)


# ---- by the user's order ---------------------------------------------------------------------------------------------
def test_the_last_pool_is_left_empty_where_the_others_hold_everything() -> None:
    """First fit by size fills both; a plan exists that needs the first alone."""
    for seed in range(15):
        buffers = scattered(seed, 40)
        bound = lower_bound(buffers)
        pools = (PoolInfo("first", int(bound * 1.1)), PoolInfo("second"))
        plan = allocate(buffers, pools)
        assert not overlaps(buffers, plan)
        assert pool_sizes(buffers, pools, plan)[1] == 0, f"seed {seed}"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [n for n in SHAPES if not n.startswith(("cut 300", "pinwheels 200"))])
def test_many_buffers_spill_into_the_next_pool(name: str) -> None:
    buffers = SHAPES[name](0)
    bound = lower_bound(buffers)
    pools = (PoolInfo("small", bound // 4), PoolInfo("middle", bound // 2), PoolInfo("large"))
    plan = allocate(buffers, pools)
    assert not overlaps(buffers, plan)
    sizes = pool_sizes(buffers, pools, plan)
    assert sizes[0] <= bound // 4 and sizes[1] <= bound // 2 and sizes[2] <= bound
    for greedy in ("greedy_by_size", "greedy_by_conflicts"):
        assert score(buffers, pools, plan)[0] <= score(buffers, pools, allocate(buffers, pools, greedy))[0]


def moving(seed: int, buffers: Sequence[BufferInfo]) -> list[BufferInfo]:
    """The buffers, of which some are read many times."""
    draw = random.Random(seed)
    return [dataclasses.replace(b, bytes_read=b.size_bytes * draw.choice((1, 1, 2, 9, 30)), bytes_written=b.size_bytes)
            for b in buffers]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [n for n in SHAPES if not n.startswith(("cut 300", "pinwheels 200"))])
def test_no_way_of_placing_moves_less_through_the_slow_pool(name: str) -> None:
    """Neither first fit in any static order, nor that of buffers by what they are worth; and the bound is one."""
    buffers = moving(1, SHAPES[name](1))
    pools = PoolInfo("fast", lower_bound(buffers) // 2), PoolInfo("slow")
    plan = allocate(buffers, pools)
    assert not overlaps(buffers, plan) and pool_sizes(buffers, pools, plan)[0] <= lower_bound(buffers) // 2
    best = score(buffers, pools, plan)[0]
    assert bound_of(buffers, pools) <= best
    placer = Placer(symmetric(buffers), pools)
    for key in (size_first, conflicts_first, area_first, death_last, lambda b: (moved(b),),
                lambda b: (moved(b) * 1000 // max(b.size_bytes, 1),),
                lambda b: (moved(b) * 1000 // max(b.size_bytes * b.lifetime, 1),)):
        assert best <= score(buffers, pools, placer.place("first_fit", ordered(symmetric(buffers), key)).allocations)[0]


def bound_of(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> Fraction:
    """What the prices of bytes say that no assignment undercuts."""
    costs = costs_of(buffers, pools)
    most = sum((max(c.values()) for c in costs.values()), Fraction(0))
    return prices_of(buffers, pools, costs, Usage.of(symmetric(buffers)), most).cost


def test_no_assignment_of_small_instances_costs_less_than_the_bound() -> None:
    """On most of them the bound is near what the best one costs."""
    near = 0
    for seed in range(200):
        buffers, pools = with_pools(random.Random(seed), 5)
        best = cheapest(buffers, pools)
        if best is not None:
            found = bound_of(buffers, pools)
            assert found <= best[0], f"seed {seed}"
            near += found * 5 >= best[0] * 4
    assert near > 100


def test_pins_and_pools_of_their_own_hold() -> None:
    draw = random.Random(3)
    for _ in range(20):
        pools = (PoolInfo("a", 4000), PoolInfo("b", 4000, 16), PoolInfo("c"))
        buffers = with_conflicts([BufferInfo(f"b{i:02}", draw.randint(1, 900), draw.choice([4, 16, 64]), draw.choice(
            [(), (), ("c",), ("c", "a"), ("b", "c")]), live=((i // 3, i // 3 + draw.randint(0, 3)),)) for i in range(30)])
        plan = allocate(buffers, pools)
        assert not overlaps(buffers, plan)
        for b in buffers:
            assert not b.pool_candidates or plan[b.name].pool in b.pool_candidates
            assert b.alignment <= 16 or plan[b.name].pool != "b"


def test_the_same_problem_has_the_same_plan_in_any_order() -> None:
    buffers = chain(5, 40)
    pools = (PoolInfo("small", lower_bound(buffers) // 2), PoolInfo("large"))
    plan = allocate(buffers, pools)
    for seed in range(3):
        assert allocate(random.Random(seed).sample(buffers, len(buffers)), pools) == plan


# ---- what does not fit -----------------------------------------------------------------------------------------------
def test_a_pool_that_is_too_small_is_refused_with_what_it_needs() -> None:
    with pytest.raises(Problem) as error:
        allocate(together(50, 40, 30), (PoolInfo("tiny", 100),))
    assert str(error.value) == (
        "error[memory]: buffer b2 of 30 bytes fits in none of its pools beside the buffers that are live with it: "
        "tiny holds 100 bytes and would need 120\n"
        "  note: there is no room for b2\n"
        "  note: the smallest plan that was found has 120 bytes;"
        " no plan of this schedule, by the same rules of sharing, has less\n"
        "  help: make a pool larger, or add one that the buffer may fall back to")


def test_what_fits_in_none_of_several_pools_is_named() -> None:
    with pytest.raises(Problem) as error:
        allocate(together(50, 40, 30, 20, 10), (PoolInfo("a", 60), PoolInfo("b", 40)))
    assert "a holds 60 bytes and would need" in error.value.message and "b holds 40 bytes" in error.value.message
    assert [label.text.split(" for ")[0] for label in error.value.labels] == ["there is no room"]


def test_a_buffer_that_may_lie_in_no_pool_is_refused() -> None:
    with pytest.raises(Problem, match="buffer a of 8 bytes and alignment 64 may lie in no pool"):
        allocate([BufferInfo("a", 8, 64)], (PoolInfo("odd", alignment=16),))


# ---- what counts first -----------------------------------------------------------------------------------------------
USMP = json.loads((pathlib.Path(__file__).parent / "usmp.json").read_text())


def of_usmp(name: str) -> tuple[BufferInfo, ...]:
    """The buffers of one of TVM's cases."""
    if name in USMP["intervals"]:
        return with_conflicts([BufferInfo(f"b{i:03}", size, live=((first, last),))
                               for i, (first, last, size) in enumerate(USMP["intervals"][name]["buffers"])])
    case = USMP["graphs"][name]
    return with_conflicts([BufferInfo(b, size, case["alignment"], conflicts=frozenset(conflicts))
                           for b, (size, *conflicts) in case["buffers"].items()])


def by_both(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], algorithm: str, objective: Objective) -> list[Fraction]:
    places = allocate(buffers, pools, algorithm, objective)
    return score_of(buffers, pools, places, objective)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("objective", ["traffic", "bytes"])
@pytest.mark.parametrize("percent", [30, 90])
@pytest.mark.parametrize("name", ["alloc_max", "simple", "five", "deep_speech", "mobilenet_subgraph", "linear"])
def test_the_default_is_no_worse_than_the_hill_climb_in_its_objective(name: str, percent: int, objective: Objective) -> None:
    """TVM's buffers in two pools, of which the fast one has a part of what one pool needs."""
    buffers = of_usmp(name)
    pools = PoolInfo("fast", lower_bound(buffers) * percent // 100), PoolInfo("slow")
    assert by_both(buffers, pools, "portfolio", objective) <= by_both(buffers, pools, "hill_climb", objective)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("objective", ["traffic", "bytes"])
@pytest.mark.parametrize("seed", range(4))
def test_of_random_buffers_each_objective_is_best_at_its_own(seed: int, objective: Objective) -> None:
    draw = random.Random(seed)
    buffers = chain(seed, draw.randint(4, 20)) if seed % 2 else scattered(seed, draw.randint(4, 20))
    size = lower_bound(buffers)
    pools = [PoolInfo("fast", size // 3), PoolInfo("middle", size // 2), PoolInfo("slow")]
    best = by_both(buffers, pools, "portfolio", objective)
    assert best <= by_both(buffers, pools, "hill_climb", objective)
    other: Objective = "bytes" if objective == "traffic" else "traffic"
    assert best <= score_of(buffers, pools, allocate(buffers, pools, "portfolio", other), objective)


def test_bytes_first_leaves_less_in_the_slow_pool_though_more_is_moved() -> None:
    """A small buffer that is moved a lot, or a large one that is hardly moved, in the fast pool."""
    buffers = with_conflicts([BufferInfo("large", 90, live=((0, 1),), bytes_read=1, bytes_written=1),
                              BufferInfo("small", 20, live=((0, 1),), bytes_read=500, bytes_written=500)])
    pools = PoolInfo("fast", 100), PoolInfo("slow")
    assert {b: p.pool for b, p in allocate(buffers, pools).items()} == {"large": "slow", "small": "fast"}
    assert {b: p.pool for b, p in allocate(buffers, pools, objective="bytes").items()} == {"large": "fast", "small": "slow"}
    with pytest.raises(Problem, match="objective is 'speed'"):
        allocate(buffers, pools, objective="speed")  # type: ignore[arg-type]
