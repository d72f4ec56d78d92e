"""Operators along one axis: indices of extremes, running sums and products, the k greatest."""
from __future__ import annotations

import math

import numpy as np

from ....runtime.errors import Problem
from ...formulas.layout import reversed_axis
from ...formulas.ordering import moved, ranks
from ...formulas.term import Term
from ...formulas.working_types import working_type
from ...graph.graph import Value
from ...graph.types import I1, I32, I64, Array
from ..emitter import Emitter, axes_of, integers
from .operator import Operator, operator


def axis_of(axis: int, rank: int) -> int:
    """Return an axis, counted from the last one if it is negative."""
    if not -rank <= axis < rank:
        raise Problem(f"axis {axis} is not one of a tensor of rank {rank}", kind="shape")
    return axis % rank


# ---- indices of extremes -------------------------------------------------------------------------------------------------
class Place(Operator):
    """The first index of an extreme, or the last one."""
    axis: int = 0
    keepdims: int = 1
    select_last_index: int = 0

    def reference(self, x: Array) -> Array:
        axis = axis_of(self.axis, x.ndim)
        seen = np.flip(x, axis) if self.select_last_index else x
        found = self.function(seen, axis)
        found = x.shape[axis] - 1 - found if self.select_last_index else found
        return np.asarray(np.expand_dims(found, axis) if self.keepdims else found, np.int64)

    def lower(self, e: Emitter, x: Value) -> Value:
        axis = axis_of(self.axis, x.tensor.rank)
        dims = x.tensor.dims
        if not dims[axis]:
            raise Problem(f"axis {axis} of {x.type} has no element", kind="shape")
        numbers = self.ordered(e, x)
        numbers = reversed_axis(e, numbers, axis) if self.select_last_index else numbers
        found = e("argmax", numbers, axis=axis)
        if self.select_last_index:
            found = e.difference(e.splat(dims[axis] - 1, found), found)
        return e.reshape(e.cast(found, I64), [1 if a == axis else n for a, n in enumerate(dims) if self.keepdims or a != axis])

    def function(self, x: Array, axis: int) -> Array:
        raise NotImplementedError

    def ordered(self, e: Emitter, x: Value) -> Value:
        """Return x in a form that TOSA's argmax takes."""
        element = x.tensor.element
        if element == I1 or element.kind == "unsigned":
            return e.cast(x, I32 if element.bits < 32 else I64)
        return x


@operator("ArgMax")
class ArgMax(Place):
    def function(self, x: Array, axis: int) -> Array:
        return np.argmax(x, axis)


@operator("ArgMin")
class ArgMin(Place):
    def function(self, x: Array, axis: int) -> Array:
        return np.argmin(x, axis)

    def ordered(self, e: Emitter, x: Value) -> Value:
        numbers = super().ordered(e, x)
        return (-Term(e, numbers)).value if numbers.tensor.element.is_float else e("bitwise_not", numbers)


# ---- running sums --------------------------------------------------------------------------------------------------------
class Running(Operator):
    exclusive: int = 0
    reverse: int = 0

    def reference(self, x: Array, axis: Array) -> Array:
        at = axis_of(int(np.asarray(axis).reshape(())), x.ndim)
        seen = np.flip(x, at) if self.reverse else x
        found = self.function(seen, at)
        if self.exclusive:
            first = np.full_like(np.take(found, [0], at), self.neutral())
            found = np.concatenate([first, np.delete(found, -1, at)], at) if x.shape[at] else found
        return np.asarray(np.flip(found, at) if self.reverse else found, x.dtype)

    def lower(self, e: Emitter, x: Value, axis: Value) -> Value:
        at, = axes_of(axis, x.tensor.rank, "the axis")
        element, extent = x.tensor.element, x.tensor.dims[at]
        found = e.cast(x, working_type(element, True, True))
        if not x.tensor.size:
            return x
        if self.exclusive:
            found = moved(e, found, at, 1, self.neutral(), bool(self.reverse))
        distance = 1
        while distance < extent:
            found = self.combined(e, found, moved(e, found, at, distance, self.neutral(), bool(self.reverse)))
            distance *= 2
        return e.cast(found, element)

    def function(self, x: Array, axis: int) -> Array:
        raise NotImplementedError

    def neutral(self) -> int:
        raise NotImplementedError

    def combined(self, e: Emitter, a: Value, b: Value) -> Value:
        raise NotImplementedError


