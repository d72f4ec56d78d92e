"""Checks in native code: the call that fails, what it leaves behind, in branches, loops and threads."""
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tosaic.lowering.kernels.kernel import Branch, Loop, Step
from tosaic.lowering.native.driver.variable_rollback import rollback_of
from tosaic.runtime.errors import Position, Problem, Source
from tosaic.runtime.executable import Executable
from tosaic.runtime.variables import Context

from .programs import Programs, add, below, copy, plus

X = np.arange(8, dtype=np.float32)
TRUE, FALSE = np.array(True), np.array(False)


def fails(executable: Executable, *arguments: np.ndarray) -> str:
    with pytest.raises(Problem) as caught:
        executable(*arguments)
    return str(caught.value)


def test_a_check_that_fails_is_an_error_at_its_place_and_the_next_call_is_as_good_as_any() -> None:
    p = Programs()
    x, c, r = p.input("x"), p.input("c", (), "bool"), p.output("r")
    source = Source("model.mlir", "\n  tosaic.assert %c\n")
    executable = p.load(p.check_true(c, "c is false", Position(source, 2, 3, 13)), p.compute(r, copy, x))
    assert fails(executable, X, FALSE) == (
        "model.mlir:2:3: error[check]: c is false\n    2 |   tosaic.assert %c\n      |   ^^^^^^^^^^^^^")
    assert np.array_equal(executable(X, TRUE)[0], X)


def test_the_first_check_that_fails_is_the_one_that_is_told() -> None:
    p = Programs()
    x, conditions, r = p.input("x"), [p.input(n, (), "bool") for n in "abc"], p.output("r")
    executable = p.load(*(p.check_true(b, f"{b.name} is false") for b in conditions), p.compute(r, copy, x))
    for number, name in enumerate("abc"):
        values = [TRUE] * number + [FALSE] * (3 - number)
        assert f"{name} is false" in fails(executable, X, *values)
    executable(X, TRUE, TRUE, TRUE)


def test_nothing_is_kept_where_checks_come_before_writes() -> None:
    p = Programs()
    x, c, v, r = p.input("x"), p.input("c", (), "bool"), p.variable("v"), p.output("r")
    program = p.program(p.check_true(c, "c"), *p.write(v, copy, x), p.compute(r, copy, v))
    assert rollback_of(program).nbytes == 0


def test_only_what_may_be_written_when_a_check_fails_is_kept() -> None:
    p = Programs()
    x, c, r = p.input("x"), p.input("c", (), "bool"), p.output("r")
    early, late, read = p.variable("early"), p.variable("late"), p.variable("read", initial=X)
    program = p.program(*p.write(early, copy, x), p.check_true(c, "c"), *p.write(late, copy, read), p.compute(r, copy, late))
    rollback = rollback_of(program)
    assert [b.name for b, _ in rollback.variables] == ["early"] and rollback.always and rollback.nbytes == 64 + 1


@pytest.mark.parametrize("where", ["behind", "in a branch", "in a loop, before the write"])
def test_a_check_behind_a_write_that_fails_changes_no_variable(where: str) -> None:
    p = Programs()
    x, go, c, r = p.input("x"), p.input("go", (), "bool"), p.temporary("c", (), "bool"), p.output("r")
    kept, fresh, first = p.variable("kept", initial=X * 7), p.variable("fresh"), p.constant("first", np.ones((), np.float32))
    other = p.variable("turn", (), initial=0.0)
    write = (*p.write(kept, copy, x), *p.write(fresh, copy, x))
    check = p.check_true(c, "it fails")
    false, last = p.compute(c, below(0.0), first), p.compute(r, copy, kept)
    again = p.temporary("again", (), "bool")
    steps: tuple[Step, ...] = {
        "behind": (false, *write, check, last), "in a branch": (false, *write, Branch(go, (check,), ()), last),
        "in a loop, before the write": (*p.write(other, plus(0.0), first), Loop((p.compute(again, below(3.0), other),), again, (
            p.compute(c, below(2.0), other), check, *write, *p.write(other, add, other, first))), last)}[where]
    assert rollback_of(p.program(*steps)).always
    executable = p.load(*steps, context=Context("test"))
    assert "it fails" in fails(executable, X, TRUE)
    variables = executable.context
    assert np.array_equal(variables.read("kept"), X * 7) and variables.read("turn").item() == 0
    assert {s.name: s.is_written for s in variables.list()} == {"fresh": False, "kept": True, "turn": True}
    if where == "in a branch":
        executable(X, FALSE)
        assert np.array_equal(variables.read("kept"), X) and np.array_equal(variables.read("fresh"), X)


def test_a_check_that_fails_before_anything_is_written_leaves_what_the_calls_before_have_written() -> None:
    """The program may fail late, too, but not once its variable has been written: then it keeps no copies to take back."""
    p = Programs()
    x, c, r = p.input("x"), p.input("c", (), "bool"), p.output("r")
    state, read = p.variable("state", initial=X * 7), p.variable("read", initial=X)
    steps: tuple[Step, ...] = (p.check_true(c, "c is false"), *p.write(state, copy, x), p.check(read),
                               p.compute(r, add, state, read))
    rollback = rollback_of(p.program(*steps))
    assert rollback.variables and not rollback.always
    executable = p.load(*steps, context=Context("test"))
    for value in (X * 2, X * 3):
        executable(value, TRUE)
        assert "c is false" in fails(executable, X, FALSE)
        assert np.array_equal(executable.context.read("state"), value)


def test_a_check_in_a_branch_that_is_not_taken_does_not_fail() -> None:
    p = Programs()
    x, go, c, r = p.input("x"), p.input("go", (), "bool"), p.input("c", (), "bool"), p.output("r")
    executable = p.load(Branch(go, (p.check_true(c, "then"),), (p.check_true(c, "else"),)), p.compute(r, copy, x))
    assert "then" in fails(executable, X, TRUE, FALSE) and "else" in fails(executable, X, FALSE, FALSE)
    assert np.array_equal(executable(X, FALSE, TRUE)[0], X)


def test_calls_that_fail_and_calls_that_do_not_run_side_by_side() -> None:
    p = Programs()
    x, c, r = p.input("x"), p.input("c", (), "bool"), p.output("r")
    executable = p.load(p.check_true(c, "c is false"), p.compute(r, plus(1.0), x))

    def calls(number: int) -> int:
        failed = 0
        for other in range(200):
            try:
                assert np.array_equal(executable(X, np.array((other + number) % 2 == 0))[0], X + 1)
            except Problem:
                failed += 1
        return failed

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(calls, range(4))) == [100] * 4
