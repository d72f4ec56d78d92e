"""Quantisation as simulated in training: numbers that a scale of a given number of bits can hold."""
from __future__ import annotations

import numpy as np

from ....graph.foreign import find, flag, number
from ....graph.graph import Operation
from ....graph.types import Array
from .table import reference


def fake_quantized(operation: Operation, x: Array, low: Array, high: Array, divides: bool) -> Array:
    """Return x quantised to a range that is nudged so that zero is one of its steps. With `divides` divide by the step, else
    multiply by its inverse, as TensorFlow's kernels do: they differ half way between two steps."""
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


@reference("tf.QuantizeAndDequantizeV2", "tf.QuantizeAndDequantizeV3", "tf.QuantizeAndDequantizeV4")
def quantize_and_dequantize(operation: Operation, x: Array, low: Array, high: Array, *operand: Array) -> Array:
    """Return x in steps of a scale that the coarser side of the range decides; without a given range that of the tensor."""
    def says(name: str, default: bool) -> bool:
        return default if find(operation, name) is None else flag(operation, name)
    bits = int(operand[0]) if operand else int(number(operation, "num_bits", 8))
    signed, given, axis = says("signed_input", True), says("range_given", False), int(number(operation, "axis", -1))
    least = -(1 << (bits - 1)) + says("narrow_range", False) if signed else 0
    most = (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1
    others = tuple(a for a in range(x.ndim) if a != axis)
    if given:
        low, high = (v.reshape([-1 if a == axis else 1 for a in range(x.ndim)]) for v in (low, high))
    else:
        low, high = x.min(others, keepdims=True), x.max(others, keepdims=True)
    kind, largest = x.dtype.type, np.finfo(x.dtype).max
    with np.errstate(all="ignore"):
        below, above = (np.where(kind(n) * v > 0, kind(n) / v, largest) for n, v in ((least, low), (most, high)))
        step = np.where(below < above, low / kind(least), high / kind(most)).astype(x.dtype)
        low, high = np.where(below < above, low, kind(least) * step), np.where(below < above, kind(most) * step, high)
        scaled = (np.clip(x, low, high) if given else x) * np.where(below < above, below, above).astype(x.dtype)
    whole = np.floor(scaled + kind(0.5)) if find(operation, "round_mode") == "HALF_UP" else np.rint(scaled)
    return (whole * step).astype(x.dtype)
