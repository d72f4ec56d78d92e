"""Division, remainders and roots, of floats as exact as IEEE 754 has them, and quotients rounded down.

TOSA has reciprocals of floats, no quotients: x * (1 / y) is an ulp off, so that 49 / 49 is not 1. What is left of x, which two
products give exactly (T. J. Dekker, 1971, https://doi.org/10.1007/BF01397083), corrects it. It relies on sums that are not
rearranged, as TOSA and the compiler have them. A quotient that is only rounded down needs less: `floored_float` corrects it by
one.
"""
from __future__ import annotations

import numpy as np

from .term import Term, absolute, floor, reciprocal, rsqrt, select

LARGE, LARGE_SCALE = 2.0**100, 2.0**64
"""A number that is not between the first and its reciprocal is multiplied or divided by the second before anything is made of
it: reciprocals of subnormals are infinite, and there is no room above the greatest numbers for products."""


# ---- floats ------------------------------------------------------------------------------------------------------
def split(x: Term) -> tuple[Term, Term]:
    """x as a sum of two numbers of half its digits."""
    scaled = x * x.precision.splitter
    high = scaled - (scaled - x)
    return high, x - high


def residual(x: Term, q: Term, y: Term) -> Term:
    """x - q * y, rounded once if q * y is near x."""
    product, (q_high, q_low), (y_high, y_low) = q * y, split(q), split(y)
    error = q_low * y_low - (((product - q_high * y_high) - q_low * y_high) - q_high * y_low)
    return (x - product) - error


def divided(x: Term, y: Term) -> Term:
    """x / y, rounded to the nearest. An ulp off where the digits of y are all ones and x / y is almost a tie; an ulp or two
    where x or x / y is near the ends of the range."""
    if not has_usual_size(y):
        scale = scale_of(absolute(y))
        x, y = x * scale, y * scale
    inverse = reciprocal(y)
    quotient = x * inverse
    return quotient if is_power_of_two(y) else corrected(quotient, quotient + residual(x, quotient, y) * inverse)


def scale_of(magnitude: Term) -> Term:
    """The power of two that brings numbers nearer to 1."""
    ordinary = select(magnitude > LARGE, magnitude.term(1 / LARGE_SCALE), 1)
    return select(magnitude < 1 / LARGE, magnitude.term(LARGE_SCALE), ordinary)


def corrected(near: Term, better: Term) -> Term:
    """The better value, unless it went wrong on its way: where products overflow, or what is infinite or NaN has a rest."""
    return select(absolute(better - near) <= absolute(near) * 2.0**(2 - near.precision.digits), better, near)


def has_usual_size(y: Term) -> bool:
    """True if it is known that no element needs a scale."""
    if y.value.constant is None:
        return False
    magnitude = np.abs(y.value.constant.astype(np.float64))
    return bool(np.all((magnitude >= 1 / LARGE) & (magnitude <= LARGE)))


def is_power_of_two(y: Term) -> bool:
    """True if it is known that the reciprocals are exact."""
    if y.value.constant is None or not has_usual_size(y):
        return False
    return bool(np.all(np.abs(np.frexp(y.value.constant.astype(np.float64))[0]) == 0.5))


def float_remainder(x: Term, y: Term) -> Term:
    """The exact x - trunc(x / y) * y, for quotients up to 2^(4/3 of the digits), 2^31 in f32, 2^69 in f64. Beyond them 0; NaN
    where x is infinite or y is 0."""
    a, b = absolute(x), absolute(y)
    scale = scale_of(b)
    top, bottom = a * scale, b * scale
    inverse = reciprocal(bottom)
    rest = one_turn(without_multiple(top, bottom, inverse), bottom, inverse)
    fits = top * inverse < 2.0**(x.precision.digits * 4 // 3 - 1)
    rest = select(fits, rest * reciprocal(scale), a * 0 * inverse)
    return select(a < b, x, select(x < 0, -rest, rest))


def without_multiple(a: Term, b: Term, inverse: Term) -> Term:
    """a less the multiple of b that is nearest among those of half the digits, where all of these are whole. Exact, because
    what is left is half of the multiple's last digit at most."""
    multiple, _ = split(a * inverse)
    return residual(a, select(multiple < 2.0**(a.precision.digits // 2 + 1), a.term(0), multiple), b)


def one_turn(a: Term, b: Term, inverse: Term) -> Term:
    """The remainder in [0, b) for a quotient of fewer digits than a number has. The quotient is taken above rather than below,
    because a rest that is negative is exact, and one that is above b need not be."""
    quotient = a * inverse
    quotient = floor(quotient + absolute(quotient) * 2.0**(2 - a.precision.digits))
    rest = residual(a, quotient, b)
    return select(rest < 0, rest + b, rest)


# ---- integers ----------------------------------------------------------------------------------------------------
def truncated_quotient(x: Term, y: Term) -> Term:
    return x.apply("intdiv", y)


def integer_remainder(x: Term, y: Term) -> Term:
    return x - truncated_quotient(x, y) * y


def is_below(rest: Term, y: Term) -> Term:
    """True if a remainder that is not 0 lacks the sign of the divisor."""
    differ = (rest ^ y) < 0 if rest.element.is_integer else (rest < 0) ^ (y < 0)
    return rest.differs(0) & differ


def floored_quotient(x: Term, y: Term) -> Term:
    """The truncated quotient corrected by one."""
    quotient = truncated_quotient(x, y)
    return select(is_below(x - quotient * y, y), quotient - 1, quotient)


def floored_remainder(x: Term, y: Term) -> Term:
    """The truncated one, of integers, with the sign of y."""
    rest = integer_remainder(x, y)
    return select(is_below(rest, y), rest + y, rest)


# ---- floats rounded down, for a few operators --------------------------------------------------------------------
def floored_float(x: Term, y: Term) -> tuple[Term, Term]:
    """floor(x / y), which a reciprocal may miss by one, and x - floor(x / y) y, which shows it."""
    quotient = floor(x * reciprocal(y))
    rest = x - quotient * y
    size = select(y < 0, -rest, rest)
    less = select(size < 0, size.term(1), 0)
    more = select(size >= absolute(y), size.term(1), 0)
    quotient = quotient - less + more
    return quotient, x - quotient * y


# ---- roots -------------------------------------------------------------------------------------------------------
SMALLEST_SQUARE = 2.0**-100
"""From here on the rest of a number less the square of its root is no subnormal."""


def square_root(x: Term) -> Term:
    """The root by way of its reciprocal, corrected as quotients are: roots of squares are exact. What is near the ends of the
    range stays as it is, and what has no root is NaN."""
    inverse = rsqrt(x)
    near = reciprocal(inverse)
    better = near + residual(x, near, near) * inverse * 0.5
    return select((x > SMALLEST_SQUARE) & (x < 1 / SMALLEST_SQUARE), corrected(near, better), near)
