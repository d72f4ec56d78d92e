"""The error function's inverse, its complement with a scale, and the normal distribution, each accurate in its tails, too.

Errors that stand here are the greatest found in f32 over the whole range, in units in the last place.
"""
from __future__ import annotations

import math

from ..graph.types import F32
from .chebyshev import Chebyshev
from .division import split, square_root
from .special_functions import scaled_tail
from .term import Term, absolute, erf, exp, log, minimum, reciprocal, select
from .transcendental import log1p

NEAR = Chebyshev(0.0, 5.0625, 11, (
    1.49843987728709326, 0.608520887364601108, -0.00968901581787117874, -0.00506008095015388099,
    0.000958153835821944385, -7.31082423324360588e-6, -0.0000254283872559026662, 3.5921582323559693e-6,
    2.77550392946902126e-7, -1.42631251258613988e-7, 9.83995192266811738e-9, 3.0797973390929903e-9,
    -6.90257434372944385e-10, -7.5172411061573256e-12, 2.22783728545020915e-11, -2.57643604549259046e-12,
    -3.69465808277352014e-13, 1.27206631275263424e-13, -4.45606642127690154e-15, -3.44168661096022621e-15,
    5.75293203595186741e-16, 3.62029333804311226e-17, -2.28175188130471887e-17))
MIDDLE = Chebyshev(2.25, 4.0, 10, (
    2.96201736882497357, 0.874731980343335199, 0.00405644359070823859, -0.0013207859835082962,
    0.000374325887513560347, -0.0000892327147108057677, 0.0000146523510135112752, -6.18788665857812679e-7,
    -4.65931719409070481e-7, 1.47363106388133568e-7, -1.62433803417050716e-8, -2.27428739910370574e-9,
    1.15032271537553425e-9, -1.60578529996650224e-10, -9.02787113531710667e-12, 7.69852479922083293e-12,
    -1.2706819089797516e-12, -4.9135744843335797e-15, 4.47035552639130546e-14, -9.26460197183224742e-15,
    4.49961338628254507e-16, 2.2336428633537635e-16, -6.51530224839689825e-17))
FAR = Chebyshev(4.0, 10.5, 11, (
    7.11875685996368972, 3.27702197596737152, -0.00226068468253031821, -0.000104122172165678386,
    0.000133487518698311531, -0.0000508158243379470485, 0.0000154371314537449858, -4.24901308569342202e-6,
    1.1075345691165114e-6, -2.80369604207069929e-7, 7.08098833057369851e-8, -1.86651794842923582e-8,
    5.52211319944330838e-9, -1.96381325879182231e-9, 8.35333070814322369e-10, -3.93463152487773279e-10,
    1.89704984583855088e-10, -8.91766578193220365e-11, 3.97742297587815596e-11, -1.65105874543014064e-11,
    6.24374276574732868e-12, -2.0763208664307414e-12, 5.59720155834395454e-13, -8.87567479710246602e-14,
    -1.99539665367831419e-14, 2.63393859296555323e-14, -1.48143718550976911e-14, 6.08367913274372119e-15,
    -1.90935985121776335e-15, 3.98113540207667816e-16, 1.40038204131022096e-18, -5.12212281943116014e-17))
FURTHEST = Chebyshev(10.5, 27.5, 8, (
    18.9217763224339122, 8.52349671727438118, -0.00395131811530082409, 0.000681132863941418203,
    -0.000116206319017389706, 0.000019014462440788369, -2.83509179996532549e-6, 3.35681490493295347e-7,
    -1.06797242866605464e-8, -1.17597457673444847e-8, 5.77903225278433009e-9, -1.99990759947055134e-9,
    6.07265875373376311e-10, -1.72164623341145568e-10, 4.67890845878987588e-11, -1.2356126321171307e-11,
    3.19585437256048869e-12, -8.13615314905847316e-13, 2.04560500261175906e-13, -5.09099045474406316e-14,
    1.25628577471308337e-14, -3.07766061940290069e-15, 7.49220122709673285e-16, -1.81372567018921994e-16))
"""erfinv(x) / x, in w = -log(1 - x^2) for w up to 81 / 16, then in sqrt(w): interpolated at Chebyshev's nodes."""

LARGE = 2.0**30
"""Beyond it erfcx(x) is 1 / (sqrt(pi) x) for every format."""
NO_SQUARE = 64.0
"""Beyond it exp(-x^2 / 2) is 0 and exp(x^2) infinite, for every format."""


# ---- inverses ----------------------------------------------------------------------------------------------------
def erfinv(x: Term) -> Term:
    """5 ulp. Infinite at -1 and 1, NaN beyond."""
    rest = (1 - x) * (1 + x)
    found = x * inverse_over_argument(-log(rest), is_tail=False)
    return select(rest.equals(0), x * math.inf, found)


def erfcinv(y: Term) -> Term:
    """erfinv(1 - y), accurate for the smallest y, too."""
    rest = y * (2 - y)
    x = 1 - y
    found = x * inverse_over_argument(-log(rest), is_tail=True)
    return select(rest.equals(0), x * math.inf, found)


def ndtri(p: Term) -> Term:
    """The number below which a normal one is with probability p."""
    return erfcinv(p + p) * -math.sqrt(2) + 0.0


def inverse_over_argument(w: Term, is_tail: bool) -> Term:
    """erfinv(x) / x. In f32 w is below 16 unless it is of a tail."""
    s = square_root(w)
    found = select(w < NEAR.high, NEAR.of(w), MIDDLE.of(s))
    if is_tail or w.element != F32:
        found = select(s < FAR.low, found, FAR.of(s))
    if is_tail and w.element != F32:
        found = select(s < FURTHEST.low, found, FURTHEST.of(s))
    return found


# ---- with exponentials -------------------------------------------------------------------------------------------
def exp_of_square(x: Term, factor: float) -> Term:
    """exp(factor x^2). What x^2 loses when it is rounded is small, and exp(lost) is 1 + lost."""
    finite = minimum(absolute(x), NO_SQUARE)
    square, (high, low) = finite * finite, split(finite)
    lost = low * low - ((square - high * high) - high * low * 2)
    return exp(square * factor) * (lost * factor + 1)


def erfcx(x: Term) -> Term:
    """exp(x^2) erfc(x)."""
    a = absolute(x)
    scaled = select(a < LARGE, scaled_tail(minimum(a, LARGE)), reciprocal(a) * (1 / math.sqrt(math.pi)))
    grown = exp_of_square(x, 1)
    near = grown * (1 - erf(x))
    return select(a < 0.5, near, select(x < 0, grown + grown - scaled, scaled))


def ndtr(x: Term) -> Term:
    """The probability that a normal number is below x."""
    z = x * math.sqrt(0.5)
    a = absolute(z)
    tail = exp_of_square(x, -0.5) * scaled_tail(minimum(a, LARGE)) * 0.5
    found = select(a < 0.5, 0.5 + erf(z) * 0.5, select(z < 0, tail, 1 - tail))
    return select(x.equals(x), found, x)


def log_ndtr(x: Term) -> Term:
    low = minimum(x, -1.0)
    tail = log(erfcx(low * -math.sqrt(0.5)) * 0.5) - low * 0.5 * low
    return select(x < -1, tail, log1p(-ndtr(-x)))
