"""What torch-mlir imports wrongly or not at all is written otherwise before: every combination of attributes as nodes of one
model, held against ONNX Runtime by the check's own first stage; onnx.reference itself is wrong for some of them.
"""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tosaic

onnx = pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed (the extra `onnx`)")
pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed (the extra `test` has it)")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from tosaic.jit.source import SourceEvaluator  # noqa: E402
from tosaic.jit.stages import prepared  # noqa: E402
from tosaic.jit.tools.check.import_check import ImportCheck, check_import  # noqa: E402

pytestmark = pytest.mark.usefixtures("warm")
Array = np.ndarray[Any, Any]


class Nodes:
    """Nodes of one model, each with an output."""

    def __init__(self, opset: int = 19, **inputs: Array) -> None:
        self.opset, self.inputs = opset, inputs
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.outputs: list[str] = []

    def constant(self, array: Any, dtype: Any = None) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def add(self, kind: str, *operands: str, results: int = 1, **attributes: Any) -> None:
        names = [f"y{len(self.outputs) + n}" for n in range(results)]
        self.nodes.append(helper.make_node(kind, list(operands), names, name=f"{kind}{len(self.nodes)}", **attributes))
        self.outputs += names

    def proto(self, extents: Any = None) -> Any:
        values = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), extents or x.shape)
                  for name, x in self.inputs.items()]
        outputs = [helper.make_empty_tensor_value_info(name) for name in self.outputs]
        graph = helper.make_graph(self.nodes, "graph", values, outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)

    def check(self) -> ImportCheck:
        """The import against the source, without compiling."""
        traced = tosaic.from_onnx(self.proto()).main.trace()
        assert traced.imported is not None
        module = prepared(traced.module)
        found = check_import(traced.imported, module, module.function("main"), [list(self.inputs.values())])
        assert found.evaluator is not None, found.reason
        return found


