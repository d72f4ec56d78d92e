"""TensorFlow's einsum."""
from __future__ import annotations

from ....formulas.einsum import NamedAxes, check_extents, contracted, ordered, read, summed
from ....graph.foreign import string
from ....graph.graph import Operation, Value
from ...emitter import Emitter
from .constants import result_element
from .table import legalization


@legalization("tf.Einsum")
def einsum(e: Emitter, operation: Operation, *values: Value) -> Value:
    equation = read(string(operation, "equation"), [v.tensor.rank for v in values])
    operands = [NamedAxes(v, names) for v, names in zip(values, equation.operands)]
    check_extents(operands)
    kept = [summed(e, x, {n for other in operands if other is not x for n in other.names} | {*equation.result})
            for x in operands]
    found = kept[0] if len(kept) == 1 else contracted(e, kept[0], kept[1], equation.result)
    return e.cast(ordered(e, found, equation.result), result_element(operation, values[0].tensor.element))
