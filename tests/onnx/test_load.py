"""Models that cannot be called are refused by `load`, by the operator's name, whether their shapes are known or open; operands
that only a call brings, a constant or `values=` are taken alike."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tosaic

onnx = pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

F, I = TensorProto.FLOAT, TensorProto.INT64
value, node = helper.make_tensor_value_info, helper.make_node


def proto(nodes: list[Any], inputs: list[Any], constants: dict[str, Any] | None = None) -> Any:
    weights = [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("y")], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)],
                             ir_version=8)


def in_loop(inner: Any) -> Any:
    body = helper.make_graph([inner, node("Identity", ["c"], ["d"])], "body",
                             [value("i", I, []), value("c", TensorProto.BOOL, [])],
                             [value("d", TensorProto.BOOL, []), value("s", F, ["n", 3])])
    return node("Loop", ["count", ""], ["y"], body=body)


BAD: dict[str, Callable[[], Any]] = {
    "Nonsense": lambda: [node("Nonsense", ["x"], ["y"])],
    "Scaler": lambda: [node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.0], scale=[1.0])],
    "Abs": lambda: [node("Abs", ["x"], ["y"], alpha=1.0)],
    "Unheard": lambda: [node("Relu", ["x"], ["r"]), node("Unheard", ["r"], ["q"]), node("Neg", ["q"], ["y"])],
}


@pytest.mark.parametrize("shape", [(2, 3), ("n", 3), ("n", "m"), (None, 3)])
@pytest.mark.parametrize("name", BAD)
def test_load_refuses_what_the_first_call_would(name: str, shape: Any) -> None:
    model = proto(BAD[name](), [value("x", F, shape)]).SerializeToString()
    for load in (tosaic.load, tosaic.from_onnx):
        with pytest.raises(tosaic.Problem, match=name) as found:
            load(model)
        assert found.value.unsupported or found.value.kind == "attribute"


def test_an_operator_in_a_loop_is_refused_too() -> None:
    made = proto([in_loop(node("Nonsense", ["x"], ["s"]))], [value("x", F, ["n", 3]), value("count", I, [])])
    with pytest.raises(tosaic.Problem, match="Nonsense"):
        tosaic.load(made.SerializeToString())


def test_a_node_that_nobody_needs_and_a_branch_that_is_never_taken_refuse_nothing() -> None:
    dead = proto([node("Nonsense", ["x"], ["z"]), node("Abs", ["x"], ["y"])], [value("x", F, ["n", 3])])
    assert np.array_equal(tosaic.load(dead.SerializeToString())(np.full((2, 3), -1, np.float32)), np.ones((2, 3)))
    branches = {key: helper.make_graph([node(operator, ["x"], ["b"])], key, [], [value("b", F, ["n", 3])])
                for key, operator in (("then_branch", "Abs"), ("else_branch", "Nonsense"))}
    made = proto([node("If", ["c"], ["y"], **branches)], [value("x", F, ["n", 3])], constants={"c": np.array(True)})
    assert np.array_equal(tosaic.load(made.SerializeToString())(np.full((2, 3), -1, np.float32)), np.ones((2, 3)))


# ---- STFT, Resize ----------------------------------------------------------------------------------------------------------
@pytest.mark.sampled(2)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("has_window", [False, True])
def test_stft_takes_a_signal_without_a_last_axis(batch: int, onesided: int, has_window: bool) -> None:
    constants: dict[str, Any] = {"step": np.array(4), "frame": np.array(8)}
    constants |= {"window": np.hanning(8).astype(np.float32)} if has_window else {}
    nodes = [node("STFT", ["x", "step", "window" if has_window else "", "frame"], ["y"], onesided=onesided)]
    x = np.random.default_rng(0).standard_normal((batch, 32)).astype(np.float32)
    model = tosaic.from_onnx(proto(nodes, [value("x", F, [batch, 32])], constants=constants))
    evaluator = ReferenceEvaluator(proto(nodes, [value("x", F, [batch, 32, 1])], constants=constants))
    right = evaluator.run(None, {"x": x[..., None]})
    np.testing.assert_allclose(model(x), right[0], rtol=1e-4, atol=1e-4)
    assert model.check([[x]]).agrees


SCALES = {"up": [1, 1, 2, 2], "down": [1, 1, 0.5, 0.5], "one axis": [1, 1, 1, 3]}


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("given", ["call", "values", "initialiser", "computed"])
def test_resize_takes_scales_from_wherever_they_come(given: str, mode: str) -> None:
    nodes = [node("Resize", ["x", "", "scales"], ["y"], mode=mode)]
    x = np.random.default_rng(0).standard_normal((1, 2, 4, 4)).astype(np.float32)
    for scales in (np.array(s, np.float32) for s in SCALES.values()):
        inputs = [value("x", F, [1, 2, 4, 4]), value("scales", F, [4])]
        right = ReferenceEvaluator(proto(nodes, inputs)).run(None, {"x": x, "scales": scales})[0]
        if given == "call":
            found = tosaic.from_onnx(proto(nodes, inputs))(x, scales)
        elif given == "values":
            found = tosaic.from_onnx(proto(nodes, inputs), values={"scales": scales})(x)
        elif given == "initialiser":
            found = tosaic.from_onnx(proto(nodes, inputs[:1], constants={"scales": scales}))(x)
        else:
            made = [node("Mul", ["half", "two"], ["scales"]), *nodes]
            found = tosaic.from_onnx(proto(made, inputs[:1], constants={"half": scales / 2, "two": np.float32(2)}))(x)
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("given", ["call", "values", "initialiser"])
def test_resize_takes_the_part_that_is_looked_at(given: str) -> None:
    nodes = [node("Resize", ["x", "roi", "", "sizes"], ["y"], mode="linear",
                  coordinate_transformation_mode="tf_crop_and_resize")]
    x = np.random.default_rng(0).standard_normal((1, 1, 4, 4)).astype(np.float32)
    roi, sizes = np.array([0, 0, 0.4, 0.6, 1, 1, 0.6, 0.8], np.float32), np.array([1, 1, 3, 3])
    inputs, constants = [value("x", F, [1, 1, 4, 4]), value("roi", F, [8])], {"sizes": sizes}
    right = ReferenceEvaluator(proto(nodes, inputs, constants=constants)).run(None, {"x": x, "roi": roi})[0]
    if given == "call":
        found = tosaic.from_onnx(proto(nodes, inputs, constants=constants))(x, roi)
    elif given == "values":
        found = tosaic.from_onnx(proto(nodes, inputs, constants=constants), values={"roi": roi})(x)
    else:
        found = tosaic.from_onnx(proto(nodes, inputs[:1], constants={**constants, "roi": roi}))(x)
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)
