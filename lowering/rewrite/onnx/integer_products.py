"""Convolutions and products of matrices between DequantizeLinear and QuantizeLinear as QLinearConv, QLinearMatMul and QGemm:
products and sums of integers, and one factor. Without a QuantizeLinear after them the sums become floats at once.
"""
from __future__ import annotations

import numpy as np

from ....runtime.records import dataclass
from ...graph.graph import Operation, Value
from ...graph.types import I32, Array, TensorType
from .edited_graph import EditedGraph, Steps, integer, name_of, properties_of, real_number, whole

PRODUCTS = ("Conv", "MatMul", "Gemm")
NEAR = 1e-3
"""Maximum relative difference between a bias' scale and the scale of the products."""


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """Both operands of a product as integers, and its bias in 32 bits (None: no bias)."""
    x: Steps
    w: Steps
    bias: Value | None

    def operands(self, graph: EditedGraph) -> list[Value]:
        """Return the operands in the order of QLinearConv, QLinearMatMul and QGemm."""
        return [self.x.stored, *graph.parameters(self.x), self.w.stored, *graph.parameters(self.w)]


def factors_of(graph: EditedGraph, operation: Operation) -> Factors | None:
    """Return the factors of a product if both operands are bytes and the right one has one scale, or one for each output."""
    x, w = (graph.dequantized(v) for v in operation.operands[:2])
    if x is None or w is None or not x.is_byte or not x.of_tensor or not w.is_byte or not fits(operation, w):
        return None
    if name_of(operation) == "Gemm" and real_number(operation, "beta", 1) != 1:
        return None
    bias = graph.optional(operation, 2)
    if bias is None:
        return Factors(x, w, None)
    stored = stored_bias(graph, bias, x.scale * w.scale * np.float32(real_number(operation, "alpha", 1)))
    return None if stored is None else Factors(x, w, stored)


def fits(operation: Operation, w: Steps) -> bool:
    """True if there is one scale, or if scales differ only from output to output."""
    if w.axis is None:
        return True
    match name_of(operation):
        case "Conv":
            return w.axis == 0
        case "Gemm":
            return w.axis % 2 == (0 if integer(operation, "transB", 0) else 1)
        case _:
            type = w.stored.type
            return w.axis == -1 or (isinstance(type, TensorType) and type.shape is not None and w.axis == len(type.dims) - 1)


def stored_bias(graph: EditedGraph, bias: Value, scale: Array) -> Value | None:
    """Return the integers of a bias whose scale equals that of the products; None if the scales differ."""
    steps = graph.dequantized(bias)
    if steps is None or steps.element != I32 or steps.zero.any():
        return None
    fits = steps.scale.shape in ((), scale.shape) or scale.shape == ()
    return steps.stored if fits and np.allclose(steps.scale, scale, NEAR, 0) else None


# ---- products whose results become bytes ---------------------------------------------------------------------------------
def product(graph: EditedGraph, operation: Operation, to: Steps, result: Value) -> bool:
    """True if a product whose result becomes bytes was rewritten on integers."""
    factors = factors_of(graph, operation)
    if factors is None:
        return False
    operands, wanted = factors.operands(graph), graph.parameters(to)
    bias = () if factors.bias is None else (factors.bias,)
    match name_of(operation):
        case "Conv":
            graph.node("QLinearConv", (*operands, *wanted, *bias), (result,), operation, properties_of(operation))
        case "MatMul":
            graph.node("QLinearMatMul", (*operands, *wanted), (result,), operation)
        case _:
            gemm(graph, operation, operands, bias, wanted, result)
    return True


def gemm(graph: EditedGraph, operation: Operation, operands: list[Value], bias: tuple[Value, ...], wanted: tuple[Value, ...],
         result: Value) -> None:
    given = {k: v for k, v in properties_of(operation).items() if k in ("alpha", "transA", "transB")}
    third = bias or (graph.new_constant(np.zeros(1, np.int32), "bias"),)
    graph.node("com.microsoft.QGemm", (*operands, *third, *wanted), (result,), operation, given)


# ---- products whose results stay floats ----------------------------------------------------------------------------------
def product_in_floats(graph: EditedGraph, operation: Operation) -> bool:
    """True if a product whose result stays a float was rewritten on integers."""
    factors = factors_of(graph, operation)
    if factors is None:
        return False
    result, = operation.results
    match name_of(operation):
        case "MatMul":
            x_scale, x_zero = graph.parameters(factors.x)
            w_scale, w_zero = graph.parameters(factors.w)
            operands = factors.x.stored, factors.w.stored, x_scale, w_scale, x_zero, w_zero
            graph.node("com.microsoft.MatMulIntegerToFloat", operands, (result,), operation)
        case "Gemm":
            gemm(graph, operation, factors.operands(graph), () if factors.bias is None else (factors.bias,), (), result)
        case _:
            return convolution_in_floats(graph, operation, factors)
    return True


def convolution_in_floats(graph: EditedGraph, operation: Operation, factors: Factors) -> bool:
    """Rewrite a convolution of known rank as ConvInteger, the bias, and the factor of each channel."""
    type = factors.w.stored.type
    if not isinstance(type, TensorType) or type.shape is None:
        return False
    apart = (-1, *(1,) * (len(type.dims) - 2))
    zeros = graph.new_constant(factors.x.zero), graph.new_constant(factors.w.zero)
    total = graph.value("total")
    graph.node("ConvInteger", (factors.x.stored, factors.w.stored, *zeros), (total,), operation, properties_of(operation))
    if factors.bias is not None:
        stored = graph.constant(factors.bias)
        if stored is None:
            return False
        biased = graph.value("total")
        graph.node("Add", (total, graph.new_constant(stored.reshape(apart))), (biased,), operation)
        total = biased
    real = graph.value("real")
    graph.node("Cast", (total,), (real,), operation, {"to": whole(1)})
    factor = np.asarray(factors.x.scale * factors.w.scale, np.float32)
    scale = graph.new_constant(factor.reshape(apart) if factor.ndim else factor)
    graph.node("Mul", (real, scale), operation.results, operation)
    return True
