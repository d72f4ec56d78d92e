"""Elements by index: gather, scatter, one hot, strided slices."""
from __future__ import annotations

from typing import Any

import numpy as np

from .....runtime.errors import Problem
from ....graph.foreign import find, number
from ....graph.graph import Operation
from ....graph.types import Array
from .table import reference


def checked(indices: Array, extent: int) -> Array:
    """Return indices after checking that they are in range: TensorFlow's CPU kernels refuse others."""
    if indices.size and (indices.min() < 0 or indices.max() >= extent):
        raise Problem(f"an index is outside of [0, {extent})", kind="argument")
    return indices


@reference("tf.GatherV2")
def gather(operation: Operation, x: Array, indices: Array, axis: Array) -> Array:
    batch, at = int(number(operation, "batch_dims")), int(axis) % x.ndim
    checked(indices, x.shape[at])
    if not batch:
        return np.take(x, indices, at)
    batch %= max(indices.ndim, 1)
    pairs = zip(x.reshape(-1, *x.shape[batch:]), indices.reshape(-1, *indices.shape[batch:]))
    rows = [np.take(a, i, at - batch) for a, i in pairs]
    return np.stack(rows).reshape(*x.shape[:batch], *rows[0].shape)


@reference("tf.Gather", "tf.ResourceGather")
def gather_rows(operation: Operation, x: Array, indices: Array) -> Array:
    return np.take(x, checked(indices, x.shape[0]), 0)


@reference("tf.GatherNd")
def gather_nd(operation: Operation, x: Array, indices: Array) -> Array:
    if not indices.shape[-1]:
        return np.broadcast_to(x, (*indices.shape[:-1], *x.shape))
    return x[places(x, indices)]


def places(x: Array, indices: Array) -> tuple[Any, ...]:
    """Return the last axis of the indices as an index into the first axes."""
    return tuple(checked(indices[..., d], x.shape[d]) for d in range(indices.shape[-1]))


@reference("tf.ScatterNd")
def scatter_nd(operation: Operation, indices: Array, updates: Array, shape: Array) -> Array:
    result = np.zeros(tuple(int(n) for n in shape), updates.dtype)
    np.add.at(result, places(result, indices), updates)
    return result


@reference("tf.TensorScatterUpdate")
def tensor_scatter_update(operation: Operation, x: Array, indices: Array, updates: Array) -> Array:
    result = x.copy()
    result[places(x, indices)] = updates
    return result


@reference("tf.OneHot")
def one_hot(operation: Operation, indices: Array, depth: Array, on: Array, off: Array) -> Array:
    """Return one-hot vectors; an index outside of the depth sets no element."""
    hot = np.asarray(indices[..., None] == np.arange(int(depth)))
    axis = int(number(operation, "axis"))
    return np.moveaxis(np.where(hot, on, off), -1, axis if axis >= 0 else hot.ndim + axis)


@reference("tf.Where")
def where(operation: Operation, x: Array) -> Array:
    return np.argwhere(x).astype(np.int64)


@reference("tf.StridedSlice")
def strided_slice(operation: Operation, x: Array, begin: Array, end: Array, strides: Array) -> Array:
    """Slice as Python's indexing does, with five masks: bit i refers to the i-th entry of begin, end and strides."""
    def mask(name: str, i: int) -> bool:
        value = find(operation, name)
        return bool(int(getattr(value, "value", 0)) >> i & 1)

    index: list[Any] = []
    for i, (low, high, step) in enumerate(zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True)):
        if mask("ellipsis_mask", i):
            index.append(Ellipsis)
        elif mask("new_axis_mask", i):
            index.append(None)
        elif mask("shrink_axis_mask", i):
            index.append(low)
        else:
            index.append(slice(None if mask("begin_mask", i) else low, None if mask("end_mask", i) else high, step))
    try:
        return x[tuple(index)]
    except IndexError as error:
        raise Problem(f"a slice is out of range: {error}", kind="argument") from None
