"""Constants, and facts that follow from a tensor's type alone."""
from __future__ import annotations

from typing import Any

import numpy as np

from .....runtime.errors import Problem
from ....graph.foreign import find
from ....graph.graph import Operation, Value
from ....graph.types import I32, ElementType, TensorType
from ...data import Datum, Text
from ...emitter import Emitter
from .complex_numbers import complex_constant
from .table import legalization


def result_element(operation: Operation, default: ElementType = I32, number: int = 0) -> ElementType:
    """Return the declared element type of a result."""
    type = operation.results[number].type
    return type.element if isinstance(type, TensorType) else default


@legalization("tf.Const")
def constant(e: Emitter, operation: Operation) -> Datum:
    value = find(operation, "value")
    array = getattr(value, "array", None)
    if array is None:
        written = getattr(value, "text", "")
        return (complex_constant(e, written) if isinstance(written, str) else None) or Text(value)
    return e.constant(array, result_element(operation))


@legalization("tf.Identity", "tf.StopGradient", "tf.PreventGradient", "tf.Snapshot", "tf.CheckNumerics")
def identity(e: Emitter, operation: Operation, x: Datum, *rest: Datum) -> Datum:
    return x


@legalization("tf.IdentityN")
def identities(e: Emitter, operation: Operation, *values: Datum) -> tuple[Datum, ...]:
    return values


@legalization("tf.NoOp", "tf.ControlTrigger")
def nothing(e: Emitter, operation: Operation, *values: Datum) -> tuple[()]:
    return ()


@legalization("tf.EnsureShape")
def ensure_shape(e: Emitter, operation: Operation, x: Value) -> Value:
    dims: Any = getattr(find(operation, "shape"), "dims", None)
    if dims is not None and not (len(dims) == x.tensor.rank and all(n in (None, -1, m) for n, m in zip(dims, x.tensor.dims))):
        raise Problem(f"a tensor of shape {list(dims)} was promised, it is {x.type}", kind="shape")
    return x


@legalization("tf.Shape")
def shape(e: Emitter, operation: Operation, x: Value) -> Value:
    return e.constant(np.array(x.tensor.dims, result_element(operation).dtype))


@legalization("tf.ShapeN")
def shapes(e: Emitter, operation: Operation, *values: Value) -> tuple[Value, ...]:
    return tuple(e.constant(np.array(x.tensor.dims, result_element(operation, number=i).dtype)) for i, x in enumerate(values))


@legalization("tf.Rank")
def rank(e: Emitter, operation: Operation, x: Value) -> Value:
    return e.constant(np.int32(x.tensor.rank))


@legalization("tf.Size")
def size(e: Emitter, operation: Operation, x: Value) -> Value:
    return e.constant(np.array(x.tensor.size, result_element(operation).dtype))
