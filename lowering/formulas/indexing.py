"""Elements by index. TOSA's GATHER takes rows [N, K, C] by their number; here indices into several axes become one number.

Compiled code reads the nearest row for an index that is out of range.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...runtime.errors import require
from ..graph.graph import Value
from ..graph.types import I32, I64, TensorType
from .tosa_builder import TosaBuilder


def index(e: TosaBuilder, indices: Value) -> Value:
    """Indices in a type that TOSA takes."""
    return indices if indices.tensor.element in (I32, I64) else e.cast(indices, I32)


def gathered(e: TosaBuilder, x: Value, indices: Value, axis: int, batch: int = 0) -> Value:
    """x[batches, between, indices, behind]; the first axes of the indices are those of the batches."""
    shape, places = x.tensor.dims, indices.tensor.dims
    require(0 <= batch <= min(axis, len(places)) and shape[:batch] == places[:batch],
            f"{batch} axes are batches, but {x.type} and {indices.type} differ there, or axis {axis} is one of them",
            kind="shape")
    groups, between, behind = (math.prod(n) for n in (shape[:batch], shape[batch:axis], shape[axis + 1:]))
    count = math.prod(places[batch:])
    dims = (*shape[:axis], *places[batch:], *shape[axis + 1:])
    if not math.prod(dims):
        return e.reshape(x, dims) if not x.tensor.size else e.zeros(TensorType(dims, x.tensor.element))
    require(shape[axis] > 0, f"axis {axis} of {x.type} has nothing to take", kind="shape")
    rows = e.broadcast_to(e.reshape(index(e, indices), (groups, 1, count)), (groups, between, count))
    values = e.reshape(x, (groups * between, shape[axis], behind))
    return e.reshape(e("gather", values, e.reshape(rows, (groups * between, count))), dims)


def row_numbers(e: TosaBuilder, indices: Value, extents: Sequence[int], checked: bool = False) -> Value:
    """[W, 1]: the last axis of the indices as one number into axes of these extents; -1 with `checked` where one of them is
    out of range, so that it names no other row."""
    width, depth = math.prod(indices.tensor.dims[:-1]), len(extents)
    if depth == 0:
        return e.constant(np.zeros((width, 1), np.int32))
    if depth == 1:
        return e.reshape(index(e, indices), (width, 1))
    flat = e.cast(e.reshape(indices, (width, depth)), I32)
    strides = np.array([[math.prod(extents[d + 1:]) for d in range(depth)]], np.int32)
    places = e("reduce_sum", e.product(flat, e.constant(strides)), axis=1)
    if not checked:
        return places
    above = e("greater_equal", flat, e.splat(0, flat))
    below = e("greater", e.constant(np.array([extents], np.int32)), flat)
    inside = e("reduce_all", e("logical_and", above, below), axis=1)
    return e.select(inside, places, e.splat(-1, places))


def reversed_sequences(e: TosaBuilder, x: Value, lengths: Value, batch: int, along: int) -> Value:
    """Along one axis the first `lengths[i]` elements in reverse, for each place i of the axis `batch`."""
    rank, dims = x.tensor.rank, x.tensor.dims
    order = [batch, along, *(d for d in range(rank) if d not in (along, batch))]
    moved = e.transpose(x, order)
    place = e.constant(np.arange(dims[along], dtype=np.int32)[None])
    given = e.reshape(e.cast(lengths, I32), (dims[batch], 1))
    back = e.difference(e.difference(given, e.constant(np.int32(1))), place)
    places = e.select(e("greater", given, place), back, place)
    return e.transpose(gathered(e, moved, places, 1, 1), [order.index(d) for d in range(rank)])


def one_hot(e: TosaBuilder, indices: Value, count: int, axis: int, on: Value, off: Value) -> Value:
    """A new axis of `count` places, `on` (one element) in that of each index, else `off`, everywhere for one out of range."""
    dims = indices.tensor.dims
    shape = (*dims[:axis], count, *dims[axis:])
    if not math.prod(shape):
        return e.zeros(TensorType(shape, on.tensor.element))
    before, behind = math.prod(dims[:axis]), math.prod(dims[axis:])
    given = e.reshape(index(e, indices), (before, 1, behind))
    places = e.constant(np.arange(count, dtype=given.tensor.element.dtype).reshape(1, -1, 1))
    here = e("equal", given, places)
    return e.reshape(e.select(here, e.reshape(on, (1, 1, 1)), e.reshape(off, (1, 1, 1))), shape)
