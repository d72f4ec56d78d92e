"""The semantics of the loop IR's operations, lane by lane, in NumPy, for the interpreter of loops. Nothing here comes
from the emitter or from the primitives of expressions.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..graph.types import Array

Lanes = Callable[..., Array]


def apply(op: str, lanes: int, args: Sequence[Array]) -> Array:
    """Return op(args); `lanes` is the number of lanes of the result."""
    match op:
        case "splat":
            return np.repeat(args[0], lanes)
        case "lanes":
            return (args[0] + np.arange(lanes, dtype=args[0].dtype)).astype(args[0].dtype)
        case "dot4":
            return dot4(np.uint8, *args)
        case "dot4_signed":
            return dot4(np.int8, *args)
        case "dot2":
            return dot2(*args)
        case "pairs":
            return pairs(*args)
        case "dot_pairs":
            return dot(args[0], args[1].view(np.int16), args[2].view(np.int16))
        case "dot8":
            return dot8(*args)
        case "dot":
            return dot(*args)
        case "lookup":
            return entries(*args)
        case "pack":
            return saturated_interleaved(*args)
        case "any_false":
            return np.array([not args[0].all()])
    if op.startswith("reduce_"):
        return by_halves(OPERATIONS[op[len("reduce_"):]], args[0])
    return OPERATIONS[op](*args)


def converted(x: Array, dtype: np.dtype[Any]) -> Array:
    """Convert the value to another dtype. Integers become half floats by way of float32, and float64 by way of an odd
    float32 where NumPy has no other way."""
    if x.dtype.kind in "iub" and dtype.itemsize <= 2 and dtype.kind not in "iub":
        x = x.astype(np.float32)
    if x.dtype == np.float64 and dtype.isbuiltin == 2:
        x = odd_neighbour(x)
    return x.astype(dtype)


def odd_neighbour(x: Array) -> Array:
    """Round float64 to float32; a number between two float32 becomes the one with an odd last bit."""
    near = x.astype(np.float32)
    other = np.nextafter(near, np.where(x > near, np.float32(np.inf), np.float32(-np.inf)))
    return np.where((near == x) | np.isnan(x) | (near.view(np.int32) & 1 == 1), near, other)


def by_halves(combine: Lanes, x: Array) -> Array:
    """Combine lane i with lane i + n/2, then reduce the half; reduce an odd number of lanes one after the other."""
    if len(x) % 2 == 0:
        return by_halves(combine, combine(x[:len(x) // 2], x[len(x) // 2:]))
    total = x[:1]
    for i in range(1, len(x)):
        total = combine(total, x[i:i + 1])
    return total


def dot4(byte: type[np.uint8 | np.int8], total: Array, x: Array, y: Array) -> Array:
    products = x.view(byte).astype(np.int64) * y.view(np.int8).astype(np.int64)
    return (total + products.reshape(-1, 4).sum(axis=1)).astype(np.int32)


def dot2(total: Array, x: Array, y: Array) -> Array:
    products = x.astype(np.int64) * y.astype(np.int64)
    return (total + products.reshape(-1, 2).sum(axis=1)).astype(np.int32)


def pairs(x: Array, offset: Array) -> Array:
    numbers = (x.astype(np.int64) + offset.astype(np.int64)) & 0xFFFF
    return (numbers[:2] | numbers[2:] << 16).astype(np.uint32).view(np.int32)


def dot8(total: Array, x: Array, y: Array) -> Array:
    products = x.astype(np.int64).reshape(2, 8) @ y.astype(np.int64).reshape(2, 8).T
    return (total + products.reshape(-1)).astype(np.int32)


def dot(total: Array, x: Array, y: Array) -> Array:
    return (total + (x.astype(np.int64) * y.astype(np.int64)).sum()).astype(np.int32)


def saturated_interleaved(x: Array, y: Array) -> Array:
    """Saturate both to half the element size and interleave them: 16 bytes of x, then 16 of y."""
    half, group = np.dtype(f"i{x.dtype.itemsize // 2}"), 16 // x.dtype.itemsize
    info = np.iinfo(half)
    both = np.stack([x.reshape(-1, group), y.reshape(-1, group)], axis=1)
    return both.reshape(-1).clip(info.min, info.max).astype(half)


# ---- arithmetic --------------------------------------------------------------------------------------------------
def fused(x: Array, y: Array, z: Array) -> Array:
    """Return x * y + z, rounded once."""
    if x.dtype == np.float32:
        return fused_single(x, y, z)
    if x.dtype == np.float64:
        return np.array([fused_double(float(a), float(b), float(c)) for a, b, c in zip(x, y, z)])
    return x * y + z


def fused_single(x: Array, y: Array, z: Array) -> Array:
    """Return x * y + z, rounded once: the product is exact in float64, and the sum is rounded to odd there."""
    product, addend = x.astype(np.float64) * y, z.astype(np.float64)
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & (error != 0) & (bits % 2 == 0)
    toward = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(inexact, bits + toward, bits).view(np.float64).astype(np.float32)


def fused_double(x: float, y: float, z: float) -> float:
    if not np.isfinite([x, y]).all() or 0 in (x, y):
        return x * y + z
    if not np.isfinite(z):  # a product that is too large for a float64 is no infinity here
        return z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        return x * y + z
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def entries(x: Array, *quarters: Array) -> Array:
    """Return the entries at x of a table given in quarters; the first entry has index -128."""
    return np.concatenate(quarters)[x.astype(np.int64) + 128]


def scaled(x: Array, n: Array) -> Array:
    """Return x * 2**n for whole numbers n; a NaN stays."""
    exact = x.astype(np.float64) * 2.0 ** np.where(np.isnan(n), 0.0, n.astype(np.float64))
    return exact.astype(np.float32)


def divide(x: Array, y: Array) -> Array:
    """Return x / y; integers round toward zero. An integer divided by 0, and the least one divided by -1, gives x."""
    if x.dtype.kind == "f":
        return np.true_divide(x, y)
    result = []
    for a, b in zip(x.tolist(), y.tolist()):
        whole = abs(a) // abs(b) if b else abs(a)
        result.append(whole if (a < 0) == (b < 0) else -whole)
    bits = 8 * x.dtype.itemsize
    return np.array([r & ((1 << bits) - 1) for r in result], np.uint64).astype(f"u{x.dtype.itemsize}").view(x.dtype)


def leading_zeros(x: Array) -> Array:
    bits = 8 * x.dtype.itemsize
    return np.array([bits - (a & ((1 << bits) - 1)).bit_length() for a in x.tolist()], x.dtype)


def logical_shift(x: Array, by: Array) -> Array:
    width = f"u{x.dtype.itemsize}"
    return np.right_shift(x.view(width), by.view(width)).view(x.dtype)


def upper_half(x: Array, y: Array, z: Array) -> Array:
    """Return bits 32 to 63 of x * y + z."""
    total = [(a * b + c >> 32) & 0xFFFF_FFFF for a, b, c in zip(x.tolist(), y.tolist(), z.tolist())]
    return np.array(total, np.uint32).view(np.int32)


def upper_half_nudged(x: Array, y: Array, z: Array) -> Array:
    return upper_half(x, y, z - np.where(x < 0, np.int64(1 << 31), np.int64(0)))


def rounded_product(x: Array, y: Array) -> Array:
    """Return the integer nearest to x * y / 2**31; ties round up."""
    return nearest([Fraction(a * b, 1 << 31) for a, b in zip(x.tolist(), y.tolist())])


def rounded_shift(x: Array, n: Array) -> Array:
    """Return the integer nearest to x * 2**n; ties round up."""
    return nearest([Fraction(a, 1 << -k) for a, k in zip(x.tolist(), n.tolist())])


def nearest(values: Sequence[Fraction]) -> Array:
    return np.array([math.floor(x + Fraction(1, 2)) for x in values], np.int32)


# ---- the smaller and the larger ----------------------------------------------------------------------------------
def ordered(better: Lanes) -> Lanes:
    """Select the second operand where it is better; otherwise, and where either is NaN, the first."""
    return lambda x, y: np.asarray(np.where(better(y, x), y, x))


def spreading(better: Lanes) -> Lanes:
    """Select the better operand; NaN where either is NaN."""
    return lambda x, y: np.asarray(np.where(better(y, x) | ((y != y) & (x == x)), y, x))


def ignoring(better: Lanes) -> Lanes:
    """Select the better operand; NaN only where both are NaN."""
    return lambda x, y: np.asarray(np.where(better(y, x) | (x != x), y, x))


OPERATIONS: dict[str, Lanes] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": divide, "fma": fused,
    "min": ordered(np.less), "max": ordered(np.greater),
    "minimum": spreading(np.less), "maximum": spreading(np.greater),
    "minnum": ignoring(np.less), "maxnum": ignoring(np.greater),
    "lt": np.less, "le": np.less_equal, "eq": np.equal, "select": np.where,
    "rint": np.rint, "floor": np.floor, "ceil": np.ceil, "sqrt": np.sqrt, "abs": np.absolute,
    "shl": np.left_shift, "ashr": np.right_shift, "lshr": logical_shift,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "clz": leading_zeros,
    "scaleb": scaled, "multiply_high": upper_half, "multiply_high_nudged": upper_half_nudged,
    "rounded_product": rounded_product, "rounded_shift": rounded_shift,
}
