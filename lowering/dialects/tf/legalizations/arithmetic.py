"""Arithmetic and comparisons, element by element, with TensorFlow's broadcasting."""
from __future__ import annotations

from functools import reduce

from ....graph.graph import Operation, Value
from .constants import result_element
from .emitter import Emitter
from .table import LEGALIZATIONS, legalization

BINARY = {"Sub": "sub", "Maximum": "maximum", "Minimum": "minimum", "Equal": "equal", "Greater": "greater",
          "GreaterEqual": "greater_equal", "LogicalAnd": "logical_and", "LogicalOr": "logical_or"}
"""Operators of TOSA that mean the same."""


def binary(name: str) -> None:
    def emit(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
        return e.arithmetic(BINARY[name], x, y)
    LEGALIZATIONS[f"tf.{name}"] = emit


for name in BINARY:
    binary(name)


@legalization("tf.AddV2", "tf.Add")
def add(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    return e.sum(x, y)


@legalization("tf.AddN")
def add_n(e: Emitter, operation: Operation, *values: Value) -> Value:
    return reduce(e.sum, values)


@legalization("tf.Mul")
def mul(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    return e.product(x, y)


@legalization("tf.Less")
def less(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    return e.arithmetic("greater", y, x)


@legalization("tf.LessEqual")
def less_equal(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    return e.arithmetic("greater_equal", y, x)


@legalization("tf.NotEqual")
def not_equal(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    return e("logical_not", e.arithmetic("equal", x, y))


@legalization("tf.LogicalNot")
def logical_not(e: Emitter, operation: Operation, x: Value) -> Value:
    return e("logical_not", x)


@legalization("tf.Neg")
def negate(e: Emitter, operation: Operation, x: Value) -> Value:
    return e.difference(e.splat(0, x), x) if x.tensor.element.is_integer else e.product(x, e.splat(-1, x))


@legalization("tf.Tanh")
def tanh(e: Emitter, operation: Operation, x: Value) -> Value:
    return e("tanh", x)


@legalization("tf.Cast")
def cast(e: Emitter, operation: Operation, x: Value) -> Value:
    return e.cast(x, result_element(operation))
