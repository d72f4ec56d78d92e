"""Complex numbers as pairs of terms: arithmetic, magnitude and angle, exponentials, logarithms, roots and powers, with the
limits that C99 and NumPy give them. Products are those of the parts, as NumPy has them; quotients are R. L. Smith's (1962,
https://doi.org/10.1145/368637.368661), which do not overflow before their time.
"""
from __future__ import annotations

import math
from typing import NamedTuple

from ..graph.types import F32
from .angles import arc_tangent_of_two
from .division import divided, residual, scale_of, square_root
from .logarithms import hypotenuse
from .powers import is_negative
from .term import Term, absolute, cos, exp, log, maximum, minimum, select, sin
from .transcendental import expm1 as real_expm1
from .transcendental import log1p as real_log1p


class Complex(NamedTuple):
    """A complex number, or a tensor of them."""
    real: Term
    imag: Term

    def times(self, factor: Term | float) -> Complex:
        return Complex(self.real * factor, self.imag * factor)

    def plus(self, number: Term | float) -> Complex:
        return Complex(self.real + number, self.imag)

    def negated(self) -> Complex:
        return Complex(-self.real, -self.imag)

    def conjugate(self) -> Complex:
        return Complex(self.real, -self.imag)


def chosen(condition: Term, yes: Complex, no: Complex) -> Complex:
    return Complex(select(condition, yes.real, no.real), select(condition, yes.imag, no.imag))


def with_sign(magnitude: Term, like: Term) -> Term:
    """The first, negated where the other has a minus, that of -0, too."""
    return select(is_negative(like), -magnitude, magnitude)


# ---- arithmetic --------------------------------------------------------------------------------------------------
def product(x: Complex, y: Complex) -> Complex:
    return Complex(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)


def quotient(x: Complex, y: Complex) -> Complex:
    """By 0 it is infinite or NaN, part by part."""
    is_real = absolute(y.real) >= absolute(y.imag)
    large, small = select(is_real, y.real, y.imag), select(is_real, y.imag, y.real)
    ratio = divided(small, large)
    scale = large + small * ratio
    real = select(is_real, x.real + x.imag * ratio, x.real * ratio + x.imag)
    imag = select(is_real, x.imag - x.real * ratio, x.imag * ratio - x.real)
    by_zero = large.equals(0)
    zero = absolute(large)
    return Complex(divided(select(by_zero, x.real, real), select(by_zero, zero, scale)),
                   divided(select(by_zero, x.imag, imag), select(by_zero, zero, scale)))


def reciprocal(x: Complex) -> Complex:
    return quotient(Complex(x.real * 0 + 1, x.real * 0), x)


def whole_power(x: Complex, exponent: int) -> Complex:
    """x to the power of a known integer, by squares."""
    if exponent < 0:
        return reciprocal(whole_power(x, -exponent))
    found: Complex | None = None
    while exponent:
        if exponent & 1:
            found = x if found is None else product(found, x)
        exponent >>= 1
        x = product(x, x) if exponent else x
    return found or Complex(x.real.term(1).broadcast_to(x.real.value.tensor.dims), x.real.term(0).broadcast_to(
        x.real.value.tensor.dims))


# ---- magnitude and angle -----------------------------------------------------------------------------------------
def magnitude(x: Complex) -> Term:
    """|x|, infinite where a part is, whatever the other."""
    return hypotenuse(x.real, x.imag)


def angle(x: Complex) -> Term:
    return arc_tangent_of_two(x.imag, x.real)


def unit(x: Complex) -> Complex:
    """x / |x|, 0 at 0; of an infinite number that of its infinite parts."""
    size = magnitude(x)
    is_infinite = size.equals(math.inf)
    real, imag = (select(is_infinite, with_sign(select(absolute(part).equals(math.inf), part.term(1), 0.0), part), part)
                  for part in x)
    size = select(is_infinite, magnitude(Complex(real, imag)), size)
    size = select(size.equals(0), size.term(1), size)
    return Complex(divided(real, size), divided(imag, size))


