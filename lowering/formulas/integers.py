"""Integers: division without sign and by 0, shifts by any amount, bits that are set, order of numbers without sign.

Numbers without sign are computed in i64 (`working_types`): those of 32 bits lie in it as they are, of 64 bits their bits do,
and what looks at their size turns the highest bit around first.
"""
from __future__ import annotations

from .division import floored_quotient, floored_remainder, integer_remainder
from .term import Function, Term, select


# ---- bits as a number without sign -------------------------------------------------------------------------------
def as_ordered(x: Term) -> Term:
    """An integer whose order is that of the bits of x as a number without sign."""
    return x ^ x.element.minimum


def by_order(choice: Function) -> Function:
    """A choice between numbers, or a comparison, of bits without sign."""
    def of_bits(*given: Term) -> Term:
        found = choice(*map(as_ordered, given))
        return as_ordered(found) if found.element == given[0].element else found
    return of_bits


def unsigned_quotient(x: Term, y: Term) -> Term:
    """x / y of bits without sign, 0 where y is 0. Half of x has a sign's room: twice its quotient is one too small at most."""
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
    """A quotient or a remainder, which is 0 for a divisor that is 0, as NumPy has it."""
    def checked(x: Term, y: Term) -> Term:
        if y.value.constant is not None and (y.value.constant != 0).all():
            return function(x, y)
        return select(y.equals(0), x.term(0), function(x, y))
    return checked


quotient_down, remainder_up, remainder_toward_zero = map(
    unless_zero, (floored_quotient, floored_remainder, integer_remainder))


def truncated_inverse(x: Term) -> Term:
    """1 / x without its fraction: 1 and -1 are their own, all others have 0."""
    return select(x.equals(1) | x.equals(-1), x, 0)


# ---- shifts ------------------------------------------------------------------------------------------------------
def shifted_left(width: int) -> Function:
    """x << y for numbers of that many bits: 0 where y is no number below the width."""
    def shifted(x: Term, y: Term) -> Term:
        return select(is_amount(y, width), x << inside(y, width), 0)
    return shifted


def shifted_right(width: int, signed: bool) -> Function:
    """x >> y: 0, or -1 for a negative number with a sign, where y is no number below the width."""
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
    """How many bits are set: of pairs, of groups of four and of eight, which a product adds."""
    is_long = x.element.bits == 64
    byte = 0x0101010101010101 if is_long else 0x01010101
    width = 64 if is_long else 32
    pairs = x - (x.apply_bits("logical_right_shift", 1) & (byte * 0x55))
    fours = (pairs & (byte * 0x33)) + (pairs.apply_bits("logical_right_shift", 2) & (byte * 0x33))
    eights = (fours + fours.apply_bits("logical_right_shift", 4)) & (byte * 0x0F)
    return (eights * byte).apply_bits("logical_right_shift", width - 8)
