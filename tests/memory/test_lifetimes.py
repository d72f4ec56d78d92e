"""When buffers are live, by hand: straight lines, rows, scratch, branches and loops."""
from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.kernels.kernel import Branch, CheckTrue, CheckWritten, Compute, Loop, MarkWritten
from tosaic.lowering.loops.program import Program
from tosaic.lowering.memory.buffers import BufferInfo, Ticks, with_conflicts
from tosaic.lowering.memory.lifetimes import access_of, joined, lifetimes
from tosaic.lowering.memory.planner import Memory, planned_buffers

from .programs import Sketch


def live(program: Program) -> dict[str, tuple[tuple[int, int], ...]]:
    return {b.name: spans for b, spans in lifetimes(program.steps, list(map(access_of, program.functions))).items()}


def conflicts(program: Program) -> set[str]:
    """Pairs of names in conflict, as "a b"."""
    return {f"{b.name} {other}" for b in planned_buffers(program, Memory()) for other in b.conflicts
            if b.name < other}


@pytest.fixture
def sketch() -> Sketch:
    return Sketch()


def named(sketch: Sketch, names: str) -> Sequence[Buffer]:
    return [sketch.buffer(name) for name in names]


def test_a_buffer_lives_from_its_first_write_to_its_last_read(sketch: Sketch) -> None:
    a, b, c = named(sketch, "abc")
    program = sketch.program(sketch.step([], [a]), sketch.step([a], [b]), sketch.step([b], [c]), sketch.step([c], []))
    assert live(program) == {"a": ((0, 1),), "b": ((1, 2),), "c": ((2, 3),)}
    assert conflicts(program) == {"a b", "b c"}


def test_a_result_that_nobody_reads_conflicts_with_what_is_live_when_it_is_written(sketch: Sketch) -> None:
    a, b, c = named(sketch, "abc")
    program = sketch.program(sketch.step([], [a]), sketch.step([], [b]), sketch.step([], [c]), sketch.step([a], []))
    assert conflicts(program) == {"a b", "a c"}


def test_kernels_that_take_turns_keep_their_buffers_over_all_of_it(sketch: Sketch) -> None:
    a, b, c = named(sketch, "abc")
    one, two, three = sketch.kernel([], [a]), sketch.kernel([a], [b]), sketch.kernel([b], [c])
    rows = [(one, (0, 4)), (two, (0, 2)), (one, (4, 8)), (two, (2, 8))]
    program = sketch.program(*(Compute(k, r) for k, r in rows), Compute(three))
    assert live(program) == {"a": ((0, 3),), "b": ((1, 4),), "c": ((4, 4),)}


def test_scratch_lives_while_its_kernel_runs(sketch: Sketch) -> None:
    a, b = named(sketch, "ab")
    s, t = sketch.buffer("s", scratch=True), sketch.buffer("t", scratch=True)
    one, two = sketch.step([], [a], [s], rows=(0, 4)), sketch.step([a], [b], [t], rows=(0, 4))
    again, last = Compute(one.kernel, (4, 8)), Compute(two.kernel, (4, 8))
    program = sketch.program(one, two, again, last)
    assert live(program)["s"] == ((0, 0), (2, 2))
    assert live(program)["t"] == ((1, 1), (3, 3))
    assert conflicts(program) == {"a b", "a s", "a t", "b s", "b t"}


def test_scratch_of_runs_one_after_the_other_has_one_span(sketch: Sketch) -> None:
    a, s = sketch.buffer("a"), sketch.buffer("s", scratch=True)
    one = sketch.step([], [a], [s], rows=(0, 4))
    program = sketch.program(one, Compute(one.kernel, (4, 8)), sketch.step([a], []))
    assert live(program)["s"] == ((0, 1),)


def test_the_parts_of_a_branch_may_share_bytes(sketch: Sketch) -> None:
    flag, a, b = sketch.buffer("flag"), sketch.buffer("a"), sketch.buffer("b")
    program = sketch.program(sketch.step([], [flag]), Branch(flag, (sketch.step([], [a]), sketch.step([a], [])),
                                                             (sketch.step([], [b]), sketch.step([b], []))))
    assert live(program) == {"flag": ((0, 1),), "a": ((2, 3),), "b": ((4, 5),)}
    assert conflicts(program) == set()


