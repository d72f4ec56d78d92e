"""Conversion of real numbers to integers and back, in float32, by ONNX's rules for a scale and a zero point.

Rounding is to the nearest, ties to even, as TOSA's CAST does. Unsigned bytes are computed as `i8`: these are 128 less, and so
is their zero point, so that products, which TOSA has for `i8` alone, are the same.
"""
from __future__ import annotations

import numpy as np

from ..graph.graph import Value
from ..graph.types import F32, F64, I8, I16, I32, UI8, Array, ElementType
from .division import divided
from .rounding import clamp
from .term import Term
from .tosa_builder import TosaBuilder

HALF = 128
"""Difference between an unsigned byte and the `i8` that represents it."""


# ---- bytes without a sign --------------------------------------------------------------------------------------------
def as_signed(e: TosaBuilder, x: Value) -> Value:
    """Return bytes as `i8`: unsigned ones less 128."""
    return x if x.tensor.element != UI8 else e.rescaled(x, I8, input_unsigned=True, input_zero=HALF)


def as_unsigned(e: TosaBuilder, x: Value) -> Value:
    """Return `i8` as unsigned bytes: the inverse of `as_signed`."""
    return e.rescaled(x, UI8, output_unsigned=True, output_zero=HALF)


def one_number(value: Value | None) -> int | None:
    """Return a zero point that is known, and the same for all; None for any other. An omitted zero point is 0."""
    if value is None:
        return 0
    known = value.constant
    return int(known.flat[0]) if known is not None and known.size and (known == known.flat[0]).all() else None


# ---- to integers ---------------------------------------------------------------------------------------------------------
def stored(e: TosaBuilder, x: Value, zero: Value | None, element: ElementType, limits: tuple[int, int] | None = None) -> Value:
    """Return a float that counts steps, rounded to the nearest, plus the zero point, clamped to the type (or the limits)."""
    low, high = limits or (int(element.minimum), int(element.maximum))
    known = one_number(zero)
    real = Term(e, x)
    if known is not None:
        held = clamp(real, low - known, high - known).value
        if not known and element in (I8, I16):
            return e("cast", held, to=element)
        steps = e("cast", held, to=I16 if element.bits <= 8 else I32)
        return narrowed(e, Term(e, e.cast(steps, I32)) + known, element)
    assert zero is not None
    reach = float(1 << 20)
    total = Term(e, e("cast", clamp(real, -reach, reach).value, to=I32)) + Term(e, e.cast(zero, I32))
    return narrowed(e, clamp(total, low, high), element)


def narrowed(e: TosaBuilder, x: Term, element: ElementType) -> Value:
    """Return integers of 32 bits that fit a type, in that type."""
    if element == UI8:
        return as_unsigned(e, (x - HALF).cast(I8).value)
    return x.cast(element).value


def steps_of(e: TosaBuilder, x: Value, scale: Value) -> Value:
    """Return x / scale in float32, rounded once. A known scale gives a product with the reciprocal in float64, rounded: no
    quotient of two float32 is so near to the middle between two others that the error of the product, 2**-52 of it, matters."""
    a, b = e.same_rank(e.cast(x, F32), e.cast(scale, F32))
    if b.constant is None:
        return divided(Term(e, a), Term(e, b)).value
    with np.errstate(all="ignore"):
        inverse = 1 / b.constant.astype(np.float64)
    if np.array_equal(inverse, narrow := inverse.astype(np.float32)):
        return e.product(a, e.constant(narrow))
    return e.cast(e.product(e.cast(a, F64), e.constant(inverse)), F32)


def quantized(e: TosaBuilder, x: Value, scale: Value, zero: Value | None, element: ElementType,
              limits: tuple[int, int] | None = None) -> Value:
    return stored(e, steps_of(e, x, scale), zero, element, limits)


def requantized(e: TosaBuilder, total: Value, factor: Value, zero: Value | None, element: ElementType) -> Value:
    """Return sums of products as integers of another scale: float32 of the sum times one factor, rounded."""
    return stored(e, e.product(e("cast", total, to=F32), factor), zero, element)


# ---- to real numbers -----------------------------------------------------------------------------------------------------
def centred(e: TosaBuilder, x: Value, zero: Value | None) -> Value:
    """Return integers less their zero point, in 32 bits."""
    wide, known = Term(e, e.cast(x, I32)), one_number(zero)
    if known is not None:
        return (wide - known).value if known else wide.value
    assert zero is not None
    return (wide - Term(e, e.cast(zero, I32))).value


def dequantized(e: TosaBuilder, x: Value, scale: Value, zero: Value | None) -> Value:
    """Return the real numbers, in float32."""
    return e.product(e.cast(centred(e, x, zero), F32), e.cast(scale, F32))


# ---- scales --------------------------------------------------------------------------------------------------------------
def factor_of(e: TosaBuilder, scales: tuple[Value, ...], result: Value | None, first: float = 1.0) -> Value:
    """Return the product of scales, from the left, divided by the result's, in float32: a constant if all are known."""
    constants: list[Array | None] = [v.constant for v in scales]
    divisor = None if result is None else result.constant
    if all(c is not None for c in constants) and (result is None or divisor is not None):
        found = np.asarray(first, np.float32)
        with np.errstate(all="ignore"):
            for constant in constants:
                assert constant is not None
                found = np.asarray(found * constant.astype(np.float32), np.float32)
            found = found if divisor is None else np.asarray(found / divisor.astype(np.float32), np.float32)
        return e.constant(found)
    total = Term(e, e.constant(np.float32(first)))
    for scale in scales:
        total = total * Term(e, e.cast(scale, F32))
    return total.value if result is None else steps_of(e, total.value, result)
