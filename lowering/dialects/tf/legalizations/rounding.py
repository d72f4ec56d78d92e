"""Floats rounded to integers that stay floats."""
from __future__ import annotations

from ....graph.graph import Operation, Value
from .emitter import Emitter
from .formula import Term, absolute, evaluated, select
from .table import legalization


@legalization("tf.Floor")
def floor(e: Emitter, operation: Operation, x: Value) -> Value:
    return x if x.tensor.element.is_integer else e("floor", x)


@legalization("tf.Ceil")
def ceil(e: Emitter, operation: Operation, x: Value) -> Value:
    return x if x.tensor.element.is_integer else e("ceil", x)


@legalization("tf.Round", "tf.Rint")
def round_to_even(e: Emitter, operation: Operation, x: Value) -> Value:
    return x if x.tensor.element.is_integer else evaluated(nearest_even, e, [x])


def nearest_even(x: Term) -> Term:
    """The nearest integer, ties to the even one. Beside `whole` there is no room for a fraction, so adding it rounds; zeros,
    NaN, and what is an integer already stay as they are."""
    magnitude = absolute(x)
    rounded = (magnitude + x.precision.whole) - x.precision.whole
    has_fraction = (magnitude > 0) & (magnitude < x.precision.whole)
    return select(has_fraction, select(x < 0, -rounded, rounded), x)
