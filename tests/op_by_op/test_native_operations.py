"""Operations of a client's own: metadata functions, dispatch functions, the attributes that both get, and effects."""
from __future__ import annotations

import threading

import numpy as np
import pytest
from tosaic import OpAttrs, Problem, TensorHandle
from tosaic.runtime.op_by_op import attributes as attributes_module
from tosaic.runtime.op_by_op.chain import Chain
from tosaic.runtime.op_by_op.logging_handler import LoggingOpHandler
from tosaic.runtime.op_by_op.metadata import TensorMetadata

X = np.arange(6, dtype=np.float32).reshape(2, 3)
TYPE = TensorMetadata("float32", (2, 3))


def call(rt, op, *arguments, results=1, attributes=None, handler="cpu", chain=None, location=None):
    found = [None] * results
    rt.execute(op, handler, location, list(arguments), attributes, found, chain)
    return found[0] if results == 1 else found


# Metadata functions

def add_metadata(inputs, attributes):
    """The document's example, with its attribute."""
    a, b = inputs
    if a.dtype != b.dtype:
        raise Problem("incompatible dtypes for test.add", kind="type")
    if a.shape != b.shape:
        raise Problem("arguments of test.add must have same shape", kind="shape")
    attributes.get("scale", "f32")
    return a


@pytest.fixture
def add(rt):
    """Registers `test.add`; notes what is called in which thread."""
    notes = []

    def metadata(inputs, attributes):
        notes.append(("metadata", threading.current_thread(), tuple(inputs)))
        return add_metadata(inputs, attributes)

    def dispatch(call):
        notes.append(("dispatch", threading.current_thread(), call.metadata))
        return (call.arrays[0] + call.arrays[1]) * np.float32(call.attributes.get("scale", "f32"))

    rt.register("test.add", dispatch, metadata)
    return notes


SCALE = OpAttrs()
SCALE.set("scale", 2.0, "f32")


def test_the_metadata_function_runs_first_and_the_dispatch_function_gets_what_it_found(rt, add):
    result = call(rt, "test.add", rt.tensor(X), rt.tensor(X), attributes=SCALE)
    here = threading.current_thread()
    assert add == [("metadata", here, (TYPE, TYPE)), ("dispatch", here, (TYPE,))] and np.array_equal(result.get(), 4 * X)


@pytest.mark.parametrize("other, attributes, message", [
    (X[:1], SCALE, "arguments of test.add must have same shape"),
    (X.astype(np.int32), SCALE, "incompatible dtypes for test.add"),
    (X, None, "test.add: missing 'scale' attribute"), (X, OpAttrs({"scale": 1.0}), "attribute 'scale' is f64, not f32")])
def test_errors_of_shape_type_and_attributes_are_known_at_once(rt, add, diagnostics, other, attributes, message):
    pending, resolve = TensorHandle.pending(TYPE)
    result = call(rt, "test.add", pending, rt.tensor(other), attributes=attributes, location="row 3")
    assert result.is_error and message in result.error.message and result.metadata is None
    assert [n[0] for n in add] == ["metadata"]
    told, = diagnostics
    assert told.location == "row 3" and told.problem is result.error
    resolve.set(X)


def test_an_error_that_is_known_at_once_has_the_callers_line(rt, add, diagnostics):
    pending, resolve = TensorHandle.pending(TYPE)
    result = call(rt, "test.add", pending, rt.tensor(X[:1]), attributes=SCALE)
    position = result.error.position
    assert position.source.name == __file__ and "rt.execute" in position.source.line(position.line)
    assert diagnostics[0].decoded == position
    resolve.set(X)


@pytest.mark.parametrize("handler", ["cpu", "reference"])
def test_devices_share_a_metadata_function_which_runs_in_the_callers_thread(rt, add, handler):
    pending, resolve = TensorHandle.pending(TYPE)
    result = call(rt, "test.add", pending, rt.tensor(X), attributes=SCALE, handler=handler)
    assert result.metadata is TYPE and add == [("metadata", threading.current_thread(), (TYPE, TYPE))]
    resolve.set(X)
    assert np.array_equal(result.get(), 4 * X) and [n[0] for n in add] == ["metadata", "dispatch"]


