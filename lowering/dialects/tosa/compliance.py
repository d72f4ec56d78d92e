"""Maximum error of each operator's results against the reference: the specification's bounds for the float profile.

Used to check compiled code against the reference, operator by operator. Integers, layout, comparisons and selections are exact
(the sign of a zero is free). Bounds hold against the exact value; the reference is that value rounded once, so half a unit is
added to bounds that are not zero. TOSA 1.0, "Floating-point compliance". For f64, which is not a type of TOSA, the bound of a
function is a few units of the last place, and that of a sum of n terms, in any order, n units of the sum of the terms'
magnitudes; the possible error of the reference, which is in f64 too, is added.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph.operator import Op
from ...graph.types import Array, ElementType

FRACTION_BITS = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52, "f8E4M3FN": 3, "f8E5M2": 2, "f8E4M3FNUZ": 3,
                 "f8E5M2FNUZ": 2, "f6E2M3FN": 3, "f6E3M2FN": 2, "f4E2M1FN": 1, "f8E8M0FNU": 0, "!tosa.mxint8": 0}
NORMAL_MINIMUM = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022, "f8E4M3FN": 2.0**-6,
                  "f8E5M2": 2.0**-14}
FLOAT32_MAXIMUM = float(np.finfo(np.float32).max)
DOUBLE_MAXIMUM = float(np.finfo(np.float64).max)
DOUBLE_FUNCTIONS = frozenset({"exp", "log", "pow", "sin", "cos", "tanh", "sigmoid", "erf", "rsqrt"})
DOUBLE_ULPS = 8.0
"""Units of the last place allowed for f64: 4 for compiled code and 4 for NumPy, whose functions of f64 differ between
machines."""
DOUBLE_RANGE = 2.0**30
"""Largest angle in f64 whose sine is computed."""
ULPS = {"reciprocal": 1.0, "rsqrt": 2.0, "erf": 5.0}
DOT_PRODUCTS = frozenset({"conv2d", "conv3d", "depthwise_conv2d", "transpose_conv2d", "matmul", "matmul_t", "avg_pool2d",
                          "avg_pool2d_adaptive", "reduce_sum", "matmul_t_block_scaled", "conv2d_block_scaled"})


def bound(op: Op, operands: Sequence[Array], expected: Array, element: ElementType) -> Array | None:
    """Return the allowed absolute error of each element of a float result; None if it must be equal."""
    if not element.is_float:
        return None
    name, unit = op.name.removeprefix("tosa."), 2.0 ** -FRACTION_BITS[element.name]
    exact = expected.astype(np.float64)
    x = operands[0].astype(np.float64) if operands else exact
    with np.errstate(all="ignore"):
        if element.name == "f64" and name in DOUBLE_FUNCTIONS:
            return double_function(name, x, exact, element)
        match name:
            case "reciprocal" | "rsqrt" | "erf":
                return (ULPS[name] + 0.5) * ulp(exact, element)
            case "cast" if operands[0].dtype.kind not in "iub":
                return ulp(exact, element) if operands[0].dtype.itemsize > element.itemsize else None
            case "exp":
                return relative(exact, exponential(x, element) * unit, unit)
            case "log":
                return np.maximum(5 * np.abs(exact), 0.5) * unit + unit * np.abs(exact)
            case "tanh":
                return np.maximum(4 * exponential(x, element) * np.abs(exact), 0.5) * unit
            case "sigmoid":
                return relative(exact, 2 * (1 + np.abs(x)) * unit, unit)
            case "pow":
                power = np.abs(operands[1].astype(np.float64) * np.log(np.abs(x) + NORMAL_MINIMUM[element.name]))
                return relative(exact, 2 * (3 + 2 * power) * unit, unit)
            case "sin":
                return 2 * np.abs(x) * 2.0 ** (-FRACTION_BITS[element.name] / 2)
            case "cos":
                return (1 + np.abs(x)) * 2.0 ** (-FRACTION_BITS[element.name] / 2)
            case "reduce_product":
                axis: int = op.axis  # type: ignore[attr-defined]
                roundings = x.shape[axis] * (2 if element.name == "f64" else 1)
                allowed = relative(exact, np.asarray((1 + unit / 2) ** roundings - 1 + unit), unit)
                return np.where(leaves_range(x, axis, element), np.inf, allowed)
            case "resize" if not op.is_bilinear:  # type: ignore[attr-defined]
                return None
            case "resize":
                return np.full(exact.shape, max(20 * unit, 0.006) * np.max(np.abs(x), initial=0, where=np.isfinite(x)))
            case "fft2d" | "rfft2d" | "tosaic.fourier2d":
                return fourier(operands, exact)
            case _ if name in DOT_PRODUCTS:
                return dot_product(op, name, operands, element)
    return None


def double_function(name: str, x: Array, exact: Array, element: ElementType) -> Array:
    """Return the allowed error of a function of f64."""
    allowed = DOUBLE_ULPS * ulp(exact, element)
    return np.where(np.abs(x) > DOUBLE_RANGE, 2.0, allowed) if name in ("sin", "cos") else allowed


def leaves_range(x: Array, axis: int, element: ElementType) -> Array:
    """True where products of some of the factors may overflow or underflow in float32 (f64: in float64), whatever the product
    of all factors is."""
    logarithms, most = np.abs(np.log2(np.abs(x))), 1022 if element.name == "f64" else 126
    return np.asarray(np.where(np.isfinite(logarithms), logarithms, 0).sum(axis=axis, keepdims=True) > most)


def exponential(x: Array, element: ElementType) -> Array:
    return (3 if element.name == "f32" else 1) + 2 * np.abs(x)


def relative(exact: Array, factor: Array, unit: float) -> Array:
    """Return an error of `factor` of the result, plus half a unit for the reference's own rounding; never below one
    subnormal."""
    return np.abs(exact) * (factor + unit) + 2.0**-149


def ulp(exact: Array, element: ElementType) -> Array:
    """Return the distance between neighbouring numbers of the type at each value."""
    magnitude = np.maximum(np.abs(exact), NORMAL_MINIMUM[element.name])
    return 2.0 ** (np.floor(np.log2(magnitude)) - FRACTION_BITS[element.name])


def dot_product(op: Op, name: str, operands: Sequence[Array], element: ElementType) -> Array:
    """Return twice ksb units of the operator on absolute values."""
    magnitudes = [np.abs(real(a)) for a in operands] if "block_scaled" in name else [np.abs(a) for a in operands]
    size = np.asarray(op.reference(*magnitudes)).astype(np.float64)
    count = terms(op, name, operands)
    narrow = getattr(op, "acc_type", None)
    widest = max(23, FRACTION_BITS[element.name])
    accumulator = FRACTION_BITS[narrow.name] if narrow is not None and narrow.name in FRACTION_BITS else widest
    ksb = np.ceil(count / 2 ** ((accumulator - FRACTION_BITS[element.name]) / 2)) + ("conv" in name)
    unit = np.maximum(size * 2.0 ** -(1 + FRACTION_BITS[element.name]), NORMAL_MINIMUM[element.name])
    if name.startswith("avg_pool2d"):  # the sum may be infinite even if the mean is not
        size = size * count
    return np.where(size > (DOUBLE_MAXIMUM if widest == 52 else FLOAT32_MAXIMUM), np.inf, 2 * ksb * unit + unit)


def real(x: Array) -> Array:
    """Return values and scales as float64, because their own types have no arithmetic; bytes that are values count 64ths."""
    return x.astype(np.float64) / (64 if x.dtype == np.int8 else 1) if x.dtype.itemsize == 1 else x


def fourier(parts: Sequence[Array], exact: Array) -> Array:
    """Return twice 2 * H * W (for a real transform H * W) units of the sum of all magnitudes of an image; unlimited if that sum
    is not finite."""
    total = sum(np.abs(p.astype(np.float64)).sum(axis=(1, 2), keepdims=True) for p in parts)
    count = len(parts) * int(np.prod(parts[0].shape[1:]))
    unit = np.maximum(total * 2.0**-24, NORMAL_MINIMUM["f32"])
    allowed = np.where(total <= FLOAT32_MAXIMUM, 2 * count * unit, np.inf)
    return np.broadcast_to(allowed.reshape(-1, *[1] * (exact.ndim - 1)), exact.shape)


def terms(op: Op, name: str, operands: Sequence[Array]) -> int:
    """Return KS, the number of products that are summed."""
    match name:
        case "matmul" | "matmul_t" | "matmul_t_block_scaled":
            return operands[0].shape[2]
        case "reduce_sum":
            return operands[0].shape[op.axis]  # type: ignore[attr-defined]
        case "avg_pool2d":
            return int(np.prod(op.kernel))  # type: ignore[attr-defined]
        case "avg_pool2d_adaptive":
            return int(np.prod(operands[3]))
        case "conv2d_block_scaled":
            return int(np.prod(operands[2].shape[1:]))
        case "depthwise_conv2d":
            return int(np.prod(operands[1].shape[:2]))
        case _:
            return int(np.prod(operands[1].shape[1:]))


def differences(actual: Array, expected: Array, allowed: Array | None) -> Array:
    """Return a mask of the elements where two results differ by more than is allowed. NaN equals NaN; +0 equals -0; where sums
    of the operands' magnitudes overflow there is no limit, and even a NaN is right."""
    if expected.dtype.kind in "iub" or (allowed is None and actual.dtype == expected.dtype):
        same = actual == expected
        if expected.dtype.kind not in "iub":
            same |= np.isnan(actual.astype(np.float64)) & np.isnan(expected.astype(np.float64))
        return np.asarray(~same)
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        limit = np.asarray(0.0 if allowed is None else allowed)
        near = (np.abs(a - e) <= limit) | (limit == np.inf)
    return np.asarray(~(near | (a == e) | (np.isnan(a) & np.isnan(e))))
