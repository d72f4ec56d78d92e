"""The interface of the design document: what `execute` promises, whatever the operation."""
from __future__ import annotations

import gc
import sys
import threading

import numpy as np
import pytest
import tosaic
from tosaic import OpAttrs, OpHandler, Problem, TensorHandle
from tosaic.runtime.op_by_op import deferred, operation
from tosaic.runtime.op_by_op.chain import Chain
from tosaic.runtime.op_by_op.handler import OpInvocation
from tosaic.runtime.op_by_op.metadata import TensorMetadata

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def gate(rt):
    """Opens the operation `test.wait`, which gives its argument."""
    opened = threading.Event()
    rt.register("test.wait", lambda call: (opened.wait(), call.arrays[0])[1], lambda inputs, _: inputs, is_long=True)
    yield opened
    opened.set()


def call(rt, op, *arguments, results=1, attributes=None, location=None, chain=None, handler="cpu"):
    found = [None] * results
    out = rt.execute(op, handler, location, list(arguments), attributes, found, chain)
    return (*found, out) if chain is not None else found[0] if results == 1 else found


# What a call costs

def test_an_operation_that_is_known_makes_no_object_but_its_result(rt, monkeypatch):
    cpu, x, y = rt.get_op_handler("cpu"), rt.tensor(X), rt.tensor(X)
    for _ in range(2):
        x + y, call(rt, "tosa.add", x, y, handler=cpu)

    def made(*_, **__):
        raise AssertionError("an object for one call")

    for cls in (OpInvocation, operation.OpCall, deferred.DeferredCall):
        monkeypatch.setattr(cls, "__init__", made)
    assert np.array_equal((x + y).get(), 2 * X) and np.array_equal(call(rt, "tosa.add", x, y, handler=cpu).get(), 2 * X)


def test_an_operator_allocates_its_result_and_nothing_that_stays(rt):
    x, y = rt.tensor(X), rt.tensor(X)
    kept = [x + y for _ in range(3)]
    gc.disable()
    try:
        before = sys.getallocatedblocks()
        kept[0] = kept[1] = kept[2] = None
        freed = before - sys.getallocatedblocks()
        kept[0], kept[1], kept[2] = x + y, x + y, x + y
        more = sys.getallocatedblocks() - before
        assert more + freed <= 3 * 4  # a handle, an array, its shape, its elements
        assert more < 3  # what stays would be one block for each call
    finally:
        gc.enable()


def test_a_handle_is_small_and_its_copy_shares_the_array(rt):
    handle = rt.tensor(X, copy=True)
    copy = handle.copy()
    assert sys.getsizeof(handle) <= 96 and not hasattr(handle, "__dict__")
    assert copy is not handle and copy._array is handle._array and copy.metadata is handle.metadata


# Asynchrony

def test_execute_returns_before_the_operation_has_run_and_its_results_feed_others(rt, gate):
    first = call(rt, "test.wait", rt.tensor(X))
    second = call(rt, "add", first.copy(), rt.tensor(X))
    third = call(rt, "multiply", second.copy(), first.copy())
    assert not any(h.is_ready or h.is_error for h in (first, second, third))
    assert third.metadata is first.metadata is TensorMetadata("float32", (2, 3))
    gate.set()
    assert np.array_equal(third.get(), 2 * X * X) and first.is_ready and second.is_ready


def test_one_pending_handle_may_be_the_input_of_many(rt, gate):
    first = rt.run("test.wait", rt.tensor(X))
    results = [first + rt.tensor(X + n) for n in range(20)]
    gate.set()
    for n, result in enumerate(results):
        assert np.array_equal(result.get(), 2 * X + n)
    assert np.array_equal(first.get(), X)


def test_metadata_is_there_whenever_the_contents_are(rt):
    seen = []
    for op in ("async.noop", "async.noop_no_md", "unique"):
        result = rt.run(op, rt.tensor(X))
        result.then(lambda h: seen.append(h.metadata is TensorMetadata.of(h.get())))
        result.wait()
    rt.wait()
    assert seen == [True] * 3


DTYPES = ("int8", "int16", "int32", "float16", "float32", "bool")


