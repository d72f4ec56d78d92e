"""Faults in the doors of ONNX, .tflite and PyTorch: lowerings of nodes, the rewrite of quantized models into integers, what is
written in place of a converter, and decompositions."""
from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.lowering.dialects.onnx.operator import OPERATORS
from tosaic.lowering.dialects.onnx.operators import operator_of  # noqa: F401  fills the table
from tosaic.lowering.flatbuffer.table_builder import Scalar
from tosaic.lowering.graph.types import Array
from tosaic.lowering.rewrite.onnx import edited_graph
from tosaic.lowering.tflite import assemble, resizes

from ...tflite.files import Graph, Operator, Tensor, constant, file
from .fault import Fault, Patch, Subject, numbers

X = numbers(2, 3, 4)
SIGNALS = numbers(1, 2, 8, 8) / np.float32(7)


# ---- ONNX --------------------------------------------------------------------------------------------------------------
def model(nodes: Callable[[Any], Any], *arrays: Array, opset: int = 17, **weights: Array) -> Callable[[], Subject]:
    """A model of nodes that read x0, x1, ... and weights by name, and make y."""
    def subject() -> Subject:
        onnx = pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
        helper = onnx.helper
        inputs = [helper.make_tensor_value_info(f"x{n}", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                  for n, a in enumerate(arrays)]
        made = [helper.make_node(*one[:3], name=f"n{n}", domain="com.microsoft" if one[0] == "QLinearAdd" else "",
                                 **(one[3] if len(one) > 3 else {})) for n, one in enumerate(nodes)]  # type: ignore[arg-type]
        graph = helper.make_graph(made, "planted", inputs, [helper.make_empty_tensor_value_info("y")],
                                  [onnx.numpy_helper.from_array(np.asarray(w), k) for k, w in weights.items()])
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
        return Subject(lambda: tosaic.from_onnx(helper.make_model(graph, opset_imports=opsets, ir_version=9)), [list(arrays)])
    return subject


def lowering(name: str, change: Callable[[Any], Any]) -> Patch:
    def patch(planted: pytest.MonkeyPatch) -> None:
        own = OPERATORS[name]
        planted.setattr(own, "lower", functools.wraps(own.lower)(change(own.lower)))
    return patch


def swapped(found: Any) -> Any:
    return lambda self, e, x, y, *rest: found(self, e, y, x, *rest)


def with_field(name: str, value: Any) -> Callable[[Any], Any]:
    """An attribute is read wrong."""
    def change(found: Any) -> Any:
        def lower(self: Any, e: Any, *operands: Any) -> Any:
            own = getattr(self, name)
            setattr(self, name, value)
            try:
                return found(self, e, *operands)
            finally:
                setattr(self, name, own)
        return lower
    return change


def two_steps(place: int) -> Callable[[Any], Any]:
    """The zero point of the result, which is operand `place`, is two too much."""
    def change(found: Any) -> Any:
        def lower(self: Any, e: Any, *operands: Any) -> Any:
            given = list(operands)
            given[place] = e.constant(given[place].constant + given[place].constant.dtype.type(2), given[place].tensor.element)
            return found(self, e, *given)
        return lower
    return change


def in_rewrite(name: str, place: int) -> Patch:
    """The rewrite into integers writes a zero point that is two too much."""
    def patch(planted: pytest.MonkeyPatch) -> None:
        own = edited_graph.EditedGraph.node

        def node(self: Any, made: str, operands: Any, *rest: Any) -> Any:
            given = list(operands)
            if made == name:
                value = self.constant(given[place])
                given[place] = self.new_constant(value + value.dtype.type(2))
            return own(self, made, tuple(given), *rest)
        planted.setattr(edited_graph.EditedGraph, "node", node)
    return patch


def rolled_table(planted: pytest.MonkeyPatch) -> None:
    """The table of a function of bytes begins one late."""
    own = edited_graph.EditedGraph.new_constant

    def new_constant(self: Any, array: Array, *names: Any) -> Any:
        return own(self, np.roll(array, 1) if names[:1] == ("table",) else array, *names)
    planted.setattr(edited_graph.EditedGraph, "new_constant", new_constant)


S8 = functools.partial(np.asarray, dtype=np.int8)
F = np.float32
KERNEL = np.random.default_rng(3).integers(-60, 60, (3, 2, 3, 3)).astype(np.int8)
STORED = np.random.default_rng(4).integers(-60, 60, (1, 2, 8, 8)).astype(np.int8)
STEPS = dict(s=F(0.05), z=S8(3), ws=F(0.01), wz=S8(0), t=F(0.25), u=S8(-4))
CONV = [("QLinearConv", ["x0", "s", "z", "w", "ws", "wz", "t", "u"], ["y"], {"pads": [1, 1, 1, 1]})]
ADD = [("QLinearAdd", ["x0", "s", "z", "x1", "t", "u", "t", "z"], ["y"])]
QDQ = [("QuantizeLinear", ["x0", "s", "z"], ["q"]), ("DequantizeLinear", ["q", "s", "z"], ["d"]),
       ("DequantizeLinear", ["w", "ws", "wz"], ["v"]), ("Conv", ["d", "v"], ["c"], {"pads": [1, 1, 1, 1]}),
       ("QuantizeLinear", ["c", "t", "u"], ["r"]), ("DequantizeLinear", ["r", "t", "u"], ["y"])]
TABLE = [("QuantizeLinear", ["x0", "s", "z"], ["q"]), ("DequantizeLinear", ["q", "s", "z"], ["d"]),
         ("Sigmoid", ["d"], ["c"]), ("QuantizeLinear", ["c", "t", "u"], ["r"]), ("DequantizeLinear", ["r", "t", "u"], ["y"])]
ONNX = (
    Fault("Sub: operands swapped", "ONNX", lowering("Sub", swapped),
          model([("Sub", ["x0", "x1"], ["a"]), ("Neg", ["a"], ["y"])], X, numbers(2, 3, 4, seed=1)), "Sub"),
    Fault("Gather: the wrong axis", "ONNX", lowering("Gather", with_field("axis", 1)),
          model([("Gather", ["x0", "i"], ["y"], {"axis": 0})], numbers(4, 4), i=np.array([2, 0, 1, 3])), "Gather"),
    Fault("Softmax: the wrong axis", "ONNX", lowering("Softmax", with_field("axis", 1)),
          model([("Relu", ["x0"], ["a"]), ("Softmax", ["a"], ["y"], {"axis": -1})], X), "Softmax"),
    Fault("Gemm: a factor is lost", "ONNX", lowering("Gemm", with_field("alpha", 1.0)),
          model([("Gemm", ["x0", "w"], ["y"], {"alpha": 0.5})], numbers(3, 4), w=numbers(4, 2)), "Gemm"),
    Fault("QLinearConv: two steps off", "ONNX", lowering("QLinearConv", two_steps(7)), model(CONV, STORED, w=KERNEL, **STEPS),
          "QLinearConv"),
    Fault("QLinearAdd: two steps off", "ONNX", lowering("com.microsoft.QLinearAdd", two_steps(7)),
          model(ADD, STORED, STORED[..., ::-1].copy(), **STEPS), "QLinearAdd"),
    Fault("a quantized convolution two steps off", "ONNX", in_rewrite("QLinearConv", 7),
          model(QDQ, SIGNALS, w=KERNEL, **STEPS), "QuantizeLinear"),
    Fault("a table begins one late", "ONNX", rolled_table,
          model(TABLE, SIGNALS, **STEPS | dict(t=F(1 / 256), u=S8(-128))), "QuantizeLinear"),
)


# ---- .tflite -----------------------------------------------------------------------------------------------------------
def tflite(graph: Graph, *arrays: Array) -> Callable[[], Subject]:
    def subject() -> Subject:
        pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed (the extra `test`)")
        return Subject(lambda: tosaic.from_tflite(file(graph)), [list(arrays)])
    return subject


def attribute(owner: Any, name: str, made: Callable[[Any], Any]) -> Patch:
    def patch(planted: pytest.MonkeyPatch) -> None:
        planted.setattr(owner, name, made(getattr(owner, name)))
    return patch


def rounding_rows(found: Any) -> Any:
    """Places rounded, as Arm's converter has them."""
    return lambda self: (np.arange(self.new) * self.old / self.new + 0.5).astype(np.int64).clip(0, self.old - 1)


def other_operands(found: Any) -> Any:
    """The operands of an operator of two swapped."""
    return lambda builder, graph, operator, operands, here: found(builder, graph, operator, operands[::-1], here)


def other_zero(found: Any) -> Any:
    """The zero point of the result is two too much."""
    def write(builder: Any, graph: Any, operator: Any, operands: Any, here: Any) -> Any:
        place = operator.outputs[0]
        tensors = list(graph.tensors)
        tensors[place] = replace(tensors[place], zero_point=tensors[place].zero_point + 2)
        return found(builder, replace(graph, tensors=tuple(tensors)), operator, operands, here)
    return write


RESIZED = Graph("x", "y", [Tensor("x", (1, 1, 4, 1)), constant("s", [1, 8], "i32"), Tensor("y", (1, 1, 8, 1))],
                [Operator("RESIZE_NEAREST_NEIGHBOR", "x s", "y", (Scalar("B", 0), Scalar("B", 0)))])
REMAINDER = Graph("x", "y", [Tensor("x", (12,), "i32"), constant("d", [3, -2, 5, 7, -3, 4, 2, -5, 6, 1, 3, -7], "i32"),
                             Tensor("y", (12,), "i32")], [Operator("FLOOR_MOD", "x d", "y")])
STEPPED = dict(type="i8", scale=0.05, zero_point=3)
QUANTIZED = Graph("a b", "y", [Tensor("a", (8,), **STEPPED), Tensor("b", (8,), **STEPPED),
                               Tensor("y", (8,), "i8", scale=0.11, zero_point=-7)],
                  [Operator("DIV", "a b", "y", (Scalar("B", 0),))])
BYTES = np.array([10, -20, 33, 47, -55, 60, 71, -88], np.int8), np.array([50, 60, -70, 80, 90, -100, 110, 120], np.int8)
TFLITE = (
    Fault("a resize rounds places", ".tflite", attribute(resizes.Axis, "rows", rounding_rows),
          tflite(RESIZED, np.arange(4, dtype=np.float32).reshape(1, 1, 4, 1)), "operator 0 RESIZE_NEAREST_NEIGHBOR"),
    Fault("a remainder of the divisor", ".tflite", attribute(assemble, "write_kernel", other_operands),
          tflite(REMAINDER, np.array([7, 8, -9, 10, 11, -12, 13, 14, 15, 16, -17, 18], np.int32)), "operator 0 FLOOR_MOD"),
    Fault("a quantized quotient two steps off", ".tflite", attribute(assemble, "write_quantized_kernel", other_zero),
          tflite(QUANTIZED, *BYTES), "operator 0 DIV"),
)


# ---- PyTorch -----------------------------------------------------------------------------------------------------------
def torch_model(make: Callable[[Any], Any], array: Array) -> Callable[[], Subject]:
    def subject() -> Subject:
        torch = pytest.importorskip("torch", reason="torch is not installed (the extra `torch`)")
        pytest.importorskip("torch_mlir", reason="torch-mlir is not installed (the extra `torch`)")
        return Subject(lambda: tosaic.from_torch(make(torch), torch.from_numpy(array)), [[array]])
    return subject


def pooled(torch: Any) -> Any:
    class Pooled(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return torch.tanh(torch.nn.functional.adaptive_max_pool2d(torch.relu(x), (3, 3)))
    return Pooled()


def decomposed(name: str, change: Callable[[Any], Any]) -> Patch:
    def patch(planted: pytest.MonkeyPatch) -> None:
        from tosaic.jit.models.torch import own_decompositions
        planted.setattr(own_decompositions, name, change(getattr(own_decompositions, name)))
    return patch


TORCH = (
    Fault("a pool of the image upside down", "PyTorch", decomposed("adaptive_max_pool", lambda found: lambda x, size: found(
        x.flip(2), size)), torch_model(pooled, SIGNALS), "aten.adaptive_max_pool2d"),
)
FAULTS = (*ONNX, *TFLITE, *TORCH)
