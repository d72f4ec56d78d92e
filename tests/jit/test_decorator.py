"""`tosaic.jit`: compiled once for every signature, called with arrays and nests of them, stages as objects."""
from __future__ import annotations

import threading
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
import tosaic

X = np.arange(6, dtype=np.float32).reshape(2, 3)
Pair = namedtuple("Pair", "first second")


@tosaic.jit
def scaled(x: Any, y: Any) -> Any:
    """Twice x and y."""
    return x * 2 + y


def test_a_call_computes_what_the_function_says() -> None:
    np.testing.assert_array_equal(scaled(X, X), X * 3)


def test_one_compile_serves_a_signature() -> None:
    function = tosaic.jit(lambda x: x + 1)
    for _ in range(3):
        function(X)
        function(X * 2)
    function(X[0])
    function(X.astype(np.float16))
    assert function.cache_info().compiles == 3
    assert function.cache_info().signatures == ("tensor<2x3xf32>", "tensor<3xf32>", "tensor<2x3xf16>")
    function.cache_clear()
    np.testing.assert_array_equal(function(X), X + 1)
    assert function.cache_info().compiles == 1


def test_24_threads_compile_a_signature_once() -> None:
    traces = []

    @tosaic.jit
    def function(x: Any) -> Any:
        traces.append(x.shape)
        return (x @ x.T).sum() + 1

    start = threading.Barrier(24)
    results: list[Any] = []

    def work(number: int) -> None:
        start.wait()
        x = np.full((2 + number % 2, 3), number, np.float32)
        results.append(function(x) == (x @ x.T).sum() + 1)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 24 and all(results)
    assert sorted(traces) == [(2, 3), (3, 3)] and function.cache_info().compiles == 2


def test_a_failed_compile_is_not_kept_and_wakes_those_who_wait() -> None:
    attempts, ready = [], threading.Event()

    @tosaic.jit
    def function(x: Any) -> Any:
        attempts.append(1)
        if not ready.is_set():
            raise RuntimeError("not yet")
        return x

    errors: list[str] = []

    def work() -> None:
        try:
            function(X)
        except RuntimeError as error:
            errors.append(str(error))
            if len(errors) == 3:
                ready.set()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert set(errors) == {"not yet"} and len(attempts) == len(errors) + 1


def test_static_arguments_are_python_values_and_part_of_the_signature() -> None:
    @tosaic.jit(static=("n", "how"))
    def function(x: Any, n: Any, how: str = "add") -> Any:
        for _ in range(int(n)):
            x = x + n if how == "add" else x * n
        return x

    np.testing.assert_array_equal(function(X, 2), X + 4)
    np.testing.assert_array_equal(function(X, 3), X + 9)
    np.testing.assert_array_equal(function(X, n=2, how="multiply"), X * 4)
    assert function.cache_info().compiles == 3


def test_static_values_that_are_equal_but_of_other_types_differ() -> None:
    function = tosaic.jit(static_argnums=1)(lambda x, n: x if isinstance(n, float) else x + 1)
    np.testing.assert_array_equal(function(X, 1), X + 1)
    np.testing.assert_array_equal(function(X, 1.0), X)
    np.testing.assert_array_equal(function(X, True), X + 1)
    assert function.cache_info().compiles == 3


def test_parameters_that_a_call_leaves_out_stay_python_values() -> None:
    function = tosaic.jit(lambda x, axis=1: x.sum(axis=axis))
    np.testing.assert_array_equal(function(X), X.sum(1))


def test_python_numbers_are_tensors_of_rank_0() -> None:
    function = tosaic.jit(lambda x, a, b: (x * a, b + 1, a))
    product, count, a = function(X, 0.5, 41)
    np.testing.assert_array_equal(product, X * 0.5)
    assert (count, count.dtype, count.shape) == (42, np.int32, ())
    assert function(X, 2.5, 1)[2] == 2.5 == a + 2
    assert function.cache_info().compiles == 1


def test_arguments_and_results_nest() -> None:
    @tosaic.jit
    def function(state: Any, *more: Any, **options: Any) -> Any:
        return {"sum": state["a"] + state["b"][0], "pair": Pair(more[0], [options["scale"] * more[1], None])}

    result = function({"a": X, "b": (X, 1.0)}, X, X + 1, scale=2.0)
    np.testing.assert_array_equal(result["sum"], X * 2)
    assert isinstance(result["pair"], Pair) and result["pair"].second[1] is None
    np.testing.assert_array_equal(result["pair"].second[0], X * 2 + 2)


def test_a_compiled_function_inside_another_becomes_part_of_it() -> None:
    outer = tosaic.jit(lambda x: scaled(x, x) + scaled(x, 1.0))
    np.testing.assert_array_equal(outer(X), X * 5 + 1)
    assert len(outer.trace(X).module.functions) == 1


