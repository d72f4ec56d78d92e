"""A handle is a value: what a client is given of it cannot be written, and keeping a copy costs little."""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tosaic
from tosaic import Problem, TensorHandle
from tosaic.runtime.op_by_op.core import CoreRuntime
from tosaic.runtime.op_by_op.metadata import TensorMetadata

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def writable(array):
    array.setflags(write=True)
    array[...] = 9


def flag(array):
    array.flags.writeable = True
    array[...] = 9


def of_base(array):
    array.base.setflags(write=True)
    array.base[...] = 9


def fill_view(array):
    view = array.view(np.uint8) if array.ndim else array.reshape(1).view(np.uint8)
    view.setflags(write=True)
    view[...] = 9


def through_strides(array):
    np.lib.stride_tricks.as_strided(array, writeable=True)[...] = 9


def through_buffer(array):
    memoryview(array)[...] = 9


def through_buffer_again(array):
    again = np.frombuffer(memoryview(array.reshape(-1)), array.dtype)
    again.setflags(write=True)
    again[...] = 9


WAYS = (writable, flag, of_base, fill_view, through_strides, through_buffer, through_buffer_again,
        lambda a: np.copyto(a, 9), lambda a: a.sort(), lambda a: a.fill(9), lambda a: np.add(a, a, out=a),
        lambda a: a.put(0, 9), lambda a: a.byteswap(True))
READS = {"get": lambda h: h.get(), "array": np.asarray, "__array__": lambda h: h.__array__(), "dlpack": np.from_dlpack,
         "copy": lambda h: h.copy().get(), "again": lambda h: h.get()[...], "transposed": lambda h: h.get().T}
DTYPES = (np.float32, np.int8, np.bool_, np.int64, np.uint16, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn)
SHAPES = ((2, 3), (), (1,), (40, 50), (0, 3))


def handles(rt, dtype, shape):
    """Handles of the same tensor that came about in several ways."""
    array = np.ones(shape, dtype)
    pending, resolve = rt.pending()
    resolve.set(array)
    yield from (TensorHandle.ready(array), rt.tensor(array), rt.tensor(array, copy=True), pending,
                rt.run("async.noop", rt.tensor(array)))
    if array.size:
        found = [None]
        rt.execute("tosa.identity", "cpu", None, [rt.tensor(array)], None, found)
        yield from (found[0], rt.tensor(array, copy=True).reshape(*shape), rt.run("unique", rt.tensor(array)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_is_read_cannot_be_written_nor_made_writable(rt, dtype, shape):
    for number, handle in enumerate(handles(rt, dtype, shape)):
        for name, read in READS.items():
            if name == "dlpack" and np.dtype(dtype).kind == "V":
                continue
            before = handle.get().tobytes()
            array = read(handle)
            assert array.dtype == dtype and not array.flags.writeable and (name == "transposed" or array.shape == handle.shape)
            for way in WAYS:
                try:
                    way(array)
                except (ValueError, TypeError, AttributeError, NotImplementedError, RuntimeError):
                    continue
                assert way not in (writable, flag, of_base) or not array.size, (number, name, way)
            assert handle.get().tobytes() == before, (number, name)


def test_what_an_operator_is_given_cannot_be_made_writable_either(rt):
    def writing(call):
        call.arrays[0].setflags(write=True)
        return call.arrays[0]

    rt.register("test.writing", writing)
    for x in (rt.tensor(X, copy=True), rt.tensor(X)):
        with pytest.raises(Problem, match="WRITEABLE"):
            rt.run("test.writing", x)
        assert np.array_equal(x.get(), X)


def test_an_array_that_was_read_keeps_its_contents_whatever_becomes_of_the_handle(rt):
    handle = rt.tensor(X, copy=True)
    seen, pieces = handle.get(), [handle.get()[0], handle.get().T, handle.get().view(np.int32), memoryview(handle.get())]
    wanted = [np.array(p) for p in pieces]
    arguments, results = [handle, rt.tensor(X)], [None]
    del handle
    rt.execute("tosa.add", "cpu", None, arguments, None, results)
    for _ in range(3):
        arguments, results = [results.pop(), rt.tensor(X)], [None]
        rt.execute("tosa.add", "cpu", None, arguments, None, results)
    assert np.array_equal(seen, X) and all(np.array_equal(p, w) for p, w in zip(pieces, wanted)) and rt.buffers_reused == 3


def test_a_client_that_keeps_a_copy_of_each_handle_takes_the_quick_way(monkeypatch):
    """As the design document has it: a client that keeps a handle copies it. What the two ways cost is in the benchmark."""
    rt, quick, taken = tosaic.CoreRuntime(), CoreRuntime._execute_quickly, []
    monkeypatch.setattr(CoreRuntime, "_execute_quickly", lambda *a: taken.append(quick(*a)) or taken[-1])
    x, y = rt.tensor(X), rt.tensor(X)
    for _ in range(5):
        results = [None]
        rt.execute("tosa.add", "cpu", None, [x.copy(), y.copy()], None, results)
        assert np.array_equal(results[0].get(), X + X)
    assert taken == [False, True, True, True, True]
    assert np.array_equal(x.get(), X) and rt.buffers_reused == 0


def test_pending_handles_know_their_runtime(rt):
    known = TensorMetadata("float32", (2, 3))
    for handle, resolve in (rt.pending(), rt.pending(known), TensorHandle.pending(runtime=rt), TensorHandle.pending(known, rt)):
        results = [handle + 1, -handle, 2 * handle, handle.copy() @ X.T]
        resolve.set(X)
        assert np.array_equal(results[0].get(), X + 1) and np.array_equal(results[1].get(), -X)
        assert np.array_equal(results[2].get(), 2 * X) and np.allclose(results[3].get(), X @ X.T)


def test_a_handle_of_no_runtime_takes_that_of_what_it_meets_or_says_how_to_give_it_one(rt):
    handle, resolve = TensorHandle.pending()
    total = handle + rt.tensor(X)
    with pytest.raises(Problem, match="belongs to no runtime") as caught:
        handle + 1
    assert "runtime.pending" in caught.value.help
    resolve.set(X)
    assert np.array_equal((total + 1).get(), 2 * X + 1)
    assert np.array_equal((TensorHandle.ready(X, rt) + 1).get(), X + 1)
    assert (TensorHandle.of_error(Problem("no"), rt) + 1).error.message == "no"
