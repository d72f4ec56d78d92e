"""The verifier catches every planted fault, and agrees with a run on real bytes."""
from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tosaic.lowering.kernels.kernel import Branch, CheckTrue, Compute, Loop
from tosaic.lowering.loops.program import Program
from tosaic.lowering.memory.algorithms.portfolio import quick
from tosaic.lowering.memory.buffers import BufferInfo, PoolAllocation, PoolInfo, with_conflicts
from tosaic.lowering.memory.check.verify import conflict_faults, placement_faults, plan_faults, verify
from tosaic.lowering.memory.plan import Plan
from tosaic.lowering.memory.planner import Memory, plan
from tosaic.runtime.errors import Problem

from .programs import Clobbered, Machine, Sketch, programs


def changed(found: Plan, name: str, **fields: Any) -> Plan:
    """The plan with other fields for one buffer."""
    return dataclasses.replace(found, buffers=tuple(
        dataclasses.replace(b, **fields) if b.name == name else b for b in found.buffers))


def onto(found: Plan, name: str, other: str) -> Plan:
    """The plan with one buffer at the place of another, in a pool that is large enough."""
    at = next(b.byte_offset for b in found.buffers if b.name == other)
    pool = dataclasses.replace(found.pools[0], size_bytes=1 << 20)
    return dataclasses.replace(changed(found, name, byte_offset=at), pools=(pool,))


def chain() -> Program:
    sketch = Sketch()
    a, b, c, d = (sketch.buffer(n, 100) for n in "abcd")
    scratch = sketch.buffer("s", 100, scratch=True)
    return sketch.program(sketch.step([], [a]), sketch.step([a], [b], [scratch]), sketch.step([a], [c]),
                          sketch.step([b, c], [d]), sketch.step([d], []))


def test_a_right_plan_has_no_faults() -> None:
    program = chain()
    assert plan_faults(plan(program), program) == []


@pytest.mark.parametrize("name, other, fault", [
    ("b", "a", "kernel_1 uses a and b at once, which share bytes"),
    ("c", "b", "kernel_3 reads b, whose bytes c has overwritten"),
    ("s", "a", "kernel_2 reads a, whose bytes s has overwritten"),
    ("s", "b", "kernel_1 uses b and s at once, which share bytes"),
])
def test_a_planted_overlap_is_caught(name: str, other: str, fault: str) -> None:
    program = chain()
    assert fault in plan_faults(onto(plan(program), name, other), program)


def test_an_overlap_of_one_byte_is_caught() -> None:
    program = chain()
    found = plan(program)
    places = {b.name: b for b in found.buffers}
    low, high = sorted((places["a"], places["b"]), key=lambda b: b.byte_offset)
    distant = changed(changed(found, high.name, byte_offset=low.end, alignment=1), low.name, alignment=1)
    distant = dataclasses.replace(distant, pools=(dataclasses.replace(found.pools[0], size_bytes=1 << 20),))
    close = changed(distant, high.name, byte_offset=low.end - 1)
    pair = f"kernel_1 uses {places['a'].name} and {places['b'].name} at once, which share bytes"
    assert pair not in plan_faults(distant, program)
    assert pair in plan_faults(close, program)


def test_a_misaligned_buffer_is_caught() -> None:
    program = chain()
    found = changed(plan(program), "d", byte_offset=8)
    assert "d at offset 8 of workspace is not aligned to 64 bytes" in plan_faults(found, program)


def test_a_pool_that_is_less_aligned_than_its_buffers_is_caught() -> None:
    program = chain()
    found = plan(program)
    found = dataclasses.replace(found, pools=(dataclasses.replace(found.pools[0], alignment=16),))
    assert "a at offset" in plan_faults(found, program)[0] and "is not aligned" in plan_faults(found, program)[0]


