"""Recipes of RESCALE, and of the chains that quantized models are made of."""
from __future__ import annotations

import numpy as np
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import I8, I16, I32, I48, UI8, UI16, ElementType, TensorType

from .contractions import RECIPES as CONTRACTIONS
from .maker import Maker, Recipe

WIDE = {I8: 0, UI8: 0, I16: 8, UI16: 8, I32: 24, I48: 40}
"""Bits that a rescale from the type to 8 bits takes off, about."""


def rescale(m: Maker) -> None:
    rescaled(m, m.pick((I8, I16, I32, I48, UI8, UI16)))


def rescaled(m: Maker, x: Value, to: ElementType | None = None) -> Value:
    source = x.tensor.element
    to = to or m.rng.choice([e for e in (I8, I8, I16, I32, UI8, UI16) if source.is_integer and (
        e.kind == source.kind == "signed" or (max(source.bits, e.bits) <= 16 and "signed" in (e.kind, source.kind)))])
    small = source.bits <= 16 and to.bits <= 16
    input_unsigned = source.kind == "unsigned" or (small and to.kind == "signed" and m.chance(0.15))
    output_unsigned = to.kind == "unsigned" or (small and not input_unsigned and m.chance(0.15))
    scale32 = source != I48 and m.chance(0.75)
    double = scale32 and m.chance(0.4)
    per_channel = x.tensor.rank > 0 and m.chance(0.4)
    multiplier, shift = factors(m, x.tensor.dims[-1] if per_channel else 1, scale32, WIDE[source] - WIDE[to])
    return m.op("rescale", x, multiplier, shift, zero_point(m, source, input_unsigned), zero_point(m, to, output_unsigned),
                scale32=scale32, rounding_mode="DOUBLE_ROUND" if double else m.rng.choice(("SINGLE_ROUND", "INEXACT_ROUND")),
                per_channel=per_channel, input_unsigned=input_unsigned, output_unsigned=output_unsigned, to=to)


def factors(m: Maker, channels: int, scale32: bool, down: int) -> tuple[Value, Value]:
    """Multipliers and shifts, mostly constants, mostly of results that are not all clipped."""
    bits, dtype = (31, np.int32) if scale32 else (15, np.int16)
    least = 1 << (bits - 1)
    middle = min(max(bits + m.rng.randint(0, max(0, down)) + m.rng.randint(-3, 2), 2), 62)
    match m.rng.choice(("usual", "usual", "usual", "power", "small", "any")):
        case "power":
            numbers = [1 << m.rng.randrange(bits)] * channels
        case "small":
            numbers = [m.rng.randint(0, 100) for _ in range(channels)]
        case "any":
            numbers = [m.rng.randint(0, 2 * least - 1) for _ in range(channels)]
        case _:
            numbers = [m.rng.randint(least, 2 * least - 1) for _ in range(channels)]
    spread = m.rng.choice((0, 0, 3))
    shifts = [min(max(middle + m.rng.randint(-spread, spread), 2), 62) for _ in range(channels)]
    if m.chance(0.15):
        element = I32 if scale32 else I16
        return (m.fresh(TensorType((channels,), element), (0, 2 * least - 1), 0.0),
                m.fresh(TensorType((channels,), I8), (max(2, middle - 2), min(62, middle + 2)), 0.2))
    return m.constant(np.array(numbers, dtype)), m.constant(np.array(shifts, np.int8))


def zero_point(m: Maker, element: ElementType, unsigned: bool) -> Value:
    if element.bits == 8:
        if m.chance(0.15):
            return m.fresh(TensorType((1,), element), (element.minimum, element.maximum), 0.0)
        return m.constant(np.array([m.rng.randint(element.minimum, element.maximum)], element.dtype), element)
    if unsigned and m.chance(0.3):
        return m.constant(np.array([32768], np.uint16).view(element.dtype), element)
    return m.constant(np.zeros(1, element.dtype), element)


def chain(m: Maker) -> None:
    """A contraction of bytes with what follows it in a quantized model."""
    before = len(m.pool)
    CONTRACTIONS[m.rng.choice(("conv2d", "depthwise_conv2d", "matmul", "conv3d", "transpose_conv2d"))](m)
    sums = [v for v in m.pool[before:] if v.tensor.element in (I32, I48)]
    x = rescaled(m, sums[-1] if sums else m.pick((I32, I48)), m.rng.choice((I8, I8, I8, I16)))
    if m.chance(0.5):
        low = m.rng.randint(x.tensor.element.minimum, 0)
        x = m.op("clamp", x, min_val=low, max_val=low + m.rng.randint(0, 127))
    if m.chance(0.4) and x.tensor.element == I8:
        x = m.op("table", x, m.exactly(TensorType((256,), I8), constant=0.9))
    if m.chance(0.4):
        x = rescaled(m, x, I32)
        other = m.mate(x)
        x = rescaled(m, m.op("add", x, other), I8)


RECIPES: dict[str, Recipe] = {"rescale": rescale, "quantized chain": chain}