@operator("CumSum")
class CumSum(Running):
    def function(self, x: Array, axis: int) -> Array:
        return np.cumsum(x, axis, dtype=x.dtype)

    def neutral(self) -> int:
        return 0

    def combined(self, e: Emitter, a: Value, b: Value) -> Value:
        return e.sum(a, b)


@operator("CumProd")
class CumProd(Running):
    def function(self, x: Array, axis: int) -> Array:
        return np.cumprod(x, axis, dtype=x.dtype)

    def neutral(self) -> int:
        return 1

    def combined(self, e: Emitter, a: Value, b: Value) -> Value:
        return e.product(a, b)


# ---- the k greatest ------------------------------------------------------------------------------------------------------
@operator("TopK")
class TopK(Operator):
    """The k greatest or least along an axis, in order, equal ones by their indices. `k` was an attribute before version 10."""
    k: int | None = None
    axis: int = -1
    largest: int = 1
    sorted: int = 1

    def reference(self, x: Array, k: Array | None = None) -> tuple[Array, Array]:
        axis, count = axis_of(self.axis, x.ndim), self.count(None if k is None else int(np.asarray(k).reshape(-1)[0]))
        if count > x.shape[axis]:
            raise ValueError(f"axis {axis} has {x.shape[axis]} elements, not {count}")
        if self.largest:  # stable, in reverse order
            last = x.shape[axis] - 1
            order = last - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
        else:
            order = np.argsort(x, axis, kind="stable")
        places = np.take(order, np.arange(count), axis)
        return np.take_along_axis(x, places, axis), places.astype(np.int64)

    def count(self, given: int | None) -> int:
        found = self.k if given is None else given
        if found is None or found < 0:
            raise ValueError(f"k is {found}")
        return found

    def lower(self, e: Emitter, x: Value, k: Value | None = None) -> tuple[Value, Value]:
        axis, dims = axis_of(self.axis, x.tensor.rank), x.tensor.dims
        count = self.count(None if k is None else integers(k, "k")[0])
        if count > dims[axis]:
            raise Problem(f"axis {axis} of {x.type} has no {count} elements", kind="shape")
        order = [*(a for a in range(x.tensor.rank) if a != axis), axis]
        back = [order.index(a) for a in range(x.tensor.rank)]
        rows, extent = math.prod(dims[a] for a in order[:-1]), dims[axis]
        outer = [dims[a] for a in order[:-1]]
        if not rows or not count:
            empty = e.transpose(e.reshape(x, (*outer, count)), back)
            return empty, e.cast(empty, I64)
        flat = e.reshape(e.transpose(x, order), (rows, extent))
        numbers = e.cast(flat, working_type(x.tensor.element, True, True))
        compared = numbers if self.largest else self.opposite(e, numbers)
        rank = ranks(e, compared)
        place = e.constant(np.arange(extent, dtype=np.int32).reshape(1, 1, extent))
        wanted = e.constant(np.arange(count, dtype=np.int32).reshape(1, count, 1))
        here = e("equal", e.reshape(rank, (rows, 1, extent)), wanted)
        places = e.reshape(e("reduce_max", e.select(here, place, e.splat(0, place)), axis=2), (rows, count))
        taken = e("gather", e.reshape(numbers, (rows, extent, 1)), places)
        values = e.cast(e.reshape(taken, (*outer, count)), x.tensor.element)
        return e.transpose(values, back), e.transpose(e.cast(e.reshape(places, (*outer, count)), I64), back)

    def opposite(self, e: Emitter, x: Value) -> Value:
        return (-Term(e, x)).value if x.tensor.element.is_float else e("bitwise_not", x)
