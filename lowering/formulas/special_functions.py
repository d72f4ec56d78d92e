"""The complementary error function, the logarithm of the gamma function, and its derivative."""
from __future__ import annotations

import math
from functools import reduce

from ..graph.types import F32, F64
from .division import split
from .rounding import nearest_even
from .term import Term, absolute, erf, exp, floor, log, polynomial, reciprocal, select, sin
from .transcendental import tan

TAIL_CENTER = 3.0
ERFC_TAIL = {
    F32: (1.07400691, -0.883394452, 0.59022839, -0.310467456, 0.11952722, -0.0268242658, -0.00120995973, 0.00301825711,
          -0.000549535378, -0.000241408515, 9.58890017e-5),
    F64: (1.0740069070883397, -0.883394453169883669, 0.590228357104101606, -0.310467261900561518, 0.119527761287308929,
          -0.0268272346247262943, -0.00121241662776470361, 0.00303406200582370353, -0.000548309683743505745,
          -0.000276777893538161339, 0.000107561422611741214, 0.0000303984546254297077, -0.0000174702586140033767,
          -4.75037603525292762e-6, 2.76445664594489039e-6, 1.00188716726747432e-6, -4.06121438854804703e-7,
          -2.38673298551804275e-7, 4.36783032696542049e-8, 5.63419595421789641e-8, 9.67009603378259427e-10,
          -1.23012501939197103e-8, -1.8784921254157459e-9, 2.29056664218992339e-9, 3.37957291647711599e-10,
          -2.65317552200798217e-10)}
"""erfc(x) exp(x^2) (x + 3) in u = (x - 3) / (x + 3) for x >= 1 / 2, interpolated where Chebyshev's polynomials are 0."""
LOG_GAMMA = {
    F32: (0.422784335, 0.322467018, -0.0673522941, 0.0205816254, -0.00738592088, 0.00287886868, -0.00118748481, 0.00057025125,
          -0.000250562021),
    F64: (0.422784335098467139, 0.322467033424113236, -0.0673523010531981034, 0.0205808084277803801, -0.0073855510286719984,
          0.00289051033103426686, -0.00119275391184281569, 0.000509669515411545835, -0.000223154754005205077,
          0.0000994576735581949821, -0.0000449263133791556975, 0.0000205055907558334531, -9.43871509921153266e-6,
          4.38470440459836033e-6, -2.04390481070299067e-6, 9.20052789496810049e-7, -4.32523934456048164e-7,
          2.78740805211358998e-7, -1.32199456661178745e-7)}
"""lgamma(2 + t) / t for |t| <= 1 / 2, interpolated likewise."""
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
"""Coefficients of Stirling's series for lgamma, in x^-1, x^-3, ..."""
DIGAMMA = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)
"""Coefficients of the series for the derivative of lgamma, in x^-2, x^-4, ..."""
SHIFT = {F32: 0, F64: 7}
"""Distance by which a number of the middle range is moved up to where Stirling's series is accurate."""


# ---- erfc --------------------------------------------------------------------------------------------------------
def erfc(x: Term) -> Term:
    """Return erfc(x) to 5 ulp, in the tail, too."""
    a = absolute(x)
    tail = tail_of_erfc(a)
    return select(a < 0.5, 1 - erf(x), select(x < 0, 2 - tail, tail))


def tail_of_erfc(a: Term) -> Term:
    """Return exp(-a^2) times a polynomial. The part of a^2 that is lost in rounding is small, and exp(-lost) is 1 - lost."""
    finite = select(a < 2.0**30, a, 2.0**30)
    square, (high, low) = finite * finite, split(finite)
    lost = low * low - ((square - high * high) - high * low * 2)
    decay = exp(-square)
    found = (decay - decay * lost) * scaled_tail(finite)
    return select(a.equals(a), found, a)


def scaled_tail(a: Term) -> Term:
    """Return exp(a^2) erfc(a) for a >= 1 / 2 whose square is finite."""
    inverse = reciprocal(a + TAIL_CENTER)
    return polynomial((a - TAIL_CENTER) * inverse, ERFC_TAIL[a.element]) * inverse


# ---- lgamma ------------------------------------------------------------------------------------------------------
def log_gamma(x: Term) -> Term:
    """Return lgamma(x), to an absolute error of some 1e-6 near its zeros below 0, else a relative one. Infinite where gamma
    has poles."""
    reflected = select(x < 0, 1 - x, x)
    found = log_gamma_above_zero(reflected)
    below = math.log(math.pi) - log(sine_of_turns(x)) - found
    return select(x < -x.precision.whole, x.term(math.inf), select(x < 0, below, found))


def sine_of_turns(x: Term) -> Term:
    """Return |sin(pi x)|, from the distance of x to the nearest integer: exactly 0 there."""
    fraction = absolute(x) - floor(absolute(x))
    return sin(select(fraction > 0.5, 1 - fraction, fraction) * math.pi)


def log_gamma_above_zero(x: Term) -> Term:
    """Return lgamma(x) by a polynomial around 2, to which gamma(x + 1) = x gamma(x) leads up to 7 / 2; beyond, by Stirling's
    series."""
    is_first, is_second, is_fourth = x < 0.5, x < 1.5, x >= 2.5
    t = select(is_first, x, select(is_second, x - 1, select(is_fourth, x - 3, x - 2)))
    factor = select(is_first, x * (x + 1), select(is_second, x, select(is_fourth, x - 1, 1)))
    is_far = x >= 3.5
    shifted = select(x < 10, x + SHIFT[x.element], x)
    logarithm = log(select(is_far, shifted, factor))
    near = t * polynomial(t, LOG_GAMMA[x.element]) + select(is_fourth, logarithm, -logarithm)
    return select(is_far, stirling(shifted, logarithm) - log_of_shift(x), near)


def stirling(x: Term, logarithm: Term) -> Term:
    inverse = reciprocal(x)
    series = polynomial(inverse * inverse, STIRLING) * inverse
    return ((x - 0.5) * (logarithm - 1)) + (math.log(2 * math.pi) / 2 - 0.5) + series


def log_of_shift(x: Term) -> Term:
    """Return the logarithm of x (x + 1) ... for the steps that x was moved up."""
    steps = SHIFT[x.element]
    if not steps:
        return x.term(0)
    product = reduce(lambda a, b: a * b, [x + step for step in range(1, steps)], x)
    return log(select(x < 10, product, 1))


# ---- digamma -----------------------------------------------------------------------------------------------------
def digamma(x: Term) -> Term:
    """Return digamma(x), to an absolute error of some 1e-6 near its zeros, in f64 of 1e-12. NaN where gamma has poles."""
    a = select(x < 0, 1 - x, x)
    moved = select(a < 6, a + 6, a)
    inverse = reciprocal(moved)
    far = log(moved) - inverse * 0.5 + inverse * inverse * polynomial(inverse * inverse, DIGAMMA)
    steps = reduce(lambda s, t: s + t, [reciprocal(a + step) for step in range(6)])
    found = far - select(a < 6, steps, 0.0)
    turns = x - nearest_even(x)
    below = select(turns.equals(0), x.term(math.nan), found - math.pi / tan(turns * math.pi))
    return select(x <= 0, below, found)