def test_a_metadata_function_gives_the_metadata_of_every_result(rt):
    rows = TensorMetadata("int32", (2,))
    rt.register("test.two", lambda call: (call.arrays[0], np.zeros(2, np.int32)), lambda inputs, _: (inputs[0], rows))
    pending, resolve = TensorHandle.pending(TYPE)
    same, zeros = call(rt, "test.two", pending, results=2)
    assert (same.metadata, zeros.metadata) == (TYPE, rows) and not zeros.is_ready
    resolve.set(X)
    assert np.array_equal(same.get(), X) and zeros.tolist() == [0, 0]


# Dispatch functions

def test_a_dispatch_function_gets_arrays_that_are_there(rt):
    seen = []
    rt.register("test.see", lambda call: (seen.append([type(a) for a in call.arrays]), call.arrays[0])[1])
    (first, one), (second, two) = TensorHandle.pending(), TensorHandle.pending()
    result = call(rt, "test.see", first, second)
    one.set(X)
    assert not seen and result.is_pending
    two.set(X)
    assert np.array_equal(result.get(), X) and seen == [[np.ndarray, np.ndarray]]


def test_without_a_metadata_function_a_dispatch_function_gets_no_metadata(rt):
    seen = []
    rt.register("test.see", lambda call: (seen.append(call.metadata), call.arrays[0])[1])
    assert call(rt, "test.see", rt.tensor(X)).metadata is TYPE and seen == [()]


def test_a_dispatch_function_gets_the_location_and_the_chain_of_the_call(rt):
    seen = []
    rt.register("test.see", lambda call: (seen.append((call.location, call.chain)), call.arrays[0])[1])
    for location, chain in (("row 3", None), (42, Chain.ready())):
        call(rt, "test.see", rt.tensor(X), location=location, chain=chain)
        assert seen.pop() == (location, chain)


def test_a_result_is_ready_when_the_asynchronous_computation_says_so_and_not_before(rt):
    work, ran = [], []

    def later(call):
        result, resolve = TensorHandle.pending(call.metadata[0])
        buffer = np.empty((2, 3), np.float32)
        a, b = call.arrays

        def compute():
            np.add(a, b, out=buffer)
            resolve.set(buffer)

        work.append(compute)
        return result

    rt.register("test.later", later, lambda inputs, _: inputs[0])
    rt.register("test.downstream", lambda call: (ran.append(1), call.arrays[0] * 2)[1], lambda inputs, _: inputs[0])
    result = call(rt, "test.later", rt.tensor(X), rt.tensor(X))
    after = call(rt, "test.downstream", result.copy())
    assert result.metadata is after.metadata is TYPE and result.is_pending and not ran
    thread = threading.Thread(target=work.pop())
    thread.start()
    assert np.array_equal(after.get(), 4 * X)
    thread.join()


def test_an_operation_never_writes_its_inputs(rt):
    def writing(call):
        call.arrays[0][0, 0] = 9
        return call.arrays[0]

    rt.register("test.writing", writing)
    x = rt.tensor(X, copy=True)
    assert "read-only" in call(rt, "test.writing", x.copy()).error.message and np.array_equal(x.get(), X)


def test_operations_may_synchronise_in_other_ways_too(rt):
    lock, inside, most = threading.Lock(), [], []

    def careful(call):
        with lock:
            inside.append(1)
            most.append(len(inside))
            inside.pop()
        return call.arrays[0]

    rt.register("test.careful", careful, is_long=True)
    rt.wait(*[rt.run("test.careful", rt.tensor(X)) for _ in range(50)])
    assert most == [1] * 50


# Attributes in calls

def example():
    attributes = OpAttrs()
    attributes.set("f32_attr", 2.0, "f32")
    attributes.set_array("array_attr", [2, 3, 4], "i32")
    attributes.set("str_attr", "str")
    return attributes


@pytest.mark.parametrize("is_long", [False, True])
def test_attributes_outlive_the_call_and_do_not_change_with_the_callers(rt, is_long):
    found, dense = [], np.arange(3)

    def read(call):
        given = call.attributes
        found.append((given.get("f32_attr", "f32"), given.get_array("array_attr", "i32"), given.get("str_attr", "string"),
                      given.get("dense", "dense").tolist(), given.names()))
        return call.arrays[0]

    rt.register("test.read", read, is_long=is_long)
    pending, resolve = TensorHandle.pending()
    attributes = example()
    attributes.set("dense", dense)
    result = call(rt, "test.read", pending, attributes=attributes)
    attributes.set("more", 1)
    dense[:] = 7
    del attributes
    resolve.set(X)
    result.wait()
    assert found == [(2.0, (2, 3, 4), "str", [0, 1, 2], ("array_attr", "dense", "f32_attr", "str_attr"))]


