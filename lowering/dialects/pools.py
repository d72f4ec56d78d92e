"""Pools of channels-last images, of any element type: the greatest, the mean or the sum of each window, without the padding.

A window in three dimensions is one along the depth, then one over rows and columns: both the greatest and the mean of the
elements that are not padding are the same. Types without a pool in TOSA, and dilated windows, are combined tap by tap along one
axis after the other.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np

from ..formulas.windows import Ints, Pads, Window, window_padded
from ..graph.graph import Value
from ..graph.types import I16, UI8, Array, ElementType
from .emitter import Emitter
from .tosa.pooling import ACCUMULATORS


def max_pool(e: Emitter, x: Value, window: Window) -> Value:
    """Return the greatest of each window, in two or three dimensions."""
    element = x.tensor.element
    if element == UI8:
        return e.cast(max_pool(e, e.cast(x, I16), window), element)
    x, window = window.placed(e, x)
    if not is_native(element, window):
        return by_axes(e, x, window, lambda a, b: e.arithmetic("maximum", a, b), least(element))
    if any(max(pair) >= k for pair, k in zip(window.pads, window.kernel)):
        x, window = window_padded(e, x, window.pads, least(element)), window.with_pads([(0, 0)] * window.spatial)
    return native(e, "max_pool2d", x, window)


def mean_pool(e: Emitter, x: Value, window: Window) -> Value:
    """Return the mean of each window, in two or three dimensions."""
    x, window = window.placed(e, x)
    if is_native(x.tensor.element, window) and all(max(pair) < k for pair, k in zip(window.pads, window.kernel)):
        return native(e, "avg_pool2d", x, window)
    return e.quotient(sum_pool(e, x, window), e.constant(counts(x.tensor.dims[1:-1], window, x.tensor.element.dtype)))


def sum_pool(e: Emitter, x: Value, window: Window) -> Value:
    """Return the sum of each window."""
    x, window = window.placed(e, x)
    return by_axes(e, x, window, e.sum, 0)


def is_native(element: ElementType, window: Window) -> bool:
    return element in ACCUMULATORS and set(window.dilations) <= {1}


def native(e: Emitter, name: str, x: Value, window: Window) -> Value:
    plane_of = plane if window.spatial == 2 else volume
    return plane_of(e, name, x, window.kernel, window.strides, window.pads)


def plane(e: Emitter, name: str, x: Value, kernel: Ints, strides: Ints, pads: Pads) -> Value:
    """Pool windows over the rows and columns of [N, H, W, C]."""
    where = {"kernel": tuple(kernel), "stride": tuple(strides), "pad": tuple(n for pair in pads for n in pair)}
    if name == "max_pool2d":
        return e(name, x, **where)
    zero = e.zero_point(x.tensor.element)
    return e(name, x, zero, zero, **where, acc_type=ACCUMULATORS[x.tensor.element][-1])


def volume(e: Emitter, name: str, x: Value, kernel: Ints, strides: Ints, pads: Pads) -> Value:
    """Pool windows over the depth of [N, D, H, W, C], then over rows and columns."""
    n, depth, height, width, channels = x.tensor.dims
    flat = e.reshape(x, (n, depth, height * width, channels))
    deep = plane(e, name, flat, (kernel[0], 1), (strides[0], 1), [pads[0], (0, 0)])
    planes = e.reshape(deep, (n * deep.tensor.dims[1], height, width, channels))
    found = plane(e, name, planes, kernel[1:], strides[1:], pads[1:])
    return e.reshape(found, (n, deep.tensor.dims[1], *found.tensor.dims[1:]))


def by_axes(e: Emitter, x: Value, window: Window, combine: Callable[[Value, Value], Value], border: float) -> Value:
    """Combine the elements of windows along one axis after the other."""
    x = window_padded(e, x, window.pads, border)
    for axis in range(window.spatial):
        x = reduce(combine, (seen for _, seen in window.along(axis).taps(e, x)))
    return x


def counts(extents: Ints, window: Window, dtype: np.dtype[np.generic]) -> Array:
    """Return the number of elements in each window that are not padding, [1, places ..., 1]."""
    found = np.ones((1,), np.int64)
    for n, k, s, d, (before, _), places in zip(extents, window.kernel, window.strides, window.dilations, window.pads,
                                               window.places(extents)):
        at = np.arange(places)[:, None] * s + np.arange(k) * d - before
        found = found[..., None] * ((at >= 0) & (at < n)).sum(1)
    return found[..., None].astype(dtype)


def least(element: ElementType) -> float:
    return element.minimum if element.is_integer else -math.inf
