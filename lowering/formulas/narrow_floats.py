"""Floats of 8 bits or fewer for which TOSA has no arithmetic, from float32 and to it, as ONNX defines it.

The graph moves these numbers as they are. BITCAST opens them: a table of 256 numbers has the value of each byte. The way back
is arithmetic on the bits of the float32: below the smallest normal number a sum rounds, above it half a unit of the last kept
place is added. Both round to the nearest, ties to even.
"""
from __future__ import annotations

import numpy as np

from ...runtime.records import dataclass
from ..graph.graph import Value
from ..graph.types import F4E2M1, F6E2M3, F6E3M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0, F32, I8, I32, ElementType
from .bit_patterns import seen_as
from .term import Term, maximum, minimum, select
from .tosa_builder import TosaBuilder


@dataclass(frozen=True, slots=True)
class Format:
    """A format of sign, exponent, mantissa. With `has_nan`, the code of -0 is the NaN, and there is no -0; without it, numbers
    too large are always clamped to the range, and a NaN becomes the zero of the other sign, as in ml_dtypes."""
    bits: int
    mantissa: int
    bias: int
    has_nan: bool

    @property
    def most(self) -> int:
        """Code of the largest number."""
        return (1 << (self.bits - 1)) - 1

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)


FORMATS = {F8E4M3FNUZ: Format(8, 3, 8, True), F8E5M2FNUZ: Format(8, 2, 16, True), F6E2M3: Format(6, 3, 1, False),
           F6E3M2: Format(6, 2, 3, False), F4E2M1: Format(4, 1, 1, False)}
NARROW = (*FORMATS, F8E8M0)
INFINITY = 0x7F800000
"""Bits of the infinity of float32."""
LEAST, MOST = 0x00400000, 0x7F000000
"""Bits of 2^-127 and 2^127 as float32: the least and the largest number of f8E8M0FNU, an exponent alone."""
NOT_A_NUMBER = 255
"""Code of f8E8M0FNU that is no number."""


def opened(e: TosaBuilder, x: Value) -> Value:
    """Return numbers of a narrow type in float32; those of any other type as they are."""
    element = x.tensor.element
    if element not in NARROW:
        return x
    if not x.tensor.size:
        return e.zeros(x.tensor.with_element(F32))
    numbers = np.arange(256).astype(np.uint8).view(element.dtype).astype(np.float32)
    code = Term(e, seen_as(e, x, I8)).cast(I32) & 255
    found = e("gather", e.constant(numbers.reshape(1, 256, 1)), e.reshape(code.value, (1, x.tensor.size)))
    return e.reshape(found, x.tensor.dims)


def narrow(e: TosaBuilder, x: Value, element: ElementType, saturate: bool, round_mode: str = "up") -> Value:
    """Return the nearest numbers of a narrow type."""
    if not x.tensor.size:
        return e.zeros(x.tensor.with_element(element))
    number = Term(e, e.cast(x, F32))
    code = exponent(number, saturate, round_mode) if element == F8E8M0 else rounded(number, FORMATS[element], saturate)
    return seen_as(e, code.cast(I8).value, element)


def rounded(x: Term, f: Format, saturate: bool) -> Term:
    """Return the codes of float32 numbers, in 32 bits."""
    e = x.builder
    bits = Term(e, seen_as(e, x.value, I32))
    size, drop = minimum(bits & 0x7FFFFFFF, INFINITY), 23 - f.mantissa
    normal = ((size + ((1 << (drop - 1)) - 1) + (size >> drop & 1)) >> drop) - ((127 - f.bias) << f.mantissa)
    unit = 2.0 ** (1 - f.bias - f.mantissa)
    rounder = Term(e, e.constant(np.float32(unit * 2.0**23)))
    small = Term(e, seen_as(e, (x.apply("abs") + rounder).value, I32)) - int(np.float32(unit * 2.0**23).view(np.int32))
    code = select(size < (128 - f.bias) << 23, small, normal)
    is_beyond, is_nan = code > f.most, (bits & 0x7FFFFFFF) > INFINITY
    sign = bits >> (32 - f.bits) & f.sign
    if not f.has_nan:
        return select(is_nan, sign ^ f.sign, minimum(code, f.most) | sign)
    signed = select(code.equals(0), code, minimum(code, f.most) | sign)
    return select(is_nan if saturate else is_nan | is_beyond, code.term(f.sign), signed)


def exponent(x: Term, saturate: bool, round_mode: str) -> Term:
    """Return powers of two by their exponents: the next above, the next below, or the nearest, of two the upper one. A number
    out of range becomes the least or the largest, or no number; a sign, for which nothing is defined, is dropped."""
    e = x.builder
    size = Term(e, seen_as(e, x.value, I32)) & 0x7FFFFFFF
    held = minimum(maximum(size, LEAST), MOST)
    power, fraction = held >> 23, held & 0x7FFFFF
    fraction = select(power.equals(0), (held - LEAST) << 1, fraction)
    match round_mode:
        case "up":
            power = power + (fraction > 0).cast(I32)
        case "nearest":
            power = power + (fraction >= 1 << 22).cast(I32)
    is_none = size > INFINITY if saturate else (size < LEAST) | (size > MOST)
    return select(is_none, power.term(NOT_A_NUMBER), power)
