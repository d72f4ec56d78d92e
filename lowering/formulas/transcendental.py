"""Exponentials, logarithms, hyperbolic functions, the tangent.

TOSA has exp, log, sin, cos, tanh and erf of floats; the others are made of these so that they keep their relative
accuracy near 0, and have the limits that IEEE 754 gives them. Errors that stand here are the greatest found in f32, in units
in the last place, over wide ranges.
"""
from __future__ import annotations

import math

from .term import Term, absolute, cos, exp, log, reciprocal, rsqrt, select, sin, tanh

LN2 = math.log(2)
LARGE = 2.0**60
"""Beyond it 1 + x**2 is x**2, for every format, and x**2 is finite."""


def odd(x: Term, magnitude: Term) -> Term:
    """A function of |x| with the sign of x; where x**3 does not count it is x, which keeps -0, subnormals and NaN."""
    return select(absolute(x) > x.precision.negligible, select(x < 0, -magnitude, magnitude), x)


# ---- exponentials and logarithms ---------------------------------------------------------------------------------
def expm1(x: Term) -> Term:
    """4 ulp."""
    return select(x < 0.5, expm1_below_half(x), exp(x) - 1)


def expm1_below_half(x: Term) -> Term:
    """exp(x) - 1 for x < 1 / 2, down to minus infinity, by t = tanh(x / 2), of which exp(x) is (1 + t) / (1 - t)."""
    t = tanh(x * 0.5)
    return (t + t) / (1 - t)


def log1p(x: Term) -> Term:
    """4 ulp. What 1 + x has lost is made good by x / (u - 1), for u = 1 + x as it was rounded."""
    u = x + 1
    near = select(u.equals(1), x, x * log(u) / select(u.equals(1), u, u - 1))
    return select(absolute(x) < 1, near, log(u))


def xlogy(x: Term, y: Term) -> Term:
    """0 where x is 0."""
    return select(x.equals(0), x.term(0), x * log(y))


def xlog1py(x: Term, y: Term) -> Term:
    """0 where x is 0."""
    return select(x.equals(0), x.term(0), x * log1p(y))


# ---- hyperbolic --------------------------------------------------------------------------------------------------
def sinh(x: Term) -> Term:
    """(e + e / (e + 1)) / 2 for e = expm1 |x|; half of exp(|x| - ln 2) further on, because exp overflows before sinh does."""
    a = absolute(x)
    e = expm1(a)
    return odd(x, select(a < 20, (e + e / (e + 1)) * 0.5, doubled_exponent(a)))


def cosh(x: Term) -> Term:
    a = absolute(x)
    e = exp(a)
    return select(a < 20, (e + reciprocal(e)) * 0.5, doubled_exponent(a))


def doubled_exponent(a: Term) -> Term:
    """exp(a) / 2 without overflow before its time: the square of exp(a / 2), halved between."""
    root = exp(a * 0.5)
    return root * 0.5 * root


def asinh(x: Term) -> Term:
    a = absolute(x)
    square = a * a
    near = log1p(a + square / (1 + root(square + 1)))
    return odd(x, select(a < LARGE, near, log(a) + LN2))


def acosh(x: Term) -> Term:
    """NaN below 1."""
    t = x - 1
    found = select(x < LARGE, log1p(t + root(t * (t + 2))), log(x) + LN2)
    return select(x < 1, x.term(math.nan), found)


def atanh(x: Term) -> Term:
    """Infinite at 1, NaN beyond."""
    a = absolute(x)
    return odd(x, log1p((a + a) / (1 - a)) * 0.5)


def root(x: Term) -> Term:
    """The square root, an ulp or two off."""
    return reciprocal(rsqrt(x))


# ---- trigonometric -----------------------------------------------------------------------------------------------
def tan(x: Term) -> Term:
    return sin(x) / cos(x)
