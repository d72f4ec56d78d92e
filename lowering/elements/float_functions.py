"""Functions of a real number as expressions in float32: exp, log, pow, sin, cos, tanh, sigmoid, erf, without a library.

Arguments are reduced to a short interval, there a polynomial (a minimax fit, its coefficients rounded one after another
to float32) takes over. Integers are read from the bits of `x + ROUNDER`, so that no NaN is ever converted to one.
Relative errors are at most a few times 2^-24 where nothing else is said; infinities, NaN, zeros and subnormals come out
as IEEE 754 recommends.
"""
from __future__ import annotations

import math

import numpy as np

from .expression import Const, Expr, apply, cast, clamp, select

ROUNDER = 1.5 * 2.0**23
"""Added to a number below 2^22, it leaves the nearest integer in the low bits."""
ROUNDER_BITS = int(np.float32(ROUNDER).view(np.int32))
SIGN = -1 << 31
LOG2_E = math.log2(math.e)
LN2_HIGH, LN2_LOW = 0.693145751953125, 1.428606765330187e-06
"""ln 2 in two limbs; a multiple of the first by an exponent is exact."""
HALF_PI = (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12)
"""pi / 2 in four limbs, each what the ones before leave, rounded down: none is negative, so that sin(-0) is -0, and the
first three have 12 bits, so that a multiple by less than 2^12 is exact without a fused instruction too."""

EXP = (0.49999997, 0.16666542, 0.04166743, 0.008366877, 0.0013871879)
"""(expm1(r) / r - 1) / r for |r| <= ln(2) / 2."""
LOG = (0.3333331, -0.24999994, 0.20002201, -0.16668652, 0.1421873, -0.12396164, 0.11885235, -0.117219046, 0.06803063)
"""(log1p(f) - f + f^2 / 2) / f^3 for sqrt(1/2) - 1 <= f <= sqrt(2) - 1."""
SIN = (-0.16666654, 0.008332093, -0.00019505145)
"""(sin(r) / r - 1) / r^2 in r^2 for |r| <= pi / 4."""
COS = (0.041666642, -0.001388713, 2.4412086e-05)
"""(cos(r) - 1 + r^2 / 2) / r^4 in r^2 for |r| <= pi / 4."""
ERF = (0.12837917, -0.37612626, 0.11283579, -0.026853347, 0.005187162, -0.0007997853, 7.806904e-05)
"""erf(x) / x - 1 in x^2 for |x| <= 1."""
LOG_ERFC = (0.0003415223, 1.1270891, 0.638145, 0.10310645, -0.021837832, 0.0029475742, -0.00018636738)
"""-log(1 - erf(x)) for 1 <= x <= 4."""


def number(x: float) -> Const:
    """The nearest float32."""
    return Const(float(np.float32(x)), "float32")


def fma(a: Expr, b: Expr | float, c: Expr | float) -> Expr:
    """a * b + c, rounded once."""
    return apply("fma", a, b if isinstance(b, Expr) else number(b), c if isinstance(c, Expr) else number(c))


def polynomial(x: Expr, coefficients: tuple[float, ...]) -> Expr:
    """The sum of coefficients[i] * x**i."""
    *rest, last = coefficients
    result: Expr = number(last)
    for coefficient in reversed(rest):
        result = fma(result, x, coefficient)
    return result


def bits(x: Expr) -> Expr:
    return cast(x, "int64" if x.dtype == "float64" else "int32", bits=True)


def from_bits(x: Expr) -> Expr:
    return cast(x, "float32", bits=True)


def scaleb(x: Expr, exponent: Expr) -> Expr:
    """x * 2**exponent, rounded once, for a whole exponent of at most 252 in size."""
    return apply("scaleb", x, exponent)


def with_sign(magnitude: Expr, x: Expr) -> Expr:
    """A number that is not negative, with the sign of x."""
    return from_bits(bits(magnitude) | (bits(x) & SIGN))


def nearest_integer(x: Expr, factor: float) -> tuple[Expr, Expr]:
    """The integer nearest to x * factor, which must be below 2^22, as a float and as an int32."""
    rounded = fma(x, factor, ROUNDER)
    return rounded - ROUNDER, bits(rounded) - ROUNDER_BITS


def reduced_exponent(x: Expr) -> tuple[Expr, Expr]:
    """(n, r) with x = n * ln 2 + r, n whole, |r| <= ln(2) / 2."""
    n, _ = nearest_integer(x, LOG2_E)
    return n, fma(n, -LN2_LOW, fma(n, -LN2_HIGH, x))


def expm1_over(r: Expr) -> Expr:
    """(exp(r) - 1) / r for |r| <= ln(2) / 2."""
    return fma(polynomial(r, EXP), r, 1.0)


def exponential(x: Expr, rest: Expr | None = None) -> Expr:
    """exp(x), or exp(x + rest) for a rest far below the rounding of x. Results underflow gradually."""
    n, r = reduced_exponent(clamp(x, -105.0, 89.5))
    r = r if rest is None else r + rest
    return scaleb(fma(r, expm1_over(r), 1.0), n)