def test_a_method_compiles_for_its_instance() -> None:
    class Scale:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @tosaic.jit
        def __call__(self, x: Any) -> Any:
            return x * self.factor

        @tosaic.jit
        def twice(self, x: Any) -> Any:
            return x * self.factor * 2

    np.testing.assert_array_equal(Scale(3.0)(X), X * 3)
    np.testing.assert_array_equal(Scale(5.0).twice(X), X * 10)


def test_arrays_of_any_layout_are_taken() -> None:
    function = tosaic.jit(lambda x: x - 1)
    for array in (X.T, X[:, ::2], X[::-1], np.asfortranarray(X), X.astype(">f4")):
        np.testing.assert_array_equal(function(array), array - 1)


def test_results_may_be_arguments_or_constants_or_the_same_twice() -> None:
    function = tosaic.jit(lambda x: (x, x + 1, x + 1, np.float32(3), 2))
    results = function(X)
    np.testing.assert_array_equal(results[0], X)
    assert not np.shares_memory(results[0], X)
    np.testing.assert_array_equal(results[1], results[2])
    assert (results[3], results[4]) == (3, 2)


def test_a_function_without_arguments_compiles() -> None:
    count = tosaic.Variable("decorator.count", initial=0)

    @tosaic.jit
    def step() -> Any:
        count.value += 1
        return count.value

    assert [int(step()) for _ in range(3)] == [1, 2, 3]
    assert tosaic.default_context.read("decorator.count") == 3
    count.reset()
    assert int(step()) == 1


def test_a_context_keeps_variables_separate() -> None:
    total = tosaic.Variable("decorator.total", initial=0.0)

    def add(x: Any) -> Any:
        total.value += x
        return total.value

    here, there = tosaic.jit(add), tosaic.jit(context=tosaic.Context("there"))(add)
    assert (here(1.0), here(1.0), there(1.0)) == (1, 2, 1)
    compiled, third = here.compile(1.0), tosaic.Context("third")
    one = np.float32(1)
    assert compiled(one, context=third) == 1
    assert compiled(one, context=third) == 2
    assert compiled(one) == 3


def test_stages_print_and_lead_to_each_other() -> None:
    traced = scaled.trace(tosaic.TensorSpec((2, 3), np.float32), tosaic.TensorSpec((3,)))
    assert traced.inputs == ("x: tensor<2x3xf32>", "y: tensor<3xf32>") and traced.outputs == ("tensor<2x3xf32>",)
    assert "func.func @scaled(%x: tensor<2x3xf32>, %y: tensor<3xf32>)" in str(traced)
    lowered = traced.lower()
    compiled = lowered.compile()
    assert compiled.lowered.traced is traced and compiled.name == "scaled" and compiled.inputs == ("x", "y")
    np.testing.assert_array_equal(compiled(X, X[0]), X * 2 + X[0])
    np.testing.assert_array_equal(compiled({"y": X[0], "x": X}), X * 2 + X[0])
    for stage, word in {"graph": "tosa.add", "kernels": "kernel 0", "schedule": "kernel 0", "loops": "result0",
                        "plan": "plan ", "llvm": "define", "asm": "ret"}.items():
        assert word in compiled.show(stage)
    assert "compiled" not in str(compiled) and "arena" in str(compiled)
    with pytest.raises(tosaic.Problem, match="there is no stage wrong"):
        compiled.show("wrong")


def test_what_compile_gives_is_what_calls_use() -> None:
    function = tosaic.jit(lambda x: x * 3)
    compiled = function.compile(X)
    function(X)
    assert function.cache_info().compiles == 1 and function.compile(X) is compiled


def test_out_takes_the_results() -> None:
    out = np.empty((2, 3), np.float32)
    compiled = scaled.compile(X, X)
    assert compiled(X, X, out=out) is out
    np.testing.assert_array_equal(out, X * 3)


def test_the_report_counts_bytes() -> None:
    report = tosaic.jit(lambda x: (x @ x.T) @ np.ones((2, 5), np.float32)).lower(X).report()
    facts = report.as_dict()
    assert facts["arena"] == report.arena >= report.live_bytes > 0
    assert facts["constants"] >= 40
    assert facts["inputs"][0]["shape"] == (2, 3) and set(facts["seconds"]) >= {"graph", "kernels", "loops", "plan"}
    assert f"{report.arena:,} bytes" in str(report)


def test_check_compares_with_the_reference() -> None:
    found = tosaic.jit(lambda x: tosaic.ops.softmax(x @ x.T)).trace(X).check([[X], [X + 1]])
    assert found.agrees and found.calls == 2


def test_compile_takes_a_function_too() -> None:
    compiled = tosaic.compile(lambda x: x + 1, X)
    np.testing.assert_array_equal(compiled(X), X + 1)
