"""Numbers brought to the nearest integer, between bounds, or to their sign."""
from __future__ import annotations

import math

from .term import Term, absolute, floor, maximum, minimum, select


def nearest_even(x: Term) -> Term:
    """The nearest integer, ties to the even one. Beside `whole` there is no room for a fraction, so adding it rounds; zeros,
    NaN, and what is an integer already stay as they are."""
    magnitude = absolute(x)
    rounded = (magnitude + x.precision.whole) - x.precision.whole
    has_fraction = (magnitude > 0) & (magnitude < x.precision.whole)
    return select(has_fraction, select(x < 0, -rounded, rounded), x)


def nearest_away(x: Term) -> Term:
    """The nearest integer, ties away from zero."""
    size = absolute(x)
    whole = floor(size)
    rounded = whole + select(size - whole >= 0.5, size.term(1), 0)
    return select(x < 0, -rounded, rounded)


def sign(x: Term) -> Term:
    """-1, 0 or 1; a NaN stays."""
    return select(x > 0, x.term(1), select(x < 0, x.term(-1), x) if x.element.kind != "unsigned" else x)


def clamp(x: Term, least: float, most: float) -> Term:
    """x brought into [least, most]; what TOSA has no clamp for goes through its maximum and minimum."""
    element = x.element
    if element.is_float or (element.kind == "signed" and element.bits < 32):
        most = min(most, element.maximum) if element.is_integer else most
        number = int if element.is_integer else float
        return x.of(x.builder("clamp", x.value, min_val=number(least), max_val=number(most)))
    bounded = maximum(x, least)
    return bounded if most == math.inf else minimum(bounded, most)
