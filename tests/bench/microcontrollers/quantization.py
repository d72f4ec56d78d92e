"""The fixed-point numbers that TensorFlow Lite's int8 kernels compute with, from the scales in its files: what a caller of
CMSIS-NN has to compute for it."""
from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from .layers import Layer

ADD_SHIFT = 20
"""Bits by which a sum's terms are shifted left, so that rounding costs them nothing."""
SOFTMAX_BITS = 5
"""Integer bits of a softmax' differences."""


def multiplier(real: float) -> tuple[int, int]:
    """A factor as a multiplier of 31 bits and a shift to the left: real = multiplier * 2^(shift - 31)."""
    if real == 0:
        return 0, 0
    fraction, shift = math.frexp(real)
    fixed = math.floor(fraction * 2**31 + 0.5)
    if fixed == 2**31:
        fixed, shift = fixed // 2, shift + 1
    return (0, 0) if shift < -31 else (fixed, shift)


def rescaling(layer: Layer) -> list[tuple[int, int]]:
    """Multiplier and shift of each output channel of a convolution or product; of a product with one scale, one pair."""
    assert layer.weights is not None and layer.weights.scales is not None
    x, y = scale(layer.inputs[0].scale), scale(layer.output.scale)
    found = [multiplier(x * float(w) / y) for w in layer.weights.scales]
    return found * layer.expected.shape[-1] if len(found) == 1 and layer.kind != "FULLY_CONNECTED" else found


def limits(layer: Layer) -> tuple[int, int]:
    """The least and the greatest output that an activation leaves."""
    zero, y = layer.output.zero_point, scale(layer.output.scale)
    match layer.options["activation"]:
        case 0: return -128, 127
        case 1: return max(-128, zero), 127
        case 3: return max(-128, zero), min(127, zero + round(6 / y))
        case other: raise NotImplementedError(f"activation {other} of {layer.name}")


def addition(layer: Layer) -> Mapping[str, tuple[int, int]]:
    """Multiplier and shift of a sum's terms and of the sum."""
    a, b = (scale(t.scale) for t in layer.inputs)
    twice = 2 * max(a, b)
    return {"a": multiplier(a / twice), "b": multiplier(b / twice),
            "sum": multiplier(twice / (2**ADD_SHIFT * scale(layer.output.scale)))}


def softmax(layer: Layer) -> tuple[int, int, int]:
    """Multiplier and shift of a softmax' differences, and the least difference that counts."""
    beta = float(np.array(layer.options["beta"], np.uint32).view(np.float32))
    real = min(beta * scale(layer.inputs[0].scale) * 2 ** (31 - SOFTMAX_BITS), 2.0**31 - 1)
    fixed, shift = multiplier(real)
    radius = (2**SOFTMAX_BITS - 1) * 2 ** (31 - SOFTMAX_BITS) / 2**shift
    return fixed, shift, -math.floor(radius)


def scale(value: np.float32 | None) -> float:
    assert value is not None, "a tensor without a scale"
    return float(value)
