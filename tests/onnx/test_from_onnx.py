"""ONNX models as users load them: what they compute is what ONNX's reference computes."""
from __future__ import annotations

import io
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.tools.report.page import page
from tosaic.runtime.errors import Position

onnx = pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

Array = np.ndarray
PERCEPTRON = pathlib.Path(__file__).parents[1] / "data" / "onnx" / "perceptron.onnx"


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)


def model_proto(nodes: Sequence[Any], inputs: dict[str, tuple[Any, Sequence[Any] | None]], outputs: Sequence[str],
                weights: dict[str, Array] | None = None, name: str = "graph") -> Any:
    """A model: inputs with element types and extents; the types of outputs are inferred."""
    values = [helper.make_tensor_value_info(key, type, shape) for key, (type, shape) in inputs.items()]
    tensors = [numpy_helper.from_array(array, key) for key, array in (weights or {}).items()]
    graph = helper.make_graph(list(nodes), name, values, [helper.make_empty_tensor_value_info(key) for key in outputs], tensors)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=opsets, ir_version=8))


def agree(found: Any, proto: Any, inputs: dict[str, Array]) -> None:
    """Floats within 1e-5 of the range of each result, all else equal."""
    found = found if isinstance(found, tuple) else (found,)
    for actual, right in zip(found, ReferenceEvaluator(proto).run(None, inputs), strict=True):
        assert (actual.shape, actual.dtype) == (right.shape, right.dtype)
        if right.dtype.kind == "f":
            np.testing.assert_allclose(actual, right, rtol=0, atol=1e-5 * float(np.abs(right).max()))
        else:
            np.testing.assert_array_equal(actual, right)


def network(batch: Any = 2) -> Any:
    """Convolution, relu, pool, gemm, softmax."""
    nodes = [helper.make_node("Conv", ["x", "w1", "b1"], ["c"], pads=[1, 1, 1, 1], name="conv"),
             helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("Flatten", ["p"], ["f"]),
             helper.make_node("Gemm", ["f", "w2", "b2"], ["g"], transB=1),
             helper.make_node("Softmax", ["g"], ["y"], axis=1)]
    weights = {"w1": 0.3 * normal(4, 3, 3, 3), "b1": normal(4), "w2": 0.3 * normal(5, 64), "b2": normal(5)}
    return model_proto(nodes, {"x": (TensorProto.FLOAT, [batch, 3, 8, 8])}, ["y"], weights, "network")


# ---- networks ------------------------------------------------------------------------------------------------------------
def test_a_network_of_convolution_pool_and_gemm() -> None:
    proto, x = network(), normal(2, 3, 8, 8)
    model = tosaic.from_onnx(proto)
    assert model.main.inputs == ("x: tensor<2x3x8x8xf32>",) and model.main.outputs == ("tensor<2x5xf32>",)
    agree(model(x), proto, {"x": x})
    agree(model({"x": x}), proto, {"x": x})


def test_what_pytorch_exports() -> None:
    proto, model = onnx.load(PERCEPTRON), tosaic.from_onnx(PERCEPTRON)
    for batch in (1, 3):
        x = normal(batch, 8)
        agree(model(x), proto, {"x": x})


def test_a_path_bytes_an_open_file_and_a_model_are_the_same(tmp_path: pathlib.Path) -> None:
    proto, x = network(), normal(2, 3, 8, 8)
    path = tmp_path / "network.onnx"
    onnx.save(network(), path, save_as_external_data=True, location="weights.bin", size_threshold=100)
    expected = tosaic.from_onnx(proto)(x)
    np.testing.assert_array_equal(tosaic.from_onnx(path)(x), expected)
    np.testing.assert_array_equal(tosaic.from_onnx(io.BytesIO(network().SerializeToString()))(x), expected)


def test_pytorch_is_not_asked_for() -> None:
    before = "torch" in sys.modules
    tosaic.from_onnx(PERCEPTRON)
    assert ("torch" in sys.modules) == before


FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
OPERATORS = {
    "layer_norm": ([helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"], axis=-1)], {"x": normal(2, 5, 8)},
                   {"s": normal(8), "b": normal(8, seed=1)}),
    "batch_norm": ([helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"])], {"x": normal(2, 3, 4, 4)},
                   {"s": normal(3), "b": normal(3, seed=1), "m": normal(3, seed=2), "v": np.abs(normal(3, seed=3))}),
    "choose": ([helper.make_node("Where", ["c", "x", "z"], ["y"]), helper.make_node("ArgMax", ["x"], ["i"], axis=1)],
               {"c": normal(3, 4) > 0, "x": normal(3, 4, seed=1)}, {"z": np.zeros(1, np.float32)}),
    "gather": ([helper.make_node("Gather", ["w", "x"], ["y"])], {"x": np.array([[1, 2], [0, 3]], np.int64)},
               {"w": normal(4, 3)}),
    "slices": ([helper.make_node("Split", ["x"], ["a", "b"], axis=1), helper.make_node("Pad", ["a", "p"], ["c"]),
                helper.make_node("Concat", ["c", "b"], ["y"], axis=1)], {"x": normal(2, 6)}, {"p": np.array([0, 1, 0, 1])}),
    "reduce": ([helper.make_node("ReduceMean", ["x"], ["m"], axes=[1]), helper.make_node("Erf", ["m"], ["y"])],
               {"x": normal(3, 7)}, {}),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    nodes, inputs, weights = OPERATORS[name]
    types = {key: (helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for key, array in inputs.items()}
    proto = model_proto(nodes, types, [key for key in ("y", "i") if any(key in node.output for node in nodes)], weights)
    agree(tosaic.from_onnx(proto)(inputs), proto, inputs)


# ---- open extents --------------------------------------------------------------------------------------------------------
def heads() -> Any:
    """A product of heads, whose reshape computes with the batch."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["q"]), helper.make_node("Shape", ["q"], ["s"]),
             helper.make_node("Gather", ["s", "first"], ["batch"]),
             helper.make_node("Concat", ["batch", "rest"], ["to"], axis=0),
             helper.make_node("Reshape", ["q", "to"], ["h"]), helper.make_node("Transpose", ["h"], ["t"], perm=[0, 2, 1, 3]),
             helper.make_node("Transpose", ["h"], ["u"], perm=[0, 2, 3, 1]), helper.make_node("MatMul", ["t", "u"], ["p"]),
             helper.make_node("Softmax", ["p"], ["y"], axis=-1)]
    weights = {"w": normal(8, 8), "first": np.array([0]), "rest": np.array([5, 2, 4])}
    return model_proto(nodes, {"x": (FLOAT, ["N", 5, 8])}, ["y"], weights)


@pytest.mark.parametrize(("proto", "shape"), [(network("N"), (3, 8, 8)), (heads(), (5, 8))], ids=["convolution", "heads"])
def test_a_batch_that_is_open(proto: Any, shape: tuple[int, ...]) -> None:
    model = tosaic.from_onnx(proto)
    assert model.main.for_any_shape.is_dynamic and model.main.inputs[0].shape == (1, *shape)
    for batch in (1, 3):
        x = normal(batch, *shape)
        agree(model(x), proto, {"x": x})


def test_a_report_says_which_opsets_a_file_imports_and_what_wrote_it() -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "net", [x], [y])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="someone", producer_version="2.1")
    report = tosaic.from_onnx(proto).main.lower().report()
    assert report.made_from == "ONNX, opset ai.onnx 17, com.microsoft 1, from someone 2.1"
    assert report.made_from in str(report) and report.as_dict()["made_from"] == report.made_from
    assert report.made_from in page(report, "net")


def test_shapes_may_be_given() -> None:
    proto, x = network("N"), normal(4, 3, 8, 8)
    model = tosaic.from_onnx(proto, shapes={"x": (4, 3, 8, 8)})
    assert model.main.inputs == ("x: tensor<4x3x8x8xf32>",) and model.main.outputs == ("tensor<4x5xf32>",)
    agree(model(x), proto, {"x": x})


def test_a_name_of_an_extent_is_one_extent() -> None:
    nodes = [helper.make_node("Add", ["a", "in:b"], ["y"])]
    proto = model_proto(nodes, {"a": (FLOAT, ["N", 3]), "in:b": (FLOAT, ["N", 3])}, ["y"])
    model = tosaic.from_onnx(proto, shapes={"a": (2, 3)})
    assert model.main.inputs == ("a: tensor<2x3xf32>", "in:b: tensor<2x3xf32>")
    a, b = normal(2, 3), normal(2, 3, seed=1)
    np.testing.assert_array_equal(model({"in:b": b, "a": a}), a + b)
    assert tosaic.from_onnx(proto, shapes={"N": 5}).main.inputs[1].shape == (5, 3)
    with pytest.raises(tosaic.Problem, match="N is 2 elsewhere, and 4 in the shape of input in:b"):
        tosaic.from_onnx(proto)(a, normal(4, 3))


def test_an_input_without_a_rank_needs_its_shape() -> None:
    proto = model_proto([helper.make_node("Neg", ["x"], ["y"])], {"x": (FLOAT, None)}, ["y"])
    x = normal(2, 3)
    with pytest.raises(tosaic.Problem, match="its shape must be known"):
        tosaic.from_onnx(proto).main.compile()
    np.testing.assert_array_equal(tosaic.from_onnx(proto)(x), -x)
    np.testing.assert_array_equal(tosaic.from_onnx(proto, shapes={"x": (2, 3)})(x), -x)


# ---- what is refused -----------------------------------------------------------------------------------------------------
def refused(model: Any, **options: Any) -> tosaic.Problem:
    with pytest.raises(tosaic.Problem) as caught:
        tosaic.from_onnx(model, **options)
    return caught.value


def one(node: Any, type: Any = FLOAT, shape: Sequence[int] = (2, 3, 3), opset: int = 17) -> Any:
    """A model of one node from `x` to `y`, whose type nobody says."""
    graph = helper.make_graph([node], "graph", [helper.make_tensor_value_info("x", type, shape)],
                              [helper.make_empty_tensor_value_info("y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("own", 1)])


@pytest.mark.parametrize(("node", "message"), [
    pytest.param(helper.make_node("Own", ["x"], ["y"], name="noise", domain="own"), "Own of the domain own is not", id="own"),
    pytest.param(helper.make_node("Nothing", ["x"], ["y"], name="noise"), "operator Nothing is not known", id="nothing"),
    pytest.param(helper.make_node("Neg", ["x"], ["y"], name="noise", unknown=1), "has no attribute unknown", id="attribute"),
    pytest.param(helper.make_node("Add", ["x"], ["y"], name="noise"), "1 operands are not what it takes", id="operands")])
def test_a_node_that_has_no_place_is_named_with_its_operator_version_and_line(node: Any, message: str) -> None:
    with pytest.raises(tosaic.Problem) as caught:
        tosaic.from_onnx(one(node))(normal(2, 3, 3))
    problem = caught.value
    assert message in problem.message and "node noise" in problem.message and "of opset" in problem.message and problem.help
    assert problem.position is not None
    assert isinstance(problem.position, Position) and problem.position.source.text is not None
    line = problem.position.source.text.splitlines()[problem.position.line - 1]
    assert f'"onnx.{"own." if node.domain else ""}{node.op_type}"' in line


@pytest.mark.parametrize("data", [b"", b"garbage", network().SerializeToString()[:200]], ids=["empty", "garbage", "cut_off"])
def test_bytes_that_are_no_model_are_refused(data: bytes, tmp_path: pathlib.Path) -> None:
    (tmp_path / "m.onnx").write_bytes(data)
    for model in (data, tmp_path / "m.onnx"):
        assert "no ONNX model" in refused(model).message


def test_a_file_that_is_not_there_and_something_that_is_no_model_are_refused(tmp_path: pathlib.Path) -> None:
    assert "cannot be read: No such file" in refused(tmp_path / "none.onnx").message
    assert refused(7).kind == "argument"


@pytest.mark.parametrize(("shapes", "message"), [({"z": (1,)}, "no input named z"), ({"x": (1, 3, 8, 8)}, "cannot be of shape"),
                                                 ({"x": (2, 3)}, "cannot be of shape")])
def test_shapes_that_the_model_does_not_allow_are_refused(shapes: Any, message: str) -> None:
    problem = refused(network(), shapes=shapes)
    assert problem.kind == "argument" and message in problem.message and problem.help


# ---- operators of one's own ------------------------------------------------------------------------------------------
def test_an_operator_of_a_domain_of_ones_own_has_the_class_that_a_user_gave_it() -> None:
    import json

    from tosaic.lowering.dialects.onnx.interpret import interpret
    from tosaic.lowering.elements.expression import select

    @tosaic.custom("own", "LeakyStep")
    class LeakyStep(tosaic.Op):
        def slope(self) -> float:
            return float(json.loads(self.implementation_attrs)["slope"])

        def infer(self, x: Any) -> Any:
            return x.type

        def reference(self, x: Array) -> Array:
            return np.where(x < 0, x * np.float32(self.slope()), x)

        def element(self, out: Any, x: Any) -> Any:
            return lambda *index: select(x[index] < 0.0, x[index] * self.slope(), x[index])

    model = tosaic.from_onnx(one(helper.make_node("LeakyStep", ["x"], ["y"], domain="own", slope=0.5)))
    x = normal(2, 3, 3)
    np.testing.assert_array_equal(model(x), np.where(x < 0, x / 2, x))
    np.testing.assert_array_equal(interpret(model.module, "main", [x])[0], model(x))
