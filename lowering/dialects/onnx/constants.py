"""Constants, and operators that forward a value: Constant, ConstantOfShape, Identity."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....runtime.limits import check_tensor
from ...graph.graph import Value
from ...graph.types import BY_STORAGE, Array
from ..data import Datum, Text
from ..emitter import Emitter, integers
from .operator import Floats, Ints, Operator, Strings, operator


@operator("Constant")
class Constant(Operator):
    """A constant from one of its attributes. Readers and interpreters handle tensors of numbers before they get here."""
    value: Any = None
    value_int: int | None = None
    value_ints: Ints | None = None
    value_float: float | None = None
    value_floats: Floats | None = None
    value_string: str | None = None
    value_strings: Strings | None = None
    sparse_value: Any = None

    def data(self) -> Array:
        if self.value_int is not None or self.value_ints is not None:
            return np.array(self.value_int if self.value_ints is None else self.value_ints, np.int64)
        if self.value_float is not None or self.value_floats is not None:
            return np.array(self.value_float if self.value_floats is None else self.value_floats, np.float32)
        if self.value_string is not None or self.value_strings is not None:
            return np.array(self.value_string if self.value_strings is None else list(self.value_strings), object)
        values = getattr(self.value, "values", None)
        if values is None:
            raise ValueError("a constant has one of value, value_int, value_ints, value_float, value_floats, value_string(s)")
        found = np.empty(len(values), object)
        found[:] = [v.decode("utf-8", "surrogateescape") for v in values]
        return found.reshape(self.value.type.shape)

    def reference(self) -> Array:
        return self.data()

    def lower(self, e: Emitter) -> Datum:
        found = self.data()
        return Text(found) if found.dtype == object else e.constant(found)


@operator("ConstantOfShape")
class ConstantOfShape(Operator):
    value: Array = np.zeros(1, np.float32)

    def reference(self, shape: Array) -> Array:
        check_tensor(math.prod(map(int, shape)) * self.value.itemsize)
        return np.full(tuple(shape), self.value.reshape(-1)[0], self.value.dtype)

    def lower(self, e: Emitter, shape: Value) -> Value:
        dims = integers(shape, "the shape")
        one = e.constant(self.value.reshape(()), BY_STORAGE[self.value.dtype.name])
        return e.broadcast_to(one, dims)


@operator("Identity")
class Identity(Operator):
    def reference(self, x: Any) -> Any:
        return x

    def lower(self, e: Emitter, x: Datum) -> Datum:
        return x
