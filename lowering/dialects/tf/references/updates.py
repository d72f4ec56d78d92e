"""Tensors of which a part is replaced or combined with updates."""
from __future__ import annotations

import numpy as np

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


@reference("tf.TensorScatterSub")
def tensor_scatter_sub(operation: Operation, x: Array, indices: Array, updates: Array) -> Array:
    result = x.copy()
    np.subtract.at(result, places(x, indices), updates)
    return result


@reference("tf.TensorScatterMax")
def tensor_scatter_max(operation: Operation, x: Array, indices: Array, updates: Array) -> Array:
    result = x.copy()
    np.maximum.at(result, places(x, indices), updates)
    return result


@reference("tf.TensorScatterMin")
def tensor_scatter_min(operation: Operation, x: Array, indices: Array, updates: Array) -> Array:
    result = x.copy()
    np.minimum.at(result, places(x, indices), updates)
    return result
