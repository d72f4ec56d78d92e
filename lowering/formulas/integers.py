"""Functions of integers: unsigned division, division by 0, shifts by any amount, set bits, order of unsigned numbers.

Unsigned numbers are computed in i64 (`working_types`): it holds the values of 32 bits, and the bits of 64 bits; functions that
depend on the size of a number flip the highest bit first.
"""
from __future__ import annotations

from .division import floored_quotient, floored_remainder, integer_remainder
from .term import Function, Term, select


# ---- bits as a number without sign -------------------------------------------------------------------------------
def as_ordered(x: Term) -> Term:
    """Return an integer whose order is that of the bits of x as an unsigned number."""
    return x ^ x.element.minimum


def by_order(choice: Function) -> Function:
    """Return a choice between numbers, or a comparison, for unsigned bits."""
    def of_bits(*given: Term) -> Term:
        found = choice(*map(as_ordered, given))
        return as_ordered(found) if found.element == given[0].element else found
    return of_bits


def unsigned_quotient(x: Term, y: Term) -> Term:
    """Return x / y of unsigned bits, 0 where y is 0. Half of x fits a signed number: twice its quotient is at most 1 too
    small."""
    half = x.apply_bits("logical_right_shift", 1)
    near = half.apply("intdiv", y) << 1
    rest = x - near * y
    fits = ~(as_ordered(rest) < as_ordered(y))
    small = select(fits, near + 1, near)
    large = select(~(as_ordered(x) < as_ordered(y)), x.term(1), 0)
    return select(y < 0, large, select(y.equals(0), x.term(0), small))


def unsigned_remainder(x: Term, y: Term) -> Term:
    return select(y.equals(0), x.term(0), x - unsigned_quotient(x, y) * y)


# ---- division ----------------------------------------------------------------------------------------------------
def unless_zero(function: Function) -> Function:
    """Return a quotient or a remainder that is 0 for a divisor of 0, as in NumPy."""
    def checked(x: Term, y: Term) -> Term:
        if y.value.constant is not None and (y.value.constant != 0).all():
            return function(x, y)
        return select(y.equals(0), x.term(0), function(x, y))
    return checked


quotient_down, remainder_up, remainder_toward_zero = map(
    unless_zero, (floored_quotient, floored_remainder, integer_remainder))


def truncated_inverse(x: Term) -> Term:
    """Return 1 / x without its fraction: 1 and -1 for themselves, 0 for all others."""
    return select(x.equals(1) | x.equals(-1), x, 0)


# ---- shifts ------------------------------------------------------------------------------------------------------
def shifted_left(width: int) -> Function:
    """Return x << y for numbers of `width` bits: 0 where y is not in [0, width)."""
    def shifted(x: Term, y: Term) -> Term:
        return select(is_amount(y, width), x << inside(y, width), 0)
    return shifted


def shifted_right(width: int, signed: bool) -> Function:
    """Return x >> y: where y is not in [0, width), 0, or -1 for a negative signed number."""
    def shifted(x: Term, y: Term) -> Term:
        is_known, amount = is_amount(y, width), inside(y, width)
        if signed:
            return select(is_known, x >> amount, select(x < 0, x.term(-1), 0))
        return select(is_known, x.apply_bits("logical_right_shift", amount), x.term(0))
    return shifted


def is_amount(y: Term, width: int) -> Term:
    return (y >= 0) & (y < width)


def inside(y: Term, width: int) -> Term:
    return y & (width - 1)


# ---- bits that are set -------------------------------------------------------------------------------------------
def count_of_bits(x: Term) -> Term:
    """Return the number of set bits: first of pairs, then of groups of four and of eight, which a product adds."""
    is_long = x.element.bits == 64
    byte = 0x0101010101010101 if is_long else 0x01010101
    width = 64 if is_long else 32
    pairs = x - (x.apply_bits("logical_right_shift", 1) & (byte * 0x55))
    fours = (pairs & (byte * 0x33)) + (pairs.apply_bits("logical_right_shift", 2) & (byte * 0x33))
    eights = (fours + fours.apply_bits("logical_right_shift", 4)) & (byte * 0x0F)
    return (eights * byte).apply_bits("logical_right_shift", width - 8)
