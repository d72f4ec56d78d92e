"""Plans of whole programs: what they hold, and that they print as text which reads back."""
from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.kernels.kernel import Branch, Loop
from tosaic.lowering.loops.program import Program
from tosaic.lowering.memory.buffers import BufferInfo, PoolAllocation, PoolInfo, aligned
from tosaic.lowering.memory.check.verify import plan_faults
from tosaic.lowering.memory.plan import Plan, PlannedBuffer, PlannedPool, buffer_names, parse_plan, print_plan
from tosaic.lowering.memory.planner import Memory, plan, smallest_plan
from tosaic.lowering.memory.pool_traffic import pool_traffic
from tosaic.runtime.errors import Problem

from .programs import Machine, Sketch, programs

TEXT = """\
plan main algorithm portfolio bytes 322 live 322

pool       kind       bytes  limit  alignment  live
workspace  workspace    322   1024         16   322

buffer    pool       offset  bytes  alignment  kind          live
a         workspace     208    100         16  intermediate  0-1
b         workspace       0    200         16  intermediate  1-2
c         workspace     208     50         16  intermediate  2-3
"scr at"  workspace     312     10          8  intermediate  0-0,2-2
"""


def small() -> Program:
    sketch = Sketch()
    a, b, c = sketch.buffer("a", 100), sketch.buffer("b", 200), sketch.buffer("c", 50)
    scratch = sketch.buffer("scr at", 10, scratch=True)
    return sketch.program(sketch.step([], [a], [scratch]), sketch.step([a], [b]), sketch.step([b], [c], [scratch]),
                          sketch.step([c], []))


def test_a_plan_reuses_the_bytes_of_what_is_dead() -> None:
    found = plan(small(), Memory(alignment=16))
    places = {b.name: (b.byte_offset, b.end) for b in found.buffers}
    assert places["c"][0] < places["a"][1] and places["a"][0] < places["c"][1]
    assert found.live_bytes == found.pool("workspace").live_bytes == found.size_bytes == 322  # 314 are live
    assert found.allocations["a"] == PoolAllocation("workspace", places["a"][0])


def test_scratch_of_kernels_is_planned_with_the_buffers_between_them() -> None:
    """Each scratch lies where a buffer lies that is dead while its kernel runs."""
    sketch = Sketch()
    a, b, c = (sketch.buffer(n, 1024) for n in "abc")
    one, two = sketch.buffer("pack", 1024, scratch=True), sketch.buffer("pack", 1024, scratch=True)
    program = sketch.program(sketch.step([], [a], [one]), sketch.step([a], [b]), sketch.step([b], [c], [two]))
    found = plan(program)
    assert [b.name for b in found.buffers] == ["a", "b", "c", "pack", "pack.2"]
    assert found.size_bytes == 3 * 1024


@pytest.mark.sampled(4)
@settings(max_examples=60, deadline=None)
@given(programs(), st.sampled_from(["greedy_by_size", "greedy_by_conflicts", "portfolio"]), st.data())
def test_no_run_of_a_planned_program_reads_overwritten_bytes(program: Program, name: str, data: st.DataObject) -> None:
    found = plan(program, Memory(name, (PoolInfo("fast", 256), PoolInfo("slow")), 16))
    answers = iter(data.draw(st.lists(st.booleans(), max_size=20)))
    Machine(program, found, lambda: next(answers, False)).run(program.steps)
    assert parse_plan(str(found)) == found


def test_the_same_program_has_the_same_plan() -> None:
    def built() -> Program:
        sketch = Sketch()
        buffers = [sketch.buffer(f"b{i}", 64 * (i % 7 + 1)) for i in range(40)]
        return sketch.program(*(sketch.step(buffers[max(0, i - i % 5 - 1):i], [b]) for i, b in enumerate(buffers)))

    assert str(plan(built())) == str(plan(built()))


def test_thousands_of_buffers_are_planned() -> None:
    sketch = Sketch()
    buffers = [sketch.buffer(f"b{i}", 64 * (i * 7919 % 101 + 1)) for i in range(3000)]
    program = sketch.program(*(sketch.step({buffers[i - 1], buffers[i * 31 % i]} if i else [], [b])
                               for i, b in enumerate(buffers)))
    found = plan(program)
    assert len(found.buffers) == 3000 and found.size_bytes >= found.live_bytes


