"""The functions of `functions`, in float64: an error below 4 units of the last place, without a library and without tables.

Polynomials are Taylor series on a short interval, cut where the next term is below the rounding. Products that must be exact
are taken apart into halves, so that no fused instruction is needed: where there is one, polynomials are a little nearer.
Infinities, NaN, zeros and subnormals come out as IEEE 754 recommends.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from .expression import Expr, apply, cast, clamp, literal, select
from .float_functions import signed_power

ROUNDER = 1.5 * 2.0**52
"""Added to a number below 2^51, it leaves the nearest integer in the low bits."""
ROUNDER_BITS = int(np.float64(ROUNDER).view(np.int64))
SIGN = -1 << 63
ONE = 1023 << 52
"""The bits of 1.0."""
Pair = tuple[Expr, Expr]
"""A number as a sum, the second limb below the rounding of the first."""


def limbs(text: str, bits: int, count: int) -> tuple[float, ...]:
    """A number as the sum of `count` floats of `bits` bits each, rounded down, and a last one, the nearest to the rest."""
    rest, found = Fraction(text), list[float]()
    for _ in range(count):
        unit = Fraction(2) ** (math.frexp(rest)[1] - bits)
        found.append(float(rest // unit * unit))
        rest -= rest // unit * unit
    return (*found, float(rest))


LN2 = limbs("0.693147180559945309417232121458176568075500134360255254120680", 42, 1)
"""ln 2; a multiple of the first limb by an exponent is exact."""
HALF_PI = limbs("1.570796326794896619231321691639751442098584699687552910487472296153908203143", 23, 5)
"""pi / 2; a multiple of any limb but the last by less than 2^30 is exact."""
TWO_THIRDS = (2 / 3, float(Fraction(2, 3) - Fraction(2 / 3)))

EXP = tuple(1 / math.factorial(k) for k in range(2, 14))
"""(exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2."""
LOG = tuple(2 / (2 * k + 1) for k in range(1, 13))
"""(2 atanh(s) - 2 s) / s^3 in s^2 for |s| <= 3 - 2 sqrt(2)."""
SIN = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(1, 9))
"""(sin(r) / r - 1) / r^2 in r^2 for |r| <= pi / 4."""
COS = tuple((-1) ** k / math.factorial(2 * k) for k in range(2, 10))
"""(cos(r) - 1 + r^2 / 2) / r^4 in r^2 for |r| <= pi / 4."""
ERF = tuple(2 / math.sqrt(math.pi) * (-1) ** k / (math.factorial(k) * (2 * k + 1)) - (k == 0) for k in range(20))
"""erf(x) / x - 1 in x^2 for |x| <= 1."""
LOG_ERFC = (
    1.8496055099332482, 2.638967514234788, 0.8431072563586771, 0.04156109804180312, -0.010033825374352968,
    0.001977902567557596, -0.0002373224799642079, -2.6277879491994717e-05, 2.715912160957355e-05, -9.608915034055708e-06,
    2.0597889742474206e-06, -1.428897612346721e-07, -9.75383704892429e-08, 5.2033732769807824e-08, -1.491006936724489e-08,
    2.863716635798393e-09, -3.6819773412993857e-10, 2.8810901525329365e-11, -1.0389056754757916e-12)
"""-log(1 - erf(x)) in x - 1 for 1 <= x <= 6: a minimax fit of (1 - erf(x)) times the error, which is below 2^-59."""


# ---- arithmetic ------------------------------------------------------------------------------------------------------
def fma(a: Expr, b: Expr | float, c: Expr | float) -> Expr:
    """a * b + c, rounded once or twice."""
    return apply("fma", a, b, c)


def polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    """The sum of coefficients[i] * x**i."""
    *rest, last = coefficients
    result: Expr = literal(last, "float64")
    for coefficient in reversed(rest):
        result = fma(result, x, coefficient)
    return result


def bits(x: Expr) -> Expr:
    return cast(x, "int64", bits=True)


def from_bits(x: Expr) -> Expr:
    return cast(x, "float64", bits=True)


def halves(x: Expr) -> Pair:
    """The upper 26 bits and the others: products of two such limbs are exact."""
    upper = from_bits(bits(x) & -1 << 27)
    return upper, x - upper


def product(a: Expr, b: Expr) -> Pair:
    """a * b as a pair."""
    whole, (a_high, a_low), (b_high, b_low) = a * b, halves(a), halves(b)
    return whole, ((a_high * b_high - whole) + a_high * b_low + a_low * b_high) + a_low * b_low


def total(a: Expr, b: Expr) -> Pair:
    """a + b as a pair."""
    whole = a + b
    of_b = whole - a
    return whole, (a - (whole - of_b)) + (b - of_b)


def nearest_integer(x: Expr, factor: float) -> Pair:
    """The integer nearest to x * factor, or one of two as near, as a float and as an int64. It must be below 2^51."""
    rounded = x * factor + ROUNDER
    return rounded - ROUNDER, bits(rounded) - ROUNDER_BITS


def power_of_two(n: Expr) -> Expr:
    """2**n of an int64, for a normal result."""
    return from_bits((n << 52) + ONE)


def scaled(x: Expr, n: Expr) -> Expr:
    """x * 2**n of an int64 of at most 1100 in size, for an x near 1; rounded once."""
    whole = n << 52
    half = n << 51 & -1 << 52
    return x * from_bits(half + ONE) * from_bits(whole - half + ONE)


def with_sign(magnitude: Expr, x: Expr) -> Expr:
    """The magnitude of one number with the sign of another."""
    return from_bits((bits(magnitude) & ~SIGN) | (bits(x) & SIGN))


# ---- exponential functions -------------------------------------------------------------------------------------------
def reduced_exponent(x: Expr) -> Pair:
    """(n, r) with x = n * ln 2 + r, n whole, |r| <= ln(2) / 2."""
    real, n = nearest_integer(x, 1 / math.log(2))
    return n, (x - real * LN2[0]) - real * LN2[1]


def expm1(r: Expr) -> Expr:
    """exp(r) - 1 for |r| <= ln(2) / 2."""
    return fma(r * r, polynomial(r, EXP), r)


def exponential(x: Expr, rest: Expr | None = None) -> Expr:
    """exp(x), or exp(x + rest) for a rest far below the rounding of x. Results underflow gradually."""
    n, r = reduced_exponent(clamp(x, -746.0, 710.0))
    return scaled(expm1(r if rest is None else r + rest) + 1.0, n)


def tanh(x: Expr) -> Expr:
    """(1 - e) / (1 + e) of e = exp(-2|x|), from e - 1: relative error small near zero too."""
    n, r = reduced_exponent(apply("max", apply("abs", x) * -2.0, -50.0))
    scale = power_of_two(n)
    below_zero = fma(scale, expm1(r), scale - 1.0)
    return with_sign(below_zero / (below_zero + 2.0), x)


def sigmoid(x: Expr) -> Expr:
    """1 / (1 + exp(-x)), from exp(-|x|) so that both tails are right."""
    small = exponential(apply("abs", x) * -1.0)
    return select(x < 0.0, small, literal(1.0, "float64")) / (small + 1.0)


def erf(x: Expr) -> Expr:
    magnitude = apply("abs", x)
    inner = fma(magnitude, polynomial(x * x, ERF), magnitude)
    beyond_one = clamp(magnitude, 1.0, 6.0) - 1.0
    outer = literal(1.0, "float64") - exponential(polynomial(beyond_one, LOG_ERFC) * -1.0)
    return with_sign(select(magnitude < 1.0, inner, outer), x)


# ---- logarithm and power ---------------------------------------------------------------------------------------------
def exponent_and_fraction(x: Expr) -> Pair:
    """(e, f) with x = 2**e * (1 + f), e whole, sqrt(1/2) - 1 <= f <= sqrt(2) - 1, for a positive number."""
    is_subnormal = x < 2.0**-1022
    code = bits(select(is_subnormal, x * 2.0**54, x))
    exponent = (code - int(np.float64(math.sqrt(0.5)).view(np.int64))) >> 52
    f = from_bits(code - (exponent << 52)) - 1.0
    e = from_bits(exponent + ROUNDER_BITS) - ROUNDER
    return select(is_subnormal, e - 54.0, e), f


def log(x: Expr) -> Expr:
    """The natural logarithm; NaN below 0. With s = f / (2 + f) it is log(1 + f) = 2 atanh(s) = f - f^2/2 + s (f^2/2 + ...)."""
    e, f = exponent_and_fraction(x)
    s, half = f / (f + 2.0), f * f * 0.5
    square = s * s
    rest = fma(e, LN2[1], s * fma(square, polynomial(square, LOG), half))
    return beyond_logarithm(x, e * LN2[0] - ((half - rest) - f))


def beyond_logarithm(x: Expr, ordinary: Expr) -> Expr:
    """log(x) where x is no positive number, too."""
    beyond = select(x.equals(0.0), literal(-math.inf, "float64"), select(x < 0.0, literal(math.nan, "float64"), x))
    return select((x > 0.0) & (x < math.inf), ordinary, beyond)


def logarithm(x: Expr) -> Pair:
    """log(x) as a pair for x > 0, with a relative error below 2^-63; for other x the first limb is as `log` has it."""
    e, f = exponent_and_fraction(x)
    (s, s_low), (cube, cube_low) = atanh_terms(f)
    square = s * s
    tail = s * square * square * polynomial(square, LOG[1:])
    first, first_low = total(e * LN2[0], s + s)
    second, second_low = total(first, cube)
    low = (tail + fma(e, LN2[1], cube_low + s_low * 2.0)) + first_low + second_low
    near = second + low
    is_ordinary = (x > 0.0) & (x < math.inf)
    return beyond_logarithm(x, near), select(is_ordinary, (second - near) + low, literal(0.0, "float64"))


def atanh_terms(f: Expr) -> tuple[Pair, Pair]:
    """s = f / (2 + f) and 2/3 s^3, as pairs."""
    divisor = f + 2.0
    divisor_low = f - (divisor - 2.0)
    inverse = literal(1.0, "float64") / divisor
    s = f * inverse
    back, back_low = product(s, divisor)
    s_low = (((f - back) - back_low) - s * divisor_low) * inverse
    square, square_low = product(s, s)
    square_low = fma(s * 2.0, s_low, square_low)
    cube, cube_low = product(s, square)
    cube_low = cube_low + fma(s, square_low, s_low * square)
    third, third_low = product(cube, literal(TWO_THIRDS[0], "float64"))
    return (s, s_low), (third, third_low + fma(cube, TWO_THIRDS[1], cube_low * TWO_THIRDS[0]))


def power(x: Expr, y: Expr) -> Expr:
    """x**y as IEEE 754 has pow, negative x included."""
    magnitude = apply("abs", x)
    first, second = logarithm(magnitude)
    whole, lost = product(y, first)
    rest = select(apply("abs", whole) < 800.0, lost + second * y, literal(0.0, "float64"))
    return signed_power(x, y, exponential(whole, rest))


# ---- circular functions ----------------------------------------------------------------------------------------------
def sine(x: Expr) -> Expr:
    return select(x.equals(0.0), x, circular(x, 0))  # -0.0 is itself


def cosine(x: Expr) -> Expr:
    return circular(x, 1)


def circular(x: Expr, quadrants: int) -> Expr:
    """sin(x + quadrants * pi / 2) for |x| <= 2^30; larger x stand for 2^30."""
    inside = clamp(x, -2.0**30, 2.0**30)
    real, integer = nearest_integer(inside, 2 / math.pi)
    r, low = inside, literal(0.0, "float64")
    for limb in HALF_PI:
        r, lost = total(r, real * -limb)
        low = low + lost
    r, low = total(r, low)
    square = r * r
    half = square * 0.5
    sin = r + fma(r * square, polynomial(square, SIN), low - low * half)
    near = literal(1.0, "float64") - half
    cos = near + (((literal(1.0, "float64") - near) - half) + fma(square * square, polynomial(square, COS), r * low * -1.0))
    quadrant = integer + quadrants if quadrants else integer
    value = select((quadrant & 1).equals(0), sin, cos)
    turned = from_bits(bits(value) ^ ((quadrant & 2) << 62))
    return fma(x, 0.0, turned)  # a NaN where x is infinite
