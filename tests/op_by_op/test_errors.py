"""Metadata and errors: what is known at once, where an error goes, and who learns of it."""
from __future__ import annotations

import threading

import numpy as np
import pytest
import tosaic
from tosaic import OpAttrs, Problem, TensorHandle
from tosaic.runtime.errors import Position, Source
from tosaic.runtime.op_by_op.chain import Chain
from tosaic.runtime.op_by_op.metadata import TensorMetadata

X = np.arange(6, dtype=np.float32).reshape(2, 3)
WRONG = np.zeros((4, 5), np.float32)


def call(rt, op, *arguments, results=1, attributes=None, location=None, chain=None, handler="cpu"):
    found = [None] * results
    out = rt.execute(op, handler, location, list(arguments), attributes, found, chain)
    return (*found, out) if chain is not None else found[0] if results == 1 else found


def test_metadata_is_known_before_the_contents(rt):
    pending, resolve = TensorHandle.pending(TensorMetadata("float32", (2, 3)))
    result = call(rt, "matmul", pending, rt.tensor(X.T))
    assert result.metadata is TensorMetadata("float32", (2, 2)) and not result.is_ready
    resolve.set(X)
    assert np.array_equal(result.get(), X @ X.T)


def test_a_shape_error_is_known_at_once_even_of_pending_arguments(rt, diagnostics):
    pending, resolve = TensorHandle.pending(TensorMetadata("float32", (2, 3)))
    result = call(rt, "tosa.add", pending, rt.tensor(WRONG))
    assert result.is_error and "shapes 2x3 and 4x5 do not broadcast" in result.error.message
    assert len(diagnostics) == 1
    resolve.set(X)


def test_python_code_gets_a_shape_error_raised_with_its_line(rt, diagnostics):
    x, wrong = rt.tensor(X), rt.tensor(WRONG)
    with pytest.raises(Problem) as caught:
        x + wrong
    position = caught.value.position
    assert position.source.name == __file__ and "x + wrong" in position.source.line(position.line)
    assert len(diagnostics) == 1 and diagnostics[0].decoded == position and diagnostics[0].location is None


def test_a_late_error_has_the_line_of_the_call(rt):
    pending, resolve = TensorHandle.pending()
    result = rt.run("add", pending, rt.tensor(WRONG))
    resolve.set(X)
    result.wait()
    position = result.error.position
    assert position.source.name == __file__ and "rt.run" in position.source.line(position.line)


def test_without_a_metadata_function_metadata_is_lost_downstream_until_awaited(rt):
    x = rt.tensor(X)
    gate = threading.Event()
    rt.register("test.wait", lambda call: (gate.wait(10), call.arrays[0])[1], is_long=True)
    y = rt.run("test.wait", x)
    z = y + x
    assert y.metadata is None and z.metadata is None
    with pytest.raises(Problem, match=r"after 0\.01 seconds"):
        z.await_metadata(0.01)
    wrong = z + rt.tensor(WRONG)
    assert not wrong.is_error
    gate.set()
    assert z.await_metadata() is TensorMetadata("float32", (2, 3))
    wrong.wait()
    assert wrong.is_error
    with pytest.raises(Problem):
        z + rt.tensor(WRONG)


def test_metadata_is_awaited_before_a_long_operation_is_done(rt):
    gate = threading.Event()
    rt.register("test.wait", lambda call: (gate.wait(10), call.arrays[0])[1], lambda inputs, _: inputs, is_long=True)
    first = rt.run("async.noop_no_md", rt.tensor(X))
    slow = rt.run("test.wait", first)
    assert slow.await_metadata().shape == (2, 3) and not slow.is_ready
    gate.set()
    assert np.array_equal(slow.get(), X)


@pytest.mark.parametrize("op", ["reshape", "unique", "nonzero", "argwhere"])
def test_results_that_depend_on_data_have_no_metadata_before(rt, op):
    pending, resolve = TensorHandle.pending(TensorMetadata("float32", (2, 3)))
    more = [rt.tensor(np.array([3, -1]))] if op == "reshape" else []
    results = call(rt, op, pending, *more, results=2 if op == "nonzero" else 1)
    first = results[0] if op == "nonzero" else results
    assert first.metadata is None
    resolve.set(X)
    wanted = {"reshape": X.reshape(3, 2), "unique": np.unique(X), "nonzero": np.nonzero(X)[0], "argwhere": np.argwhere(X)}[op]
    assert np.array_equal(first.get(), wanted) and first.metadata.shape == wanted.shape


def test_an_error_reaches_what_is_downstream_and_nothing_else(rt, diagnostics):
    problem = Problem("from outside")
    x, bad = rt.tensor(X), TensorHandle.of_error(problem)
    good = call(rt, "add", x, x.copy())
    first = call(rt, "add", x, bad.copy())
    second = call(rt, "multiply", first, good.copy())
    assert first.error is problem and second.error is problem
    assert good.is_ready and call(rt, "add", good, x.copy()).is_ready
    assert diagnostics == []


