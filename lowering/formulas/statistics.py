"""Functions of statistics from logarithms and exponentials: logits, entropies, losses, the transformations of Box and Cox."""
from __future__ import annotations

import math

from .chebyshev import Chebyshev
from .division import divided
from .logarithms import hypotenuse
from .term import Term, absolute, exp, log, maximum, minimum, select, sin
from .transcendental import atanh, expm1, log1p

NEAR_HALF = 0.4
"""Bound of |2 p - 1| below which the logit is computed from 2 p - 1: there the logarithms of p and 1 - p cancel."""

BREGMAN = Chebyshev(-0.25, 0.25, 9, (
    0.508066615170332459, -0.0857681645465169115, 0.008153027852959499, -0.000827191811087962431,
    0.0000874557559708716568, -9.5129613864683984e-6, 1.05651429719238918e-6, -1.19214961499968791e-7,
    1.36214517817418316e-8, -1.57221993688054149e-9, 1.82992302010062633e-10, -2.14486116024077215e-11,
    2.52906232414386058e-12, -2.99747087145029484e-13, 3.56858682467816445e-14, -4.26527374863670098e-15,
    5.11577024130057136e-16, -6.15495104049075324e-17, 7.42589640700599728e-18))
"""(u - log(1 + u)) / u^2, interpolated where Chebyshev's polynomials are 0."""
NO_SLOPE = 2.0**-60
"""Bound of |x| below which x adds nothing to 1, in every format."""
FAR_APART = 2.0**100
"""A quotient that is finite and not subnormal in every format, and whose inverse is, too."""


# ---- logits ------------------------------------------------------------------------------------------------------
def logit(p: Term) -> Term:
    """Return log(p / (1 - p)); NaN outside [0, 1]."""
    s = p + p - 1
    is_near = absolute(s) < NEAR_HALF
    return select(is_near, atanh(select(is_near, s, 0.0)) * 2, log(p) - log1p(-p))


def expit(x: Term) -> Term:
    """Return 1 / (1 + exp(-x)), for large negative numbers with full relative accuracy."""
    e = exp(-absolute(x))
    return divided(select(x < 0, e, 1.0), e + 1)


def log_expit(x: Term) -> Term:
    return minimum(x, 0.0) - log1p(exp(-absolute(x)))


def softplus(x: Term) -> Term:
    return -log_expit(-x)


# ---- entropies ---------------------------------------------------------------------------------------------------
def xlogy(x: Term, y: Term) -> Term:
    """Return x log(y), 0 where x is 0 and y a number."""
    return select(x.equals(0) & y.equals(y), x.term(0), x * log(y))


def xlog1py(x: Term, y: Term) -> Term:
    """Return x log(1 + y), 0 where x is 0 and y a number."""
    return select(x.equals(0) & y.equals(y), x.term(0), x * log1p(y))


def entr(x: Term) -> Term:
    """Return -x log(x); minus infinity below 0."""
    return select(x < 0, x.term(-math.inf), select(x.equals(0), x.term(0), -(x * log(x))))


def rel_entr(x: Term, y: Term) -> Term:
    """Return x log(x / y); infinite where that has no meaning."""
    found = x * log_of_quotient(x, y)
    found = select((x > 0) & (y > 0), found, select(x.equals(0) & (y >= 0), found.term(0), math.inf))
    return select(x.equals(x) & y.equals(y), found, x + y)


def kl_div(x: Term, y: Term) -> Term:
    """Return x log(x / y) - x + y; infinite where that has no meaning. Near x = y it is x (u - log(1 + u)), u = (y - x) / x."""
    u = divided(y - x, x)
    is_near = absolute(u) < BREGMAN.high
    u = select(is_near, u, 0.0)
    found = select(is_near, u * u * BREGMAN.of(u) * x, x * log_of_quotient(x, y) - x + y)
    found = select((x > 0) & (y > 0), found, select(x.equals(0) & (y >= 0), y, math.inf))
    return select(x.equals(x) & y.equals(y), found, x + y)


def log_of_quotient(x: Term, y: Term) -> Term:
    """Return log(x / y): near 1 computed from the difference, which has no error."""
    quotient = divided(x, y)
    is_near = (quotient > 0.5) & (quotient < 2.0)
    near = log1p(select(is_near, divided(x - y, y), 0.0))
    is_usual = (quotient > 1 / FAR_APART) & (quotient < FAR_APART)
    return select(is_near, near, select(is_usual, log(quotient), log(x) - log(y)))


# ---- losses ------------------------------------------------------------------------------------------------------
def huber(delta: Term, r: Term) -> Term:
    """Return r^2 / 2 for |r| up to delta, its tangent beyond; infinite where delta is negative."""
    a = absolute(r)
    found = select(a <= delta, r * 0.5 * r, delta * (a - delta * 0.5))
    found = select(r.equals(r), found, delta + r)
    return select(delta < 0, found.term(math.inf), found)


def pseudo_huber(delta: Term, r: Term) -> Term:
    """Return delta^2 (sqrt(1 + (r / delta)^2) - 1), written so that nothing cancels; infinite where delta is negative."""
    found = r * divided(r, delta + hypotenuse(delta, r)) * delta
    found = select(delta.equals(0) | r.equals(0), found.term(0), found)
    found = select(delta.equals(delta) & r.equals(r), found, delta + r)
    return select(delta < 0, found.term(math.inf), found)


# ---- Box and Cox -------------------------------------------------------------------------------------------------
def boxcox(x: Term, power: Term) -> Term:
    """Return (x^power - 1) / power, the logarithm where the power is 0."""
    return powered(log(x), power)


def boxcox1p(x: Term, power: Term) -> Term:
    return powered(log1p(x), power)


def powered(logarithm: Term, power: Term) -> Term:
    """Return (exp(logarithm power) - 1) / power."""
    product = logarithm * power
    near = logarithm * exprel(maximum(product, -1.0))
    return select(power.equals(0), logarithm, select(product < -1, divided(expm1(product), power), near))


def inv_boxcox(y: Term, power: Term) -> Term:
    return exp(rooted(y, power))


def inv_boxcox1p(y: Term, power: Term) -> Term:
    return expm1(rooted(y, power))


def rooted(y: Term, power: Term) -> Term:
    return select(power.equals(0), y, divided(log1p(y * power), power))


# ---- near 0 ------------------------------------------------------------------------------------------------------
def exprel(x: Term) -> Term:
    """Return (exp(x) - 1) / x, 1 at 0, infinite at infinity. The exponential overflows first, so it is computed by halves."""
    half = exp(x * 0.5)
    quotient = select(x < 64, divided(expm1(x), x), half * divided(half, x))
    return select(absolute(x) < NO_SLOPE, x.term(1), select(x.equals(math.inf), x, quotient))


def cosm1(x: Term) -> Term:
    """Return cos(x) - 1 by the sine of half the angle."""
    root = sin(x * 0.5)
    return root * root * -2
