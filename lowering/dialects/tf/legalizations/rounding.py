"""Floats rounded to integers that stay floats."""
from __future__ import annotations

from ....formulas.rounding import nearest_even
from ....formulas.working_types import evaluated
from ....graph.graph import Operation, Value
from ...emitter import Emitter
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
