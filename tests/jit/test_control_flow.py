"""cond, while_loop and variables in traced functions, run by the reference interpreter."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.runtime.interpreter import InterpreterVariables, interpret

X = np.array([1.0, -2.0, 3.0], np.float32)


def run(function: Any, *arrays: Any, variables: InterpreterVariables | None = None) -> Any:
    traced = function.trace(*arrays) if hasattr(function, "trace") else tosaic.jit(function).trace(*arrays)
    results = interpret(traced.module, traced.function, [np.asarray(a) for a in arrays], variables)
    return results[0] if len(results) == 1 else results


def test_cond_runs_the_function_that_the_condition_chooses() -> None:
    def f(x: Any) -> Any:
        return tosaic.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x)

    np.testing.assert_array_equal(run(f, X), X * 2)
    np.testing.assert_array_equal(run(f, -X), -X - 1)


def test_cond_functions_use_tensors_around_them_and_return_nests() -> None:
    def f(x: Any) -> Any:
        y = x * 3
        found = tosaic.cond(x[0] > 0, lambda: {"a": y, "b": 1.0}, lambda: {"a": x, "b": x[1]})
        return found["a"] + found["b"]

    np.testing.assert_array_equal(run(f, X), X * 3 + 1)
    np.testing.assert_array_equal(run(f, -X), -X + 2)


def test_a_python_bool_chooses_when_tracing() -> None:
    traced = tosaic.jit(lambda x: tosaic.cond(True, lambda: x + 1, lambda: x - 1)).trace(X)
    assert [o.op.name for o in traced.function.body.operations] == ["tosa.const", "tosa.add"]


def test_while_loop_repeats_its_body_while_the_test_holds() -> None:
    def f(n: Any) -> Any:
        return tosaic.while_loop(lambda i, total: i < n, lambda i, total: (i + 1, total + i), 0, 0)

    count, total = run(f, np.array(10, np.int32))
    assert (count, total) == (10, 45)
    assert run(f, np.array(0, np.int32))[1] == 0


def test_while_loop_of_one_value_returns_it() -> None:
    assert run(lambda x: tosaic.while_loop(lambda v: v < 100, lambda v: v * 2, x), np.array(3, np.int32)) == 192
    nested = run(lambda x: tosaic.while_loop(lambda s: s["n"] < 3, lambda s: {"n": s["n"] + 1, "x": s["x"] * 2},
                                             {"n": 0, "x": x})["x"], X)
    np.testing.assert_array_equal(nested, X * 8)


def test_control_flow_nests() -> None:
    def collatz(n: Any) -> Any:
        def step(n: Any, count: Any) -> Any:
            return tosaic.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1), count + 1

        return tosaic.while_loop(lambda n, count: n > 1, step, n, 0)[1]

    assert run(collatz, np.array(27, np.int32)) == 111


def test_branches_of_different_types_are_a_problem_at_the_cond() -> None:
    def f(x: Any) -> Any:
        return tosaic.cond(x[0] > 0, lambda: x, lambda: x[:2])

    with pytest.raises(tosaic.Problem, match=r"tensor<3xf32> where the condition is true, else tensor<2xf32>") as found:
        run(f, X)
    assert found.value.position is not None
    assert found.value.position.excerpt()[0].endswith("return tosaic.cond(x[0] > 0, lambda: x, lambda: x[:2])")


def test_branches_of_different_nests_are_a_problem() -> None:
    with pytest.raises(tosaic.Problem, match=r"return \(\*, \*\) and \*"):
        run(lambda x: tosaic.cond(x[0] > 0, lambda: (x, x), lambda: x), X)


def test_a_body_that_changes_the_type_of_the_state_is_a_problem() -> None:
    with pytest.raises(tosaic.Problem, match=r"state 0 of while_loop is tensor<i32>, its body returns tensor<3xf32>"):
        run(lambda x: tosaic.while_loop(lambda s: True, lambda s: x, 0), X)


def test_a_test_that_is_no_bool_is_a_problem() -> None:
    with pytest.raises(tosaic.Problem, match=r"the test of while_loop returns tensor<3xi1>, it must be one bool"):
        run(lambda x: tosaic.while_loop(lambda s: s > 0, lambda s: s - 1, x), X)
    with pytest.raises(tosaic.Problem, match=r"the condition of cond is tensor<3xi1>"):
        run(lambda x: tosaic.cond(x > 0, lambda: x, lambda: x), X)


def test_a_tensor_that_leaves_its_branch_is_a_problem() -> None:
    def f(x: Any) -> Any:
        kept: list[Any] = []

        def then() -> Any:
            kept.append(x * 2)
            return x

        tosaic.cond(x[0] > 0, then, lambda: x)
        return kept[0] + 1

    with pytest.raises(tosaic.Problem, match="belongs to the function for true, which has ended"):
        run(f, X)


def test_a_tensor_that_leaves_its_trace_is_a_problem() -> None:
    kept: list[Any] = []

    def keep(x: Any) -> Any:
        kept.append(x)
        return x

    run(keep, X)
    with pytest.raises(tosaic.Problem, match="belongs to another call"):
        run(lambda x: x + kept[0], X)
    with pytest.raises(tosaic.Problem, match=r"inside a function that tosaic\.jit compiles"):
        kept[0] + 1


def test_a_variable_keeps_its_value_between_calls() -> None:
    count = tosaic.Variable("control_flow.count", initial=np.float32(10))

    @tosaic.jit
    def f(x: Any) -> Any:
        count.write(count.read() + x.sum())
        count.value = count.value * 2
        return count.value

    variables = InterpreterVariables()
    assert run(f, X, variables=variables) == 24
    assert run(f, X, variables=variables) == 52


def test_a_variable_is_written_only_in_the_branch_that_runs() -> None:
    best = tosaic.Variable("control_flow.best", initial=0.0)

    def f(x: Any) -> Any:
        def keep() -> Any:
            best.write(x.max())
            return True
        return tosaic.cond(x.max() > best.read(), keep, lambda: False)

    variables = InterpreterVariables()
    assert [run(f, X * s, variables=variables) for s in (1, 0, 2)] == [True, False, True]
    assert variables.snapshot()["control_flow.best"] == 6


def test_what_is_written_has_the_type_of_the_variable() -> None:
    state = tosaic.Variable("control_flow.state", shape=(3,), dtype="f32")
    with pytest.raises(tosaic.Problem, match=r"is tensor<3xf32>, what is written is tensor<2xf32>"):
        run(lambda x: state.write(x[:2]), X)


def test_two_variables_of_one_name_agree() -> None:
    first = tosaic.Variable("control_flow.two", initial=[1.0, 2.0])
    second = tosaic.Variable("control_flow.two", shape=(3,))
    assert str(first.type) == "tensor<2xf32>"
    with pytest.raises(tosaic.Problem, match=r"is tensor<3xf32> here and tensor<2xf32> before"):
        run(lambda x: (first.read(), second.read()), X)


def test_a_variable_lives_in_the_process_outside_of_functions() -> None:
    state = tosaic.Variable("control_flow.outside", initial=[1, 2, 3])
    np.testing.assert_array_equal(state.read(), np.array([1, 2, 3], np.int32))
    state.set(7)
    np.testing.assert_array_equal(tosaic.default_context.read("control_flow.outside"), np.full(3, 7, np.int32))
    state.reset()
    np.testing.assert_array_equal(state.value, [1, 2, 3])
