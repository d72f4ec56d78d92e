"""Logarithms and powers to the bases 2 and 10, sums of exponentials in logarithms, hypotenuses and cubic roots. Errors that
stand here are the greatest found in f32, in units in the last place, over wide ranges."""
from __future__ import annotations

import math

from ..graph.types import F32, F64
from .division import square_root
from .float_bits import mantissa_and_exponent, with_sign_of
from .term import Term, absolute, exp, log, maximum, minimum, reciprocal, select
from .transcendental import log1p

LOG10_2_HIGH = {F32: 0.301025390625, F64: 0.30102999566406652}
"""The logarithm of 2 with so few digits that its product with any exponent is exact."""


def log2(x: Term) -> Term:
    """2 ulp; exact for powers of two. The exponent, and the logarithm of a mantissa between sqrt(1/2) and sqrt(2)."""
    mantissa, exponent = centred(x)
    return select((x > 0) & (x < math.inf), exponent + log(mantissa) * (1 / math.log(2)), log(x))


def log10(x: Term) -> Term:
    """2 ulp."""
    mantissa, exponent = centred(x)
    high = LOG10_2_HIGH[x.element]
    rest = exponent * (math.log10(2) - high) + log(mantissa) * (1 / math.log(10))
    return select((x > 0) & (x < math.inf), exponent * high + rest, log(x))


def centred(x: Term) -> tuple[Term, Term]:
    """A mantissa between sqrt(1/2) and sqrt(2), and the exponent, both floats."""
    mantissa, exponent = mantissa_and_exponent(x)
    is_low = mantissa < math.sqrt(0.5)
    power = exponent.cast(x.element)
    return select(is_low, mantissa + mantissa, mantissa), select(is_low, power - 1, power)


def exp2(x: Term) -> Term:
    return x.term(2).broadcast_to(x.value.tensor.dims).apply("pow", x)


def log_add_exp(a: Term, b: Term) -> Term:
    """log(exp(a) + exp(b))."""
    most, least = maximum(a, b), minimum(a, b)
    distance = select(a.equals(b), a.term(0), least - most)
    return most + log1p(exp(distance))


def log_add_exp2(a: Term, b: Term) -> Term:
    """log2(2**a + 2**b)."""
    most, least = maximum(a, b), minimum(a, b)
    distance = select(a.equals(b), a.term(0), least - most)
    return most + log1p(exp2(distance)) * (1 / math.log(2))


def hypotenuse(a: Term, b: Term) -> Term:
    """sqrt(a^2 + b^2), whose squares may leave the range; infinite if one of them is, whatever the other."""
    large, scale = (2.0**60, 2.0**90) if a.element == F32 else (2.0**500, 2.0**600)
    p, q = absolute(a), absolute(b)
    most = maximum(p, q)
    is_large, is_small = most > large, most < 1 / large
    factor = select(is_large, most.term(1 / scale), select(is_small, most.term(scale), 1))
    back = select(is_large, most.term(scale), select(is_small, most.term(1 / scale), 1))
    x, y = p * factor, q * factor
    found = square_root(x * x + y * y) * back
    return select(p.equals(math.inf) | q.equals(math.inf), most.term(math.inf), found)


def cubic_root(x: Term) -> Term:
    """1 ulp: a power, corrected by a step of Newton's."""
    a = absolute(x)
    near = a.apply("pow", 1 / 3)
    better = near - (near - a * reciprocal(near * near)) * (1 / 3)
    usual = (a > 0) & (a < math.inf)
    return with_sign_of(select(usual, better, a), x)
