"""Trigonometric and hyperbolic functions of complex numbers and their inverses, whose branch cuts are W. Kahan's ("Branch cuts
for complex elementary functions", 1987), which are C99's and NumPy's.
"""
from __future__ import annotations

import math

from .angles import arc_tangent_of_two
from .complex_numbers import Complex, chosen, log_of_magnitude, product, reciprocal, root, scaled_exp, with_sign
from .division import divided
from .term import Term, absolute, cos, exp, maximum, minimum, select, sin
from .transcendental import asinh as real_asinh
from .transcendental import cosh as real_cosh
from .transcendental import log1p
from .transcendental import sinh as real_sinh

LARGE = 20.0
"""Magnitude above which sinh |a| and cosh |a| are exp(|a|) / 2, for every format."""
FAR = 2.0**60
"""Magnitude beyond which x + 1 is x, for every format."""


def turned(x: Complex) -> Complex:
    """Return i x."""
    return Complex(-x.imag, x.real)


def turned_back(x: Complex) -> Complex:
    """Return -i x."""
    return Complex(x.imag, -x.real)


# ---- hyperbolic, trigonometric -----------------------------------------------------------------------------------
def sinh(x: Complex) -> Complex:
    cosine, sine = cos(x.imag), sin(x.imag)
    far = scaled_exp(absolute(x.real), with_sign(cosine, x.real) * 0.5), scaled_exp(absolute(x.real), sine * 0.5)
    near = real_sinh(limited(x.real)) * cosine, real_cosh(limited(x.real)) * sine
    return with_limits(x, chosen(absolute(x.real) > LARGE, Complex(*far), Complex(*near)))


def cosh(x: Complex) -> Complex:
    cosine, sine = cos(x.imag), sin(x.imag)
    far = scaled_exp(absolute(x.real), cosine * 0.5), scaled_exp(absolute(x.real), with_sign(sine, x.real) * 0.5)
    near = real_cosh(limited(x.real)) * cosine, real_sinh(limited(x.real)) * sine
    found = chosen(absolute(x.real) > LARGE, Complex(*far), Complex(*near))
    is_real = x.real.equals(0) | x.imag.equals(0)
    imag = select(is_real & found.imag.differs(found.imag), with_sign(x.imag.term(0), x.real), found.imag)
    is_infinite = absolute(x.real).equals(math.inf) & found.real.differs(found.real)
    return Complex(select(is_infinite, absolute(x.real), found.real), imag)


def with_limits(x: Complex, found: Complex) -> Complex:
    """Replace NaN where an infinity meets 0 or an undefined angle: a part is 0 on the axes, the real part infinite for infinite
    x."""
    unknown = found.real.differs(found.real)
    infinite = select(absolute(x.real).equals(math.inf), absolute(x.real), found.real)
    return Complex(select(unknown, select(x.real.equals(0), x.real, infinite), found.real),
                   select(x.imag.equals(0) & found.imag.differs(found.imag), x.imag, found.imag))


def limited(a: Term) -> Term:
    return select(absolute(a) > LARGE, a.term(0), a)


def sin_(x: Complex) -> Complex:
    return turned_back(sinh(turned(x)))


def cos_(x: Complex) -> Complex:
    return cosh(turned(x))


def tanh(x: Complex) -> Complex:
    """Return (sinh a cosh a, sin b cos b) / (cos^2 b + sinh^2 a); for large |a|, 1 with the sign of a."""
    a, cosine, sine = limited(x.real), cos(x.imag), sin(x.imag)
    s, c = real_sinh(a), real_cosh(a)
    below = cosine * cosine + s * s
    near = Complex(divided(s * c, below), divided(sine * cosine, below))
    decay = exp(minimum(absolute(x.real), 400.0) * -1)
    rest = sine * decay * cosine * decay * 4
    far = Complex(with_sign(x.real.term(1) + absolute(s) * 0, x.real), select(rest.equals(rest), rest, 0.0))
    found = chosen(absolute(x.real) > LARGE, far, near)
    return Complex(select(x.real.equals(0), x.real, found.real), select(x.imag.equals(0), x.imag, found.imag))


def tan(x: Complex) -> Complex:
    return turned_back(tanh(turned(x)))


# ---- inverses ----------------------------------------------------------------------------------------------------
def one_less(x: Complex) -> Complex:
    return Complex(1 - x.real, -x.imag)


def is_far(x: Complex) -> Term:
    """True if 1 is negligible beside x."""
    return maximum(absolute(x.real), absolute(x.imag)) > FAR


def log_of_double(x: Complex) -> Term:
    return log_of_magnitude(x) + math.log(2)


def arc_sine(x: Complex) -> Complex:
    low, high = root(one_less(x)), root(x.plus(1))
    near = Complex(arc_tangent_of_two(x.real, product(low, high).real), real_asinh(product(low.conjugate(), high).imag))
    far = Complex(arc_tangent_of_two(x.real, absolute(x.imag)), with_sign(log_of_double(x), x.imag))
    return chosen(is_far(x), far, near)


def arc_cosine(x: Complex) -> Complex:
    low, high = root(one_less(x)), root(x.plus(1))
    near = Complex(arc_tangent_of_two(low.real, high.real) * 2, real_asinh(product(high.conjugate(), low).imag))
    far = Complex(arc_tangent_of_two(absolute(x.imag), x.real), -with_sign(log_of_double(x), x.imag))
    return chosen(is_far(x), far, near)


def arc_tangent(x: Complex) -> Complex:
    return turned_back(area_tangent(turned(x)))


def area_sine(x: Complex) -> Complex:
    return turned_back(arc_sine(turned(x)))


def area_cosine(x: Complex) -> Complex:
    low, high = root(x.plus(-1)), root(x.plus(1))
    near = Complex(real_asinh(product(low.conjugate(), high).real), arc_tangent_of_two(low.imag, high.real) * 2)
    return chosen(is_far(x), Complex(log_of_double(x), arc_tangent_of_two(x.imag, x.real)), near)


def area_tangent(x: Complex) -> Complex:
    """Return half the logarithm of (1 + x) / (1 - x). On the cut, the sign of the imaginary part's zero selects the side."""
    a = absolute(x.real)
    below = (1 - a) * (1 - a) + x.imag * x.imag
    real = with_sign(log1p(divided(a * 4, below)) * 0.25, x.real)
    imag = arc_tangent_of_two(x.imag * 2, (1 - a) * (1 + a) - x.imag * x.imag) * 0.5
    inverse = reciprocal(x).real
    inverse = select(inverse.equals(inverse), inverse, with_sign(a.term(0), x.real))
    far = Complex(inverse, with_sign(a.term(math.pi / 2), x.imag))
    return chosen(is_far(x), far, Complex(select(x.real.equals(0), x.real, real), imag))
