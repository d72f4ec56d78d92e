"""Quantisation as training sees it: numbers that a scale of so many bits can hold."""
from __future__ import annotations

import numpy as np

from ....graph.graph import Operation
from ....graph.types import Array
from ..operator import flag, number
from .table import reference


def fake_quantized(operation: Operation, x: Array, low: Array, high: Array) -> Array:
    """The range is nudged so that zero is one of its steps."""
    least, most = int(flag(operation, "narrow_range")), (1 << int(number(operation, "num_bits"))) - 1
    low, high = (np.asarray(v, np.float32) for v in (low, high))
    scale = (high - low) / np.float32(most - least)
    zero = np.float32(least) - low / scale
    rounded = np.floor(zero + np.float32(0.5))
    nudged = np.where(zero < least, np.float32(least), np.where(zero > most, np.float32(most), rounded))
    low, high = (np.float32(least) - nudged) * scale, (np.float32(most) - nudged) * scale
    steps = np.floor((np.minimum(np.maximum(x, low), high) - low) / scale + np.float32(0.5))
    return np.asarray(steps * scale + low, np.float32)


@reference("tf.FakeQuantWithMinMaxArgs")
def by_arguments(operation: Operation, x: Array) -> Array:
    return fake_quantized(operation, x, np.asarray(number(operation, "min")), np.asarray(number(operation, "max")))


@reference("tf.FakeQuantWithMinMaxVars", "tf.FakeQuantWithMinMaxVarsPerChannel")
def by_values(operation: Operation, x: Array, low: Array, high: Array) -> Array:
    return fake_quantized(operation, x, low, high)
