"""The quantization of stored integers: real = scale * (stored - zero point), for a whole tensor or for each index along an
axis, and the arithmetic of both directions. It is the reference arithmetic of TensorFlow Lite, in float32: quotients are
rounded to the nearest integer, halves away from zero, and clamped to the range of the storage; a NaN becomes the zero point.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .arena import Array
from .errors import TypeProblem, ValueProblem
from .records import dataclass


@dataclass(frozen=True, slots=True)
class Quantization:
    """Scales and zero points: one of each, or one for each index along `axis`. `low` to `high` is the range of stored integers
    that is used."""
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None
    low: int
    high: int

    def quantize(self, what: str, values: Any, dtype: np.dtype[Any]) -> Array:
        """Return the stored integers of real numbers."""
        numbers = real_numbers(what, values)
        scales, zeros = self.aligned(what, numbers)
        with np.errstate(all="ignore"):  # infinite quotients are clamped to the range, NaNs are replaced
            quotients = numbers / scales
            whole = np.trunc(quotients)
            whole = whole + np.where(np.abs(quotients - whole) >= 0.5, np.copysign(np.float32(1), quotients), np.float32(0))
            stored = np.where(np.isnan(quotients), 0.0, whole).astype(np.float64) + zeros
        clipped: Array = np.clip(stored, self.low, self.high).astype(dtype)
        return clipped

    def dequantize(self, what: str, values: Any, dtype: np.dtype[Any]) -> Array:
        """Return the real numbers of stored integers, in float32."""
        stored = np.asarray(values)
        if stored.dtype != dtype:
            raise TypeProblem(f"{what} must be an array of {dtype}, got {stored.dtype}", kind="argument",
                              help="pass what a call has returned")
        scales, zeros = self.aligned(what, stored)
        with np.errstate(all="ignore"):
            return np.asarray(scales.astype(np.float64) * (stored.astype(np.int64) - zeros), np.float64).astype(np.float32)

    def fields(self) -> list[Any]:
        """Return the fields that the cache stores."""
        return [self.scales, self.zero_points, self.axis, self.low, self.high]

    def aligned(self, what: str, array: Array) -> tuple[Array, Array]:
        """Return scales and zero points that broadcast along the array's axes; raise a Problem if the array has another extent
        along the axis."""
        scales, zeros = np.array(self.scales, np.float32), np.array(self.zero_points, np.int64)
        if self.axis is None:
            return scales[0], zeros[0]
        if array.ndim <= self.axis or array.shape[self.axis] != len(scales):
            raise ValueProblem(f"{what} is quantized along axis {self.axis} with {len(scales)} scales, got an array of shape "
                               f"{array.shape}", kind="argument",
                               help=f"its extent along axis {self.axis} must be {len(scales)}")
        shape = [-1 if i == self.axis else 1 for i in range(array.ndim)]
        return scales.reshape(shape), zeros.reshape(shape)


def quantization_from(fields: Sequence[Any]) -> Quantization:
    """Return the quantization of fields from the cache."""
    scales, zero_points, axis, low, high = fields
    return Quantization(tuple(scales), tuple(zero_points), axis, low, high)


def real_numbers(what: str, values: Any) -> Array:
    """Return values as float32; raise a Problem if they are no real numbers."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise TypeProblem(f"{what} must be an array of real numbers: {error}", kind="argument",
                          help="pass a NumPy array") from None
    if array.dtype.kind not in "iuf" and array.dtype.name not in ("bfloat16",):
        raise TypeProblem(f"{what} must be an array of real numbers, got {array.dtype}", kind="argument",
                          help="pass an array of float32")
    with np.errstate(all="ignore"):
        return array.astype(np.float32)
