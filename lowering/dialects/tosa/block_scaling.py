"""Numbers that share a scale, in NumPy: the real numbers of block-scaled arrays, and the block-scaled array nearest to real
numbers. Only references use it; compiled code has its own arithmetic (`block_scaled_halves.py`). TOSA 1.1, "Numeric conversion
helpers"; the formats are those of the OCP's Microscaling specification 1.0.
"""
from __future__ import annotations

import numpy as np

from ...graph.types import F8E4M3, F8E5M2, F8E8M0, F32, MXINT8, Array, BlockScaled, ElementType

LIMITS = {"f8E4M3FN": 464.0, "f8E5M2": 61440.0, "f6E2M3FN": 7.75, "f6E3M2FN": 30.0, "f4E2M1FN": 7.0,
          "!tosa.mxint8": 1.9921875}
"""Largest number plus half a unit in its last place, for each type of value."""
LEAST, GREATEST, NOT_A_NUMBER = -127, 127, 255
"""Least and greatest exponent of scales, and the code of the scale that is NaN."""


def real(x: Array) -> Array:
    """Return the numbers of any array in float64; of records, value times scale."""
    if x.dtype.names is None:
        return x.astype(np.float64)
    return real_values(x["value"]) * x["scale"].astype(np.float64)


def real_values(values: Array) -> Array:
    """Return values without their scales: bytes (`!tosa.mxint8`) count 64ths."""
    wide = values.astype(np.float64)
    return wide / 64 if values.dtype == np.int8 else wide


def scale_of(x: Array, value: ElementType) -> Array:
    """Return the scales [..., n / 32] of numbers [..., n] for values of type `value`: the smallest powers of two with which no
    value is rounded to more than the type can hold."""
    blocks = np.abs(x.astype(np.float64)).reshape(*x.shape[:-1], -1, 32)
    largest = np.max(blocks, axis=-1)
    fraction, exponent = np.frexp(np.where(np.isfinite(largest), largest, 1) / LIMITS[value.name])
    if value == F8E4M3:  # a tie at the limit goes to its even, finite side
        exponent = np.where(fraction == 0.5, exponent - 1, exponent)
    exponent = np.where(largest == 0, LEAST, np.clip(exponent, LEAST, GREATEST))
    codes = np.where(np.isfinite(largest), exponent - LEAST, NOT_A_NUMBER)
    return codes.astype(np.uint8).view(F8E8M0.dtype)


def values_of(x: Array, scale: Array, value: ElementType) -> Array:
    """Return the values [..., n] for numbers [..., n] and scales [..., n / 32]."""
    quotient = x.astype(np.float64) / np.repeat(scale.astype(np.float64), 32, axis=-1)
    if value == MXINT8:
        return np.nan_to_num(np.clip(np.rint(quotient * 64), -128, 127), nan=0).astype(np.int8)
    narrow = quotient if value in (F8E4M3, F8E5M2) else np.where(np.isnan(quotient), 0, quotient)
    return narrow.astype(F32.dtype).astype(value.dtype)


def nearest_records(x: Array, element: BlockScaled) -> Array:
    """Return the records of `element` for numbers [..., n]."""
    scale = scale_of(x, element.value)
    records = np.empty(x.shape, element.dtype)
    records["scale"] = np.repeat(scale, element.block, axis=-1)
    records["value"] = values_of(x, scale, element.value)
    return records