def test_a_buffer_that_overruns_its_pool_is_caught() -> None:
    program = chain()
    found = plan(program)
    end = found.size_bytes
    assert f"d lies outside of bytes 0 to {end} of workspace" in plan_faults(
        changed(found, "d", byte_offset=-(-end // 64) * 64 - 64), program)
    assert f"d lies outside of bytes 0 to {end} of workspace" in plan_faults(changed(found, "d", byte_offset=-64), program)


def test_a_pool_that_is_larger_than_it_may_be_is_caught() -> None:
    program = chain()
    found = plan(program)
    found = dataclasses.replace(found, pools=(dataclasses.replace(found.pools[0], limit_bytes=10),))
    assert plan_faults(found, program) == [f"pool workspace has {found.size_bytes} bytes, but may have 10"]


def test_a_missing_buffer_is_caught() -> None:
    program = chain()
    found = plan(program)
    for missing in found.buffers:
        rest = dataclasses.replace(found, buffers=tuple(b for b in found.buffers if b is not missing))
        assert plan_faults(rest, program) == [f"{missing.name} has no place"]


def test_a_buffer_of_too_few_bytes_is_caught() -> None:
    program = chain()
    assert plan_faults(changed(plan(program), "a", size_bytes=99), program) == ["a has 99 bytes, but needs 100"]


def test_an_unknown_pool_and_a_double_name_are_caught() -> None:
    program = chain()
    found = plan(program)
    assert "a lies in nowhere, which is no pool" in plan_faults(changed(found, "a", pool="nowhere"), program)
    twice = dataclasses.replace(found, buffers=(*found.buffers, found.buffers[0]))
    assert plan_faults(twice, program) == ["two pools or two buffers have the same name"]


def test_a_wrong_plan_is_a_problem_that_lists_its_first_faults() -> None:
    program = chain()
    found = dataclasses.replace(plan(program), buffers=())
    with pytest.raises(Problem) as error:
        verify(dataclasses.replace(found, pools=()), program)
    assert str(error.value) == (
        "error[memory]: the memory plan is wrong: a has no place; b has no place; c has no place; d has no place; "
        "s has no place\n  help: this is a fault of the planner's algorithm, not of the model")


# ---- loops and branches ----------------------------------------------------------------------------------------------
def test_a_loop_that_overwrites_what_its_next_turn_reads_is_caught() -> None:
    sketch = Sketch()
    flag, kept, t = (sketch.buffer(n, 64) for n in ("flag", "kept", "t"))
    program = sketch.program(sketch.step([], [kept]),
                             Loop((sketch.step([kept], [flag]),), flag, (sketch.step([], [t]),)))
    moved = onto(plan(program), "t", "kept")
    assert plan_faults(moved, program) == ["kernel_1 reads kept, whose bytes t has overwritten"]


def test_a_loop_may_overwrite_what_each_turn_writes_anew() -> None:
    sketch = Sketch()
    flag, a, t = (sketch.buffer(n, 64) for n in ("flag", "a", "t"))
    program = sketch.program(Loop((sketch.step([], [a]), sketch.step([a], [flag])), flag, (sketch.step([], [t]),)))
    assert plan_faults(onto(plan(program), "t", "a"), program) == []


@pytest.mark.parametrize("first", [True, False])
def test_a_part_of_a_branch_that_overwrites_what_is_read_after_it_is_caught(first: bool) -> None:
    sketch = Sketch()
    flag, a, t = (sketch.buffer(n, 64) for n in ("flag", "a", "t"))
    start, part = (sketch.step([], [flag]), sketch.step([], [a])), (sketch.step([], [t]),)
    branch = Branch(flag, part, ()) if first else Branch(flag, (), part)
    program = sketch.program(*start, branch, sketch.step([a], []))
    assert plan_faults(onto(plan(program), "t", "a"), program) == ["kernel_3 reads a, whose bytes t has overwritten"]


def test_a_condition_that_was_overwritten_is_caught() -> None:
    sketch = Sketch()
    flag, t = (sketch.buffer(n, 64) for n in ("flag", "t"))
    program = sketch.program(sketch.step([], [flag]), sketch.step([], [t]), Branch(flag, (), ()))
    moved = onto(plan(program), "t", "flag")
    assert plan_faults(moved, program) == ["a branch reads flag, whose bytes t has overwritten"]


def test_the_condition_of_a_loop_that_was_overwritten_is_caught() -> None:
    sketch = Sketch()
    flag, t = (sketch.buffer(n, 64) for n in ("flag", "t"))
    program = sketch.program(Loop((sketch.step([], [flag]), sketch.step([], [t])), flag, ()))
    moved = onto(plan(program), "t", "flag")
    assert plan_faults(moved, program) == ["a loop reads flag, whose bytes t has overwritten"]


def test_the_condition_of_a_check_that_was_overwritten_is_caught() -> None:
    sketch = Sketch()
    flag, t = (sketch.buffer(n, 64) for n in ("flag", "t"))
    program = sketch.program(sketch.step([], [flag]), sketch.step([], [t]), CheckTrue(flag, 0))
    moved = onto(plan(program), "t", "flag")
    assert plan_faults(moved, program) == ["a check reads flag, whose bytes t has overwritten"]


def test_a_fault_names_the_first_that_overwrote_the_bytes() -> None:
    sketch = Sketch()
    a, b, c = (sketch.buffer(n, 64) for n in "abc")
    program = sketch.program(sketch.step([], [a]), sketch.step([], [b]), sketch.step([], [c]), sketch.step([a], []))
    moved = onto(onto(plan(program), "b", "a"), "c", "a")
    assert plan_faults(moved, program) == ["kernel_3 reads a, whose bytes b has overwritten"]


def test_rows_overwritten_between_two_turns_of_a_kernel_are_caught() -> None:
    sketch = Sketch()
    a, t = sketch.buffer("a", 64), sketch.buffer("t", 64)
    first = sketch.step([], [a], rows=(0, 4))
    between = sketch.step([], [t])
    program = sketch.program(first, between, Compute(first.kernel, (4, 8)), sketch.step([a], []))
    assert "kernel_0 reads a, whose bytes t has overwritten" in plan_faults(onto(plan(program), "t", "a"), program)


@pytest.mark.sampled(4)
@settings(max_examples=100, deadline=None)
@given(programs(), st.data())
def test_what_a_run_on_bytes_trips_over_the_verifier_has_seen(program: Program, data: st.DataObject) -> None:
    found = plan(program, Memory(quick))  # any plan will do, and the best may take seconds
    assume(len(found.buffers) > 1)
    one, other = data.draw(st.sampled_from(list(itertools.permutations([b.name for b in found.buffers], 2))))
    moved = onto(found, one, other)
    answers = iter(data.draw(st.lists(st.booleans(), max_size=16)))
    try:
        Machine(program, moved, lambda: next(answers, False)).run(program.steps)
    except Clobbered:
        assert plan_faults(moved, program) != []


# ---- an algorithm's answer -------------------------------------------------------------------------------------------
PAIR = with_conflicts([BufferInfo("a", 10, 4, ("p",), live=((0, 1),)), BufferInfo("b", 10, 4, live=((1, 2),))])
POOLS = PoolInfo("p", 40, alignment=8), PoolInfo("q", 40, alignment=2)


@pytest.mark.parametrize("places, faults", [
    ({"a": ("p", 0), "b": ("p", 12)}, []),
    ({"a": ("p", 0), "b": ("p", 8)}, ["a and b share bytes, but conflict"]),
    ({"a": ("p", 8), "b": ("p", 0)}, ["a and b share bytes, but conflict"]),
    ({"a": ("p", 0)}, ["b has no place"]),
    ({"a": ("p", 0), "b": ("p", 14)}, ["b at offset 14 of p is not aligned to 4 bytes"]),
    ({"a": ("p", 0), "b": ("p", -12)}, ["b at offset -12 of p begins before byte 0, where the pool does"]),
    ({"a": ("p", 32), "b": ("p", 0)}, ["a at offset 32 of p ends at 42, behind the pool's 40 bytes"]),
    ({"a": ("p", 0), "b": ("q", 0)}, ["b at offset 0 of q is not aligned to 4 bytes"]),
    ({"a": ("q", 0), "b": ("p", 0)}, ["a at offset 0 of q may only lie in p",
                                      "a at offset 0 of q is not aligned to 4 bytes"]),
    ({"a": ("r", 0), "b": ("p", 0)}, ["a lies in r, which is no pool"]),
    ({"a": ("p", 0), "b": ("p", 12), "c": ("p", 24)}, ["c has a place but is no buffer"]),
])
def test_a_wrong_answer_of_an_algorithm_is_caught(places: dict[str, tuple[str, int]], faults: list[str]) -> None:
    answer = {name: PoolAllocation(*place) for name, place in places.items()}
    assert [*placement_faults(PAIR, POOLS, answer), *conflict_faults(PAIR, answer)] == faults


def test_one_way_conflicts_are_checked_both_ways() -> None:
    one_way = [BufferInfo("a", 10), BufferInfo("b", 10, conflicts=frozenset("ab"))]
    answer = {"a": PoolAllocation("p", 0), "b": PoolAllocation("p", 5)}
    assert list(conflict_faults(one_way, answer)) == ["a and b share bytes, but conflict"]
