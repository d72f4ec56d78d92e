"""Quantisation as training sees it: numbers that a scale of so many bits can hold."""
from __future__ import annotations

import numpy as np

from ....graph.graph import Operation
from ....graph.types import Array
from ..operator import flag, number
from .table import reference


def fake_quantized(operation: Operation, x: Array, low: Array, high: Array, divides: bool) -> Array:
    """The range is nudged so that zero is one of its steps. With `divides` by the step, else times its inverse, as TensorFlow's
    kernels have it: they differ half way between two steps."""
    least, most = np.float32(flag(operation, "narrow_range")), np.float32((1 << int(number(operation, "num_bits"))) - 1)
    low, high = (np.asarray(v, np.float32) for v in (low, high))
    with np.errstate(all="ignore"):
        scale, inverse = (high - low) / (most - least), (most - least) / (high - low)
        zero = least - low / scale
        nudged = np.where(zero < least, least, np.where(zero > most, most, np.floor(zero + np.float32(0.5))))
        first, last = (least - nudged) * scale, (most - nudged) * scale
        steps = np.maximum(np.minimum(x, last), first) - first
        steps = (steps / scale if divides else steps * inverse) - np.floor(-first * inverse + np.float32(0.5))
        found = np.floor(steps + np.float32(0.5)) * scale
    return np.where((low == 0) & (high == 0), np.float32(0), found).astype(np.float32)


@reference("tf.FakeQuantWithMinMaxArgs")
def by_arguments(operation: Operation, x: Array) -> Array:
    low, high = (np.asarray(number(operation, n)) for n in ("min", "max"))
    return fake_quantized(operation, x, low, high, divides=False)


@reference("tf.FakeQuantWithMinMaxVars")
def by_values(operation: Operation, x: Array, low: Array, high: Array) -> Array:
    return fake_quantized(operation, x, low, high, divides=True)


@reference("tf.FakeQuantWithMinMaxVarsPerChannel")
def by_channels(operation: Operation, x: Array, low: Array, high: Array) -> Array:
    return fake_quantized(operation, x, low, high, divides=False)
