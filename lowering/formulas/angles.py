"""Arcus functions: all of them are an arcus tangent of something."""
from __future__ import annotations

import math

from ..graph.types import F32, F64
from .division import scale_of
from .powers import is_negative
from .term import Term, absolute, maximum, minimum, polynomial, rsqrt, select
from .transcendental import odd

ARC_TANGENT = {
    F32: (-0.333333318, 0.199995405, -0.142639556, 0.107437315, -0.0645192821),
    F64: (-0.333333333333333302, 0.199999999999955207, -0.142857142846665429, 0.111111110152563617, -0.0909090457812390189,
          0.0769218319082608656, -0.06664511447381948, 0.0585814891280220988, -0.0508544973794025986, 0.0392316582955871913,
          -0.019176887119062259)}
"""(atan(x) / x - 1) / x^2 in x^2 for |x| <= tan(pi / 8), interpolated where Chebyshev's polynomials are 0."""


def arc_tangent(x: Term) -> Term:
    """3 ulp."""
    return odd(x, arc_tangent_of(absolute(x), x.term(1)))


def arc_tangent_of(a: Term, b: Term) -> Term:
    """The angle whose tangent is a / b, for numbers that are not negative and not both 0 or infinite. It is near 0, pi / 4 or
    pi / 2, and the rest is below pi / 8: one quotient for any of them."""
    is_low, is_high = a <= b * math.tan(math.pi / 8), a * math.tan(math.pi / 8) >= b
    numerator = select(is_low, a, select(is_high, -b, a - b))
    denominator = select(is_low, b, select(is_high, a, a + b))
    middle = select(is_low, a.term(0), select(is_high, a.term(math.pi / 2), math.pi / 4))
    t = numerator / denominator
    square = t * t
    return middle + (t + t * square * polynomial(square, ARC_TANGENT[a.element]))


def arc_sine(x: Term) -> Term:
    """NaN beyond 1."""
    return odd(x, arc_tangent_of(absolute(x) * rsqrt((1 - x) * (1 + x)), x.term(1)))


def arc_cosine(x: Term) -> Term:
    """Twice the angle whose tangent is sqrt((1 - x) / (1 + x)); NaN beyond 1."""
    tangent = rsqrt((1 + x) / (1 - x))
    return arc_tangent_of(tangent, x.term(1)) * 2


def arc_tangent_of_two(y: Term, x: Term) -> Term:
    """The angle of the point (x, y), by quadrants. Signs of zeros count, and two infinities are as good as two ones."""
    a, b = absolute(y), absolute(x)
    most, least = maximum(a, b), minimum(a, b)
    scale = scale_of(most)
    is_same = a.equals(b)
    top, bottom = (select(is_same, y.term(1), v * scale) for v in (a, b))
    angle = arc_tangent_of(top, bottom)
    angle = select(is_same & a.equals(0), y.term(0), angle)
    angle = select(is_negative(x), math.pi - angle, angle)
    found = select(is_negative(y), -angle, angle)
    return select(least.equals(least), found, least)
