"""Tensor handles: states, metadata, value semantics, other libraries, asyncio."""
from __future__ import annotations

import asyncio
import copy
import pickle
import threading

import numpy as np
import pytest
import tosaic
from tosaic import Problem, TensorHandle
from tosaic.runtime.op_by_op.chain import Chain
from tosaic.runtime.op_by_op.metadata import TensorMetadata

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_a_ready_handle_has_its_array_and_metadata():
    handle = TensorHandle.ready(X)
    assert handle.is_ready and not handle.is_error and handle.error is None
    assert handle.metadata is TensorMetadata(np.float32, (2, 3))
    assert np.array_equal(handle.get(), X)


def test_what_get_returns_cannot_be_written(rt):
    for handle in (TensorHandle.ready(X), rt.tensor(X) + rt.tensor(X)):
        with pytest.raises(ValueError, match="read-only"):
            handle.get()[0, 0] = 1


def test_a_pending_handle_becomes_ready():
    handle, resolve = TensorHandle.pending()
    assert not handle.is_ready and not handle.is_error and handle.metadata is None
    assert resolve.set(X)
    assert handle.is_ready and handle.metadata == TensorMetadata("float32", (2, 3))
    assert not resolve.set(X + 1) and np.array_equal(handle.get(), X)


def test_a_pending_handle_may_have_metadata_before_its_contents():
    handle, resolve = TensorHandle.pending(TensorMetadata("float32", (2, 3)))
    assert handle.metadata is not None and not handle.is_ready
    with pytest.raises(Problem, match=r"a handle of tensor<2x3xf32> cannot be set to tensor<1xf32>"):
        resolve.set(np.zeros(1, np.float32))
    resolve.set(X)


def test_metadata_is_known_no_later_than_the_tensor():
    handle, resolve = TensorHandle.pending()
    seen = []
    handle.then_metadata(lambda h: seen.append((h.metadata, h.is_ready)))
    resolve.set_metadata(TensorMetadata("float32", (2, 3)))
    assert seen == [(TensorMetadata("float32", (2, 3)), False)]
    resolve.set(X)
    assert handle.await_metadata().shape == (2, 3)


def test_a_failed_handle_raises_its_error_each_time_it_is_read():
    problem = Problem("no such luck", kind="test")
    handle, resolve = TensorHandle.pending()
    resolve.fail(problem)
    assert handle.is_error and handle.error is problem and handle.metadata is None
    for read in (handle.get, handle.await_metadata, handle.tolist):
        with pytest.raises(Problem, match="no such luck"):
            read()


def test_a_handle_whose_resolver_goes_away_is_an_error():
    handle, resolve = TensorHandle.pending()
    del resolve
    with pytest.raises(Problem, match="a pending handle will never be settled"):
        handle.get()


def test_callbacks_are_called_once_for_values_and_errors():
    called = []
    for settle in (lambda r: r.set(X), lambda r: r.fail(Problem("x"))):
        handle, resolve = TensorHandle.pending()
        handle.then(called.append)
        assert not called
        settle(resolve)
        assert called == [handle] or called[0] is handle
        handle.then(called.append)
        assert len(called) == 2
        called.clear()


def test_get_waits_for_another_thread():
    handle, resolve = TensorHandle.pending()
    thread = threading.Timer(0.02, lambda: resolve.set(X))
    thread.start()
    assert np.array_equal(handle.get(), X)
    thread.join()


def test_handles_can_be_awaited():
    async def main() -> None:
        handle, resolve = TensorHandle.pending()
        thread = threading.Timer(0.02, lambda: resolve.set(X))
        thread.start()
        assert np.array_equal(await handle, X)
        assert np.array_equal(await TensorHandle.ready(X), X)
        with pytest.raises(Problem, match="no"):
            await TensorHandle.of_error(Problem("no"))
        thread.join()

    asyncio.run(main())


def test_a_copy_outlives_the_handle_that_is_given_away(rt):
    for handle in (rt.tensor(X), (pending := TensorHandle.pending())[0]):
        copy, arguments, results = handle.copy(), [handle.donate()], [None]
        rt.execute("tosa.abs", "cpu", None, arguments, None, results)
        pending[1].set(X)
        assert np.array_equal(copy.get(), X) and np.array_equal(results[0].get(), X)


def test_arrays_are_borrowed_and_not_copied(rt):
    array = X.copy()
    handle = rt.tensor(array)
    assert np.shares_memory(handle.get(), array)
    assert not np.shares_memory(rt.tensor(array, copy=True).get(), array)


def test_a_strided_array_is_copied(rt):
    assert np.array_equal((rt.tensor(X.T) + rt.tensor(X.T)).get(), 2 * X.T)


def test_buffers_numbers_and_lists_become_tensors(rt):
    assert rt.tensor(b"abc").tolist() == [97, 98, 99]
    assert rt.tensor(memoryview(X)).shape == (2, 3)
    assert rt.tensor(2.5).dtype == np.float32 and rt.tensor([1, 2]).dtype == np.int32


