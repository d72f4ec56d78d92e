"""Reductions along axes from an operand."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....graph.foreign import flag
from ....graph.graph import Operation
from ....graph.types import Array, TensorType
from .table import REFERENCES, reference


def axes_of(x: Array, axis: Array) -> tuple[int, ...]:
    """Return axes without signs or repetitions."""
    return tuple(dict.fromkeys(int(a) % max(x.ndim, 1) for a in np.asarray(axis).reshape(-1))) if x.ndim else ()


def reduction(function: Callable[..., Array], *names: str) -> None:
    def apply(operation: Operation, x: Array, axis: Array) -> Array:
        found = np.asarray(function(x, axis=axes_of(x, axis), keepdims=flag(operation, "keep_dims")))
        return found.astype(x.dtype)
    REFERENCES.update(dict.fromkeys(names, apply))


def wide(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return a reduction that sums floats in 64 bits and integers with wraparound."""
    def apply(x: Array, **options: object) -> Array:
        return function(x if x.dtype.kind in "iu" else x.astype(np.float64), **options)
    return apply


def mean(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    """Return the mean; for integers the sum has 64 bits, and the quotient truncates."""
    if x.dtype.kind in "iu":
        count = max(int(np.prod([x.shape[a] for a in axis])), 1)
        total = np.asarray(np.sum(x, axis=axis, keepdims=keepdims, dtype=np.int64))
        return np.asarray((total - np.fmod(total, count)) // count)
    return np.asarray(np.mean(x.astype(np.float64), axis=axis, keepdims=keepdims))


def norm(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    return np.asarray(np.sqrt(np.sum(np.square(x.astype(np.float64)), axis=axis, keepdims=keepdims)))


reduction(wide(np.sum), "tf.Sum")
reduction(wide(np.prod), "tf.Prod")
reduction(mean, "tf.Mean")
reduction(norm, "tf.EuclideanNorm")
reduction(np.max, "tf.Max")
reduction(np.min, "tf.Min")
reduction(np.all, "tf.All")
reduction(np.any, "tf.Any")


@reference("tf.ArgMax", "tf.ArgMin")
def arg(operation: Operation, x: Array, axis: Array) -> Array:
    """Return the first index of equal extremes; a NaN is never chosen before a number."""
    most = operation.op.spelling == "tf.ArgMax"  # type: ignore[attr-defined]
    type = operation.results[0].type
    dtype = type.element.dtype if isinstance(type, TensorType) else np.dtype(np.int64)
    numbers = x if x.dtype.kind in "iub" else np.where(np.isnan(x.astype(np.float64)), -np.inf if most else np.inf,
                                                       x.astype(np.float64))
    return np.asarray((np.argmax if most else np.argmin)(numbers, axis=int(axis))).astype(dtype)


@reference("tf.Cumsum", "tf.Cumprod")
def cumulative(operation: Operation, x: Array, axis: Array) -> Array:
    """Return running sums or products; `exclusive` without the element itself, `reverse` from the end."""
    is_sum, at = operation.op.spelling == "tf.Cumsum", int(axis) % x.ndim  # type: ignore[attr-defined]
    values = np.flip(x, at) if flag(operation, "reverse") else x
    if flag(operation, "exclusive"):
        first = np.full([1 if a == at else n for a, n in enumerate(x.shape)], 0 if is_sum else 1, x.dtype)
        values = np.concatenate([first, np.take(values, range(x.shape[at] - 1), at)], at)
    found = (np.cumsum if is_sum else np.cumprod)(values, axis=at, dtype=x.dtype)
    return np.flip(found, at) if flag(operation, "reverse") else found
