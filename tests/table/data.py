"""Random arrays for every element type: those of `fuzz/generators/data.py`, and what they do not have: any bits of a float,
block-scaled records, unsigned numbers of 64 bits.
"""
from __future__ import annotations

import random

import numpy as np
from tosaic.lowering.graph.block_scaled_arrays import joined
from tosaic.lowering.graph.types import F8E8M0, MXINT8, Array, BlockScaled, TensorType

from ..fuzz.generators.data import array as ordinary
from ..fuzz.generators.data import bits, scales

MOODS = ("plain", "whole", "nasty", "nasty", "bits")
"""`bits` are any bits at all; the others as they are there."""


def array(rng: random.Random, type: TensorType, mood: str, span: tuple[int, int] | None = None) -> Array:
    """Data of a type. `span` bounds integers: what is a shift or an index must not be just anything."""
    element, numbers = type.element, np.random.default_rng(rng.getrandbits(64))
    if isinstance(element, BlockScaled):
        *rest, last = type.dims
        values = array(rng, TensorType(type.dims, element.value), mood)
        return joined(values, scales_of(numbers, (*rest, last // element.block), mood), element)
    if element == F8E8M0:
        return scales_of(numbers, type.dims, mood)
    if element.is_float and element != MXINT8 and mood == "bits":
        return bits(numbers, element, type.dims)
    if element.storage == "uint64" or element.kind == "index":
        high = span[1] if span else (1 << 63) - 1
        return np.asarray(numbers.integers(0, high, type.dims, np.int64, endpoint=True)).astype(element.dtype)
    return ordinary(rng, type, "nasty" if mood == "bits" else mood, span)


def scales_of(numbers: np.random.Generator, dims: tuple[int, ...], mood: str) -> Array:
    """Only those of the mood `bits` are so large that a value times its scale may be beyond float32."""
    if mood == "bits":
        return scales(numbers, dims, "nasty", (253, 254))
    return scales(numbers, dims, mood)
