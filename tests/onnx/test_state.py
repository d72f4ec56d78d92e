"""State that a model takes and gives, as variables of the process: a streaming model is called without handing it over."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tosaic

onnx = pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

F = TensorProto.FLOAT
HIDDEN, INPUTS = 6, 4


def cell() -> Any:
    """One step of a GRU, whose state goes in as `h` and comes out as `hn`."""
    g = np.random.default_rng(0)
    weights = {"w": g.standard_normal((1, 3 * HIDDEN, INPUTS)), "r": g.standard_normal((1, 3 * HIDDEN, HIDDEN))}
    nodes = [helper.make_node("GRU", ["x", "w", "r", "", "", "h"], ["", "hn"], hidden_size=HIDDEN),
             helper.make_node("ReduceSum", ["hn", "axes"], ["y"], keepdims=0)]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "cell", [value("h", F, [1, "batch", HIDDEN]), value("x", F, [1, "batch", INPUTS])],
        [value("y", F, ["batch"]), value("hn", F, [1, "batch", HIDDEN])],
        [*(numpy_helper.from_array(a.astype(np.float32), n) for n, a in weights.items()),
         numpy_helper.from_array(np.array([0, 2]), "axes")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def steps(count: int = 5, batch: int = 2) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((count, 1, batch, INPUTS)).astype(np.float32)


def by_hand(first: np.ndarray) -> list[np.ndarray]:
    """What ONNX's evaluator gives, the state handed from call to call."""
    from onnx.reference import ReferenceEvaluator
    evaluator, h, found = ReferenceEvaluator(cell()), first, []
    for x in steps():
        y, h = evaluator.run(None, {"h": h, "x": x})
        found.append(y)
    return found


@pytest.mark.parametrize("first", [0.0, 0.5])
def test_calls_carry_the_state(first: float) -> None:
    start = np.full((1, 2, HIDDEN), first, np.float32)
    given: Any = {"h": "hn"} if not first else {"h": ("hn", start)}
    model = tosaic.from_onnx(cell(), state=given, shapes={"batch": 2}, context=tosaic.Context(f"first {first}"))
    assert [i.name for i in model.main.inputs] == ["x"] and [v.name for v in model.main.variables] == ["h"]
    for x, right in zip(steps(), by_hand(start), strict=True):
        np.testing.assert_allclose(model(x), right, rtol=1e-5, atol=1e-6)


def test_the_state_of_an_open_batch_follows_from_the_input() -> None:
    model = tosaic.from_onnx(cell(), state={"h": "hn"}, context=tosaic.Context("open"))
    for x, right in zip(steps(), by_hand(np.zeros((1, 2, HIDDEN), np.float32)), strict=True):
        np.testing.assert_allclose(model(x), right, rtol=1e-5, atol=1e-6)


def test_two_contexts_have_two_states_and_a_reset_begins_anew() -> None:
    model = tosaic.from_onnx(cell(), state={"h": "hn"}, shapes={"batch": 2})
    one, two = tosaic.Context("one"), tosaic.Context("two")
    first = [model(x, context=one) for x in steps()]
    np.testing.assert_array_equal(first, [model(x, context=two) for x in steps()])
    assert not np.array_equal(model(steps()[0], context=one), first[0])


def test_check_carries_the_state_through_every_engine() -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (the extra `test`)")
    model = tosaic.from_onnx(cell(), state={"h": "hn"}, shapes={"batch": 2})
    found = model.check([[x] for x in steps()])
    assert found.agrees and found.imported is not None and found.imported.evaluator is not None
    assert {each.where for each in found.imported.largest} == {"output 0", "variable @h"}


def test_the_session_leaves_out_what_is_carried() -> None:
    session = tosaic.onnx.InferenceSession(cell(), state={"h": "hn"})
    assert [i.name for i in session.get_inputs()] == ["x"] and [o.name for o in session.get_outputs()] == ["y"]
    y, = session.run(["y"], {"x": steps()[0]})
    np.testing.assert_allclose(y, by_hand(np.zeros((1, 2, HIDDEN), np.float32))[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("state", "message"), [
    ({"g": "hn"}, "no input named g"), ({"h": "g"}, "no output named g"), ({"h": "hn", "x": "hn"}, "becomes two inputs"),
    ({"h": ("hn", np.zeros(3))}, "its first value is of float64"),
    ({"h": ("hn", np.zeros(3, np.float32))}, "its first value"), ({"x": "y"}, "which it becomes")])
def test_a_state_that_the_model_does_not_have_is_a_problem(state: Any, message: str) -> None:
    with pytest.raises(tosaic.Problem, match=message):
        tosaic.from_onnx(cell(), state=state, shapes={"batch": 2}).main.compile()
