"""TensorFlow's einsum."""
from __future__ import annotations

from ....formulas.einsum import einsum
from ....graph.foreign import string
from ....graph.graph import Operation, Value
from ...emitter import Emitter
from .constants import result_element
from .table import legalization


@legalization("tf.Einsum")
def einsum_of(e: Emitter, operation: Operation, *values: Value) -> Value:
    return e.cast(einsum(e, values, string(operation, "equation")), result_element(operation, values[0].tensor.element))