def test_what_is_no_tensor_is_refused(rt):
    for wrong in ("text", object(), np.array([None]), X.astype(">f4")):
        with pytest.raises(Problem):
            rt.tensor(wrong)


def test_dlpack_goes_both_ways(rt):
    class Foreign:
        def __dlpack__(self, **named): return X.__dlpack__(**named)
        def __dlpack_device__(self): return X.__dlpack_device__()

    assert np.array_equal(rt.tensor(Foreign()).get(), X)
    handle = rt.tensor(X)
    taken = np.from_dlpack(handle)
    assert np.array_equal(taken, X)
    old = type("Old", (), {"__dlpack__": lambda self, **_: handle.__dlpack__(), "__dlpack_device__": lambda self: (1, 0)})()
    copied = np.from_dlpack(old)
    assert np.array_equal(copied, X) and not np.shares_memory(copied, X)


def test_numpy_takes_handles_as_arrays(rt):
    handle = rt.tensor(X)
    assert np.asarray(handle).shape == (2, 3) and np.asarray(handle, np.int32).dtype == np.int32
    assert isinstance(X + handle, TensorHandle) and np.array_equal((X + handle).get(), 2 * X)


def test_handles_feel_like_arrays(rt):
    x, y = rt.tensor(X), rt.tensor(X + 1)
    checks = [(x + y, X + X + 1), (x - 1, X - 1), (2 * x, 2 * X), (x / y, X / (X + 1)), (x @ y.T, X @ (X + 1).T), (-x, -X),
              (x == x, X == X), (x < y, X < X + 1), (x[1:, ::2], X[1:, ::2]), (x[0, -1], X[0, -1]), (x[..., None], X[...,
              None]),
              (x.reshape(3, 2), X.reshape(3, 2)), (x.reshape(-1), X.reshape(-1)), (x.T, X.T), (x.transpose(1, 0), X.T),
              (x.sum(axis=1), X.sum(axis=1)), (x.sum(), X.sum()), (x.mean(axis=0, keepdims=True), X.mean(0, keepdims=True)),
              (x.max(axis=1), X.max(1)), (x.argmax(1), X.argmax(1)), (x.astype(np.int32), X.astype(np.int32)),
              (x.clip(1, 3), X.clip(1, 3)), (x.ravel(), X.ravel()), (abs(-x), X)]
    for number, (found, wanted) in enumerate(checks):
        assert np.allclose(found.get(), wanted), number
        assert found.shape == np.shape(wanted), number
    assert len(x) == 2 and [row.tolist() for row in x] == X.tolist() and float(x[0, 1]) == 1.0 and bool(x[0, 1] > 0)


def test_a_number_takes_the_type_of_the_handle_that_it_meets(rt):
    assert (rt.tensor(X.astype(np.int8)) + 1).dtype == np.int8
    with pytest.raises(Problem, match=r"2\.5 meets a tensor of int32, which cannot hold it"):
        rt.tensor([1, 2]) + 2.5
    with pytest.raises(Problem, match="does not fit int8"):
        rt.tensor(X.astype(np.int8)) + 1000


def test_a_number_meets_a_handle_whose_type_is_not_known_yet(rt):
    handle, resolve = TensorHandle.pending()
    result = rt.run("add", handle, 2)
    resolve.set(X)
    assert np.array_equal(result.get(), X + 2) and result.dtype == np.float32


def test_a_handle_of_another_runtime_is_a_value_like_any_other(rt):
    other = tosaic.CoreRuntime()
    assert np.array_equal((rt.tensor(X) + other.tensor(X)).get(), 2 * X)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda h: pickle.loads(pickle.dumps(h))],
                         ids=["copy", "deepcopy", "pickle"])
def test_handles_and_chains_are_copied_and_pickled_and_a_runtime_is_not(copied):
    rt, x = tosaic.CoreRuntime(), np.arange(4, dtype=np.float32)
    for handle in (rt.tensor(x), rt.tensor(x) + 0, rt.tensor(np.float32(2)), rt.scalar_tensor(1.5, (2, 3))):
        found = copied(handle)
        assert np.array_equal(found.get(), handle.get()) and str(found.metadata) == str(handle.metadata)
        assert not found.get().flags.writeable and np.array_equal((rt.tensor(found) + 1).get(), handle.get() + 1)
    error = copied(tosaic.TensorHandle.of_error(Problem("lost")))
    with pytest.raises(Problem, match="lost"):
        error.get()
    assert copied(Chain()).get() is None and copied(Chain(Problem("lost"))).error.message == "lost"
    for wrong, message in ((rt, "neither copied nor pickled"), (given_away(rt), "given away")):
        with pytest.raises(Problem, match=message):
            copied(wrong)


def given_away(rt):
    handle = rt.tensor(np.ones(2, np.float32))
    handle.donate()
    return handle


def test_a_pickle_of_a_pending_handle_waits_for_it():
    rt, x = tosaic.CoreRuntime(), np.arange(4, dtype=np.float32)
    handle, resolver = rt.pending()
    threading.Timer(0.05, resolver.set, (x,)).start()
    assert np.array_equal(pickle.loads(pickle.dumps(handle)).get(), x)