def test_what_both_parts_write_and_is_read_later_lives_through_both(sketch: Sketch) -> None:
    flag, out, a, b = (sketch.buffer(n) for n in ("flag", "out", "a", "b"))
    program = sketch.program(
        sketch.step([], [flag]),
        Branch(flag, (sketch.step([], [out]),), (sketch.step([], [a]), sketch.step([a], [out]))),
        sketch.step([out], [b]))
    assert live(program)["out"] == ((2, 5),)
    assert conflicts(program) == {"a out", "b out"}


def test_what_only_the_second_part_reads_lives_through_the_first(sketch: Sketch) -> None:
    flag, a, b, c = (sketch.buffer(n) for n in ("flag", "a", "b", "c"))
    program = sketch.program(sketch.step([], [flag]), sketch.step([], [a]),
                             Branch(flag, (sketch.step([], [b]),), (sketch.step([a], [c]),)))
    assert conflicts(program) == {"a flag", "a b", "a c"}


def test_what_comes_from_outside_a_loop_lives_over_all_of_it(sketch: Sketch) -> None:
    flag, a, t, u = (sketch.buffer(n) for n in ("flag", "a", "t", "u"))
    program = sketch.program(
        sketch.step([], [a]),
        Loop((sketch.step([a], [flag]),), flag, (sketch.step([], [t]), sketch.step([t], [u]))))
    assert live(program) == {"a": ((0, 4),), "flag": ((1, 2),), "t": ((3, 4),), "u": ((4, 4),)}
    assert conflicts(program) == {"a flag", "a t", "a u", "t u"}


def test_what_is_read_after_a_loop_lives_over_all_of_it(sketch: Sketch) -> None:
    flag, a, t = (sketch.buffer(n) for n in ("flag", "a", "t"))
    program = sketch.program(
        Loop((sketch.step([], [t]), sketch.step([t], [flag])), flag, (sketch.step([], [a]),)), sketch.step([a], []))
    assert live(program)["a"] == ((0, 4),)
    assert conflicts(program) == {"a t", "a flag", "flag t"}


def test_what_the_next_turn_reads_lives_over_the_whole_loop(sketch: Sketch) -> None:
    """The first use of `carried` in an iteration is a read."""
    flag, carried, t = (sketch.buffer(n) for n in ("flag", "carried", "t"))
    program = sketch.program(Loop((sketch.step([], [flag]),), flag, (
        sketch.step([carried], [t]), sketch.step([t], []), sketch.step([], [carried]))))
    assert live(program) == {"flag": ((0, 1),), "carried": ((0, 4),), "t": ((2, 3),)}
    assert conflicts(program) == {"carried flag", "carried t"}


def test_what_a_turn_may_leave_unwritten_is_kept_from_the_turn_before(sketch: Sketch) -> None:
    """Only one arm of the branch writes `kept`, so the read after it may see the last iteration's value."""
    flag, kept, t = (sketch.buffer(n) for n in ("flag", "kept", "t"))
    program = sketch.program(Loop((sketch.step([], [flag]),), flag, (
        Branch(flag, (sketch.step([], [kept]),), ()), sketch.step([kept], []), sketch.step([], [t]))))
    assert live(program)["kept"] == ((0, 5),)
    assert "kept t" in conflicts(program)


def test_what_both_branches_write_in_an_iteration_stays_in_it(sketch: Sketch) -> None:
    flag, x, t = (sketch.buffer(n) for n in ("flag", "x", "t"))
    program = sketch.program(Loop((sketch.step([], [flag]),), flag, (
        Branch(flag, (sketch.step([], [x]),), (sketch.step([], [x]),)), sketch.step([x], []), sketch.step([], [t]))))
    assert live(program)["x"] == ((3, 5),)
    assert conflicts(program) == set()