@pytest.mark.parametrize("handler", ["cpu", "reference"])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (1, 2, 1, 3)], ids=str)
def test_one_interface_takes_tensors_of_any_type_and_shape(rt, shape, handler):
    for dtype in DTYPES:
        array = np.ones(shape, dtype)
        found = call(rt, "where", rt.tensor(array.astype(bool)), rt.tensor(array), rt.tensor(array), handler=handler)
        assert (found.dtype, found.shape) == (np.dtype(dtype), shape) and np.array_equal(found.get(), array)


# Errors and cancellation

@pytest.mark.parametrize("place", ["first", "second", "chain"])
@pytest.mark.parametrize("is_late", [False, True], ids=["at once", "late"])
def test_an_error_in_any_argument_or_the_chain_skips_the_operation(rt, diagnostics, place, is_late):
    ran, problem, told = [], Problem("from outside"), []
    rt.register("test.effect", lambda call: (ran.append(1), (X, X))[1], lambda inputs, _: inputs, side_effect=True)
    handle, fail_handle = TensorHandle.pending(TensorMetadata("float32", (2, 3)))
    chain, fail_chain = Chain.pending()
    given = {"first": rt.tensor(X), "second": rt.tensor(X), "chain": Chain.ready()}
    given[place] = chain if place == "chain" else handle
    failing = (fail_chain if place == "chain" else fail_handle)
    if not is_late:
        failing.fail(problem)
    one, two, out = call(rt, "test.effect", given["first"], given["second"], results=2, chain=given["chain"])
    for value in (one, two, out):
        value.then(lambda v: told.append(v.error))
    failing.fail(problem)
    rt.wait(one, two, out)
    assert one.error is two.error is out.error is problem and not ran and diagnostics == []
    assert told == [problem] * 3


def test_cancelling_does_not_wait_and_reaches_what_is_in_the_queue():
    rt = tosaic.CoreRuntime(threads=1)
    started, opened = threading.Event(), threading.Event()
    rt.register("test.slow", lambda call: (started.set(), opened.wait(), call.arrays[0])[2], is_long=True)
    running = rt.run("test.slow", rt.tensor(X))
    started.wait()
    queued = rt.run("test.slow", rt.tensor(X))
    behind = queued + rt.tensor(X)
    out = rt.execute("print", "cpu", None, [behind.copy()], None, [], Chain.ready())
    rt.cancel()
    assert [v.error.kind for v in (queued, behind, out)] == ["cancelled"] * 3 and not running.is_error
    at_once = call(rt, "tosa.add", rt.tensor(X), rt.tensor(X))
    assert at_once.error.kind == "cancelled"
    opened.set()
    assert np.array_equal(running.get(), X)
    rt.restart()
    assert np.array_equal(call(rt, "tosa.add", rt.tensor(X), rt.tensor(X)).get(), 2 * X) and at_once.is_error
    rt.shutdown()


# Ownership

def calls(rt):
    """Ways that a call may go: the operation, its arguments, and how many results it has."""
    known, resolve = TensorHandle.pending(TensorMetadata("float32", (2, 3)))
    unknown, resolve_unknown = TensorHandle.pending()
    return (resolve, resolve_unknown), {
        "compiled": ("tosa.add", [rt.tensor(X), rt.tensor(X)], 1), "known": ("tosa.add", [rt.tensor(X), rt.tensor(X)], 1),
        "reusing": ("tosa.add", [rt.tensor(X, copy=True), rt.tensor(X)], 1), "pending": ("tosa.add", [known, rt.tensor(X)], 1),
        "metadata unknown": ("tosa.add", [unknown, rt.tensor(X)], 1), "long": ("async.noop", [rt.tensor(X)], 1),
        "shape error": ("tosa.add", [rt.tensor(X), rt.tensor(X.T)], 1), "unknown": ("no.such", [rt.tensor(X)], 2),
        "error": ("tosa.abs", [TensorHandle.of_error(Problem("x"))], 1), "invalid": ("tosa.abs", [None], 1),
        "wrong number of results": ("tosa.abs", [rt.tensor(X)], 3), "no handler": ("tosa.abs", [rt.tensor(X)], 1)}


