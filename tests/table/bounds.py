"""How far each element of a float result may be from the exact one, by the specification, for a graph of one operator.

The exact result is the operator's reference on its operands in float64, where it rounds nothing that counts.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tosaic.lowering.dialects.tosa.compliance import DOUBLE_MAXIMUM, DOUBLE_RANGE, FLOAT32_MAXIMUM, leaves_range
from tosaic.lowering.graph.graph import Operation
from tosaic.lowering.graph.operator import Op
from tosaic.lowering.graph.types import BF16, F16, F32, F64, MXINT8, Array, ElementType, TensorType

from ..operators import float_bounds
from ..operators.dot_product import FRACTION, dot_product_bound
from ..operators.harness import wide

UNITS = {**dict.fromkeys(("add", "sub", "mul", "ceil", "floor"), 0.5), "reciprocal": 1.0, "rsqrt": 2.0, "erf": 5.0}
FUNCTIONS: dict[str, Callable[[ElementType], float_bounds.Bound]] = {
    "exp": float_bounds.exp, "log": float_bounds.log, "tanh": float_bounds.tanh, "sigmoid": float_bounds.sigmoid,
    "sin": float_bounds.sin, "cos": float_bounds.cos, "pow": float_bounds.power}
SUMS = ("conv2d", "conv3d", "depthwise_conv2d", "transpose_conv2d", "conv2d_block_scaled", "matmul", "matmul_t",
        "matmul_t_block_scaled", "avg_pool2d", "avg_pool2d_adaptive", "reduce_sum")
FULL = (F16, BF16, F32)


@dataclass(frozen=True, slots=True)
class Limit:
    """The exact result in float64, the error that is allowed, where anything goes, and whether the reference is the exact
    result rounded once."""
    exact: Array
    error: Array
    anything: Array
    element: ElementType


def limits(operation: Operation, operands: Sequence[Array]) -> list[Limit] | None:
    """The limit of each result of an operation; None where they must equal the reference."""
    name = operation.op.name.removeprefix("tosa.")
    result = operation.results[0].type if operation.results else None
    if not isinstance(result, TensorType) or not result.element.is_float:
        return None
    precise = [real(a, v.type) for a, v in zip(operands, operation.operands)]
    with np.errstate(all="ignore"):
        if name in ("fft2d", "rfft2d"):
            return fourier(operation.op, precise)
        bound = bound_of(operation.op, name, result.element, operands)
        if bound is None:
            return None
        exact = np.asarray(number(operation.op, *operands, *precise) if name == "cast" else operation.op.reference(*precise))
        error, anything = bound(exact, *precise), undefined(operation.op, name, operands, precise, exact)
    error = np.broadcast_to(np.where(np.isfinite(error), error, 0.0) if name in SUMS else error, exact.shape)
    return [Limit(exact, error, anything, result.element)]


def real(array: Array, type: Any) -> Array:
    """An operand in float64; integers as they are, but for those that count 64ths."""
    from tosaic.lowering.dialects.tosa.block_scaling import real as of_records
    if array.dtype.names:
        return of_records(array)
    return array.astype(np.float64) / 64 if getattr(type, "element", None) == MXINT8 else wide(array)


def number(op: Op, x: Array, precise: Array) -> Array:
    """What is cast, in float64."""
    unsigned = getattr(op, "input_unsigned", False)
    return (x.view(f"u{x.dtype.itemsize}") if unsigned else precise).astype(np.float64)


def undefined(op: Op, name: str, operands: Sequence[Array], precise: Sequence[Array], exact: Array) -> Array:
    """Where the specification leaves the result open: beyond the range of accumulators, and powers of numbers below 0."""
    if name in SUMS:
        finite = [np.where(np.isfinite(a), np.abs(a), 0) if a.dtype == np.float64 else a for a in precise]
        factor = terms(op, name, operands) if name.startswith("avg") else 1
        greatest = DOUBLE_MAXIMUM if operands[0].dtype == np.float64 else FLOAT32_MAXIMUM
        return np.asarray(np.asarray(op.reference(*finite)) * factor > greatest)
    if name == "reduce_product":
        return leaves_range(precise[0], op.axis, F64 if operands[0].dtype == np.float64 else F32)  # type: ignore[attr-defined]
    if name in ("sin", "cos") and operands[0].dtype == np.float64:
        return np.asarray(np.abs(precise[0]) > DOUBLE_RANGE) & np.isfinite(precise[0])
    if name == "pow":
        x, y = precise
        return np.broadcast_to((x < 0) | ((x == 0) & (y <= 0)) | np.isnan(x) | np.isnan(y), exact.shape)
    return np.zeros(exact.shape, bool)


def bound_of(op: Op, name: str, element: ElementType, operands: Sequence[Array]) -> float_bounds.Bound | None:
    """The rule of the operator for results of that type."""
    if element == F64 and (name in FUNCTIONS or name == "erf"):
        return float_bounds.double
    if element == F64 and name in UNITS:
        return None
    if name in UNITS:
        return float_bounds.ulps(element, UNITS[name])
    if name in FUNCTIONS:
        return FUNCTIONS[name](element)
    if name == "cast" and element in FULL:
        return float_bounds.ulps(element, 0.5)
    if name in SUMS:
        accumulator = getattr(op, "acc_type", None) or (F32 if name == "reduce_sum" and element != F64 else element)
        return dot_product_bound(op, terms(op, name, operands), element, accumulator, "conv" in name)
    if name == "reduce_product":
        count = operands[0].shape[op.axis]  # type: ignore[attr-defined]
        roundings = count * (2 if element == F64 else 1)  # the exact result is none of f64's
        factor = (1 + 2.0 ** -(FRACTION[element] + 1)) ** roundings - 1
        return lambda exact, x: np.maximum(np.abs(exact), float_bounds.NORMAL_MINIMUM[element]) * factor
    if name == "resize" and op.mode == "BILINEAR":  # type: ignore[attr-defined]
        return lambda exact, x, *rest: np.full(exact.shape, max(20 * 2.0 ** -FRACTION[element], 0.006) * np.max(
            np.abs(x), initial=0, where=np.isfinite(x)))
    return None


def terms(op: Op, name: str, operands: Sequence[Array]) -> int:
    """KS, the number of products that are summed."""
    match name:
        case "matmul" | "matmul_t" | "matmul_t_block_scaled":
            return operands[0].shape[2]
        case "reduce_sum":
            return operands[0].shape[op.axis]  # type: ignore[attr-defined]
        case "avg_pool2d":
            return math.prod(op.kernel)  # type: ignore[attr-defined]
        case "avg_pool2d_adaptive":
            return math.prod(operands[3].tolist())
        case "depthwise_conv2d":
            return math.prod(operands[1].shape[:2])
        case "conv2d_block_scaled":
            return math.prod(operands[2].shape[1:])
        case _:
            return math.prod(operands[1].shape[1:])


def fourier(op: Op, parts: Sequence[Array]) -> list[Limit]:
    """Both parts of a transform: 2 * KS units of the sum of all magnitudes. An input that is not finite makes results of
    its image that are infinite or NaN, in which the specification allows either."""
    results: Any = op.reference(*parts)
    height, width = parts[0].shape[1:]
    total = sum(np.abs(p).sum(axis=(1, 2), keepdims=True) for p in parts)
    unit = np.maximum(np.where(np.isfinite(total), total, 0) * 2.0**-24, 2.0**-126)
    wild = ~np.isfinite(total) | (total > FLOAT32_MAXIMUM)
    return [Limit(r, np.broadcast_to(2 * len(parts) * height * width * unit, r.shape),
                  np.asarray(np.broadcast_to(wild, r.shape) & ~np.isnan(r)), F32) for r in results]
