"""The verifier of steps: what they name, the rows they compute, and the order of what they read and write."""
from __future__ import annotations

from dataclasses import replace

import pytest
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.kernels.kernel import Branch, CheckTrue, CheckWritten, Compute, Fault, Loop, MarkWritten
from tosaic.lowering.loops.verify import verify_program
from tosaic.runtime.errors import Problem

from .functions import argument, program, result, temporary, unary

X, T, Y = argument("x", 8), temporary("t", 8), result("y", 8)
FLAG = Buffer("flag", "bool", (), "temporary")
STATE = Buffer("state", "float32", (8,), "variable")


def steps_are_rejected(message: str, *steps: object, faults: tuple[Fault, ...] = ()) -> None:
    p = program([unary(T, X), unary(Y, T)], [X], [Y], steps)
    with pytest.raises(Problem, match=message) as caught:
        verify_program(replace(p, faults=faults))
    assert caught.value.kind == "internal"


def test_steps_in_order_are_accepted() -> None:
    proofs = verify_program(program([unary(T, X), unary(Y, T)], [X], [Y]))
    assert [p.accesses for p in proofs] == [2, 2]


def test_a_step_reads_only_what_a_step_before_has_written() -> None:
    steps_are_rejected("y reads t: float32.8. before", Compute(1), Compute(0))
    steps_are_rejected("the caller reads y", Compute(0))
    steps_are_rejected("a branch reads flag", Branch(FLAG, (), ()), Compute(0), Compute(1))
    steps_are_rejected("a loop reads flag", Loop((), FLAG, ()), Compute(0), Compute(1))
    steps_are_rejected("a check reads flag", CheckTrue(FLAG, 0), Compute(0), Compute(1), faults=(Fault("f"),))


def test_what_one_side_of_a_branch_writes_is_not_written_after_it() -> None:
    condition = argument("c", dtype="bool")
    steps_are_rejected("y reads t", Branch(condition, (Compute(0),), ()), Compute(1))
    both = Branch(condition, (Compute(0),), (Compute(0),))
    verify_program(program([unary(T, X), unary(Y, T)], [X], [Y], [both, Compute(1)]))


def test_what_the_body_of_a_loop_writes_is_not_written_after_it() -> None:
    condition = argument("c", dtype="bool")
    steps_are_rejected("y reads t", Loop((), condition, (Compute(0),)), Compute(1))
    verify_program(program([unary(T, X), unary(Y, T)], [X], [Y], [Loop((Compute(0),), condition, ()), Compute(1)]))


def test_steps_name_kernels_and_faults_that_there_are() -> None:
    steps_are_rejected("kernel 2 of 2", Compute(0), Compute(2))
    steps_are_rejected("fault 0 of 0", CheckWritten(STATE, 0), Compute(0), Compute(1))
    steps_are_rejected("fault 1 of 1", CheckTrue(argument("c", dtype="bool"), 1), Compute(0), Compute(1), faults=(Fault("f"),))
    steps_are_rejected("fault 0 of 1 checks x: float32.8.", CheckTrue(X, 0), Compute(0), Compute(1), faults=(Fault("f"),))
    steps_are_rejected("is no variable", MarkWritten(T), Compute(0), Compute(1))
    steps_are_rejected("cannot compute rows 0 to 4", Compute(0, (0, 4)), Compute(1))


@pytest.mark.parametrize(("rows", "message"), [
    ([(0, 4), (5, 8)], "row 4 is never computed"), ([(0, 4)], "row 4 is never computed"), ([(1, 8)], "row 0 is never"),
    ([(0, 9)], "rows 0 to 9 of 8"), ([(0, 8), (4, 4)], "rows 4 to 4 of 8")])
def test_rows_are_all_computed_and_no_others(rows: list[tuple[int, int]], message: str) -> None:
    f = unary(Y, X, by_rows=True)
    verify_program(program([f], [X], [Y], [Compute(0, (4, 8)), Compute(0, (0, 5))]))
    verify_program(program([f], [X], [Y], [Compute(0)]))
    with pytest.raises(Problem, match=message):
        verify_program(program([f], [X], [Y], [Compute(0, r) for r in rows]))