# ---- exponentials and logarithms ---------------------------------------------------------------------------------
def scaled_exp(a: Term, x: Term) -> Term:
    """exp(a) * x, where exp(a) alone may overflow."""
    most = 80.0 if a.element == F32 else 700.0
    low = maximum(minimum(a, most), -most)
    return exp(low) * x * exp(a - low)


def exponential(x: Complex) -> Complex:
    """A real number stays one, and at minus infinity the angle does not matter."""
    cosine, sine = cos(x.imag), sin(x.imag)
    is_nothing = x.real.equals(-math.inf) & cosine.differs(cosine)
    real = select(is_nothing, cosine.term(0), scaled_exp(x.real, select(x.imag.equals(0), cosine.term(1), cosine)))
    imag = select(x.imag.equals(0), x.imag, select(is_nothing, sine.term(0), scaled_exp(x.real, sine)))
    return Complex(select(x.real.equals(math.inf) & real.differs(real), real.term(math.inf), real), imag)


def expm1(x: Complex) -> Complex:
    """exp(x) - 1, accurate near 0."""
    half = sin(x.imag * 0.5)
    whole = exponential(x)
    near = real_expm1(x.real) * cos(x.imag) - half * half * 2
    return Complex(select(absolute(x.real) < 1, near, whole.real - 1), whole.imag)


def logarithm(x: Complex) -> Complex:
    return Complex(log_of_magnitude(x), angle(x))


def log_of_magnitude(x: Complex) -> Term:
    """log |x|; near |x| = 1 from |x|^2 - 1, of which no digit is lost."""
    a, b = absolute(x.real), absolute(x.imag)
    most, least = maximum(a, b), minimum(a, b)
    ratio = divided(least, select(most.equals(0), most.term(1), most))
    far = log(most) + real_log1p(ratio * ratio) * 0.5
    is_near = (most > 0.6) & (most < 1.5)
    found = select(is_near, real_log1p(square_less_one(select(is_near, most, 1.0), select(is_near, least, 0.0))) * 0.5, far)
    return select(a.equals(math.inf) | b.equals(math.inf), a.term(math.inf), found)


def square_less_one(most: Term, least: Term) -> Term:
    """most^2 + least^2 - 1 for `most` near 1: what the squares lose when they are rounded is added at the end."""
    square, other = most * most, least * least
    lost = residual(square, most, most) + residual(other, least, least)
    return ((square - 1) + other) - lost


def log1p(x: Complex) -> Complex:
    """log(1 + x), accurate near 0."""
    moved = x.plus(1)
    near = real_log1p(x.real * (x.real + 2) + x.imag * x.imag) * 0.5
    is_small = (absolute(x.real) < 0.25) & (absolute(x.imag) < 0.25)
    return Complex(select(is_small, near, log_of_magnitude(moved)), angle(moved))


# ---- roots and powers --------------------------------------------------------------------------------------------
def root(x: Complex) -> Complex:
    """The square root whose real part is not negative, with the sign of the imaginary part."""
    a, b = absolute(x.real), absolute(x.imag)
    scale = scale_of(maximum(a, b))
    back = select(scale.equals(1), scale.term(1), select(scale < 1, scale.term(2.0**32), 2.0**-32))
    low, high = a * scale, b * scale
    size = square_root((low + hypotenuse(low, high)) * 0.5)
    other = divided(high, select(size.equals(0), size.term(1), size) * 2) * back
    size = size * back
    is_left = is_negative(x.real)
    is_infinite = b.equals(math.inf)
    real = select(is_infinite, b, select(is_left, other, size))
    imag = select(is_infinite, b, select(is_left, size, other))
    return Complex(real, with_sign(imag, x.imag))


def power(x: Complex, y: Complex) -> Complex:
    """exp(y log x); 1 for y = 0, and 0 for x = 0 where y has a positive real part, else NaN."""
    found = exponential(product(y, logarithm(x)))
    is_zero = x.real.equals(0) & x.imag.equals(0)
    of_zero = select(y.real > 0, y.real.term(0), math.nan)
    found = Complex(select(is_zero, of_zero, found.real), select(is_zero, of_zero, found.imag))
    is_one = y.real.equals(0) & y.imag.equals(0)
    return Complex(select(is_one, found.real.term(1), found.real), select(is_one, found.imag.term(0), found.imag))