def test_arguments_are_null_and_results_are_there_after_every_call(rt):
    resolvers, ways = calls(rt)
    for name, (op, arguments, count) in ways.items():
        results = [None] * count
        rt.execute(op, "null" if name == "no handler" else "cpu", None, arguments, OpAttrs(), results)
        assert arguments == [None] * len(arguments), name
        assert all(isinstance(r, TensorHandle) and r.is_valid for r in results) and len(results) == count, name
    for resolve in resolvers:
        resolve.set(X)
    rt.cancel()
    arguments, results = [rt.tensor(X)], [None]
    rt.execute("tosa.abs", "cpu", None, arguments, None, results)
    assert arguments == [None] and results[0].error.kind == "cancelled"


def test_the_runtime_lets_arguments_go_when_the_operation_is_done(rt):
    import weakref
    gone = {}
    for op, is_pending in (("tosa.add", False), ("tosa.add", True), ("unique", False), ("async.noop_no_md", False)):
        first, resolve = TensorHandle.pending(TensorMetadata("float32", (2, 3))) if is_pending else (rt.tensor(X), None)
        arguments = [first, rt.tensor(X)][:2 if op == "tosa.add" else 1]
        gone[op, is_pending], results = [weakref.ref(a) for a in arguments], [None]
        del first
        rt.execute(op, "cpu", None, arguments, None, results)
        if resolve is not None:
            resolve.set(X)
        del resolve
        results[0].wait()
        rt.wait()
    gc.collect()  # once: it takes a second where a process has run many tests
    assert not [key for key, found in gone.items() for g in found if g() is not None]


# Op handlers

class Recording(OpHandler):
    def __init__(self, fallback=None):
        super().__init__(fallback)
        self.seen = []

    def execute(self, invocation):
        self.seen.append((invocation.op_name, invocation.location, [a.tolist() for a in invocation.arguments],
                          invocation.attributes.values(), len(invocation.results), invocation.chain))
        return False


def test_a_handler_gets_all_that_execute_was_given_and_may_hand_it_on(rt):
    chain, attributes = Chain.ready(), OpAttrs({"axis": 1})
    inner = Recording(rt.get_op_handler("reference"))
    outer = Recording(inner)
    result, out = call(rt, "tosa.reduce_sum", rt.tensor(X), attributes=attributes, location="here", chain=chain, handler=outer)
    assert np.array_equal(result.get(), X.sum(1, keepdims=True)) and out.is_ready
    assert outer.seen == inner.seen == [("tosa.reduce_sum", "here", [X.tolist()], {"axis": 1}, 1, chain)]
    assert len(rt.cpu.kernels) == 0


def test_a_new_device_is_a_handler_and_nothing_else_changes(rt):
    class Device(OpHandler):
        """A device with one operation and memory of its own; what it lacks goes to the cpu."""
        memory: list[np.ndarray] = []

        def execute(self, invocation):
            if invocation.op_name != "tosa.add":
                return False
            self.memory.append(invocation.arguments[0].get() + invocation.arguments[1].get())
            invocation.results[0] = TensorHandle.ready(self.memory[-1])
            return True

    rt.register_op_handler("device", Device(rt.get_op_handler("cpu")))
    total = call(rt, "tosa.add", rt.tensor(X), rt.tensor(X), handler="device")
    assert np.shares_memory(total.get(), Device.memory[0])
    assert np.array_equal(call(rt, "tosa.abs", total, handler="device").get(), 2 * X)


def test_op_by_op_and_graphs_check_alike(rt):
    with pytest.raises(Problem) as graph:
        tosaic.jit(lambda a, b: a @ b).trace(X, X)
    with pytest.raises(Problem) as single:
        rt.tensor(X) @ rt.tensor(X)
    assert single.value.message == graph.value.message and single.value.kind == graph.value.kind


@pytest.mark.parametrize("place", ["track", "keep_settled"])
def test_a_value_that_arrives_while_a_call_is_put_off_is_not_missed(place, monkeypatch):
    """Another thread settles the argument after it was found pending, before the call waits for it."""
    rt = tosaic.CoreRuntime()
    x = rt.tensor(np.ones(3, np.float32))
    rt.wait(x + x)  # a kernel that is known
    late, resolver = TensorHandle.pending(x.metadata)
    owner = type(rt) if place == "track" else deferred
    before = getattr(owner, place)

    def meanwhile(*arguments):
        before(*arguments)
        resolver.set(np.ones(3, np.float32))

    monkeypatch.setattr(owner, place, meanwhile)
    result = late + x
    monkeypatch.undo()
    assert result.wait(10) and result.get().tolist() == [2, 2, 2]