@pytest.fixture
def copies(monkeypatch):
    """Every frozen copy that is made."""
    made, init = [], attributes_module.FrozenOpAttrs.__init__

    def counting(self, entries):
        made.append(self)
        init(self, entries)

    monkeypatch.setattr(attributes_module.FrozenOpAttrs, "__init__", counting)
    return made


def test_a_call_copies_its_attributes_once_and_frozen_ones_never(rt, copies):
    rt.register("test.keep", lambda call: (call.attributes.freeze(), call.arrays[0])[1], is_long=True)
    handler = LoggingOpHandler(rt.get_op_handler("cpu"), lambda line: None)
    attributes = example()
    assert not copies
    call(rt, "test.keep", rt.tensor(X), attributes=attributes, handler=handler).wait()
    assert len(copies) == 1
    frozen = attributes.freeze()
    call(rt, "test.keep", rt.tensor(X), attributes=frozen, handler=handler).wait()
    call(rt, "test.keep", rt.tensor(X), attributes=None, handler=handler).wait()
    assert copies[1:] == [frozen] and frozen.freeze() is frozen and OpAttrs().freeze() is OpAttrs().freeze()


@pytest.mark.parametrize("kind", ["attributes", "frozen"])
def test_both_kinds_of_attributes_are_read_alike(kind):
    attributes = example() if kind == "attributes" else example().freeze()
    assert attributes.get("f32_attr", "f32") == 2.0 and attributes.get_array("array_attr") == (2, 3, 4)
    assert "str_attr" in attributes and "none" not in attributes and len(attributes) == 3
    with pytest.raises(Problem, match="attribute 'str_attr' is string, not f32"):
        attributes.get("str_attr", "f32")


# Types are converted by operations alone

def test_operands_of_different_types_are_an_error_until_one_is_converted(rt):
    numbers, floats = rt.tensor(X.astype(np.int32)), rt.tensor(X)
    for op in ("add", "tosa.add", "matmul", "maximum"):
        assert call(rt, op, numbers.copy(), floats.copy()).error.kind == "type", op
    assert np.array_equal((numbers.astype(np.float32) + floats).get(), 2 * X)
    cast = OpAttrs({"to": np.dtype(np.float32)})
    assert np.array_equal(call(rt, "tosa.add", call(rt, "tosa.cast", numbers, attributes=cast), floats).get(), 2 * X)


def test_a_handle_that_is_ready_keeps_its_type_and_contents(rt):
    numbers = rt.tensor(X.astype(np.int32))
    converted = numbers.astype(np.float32)
    assert numbers.dtype == np.int32 and converted.dtype == np.float32 and np.array_equal(numbers.get(), X)


# Effects

@pytest.mark.parametrize("order", ["chain first", "argument first"])
def test_an_operation_with_a_chain_runs_when_chain_and_arguments_are_there(rt, order):
    ran = []
    rt.register("test.effect", lambda call: (ran.append(call.arrays[0].tolist()), ())[1], side_effect=True)
    handle, resolve = TensorHandle.pending()
    chain, begin = Chain.pending()
    out = rt.execute("test.effect", "cpu", None, [handle], None, [], chain)
    steps = [begin.set, lambda: resolve.set(X)]
    first, second = steps if order == "chain first" else steps[::-1]
    first()
    assert out.is_pending and not ran
    second()
    out.wait()
    assert out.is_ready and ran == [X.tolist()]


def test_the_chain_of_an_effect_is_ready_when_it_is_done(rt):
    done = []
    rt.register("test.effect", lambda call: (done.append(1), ())[1], side_effect=True, is_long=True)
    out = rt.execute("test.effect", "cpu", None, [], None, [], Chain.ready())
    seen = []
    out.then(lambda chain: seen.append((list(done), chain.is_ready)))
    out.wait()
    rt.wait()
    assert seen == [([1], True)]


def test_a_pure_operation_neither_needs_nor_gives_a_chain(rt):
    results = [None]
    assert rt.execute("tosa.abs", "cpu", None, [rt.tensor(X)], None, results) is None and results[0].is_ready
