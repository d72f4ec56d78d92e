"""Elements by index: Gather, GatherElements, GatherND, Scatter, ScatterElements, ScatterND, TensorScatter, OneHot, Compress.

Negative indices count from the end. The reference refuses an index out of range; compiled code reads the nearest element, and
writes none.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....runtime.errors import Problem
from ...formulas.indexing import gathered, one_hot, row_numbers
from ...formulas.layout import taken
from ...formulas.term import Term, select
from ...formulas.updates import UpdatedRows, combining_type, updated_rows
from ...graph.graph import Value
from ...graph.types import F32, I32, I64, UI64, Array, TensorType
from ..emitter import Emitter, known
from .along_axis import axis_of
from .operator import Operator, operator


def wrapped(e: Emitter, indices: Value, extent: int) -> Value:
    """Return indices counted from the first element; TOSA's types are i32 and i64."""
    given = e.cast(indices, I32 if indices.tensor.element.bits < 32 or extent < 1 << 31 else I64)
    if given.constant is not None:
        data = given.constant
        return e.constant(np.where(data < 0, data + np.asarray(extent, data.dtype), data), given.tensor.element)
    x = Term(e, given)
    return select(x < 0, x + extent, x).value


def checked(indices: Array, extent: int) -> Array:
    """Return indices counted from the first element; raise an IndexError if one is out of range."""
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
        return gathered(e, x, wrapped(e, indices, x.tensor.dims[axis]), axis)


@operator("ai.onnx.ml.ArrayFeatureExtractor")
class ArrayFeatureExtractor(Operator):
    """Elements of the last axis by their indices; one row of them for a tensor of rank 1."""

    def reference(self, x: Array, indices: Array) -> Array:
        found = np.take(x, checked(indices.reshape(-1), x.shape[-1]), -1)
        return found.reshape(1, -1) if x.ndim == 1 else found

    def lower(self, e: Emitter, x: Value, indices: Value) -> Value:
        axis, flat = x.tensor.rank - 1, e.reshape(indices, (indices.tensor.size,))
        found = gathered(e, x, wrapped(e, flat, x.tensor.dims[axis]), axis)
        return e.reshape(found, (1, flat.tensor.size)) if x.tensor.rank == 1 else found


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
        found = e("gather", rows, places)
        return e.transpose(e.reshape(found, [dims[a] for a in order]), [order.index(a) for a in range(len(dims))])


@operator("GatherND")
class GatherND(Operator):
    batch_dims: int = 0

    def depth(self, dims: Sequence[int], places: Sequence[int]) -> int:
        """Return the number of axes that the tuples index after those of the batch."""
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
        return e.reshape(e("gather", rows, places), dims)


def by_axis(e: Emitter, indices: Value, extents: Sequence[int]) -> Value:
    """Return tuples of indices into axes of these extents, counted from the first elements."""
    given = e.cast(indices, I32)
    x, most = Term(e, given), e.constant(np.array(extents, np.int32).reshape((1,) * (given.tensor.rank - 1) + (-1,)))
    if given.constant is not None:
        return e.constant(np.where(given.constant < 0, given.constant + np.array(extents, np.int32), given.constant))
    return select(x < 0, x + x.of(most), x).value


# ---- scatter -------------------------------------------------------------------------------------------------------------
COMBINE = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}
TOP = -1 << 63


def updated(e: Emitter, rows: UpdatedRows, reduction: str) -> Value:
    """Return rows with updates at their indices, or combined with the old elements; half floats in f32, rounded once."""
    if reduction == "none":
        return rows.written()
    if reduction not in COMBINE:
        raise Problem(f"the reduction {reduction} is not known", kind="attribute", help=f"none, {', '.join(COMBINE)}")
    own = rows.x.tensor.element
    element = F32 if own.is_float and own.bits < 32 else combining_type(own)
    flip = own == UI64 and reduction in ("max", "min")

    def wide(x: Value) -> Value:
        found = e.cast(x, element)
        return (Term(e, found) ^ TOP).value if flip else found
    found = UpdatedRows(e, wide(rows.x), rows.numbers, wide(rows.updates)).combined(COMBINE[reduction])
    return e.cast((Term(e, found) ^ TOP).value if flip else found, own)


FUNCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def put(found: Array, place: tuple[Any, ...], new: Array, reduction: str) -> None:
    found[place] = new if reduction == "none" else FUNCTIONS[reduction](found[place], new)


