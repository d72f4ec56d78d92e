"""Faults in what operations of TensorFlow become: 44 legalizations, each wrong in a way in which one is written wrong."""
from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.dialects.tf.legalizations import LEGALIZATIONS
from tosaic.lowering.graph.graph import Operation, Value
from tosaic.lowering.graph.types import F32, I64, Array
from tosaic.lowering.text.attributes import Number

from ...tensorflow.legalized import Graph
from .fault import Fault, Patch, Subject, numbers

Legalization = Callable[..., Any]
Change = Callable[[Legalization], Legalization]
X, Y = numbers(2, 3, 4), numbers(2, 3, 4, seed=1)
IMAGE = numbers(1, 6, 6, 2) / np.float32(9)
INTEGERS, DIVISORS = numbers(12, dtype=np.int32), np.array([3, -2, 5, 7, -3, 4, 2, -5, 6, 1, 3, -7], np.int32)
HALVES = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.25, 3.7, -2.2], np.float32)
CONV = dict(strides=(1, 1, 1, 1), padding='"SAME"')


# ---- changes of a legalization -----------------------------------------------------------------------------------------
def swapped(found: Legalization) -> Legalization:
    """The first two operands change places."""
    return functools.wraps(found)(lambda e, operation, x, y, *rest: found(e, operation, y, x, *rest))


def of_others(name: str) -> Change:
    """It is what another operation is."""
    return lambda found: LEGALIZATIONS["tf." + name]


def first_alone(found: Legalization) -> Legalization:
    """What comes after the first operand is lost."""
    return functools.wraps(found)(lambda e, operation, x, *rest: x)


def with_property(name: str, value: Any) -> Change:
    """An attribute is read wrong."""
    def change(found: Legalization) -> Legalization:
        def wrong(e: Any, operation: Operation, *operands: Any) -> Any:
            properties: Any = {**(operation.op.properties or {}), name: value}  # type: ignore[attr-defined]
            op = type(operation.op)(spelling=operation.op.spelling, properties=properties)  # type: ignore[attr-defined, call-arg]
            return found(e, replace(operation, op=op), *operands)
        return functools.wraps(found)(wrong)
    return change


def with_operand(number: int, made: Callable[[Array], Array]) -> Change:
    """A constant operand is read wrong."""
    def change(found: Legalization) -> Legalization:
        def wrong(e: Any, operation: Operation, *operands: Any) -> Any:
            given = list(operands)
            given[number] = e.constant(made(given[number].constant))
            return found(e, operation, *given)
        return functools.wraps(found)(wrong)
    return change


def plus(number: float) -> Change:
    """The result is a little too much."""
    return then(lambda e, x: e.sum(x, e.constant(np.array(number, x.tensor.element.dtype))))


def then(more: Callable[[Any, Value], Value]) -> Change:
    """Something is done to the first result."""
    def change(found: Legalization) -> Legalization:
        def wrong(e: Any, operation: Operation, *operands: Any) -> Any:
            results = found(e, operation, *operands)
            return (more(e, results[0]), *results[1:]) if isinstance(results, tuple) else more(e, results)
        return functools.wraps(found)(wrong)
    return change


def to_nearest(found: Legalization) -> Legalization:
    """A conversion to integers rounds, as TOSA's does."""
    def wrong(e: Any, operation: Operation, x: Value) -> Any:
        return found(e, operation, e("floor", e.sum(x, e.constant(np.array(0.5, np.float32)))))
    return functools.wraps(found)(wrong)


def halves_up(found: Legalization) -> Legalization:
    """Halves go up, where they go to even numbers."""
    def wrong(e: Any, operation: Operation, x: Value) -> Any:
        return e("floor", e.sum(x, e.constant(np.array(0.5, np.float32))))
    return functools.wraps(found)(wrong)


# ---- models ------------------------------------------------------------------------------------------------------------
def model(make: Callable[[Graph], Any]) -> Callable[[], Subject]:
    """A graph whose operation in question is between others; loaded as a user's text."""
    def subject() -> Subject:
        import tosaic
        graph = Graph()
        results = make(graph)
        source = graph.text(*(results if isinstance(results, list) else [results]))
        return Subject(lambda: tosaic.load(source, name="planted.mlir"), [graph.arguments])
    return subject


def binary(name: str, x: Array = X, y: Array = Y, result: str = "") -> Callable[[Graph], Any]:
    def make(g: Graph) -> Any:
        a, b = g("Identity", g.argument(x)), g.argument(y)
        return g("Identity", g(name, a, b, result=result), result=result)
    return make


def unary(name: str, x: Array = X, result: str = "", **attributes: Any) -> Callable[[Graph], Any]:
    return lambda g: g(name, g("Neg", g.argument(x)), result=result, **attributes)


