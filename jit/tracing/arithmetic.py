"""Elementwise functions of traced tensors with NumPy's names and NumPy's meaning: operands are brought to one rank and one type
here, the formulas in TOSA's operators are `lowering/formulas`.

The operators themselves, without any of this, are in `tosaic.tosa`.
"""
from __future__ import annotations

from operator import add as plus
from operator import and_, ge, gt, le, lshift, lt, mul, neg, or_, rshift, sub, xor
from operator import invert as inverted
from typing import Any

from ...lowering.formulas import rounding
from ...lowering.formulas import term as terms
from ...lowering.formulas.division import floored_float, floored_quotient, floored_remainder
from ...lowering.formulas.term import Function, Term, product_of_squares, reciprocal, select
from ...lowering.formulas.tosa_builder import is_narrow
from ...lowering.graph.types import I1, I32
from .conversion import broadcast, element_type, operands, tensor
from .tensor import Tensor
from .trace import problem, recorded

LARGEST_EXPONENT = 64
"""The greatest whole exponent that is written as products, at most twelve of them."""


def of(formula: Function, *values: Any, operator: str) -> Tensor:
    """A formula of operands that broadcast, and are of one type."""
    return recorded(formula, *operands(*values, operator=operator))


def in_i32(formula: Function) -> Function:
    """A formula of integers, of which narrow ones go through i32 and come back."""
    def wide(*given: Term) -> Term:
        element = given[0].element
        return formula(*(x.cast(I32) for x in given)).cast(element) if is_narrow(element) else formula(*given)
    return wide


def astype(x: Any, dtype: Any) -> Tensor:
    """`x` converted; floats become integers by dropping the fraction, and anything but 0 is true."""
    x, element = tensor(x), element_type(dtype)
    return recorded(lambda t: t.cast(element), x)


def add(a: Any, b: Any) -> Tensor:
    return of(plus, a, b, operator="add")


def subtract(a: Any, b: Any) -> Tensor:
    return of(sub, a, b, operator="sub")


def multiply(a: Any, b: Any) -> Tensor:
    return of(mul, a, b, operator="multiply")


def divide(a: Any, b: Any) -> Tensor:
    """a times the reciprocal of b; integers are converted to f32 first, as a true division has it."""
    def quotient(x: Term, y: Term) -> Term:
        return terms.in_float(x) / terms.in_float(y)
    return of(quotient, a, b, operator="divide")


def floor_divide(a: Any, b: Any) -> Tensor:
    """The quotient rounded down. Integer division by 0 gives an unspecified value."""
    def quotient(x: Term, y: Term) -> Term:
        return floored_float(x, y)[0] if x.element.is_float else in_i32(floored_quotient)(x, y)
    return of(quotient, a, b, operator="floor_divide")


def remainder(a: Any, b: Any) -> Tensor:
    """What floor division leaves; it has the sign of b."""
    def rest(x: Term, y: Term) -> Term:
        return floored_float(x, y)[1] if x.element.is_float else in_i32(floored_remainder)(x, y)
    return of(rest, a, b, operator="remainder")


def power(a: Any, b: Any) -> Tensor:
    """a to the b. A whole number as exponent multiplies; otherwise a must be a positive float (or 0, for b > 0)."""
    if isinstance(b, int | float) and not isinstance(b, bool) and float(b).is_integer() and abs(b) <= LARGEST_EXPONENT:
        x, exponent = tensor(a), int(b)
        if b >= 0 and not (isinstance(b, float) and not x.element.is_float):
            return recorded(lambda t: product_of_squares(t, exponent), x)
        if x.element.is_float:
            return recorded(lambda t: reciprocal(product_of_squares(t, -exponent)), x)
    x, y = operands(a, b, operator="power")
    if not x.element.is_float:
        raise problem(f"power of {x.type}: an integer needs a whole number from 0 to {LARGEST_EXPONENT} as exponent",
                      help="convert it first: x.astype('f32')")
    return recorded(lambda t, u: t.apply("pow", u), x, y)


def negative(x: Any) -> Tensor:
    return recorded(neg, tensor(x))


