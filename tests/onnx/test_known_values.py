"""Inputs whose values code depends on, and tensors without elements: calls make code for them, `values=` makes constants."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import tosaic

onnx = pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
from onnx import TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

F, I = TensorProto.FLOAT, TensorProto.INT64
Array = np.ndarray


def model_proto(nodes: Sequence[Any], inputs: Mapping[str, tuple[int, Sequence[Any] | None]], outputs: Sequence[str]) -> Any:
    values = [helper.make_tensor_value_info(name, type, shape) for name, (type, shape) in inputs.items()]
    graph = helper.make_graph(list(nodes), "graph", values, [helper.make_empty_tensor_value_info(name) for name in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def agree(model: Any, proto: Any, *arrays: Array) -> None:
    right = ReferenceEvaluator(proto).run(None, dict(zip([v.name for v in proto.graph.input], arrays)))
    found = model(*arrays)
    for a, b in zip(found if isinstance(found, tuple) else (found,), right, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, 1e-5)


X = np.arange(6, dtype=np.float32).reshape(2, 3)
SUM = model_proto([helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)],
                  {"x": (F, ["n", 3]), "axes": (I, [1])}, "y")


def test_code_is_made_for_each_value_that_a_shape_depends_on() -> None:
    model = tosaic.from_onnx(SUM)
    for axes in ([0], [1], [-1], [0]):
        agree(model, SUM, X, np.array(axes))
        agree(model, SUM, X[:1], np.array(axes))


def test_values_may_be_computed_before_they_are_needed() -> None:
    nodes = [helper.make_node("Add", ["n", "n"], ["twice"]), helper.make_node("Cast", ["twice"], ["limit"], to=F),
             helper.make_node("Range", ["from", "limit", "step"], ["y"])]
    proto = model_proto(nodes, {"n": (I, []), "from": (F, []), "step": (F, [])}, "y")
    model = tosaic.from_onnx(proto)
    for n in (1, 4, 2):
        agree(model, proto, np.array(n), np.array(0.5, np.float32), np.array(0.25, np.float32))


def test_a_value_inside_a_subgraph_is_found() -> None:
    ranged = helper.make_graph([helper.make_node("ReduceSum", ["x", "axes"], ["a"], keepdims=0)], "then", [],
                               [helper.make_empty_tensor_value_info("a")])
    kept = helper.make_graph([helper.make_node("ReduceMax", ["x", "axes"], ["b"], keepdims=0)], "else", [],
                             [helper.make_empty_tensor_value_info("b")])
    proto = model_proto([helper.make_node("If", ["c"], ["y"], then_branch=ranged, else_branch=kept)],
                        {"c": (TensorProto.BOOL, []), "x": (F, [2, 3]), "axes": (I, [1])}, "y")
    model = tosaic.from_onnx(proto)
    for c in (True, False):
        agree(model, proto, np.array(c), X, np.array([1]))


def test_an_input_with_many_elements_is_no_value_to_make_code_for() -> None:
    proto = model_proto([helper.make_node("NonZero", ["x"], ["y"])], {"x": (F, [500])}, "y")
    with pytest.raises(tosaic.Problem, match="depends on data"):
        tosaic.from_onnx(proto)(np.ones(500, np.float32))


def test_constants_are_made_of_values() -> None:
    model = tosaic.from_onnx(SUM, values={"axes": [1]}, shapes={"x": (2, 3)})
    assert model.main.input_names == ("x",)
    np.testing.assert_array_equal(model(X), X.sum(1))
    assert model.check([[X]]).passes


@pytest.mark.parametrize(("values", "message"), [
    ({"axis": [1]}, "no input named axis"), ({"axes": np.array([1.5])}, "its value is"), ({"axes": [1, 2]}, "its value is"),
    ({"axes": np.array([1], np.int32)}, "its value is")], ids=["name", "float", "shape", "type"])
def test_a_value_that_an_input_cannot_have_is_a_problem(values: dict[str, Any], message: str) -> None:
    with pytest.raises(tosaic.Problem, match=message):
        tosaic.from_onnx(SUM, values=values)


def test_wrong_arguments_of_such_a_call_are_problems() -> None:
    model = tosaic.from_onnx(SUM)
    with pytest.raises(tosaic.Problem, match="its value is"):
        model(X.astype(np.float64), np.array([1]))
    with pytest.raises(tosaic.Problem, match="missing"):
        model(X)
    with pytest.raises(tosaic.Problem, match="axis 7"):
        model(X, np.array([7]))


# ---- tensors without elements ----------------------------------------------------------------------------------------
def test_a_sum_of_nothing_is_zero() -> None:
    agree(tosaic.from_onnx(SUM), SUM, X[:0], np.array([0]))


def test_outputs_without_elements_stand_among_the_others() -> None:
    nodes = [helper.make_node("Slice", ["x", "five", "six", "one"], ["none"]), helper.make_node("Neg", ["x"], ["y"]),
             helper.make_node("Shape", ["none"], ["shape"])]
    nodes = [*(helper.make_node("Constant", [], [n], value_ints=[v]) for n, v in (("one", 1), ("five", 5), ("six", 6))), *nodes]
    proto = model_proto(nodes, {"x": (F, ["n", 3])}, ["none", "y", "shape"])
    agree(tosaic.from_onnx(proto), proto, X)
    session = tosaic.onnx.InferenceSession(proto.SerializeToString())
    assert session.run(["none"], {"x": X})[0].shape == (2, 0)


def test_an_input_without_elements_is_joined_to_others() -> None:
    nodes = [helper.make_node("Concat", ["past", "x"], ["y"], axis=0)]
    proto = model_proto(nodes, {"past": (F, ["p", 3]), "x": (F, ["n", 3])}, "y")
    model = tosaic.from_onnx(proto)
    agree(model, proto, X[:0], X)
    agree(model, proto, X[:1], X)


def test_what_is_saved_has_no_output_without_elements() -> None:
    proto = model_proto([helper.make_node("Identity", ["x"], ["y"])], {"x": (F, [0, 3])}, "y")
    agree(tosaic.from_onnx(proto), proto, X[:0])
    with pytest.raises(tosaic.Problem, match="no elements"):
        tosaic.from_onnx(proto).main.lower()