# ---- options ---------------------------------------------------------------------------------------------------------
def test_buffers_go_to_the_first_pool_that_the_target_may_use() -> None:
    pools = PoolInfo("cache", 64, target_access={"npu": "rw"}), PoolInfo("sram", target_access={"cpu": "rw"})
    assert {b.pool for b in plan(small(), Memory(pools=pools, accessor="cpu")).buffers} == {"sram"}
    with pytest.raises(Problem, match="target dsp may read and write none of the pools cache, sram"):
        plan(small(), Memory(pools=pools, accessor="dsp"))


def test_a_program_that_does_not_fit_is_refused_with_its_sizes() -> None:
    with pytest.raises(Problem, match="buffer a of 100 bytes fits in none of its pools beside the buffers that are "
                                      "live with it: tiny holds 256 bytes and would need 300"):
        plan(small(), Memory("greedy_by_size", (PoolInfo("tiny", 256),), 4))


def test_options_are_checked_when_they_are_made() -> None:
    with pytest.raises(Problem, match="an alignment of 48 bytes is not a power of two"):
        Memory(alignment=48)
    with pytest.raises(Problem, match="there is no planner's algorithm named fastest"):
        Memory("fastest")


def test_a_wrong_algorithm_of_the_user_is_caught() -> None:
    options = Memory(lambda buffers, pools: {b.name: PoolAllocation("workspace", 0) for b in buffers})
    with pytest.raises(Problem, match="the memory plan is wrong: kernel_0 uses a and scr at at once, which share"):
        plan(small(), options)
    with pytest.raises(Problem, match="a has no place; b has no place; c has no place"):
        plan(small(), Memory(lambda buffers, pools: {}))


def test_a_program_without_temporaries_needs_no_bytes() -> None:
    found = plan(Sketch().program())
    assert (found.size_bytes, found.live_bytes, found.buffers) == (0, 0, ())
    assert parse_plan(str(found)) == found


def test_loops_and_branches_are_planned_in_the_same_arena() -> None:
    sketch = Sketch()
    flag, state, t, u = (sketch.buffer(n, 256) for n in ("flag", "state", "t", "u"))
    program = sketch.program(
        sketch.step([], [state]),
        Loop((sketch.step([state], [flag]),), flag, (
            Branch(flag, (sketch.step([state], [t]), sketch.step([t], [state])),
                   (sketch.step([state], [u]), sketch.step([u], [state]))),)),
        sketch.step([state], []))
    assert plan(program).size_bytes == 2 * 256  # state, and one of the others at a time


# ---- names and text --------------------------------------------------------------------------------------------------
def test_equal_names_get_numbers() -> None:
    buffers = [Buffer(name, "int8", (1,)) for name in ("a", "a", "a.2", "b", "a")]
    assert list(buffer_names([*buffers, buffers[0]]).values()) == ["a", "a.2", "a.2.2", "b", "a.3"]


def test_a_plan_prints_as_a_table() -> None:
    found = plan(small(), Memory("portfolio", (PoolInfo("workspace", 1024),), 16))
    assert str(found) == TEXT


def test_a_plan_begins_at_the_offset_of_its_pool() -> None:
    """Its text reads back, the checker refuses a buffer before it, and sizes count it."""
    free, found = (plan(small(), Memory(pools=(PoolInfo("workspace", pool_offset=o),), alignment=16)) for o in (0, 32))
    assert {b.name: b.byte_offset for b in found.buffers} == {b.name: b.byte_offset + 32 for b in free.buffers}
    assert (found.size_bytes, found.live_bytes, found.is_proved) == (free.size_bytes + 32, free.live_bytes + 32, True)
    assert "live  offset\n" in str(found) and parse_plan(str(found)) == found
    moved = replace(found, buffers=tuple(replace(b, byte_offset=b.byte_offset - 32) for b in found.buffers))
    assert any("lies outside of bytes 32 to " in fault for fault in plan_faults(moved, small()))


def test_a_plan_says_that_it_is_not_proved() -> None:
    found = plan(small(), Memory(greedy_unlucky, alignment=16))
    head = "plan main algorithm greedy_unlucky bytes 386 live 314 not proved\n"
    assert not found.is_proved and str(found).startswith(head)
    assert parse_plan(str(found)) == found and found.to_json()["is_proved"] is False
    best = plan(small(), Memory(alignment=16))
    assert best.is_proved and "proved" not in str(best) and parse_plan(str(best)) == best


