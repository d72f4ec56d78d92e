"""Variables belong to the process: first declaration, sharing, types, reading and setting, snapshots, contexts."""
from __future__ import annotations

import gc
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tosaic.runtime import variables
from tosaic.runtime.errors import Position, Problem, Source
from tosaic.runtime.variables import Context

from ..executable.programs import Programs, copy, counter, plus

X = np.arange(8, dtype=np.float32)


@pytest.fixture
def context() -> Context:
    return Context("test")


def text(call: Any, *arguments: Any) -> str:
    with pytest.raises(Problem) as caught:
        call(*arguments)
    return str(caught.value)


def test_a_value_is_kept_from_call_to_call(context: Context) -> None:
    count = counter(context)
    assert [count()[0].item() for _ in range(5)] == [1, 2, 3, 4, 5]
    assert context.read("counter").item() == 5


def test_two_programs_that_name_the_same_variable_share_it(context: Context) -> None:
    first, second = counter(context), counter(context)
    assert [first()[0].item(), second()[0].item(), first()[0].item()] == [1, 2, 3]


def test_the_initial_value_is_copied_once(context: Context) -> None:
    assert counter(context, initial=10)()[0].item() == 11
    assert counter(context, initial=500)()[0].item() == 12


def test_a_later_initial_value_does_not_write_an_unwritten_variable(context: Context) -> None:
    p = Programs()
    v, r = p.variable("state"), p.output("r")
    reading = p.load(p.check(v), p.compute(r, copy, v), context=context)
    q = Programs("other")
    w, s = q.variable("state", initial=X), q.output("s")
    q.load(q.check(w), q.compute(s, copy, w), context=context)
    with pytest.raises(Problem, match="@state is read before"):
        reading()


def test_the_initial_value_is_the_variables_own_copy(context: Context) -> None:
    initial = X.copy()
    p = Programs()
    v, r = p.variable("state", initial=initial), p.output("r")
    executable = p.load(p.compute(r, copy, v), context=context)
    p.variables[0].initial.data[...] = -1  # type: ignore[union-attr,index]
    context.reset()
    assert np.array_equal(executable()[0], X)


def test_another_type_is_refused_at_the_second_declaration(context: Context) -> None:
    source = Source("a.mlir", "tosa.variable @state : tensor<8xf32>\n")
    other = Source("b.mlir", "\ntosa.variable @state : tensor<4x2xf32>\n")
    p, q = Programs(), Programs("q")
    v, r = p.variable("state", initial=X, position=Position(source, 1, 15, 6)), p.output("r")
    w, s = q.variable("state", (4, 2), position=Position(other, 2, 15, 6)), q.output("s", (4, 2))
    q.variable("fresh")
    p.load(p.compute(r, copy, v), context=context)
    assert text(lambda: q.load(q.compute(s, copy, w), context=context)) == (
        "b.mlir:2:15: error[variable]: variable state is declared as tensor<4x2xf32>, but it is tensor<8xf32> in this "
        "process\n"
        "    2 | tosa.variable @state : tensor<4x2xf32>\n"
        "      |               ^^^^^^\n"
        "  a.mlir:1:15: state was declared first as tensor<8xf32>\n"
        "    1 | tosa.variable @state : tensor<8xf32>\n"
        "      |               ~~~~~~\n"
        "  help: give one of them another name, load them in different contexts, or delete the variable first")
    assert list(context) == ["state"]


def test_types_of_one_storage_are_different_types(context: Context) -> None:
    p, q = Programs(), Programs("q")
    v, r = p.variable("state", dtype="int8", element="i4"), p.output("r", dtype="int8")
    w, s = q.variable("state", dtype="int8", element="i8"), q.output("s", dtype="int8")
    p.load(p.compute(r, copy, v), context=context)
    assert "is declared as tensor<8xi8>, but it is tensor<8xi4>" in text(
        lambda: q.load(q.compute(s, copy, w), context=context))


# ---- from Python -----------------------------------------------------------------------------------------------------
@pytest.fixture
def two(context: Context) -> Context:
    """x is written, y is not."""
    p = Programs()
    x, r = p.variable("x", initial=X), p.output("r")
    p.variable("y", (2, 2), "int64")
    p.load(p.compute(r, copy, x), context=context)
    return context


def test_variables_are_listed_by_name(two: Context) -> None:
    assert [str(s) for s in two.list()] == ["x: tensor<8xf32>, 32 bytes, written",
                                            "y: tensor<2x2xi64>, 32 bytes, not written"]
    assert list(two) == ["x", "y"] and len(two) == 2 and "x" in two and "z" not in two


def test_reading_gives_a_copy(two: Context) -> None:
    two.read("x")[:] = -1
    assert np.array_equal(two.read("x"), X)


def test_reading_what_was_not_written_is_an_error(two: Context) -> None:
    assert text(two.read, "y") == ("error[variable]: variable y has not been written\n"
                                   "  help: run a program that writes it, or set it")


def test_an_unknown_name_is_an_error(two: Context) -> None:
    for call in (two.read, two.reset, two.delete, lambda n: two.set(n, X), lambda n: two.restore({n: X})):
        assert text(call, "z") == (
            "error[variable]: there is no variable z in context test\n"
            "  help: a variable exists from when a program that declares it is loaded; known: x, y")


def test_setting_writes_a_copy(two: Context) -> None:
    value = np.array([[1, 2], [3, 4]])
    two.set("y", value)
    value[:] = 0
    assert two.read("y").tolist() == [[1, 2], [3, 4]]
    two.set("y", np.arange(16).reshape(4, 4)[::2, ::2])
    assert two.read("y").tolist() == [[0, 2], [8, 10]]


