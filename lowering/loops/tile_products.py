"""The tile products of a matrix unit, bit for bit (but for the bits of a NaN), for the interpreter of loops."""
from __future__ import annotations

import numpy as np

from ..graph.types import Array

TINY = 2.0**-126 * (1 - 2.0**-25)
"""Least magnitude that, rounded to 24 bits, is a normal float32; the exponent of a smaller one is too small."""


def multiply_tiles(total: Array, x: Array, y: Array, signed: bool) -> Array:
    """Return the bytes of total + x * y; each row of y packs four rows of the matrix."""
    a = (x.view(np.int8) if signed else x).astype(np.int64)
    columns = y.view(np.int8).astype(np.int64).reshape(len(y), -1, 4).transpose(0, 2, 1).reshape(4 * len(y), -1)
    return np.asarray((total.view(np.int32) + a @ columns).astype(np.int32)).view(np.uint8)


def multiply_float_tiles(total: Array, x: Array, y: Array) -> Array:
    """Return the bytes of total + x * y for bfloat16 x and y; each row of y packs two rows of the matrix."""
    a, b = halves(x), halves(y)
    even, odd = (chain(a[:, i::2], b[:, i::2]) for i in range(2))
    return flushed(flushed(total.view(np.float32)).astype(np.float64) + flushed(even.astype(np.float64) + odd)).view(np.uint8)


def halves(x: Array) -> Array:
    """Return bfloat16 as float64, subnormals as zeros."""
    return flushed((x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)).astype(np.float64)


def chain(a: Array, b: Array) -> Array:
    """Chain fused multiply-adds by rising k. A product of bfloat16 has 16 bits, so float64 holds its exact sum with a float32,
    or, if the two are far apart, a sum that rounds to the same float32."""
    sums = np.zeros((len(a), b.shape[1]), np.float32)
    for k in range(len(b)):
        sums = flushed(a[:, k, None] * b[k] + sums)
    return sums


def flushed(x: Array) -> Array:
    """Return x as float32, subnormals as zeros of their sign."""
    return np.where(np.abs(x) < TINY, np.copysign(0, x), x).astype(np.float32)
