"""Tensors of which a part is replaced or combined with updates."""
from __future__ import annotations

import numpy as np

from ....graph.foreign import number
from ....graph.graph import Operation
from ....graph.types import Array
from .indexing import places, strided_slice
from .table import reference


@reference("tf.TensorStridedSliceUpdate")
def strided_update(operation: Operation, x: Array, begin: Array, end: Array, strides: Array, value: Array) -> Array:
    chosen = strided_slice(operation, np.arange(x.size).reshape(x.shape), begin, end, strides)
    result = x.copy().reshape(-1)
    result[chosen] = value
    return result.reshape(x.shape)


def scatter(name: str, combine: np.ufunc) -> None:
    """An update is combined with what is at its place, each one where several have one place."""
    @reference(name)
    def combined(operation: Operation, x: Array, indices: Array, updates: Array) -> Array:
        result = x.copy()
        combine.at(result, places(x, indices), updates)
        return result


for name, combine in (("Add", np.add), ("Sub", np.subtract), ("Max", np.maximum), ("Min", np.minimum)):
    scatter(f"tf.TensorScatter{name}", combine)


@reference("tf.StridedSliceGrad")
def strided_gradient(operation: Operation, shape: Array, begin: Array, end: Array, strides: Array, value: Array) -> Array:
    zeros = np.zeros(tuple(int(n) for n in shape), value.dtype)
    found: Array = strided_update(operation, zeros, begin, end, strides, value)
    return found


@reference("tf.UnsortedSegmentSum")
def segment_sum(operation: Operation, x: Array, segments: Array, count: Array) -> Array:
    rest = x.shape[segments.ndim:]
    result = np.zeros((int(count), *rest), x.dtype)
    kept = segments.reshape(-1) >= 0
    np.add.at(result, segments.reshape(-1)[kept], x.reshape(-1, *rest)[kept])
    return result


@reference("tf.ReverseSequence")
def reverse_sequence(operation: Operation, x: Array, lengths: Array) -> Array:
    at, batch = int(number(operation, "seq_dim")), int(number(operation, "batch_dim"))
    result = x.copy()
    view, source = (np.moveaxis(v, (batch, at), (0, 1)) for v in (result, x))
    for row, n in enumerate(lengths.tolist()):
        view[row, :n] = source[row, :n][::-1]
    return result