def absolute(x: Any) -> Tensor:
    return of(terms.absolute, x, operator="abs")


def sign(x: Any) -> Tensor:
    """-1, 0 or 1; a NaN stays."""
    return recorded(rounding.sign, tensor(x))


def maximum(a: Any, b: Any) -> Tensor:
    return of(terms.maximum, a, b, operator="maximum")


def minimum(a: Any, b: Any) -> Tensor:
    return of(terms.minimum, a, b, operator="minimum")


def fmax(a: Any, b: Any) -> Tensor:
    """The greater one; a NaN gives the other."""
    return of(lambda x, y: x.apply("maximum", y, nan_mode="IGNORE"), a, b, operator="maximum")


def fmin(a: Any, b: Any) -> Tensor:
    """The lesser one; a NaN gives the other."""
    return of(lambda x, y: x.apply("minimum", y, nan_mode="IGNORE"), a, b, operator="minimum")


def clip(x: Any, low: Any = None, high: Any = None) -> Tensor:
    """`x` brought between two bounds, either of which may be missing."""
    x = tensor(x)
    is_known = isinstance(low, int | float) and isinstance(high, int | float)
    if is_known and (x.element.is_float or is_narrow(x.element)):
        for bound in (low, high):
            tensor(bound, x.element)
        return recorded(lambda t: rounding.clamp(t, low, high), x)
    x = x if low is None else maximum(x, low)
    return x if high is None else minimum(x, high)


def equal(a: Any, b: Any) -> Tensor:
    return of(Term.equals, a, b, operator="equal")


def not_equal(a: Any, b: Any) -> Tensor:
    return of(Term.differs, a, b, operator="not_equal")


def greater(a: Any, b: Any) -> Tensor:
    return of(gt, a, b, operator="greater")


def greater_equal(a: Any, b: Any) -> Tensor:
    return of(ge, a, b, operator="greater_equal")


def less(a: Any, b: Any) -> Tensor:
    return of(lt, a, b, operator="less")


def less_equal(a: Any, b: Any) -> Tensor:
    return of(le, a, b, operator="less_equal")


def logical(formula: Function, name: str, *values: Any) -> Tensor:
    return of(formula, *(astype(v, I1) for v in values), operator=f"logical_{name}")


def logical_and(a: Any, b: Any) -> Tensor:
    return logical(and_, "and", a, b)


def logical_or(a: Any, b: Any) -> Tensor:
    return logical(or_, "or", a, b)


def logical_xor(a: Any, b: Any) -> Tensor:
    return logical(xor, "xor", a, b)


def logical_not(x: Any) -> Tensor:
    return logical(inverted, "not", x)


def bitwise_and(a: Any, b: Any) -> Tensor:
    return of(and_, a, b, operator="bitwise_and")


def bitwise_or(a: Any, b: Any) -> Tensor:
    return of(or_, a, b, operator="bitwise_or")


def bitwise_xor(a: Any, b: Any) -> Tensor:
    return of(xor, a, b, operator="bitwise_xor")


def invert(x: Any) -> Tensor:
    return of(inverted, x, operator="bitwise_not")


def left_shift(a: Any, b: Any) -> Tensor:
    return of(lshift, a, b, operator="left_shift")


def right_shift(a: Any, b: Any) -> Tensor:
    """Shifted right; the sign stays."""
    return of(rshift, a, b, operator="right_shift")


def where(condition: Any, a: Any, b: Any) -> Tensor:
    """a where the condition is true, else b."""
    x, y = operands(a, b, operator="where")
    chosen = astype(tensor(condition, I1), I1)
    broadcast(chosen.shape, x.shape, y.shape, operator="where")
    return recorded(select, chosen, x, y)


__all__ = ["absolute", "add", "astype", "bitwise_and", "bitwise_or", "bitwise_xor", "clip", "divide", "equal",
           "floor_divide", "fmax", "fmin", "greater", "greater_equal", "invert", "left_shift", "less", "less_equal",
           "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
           "not_equal", "power", "remainder", "right_shift", "sign", "subtract", "where"]
