"""Random arrays of every element type: plain numbers, and the numbers at which arithmetic goes wrong."""
from __future__ import annotations

import random

import ml_dtypes
import numpy as np
from tosaic.lowering.graph.types import Array, ElementType, TensorType

MOODS = ("plain", "whole", "nasty")
"""`plain` numbers of ordinary size, `whole` small integers (floats too: their sums are exact), `nasty` extremes."""


def array(rng: random.Random, type: TensorType, mood: str = "plain", span: tuple[int, int] | None = None) -> Array:
    """Data of a type. `span` bounds integers: what is a shift or an index must not be just anything."""
    numbers = np.random.default_rng(rng.getrandbits(64))
    element, shape = type.element, type.dims
    if element.kind == "bool":
        return np.asarray(numbers.integers(0, 2, shape)).astype(bool)
    if element.is_float:
        return floats(numbers, rng, element, shape, mood)
    if span is not None:
        return np.asarray(numbers.integers(span[0], span[1], shape, endpoint=True)).astype(element.dtype)
    return integers(numbers, rng, element, shape, mood)


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
