"""Quantization of traced tensors: the arithmetic of `runtime.quantization`, as operations of the function that is being traced,
with the same results to the bit."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...lowering.graph.types import Array
from ...runtime.quantization import Quantization
from . import ops
from .tensor import Tensor
from .trace import problem

MAX_BITS = 16
"""Maximum number of bits of an integer that is exact in a float's 24 bits after its zero point is subtracted."""


def quantized(numbers: Quantization | None, what: str, x: Tensor, dtype: np.dtype[Any]) -> Tensor:
    """Quantize real numbers: quotients rounded to nearest, halves away from zero, clamped to the range of the storage; a NaN
    becomes the zero point. Return a tensor that is not quantized itself."""
    if numbers is None:
        return as_stored(x, what, dtype)
    scales, zeros = aligned(numbers, what, x)
    quotients = x.astype(np.float32) / scales
    whole = ops.trunc(quotients)
    away = ops.where(ops.abs(quotients - whole) >= 0.5, ops.copysign(np.float32(1), quotients), np.float32(0))
    low, high = (np.asarray(bound - zeros, np.float32) for bound in (numbers.low, numbers.high))
    held = ops.clip(ops.where(ops.isnan(quotients), np.float32(0), whole + away), low, high)
    return (held.astype(np.int32) + zeros).astype(dtype)


def dequantized(numbers: Quantization | None, what: str, x: Tensor, dtype: np.dtype[Any]) -> Tensor:
    """Dequantize stored integers to real numbers, in float32."""
    if numbers is None:
        return as_stored(x, what, dtype)
    if x.dtype != dtype:
        raise problem(f"{what} must be a tensor of {dtype}, got {x.dtype}", "type", help="pass what a call has returned")
    scales, zeros = aligned(numbers, what, x)
    return (x.astype(np.int32) - zeros).astype(np.float32) * scales


def aligned(numbers: Quantization, what: str, x: Tensor) -> tuple[Array, Array]:
    """Return scales and zero points aligned with the tensor's axes."""
    if numbers.high - numbers.low >= 1 << MAX_BITS:
        raise problem(f"{what} has integers of more than {MAX_BITS} bits", "unsupported",
                      help="quantize and dequantize it outside of the jitted function")
    scales, zeros = numbers.aligned(what, np.broadcast_to(np.int8(0), x.shape))
    return scales, zeros.astype(np.int32)


def as_stored(x: Tensor, what: str, dtype: np.dtype[Any]) -> Tensor:
    """Return a tensor of the model's type, converting floats to floats. Raise a Problem for other types."""
    if x.dtype == dtype:
        return x
    if dtype.kind == x.dtype.kind == "f":
        return x.astype(dtype)
    raise problem(f"the model does not say what the numbers of {what} stand for", "type",
                  help=f"pass a tensor of dtype {dtype}, which is taken as it is")