def test_an_error_begins_once_and_is_told_once(rt, diagnostics):
    def broken(call):
        raise ValueError("it broke")

    rt.register("test.broken", broken)
    first = call(rt, "test.broken", rt.tensor(X), location="row 7")
    second = call(rt, "add", first.copy(), rt.tensor(X))
    third = call(rt, "add", second.copy(), first.copy())
    assert third.error is first.error and isinstance(first.error.__cause__, ValueError)
    told, = diagnostics
    assert (told.message, told.location, told.decoded, told.op_name) == (
        "test.broken failed: ValueError: it broke", "row 7", None, "test.broken")


def test_a_location_is_the_clients_and_may_be_decoded_by_it():
    told = []
    position = Position(Source("program.txt", "one\ntwo"), 2, 1)
    rt = tosaic.CoreRuntime(told.append, decode=lambda location: position if location == 42 else None)
    for location in (42, position, "opaque"):
        call(rt, "no.such", location=location)
    assert [d.location for d in told] == [42, position, "opaque"]
    assert [d.decoded for d in told] == [position, position, None]


def test_a_diagnostic_handler_that_raises_does_not_stop_the_program(monkeypatch):
    ignored = []
    monkeypatch.setattr("sys.unraisablehook", ignored.append)
    rt = tosaic.CoreRuntime(lambda diagnostic: 1 / 0)
    assert call(rt, "no.such").is_error
    assert [i.exc_type for i in ignored] == [ZeroDivisionError]


def test_an_operation_that_fails_after_some_results_turns_only_the_others_into_the_error(rt):
    def half(call):
        call.set(0, call.results[0], X)
        raise Problem("the second half is missing")

    rt.register("test.half", half)
    first, second = call(rt, "test.half", results=2)
    assert np.array_equal(first.get(), X) and second.error.message == "test.half: the second half is missing"


def test_an_error_in_metadata_or_chain_skips_the_operation(rt):
    ran = []
    rt.register("test.effect", lambda call: (ran.append(1), ())[1], side_effect=True)
    problem = Problem("earlier")
    *_, out = call(rt, "test.effect", results=0, chain=Chain.of_error(problem))
    assert out.error is problem and not ran


def test_the_first_error_in_order_is_the_one_that_is_copied(rt):
    one, two = Problem("one"), Problem("two")
    (a, fail_a), (b, fail_b) = TensorHandle.pending(), TensorHandle.pending()
    result = call(rt, "add", a, b)
    fail_b.fail(two)
    fail_a.fail(one)
    result.wait()
    assert result.error is one


def test_a_wrong_number_of_results_is_an_error(rt):
    assert "has 1 results, 2 were asked for" in call(rt, "add", rt.tensor(X), rt.tensor(X), results=2)[0].error.message


def test_metadata_that_does_not_hold_is_an_error(rt):
    rt.register("test.liar", lambda call: X, lambda inputs, _: TensorMetadata("float32", (1,)))
    assert "gave tensor<2x3xf32>, its metadata function tensor<1xf32>" in call(rt, "test.liar").error.message


def test_memory_that_cannot_be_had_is_an_error_value(rt):
    def huge(call):
        raise MemoryError("too much")

    rt.register("test.huge", huge)
    assert call(rt, "test.huge").error.kind == "memory"


def test_arguments_are_taken_over(rt):
    arguments, results = [rt.tensor(X), rt.tensor(X)], [None]
    assert rt.execute("add", "cpu", None, arguments, OpAttrs(), results) is None
    assert arguments == [None, None] and np.array_equal(results[0].get(), 2 * X)
    arguments, results = [None], [None]
    rt.execute("tosa.abs", "cpu", None, arguments, None, results)
    assert "has been given away" in results[0].error.message


def test_an_asynchronous_operation_may_give_handles_that_come_later(rt):
    handle, resolve = TensorHandle.pending()
    chain, effect = Chain.pending()
    rt.register("test.later", lambda call: (handle, chain), side_effect=True)
    result, out = call(rt, "test.later", chain=Chain.ready())
    resolve.set(X)
    assert np.array_equal(result.get(), X) and out.is_pending
    effect.set()
    assert out.is_ready


def test_errors_of_results_that_come_later_are_each_told_once(rt, diagnostics):
    pairs = [rt.pending() for _ in range(3)]
    inner = rt.run("async.noop", pairs[2][0])
    rt.register("test.later", lambda call: (pairs[0][0], pairs[1][0], inner))
    results = call(rt, "test.later", results=3)
    one, two = Problem("one"), Problem("two")
    pairs[1][1].fail(two)
    pairs[0][1].fail(one)
    pairs[2][1].set(X)
    rt.wait()
    assert results[1].error is two and all(r.is_error for r in results[:2]) and [d.problem for d in diagnostics] == [two, one]


def test_an_error_of_another_operator_that_is_handed_on_is_told_where_it_began(rt, diagnostics):
    rt.register("test.fail", lambda call: 1 / 0, is_long=True)
    rt.register("test.outer", lambda call: rt.run("test.fail", rt.tensor(X)))
    result = call(rt, "test.outer")
    result.wait()
    rt.wait()
    assert [d.op_name for d in diagnostics] == ["test.fail"] and "test.fail failed" in result.error.message
