"""Pools: the greatest or the mean of each window, padding not counted.

A window in three dimensions is one along the depth, then one over rows and columns: both the greatest and the mean of what is
not padding come out the same. Types that TOSA has no pool for are combined tap by tap.
"""
from __future__ import annotations

import math
from functools import reduce

import numpy as np

from .....runtime.errors import Problem
from ....formulas.windows import Pads, window_padded
from ....graph.graph import Operation, Value
from ....graph.types import ElementType
from ...emitter import Emitter
from ...tosa.pooling import ACCUMULATORS
from .convolutions import ConvolutionWindow
from .table import legalization
from .windows import AxisOrder


@legalization("tf.MaxPool")
def max_pool(e: Emitter, operation: Operation, x: Value) -> Value:
    return pooled(e, operation, x, 2, "max_pool2d")


@legalization("tf.AvgPool")
def avg_pool(e: Emitter, operation: Operation, x: Value) -> Value:
    return pooled(e, operation, x, 2, "avg_pool2d")


@legalization("tf.MaxPool3D")
def max_pool_3d(e: Emitter, operation: Operation, x: Value) -> Value:
    return pooled(e, operation, x, 3, "max_pool2d")


@legalization("tf.AvgPool3D")
def avg_pool_3d(e: Emitter, operation: Operation, x: Value) -> Value:
    return pooled(e, operation, x, 3, "avg_pool2d")


def pooled(e: Emitter, operation: Operation, x: Value, spatial: int, name: str) -> Value:
    layout = AxisOrder.of(operation, x, spatial)
    window = ConvolutionWindow(layout, layout.numbers("ksize"))
    image, pads = window.placed(e, layout.last(e, x))
    for (before, after), k in zip(pads, window.kernel):
        if max(before, after) >= k:
            raise Problem(f"a padding of {max(before, after)} is not below the window of {k}", kind="attribute")
    if image.tensor.element not in ACCUMULATORS:
        found = tap_by_tap(e, window, image, pads, name)
    elif spatial == 2:
        found = plane(e, name, image, window.kernel, window.strides, pads)
    else:
        found = volume(e, name, image, window, pads)
    return layout.as_written(e, found)


def plane(e: Emitter, name: str, x: Value, kernel: tuple[int, ...], strides: tuple[int, ...], pads: Pads) -> Value:
    """Windows over the rows and columns of [N, H, W, C]."""
    where = {"kernel": tuple(kernel), "stride": tuple(strides), "pad": tuple(n for pair in pads for n in pair)}
    if name == "max_pool2d":
        return e(name, x, **where)
    element = x.tensor.element
    zero = e.constant(np.zeros(1, element.dtype), element)
    return e(name, x, zero, zero, **where, acc_type=ACCUMULATORS[element][-1])


def volume(e: Emitter, name: str, x: Value, window: ConvolutionWindow, pads: Pads) -> Value:
    """Windows over the depth of [N, D, H, W, C], then over rows and columns."""
    n, depth, height, width, channels = x.tensor.dims
    flat = e.reshape(x, (n, depth, height * width, channels))
    deep = plane(e, name, flat, (window.kernel[0], 1), (window.strides[0], 1), [pads[0], (0, 0)])
    planes = e.reshape(deep, (n * deep.tensor.dims[1], height, width, channels))
    found = plane(e, name, planes, window.kernel[1:], window.strides[1:], pads[1:])
    return e.reshape(found, (n, deep.tensor.dims[1], *found.tensor.dims[1:]))


def tap_by_tap(e: Emitter, window: ConvolutionWindow, x: Value, pads: Pads, name: str) -> Value:
    """The places of the window one after another, for other types."""
    element = x.tensor.element
    if name == "max_pool2d":
        seen = window.taps(e, window_padded(e, x, pads, least(element)))
        return reduce(lambda a, b: e.arithmetic("maximum", a, b), (v for _, v in seen))
    total = reduce(e.sum, (v for _, v in window.taps(e, window_padded(e, x, pads, 0))))
    ones = e.constant(np.ones((1, *x.tensor.dims[1:-1], 1), element.dtype), element)
    return e.quotient(total, reduce(e.sum, (v for _, v in window.taps(e, window_padded(e, ones, pads, 0)))))


def least(element: ElementType) -> float:
    return element.minimum if element.is_integer else -math.inf


