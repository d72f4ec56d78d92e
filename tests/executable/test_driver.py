"""The table of steps as native code: order, rows, branches, loops, faults, constants, the arena."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Const
from tosaic.lowering.kernels.kernel import Branch, Compute, Kernel, Loop
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.program import Program
from tosaic.lowering.machine_code.codegen import parse
from tosaic.lowering.memory.buffers import PoolInfo
from tosaic.lowering.memory.planner import Memory, plan
from tosaic.lowering.native.driver.driver import row_count
from tosaic.lowering.native.driver.variable_rollback import rollback_of
from tosaic.lowering.native.process.load import load, native_text
from tosaic.lowering.target.presets import host
from tosaic.runtime.errors import Position, Problem, Source
from tosaic.runtime.variables import Context

from .programs import Programs, add, below, copy, mul, plus, times

X = np.arange(8, dtype=np.float32)


def test_steps_run_in_order_through_temporaries_and_constants() -> None:
    p = Programs()
    x, t, u, r = p.input("x"), p.temporary("t"), p.temporary("u"), p.output("r")
    c = p.constant("c", np.full(8, 10, np.float32))
    executable = p.load(p.compute(t, add, x, c), p.compute(u, mul, t, x), p.compute(r, plus(1), u))
    assert np.array_equal(executable(X)[0], (X + 10) * X + 1)
    assert executable.arena_nbytes == 32  # u lies over t


def test_a_program_without_steps_but_its_output_is_enough() -> None:
    p = Programs("seven")
    r = p.output("r", (3,))
    c = p.constant("c", np.full(3, 7, np.float32))
    assert np.array_equal(p.load(p.compute(r, copy, c))()[0], np.full(3, 7, np.float32))


def test_a_kernel_runs_in_parts() -> None:
    p = Programs()
    x, r = p.input("x"), p.output("r")
    first = p.compute(r, plus(1), x, by_rows=True)
    executable = p.load(Compute(first.kernel, (0, 3)), Compute(first.kernel, (3, 4)), Compute(first.kernel, (4, 8)))
    assert np.array_equal(executable(X)[0], X + 1)


def test_only_the_rows_of_a_step_are_written() -> None:
    p = Programs()
    x, r = p.input("x"), p.output("r")
    step = p.compute(r, plus(1), x, by_rows=True)
    out = np.zeros(8, np.float32)
    p.load(Compute(step.kernel, (2, 5)))(X, out=out)
    assert out.tolist() == [0, 0, 3, 4, 5, 0, 0, 0]


def test_a_kernel_that_can_do_parts_does_all_rows_when_none_are_named() -> None:
    p = Programs()
    x, r = p.input("x"), p.output("r")
    assert np.array_equal(p.load(p.compute(r, plus(1), x, by_rows=True))(X)[0], X + 1)


def test_rows_are_those_of_the_first_axis_that_is_longer_than_1() -> None:
    r = Buffer("r", "int8", (1, 6, 4), "result")
    assert row_count(Kernel(r, (Axis("n", 1), Axis("h", 6), Axis("c", 4)), Const(0, "int8"))) == 6
    assert row_count(Kernel(r, (Axis("n", 1),), Const(0, "int8"))) == 1


@pytest.mark.parametrize("value", [0, 1, 2, 255])
def test_a_branch_takes_the_side_its_condition_says(value: int) -> None:
    p = Programs()
    x, condition, r = p.input("x"), p.input("condition", (), "bool"), p.output("r")
    yes, no = p.compute(r, plus(1), x), p.compute(r, times(2), x)
    executable = p.load(Branch(condition, (yes,), (no,)))
    flag = np.array(value, np.uint8).view(np.bool_)
    assert np.array_equal(executable(X, flag)[0], X + 1 if value else X * 2)


def test_branches_nest_and_go_on_after_their_end() -> None:
    p = Programs()
    x, a, b = p.input("x"), p.input("a", (), "bool"), p.input("b", (), "bool")
    t, r = p.temporary("t"), p.output("r")
    steps = [p.compute(t, plus(float(i)), x) for i in range(3)]
    after = p.compute(r, times(10), t)
    executable = p.load(Branch(a, (Branch(b, (steps[0],), (steps[1],)),), (steps[2],)), after)
    for i, (one, other) in enumerate([(True, True), (True, False), (False, True)]):
        assert np.array_equal(executable(X, np.array(one), np.array(other))[0], (X + i) * 10)


@pytest.mark.parametrize(("start", "result"), [(3, 192), (100, 100), (99, 198)])
def test_a_loop_runs_until_its_condition_is_false(start: int, result: int) -> None:
    p = Programs()
    x, r = p.input("x", (1,)), p.output("r", (1,))
    total, condition = p.temporary("total", (1,)), p.temporary("condition", (1,), "bool")
    first, test = p.compute(total, copy, x), p.compute(condition, below(100), total)
    body = p.compute(total, times(2), total)
    executable = p.load(first, Loop((test,), condition, (body,)), p.compute(r, copy, total))
    assert executable(np.array([start], np.float32))[0].item() == result


def test_what_lies_in_the_arena_before_a_run_does_not_matter() -> None:
    p = Programs()
    x, t, r = p.input("x"), p.temporary("t"), p.output("r")
    executable = p.load(p.compute(t, plus(1), x), p.compute(r, mul, t, t))
    executable(X)
    workspace = executable.workspaces.take()
    workspace.arena[:] = 0xA5
    executable.workspaces.give(workspace)
    assert np.array_equal(executable(X)[0], (X + 1) ** 2)


def test_temporaries_may_lie_in_several_pools() -> None:
    p = Programs()
    x, t, u, r = p.input("x"), p.temporary("t"), p.temporary("u"), p.output("r")
    program = p.program(p.compute(t, plus(1), x), p.compute(u, add, t, x), p.compute(r, mul, t, u))
    pools = (PoolInfo("fast", 32), PoolInfo("slow", alignment=256))
    planned = plan(program, Memory(pools=pools))
    assert [pool.size_bytes > 0 for pool in planned.pools] == [True, True]
    executable = load(program, planned)
    assert np.array_equal(executable(X)[0], (X + 1) * (2 * X + 1))
    executable.workspaces.take()
    assert executable.workspaces._make().arena.__array_interface__["data"][0] % 256 == 0


def test_scratch_is_memory_of_the_arena() -> None:
    p = Programs()
    x, r = p.input("x"), p.output("r")
    builder, scratch = Builder("with_scratch"), Buffer("s", "float32", (8,), "scratch")
    axis, again = Axis("i", 8), Axis("j", 8)
    builder.scratch(scratch)
    builder.loop(axis, lambda: builder.store(scratch, Affine.of(axis), builder.load(x, Affine.of(axis))))
    builder.loop(again, lambda: builder.store(r, Affine.of(again), builder.load(scratch, Affine.of(again) * -1 + 7)))
    kernel = Kernel(r, (axis,), Const(0, "float32"))
    program = Program("main", (x,), (r,), (kernel,), (builder.finish(),), (Compute(0),))
    assert np.array_equal(load(program, plan(program))(X)[0], X[::-1])


def test_constants_at_odd_addresses_are_put_right() -> None:
    p = Programs()
    x, r = p.input("x"), p.output("r")
    crooked = np.zeros(33, np.uint8)[1:].view(np.float32)
    crooked[:] = 5
    strided = np.full((8, 2), 3, np.float32)[:, 0]
    c, d = (Buffer(n, "float32", (8,), "constant", a) for n, a in (("c", crooked), ("d", strided)))
    t = p.temporary("t")
    assert np.array_equal(p.load(p.compute(t, add, x, c), p.compute(r, mul, t, d))(X)[0], (X + 5) * 3)


@pytest.mark.parametrize("broken", ["twice", "argument", "unwritten"])
def test_a_program_whose_outputs_are_not_its_own_is_a_bug(broken: str) -> None:
    p = Programs()
    x, r = p.input("x"), p.output("r")
    step = p.compute(r, copy, x)
    if broken == "twice":
        p.outputs.append(r)
    elif broken == "argument":
        p.outputs.append(x)
    else:
        p.output("nobody")
    with pytest.raises(AssertionError):
        p.load(step)


def test_kernels_with_the_same_code_share_it() -> None:
    p = Programs()
    x, t, r = p.input("x"), p.temporary("t"), p.output("r")
    program = p.program(p.compute(t, plus(1), x), p.compute(r, plus(1), t))
    text = native_text(program, plan(program), host())
    assert text.count("define internal void @program.kernel_") == 1
    assert np.array_equal(load(program, plan(program))(X)[0], X + 2)


def test_a_call_of_an_unknown_function_is_refused_before_it_runs() -> None:
    with pytest.raises(AssertionError, match="the module calls system, which nobody defines"):
        parse("declare i32 @system(ptr)\ndefine i32 @f(ptr %x) {\n %r = call i32 @system(ptr %x)\n ret i32 %r\n}")


def test_text_that_llvm_refuses_is_reported_with_its_line() -> None:
    with pytest.raises(AssertionError, match="tosaic wrote LLVM IR that LLVM refuses"):
        parse("define i32 @f() {\n ret i64 0\n}")


# ---- faults ----------------------------------------------------------------------------------------------------------
SOURCE = Source("model.mlir", "func.func @main() {\n  %0 = tosa.variable_read @state\n}\n")


def test_reading_an_unwritten_variable_is_an_error_at_the_operators_place() -> None:
    p = Programs()
    v, r = p.variable("state"), p.output("r")
    executable = p.load(p.check(v, Position(SOURCE, 2, 8, 18)), p.compute(r, copy, v), context=Context("test"))
    with pytest.raises(Problem) as caught:
        executable()
    assert str(caught.value) == (
        "model.mlir:2:8: error[variable]: variable @state is read before it was written\n"
        "    2 |   %0 = tosa.variable_read @state\n"
        "      |        ^^^^^^^^^^^^^^^^^^\n"
        "  help: write it first")
    executable.context.set("state", X)
    assert np.array_equal(executable()[0], X)


def test_the_fault_that_is_reported_is_the_one_that_happened() -> None:
    p = Programs()
    a, b, r = p.variable("a"), p.variable("b"), p.output("r")
    executable = p.load(p.check(a), p.check(b), p.compute(r, add, a, b), context=Context("test"))
    for name in "ab":
        with pytest.raises(Problem, match=f"variable @{name} is read before"):
            executable()
        executable.context.set(name, X)
    assert np.array_equal(executable()[0], X * 2)


def test_nothing_is_kept_where_every_check_comes_before_every_write() -> None:
    p = Programs()
    a, b, r = p.variable("a"), p.variable("b"), p.output("r")
    program = p.program(p.check(a), *p.write(b, copy, a), p.compute(r, copy, b))
    assert rollback_of(program).nbytes == 0


@pytest.mark.parametrize("where", ["after", "in a branch", "in a loop, before the write"])
def test_a_run_that_fails_after_a_write_changes_no_variable(where: str) -> None:
    p = Programs()
    x, go = p.input("x"), p.input("go", (), "bool")
    kept, fresh, missing = p.variable("kept", initial=X * 7), p.variable("fresh"), p.variable("missing")
    r = p.output("r")
    write = (*p.write(kept, copy, x), *p.write(fresh, copy, x))
    check, last = p.check(missing), p.compute(r, copy, missing)
    steps = {"after": (*write, check, last), "in a branch": (*write, Branch(go, (check,), ()), last),
             "in a loop, before the write": (Branch(go, write, ()), Loop((), go, (check,)), last)}[where]
    assert rollback_of(p.program(*steps)).nbytes == 2 * 64 + 2
    executable = p.load(*steps, context=Context("test"))
    variables = executable.context
    with pytest.raises(Problem, match="@missing is read before"):
        executable(X, np.array(True))
    assert np.array_equal(variables.read("kept"), X * 7)
    assert [s.is_written for s in variables.list()] == [False, True, False]
    assert [s.name for s in variables.list()] == ["fresh", "kept", "missing"]
    if where != "in a loop, before the write":
        variables.set("missing", X)
        executable(X, np.array(True))
        assert np.array_equal(variables.read("kept"), X) and np.array_equal(variables.read("fresh"), X)


def test_a_branch_not_taken_does_not_fail() -> None:
    p = Programs()
    x, go = p.input("x"), p.input("go", (), "bool")
    kept, missing, r = p.variable("kept"), p.variable("missing"), p.output("r")
    steps = (*p.write(kept, copy, x), Branch(go, (p.check(missing),), ()), p.compute(r, copy, kept))
    executable = p.load(*steps, context=Context("test"))
    assert np.array_equal(executable(X, np.array(False))[0], X)
    assert np.array_equal(executable.context.read("kept"), X)


def test_the_search_for_late_faults_is_quick_in_deep_loops() -> None:
    p = Programs()
    go, v = p.input("go", (), "bool"), p.variable("v")
    r = p.output("r")
    step: Loop = Loop((), go, (p.check(v), *p.write(v, copy, v)))
    for _ in range(60):
        step = Loop((), go, (step,))
    assert rollback_of(p.program(step, p.compute(r, copy, v))).nbytes == 65