def reduced(name: str, *axes: int, **attributes: Any) -> Callable[[Graph], Any]:
    return lambda g: g("Neg", g(name, g("Neg", g.argument(X)), g.integers(*axes), **attributes))


def convolution(g: Graph, **attributes: Any) -> Any:
    return g("Relu", g("Conv2D", g.argument(IMAGE), g.constant(numbers(3, 3, 2, 3)), **{**CONV, **attributes}))


def depthwise(g: Graph) -> Any:
    return g("DepthwiseConv2dNative", g.argument(IMAGE), g.constant(numbers(3, 3, 2, 2)), **CONV)


def product(g: Graph) -> Any:
    return g("MatMul", g.argument(numbers(3, 3)), g.constant(numbers(3, 3, seed=2)), transpose_a=False, transpose_b=True)


def normalized(g: Graph) -> Any:
    ones = g.constant(np.array([1.0, 2.0], np.float32)), g.constant(np.array([0.5, -1.0], np.float32))
    moments = g.constant(np.array([0.25, 0.75], np.float32)), g.constant(np.array([2.0, 3.0], np.float32))
    return g("FusedBatchNormV3", g.argument(IMAGE), *ones, *moments, result=["tensor<*xf32>"] * 6, epsilon="1.0e-3 : f32",
             is_training=False)[0]


BOOL, I32 = "tensor<*xi1>", "tensor<*xi32>"


def row(what: str, operation: str, change: Change, make: Callable[[Graph], Any]) -> Fault:
    def patch(planted: pytest.MonkeyPatch) -> None:
        planted.setitem(LEGALIZATIONS, "tf." + operation, change(LEGALIZATIONS["tf." + operation]))
    plant: Patch = patch
    return Fault(f"tf.{operation}: {what}", "legalization", plant, model(make), f"tf.{operation} ")


def integer(*values: int) -> Any:
    found = tuple(Number(v, I64) for v in values)
    return found if len(found) > 1 else found[0]


TIES = np.array([1.0, 2.0, 3.0, 2.0], np.float32), np.array([1.0, 3.0, 2.0, 2.0], np.float32)
FLAGS = np.array([True, False, True, False]), np.array([True, True, False, False])

