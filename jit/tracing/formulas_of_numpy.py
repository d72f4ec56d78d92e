"""NumPy's elementwise functions as formulas of TOSA's operators, by the kind of their operands: bools, integers, floats.

Each is a function of terms (`lowering/formulas`) of one type; it returns a term or a pair of terms. Narrow integers and half
floats are computed in i32 and f32 and rounded once at the end, unless a formula is a single operator, which takes them
unchanged. Unsigned integers have formulas of their own only where the sign of an i64 would matter.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import add, and_, ge, gt, invert, le, lt, mul, neg, or_, sub, xor
from typing import Any

import numpy as np

from ...lowering.formulas import integers, logarithms, rounding, transcendental
from ...lowering.formulas import term as terms
from ...lowering.formulas.angles import arc_cosine, arc_sine, arc_tangent, arc_tangent_of_two
from ...lowering.formulas.division import divided, float_remainder, is_below, is_power_of_two, square_root
from ...lowering.formulas.float_bits import (
    bits,
    float_of,
    fraction_and_whole,
    has_sign,
    layout,
    mantissa_and_exponent,
    next_after,
    scaled_by_power,
    spacing,
    truncated,
    with_sign_of,
)
from ...lowering.formulas.powers import float_power
from ...lowering.formulas.term import Term, reciprocal, select
from ...lowering.formulas.working_types import working_type
from ...lowering.graph.types import I1, ElementType

Formula = Callable[..., Any]
"""A function from terms to a term or a pair of terms."""


@dataclass(frozen=True, slots=True)
class Formulas:
    """The formulas of one function for each kind of operands; None for kinds that NumPy's types never lead to. `long` is for
    unsigned 64-bit integers where i64 would differ; `is_operator` is True if the formula takes narrow types unchanged."""
    floats: Formula | None = None
    integers: Formula | None = None
    bools: Formula | None = None
    long: Formula | None = None
    unsigned: Formula | None = None
    is_operator: bool = False

    def of(self, element: ElementType) -> Formula | None:
        if element.is_float:
            return self.floats
        if element == I1:
            return self.bools
        if element.kind == "unsigned":
            return (self.long if element.bits == 64 else None) or self.unsigned or self.integers
        return self.integers

    def working(self, element: ElementType) -> ElementType:
        """Return the type that the formula computes in."""
        is_narrow_float = element.is_float and element.bits == 8
        if element == I1 or (self.is_operator and not is_narrow_float and (element.kind != "unsigned" or element.bits < 32)):
            return element
        return working_type(element, integers=True, floats=True)


# ---- formulas used only here -------------------------------------------------------------------------------------
def same(x: Term) -> Term:
    return x


def always(answer: bool) -> Formula:
    """Return a formula with the same result for every element."""
    def answered(x: Term) -> Term:
        one = x.of(x.builder.constant(np.full((1,) * x.value.tensor.rank, answer)))
        return one.broadcast_to(x.value.tensor.dims)
    return answered


def quotient_and_rest(x: Term, y: Term) -> tuple[Term, Term]:
    """Return the quotient rounded down and its remainder, with the sign of y, as in NumPy and Python, from the remainder of a
    division toward zero. Zeros have the sign that a quotient, or y, would have."""
    rest = float_remainder(x, y)
    is_other = is_below(rest, y)
    multiple = divided(x - rest, y)
    multiple = select(is_other, multiple - 1, multiple)
    whole = terms.floor(multiple)
    whole = select(multiple - whole > 0.5, whole + 1, whole)
    whole = select(multiple.equals(0), zero_of_quotient(x, y), whole)
    rest = select(is_other, rest + y, select(rest.equals(0), with_sign_of(rest, y), rest))
    return select(y.equals(0), divided(x, y), whole), rest


def zero_of_quotient(x: Term, y: Term) -> Term:
    """Return 0 with the sign of x / y."""
    return float_of((bits(x) ^ bits(y)) & layout(x).sign, x.element)


def quotient(x: Term, y: Term) -> Term:
    """Round the quotient to nearest; zeros keep their sign, which the correction of a quotient loses."""
    found = divided(x, y)
    return found if is_power_of_two(y) else select(found.equals(0), zero_of_quotient(x, y), found)


def toward_zero(x: Term, y: Term) -> Term:
    """Return the remainder with the sign of x, also where it is 0."""
    rest = float_remainder(x, y)
    return select(rest.equals(0), with_sign_of(rest, x), rest)


def both(first: Formula, second: Formula) -> Formula:
    return lambda x, y: (first(x, y), second(x, y))


def step(x: Term, at_zero: Term) -> Term:
    """Return 0 below 0, 1 above 0, and the second operand at 0; a NaN stays."""
    return select(x.equals(0), at_zero, select(x > 0, x.term(1), select(x < 0, x.term(0), x)))


def number_of(x: Term, y: Term, name: str) -> Term:
    """Return the greater or the lesser operand; if one is NaN, the other one."""
    return x.apply(name, y, nan_mode="IGNORE")


def compared(compare: Formula, bools: Formula) -> Formulas:
    return Formulas(compare, compare, bools, long=integers.by_order(compare), is_operator=True)


def logical(of_bools: Formula) -> Formulas:
    """Extend a formula of bools to numbers, of which all but 0 are true."""
    def of_numbers(*given: Term) -> Term:
        found: Term = of_bools(*(x.cast(I1) for x in given))
        return found
    return Formulas(of_numbers, of_numbers, of_bools, is_operator=True)


def of_bits(function: Formula) -> Formulas:
    return Formulas(integers=function, bools=function, is_operator=True)


def of_floats(function: Formula) -> Formulas:
    return Formulas(floats=function)


def operator(function: Formula) -> Formulas:
    """Return the formulas of a single TOSA operator, which also takes half floats."""
    return Formulas(floats=function, is_operator=True)


def whole(function: Formula) -> Formulas:
    """Return the formulas of a rounding: integers and bools are whole already."""
    return Formulas(floats=function, integers=same, bools=same)


def asked(floats: Formula, others: bool) -> Formulas:
    """Return the formulas of a test of floats, which has one result for all integers."""
    return Formulas(floats=floats, integers=always(others), bools=always(others))


def extreme(floats: Formula, others: Formula, bools: Formula) -> Formulas:
    return Formulas(floats, others, bools, long=integers.by_order(others), is_operator=True)


def scaled(factor: float) -> Formulas:
    return of_floats(lambda x: x * factor)


FORMULAS: dict[str, Formulas] = {
    # sums, products, quotients
    "add": Formulas(add, add, or_, is_operator=True),
    "subtract": Formulas(sub, sub, is_operator=True),
    "multiply": Formulas(mul, mul, and_, is_operator=True),
    "divide": of_floats(quotient),
    "floor_divide": Formulas(lambda x, y: quotient_and_rest(x, y)[0], integers.quotient_down, long=integers.unsigned_quotient),
    "remainder": Formulas(lambda x, y: quotient_and_rest(x, y)[1], integers.remainder_up, long=integers.unsigned_remainder),
    "divmod": Formulas(quotient_and_rest, both(integers.quotient_down, integers.remainder_up),
                       long=both(integers.unsigned_quotient, integers.unsigned_remainder)),
    "fmod": Formulas(toward_zero, integers.remainder_toward_zero, long=integers.unsigned_remainder),
    "power": of_floats(float_power), "float_power": of_floats(float_power),
    "negative": Formulas(neg, neg, is_operator=True),
    "positive": Formulas(same, same, is_operator=True),
    "absolute": Formulas(terms.absolute, terms.absolute, same, unsigned=same, is_operator=True),
    "fabs": operator(terms.absolute),
    "sign": Formulas(lambda x: rounding.sign(x) + 0.0, rounding.sign,
                     unsigned=lambda x: select(x.equals(0), x.term(0), 1), is_operator=True),
    "square": Formulas(lambda x: x * x, lambda x: x * x, is_operator=True),
    "reciprocal": Formulas(reciprocal, integers.truncated_inverse, unsigned=lambda x: select(x.equals(1), x, 0)),
    "conjugate": Formulas(same, same, same, is_operator=True),
    "heaviside": of_floats(step),
    # extremes, comparisons
    "maximum": extreme(terms.maximum, terms.maximum, or_),
    "minimum": extreme(terms.minimum, terms.minimum, and_),
    "fmax": extreme(lambda x, y: number_of(x, y, "maximum"), terms.maximum, or_),
    "fmin": extreme(lambda x, y: number_of(x, y, "minimum"), terms.minimum, and_),
    "equal": Formulas(Term.equals, Term.equals, Term.equals, is_operator=True),
    "not_equal": Formulas(Term.differs, Term.differs, Term.differs, is_operator=True),
    "greater": compared(gt, lambda x, y: x & ~y),
    "greater_equal": compared(ge, lambda x, y: x | ~y),
    "less": compared(lt, lambda x, y: ~x & y),
    "less_equal": compared(le, lambda x, y: ~x | y),
    # logic and bits
    "logical_and": logical(and_), "logical_or": logical(or_), "logical_xor": logical(xor), "logical_not": logical(invert),
    "bitwise_and": of_bits(and_), "bitwise_or": of_bits(or_), "bitwise_xor": of_bits(xor), "invert": of_bits(invert),
    "bitwise_count": Formulas(integers=lambda x: integers.count_of_bits(terms.absolute(x)), unsigned=integers.count_of_bits),
    # exponentials, logarithms, powers
    "exp": operator(terms.exp), "log": operator(terms.log),
    "exp2": of_floats(logarithms.exp2), "log2": of_floats(logarithms.log2), "log10": of_floats(logarithms.log10),
    "expm1": of_floats(transcendental.expm1), "log1p": of_floats(transcendental.log1p),
    "logaddexp": of_floats(logarithms.log_add_exp), "logaddexp2": of_floats(logarithms.log_add_exp2),
    "sqrt": of_floats(square_root), "cbrt": of_floats(logarithms.cubic_root), "hypot": of_floats(logarithms.hypotenuse),
    # angles
    "sin": operator(terms.sin), "cos": operator(terms.cos), "tan": of_floats(transcendental.tan),
    "arcsin": of_floats(arc_sine), "arccos": of_floats(arc_cosine), "arctan": of_floats(arc_tangent),
    "arctan2": of_floats(arc_tangent_of_two),
    "sinh": of_floats(transcendental.sinh), "cosh": of_floats(transcendental.cosh), "tanh": operator(terms.tanh),
    "arcsinh": of_floats(transcendental.asinh), "arccosh": of_floats(transcendental.acosh),
    "arctanh": of_floats(transcendental.atanh),
    "degrees": scaled(180 / math.pi), "radians": scaled(math.pi / 180),
    "rad2deg": scaled(180 / math.pi), "deg2rad": scaled(math.pi / 180),
    # roundings, questions, bits of floats
    "floor": whole(terms.floor), "ceil": whole(terms.ceil), "trunc": whole(truncated), "rint": of_floats(rounding.nearest_even),
    "isnan": asked(lambda x: x.differs(x), False), "isinf": asked(lambda x: terms.absolute(x).equals(math.inf), False),
    "isfinite": asked(lambda x: terms.absolute(x) < math.inf, True),
    "signbit": of_floats(has_sign), "copysign": of_floats(with_sign_of), "nextafter": operator(next_after),
    "spacing": operator(spacing), "modf": of_floats(fraction_and_whole), "frexp": of_floats(mantissa_and_exponent),
    "ldexp": of_floats(scaled_by_power),
}
"""Formulas by NumPy function name. Missing here: powers of integers and shifts, which depend on more than a kind; gcd and lcm,
which are loops; matmul, vecdot, matvec and vecmat, which use more than one element; and isnat, as no tensor holds dates."""
