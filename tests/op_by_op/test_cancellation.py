"""Cancellation: what is pending and what comes becomes the error, until restart; what runs is finished."""
from __future__ import annotations

import threading

import numpy as np
import pytest
import tosaic
from tosaic import Problem, TensorHandle
from tosaic.runtime.op_by_op.chain import Chain

X = np.arange(3, dtype=np.float32)


def test_pending_and_later_operations_are_cancelled(rt, diagnostics):
    pending, resolve = TensorHandle.pending()
    done = rt.tensor(X) + rt.tensor(X)
    waiting = rt.run("add", pending, rt.tensor(X))
    after = waiting * waiting
    rt.cancel()
    assert waiting.error.kind == after.error.kind == "cancelled" and done.is_ready
    assert (done + done).error is waiting.error
    rt.restart()
    assert (done + done).is_ready and waiting.is_error and (waiting + done).error is waiting.error
    resolve.set(X)
    assert waiting.is_error and diagnostics == []


def test_cancelled_metadata_is_never_known(rt):
    pending, resolve = TensorHandle.pending()
    result = rt.run("async.noop_no_md", pending)
    rt.cancel()
    with pytest.raises(Problem, match="cancelled"):
        result.await_metadata()
    resolve.set(X)


def test_what_is_running_is_finished(rt):
    started, gate = threading.Event(), threading.Event()

    def slow(call):
        started.set()
        gate.wait()
        return call.arrays[0]

    rt.register("test.slow", slow, is_long=True)
    result = rt.run("test.slow", rt.tensor(X))
    started.wait()
    rt.cancel()
    gate.set()
    assert np.array_equal(result.get(), X)


def test_chains_are_cancelled_too(rt, capsys):
    chain, resolve = Chain.pending()
    out = rt.execute("print", "cpu", None, [rt.tensor(X)], None, [], chain)
    rt.cancel()
    assert out.error.kind == "cancelled"
    resolve.set()
    rt.restart()
    assert capsys.readouterr().out == ""


def program(rt, before):
    """A fixed program; `before(n)` is called before its operation number n."""
    pending, resolve = TensorHandle.pending()
    values = [rt.tensor(X), pending]
    steps = [("add", 0, 0), ("add", 0, 1), ("multiply", 2, 3), ("async.noop", 4), ("subtract", 5, 2), ("async.noop_no_md",
             6), ("add", 7, 1)]
    for number, (op, *operands) in enumerate(steps):
        before(number)
        results = [None]
        rt.execute(op, "cpu", None, [values[n].copy() for n in operands], None, results)
        values.append(results[0])
    before(len(steps))
    resolve.set(X)
    for value in values:
        value.wait()
    return values[2:]


def test_cancel_before_each_operation_of_a_program(rt):
    whole = [v.get() for v in program(rt, lambda n: None)]
    for at in range(len(whole) + 1):
        values = program(rt, lambda n, at=at: rt.cancel() if n == at else None)
        rt.restart()
        for number, (value, wanted) in enumerate(zip(values, whole)):
            if number >= at or number > 0:  # the first is the only one that needs nothing that is pending
                assert value.error.kind == "cancelled", (at, number)
            else:
                assert np.array_equal(value.get(), wanted)


def test_restart_after_each_operation_of_a_program(rt):
    whole = [v.get() for v in program(rt, lambda n: None)]
    for at in range(len(whole) + 1):
        values = program(rt, lambda n, at=at: (rt.cancel(), rt.restart()) if n == at else None)
        for value, wanted in zip(values, whole):
            if value.is_error:
                assert value.error.kind == "cancelled"
            else:
                assert np.array_equal(value.get(), wanted)
        assert at > 1 or not values[0].is_error


def test_shutdown_ends_threads_and_makes_operations_errors():
    rt = tosaic.CoreRuntime()
    result = rt.run("async.noop", rt.tensor(X))
    result.wait()
    pending, resolve = TensorHandle.pending()
    waiting = rt.run("add", pending, rt.tensor(X))
    rt.shutdown()
    assert waiting.is_error and (rt.tensor(X) + rt.tensor(X)).is_error
    assert not any(t.is_alive() for t in rt.queue.state.threads)
    with pytest.raises(Problem, match="has been shut down"):
        rt.restart()
    resolve.set(X)
