"""Elements by index: Gather, GatherElements, GatherND, Scatter, ScatterElements, ScatterND, TensorScatter, OneHot, Compress.

Negative indices count from the end. What is out of range is refused by the reference; compiled code reads the nearest element,
and writes none.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....runtime.errors import Problem
from ...formulas.indexing import UpdatedRows, combined, gathered, row_numbers
from ...formulas.term import Term, select
from ...graph.graph import Value
from ...graph.types import I1, I32, I64, Array, TensorType
from ..emitter import Emitter, known
from .along_axis import axis_of
from .operator import Operator, operator


def wrapped(e: Emitter, indices: Value, extent: int) -> Value:
    """Indices counted from the first place; TOSA's types are i32 and i64."""
    given = e.cast(indices, I32 if indices.tensor.element.bits < 32 or extent < 1 << 31 else I64)
    if given.constant is not None:
        data = given.constant
        return e.constant(np.where(data < 0, data + np.asarray(extent, data.dtype), data), given.tensor.element)
    x = Term(e, given)
    return select(x < 0, x + extent, x).value


def checked(indices: Array, extent: int) -> Array:
    """Indices counted from the first place; an IndexError where one is out of range."""
    if indices.size and (indices.min() < -extent or indices.max() >= extent):
        raise IndexError(f"an index is not in [{-extent}, {extent})")
    return np.asarray(np.where(indices < 0, indices + extent, indices), np.int64)


@operator("Gather")
class Gather(Operator):
    axis: int = 0

    def reference(self, x: Array, indices: Array) -> Array:
        axis = axis_of(self.axis, x.ndim)
        return np.take(x, checked(indices, x.shape[axis]), axis)

    def lower(self, e: Emitter, x: Value, indices: Value) -> Value:
        axis = axis_of(self.axis, x.tensor.rank)
        return taken_anyway(e, x, lambda y: gathered(e, y, wrapped(e, indices, x.tensor.dims[axis]), axis))


def taken_anyway(e: Emitter, x: Value, take: Callable[[Value], Value]) -> Value:
    """A gather of elements of any type: of those that GATHER does not take as integers that hold them."""
    own = x.tensor.element
    wide = I32 if own == I1 else I64 if own.kind == "unsigned" and own.bits >= 32 else I32 if own.kind == "unsigned" else own
    return e.cast(take(e.cast(x, wide)), own)


@operator("GatherElements")
class GatherElements(Operator):
    axis: int = 0

    def reference(self, x: Array, indices: Array) -> Array:
        axis = axis_of(self.axis, x.ndim)
        places: list[Any] = list(np.indices(indices.shape, sparse=True))
        places[axis] = checked(indices, x.shape[axis])
        return np.asarray(x[tuple(places)])

    def lower(self, e: Emitter, x: Value, indices: Value) -> Value:
        axis, dims = axis_of(self.axis, x.tensor.rank), indices.tensor.dims
        if len(dims) != x.tensor.rank:
            raise Problem(f"{x.type} and {indices.type} have other ranks", kind="shape")
        if not indices.tensor.size:
            return e.zeros(TensorType(dims, x.tensor.element))
        for other, n in enumerate(dims):
            if other != axis and n != x.tensor.dims[other]:
                x = e.slice(x, [0] * len(dims), [n if a == other else m for a, m in enumerate(x.tensor.dims)])
        order = [*(a for a in range(len(dims)) if a != axis), axis]
        groups = math.prod(dims[a] for a in order[:-1])
        rows = e.reshape(e.transpose(x, order), (groups, x.tensor.dims[axis], 1))
        places = e.reshape(e.transpose(wrapped(e, indices, x.tensor.dims[axis]), order), (groups, dims[axis]))
        found = taken_anyway(e, rows, lambda r: e("gather", r, places))
        return e.transpose(e.reshape(found, [dims[a] for a in order]), [order.index(a) for a in range(len(dims))])


