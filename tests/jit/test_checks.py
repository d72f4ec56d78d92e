"""`tosaic.check`: at the user's line, in branches and loops, with variables as they were."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic import ops

X = np.array([1, 2, 3], np.float32)


def problem(call: Any, *arguments: Any) -> tosaic.Problem:
    with pytest.raises(tosaic.Problem) as caught:
        call(*arguments)
    return caught.value


def test_a_call_that_does_not_meet_the_condition_fails_at_the_users_line() -> None:
    @tosaic.jit
    def root(x: Any) -> Any:
        tosaic.check((x >= 0).all(), "x has a number below 0")
        return ops.sqrt(x)

    np.testing.assert_allclose(root(X), np.sqrt(X), rtol=1e-6)
    found = problem(root, -X)
    assert (found.message, found.kind) == ("x has a number below 0", "check")
    assert 'tosaic.check((x >= 0).all(), "x has a number below 0")' in str(found)
    np.testing.assert_allclose(root(X), np.sqrt(X), rtol=1e-6)


def test_no_variable_changes_in_a_call_that_fails() -> None:
    total = tosaic.Variable("checks.total", np.zeros(3, np.float32))

    @tosaic.jit
    def accumulate(x: Any) -> Any:
        total.write(total.read() + x)
        tosaic.check(total.read().max() < 5)
        return total.read()

    accumulate(X)
    assert problem(accumulate, X).message == "a check fails"
    assert total.read().tolist() == [1, 2, 3]
    assert accumulate(X / 3).tolist() == pytest.approx([4 / 3, 8 / 3, 4])


def test_a_branch_checks_only_where_it_runs_and_a_loop_in_each_iteration() -> None:
    @tosaic.jit
    def guarded(x: Any, go: Any) -> Any:
        def never() -> Any:
            tosaic.check(False, "never come here")
            return x

        return tosaic.cond(go, never, lambda: x + 1)

    assert guarded(X, np.array(False)).tolist() == [2, 3, 4]
    assert problem(guarded, X, np.array(True)).message == "never come here"

    @tosaic.jit
    def doubled(x: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            tosaic.check(s < 100, "s is too large")
            return i + 1, s * 2

        return tosaic.while_loop(lambda i, s: i < 5, body, 0, x)[1]

    assert doubled(np.float32(6)).item() == 192
    assert problem(doubled, np.float32(7)).message == "s is too large"


def test_what_is_known_when_tracing_needs_no_call() -> None:
    @tosaic.jit
    def known(x: Any) -> Any:
        tosaic.check(x.shape[0] == 3, "three numbers are needed")
        return x * 2

    assert known(X).tolist() == [2, 4, 6] and "check" not in known.compile(X).show("kernels")
    found = problem(known, X[:2])
    assert found.message == "three numbers are needed" and "in every call" in str(found.help)


def test_outside_of_traced_functions_it_is_made_at_once() -> None:
    tosaic.check(np.array(True))
    tosaic.check(np.ones((1, 1), bool), "no")
    assert problem(tosaic.check, False, "no").message == "no"


@pytest.mark.parametrize(("condition", "message"), [
    (lambda x: x > 0, "the condition of check is tensor<3xi1>, it must be one bool"),
    (lambda x: x[0], "the condition of check is tensor<f32>, it must be one bool")])
def test_a_condition_that_is_not_one_bool_is_refused(condition: Any, message: str) -> None:
    @tosaic.jit
    def wrong(x: Any) -> Any:
        tosaic.check(condition(x))
        return x

    assert problem(wrong, X).message == message
    assert "it must be one bool" in problem(tosaic.check, X).message
    assert "is an int, not a string" in problem(tosaic.check, True, 3).message