def test_what_a_loop_without_turns_leaves_unwritten_is_kept(sketch: Sketch) -> None:
    """The inner loop may run no body, so the read after it may see the last iteration's value of the outer one."""
    outer, inner, kept, t = (sketch.buffer(n) for n in ("outer", "inner", "kept", "t"))
    program = sketch.program(Loop((sketch.step([], [outer]),), outer, (
        Loop((sketch.step([], [inner]),), inner, (sketch.step([], [kept]),)),
        sketch.step([kept], []), sketch.step([], [t]))))
    assert live(program)["kept"] == ((0, 6),)


def test_what_each_iteration_writes_anew_need_not_outlive_it(sketch: Sketch) -> None:
    """The value from before the loop is never read."""
    flag, a, t = (sketch.buffer(n) for n in ("flag", "a", "t"))
    program = sketch.program(sketch.step([], [a]), Loop((sketch.step([], [flag]),), flag, (
        sketch.step([], [a]), sketch.step([a], []), sketch.step([], [t]))))
    assert live(program)["a"] == ((0, 4),)
    assert "a t" not in conflicts(program)


def test_inner_loops_widen_to_the_loop_that_still_needs_the_buffer(sketch: Sketch) -> None:
    outer, inner, a, b, t = (sketch.buffer(n) for n in ("outer", "inner", "a", "b", "t"))
    program = sketch.program(sketch.step([], [a]), Loop(
        (sketch.step([], [outer]),), outer, (
            sketch.step([], [b]),
            Loop((sketch.step([b], [inner]),), inner, (sketch.step([a], [t]),)))))
    assert live(program) == {"a": ((0, 6),), "outer": ((1, 2),), "b": ((3, 6),), "inner": ((4, 5),), "t": ((6, 6),)}


def test_rows_that_go_on_need_the_rows_before(sketch: Sketch) -> None:
    """In the loop the first rows come from before it, so they have to stay."""
    flag, a = sketch.buffer("flag"), sketch.buffer("a")
    first = sketch.step([], [a], rows=(0, 4))
    program = sketch.program(Loop((sketch.step([], [flag]),), flag, (Compute(first.kernel, (4, 8)),)))
    assert live(program)["a"] == ((0, 2),)


def test_variables_and_constants_are_not_planned(sketch: Sketch) -> None:
    a = sketch.buffer("a")
    state = Buffer("state", "int8", (4,), "variable")
    weights = Buffer("weights", "int8", (4,), "constant")
    argument, result = Buffer("x", "int8", (4,), "argument"), Buffer("y", "int8", (4,), "result")
    program = sketch.program(CheckWritten(state, 0), sketch.step([state, weights, argument], [a]),
                             sketch.step([a], [state, result]), MarkWritten(state))
    assert [(b.name, b.live) for b in planned_buffers(program, Memory())] == [("a", ((1, 2),))]


def test_a_condition_lives_until_its_check(sketch: Sketch) -> None:
    flag, a, b = named(sketch, "fab")
    program = sketch.program(sketch.step([], [flag]), sketch.step([], [a]), CheckTrue(flag, 0), sketch.step([a], [b]),
                             sketch.step([b], []))
    assert live(program)["f"] == ((0, 2),)


def test_a_buffer_of_a_kernel_that_never_runs_conflicts_with_none(sketch: Sketch) -> None:
    a, b = named(sketch, "ab")
    sketch.kernel([], [b])
    program = sketch.program(sketch.step([], [a]), sketch.step([a], []))
    assert {b.name: (b.live, b.conflicts) for b in planned_buffers(program, Memory())} == {
        "b": ((), frozenset()), "a": (((0, 1),), frozenset())}


SPANS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)).map(lambda t: (t[0], t[0] + t[1])), max_size=3)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 2), SPANS.map(joined)), max_size=8))
def test_conflicts_are_the_pairs_that_share_a_tick(drawn: list[tuple[int, tuple[Ticks, ...]]]) -> None:
    buffers = [BufferInfo(f"b{i}", size, live=live) for i, (size, live) in enumerate(drawn)]
    for one in with_conflicts(buffers):
        ticks = {t for a, z in one.live or () for t in range(a, z + 1)}
        together = {b.name for b in buffers if b.size_bytes and any(ticks & set(range(a, z + 1)) for a, z in b.live or ())}
        assert one.conflicts == (together - {one.name} if one.size_bytes else set())
