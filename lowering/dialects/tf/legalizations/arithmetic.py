"""Sums, products, signs, bounds and conversions, element by element, with TensorFlow's broadcasting.

Half floats are added and multiplied without widening, because TensorFlow rounds after each operation, too.
"""
from __future__ import annotations

import math
from functools import reduce

from .....runtime.errors import Problem
from ....formulas.rounding import clamp
from ....formulas.rounding import sign as signum
from ....formulas.term import Term, absolute, maximum, minimum, select
from ....graph.foreign import find
from ....graph.graph import Operation, Value
from ....graph.types import F32
from ...emitter import Emitter
from .constants import result_element
from .table import legalization


@legalization("tf.AddV2", "tf.Add")
def add(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    return e.sum(x, y)


@legalization("tf.AddN")
def add_n(e: Emitter, operation: Operation, *values: Value) -> Value:
    return reduce(e.sum, values)


@legalization("tf.Sub")
def subtract(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    return e.difference(x, y)


@legalization("tf.Mul")
def multiply(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    return e.product(x, y)


@legalization("tf.MulNoNan")
def multiply_no_nan(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    """0 where y is 0, even for an infinite x."""
    a, b = Term(e, x), Term(e, y)
    return select(b.equals(0), b.term(0), a * b).value


@legalization("tf.Neg")
def negate(e: Emitter, operation: Operation, x: Value) -> Value:
    return (-Term(e, x)).value


@legalization("tf.Abs")
def magnitude(e: Emitter, operation: Operation, x: Value) -> Value:
    return x if x.tensor.element.kind == "unsigned" else absolute(Term(e, x)).value


@legalization("tf.Sign")
def sign(e: Emitter, operation: Operation, x: Value) -> Value:
    """-1, 0 or 1; a NaN stays."""
    return signum(Term(e, x)).value


@legalization("tf.Square")
def square(e: Emitter, operation: Operation, x: Value) -> Value:
    return e.product(x, x)


@legalization("tf.SquaredDifference")
def squared_difference(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    difference = e.difference(x, y)
    return e.product(difference, difference)


@legalization("tf.Maximum")
def greater_of(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    return maximum(Term(e, x), Term(e, y)).value


@legalization("tf.Minimum")
def lesser_of(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    return minimum(Term(e, x), Term(e, y)).value


@legalization("tf.ClipByValue")
def clip_by_value(e: Emitter, operation: Operation, x: Value, low: Value, high: Value) -> Value:
    """Emit a clamp if the bounds are known numbers; if the lower bound is above the higher one, the higher counts."""
    least, most = (known_number(bound) for bound in (low, high))
    if x.tensor.element.is_float and least is not None and most is not None and least <= most:
        return clamp(Term(e, x), least, most).value
    return minimum(maximum(Term(e, x), Term(e, low)), Term(e, high)).value


def known_number(x: Value) -> float | None:
    """Return the one number of a constant scalar; None if x is something else, or a NaN."""
    if x.constant is None or x.constant.size != 1 or x.tensor.rank:
        return None
    found = float(x.constant.reshape(-1)[0])
    return None if math.isnan(found) else found


@legalization("tf.BiasAdd", "tf.BiasAddV1")
def bias_add(e: Emitter, operation: Operation, x: Value, bias: Value) -> Value:
    """Add a bias along the last axis, or along the second with data_format NCHW."""
    if bias.tensor.rank != 1 or x.tensor.rank < 2:
        raise Problem(f"a bias of type {bias.type} cannot be added to {x.type}: it must have rank 1", kind="shape")
    behind = x.tensor.rank - 2 if str(find(operation, "data_format", "NHWC")).startswith("NC") else 0
    return e.sum(x, e.reshape(bias, (*bias.tensor.dims, *(1,) * behind)))


@legalization("tf.Cast")
def cast(e: Emitter, operation: Operation, x: Value) -> Value:
    """Convert between integers and half floats by way of f32, as in TensorFlow: some integers are rounded twice."""
    own, element = x.tensor.element, result_element(operation, x.tensor.element)
    if own.is_float != element.is_float and any(t.is_float and t.bits < 32 for t in (own, element)):
        x = e.cast(x, F32)
    return e.cast(x, element)