@pytest.mark.parametrize(("value", "got"), [(X, "tensor<8xf32>"), (np.zeros((2, 3), np.int64), "tensor<2x3xi64>")])
def test_setting_checks_the_type(two: Context, value: Any, got: str) -> None:
    assert f"error[argument]: the value of variable y must be tensor<2x2xi64>, got {got}" in text(two.set, "y", value)
    assert not two.list()[1].is_written


def test_setting_takes_no_number(two: Context) -> None:
    assert "the value of variable y must be an array of tensor<2x2xi64>, got int 5" in text(two.set, "y", 5)


def test_reset_gives_the_initial_value_back_or_none(two: Context) -> None:
    two.set("x", X * 2)
    two.set("y", np.ones((2, 2), np.int64))
    two.reset("x")
    assert np.array_equal(two.read("x"), X) and two.read("y").all()
    two.reset()
    assert [s.is_written for s in two.list()] == [True, False]


def test_a_snapshot_can_be_restored(two: Context) -> None:
    snapshot = two.snapshot()
    assert snapshot["y"] is None and np.array_equal(snapshot["x"], X)
    two.set("x", X * 2)
    two.set("y", np.ones((2, 2), np.int64))
    assert np.array_equal(snapshot["x"], X)
    later = two.snapshot()
    two.restore(snapshot)
    assert np.array_equal(two.read("x"), X) and not two.list()[1].is_written
    two.restore({"y": later["y"]})
    assert np.array_equal(two.read("x"), X) and two.read("y").all()


def test_a_wrong_snapshot_changes_nothing(two: Context) -> None:
    assert "the value of variable y must be tensor<2x2xi64>" in text(two.restore, {"x": X * 9, "y": X})
    assert np.array_equal(two.read("x"), X)


def test_a_deleted_variable_begins_anew(context: Context) -> None:
    count, other = counter(context), counter(context)
    count()
    context.delete("counter")
    assert "counter" not in context
    assert [count()[0].item(), other()[0].item()] == [1, 2]
    context.clear()
    assert len(context) == 0
    assert [other()[0].item(), count()[0].item()] == [1, 2]


def test_a_deleted_variable_may_come_back_with_another_type(context: Context) -> None:
    count = counter(context)
    count()
    context.delete("counter")
    p = Programs()
    v, r = p.variable("counter", initial=X), p.output("r")
    p.load(p.compute(r, copy, v), context=context)
    assert "variable counter is declared as tensor<1xi64>, but it is tensor<8xf32>" in text(count)


def test_a_failed_call_changes_no_variable(context: Context) -> None:
    p = Programs()
    x, v, r = p.input("x"), p.variable("v", initial=X), p.output("r")
    executable = p.load(*p.write(v, copy, x), p.compute(r, copy, v), context=context)
    for wrong in (X[:4], X.astype(np.float64), 3):
        with pytest.raises(Problem):
            executable(wrong)
    with pytest.raises(Problem):
        executable(X * 2, out=np.zeros(3))
    assert np.array_equal(context.read("v"), X)


@pytest.mark.parametrize("shape", [(), (1,), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "float32", "bfloat16"])
def test_variables_of_every_kind_are_set_read_and_reset(context: Context, shape: tuple[int, ...], dtype: str) -> None:
    import ml_dtypes  # noqa: F401  registers bfloat16
    p = Programs()
    v, r = p.variable("v", shape, dtype, element=dtype), p.output("r", shape, dtype)
    executable = p.load(p.check(v), p.compute(r, copy, v), context=context)
    value = np.ones(shape, dtype)
    context.set("v", value)
    assert np.array_equal(executable()[0], value) and executable()[0].dtype == dtype
    context.reset("v")
    with pytest.raises(Problem):
        executable()


# ---- contexts --------------------------------------------------------------------------------------------------------
def test_contexts_never_meet() -> None:
    a, b = Context("user-a"), Context("user-b")
    for_a = counter(a)
    for_b = for_a.bind(b)
    assert [for_a()[0].item() for _ in range(3)] == [1, 2, 3]
    assert for_b()[0].item() == 1
    a.set("counter", np.array([100], np.int64))
    assert [for_a()[0].item(), for_b()[0].item()] == [101, 2]
    a.clear()
    assert [for_a()[0].item(), for_b()[0].item()] == [1, 3]


def test_the_default_context_is_the_process() -> None:
    name = "test_the_default_context_is_the_process"
    try:
        assert counter(name=name)()[0].item() == 1
        assert variables.process.read(name).item() == 1
        assert counter(name=name)()[0].item() == 2
    finally:
        variables.process.delete(name)


def test_a_context_that_nobody_uses_is_forgotten() -> None:
    before = len(variables.contexts)
    count = counter(Context("short"))
    count()
    del count
    gc.collect()
    assert len(variables.contexts) <= before


def test_a_variable_lives_as_long_as_a_program_that_uses_it() -> None:
    count = counter(Context("kept by its program only"))
    gc.collect()
    assert [count()[0].item() for _ in range(3)] == [1, 2, 3]
    assert count.context.read("counter").item() == 3


def test_variables_start_at_a_cache_line(context: Context) -> None:
    p = Programs()
    r = p.output("r")
    names = [p.variable(f"v{i}", (i + 1,), initial=np.zeros(i + 1)) for i in range(7)]
    first = p.variable("w", initial=X)
    p.load(p.compute(r, plus(1), first), context=context)
    found = [context._get(b.name) for b in [*names, first]]
    assert all(v.addresses[0] % 64 == 0 for v in found)
    spans = sorted((v.addresses[0], v.addresses[0] + v.tensor.nbytes) for v in found)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
