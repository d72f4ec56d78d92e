"""Op handlers: cpu, reference, logging, null, and a client's own, in chains."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic import OpAttrs, OpHandler, Problem
from tosaic.jit.stages import Traced
from tosaic.runtime.op_by_op.chain import Chain
from tosaic.runtime.op_by_op.handle import TensorHandle
from tosaic.runtime.op_by_op.handler import NullOpHandler
from tosaic.runtime.op_by_op.logging_handler import LoggingOpHandler

X = np.arange(3, dtype=np.int32).reshape(1, 3)


def call(rt, op, *arguments, handler="cpu", **attributes):
    found = [None]
    rt.execute(op, handler, None, [rt.tensor(a) for a in arguments], OpAttrs(attributes), found)
    return found[0]


def test_handlers_are_found_by_name(rt):
    mine = OpHandler()
    rt.register_op_handler("mine", mine)
    assert rt.get_op_handler("mine") is mine
    for name in ("cpu", "reference", "null"):
        assert isinstance(rt.get_op_handler(name), OpHandler)
    with pytest.raises(Problem, match="op_handler not found: gpu"):
        rt.get_op_handler("gpu")


def test_the_null_handler_supports_nothing(rt, diagnostics):
    assert call(rt, "tosa.add", X, X, handler="null").error.message == "tosa.add was not supported by NullOpHandler"
    assert len(diagnostics) == 1


def test_an_unknown_operation_falls_through_to_the_null_handler(rt):
    assert call(rt, "no.such", X).error.message == "no.such was not supported by NullOpHandler"


@pytest.mark.parametrize("handler", ["cpu", "reference"])
def test_both_handlers_run_operators(rt, handler):
    assert np.array_equal(call(rt, "tosa.add", X, X, handler=handler).get(), 2 * X)
    assert np.array_equal(call(rt, "sum", X, handler=handler, axis=1).get(), X.sum(1))


@pytest.fixture
def compiled(monkeypatch):
    """The graphs of which native code is made."""
    made, compile = [], Traced.compile
    monkeypatch.setattr(Traced, "compile", lambda self: (made.append(self.name), compile(self))[1])
    return made


def test_the_cpu_makes_native_code(rt, compiled):
    for _ in range(2):
        assert np.array_equal(call(rt, "tosa.add", X, X).get(), 2 * X)
    assert len(compiled) == 1


def test_the_reference_makes_no_native_code(rt, compiled):
    rt.use("reference")
    assert np.array_equal((rt.tensor(X) + rt.tensor(X)).get(), 2 * X)
    assert len(rt.cpu.kernels) == 0 and len(rt.get_op_handler("reference").kernels) == 1 and not compiled


def test_a_clients_handler_takes_what_it_knows_and_leaves_the_rest(rt):
    class Doubling(OpHandler):
        def execute(self, invocation):
            if invocation.op_name != "twice":
                return False
            invocation.results[0] = TensorHandle.ready(2 * invocation.arguments[0].get())
            return True

    handler = Doubling(rt.get_op_handler("cpu"))
    assert np.array_equal(call(rt, "twice", X, handler=handler).get(), 2 * X)
    assert np.array_equal(call(rt, "tosa.add", X, X, handler=handler).get(), 2 * X)
    assert call(rt, "thrice", X, handler=handler).is_error


def test_logging_writes_operators_attributes_inputs_and_outputs(rt):
    lines = []
    rt.register("test.create", lambda call: np.full(call.attributes.get_array("shape"), 1, np.int32))
    handler = LoggingOpHandler(rt.get_op_handler("cpu"), lines.append, sync_log_results=True)
    call(rt, "test.create", handler=handler, shape=[1, 3], name="x")
    call(rt, "tosa.add", X, X, handler=handler)
    assert lines == [
        "[0] dispatch 'test.create' 0 argument(s), 1 result(s), OpAttrs contains 2 entries:",
        "  'name' type=STRING value=x",
        "  'shape' type=I64 value=[1, 3]",
        "Outputs for [0]: 'test.create':",
        "  Output for [0] tensor 0: DenseHostTensor dtype = i32, shape = [1, 3], values = [1, 1, 1]",
        "[1] dispatch 'tosa.add' 2 argument(s), 1 result(s), no attributes",
        "Inputs for [1]: 'tosa.add':",
        "  Input for [1] tensor 0: DenseHostTensor dtype = i32, shape = [1, 3], values = [0, 1, 2]",
        "  Input for [1] tensor 1: DenseHostTensor dtype = i32, shape = [1, 3], values = [0, 1, 2]",
        "Outputs for [1]: 'tosa.add':",
        "  Output for [1] tensor 0: DenseHostTensor dtype = i32, shape = [1, 3], values = [0, 2, 4]"]


def test_logging_of_pending_inputs_comes_when_they_are_there(rt):
    lines = []
    handler = LoggingOpHandler(rt.get_op_handler("cpu"), lines.append)
    pending, resolve = TensorHandle.pending()
    results = [None]
    rt.execute("tosa.abs", handler, None, [pending], None, results)
    assert len(lines) == 1
    resolve.set(X)
    results[0].wait()
    assert lines[1:] == ["Inputs for [0]: 'tosa.abs':",
                         "  Input for [0] tensor 0: DenseHostTensor dtype = i32, shape = [1, 3], values = [0, 1, 2]"]


def test_a_registered_operation_comes_before_the_compiled_one_of_its_name(rt):
    x = rt.tensor(X)
    assert np.array_equal((x + x).get(), 2 * X)
    rt.register("add", lambda call: call.arrays[0] * 100)
    assert np.array_equal((x + x).get(), 100 * X)


def test_fallbacks_end(rt):
    results = [None]
    rt.execute("x", NullOpHandler(), None, [], None, results)
    assert results[0].is_error


@pytest.mark.parametrize("execute, message", [
    (lambda self, invocation: 1 / 0, "the handler of an.op failed: ZeroDivisionError: division by zero"),
    (lambda self, invocation: False, "an.op was not supported by any handler"),
    (lambda self, invocation: True, "the handler of an.op has left a result or the chain out")])
def test_a_handler_that_does_not_do_its_work_makes_errors(rt, diagnostics, execute, message):
    handler = type("Careless", (OpHandler,), {"execute": execute})()
    arguments, results = [rt.tensor(X)], [None, None]
    out = rt.execute("an.op", handler, "here", arguments, None, results, Chain.ready())
    assert arguments == [None] and results[0].error is results[1].error is out.error
    assert out.error.message == message and [d.location for d in diagnostics] == ["here"]
