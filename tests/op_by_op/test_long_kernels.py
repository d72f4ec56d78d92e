"""Kernels that take long do not block their caller: what is estimated to be long runs in the work queue, the rest where it is
called."""
from __future__ import annotations

import threading

import numpy as np
import pytest
import tosaic
from tosaic import OpAttrs, Problem
from tosaic.jit.op_by_op import compilers
from tosaic.runtime.op_by_op.compiled_kernels import QUEUED_NANOSECONDS
from tosaic.runtime.op_by_op.metadata import TensorMetadata

SMALL, LARGE = 8, 768


def matrix(n, rows=1):
    return np.random.default_rng(n).standard_normal((rows * n, n)).astype(np.float32)


def execute(rt, op, *arguments, handler="cpu", attributes=None):
    results = [None]
    rt.execute(op, handler, None, list(arguments), attributes, results)
    return results[0]


@pytest.fixture
def held():
    """A runtime whose only thread is busy until the event is set."""
    rt, gate = tosaic.CoreRuntime(threads=1), threading.Event()
    rt.register("test.wait", lambda call: (gate.wait(60), ())[1], side_effect=True, is_long=True)
    rt.run("test.wait", outputs=0)
    yield rt, gate
    gate.set()
    rt.shutdown()


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("call", [lambda rt, x: x @ x, lambda rt, x: rt.run("matmul", x, x),
                                  lambda rt, x: execute(rt, "matmul", x, x),
                                  lambda rt, x: execute(rt, "matmul", x.copy(), x.copy()),
                                  lambda rt, x: execute(rt, "matmul", x, x, handler=rt.cpu)])
def test_a_large_product_is_not_run_by_its_caller_and_a_small_one_is(held, call, is_known):
    rt, gate = held
    large, small = rt.tensor(matrix(LARGE)), rt.tensor(matrix(SMALL))
    for _ in range(1 + is_known):
        assert call(rt, small).is_ready
        result = call(rt, large)
        assert not result.is_ready and result.metadata is large.metadata
    gate.set()
    assert np.allclose(result.get(), matrix(LARGE) @ matrix(LARGE), rtol=1e-3, atol=1e-2)


def test_the_first_call_of_a_large_operation_does_not_compile_it(held, monkeypatch):
    rt, gate = held
    compiled: list[threading.Thread] = []
    compile = compilers.OneOperation.compile

    def noting(self):
        compiled.append(threading.current_thread())
        return compile(self)

    monkeypatch.setattr(compilers.OneOperation, "compile", noting)
    result = rt.tensor(matrix(LARGE)) @ rt.tensor(matrix(LARGE) + 1)
    assert not compiled
    gate.set()
    result.wait()
    assert compiled and compiled[0] is not threading.current_thread()


def test_a_shape_error_of_a_large_operation_is_raised_at_once(held):
    rt, _ = held
    with pytest.raises(Problem, match="matmul"):
        rt.tensor(matrix(LARGE)) @ rt.tensor(matrix(LARGE, 2))


def test_large_operations_run_beside_each_other():
    """Each waits for the other one in its result's callback: in one thread they would not meet."""
    rt, barrier = tosaic.CoreRuntime(threads=2), threading.Barrier(2)
    x = rt.tensor(matrix(LARGE))
    results = [x @ x for _ in range(2)]
    for result in results:
        result.then(lambda _: barrier.wait(60))
    rt.wait()
    assert all(np.array_equal(r.get(), results[0].get()) for r in results) and not barrier.broken
    rt.shutdown()


def test_what_waits_for_a_value_and_is_large_does_not_run_in_the_thread_that_gives_it(held):
    rt, gate = held
    x = rt.tensor(matrix(LARGE))
    first, resolve = rt.pending(x.metadata)
    products, small = [first @ x, first @ x], rt.run("sum", first[0:1, 0:2])
    resolve.set(matrix(LARGE))
    assert not any(p.is_ready for p in products)
    gate.set()
    assert small.wait(60) and all(np.allclose(p.get(), matrix(LARGE) @ matrix(LARGE), atol=1e-2) for p in products)


def test_errors_buffers_and_cancellation_of_large_operations_are_those_of_small_ones(held):
    rt, gate = held
    n = 1_000_000
    own = rt.tensor(np.ones(n, np.float32), copy=True)
    arguments, results = [own, rt.tensor(np.ones(n, np.float32))], [None]
    del own
    rt.execute("tosa.add", "cpu", None, arguments, None, results)
    kept = rt.tensor(np.ones(n, np.float32), copy=True)
    given = execute(rt, "tosa.add", kept, rt.tensor(np.ones(n, np.float32)))
    gate.set()
    assert results[0].get()[-1] == 2 and results[0].stolen_from == 0
    assert given.get()[0] == 2 and given.stolen_from is None and kept.get()[0] == 1


def test_cancelling_reaches_large_operations_in_line(held):
    rt, gate = held
    x = rt.tensor(matrix(LARGE))
    result = x @ x
    behind = result + x
    rt.cancel()
    assert result.error.kind == behind.error.kind == "cancelled"
    gate.set()


@pytest.mark.parametrize("op, shapes, attributes, is_long", [
    ("add", [(1000,), (1000,)], {}, False), ("add", [(3000, 1000), (3000, 1000)], {}, True),
    ("exp", [(100,)], {}, False), ("exp", [(300, 300)], {}, True), ("matmul", [(64, 64), (64, 64)], {}, False),
    ("matmul", [(256, 256), (256, 256)], {}, True), ("matmul", [(1, 4096), (4096, 256)], {}, True),
    ("sum", [(100, 100)], {"axis": 1}, False), ("sum", [(2000, 2000)], {"axis": 1}, True), ("softmax", [(10, 10)], {}, False),
    ("transpose", [(2000, 2000)], {}, True), ("reshape", [(2000, 2000)], {"shape": [4_000_000]}, True),
    ("tosa.conv2d", [(1, 8, 8, 4), (8, 3, 3, 4), (8,)], {"pad": [1, 1, 1, 1]}, False),
    ("tosa.conv2d", [(1, 112, 112, 32), (64, 3, 3, 32), (64,)], {"pad": [1, 1, 1, 1]}, True),
    ("tosa.max_pool2d", [(1, 112, 112, 64)], {"kernel": [3, 3], "stride": [1, 1], "pad": [1, 1, 1, 1]}, True)])
def test_the_estimate_tells_long_kernels_from_short_ones(op, shapes, attributes, is_long):
    inputs = [TensorMetadata("float32", s) for s in shapes]
    traced = compilers.cpu.trace(op, OpAttrs(attributes).freeze(), inputs, {})
    assert (traced.nanoseconds >= QUEUED_NANOSECONDS) == is_long, traced.nanoseconds
