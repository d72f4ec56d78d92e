"""Elements by index: gather, scatter, one hot. TOSA's GATHER and SCATTER take rows [N, K, C] by their number; here indices into
several axes become one number, and what has duplicates is summed over all updates.

TensorFlow's CPU kernels refuse an index that is out of range. Compiled code reads the nearest row, and writes none.
"""
from __future__ import annotations

import math

from ....formulas.indexing import gathered, reversed_sequences, row_numbers
from ....formulas.indexing import one_hot as one_hot_of
from ....formulas.updates import combined, updated_rows
from ....graph.foreign import find, number
from ....graph.graph import Operation, Value
from ....graph.types import TensorType
from ...emitter import Emitter, axes_of, integers
from .layout import require, wrapped
from .table import legalization


# ---- gather ----------------------------------------------------------------------------------------------------------
@legalization("tf.GatherV2")
def gather(e: Emitter, operation: Operation, x: Value, indices: Value, axis: Value) -> Value:
    at, = axes_of(axis, x.tensor.rank, "the axis")
    batch = int(number(operation, "batch_dims")) if find(operation, "batch_dims") is not None else 0
    return gathered(e, x, indices, at, batch if batch >= 0 else batch + indices.tensor.rank)


@legalization("tf.Gather")
def gather_rows(e: Emitter, operation: Operation, x: Value, indices: Value) -> Value:
    """With `tf.ResourceGather`, which may have batches."""
    require(x.tensor.rank > 0, f"{x.type} has no axis to gather from")
    batch = int(number(operation, "batch_dims")) if find(operation, "batch_dims") is not None else 0
    return gathered(e, x, indices, batch, batch)


@legalization("tf.GatherNd", "tf.ResourceGatherNd")
def gather_nd(e: Emitter, operation: Operation, x: Value, indices: Value) -> Value:
    *outer, depth = indices.tensor.dims
    shape = x.tensor.dims
    require(depth <= len(shape), f"{indices.type} names {depth} axes of {x.type}")
    dims = (*outer, *shape[depth:])
    if not math.prod(dims):
        return e.zeros(TensorType(dims, x.tensor.element))
    require(x.tensor.size > 0, f"{x.type} has nothing to take")
    places = row_numbers(e, indices, shape[:depth])
    values = e.reshape(x, (1, math.prod(shape[:depth]), math.prod(shape[depth:])))
    return e.reshape(e("gather", values, e.reshape(places, (1, math.prod(outer)))), dims)


# ---- scatter ---------------------------------------------------------------------------------------------------------
@legalization("tf.ScatterNd")
def scatter_nd(e: Emitter, operation: Operation, indices: Value, updates: Value, shape: Value) -> Value:
    """Onto zeros, the sum of what shares a place."""
    zeros = e.zeros(TensorType(integers(shape, "the shape"), updates.tensor.element))
    rows = updated_rows(e, zeros, indices, updates)
    rounds = rows.rounds()
    if rows.width == 1 or (rounds is not None and len(rounds) <= 1):
        return e.reshape(rows.written(), zeros.tensor.dims)
    return combined(e, zeros, indices, updates, "add")


@legalization("tf.TensorScatterUpdate")
def tensor_scatter_update(e: Emitter, operation: Operation, x: Value, indices: Value, updates: Value) -> Value:
    return e.reshape(updated_rows(e, x, indices, updates).written(), x.tensor.dims)


@legalization("tf.TensorScatterAdd")
def tensor_scatter_add(e: Emitter, operation: Operation, x: Value, indices: Value, updates: Value) -> Value:
    return combined(e, x, indices, updates, "add")


@legalization("tf.TensorScatterSub")
def tensor_scatter_sub(e: Emitter, operation: Operation, x: Value, indices: Value, updates: Value) -> Value:
    less = e.difference(e.splat(0, updates), updates) if updates.tensor.element.is_integer else e.product(
        updates, e.splat(-1, updates))
    return combined(e, x, indices, less, "add")


@legalization("tf.TensorScatterMax")
def tensor_scatter_max(e: Emitter, operation: Operation, x: Value, indices: Value, updates: Value) -> Value:
    return combined(e, x, indices, updates, "maximum")


@legalization("tf.TensorScatterMin")
def tensor_scatter_min(e: Emitter, operation: Operation, x: Value, indices: Value, updates: Value) -> Value:
    return combined(e, x, indices, updates, "minimum")


@legalization("tf.UnsortedSegmentSum")
def segment_sum(e: Emitter, operation: Operation, x: Value, segments: Value, count: Value) -> Value:
    """The sum of the parts of each segment; a negative number of a segment drops its part."""
    total, = integers(count, "the number of segments")
    zeros = e.zeros(TensorType((total, *x.tensor.dims[segments.tensor.rank:]), x.tensor.element))
    return combined(e, zeros, e.reshape(segments, (*segments.tensor.dims, 1)), x, "add")


@legalization("tf.ReverseSequence")
def reverse_sequence(e: Emitter, operation: Operation, x: Value, lengths: Value) -> Value:
    """Along one axis the first `lengths[i]` elements in reverse, for each place i of another axis."""
    at, batch = int(number(operation, "seq_dim")), int(number(operation, "batch_dim"))
    return reversed_sequences(e, x, lengths, batch, at)


# ---- one of two numbers ----------------------------------------------------------------------------------------------
@legalization("tf.OneHot")
def one_hot(e: Emitter, operation: Operation, indices: Value, depth: Value, on: Value, off: Value) -> Value:
    """An index that is out of range gives `off` everywhere."""
    count, = integers(depth, "the depth")
    return one_hot_of(e, indices, count, wrapped(int(number(operation, "axis")), indices.tensor.rank + 1), on, off)


