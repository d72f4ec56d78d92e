"""Powers: of floats by TOSA's `pow`, which is defined for bases above 0, and of integers by products."""
from __future__ import annotations

import math

import numpy as np

from ...runtime.errors import Problem
from ..graph.graph import Value
from ..graph.types import I32
from .division import square_root
from .term import Term, absolute, floor, product_of_squares, reciprocal, select
from .tosa_builder import TosaBuilder, is_narrow
from .working_types import evaluated

MOST_PRODUCTS = 8
"""An exponent that is known and no greater than this is as many factors: at most four ulp off."""


def one_value(y: Value) -> float | None:
    """The finite number that all elements of a constant are."""
    if y.constant is None or not y.constant.size:
        return None
    wide = y.constant.astype(np.float64).reshape(-1)
    return float(wide[0]) if np.isfinite(wide[0]) and np.all(wide == wide[0]) else None


# ---- floats ------------------------------------------------------------------------------------------------------
def real_power(e: TosaBuilder, x: Value, y: Value) -> Value:
    exponent = one_value(y)
    if exponent is not None and exponent == int(exponent) and abs(exponent) <= MOST_PRODUCTS:
        return evaluated(lambda a: product_power(a, int(exponent)), e, [x])
    return evaluated(root, e, [x]) if exponent == 0.5 else evaluated(float_power, e, [x, y])


def root(x: Term) -> Term:
    """x to the power 1/2, which has no sign and at minus infinity is infinite."""
    return select(x.equals(-math.inf), x.term(math.inf), square_root(x + 0.0))


def product_power(x: Term, exponent: int) -> Term:
    """x**exponent; of a negative one the reciprocal's, so that nothing overflows before its time."""
    base = reciprocal(x) if exponent < 0 else x
    return product_of_squares(base, abs(exponent))


def float_power(x: Term, y: Term) -> Term:
    """|x|**y, with a minus where x has one and y is odd; a negative number has no power that is not whole."""
    a, half = absolute(x), y * 0.5
    magnitude = a.apply("pow", y)
    is_whole, is_even = floor(y).equals(y), floor(half).equals(half)
    is_undefined = (a > 0) & (a < math.inf) & ~is_whole
    negative = select(is_whole & ~is_even, -magnitude, select(is_undefined, x.term(math.nan), magnitude))
    return select(is_negative(x), negative, magnitude)


def is_negative(x: Term) -> Term:
    """True if the sign is minus, that of -0, too."""
    return select(x.equals(0), reciprocal(x), x) < 0


# ---- integers ----------------------------------------------------------------------------------------------------
def integer_power(e: TosaBuilder, x: Value, y: Value) -> Value:
    """Wrapping products. Exponents must not be negative: those that are known are checked, as TensorFlow does it."""
    element, working = x.tensor.element, I32 if is_narrow(x.tensor.element) else x.tensor.element
    digits = element.bits - (element.kind == "signed")
    if y.constant is not None and y.constant.size:
        least, most = int(y.constant.min()), int(y.constant.max())
        if least < 0:
            raise Problem("an integer has no power with a negative exponent", kind="argument", help="convert it to a float")
        if least == most:
            return e.cast(product_of_squares(Term(e, e.cast(x, working)), most).value, element)
        digits = most.bit_length()
    a, b = (Term(e, v) for v in e.same_rank(e.cast(x, working), e.cast(y, working)))
    return e.cast(power_by_digits(a, b, digits).value, element)


def power_by_digits(base: Term, exponent: Term, digits: int) -> Term:
    """The squares of the base that the binary digits of the exponent name, multiplied."""
    found = base.term(1)
    for digit in range(digits):
        mask = exponent.element.minimum if digit == exponent.element.bits - 1 else 1 << digit
        is_set = ~exponent.apply("bitwise_and", mask).equals(0)
        found = select(is_set, found * base, found)
        base = base * base
    return found