FAULTS = (
    row("operands swapped", "Sub", swapped, binary("Sub")),
    row("operands swapped", "RealDiv", swapped, binary("RealDiv")),
    row("operands swapped", "FloorDiv", swapped, binary("FloorDiv", INTEGERS, DIVISORS)),
    row("operands swapped", "Pow", swapped, binary("Pow", np.abs(X) + 1, Y / 8)),
    row("operands swapped", "SquaredDifference", first_alone, binary("SquaredDifference")),
    row("operands swapped", "Atan2", swapped, binary("Atan2")),
    row("rounds toward zero", "FloorDiv", of_others("TruncateDiv"), binary("FloorDiv", INTEGERS, DIVISORS)),
    row("sign of the dividend", "FloorMod", of_others("TruncateMod"), binary("FloorMod", INTEGERS, DIVISORS)),
    row("the other bound", "Maximum", of_others("Minimum"), binary("Maximum")),
    row("product", "AddV2", of_others("Mul"), binary("AddV2")),
    row("equal numbers are less", "Less", of_others("LessEqual"), binary("Less", *TIES, result=BOOL)),
    row("equal numbers are not", "GreaterEqual", of_others("Greater"), binary("GreaterEqual", *TIES, result=BOOL)),
    row("negated", "Equal", of_others("NotEqual"), binary("Equal", *TIES, result=BOOL)),
    row("or", "LogicalAnd", of_others("LogicalOr"), binary("LogicalAnd", *FLAGS, result=BOOL)),
    row("branches swapped", "SelectV2",
        lambda found: functools.wraps(found)(lambda e, o, c, x, y: found(e, o, c, y, x)),
        lambda g: g("Neg", g("SelectV2", g.argument(FLAGS[0]), g.argument(TIES[0]), g.argument(TIES[1]),
                             result="tensor<*xf32>"))),
    row("not negated", "Neg", first_alone, unary("Neg")),
    row("halves go up", "Round", halves_up, lambda g: g("Neg", g("Round", g.argument(HALVES)))),
    row("rounds up", "Floor", of_others("Ceil"), unary("Floor", HALVES)),
    row("no bound of 6", "Relu6", of_others("Relu"), unary("Relu6")),
    row("a slope of 0", "LeakyRelu", of_others("Relu"), unary("LeakyRelu", alpha="0.2 : f32")),
    row("without the difference", "Expm1", of_others("Exp"), unary("Expm1", HALVES)),
    row("of the number itself", "Log1p", of_others("Log"), lambda g: g("Log1p", g.argument(np.abs(X)))),
    row("not inverted", "Rsqrt", of_others("Sqrt"), lambda g: g("Rsqrt", g.argument(np.abs(X)))),
    row("off by a thousandth", "Tanh", plus(1e-3), unary("Tanh")),
    row("without the logarithm", "LogSoftmax", of_others("Softmax"), unary("LogSoftmax")),
    row("rounds to nearest", "Cast", to_nearest, lambda g: g("Cast", g.argument(HALVES), result=I32)),
    row("the wrong axis", "Sum", with_operand(1, lambda axes: axes - 1), reduced("Sum", 2, keep_dims=True)),
    row("a sum", "Mean", of_others("Sum"), reduced("Mean", 1)),
    row("starts at 0", "Max", then(lambda e, x: e("maximum", x, e.zeros(x.tensor))),
        lambda g: g("Max", g.argument(-np.abs(X) - 1), g.integers(1))),
    row("starts at 0", "Prod", then(lambda e, x: e.product(x, e.constant(np.zeros((), np.float32)))), reduced("Prod", 0)),
    row("any", "All", of_others("Any"),
        lambda g: g("All", g.argument(np.array([[True, False], [True, True]])), g.integers(1))),
    row("of the least", "ArgMax", of_others("ArgMin"),
        lambda g: g("ArgMax", g.argument(X), g.constant(np.int32(1)), result="tensor<*xi64>")),
    row("the wrong operand transposed", "MatMul", with_property("transpose_b", False), product),
    row("dropped bias", "BiasAdd", first_alone,
        lambda g: g("Relu", g("BiasAdd", g.argument(X), g.constant(np.array([1, -2, 3, 4], np.float32))))),
    row("a stride too many", "Conv2D", with_property("strides", tuple(integer(n) for n in (1, 2, 2, 1))), convolution),
    row("padding left out", "Conv2D", with_property("padding", "VALID"), convolution),
    row("padding on the other side", "Conv2D", then(lambda e, x: e("reverse", x, axis=1)), convolution),
    row("filter transposed", "DepthwiseConv2dNative", with_operand(1, lambda f: np.ascontiguousarray(f.swapaxes(2, 3))),
        depthwise),
    row("an average", "MaxPool", of_others("AvgPool"),
        lambda g: g("MaxPool", g.argument(IMAGE), ksize=(1, 2, 2, 1), strides=(1, 2, 2, 1), padding='"VALID"')),
    row("epsilon is lost", "FusedBatchNormV3", with_property("epsilon", Number(0.5, F32)), normalized),
    row("permutation inverted", "Transpose", with_operand(1, lambda p: np.argsort(p).astype(p.dtype)),
        lambda g: g("Neg", g("Transpose", g.argument(numbers(3, 3, 3)), g.integers(1, 2, 0)))),
    row("the wrong axis", "ConcatV2", with_operand(2, lambda axis: axis - 1),
        lambda g: g("ConcatV2", g.argument(X), g.argument(Y), g.constant(np.int32(1)))),
    row("the wrong axis", "GatherV2", with_operand(2, lambda axis: axis + 1),
        lambda g: g("GatherV2", g.argument(numbers(4, 4)), g.integers(2, 0, 1, 3), g.constant(np.int32(0)),
                    batch_dims=0)),
    row("the other end", "Pad", with_operand(1, lambda p: p[:, ::-1].copy()),
        lambda g: g("Pad", g.argument(X), g.constant(np.array([[0, 1], [1, 0], [0, 0]], np.int32)))),
    row("begins one late", "StridedSlice", with_operand(1, lambda b: b + 1),
        lambda g: g("StridedSlice", g.argument(numbers(6)), g.integers(1), g.integers(5), g.integers(1))),
    row("the wrong axis", "ReverseV2", with_operand(1, lambda a: a - 1),
        lambda g: g("ReverseV2", g.argument(X), g.integers(1))),
    row("exclusive", "Cumsum", with_property("exclusive", True),
        lambda g: g("Cumsum", g.argument(X), g.constant(np.int32(1)))),
    row("on and off swapped", "OneHot",
        lambda found: functools.wraps(found)(lambda e, o, i, d, on, off: found(e, o, i, d, off, on)),
        lambda g: g("OneHot", g.argument(np.array([0, 2, 1], np.int32)), g.constant(np.int32(3)), g.constant(np.float32(1)),
                    g.constant(np.float32(0)), result="tensor<*xf32>", axis=-1)),
    row("blocks in another order", "SpaceToDepth", then(lambda e, x: e("reverse", x, axis=3)),
        lambda g: g("SpaceToDepth", g.argument(IMAGE), block_size=2)),
    row("corners are not aligned", "ResizeBilinear", with_property("align_corners", False),
        lambda g: g("ResizeBilinear", g.argument(IMAGE), g.constant(np.array([9, 11], np.int32)), align_corners=True,
                    half_pixel_centers=False)),
)
