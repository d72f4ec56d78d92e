"""Tensors with parts replaced or combined with updates."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....graph.foreign import find, number
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
    """Register a scatter that combines each update with the element at its index, one after the other if several have one
    index."""
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


FOLDS = {"Sum": (np.add, lambda t: 0), "Prod": (np.multiply, lambda t: 1), "Max": (np.maximum, lambda t: least(t)),
         "Min": (np.minimum, lambda t: -least(t) if t.kind == "f" else np.iinfo(t).max)}
"""The combining function, and its result for an empty segment of a NumPy type."""


def least(t: np.dtype[Any]) -> Any:
    return np.finfo(t).min if t.kind == "f" else np.iinfo(t).min


def folded(name: str, x: Array, segments: Array, count: int) -> Array:
    fold, nothing = FOLDS[name]
    rest, numbers = x.shape[segments.ndim:], segments.reshape(-1)
    result = np.full((count, *rest), nothing(x.dtype), x.dtype)
    for segment, part in zip(numbers.tolist(), x.reshape(-1, *rest)):
        if segment >= 0:
            result[segment] = fold(result[segment], part)
    return result


for _name in FOLDS:
    @reference(f"tf.UnsortedSegment{_name}")
    def _unsorted(operation: Operation, x: Array, segments: Array, count: Array, _name: str = _name) -> Array:
        return folded(_name, x, segments, int(count))

    @reference(f"tf.Segment{_name}")
    def _sorted(operation: Operation, x: Array, segments: Array, _name: str = _name) -> Array:
        """Combine sorted segments; empty segments are 0, except for products."""
        found = folded(_name, x, segments, int(segments[-1]) + 1)
        if _name in ("Max", "Min"):
            found[[i not in segments for i in range(len(found))]] = 0
        return found


@reference("tf.SegmentMean")
def segment_mean(operation: Operation, x: Array, segments: Array) -> Array:
    parts = [x[segments == i] for i in range(int(segments[-1]) + 1)]
    return np.stack([p.mean(0, dtype=x.dtype) if len(p) else np.zeros(x.shape[1:], x.dtype) for p in parts])


@reference("tf.DenseBincount", "tf.Bincount")
def bincount(operation: Operation, x: Array, size: Array, weights: Array) -> Array:
    rows = x.reshape(-1, x.shape[-1])
    own = weights.reshape(rows.shape) if weights.size else np.ones(rows.shape, weights.dtype)
    result = np.zeros((len(rows), int(size)), weights.dtype)
    for r, row in enumerate(rows.tolist()):
        for place, counted in enumerate(row):
            if counted < int(size):
                is_flag = find(operation, "binary_output") is True
                result[r, counted] = 1 if is_flag else result[r, counted] + own[r, place]
    return result.reshape(*x.shape[:-1], int(size))


@reference("tf.ReverseSequence")
def reverse_sequence(operation: Operation, x: Array, lengths: Array) -> Array:
    at, batch = int(number(operation, "seq_dim")), int(number(operation, "batch_dim"))
    result = x.copy()
    view, source = (np.moveaxis(v, (batch, at), (0, 1)) for v in (result, x))
    for row, n in enumerate(lengths.tolist()):
        view[row, :n] = source[row, :n][::-1]
    return result