def greedy_unlucky(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> dict[str, PoolAllocation]:
    """One buffer behind the other."""
    found, end = {}, 0
    for b in buffers:
        found[b.name] = PoolAllocation(pools[0].name, aligned(end, b.alignment))
        end = found[b.name].byte_offset + b.size_bytes
    return found


def test_a_plan_goes_into_json() -> None:
    found = plan(small())
    data = json.loads(json.dumps(found.to_json()))
    assert data["size_bytes"] == found.size_bytes and data["live_bytes"] == found.live_bytes
    assert [(b["name"], b["byte_offset"]) for b in data["buffers"]] == [(b.name, b.byte_offset) for b in found.buffers]
    assert data["buffers"][0]["live"] == [[0, 1]]


@settings(max_examples=100)
@given(st.text(), st.text(), st.text())
def test_any_name_reads_back(name: str, pool: str, buffer: str) -> None:
    found = Plan(name, "portfolio", 3, (PlannedPool(pool, 3, None, 1, 3),), (PlannedBuffer(buffer, pool, 0, 3, 1),))
    assert parse_plan(print_plan(found)) == found


@pytest.mark.parametrize("old, new, message", [
    ("plan main algorithm", "plan main", "plan:1:1: error[syntax]: expected: plan NAME algorithm NAME bytes N live"),
    ("bytes 322 live", "bytes 300 live", "plan:1:1: error[syntax]: the plan has 300 bytes, but its pools have 322"),
    ("limit", "limits", "plan:3:1: error[syntax]: expected the heading pool kind bytes limit alignment live"),
    ("1024", "x", "plan:4:1: error[syntax]: expected a number, found x"),
    ("0-1", "0:1", "plan:7:1: error[syntax]: expected spans of steps such as 0-3,5-5, found 0:1"),
    ("2-3", "2-3 x", "plan:9:1: error[syntax]: expected 7 columns (buffer pool offset bytes alignment kind live), f"),
    ('"scr at"', r'"\q at"', r'plan:10:1: error[syntax]: the quoted name "\q at" is not a JSON string'),
    ("intermediate  0-1", "buffer  0-1", "plan:7:1: error[syntax]: buffer is no kind of buffer: intermediate, input, "),
    (TEXT, "", "error[syntax]: the text ends where a line that starts with plan should follow"),
])
def test_bad_text_is_a_problem_with_its_line(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(Problem) as error:
        parse_plan(TEXT.replace(old, new, 1))
    assert str(error.value).startswith(message)


# ---- several programs --------------------------------------------------------------------------------------------------
def test_of_programs_the_one_is_taken_that_moves_least_through_the_slow_pool() -> None:
    """Though another needs less of it; with one pool the smaller one is taken."""
    def program(size: int, readers: int) -> Program:
        sketch = Sketch()
        large, small = sketch.buffer("large", size), sketch.buffer("small", 16)
        return sketch.program(sketch.step((), (large,)), *[sketch.step((large,), (small,)) for _ in range(readers)])

    often, once = program(100, 10), program(200, 1)
    pools = PoolInfo("fast", 64), PoolInfo("slow")
    assert smallest_plan([often, once], Memory(pools=pools))[0] is once
    assert smallest_plan([often, once], Memory())[0] is often


def test_what_a_run_moves_decides_which_buffer_has_the_fast_pool() -> None:
    sketch = Sketch()
    hot, cold, out = sketch.buffer("hot", 64), sketch.buffer("cold", 60), sketch.buffer("out", 4)
    steps = [sketch.step((), (hot, cold)), *[sketch.step((hot,), (out,)) for _ in range(5)], sketch.step((hot, cold), (out,))]
    program = sketch.program(*steps)
    found = plan(program, Memory(pools=(PoolInfo("fast", 70), PoolInfo("slow"))))
    assert {b.name: b.pool for b in found.buffers} == {"hot": "fast", "cold": "slow", "out": "fast"}
    assert {name: (t.read, t.written) for name, t in pool_traffic(program, found).items()} == {
        "fast": (6, 7), "slow": (1, 1)}
