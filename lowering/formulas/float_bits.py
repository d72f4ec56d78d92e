"""Functions of the bits of floats: signs, neighbours, mantissa and exponent, powers of two. For f32 and f64; exact, for zeros,
subnormals, infinities and NaN, too. Signs and neighbours are for half floats, too."""
from __future__ import annotations

import math

from ...runtime.records import dataclass
from ..graph.types import BF16, F16, F32, F64, I16, I32, I64, ElementType
from .bit_patterns import seen_as
from .term import Term, absolute, maximum, minimum, select


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a float in an integer of as many bits: the sign, the exponent plus `bias`, and `fraction` bits."""
    whole: ElementType
    fraction: int
    bias: int

    @property
    def sign(self) -> int:
        """Integer whose sign bit alone is set."""
        return self.whole.minimum

    @property
    def exponents(self) -> int:
        """Mask of the bits of an exponent, shifted to the right."""
        return 2 * self.bias + 1


LAYOUTS = {F16: Layout(I16, 10, 15), BF16: Layout(I16, 7, 127), F32: Layout(I32, 23, 127), F64: Layout(I64, 52, 1023)}


def layout(x: Term) -> Layout:
    return LAYOUTS[x.element]


def bits(x: Term) -> Term:
    """Return the bits as an integer."""
    return x.of(seen_as(x.builder, x.value, layout(x).whole))


def float_of(code: Term, element: ElementType) -> Term:
    """Return the float that has these bits."""
    return code.of(seen_as(code.builder, code.value, element))


# ---- signs -------------------------------------------------------------------------------------------------------
def has_sign(x: Term) -> Term:
    """True if the sign is minus, that of -0 and of a NaN, too."""
    return bits(x) < 0


def with_sign_of(x: Term, y: Term) -> Term:
    """Return the magnitude of x with the sign of y."""
    sign = layout(x).sign
    return float_of((bits(x) & ~sign) | (bits(y) & sign), x.element)


# ---- neighbours --------------------------------------------------------------------------------------------------
def next_after(x: Term, y: Term) -> Term:
    """Return the neighbour of x in the direction of y: the bits of floats, as integers, have the order of the floats."""
    code, sign = bits(x), layout(x).sign
    step = select((y > x) ^ (x < 0), code.term(1), -1)
    from_zero = (bits(y) & sign) | 1
    moved = float_of(select(x.equals(0), from_zero, code + step), x.element)
    return select(x.equals(y), y, select(x.equals(x) & y.equals(y), moved, x + y))


def spacing(x: Term) -> Term:
    """Return the distance to the neighbour further from 0, with the sign of x; for zeros the smallest number. NaN for
    infinities, and infinite for the greatest number, as in NumPy."""
    found = layout(x)
    code = bits(absolute(x))
    exponent = code >> found.fraction
    below = code.term(1) << maximum(exponent - 1, 0)
    unit = select(exponent > found.fraction, (exponent - found.fraction) << found.fraction, below)
    size = float_of(unit, x.element)
    is_last = code.equals((found.exponents << found.fraction) - 1)
    size = select(is_last, x.term(math.inf), size)
    signed = select(x < 0, -size, size)
    return select(absolute(x) < math.inf, signed, x.term(math.nan))


# ---- mantissa and exponent ---------------------------------------------------------------------------------------
def power_of_two(exponent: Term, element: ElementType) -> Term:
    """Return 2**exponent for exponents of normal numbers, integers of the float's width."""
    found = LAYOUTS[element]
    return float_of((exponent + found.bias) << found.fraction, element)


def mantissa_and_exponent(x: Term) -> tuple[Term, Term]:
    """Return m and e with x = m * 2**e and |m| in [1/2, 1), e an integer of the float's width; for zeros, infinities and
    NaN, return x and 0."""
    found = layout(x)
    is_subnormal = absolute(x) < 2.0 ** (1 - found.bias)
    normal = select(is_subnormal, x * 2.0 ** (found.fraction + 1), x)
    code = bits(normal)
    exponent = ((code >> found.fraction) & found.exponents) - (found.bias - 1)
    exponent = select(is_subnormal, exponent - (found.fraction + 1), exponent)
    mantissa = float_of((code & ~(found.exponents << found.fraction)) | ((found.bias - 1) << found.fraction), x.element)
    is_usual = (absolute(x) > 0) & (absolute(x) < math.inf)
    return select(is_usual, mantissa, x), select(is_usual, exponent, 0)


def scaled_by_power(x: Term, exponent: Term) -> Term:
    """Return x * 2**exponent, rounded once, for any integer of the float's width."""
    found = layout(x)
    mantissa, own = mantissa_and_exponent(x)
    most = 4 * found.bias
    total = own + minimum(maximum(exponent, -most), most) - 1
    half = found.bias // 2
    low = maximum(total, -(found.bias - 1) - half)
    is_low = low < -half
    factor = power_of_two(select(is_low, low + half, minimum(low, found.bias)), x.element)
    factor = select(low > found.bias, x.term(math.inf), factor)
    scaled = (mantissa + mantissa) * factor * select(is_low, x.term(2.0 ** -half), 1)
    return select((absolute(x) > 0) & (absolute(x) < math.inf), scaled, x)


# ---- whole parts -------------------------------------------------------------------------------------------------
def truncated(x: Term) -> Term:
    """Return x rounded toward zero; -0.5 becomes -0."""
    return x.of(x.builder.truncated(x.value))


def fraction_and_whole(x: Term) -> tuple[Term, Term]:
    """Return the fractional part and the integral part of x, both with the sign of x."""
    whole = truncated(x)
    rest = select(absolute(x).equals(math.inf), x.term(0), x - whole)
    return with_sign_of(rest, x), with_sign_of(whole, x)
