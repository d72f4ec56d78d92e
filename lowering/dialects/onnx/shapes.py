"""Shapes and operators on numbers alone: Shape, Size, Range, EyeLike, NonZero, Unique."""
from __future__ import annotations

import numpy as np

from ....runtime.limits import check_tensor
from ...graph.graph import Value
from ...graph.types import BY_STORAGE, Array
from ..data import Datum
from ..emitter import Emitter, known
from .element_types import element_of
from .gathering import depends
from .offsets import origins
from .operator import Operator, operator


@operator("Shape")
class Shape(Operator):
    start: int = 0
    end: int | None = None

    def reference(self, x: Array) -> Array:
        return np.array(np.shape(x)[self.start:self.end], np.int64)

    def lower(self, e: Emitter, x: Value) -> Value:
        return e.constant(np.array(x.tensor.dims[self.start:self.end], np.int64))


@operator("Size")
class Size(Operator):
    def reference(self, x: Array) -> Array:
        return np.array(np.size(x), np.int64)

    def lower(self, e: Emitter, x: Value) -> Value:
        return e.constant(np.array(x.tensor.size, np.int64))


@operator("Range")
class Range(Operator):
    def reference(self, start: Array, limit: Array, delta: Array) -> Array:
        first, last, step = (np.reshape(a, ()) for a in (start, limit, delta))
        count = max(int(np.ceil((last.astype(np.float64) - first) / step)), 0)
        check_tensor(count * start.dtype.itemsize)
        return np.asarray(first + np.arange(count).astype(start.dtype) * step, start.dtype)

    def lower(self, e: Emitter, start: Value, limit: Value, delta: Value) -> Value:
        if any(v.constant is None for v in (start, limit, delta)):
            return self.moving(e, start, limit, delta)
        bounds = [known(v, "a bound").reshape(()) for v in (start, limit, delta)]
        return e.constant(self.reference(*bounds), start.tensor.element)


    def moving(self, e: Emitter, start: Value, limit: Value, delta: Value) -> Value:
        """Emit a range with unknown bounds, which are a known number of steps apart."""
        width = origins(e, limit)[0] - origins(e, start)[0] if start.tensor.element.is_integer else None
        if width is None or delta.constant is None or not delta.constant.item():
            raise depends("how many numbers a range has", "make its bounds constants, or the limit the start plus a constant")
        step, element = int(delta.constant.item()), start.tensor.element
        count = max(-(-width // step), 0)
        check_tensor(count * element.dtype.itemsize)
        steps = e.constant((np.arange(count) * step).astype(element.dtype), element)
        return e.sum(e.reshape(start, (1,)), steps) if count else steps


@operator("EyeLike")
class EyeLike(Operator):
    """Ones along the k-th diagonal, in the shape of another matrix."""
    k: int = 0
    dtype: int | None = None

    def reference(self, x: Array) -> Array:
        dtype = x.dtype if self.dtype is None else element_of(self.dtype).dtype
        rows, columns = x.shape
        return np.eye(rows, columns, k=self.k).astype(dtype)

    def lower(self, e: Emitter, x: Value) -> Value:
        element = x.tensor.element if self.dtype is None else element_of(self.dtype)
        rows, columns = x.tensor.dims
        return e.constant(np.eye(rows, columns, k=self.k).astype(element.dtype), element)


@operator("NonZero")
class NonZero(Operator):
    def reference(self, x: Array) -> Array:
        return np.array(np.nonzero(x if x.ndim else x.reshape(1)), np.int64).reshape(max(x.ndim, 1) if x.ndim else 0, -1)

    def lower(self, e: Emitter, x: Value) -> Value:
        if x.constant is None:
            raise depends("how many elements are not 0", "compute with a mask instead, or make the operand a constant")
        return e.constant(self.reference(x.constant))


@operator("Unique")
class Unique(Operator):
    axis: int | None = None
    sorted: int = 1

    def reference(self, x: Array) -> tuple[Array, ...]:
        values, first, inverse, counts = np.unique(x, True, True, True, axis=self.axis)
        inverse = inverse.reshape(-1)
        if not self.sorted:
            order = np.argsort(first)
            back = np.argsort(order)
            values = np.take(values, order, self.axis if self.axis is not None else 0)
            first, counts, inverse = first[order], counts[order], back[inverse]
        return values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)

    def lower(self, e: Emitter, x: Value) -> tuple[Datum, ...]:
        if x.constant is None:
            raise depends("how many distinct elements there are", "do it outside of the model")
        return tuple(e.constant(a, BY_STORAGE[a.dtype.name]) for a in self.reference(x.constant))