def tail(x: Expr) -> tuple[Expr, Expr]:
    """exp(-|x|) and exp(-|x|) - 1, each with a small relative error. What tanh and sigmoid of one number share."""
    n, r = reduced_exponent(apply("max", from_bits(bits(x) | SIGN), number(-105.0)))
    scale, above_one = scaleb(number(1.0), n), r * expm1_over(r)
    return fma(scale, above_one, scale), fma(scale, above_one, scale - 1.0)


def tanh(x: Expr) -> Expr:
    """(1 - e) / (1 + e) of e = exp(-2|x|), with e - 1 from exp(-|x|) - 1: relative error small near zero too."""
    _, below_zero = tail(x)
    doubled = fma(below_zero, below_zero, below_zero + below_zero)
    return from_bits((bits(doubled / (doubled + 2.0)) & ~SIGN) | (bits(x) & SIGN))


def sigmoid(x: Expr) -> Expr:
    """1 / (1 + exp(-x)), from exp(-|x|) so that both tails are right."""
    small, _ = tail(x)
    return select(x < 0.0, small, number(1.0)) / (small + 1.0)


def erf(x: Expr) -> Expr:
    magnitude = apply("abs", x)
    square = x * x
    inner = fma(magnitude, polynomial(square, ERF), magnitude)
    outer_x = apply("min", magnitude, number(4.0))
    outer = number(1.0) - exponential(polynomial(outer_x, LOG_ERFC) * -1.0)
    return with_sign(select(magnitude < 1.0, inner, outer), x)


def logarithm(x: Expr) -> tuple[Expr, Expr]:
    """log(x) in two limbs for x > 0, the second below the rounding of the first; other x give a first limb as `log`."""
    is_subnormal = x < 2.0**-126
    scaled = bits(select(is_subnormal, x * 2.0**23, x))
    exponent = (scaled - int(np.float32(math.sqrt(0.5)).view(np.int32))) >> 23
    f = from_bits(scaled - (exponent << 23)) - 1.0
    e = cast(exponent + select(is_subnormal, Const(-23, "int32"), Const(0, "int32")), "float32")
    square = f * f
    half, cube = square * 0.5, f * square
    # f - f^2/2 and e * ln 2 are summed exactly: what rounding loses is kept, and goes into the second limb
    near = f - half
    near_rest = (f - near) - half - fma(f, f, square * -1.0) * 0.5
    total = fma(e, LN2_HIGH, near)
    lost = fma(e, LN2_HIGH, total * -1.0) + near
    rest = fma(cube, polynomial(f, LOG), near_rest) + fma(e, LN2_LOW, lost)
    first = total + rest
    second = (total - first) + rest
    beyond = select(x.equals(0.0), number(-math.inf), select(x < 0.0, number(math.nan), x))
    ordinary = (x > 0.0) & (x < math.inf)
    return select(ordinary, first, beyond), select(ordinary, second, number(0.0))


def power(x: Expr, y: Expr) -> Expr:
    """x**y as IEEE 754 has pow, negative x included. Relative error at most 2^-20, where the result is far from 1."""
    magnitude = apply("abs", x)
    first, second = logarithm(magnitude)
    product = first * y
    lost = fma(first, y, product * -1.0) + second * y
    rest = select(apply("abs", product) < 200.0, lost, number(0.0))
    return signed_power(x, y, exponential(product, rest))


def signed_power(x: Expr, y: Expr, of_magnitude: Expr) -> Expr:
    """x**y from |x|**y, which is right where |x| is not 1 and no operand is a NaN. In float32 or float64."""
    magnitude, half = apply("abs", x), y * 0.5
    positive = select(magnitude.equals(1.0), 1.0, of_magnitude)
    is_integer, is_even = apply("floor", y).equals(y), apply("floor", half).equals(half)
    negative = select(is_integer, select(is_even, positive, positive * -1.0), undefined(positive, magnitude))
    signed = select(bits(x) < 0, negative, positive)
    is_one = y.equals(0.0) | x.equals(1.0)
    return select(is_one, 1.0, select(x.equals(x) & y.equals(y), signed, x + y))


def undefined(positive: Expr, magnitude: Expr) -> Expr:
    """A negative number to a power that is no integer: NaN, but zero and infinity have no sign to lose."""
    return select((magnitude > 0.0) & (magnitude < math.inf), math.nan, positive)


def sine(x: Expr) -> Expr:
    return circular(x, 0)


def cosine(x: Expr) -> Expr:
    return circular(x, 1)


def circular(x: Expr, quadrants: int) -> Expr:
    """sin(x + quadrants * pi / 2), absolute error below 2^-22 for |x| <= 2^22. Larger x stand for 2^22: neighbouring
    float32 are then up to a period apart, and TOSA's bound is wider than the range of the result."""
    real, integer = nearest_integer(clamp(x, -2.0**22, 2.0**22), 2 / math.pi)
    r = clamp(x, -2.0**22, 2.0**22)
    for limb in HALF_PI:
        r = fma(real, -limb, r)
    square = r * r
    sin = r * fma(polynomial(square, SIN), square, 1.0)
    cos = fma(polynomial(square, COS), square * square, fma(square, -0.5, 1.0))
    quadrant = integer + quadrants if quadrants else integer
    value = select((quadrant & 1).equals(0), sin, cos)
    turned = from_bits(bits(value) ^ ((quadrant & 2) << 30))
    return fma(x, 0.0, turned)  # a NaN where x is infinite
