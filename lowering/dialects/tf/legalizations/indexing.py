"""Elements by index: gather, scatter, one hot. TOSA's GATHER and SCATTER take rows [N, K, C] by their index; here indices into
several axes become one index, and updates with duplicate indices are summed.

TensorFlow's CPU kernels refuse an index that is out of range. Compiled code reads the nearest row, and writes none.
"""
from __future__ import annotations

import math

import numpy as np

from ....formulas.division import divided
from ....formulas.indexing import gathered, reversed_sequences, row_numbers
from ....formulas.indexing import one_hot as one_hot_of
from ....formulas.term import Term
from ....formulas.updates import combined, identity_of, updated_rows
from ....formulas.working_types import working_type
from ....graph.foreign import find, flag, number
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
    """Gather rows; also for `tf.ResourceGather`, which may have batches."""
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
    """Scatter onto zeros, summing updates with the same index."""
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


# ---- segments --------------------------------------------------------------------------------------------------------
COMBINING = {"Sum": "add", "Prod": "mul", "Max": "maximum", "Min": "minimum"}


def combined_segments(e: Emitter, x: Value, segments: Value, total: int, name: str) -> Value:
    """Combine the parts of each segment; a negative segment number drops its part. The least of an empty segment is the
    greatest finite number, and vice versa."""
    element = x.tensor.element
    neutral = 0 if name == "Sum" else identity_of(COMBINING[name], element)
    if element.is_float:
        farthest = float(np.finfo(element.dtype).max)
        neutral = min(max(neutral, -farthest), farthest)
    dims = (total, *x.tensor.dims[segments.tensor.rank:])
    base = e.broadcast_to(e.constant(np.full((), neutral, element.dtype), element), dims)
    return combined(e, base, e.reshape(segments, (*segments.tensor.dims, 1)), x, COMBINING[name])


def unsorted_segments(name: str) -> None:
    @legalization(f"tf.UnsortedSegment{name}")
    def emit(e: Emitter, operation: Operation, x: Value, segments: Value, count: Value) -> Value:
        total, = integers(count, "the number of segments")
        return combined_segments(e, x, segments, total, name)


def sorted_segments(name: str) -> None:
    @legalization(f"tf.Segment{name}")
    def emit(e: Emitter, operation: Operation, x: Value, segments: Value) -> Value:
        """Emit as many segments as the last number gives; a mean, and the greatest and the least, of an empty segment are 0."""
        numbers = np.array(integers(segments, "the segments"))
        counts = np.bincount(numbers[numbers >= 0]) if numbers.size else np.zeros(0, int)
        found = combined_segments(e, x, segments, len(counts), "Sum" if name == "Mean" else name)
        column = (len(counts), *(1,) * (found.tensor.rank - 1))
        if name == "Mean":
            wide = working_type(found.tensor.element, True, True)
            divisor = e.constant(np.maximum(counts, 1).reshape(column).astype(wide.dtype), wide)
            return e.cast(divided(Term(e, e.cast(found, wide)), Term(e, divisor)).value, found.tensor.element)
        if name in ("Sum", "Prod") or counts.all():
            return found
        return e.select(e.constant((counts > 0).reshape(column)), found, e.splat(0, found))


for name in COMBINING:
    unsorted_segments(name)
for name in (*COMBINING, "Mean"):
    sorted_segments(name)


@legalization("tf.DenseBincount", "tf.Bincount")
def bincount(e: Emitter, operation: Operation, x: Value, size: Value, weights: Value) -> Value:
    """Count each number below `size`, or sum its weights; in each row of a matrix, if x is one."""
    total, = integers(held(e, size), "how many numbers are counted")
    *rows, width = x.tensor.dims if x.tensor.rank else (1,)
    element = weights.tensor.element
    here = e("equal", e.reshape(x, (math.prod(rows), width, 1)),
             e.constant(np.arange(total, dtype=x.tensor.element.dtype).reshape(1, 1, total)))
    if find(operation, "binary_output") is not None and flag(operation, "binary_output"):
        return e.reshape(e.cast(e("reduce_any", here, axis=1), element), (*rows, total))
    each = e.reshape(weights, (math.prod(rows), width, 1)) if weights.tensor.size else e.constant(
        np.ones((1, 1, 1), element.dtype), element)
    return e.reshape(e("reduce_sum", e.select(here, each, e.splat(0, each)), axis=1), (*rows, total))


def held(e: Emitter, size: Value) -> Value:
    """Return n for min(n, max(m, x)) with m not below n: the number of counted numbers if the least and the greatest are
    equal."""
    least = e.definitions.get(size)
    if least is None or least.op.name != "tosa.minimum":
        return size
    bounded = [e.definitions[v] for v in least.operands if v in e.definitions]
    floors = [v.constant for o in bounded if o.op.name == "tosa.maximum" for v in o.operands if v.constant is not None]
    limits = [(v, v.constant) for v in least.operands if v.constant is not None]
    return next((v for v, most in limits if any(floor.min() >= most.max() for floor in floors)), size)


@legalization("tf.ReverseSequence")
def reverse_sequence(e: Emitter, operation: Operation, x: Value, lengths: Value) -> Value:
    """Reverse the first `lengths[i]` elements along one axis, for each index i of another axis."""
    at, batch = int(number(operation, "seq_dim")), int(number(operation, "batch_dim"))
    return reversed_sequences(e, x, lengths, batch, at)


# ---- one-hot ---------------------------------------------------------------------------------------------------------
@legalization("tf.OneHot")
def one_hot(e: Emitter, operation: Operation, indices: Value, depth: Value, on: Value, off: Value) -> Value:
    """Emit one-hot vectors; an index out of range gives `off` everywhere."""
    count, = integers(depth, "the depth")
    return one_hot_of(e, indices, count, wrapped(int(number(operation, "axis")), indices.tensor.rank + 1), on, off)


