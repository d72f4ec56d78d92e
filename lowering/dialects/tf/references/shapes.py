"""More shapes and moved elements: roll, offsets, sequences, and the old forms of operations."""
from __future__ import annotations

import numpy as np

from ....graph.foreign import number
from ....graph.graph import Operation
from ....graph.types import Array
from .layout import batch_to_space, concat, result_dtype, space_to_batch
from .table import reference


@reference("tf.Roll")
def roll(operation: Operation, x: Array, shift: Array, axis: Array) -> Array:
    return np.roll(x, tuple(int(n) for n in shift.reshape(-1)), tuple(int(a) for a in axis.reshape(-1)))


@reference("tf.Concat")
def concat_first(operation: Operation, axis: Array, *arrays: Array) -> Array:
    return concat(operation, *arrays, axis)


@reference("tf.ConcatOffset")
def concat_offset(operation: Operation, axis: Array, *shapes: Array) -> tuple[Array, ...]:
    at, start, found = int(axis), 0, []
    for shape in shapes:
        offset = np.zeros(len(shape), result_dtype(operation))
        offset[at], start = start, start + int(shape[at])
        found.append(offset)
    return tuple(found)


@reference("tf.LinSpace")
def linear_space(operation: Operation, start: Array, stop: Array, num: Array) -> Array:
    count = int(num)
    if count == 1:
        return start.reshape(1)
    step = ((stop - start) / (count - 1)).astype(start.dtype)
    return np.append((start + np.arange(count - 1).astype(start.dtype) * step).astype(start.dtype), stop)


def square(operation: Operation) -> Array:
    return np.full(2, int(number(operation, "block_size")), np.int32)


@reference("tf.SpaceToBatch")
def space_to_batch_of_squares(operation: Operation, x: Array, paddings: Array) -> Array:
    found: Array = space_to_batch(operation, x, square(operation), paddings)
    return found


@reference("tf.BatchToSpace")
def batch_to_space_of_squares(operation: Operation, x: Array, crops: Array) -> Array:
    found: Array = batch_to_space(operation, x, square(operation), crops)
    return found


@reference("tf.BroadcastGradientArgs")
def broadcast_gradient_args(operation: Operation, a: Array, b: Array) -> tuple[Array, Array]:
    """Return the axes that are 1 or missing in each of two shapes; none if the shapes are equal."""
    x, y = a.tolist(), b.tolist()
    rank = max(len(x), len(y))
    x, y = [1] * (rank - len(x)) + x, [1] * (rank - len(y)) + y
    equal = a.tolist() == b.tolist()
    first, second = ([] if equal else [d for d, n in enumerate(s) if n == 1] for s in (x, y))
    return np.array(first, a.dtype), np.array(second, a.dtype)