def summing(x: Array) -> Array:
    """Return a copy, with floats in 64 bits, so that a sum is rounded once."""
    return np.array(x, None if x.dtype.kind in "iub" else np.float64)


@operator("ScatterND")
class ScatterND(Operator):
    reduction: str = "none"

    def reference(self, x: Array, indices: Array, updates: Array) -> Array:
        found = summing(x)
        for outer in np.ndindex(indices.shape[:-1]):
            place = tuple(int(checked(np.asarray(n), extent)) for n, extent in zip(indices[outer], x.shape))
            put(found, place, updates[outer], self.reduction)
        return found.astype(x.dtype)

    def lower(self, e: Emitter, x: Value, indices: Value, updates: Value) -> Value:
        named = x.tensor.dims[:indices.tensor.dims[-1]]
        places = by_axis(e, indices, named) if named and indices.tensor.size else e.cast(indices, I32)
        return e.reshape(updated(e, updated_rows(e, x, places, updates), self.reduction), x.tensor.dims)


@operator("ScatterElements", "Scatter")
class ScatterElements(Operator):
    axis: int = 0
    reduction: str = "none"

    def reference(self, x: Array, indices: Array, updates: Array) -> Array:
        found, axis = summing(x), axis_of(self.axis, x.ndim)
        places = checked(indices, x.shape[axis])
        for outer in np.ndindex(indices.shape):
            put(found, (*outer[:axis], int(places[outer]), *outer[axis + 1:]), updates[outer], self.reduction)
        return found.astype(x.dtype)

    def lower(self, e: Emitter, x: Value, indices: Value, updates: Value) -> Value:
        """Scatter along lines: the lines along the axis that have updates are groups of rows of one element; the others
        stay."""
        axis, dims, whole = axis_of(self.axis, x.tensor.rank), indices.tensor.dims, x.tensor.dims
        if updates.tensor.dims != dims or len(dims) != len(whole) or any(
                n > m for a, (n, m) in enumerate(zip(dims, whole)) if a != axis):
            raise Problem(f"{indices.type} and {updates.type} do not fit {x.type}", kind="shape")
        if not indices.tensor.size:
            return x
        lines = [whole[a] if a == axis else n for a, n in enumerate(dims)]
        order = [*(a for a in range(len(dims)) if a != axis), axis]
        groups = indices.tensor.size // dims[axis]

        def rows(t: Value, *columns: int) -> Value:
            return e.reshape(e.transpose(t, order), (groups, t.tensor.dims[axis], *columns))
        found = updated(e, UpdatedRows(e, rows(e.slice(x, [0] * len(dims), lines), 1), rows(wrapped(e, indices, whole[axis])),
                                       rows(updates, 1)), self.reduction)
        back = e.transpose(e.reshape(found, [lines[a] for a in order]), [order.index(a) for a in range(len(dims))])
        return beside(e, back, x)


def beside(e: Emitter, found: Value, x: Value) -> Value:
    """Return x with its first elements along each axis replaced."""
    for axis, n in reversed(list(enumerate(found.tensor.dims))):
        if n < x.tensor.dims[axis]:
            sizes = [*found.tensor.dims[:axis], x.tensor.dims[axis] - n, *found.tensor.dims[axis + 1:]]
            starts = [n if a == axis else 0 for a in range(x.tensor.rank)]
            found = e.concat([found, e.slice(x, starts, sizes)], axis)
    return found


@operator("TensorScatter")
class TensorScatter(Operator):
    """A cache of keys or values with new ones written after the old ones, for each index of the batch."""
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


# ---- selected by a condition, or an index --------------------------------------------------------------------------------
@operator("OneHot")
class OneHot(Operator):
    """One-hot vectors. `values` are the number elsewhere and the number at the index; an index out of range sets no element."""
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
        off, on = (e.slice(values, (k,), (1,)) for k in range(2))
        return one_hot(e, whole.value, count, axis, on, off)


@operator("Compress")
class Compress(Operator):
    """Select the indices along an axis, or all elements, whose condition is true; their number depends on data."""
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
        return taken(e, seen, axis, places)


def depends(what: str, remedy: str) -> Problem:
    """Return the Problem of a shape that depends on data."""
    return Problem(f"{what} depends on data, and code has fixed shapes", kind="unsupported", help=remedy)


