"""Random arrays of every element type: plain numbers, and the numbers at which arithmetic goes wrong."""
from __future__ import annotations

import random

import ml_dtypes
import numpy as np
from tosaic.lowering.graph.types import F8E8M0, MXINT8, Array, ElementType, TensorType

MOODS = ("plain", "whole", "nasty")
"""`plain` numbers of ordinary size, `whole` small integers (floats too: their sums are exact), `nasty` extremes."""


def array(rng: random.Random, type: TensorType, mood: str = "plain", span: tuple[int, int] | None = None) -> Array:
    """Data of a type. `span` bounds integers: what is a shift or an index must not be just anything."""
    numbers = np.random.default_rng(rng.getrandbits(64))
    element, shape = type.element, type.dims
    if element.kind == "bool":
        return np.asarray(numbers.integers(0, 2, shape)).astype(bool)
    if element == F8E8M0:
        return scales(numbers, shape, mood)
    if element == MXINT8:
        return np.asarray(numbers.integers(-128, 127, shape, np.int8, endpoint=True))
    if element.is_float and element.bits < 8:
        return bits(numbers, element, shape)
    if element.is_float:
        return floats(numbers, rng, element, shape, mood)
    if span is not None:
        return np.asarray(numbers.integers(span[0], span[1], shape, endpoint=True)).astype(element.dtype)
    return integers(numbers, rng, element, shape, mood)


def bits(numbers: np.random.Generator, element: ElementType, shape: tuple[int, ...]) -> Array:
    """Numbers of every exponent, and all else that the bits of a float may be."""
    codes = numbers.integers(0, 1 << element.bits, shape, np.uint64)
    return np.asarray(codes.astype(f"u{element.dtype.itemsize}")).view(element.dtype)


def scales(numbers: np.random.Generator, shape: tuple[int, ...], mood: str, extremes: tuple[int, ...] = ()) -> Array:
    """Powers of two near 1; nasty ones, and the scale that is NaN, and `extremes` (their codes)."""
    near = numbers.integers(120, 135, shape, endpoint=True)
    if mood == "nasty":
        near = np.where(numbers.random(shape) < 0.2, numbers.choice([0, 1, 23, 230, 235, 255, *extremes], shape), near)
    return near.astype(np.uint8).view(F8E8M0.dtype)


def integers(numbers: np.random.Generator, rng: random.Random, element: ElementType, shape: tuple[int, ...], mood: str
             ) -> Array:
    low, high = element.minimum, element.maximum
    if mood == "whole" or (mood == "plain" and rng.random() < 0.4):
        low, high = max(low, -9), min(high, 9)
    values = numbers.integers(low, high, shape, np.int64, endpoint=True)
    if mood == "nasty":
        extremes = np.array([element.minimum, element.maximum, element.minimum + 1, 0, 1, max(-1, element.minimum)])
        values = np.where(numbers.random(shape) < 0.3, numbers.choice(extremes, shape), values)
    return np.array(np.asarray(values).astype(element.dtype))


def floats(numbers: np.random.Generator, rng: random.Random, element: ElementType, shape: tuple[int, ...], mood: str
           ) -> Array:
    if mood == "whole":
        return np.asarray(numbers.integers(-8, 8, shape, endpoint=True) / rng.choice((1, 1, 2)), element.dtype)
    values = numbers.standard_normal(shape) * rng.choice((0.25, 1.0, 1.0, 5.0))
    if mood == "nasty":
        info = ml_dtypes.finfo(element.dtype)
        special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, float(info.smallest_subnormal), float(info.tiny),
                            -float(info.smallest_subnormal), float(info.max), -float(info.max), 1.0, -1.0, 0.5, 2.5, -0.5])
        values = np.where(numbers.random(shape) < 0.3, numbers.choice(special, shape), values)
    with np.errstate(all="ignore"):
        return np.array(np.asarray(values).astype(element.dtype))