def numbers(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric")
SHAPES: Sequence[tuple[str, Any]] = (("scales", [1, 1, 2, 2]), ("scales", [1, 1, 0.5, 1.3]), ("sizes", [1, 2, 15, 14]))
"""Of extents 5 and 7: places that are whole or half are so in float32, too, which is what ONNX Runtime computes in."""


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_every_resize_is_onnx_runtimes(mode: str) -> None:
    nodes = Nodes(x=numbers(1, 2, 5, 7))
    roundings = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil") if mode == "nearest" else ("floor",)
    for coordinates, rounding, (kind, values) in itertools.product(COORDINATES, roundings, SHAPES):
        shape = ("", nodes.constant(values, np.float32)) if kind == "scales" else ("", "", nodes.constant(values, np.int64))
        nodes.add("Resize", "x", *shape, mode=mode, coordinate_transformation_mode=coordinates, nearest_mode=rounding)
    found = nodes.check()
    assert found.agrees, str(found.difference)


def test_constant_indices_of_both_signs_count_from_both_ends() -> None:
    x, rng = numbers(4, 5, 3), np.random.default_rng(0)
    nodes = Nodes(x=x)
    for axis in (0, 1, -1):
        extent = x.shape[axis]
        for shape in ((4,), (2, 3), ()):
            nodes.add("Gather", "x", nodes.constant(rng.integers(-extent, extent, shape)), axis=axis)
        nodes.add("GatherElements", "x", nodes.constant(rng.integers(-extent, extent, (2, 3, 3))), axis=axis)
        some = np.stack([rng.permutation(extent)[:2] for _ in range(6)])
        some = np.moveaxis((some - extent * rng.integers(0, 2, some.shape)).reshape(2, 3, 2), -1, axis)
        if all(a <= b for a, b in zip(some.shape, x.shape)):
            nodes.add("ScatterElements", "x", nodes.constant(some), nodes.constant(numbers(*some.shape)), axis=axis)
    nodes.add("GatherND", "x", nodes.constant([[0, -1], [-2, 3], [-4, -5]]))
    nodes.add("GatherND", "x", nodes.constant([[-1], [0], [4], [-5]]), batch_dims=1)
    nodes.add("ScatterND", "x", nodes.constant([[0], [-2]]), nodes.constant(numbers(2, 5, 3)))
    found = nodes.check()
    assert found.agrees, str(found.difference)


def test_an_index_that_is_out_of_range_is_refused() -> None:
    nodes = Nodes(x=numbers(4, 3))
    nodes.add("Gather", "x", nodes.constant([0, -5]))
    with pytest.raises(tosaic.Problem, match="a constant index that is out of range"):
        tosaic.from_onnx(nodes.proto())


def test_every_average_pool_is_onnx_runtimes() -> None:
    nodes = Nodes(x=numbers(1, 2, 6, 7))
    for kernel, stride, pad, ceil, counts in itertools.product((2, 3), (1, 2, 3), (0, 1), (0, 1), (0, 1)):
        if stride <= kernel:
            nodes.add("AveragePool", "x", kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[pad, 0, 0, pad],
                      ceil_mode=ceil, count_include_pad=counts)
    found = nodes.check()
    assert found.agrees, str(found.difference)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_every_loss_is_onnx_runtimes(reduction: str) -> None:
    nodes = Nodes(x=numbers(3, 5), labels=np.array([0, 2, 4]), z=numbers(3, 5, 2), places=np.array([[0, 1], [2, 2], [4, 3]]))
    weights = nodes.constant(np.array([0.9, 0.7, 0.8, 0.6, 0.5], np.float32))
    for (x, labels), weigh, ignored in itertools.product((("x", "labels"), ("z", "places")), (0, 1), ({}, {"ignore_index": 2})):
        for kind in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"):
            nodes.add(kind, x, labels, *[weights] * weigh, reduction=reduction, **ignored)
    found = nodes.check()
    assert found.agrees, str(found.difference)


def test_norms_of_zeros_are_zeros() -> None:
    x = numbers(3, 4)
    x[1] = x[:, 2] = 0
    nodes = Nodes(x=x)
    for p, axis in itertools.product((1, 2), (0, 1, -1)):
        nodes.add("LpNormalization", "x", p=p, axis=axis)
    found = nodes.check()
    assert found.agrees, str(found.difference)


def test_dropout_in_training_and_shifts_by_unknown_numbers_are_refused() -> None:
    nodes = Nodes(x=numbers(40))
    nodes.add("Dropout", "x", nodes.constant(0.5, np.float32), nodes.constant(True))
    with pytest.raises(tosaic.Problem, match="drops random elements in training"):
        tosaic.from_onnx(nodes.proto())
    nodes = Nodes(x=numbers(40))
    nodes.add("Dropout", "x", nodes.constant(0.5, np.float32), nodes.constant(False))
    assert nodes.check().agrees


# ---- old versions, open extents ----------------------------------------------------------------------------------------------
def old(opset: int) -> Nodes:
    """Nodes as files of that version have them."""
    nodes = Nodes(opset, x=numbers(1, 2, 4, 6))
    nodes.add("Softmax", "x", axis=1)
    nodes.add("LogSoftmax", "x", axis=2)
    nodes.add("Dropout", "x")
    nodes.add("ReduceSum", "x", axes=[1, 3])
    nodes.add("ReduceMax", "x", axes=[2], keepdims=0)
    nodes.add("Unsqueeze", "x", axes=[0])
    nodes.add("Squeeze", "x", axes=[0])
    nodes.add("Flatten", "x", axis=2)
    nodes.add("GlobalAveragePool", "x")
    four = [nodes.constant(np.abs(numbers(2)) + 0.5) for _ in range(4)]
    nodes.add("BatchNormalization", "x", *four)
    if opset < 11:
        nodes.add("Pad", "x", pads=[0, 0, 1, 2, 0, 0, 0, 1], value=1.5)
        nodes.add("Clip", "x", min=-0.5, max=0.5)
    if opset < 10:
        nodes.add("Slice", "x", axes=[2, 3], starts=[1, 0], ends=[4, -1])
        nodes.add("Upsample", "x", *([nodes.constant([1, 1, 2, 3], np.float32)] if opset == 9 else []), mode="nearest",
                  **({} if opset == 9 else {"scales": [1.0, 1.0, 2.0, 3.0]}))
    if opset == 10:
        nodes.add("Resize", "x", nodes.constant([1, 1, 2, 1.5], np.float32), mode="nearest")
    return nodes


@pytest.mark.parametrize("opset", [7, 9, 10, 11, 12])
def test_operators_of_old_versions_are_onnx_runtimes(opset: int) -> None:
    found = old(opset).check()
    assert found.agrees, str(found.difference)


def test_an_extent_of_minus_one_is_open() -> None:
    nodes = Nodes(x=numbers(2, 3))
    nodes.add("Relu", "x")
    proto = nodes.proto(extents=("N", 3))
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = -1
    model = tosaic.from_onnx(proto)
    assert model.main.is_dynamic
    for batch in (1, 4):
        x = numbers(batch, 3)
        np.testing.assert_array_equal(model(x), np.maximum(x, 0))


def test_the_first_node_that_differs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from tosaic.jit.models.onnx.from_onnx import OnnxConversion
    right = OnnxConversion.graph

    def wrong(self: Any, shapes: Any, metadata: Any) -> Any:
        def operation(o: Any) -> Any:
            return replace(o, op=replace(o.op, max_val=0.5)) if o.op.name == "tosa.clamp" else o
        module = right(self, shapes, metadata)
        return replace(module, functions=tuple(
            replace(f, body=replace(f.body, operations=tuple(map(operation, f.body.operations)))) for f in module.functions))

    monkeypatch.setattr(OnnxConversion, "graph", wrong)
    x = numbers(2, 5)
    nodes = [helper.make_node("Exp", ["x"], ["a"], name="first"), helper.make_node("Relu", ["a"], ["b"], name="second"),
             helper.make_node("Sigmoid", ["b"], ["y"], name="third")]
    graph = helper.make_graph(nodes, "graph", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, x.shape)])
    found = tosaic.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)).check([[x]])
    assert found.difference is None and not found.agrees
    assert "the first operator that differs: node second, Relu, which gives b" in str(found)


@pytest.mark.parametrize("opset", [11, 13])
def test_without_onnx_runtime_the_reference_judges_versions_that_it_knows(opset: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SourceEvaluator, "is_installed", property(lambda self: self.package != "onnxruntime"))
    nodes = Nodes(opset, x=numbers(2, 3, 4))
    nodes.add("Softmax", "x", axis=1)
    if opset < 13:
        with pytest.raises(AssertionError, match="version 11 by the rules of later ones"):
            nodes.check()
    else:
        found = nodes.check()
        assert found.agrees and str(found.evaluator).startswith("onnx.reference") and "known to be wrong" in found.caveat