@operator("GatherND")
class GatherND(Operator):
    batch_dims: int = 0

    def depth(self, dims: Sequence[int], places: Sequence[int]) -> int:
        """How many axes the tuples name behind those of the batch."""
        b = self.batch_dims
        if not 0 <= b < min(len(dims), len(places)) or tuple(dims[:b]) != tuple(places[:b]):
            raise ValueError(f"{list(dims)} and {list(places)} do not have {b} axes of a batch in common")
        if not 1 <= places[-1] <= len(dims) - b:
            raise ValueError(f"tuples of {places[-1]} indices do not name axes of {list(dims)} behind {b}")
        return places[-1]

    def reference(self, x: Array, indices: Array) -> Array:
        b = self.batch_dims
        depth = self.depth(x.shape, indices.shape)
        batch = x.shape[:b]
        data = x.reshape(math.prod(batch), *x.shape[b:])
        places = indices.reshape(math.prod(batch), *indices.shape[b:-1], depth)
        rows = [row[tuple(checked(place[..., k], row.shape[k]) for k in range(depth))] for row, place in zip(data, places)]
        shape = (*indices.shape[:-1], *x.shape[b + depth:])
        return np.asarray(rows, x.dtype).reshape(shape) if math.prod(batch) else np.zeros(shape, x.dtype)

    def lower(self, e: Emitter, x: Value, indices: Value) -> Value:
        b, shape, outer = self.batch_dims, x.tensor.dims, indices.tensor.dims[:-1]
        depth = self.depth(shape, indices.tensor.dims)
        dims = (*outer, *shape[b + depth:])
        if not math.prod(dims):
            return e.zeros(TensorType(dims, x.tensor.element))
        groups, named = math.prod(shape[:b]), shape[b:b + depth]
        numbers = row_numbers(e, by_axis(e, indices, named), named)
        places = e.reshape(numbers, (groups, math.prod(outer) // groups))
        rows = e.reshape(x, (groups, math.prod(named), math.prod(shape[b + depth:])))
        return e.reshape(taken_anyway(e, rows, lambda r: e("gather", r, places)), dims)


def by_axis(e: Emitter, indices: Value, extents: Sequence[int]) -> Value:
    """Tuples of indices into axes of these extents, counted from the first places."""
    given = e.cast(indices, I32)
    x, most = Term(e, given), e.constant(np.array(extents, np.int32).reshape((1,) * (given.tensor.rank - 1) + (-1,)))
    if given.constant is not None:
        return e.constant(np.where(given.constant < 0, given.constant + np.array(extents, np.int32), given.constant))
    return select(x < 0, x + x.of(most), x).value


# ---- scatter -------------------------------------------------------------------------------------------------------------
COMBINE = {"add": "add", "max": "maximum", "min": "minimum"}


def updated(e: Emitter, x: Value, indices: Value, updates: Value, reduction: str) -> Value:
    """x with updates in the places that tuples of indices name, or combined with what is there."""
    if reduction == "none":
        def write(y: Value, new: Value) -> Value:
            rows = UpdatedRows(e, y, indices, new)
            return y if rows.is_empty else rows.result(rows.written())
        own = x.tensor.element
        wide = own if own.is_float or own in (I32, I64) else I64 if own.bits >= 32 else I32
        return e.cast(write(e.cast(x, wide), e.cast(updates, wide)), own)
    if reduction in COMBINE:
        return combined(e, x, indices, updates, COMBINE[reduction])
    if reduction == "mul":
        return multiplied(e, x, indices, updates)
    raise Problem(f"the reduction {reduction} is not known", kind="attribute", help="none, add, mul, max, min")


def multiplied(e: Emitter, x: Value, indices: Value, updates: Value) -> Value:
    """Each place times all of its updates, one after the other where several share a place."""
    rows = UpdatedRows(e, x, indices, updates)
    if rows.is_empty:
        return x
    rounds = rows.rounds()
    if rounds is None:
        rounds = [np.array([[w]], np.int32) for w in range(rows.width)]
        if rows.width > MOST_ROUNDS:
            raise Problem(f"products of {rows.width} updates whose places are not known cannot be compiled", kind="unsupported",
                          help="make the indices constants")
    found = rows.x
    for chosen_rows in rounds:
        numbers = e("gather", e.reshape(rows.numbers, (1, rows.width, 1)), e.constant(chosen_rows))
        places = e.reshape(numbers, chosen_rows.shape)
        new = e.product(e("gather", found, places), e("gather", rows.updates, e.constant(chosen_rows)))
        found = e("scatter", found, places, new)
    return rows.result(found)


MOST_ROUNDS = 64
"""Of updates that are written one after the other because nothing says which share a place."""
FUNCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def put(found: Array, place: tuple[Any, ...], new: Array, reduction: str) -> None:
    found[place] = new if reduction == "none" else FUNCTIONS[reduction](found[place], new)


@operator("ScatterND")
class ScatterND(Operator):
    reduction: str = "none"

    def reference(self, x: Array, indices: Array, updates: Array) -> Array:
        found = np.array(x)
        for outer in np.ndindex(indices.shape[:-1]):
            place = tuple(int(checked(np.asarray(n), extent)) for n, extent in zip(indices[outer], x.shape))
            put(found, place, updates[outer], self.reduction)
        return found

    def lower(self, e: Emitter, x: Value, indices: Value, updates: Value) -> Value:
        named = x.tensor.dims[:indices.tensor.dims[-1]]
        return updated(e, x, by_axis(e, indices, named) if named else e.cast(indices, I32), updates, self.reduction)


@operator("ScatterElements", "Scatter")
class ScatterElements(Operator):
    axis: int = 0
    reduction: str = "none"

    def reference(self, x: Array, indices: Array, updates: Array) -> Array:
        found, axis = np.array(x), axis_of(self.axis, x.ndim)
        places = checked(indices, x.shape[axis])
        for outer in np.ndindex(indices.shape):
            put(found, (*outer[:axis], int(places[outer]), *outer[axis + 1:]), updates[outer], self.reduction)
        return found

    def lower(self, e: Emitter, x: Value, indices: Value, updates: Value) -> Value:
        axis, dims = axis_of(self.axis, x.tensor.rank), indices.tensor.dims
        if updates.tensor.dims != dims or len(dims) != x.tensor.rank:
            raise Problem(f"{indices.type} and {updates.type} do not fit {x.type}", kind="shape")
        if not indices.tensor.size:
            return x
        along = wrapped(e, indices, x.tensor.dims[axis])
        parts = []
        for a, n in enumerate(dims):
            own = np.arange(n, dtype=np.int32).reshape([-1 if b == a else 1 for b in range(len(dims))])
            placed = e.cast(along, I32) if a == axis else e.constant(np.array(np.broadcast_to(own, dims)))
            parts.append(e.reshape(placed, (indices.tensor.size, 1)))
        tuples = e.concat(parts, 1)
        return updated(e, x, tuples, e.reshape(updates, (indices.tensor.size,)), self.reduction)


@operator("TensorScatter")
class TensorScatter(Operator):
    """A cache of keys or values with new ones written behind those that it has, for each place of the batch."""
    axis: int = -2
    mode: str = "linear"

    def reference(self, past: Array, update: Array, indices: Array | None = None) -> Array:
        found, axis = np.array(past), axis_of(self.axis, past.ndim)
        starts = np.zeros(past.shape[0], np.int64) if indices is None else indices
        for batch, start in enumerate(starts):
            for k in range(update.shape[axis]):
                place = (int(start) + k) % past.shape[axis] if self.mode == "circular" else int(start) + k
                index: tuple[Any, ...] = (batch, *[slice(None)] * (axis - 1))
                found[(*index, place)] = update[(*index, k)]
        return found

    def lower(self, e: Emitter, past: Value, update: Value, indices: Value | None = None) -> Value:
        axis, (batch, *_) = axis_of(self.axis, past.tensor.rank), past.tensor.dims
        extent, count = past.tensor.dims[axis], update.tensor.dims[axis]
        start = e.constant(np.zeros(batch, np.int32)) if indices is None else e.cast(indices, I32)
        places = Term(e, e.sum(e.reshape(start, (batch, 1)), e.constant(np.arange(count, dtype=np.int32)[None])))
        if self.mode == "circular":
            places = select(places >= extent, places - extent, places)
        order = [0, axis, *(a for a in range(1, past.tensor.rank) if a != axis)]
        rows, new = e.transpose(past, order), e.transpose(update, order)
        inner = math.prod(rows.tensor.dims[2:])
        found = e("scatter", e.reshape(rows, (batch, extent, inner)), places.value, e.reshape(new, (batch, count, inner)))
        return e.transpose(e.reshape(found, rows.tensor.dims), [order.index(a) for a in range(past.tensor.rank)])


# ---- chosen by a condition, or an index ----------------------------------------------------------------------------------
@operator("OneHot")
class OneHot(Operator):
    """`values` are what is elsewhere and what is there; an index that is out of range is nowhere."""
    axis: int = -1

    def reference(self, indices: Array, depth: Array, values: Array) -> Array:
        count = int(np.reshape(depth, ()))
        axis = axis_of(self.axis, indices.ndim + 1)
        given = indices.astype(np.int64)
        whole = np.where((given >= -count) & (given < count), np.where(given < 0, given + count, given), -1)
        places = np.arange(count).reshape([-1 if a == axis else 1 for a in range(indices.ndim + 1)])
        return np.asarray(np.where(np.expand_dims(whole, axis) == places, values[1], values[0]), values.dtype)

    def lower(self, e: Emitter, indices: Value, depth: Value, values: Value) -> Value:
        count = int(known(depth, "the depth").reshape(()))
        axis = axis_of(self.axis, indices.tensor.rank + 1)
        given = Term(e, e.cast(indices, I32))
        whole = select(given < 0, given + count, given)
        dims = (*indices.tensor.dims[:axis], 1, *indices.tensor.dims[axis:])
        places = e.constant(np.arange(count, dtype=np.int32).reshape([-1 if a == axis else 1 for a in range(len(dims))]))
        here = e("equal", e.reshape(whole.value, dims), places)
        off, on = (e.reshape(e.slice(values, (k,), (1,)), (1,) * len(dims)) for k in range(2))
        own = values.tensor.element
        wide = own if own.is_float or own in (I1, I32, I64) else I32 if own.bits < 32 else I64
        return e.cast(e.select(here, e.cast(on, wide), e.cast(off, wide)), own)


@operator("Compress")
class Compress(Operator):
    """What a condition says of each place along an axis, or of all elements; how many that are depends on data."""
    axis: int | None = None

    def reference(self, x: Array, condition: Array) -> Array:
        seen = x.reshape(-1) if self.axis is None else x
        return np.compress(condition, seen, 0 if self.axis is None else self.axis)

    def lower(self, e: Emitter, x: Value, condition: Value) -> Value:
        if condition.constant is None:
            raise depends("how many elements a condition takes", "make the condition a constant, or keep all elements")
        seen = e.reshape(x, (x.tensor.size,)) if self.axis is None else x
        axis = 0 if self.axis is None else axis_of(self.axis, x.tensor.rank)
        places = np.flatnonzero(condition.constant[:seen.tensor.dims[axis]]).astype(np.int32)
        return taken_anyway(e, seen, lambda y: gathered(e, y, e.constant(places), axis))


def depends(what: str, remedy: str) -> Problem:
    """The Problem of a shape that depends on data."""
    return Problem(f"{what} depends on data, and code has fixed shapes", kind="unsupported", help=remedy)


