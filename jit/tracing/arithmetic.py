"""Elementwise functions of traced tensors with NumPy's names and NumPy's meaning: sums, products, powers, extremes,
comparisons, logic, the choice between two, conversions.

Their formulas in TOSA's operators are in `formulas_of_numpy`; the operators themselves, without any of this, in `tosaic.tosa`.
"""
from __future__ import annotations

from typing import Any

from ...lowering.formulas import rounding
from ...lowering.formulas.powers import integer_power, power_by_digits, real_power
from ...lowering.formulas.term import Term, product_of_squares, select
from ...lowering.formulas.term import reciprocal as inverse
from ...lowering.formulas.tosa_builder import is_narrow
from ...lowering.formulas.working_types import working_type
from ...lowering.graph.types import I1
from .conversion import broadcast, converted, element_type, operands, tensor
from .elementwise import checked_loop, elementwise, recorded_as, results
from .refusals import refusal
from .tensor import Tensor
from .trace import recorded

LARGEST_EXPONENT = 64
"""Maximum magnitude of a whole exponent that is expanded into products, at most twelve of them."""


def astype(x: Any, dtype: Any) -> Tensor:
    """Convert `x` to `dtype`. Floats become integers by dropping the fraction; anything but 0 is true."""
    x, element = tensor(x), element_type(dtype)
    return recorded(lambda t: t.cast(element), x)


def add(a: Any, b: Any) -> Tensor:
    """a + b; the logical or for bools."""
    return elementwise("add", a, b)


def subtract(a: Any, b: Any) -> Tensor:
    """a - b."""
    return elementwise("subtract", a, b)


def multiply(a: Any, b: Any) -> Tensor:
    """a times b; the logical and for bools."""
    return elementwise("multiply", a, b)


def divide(a: Any, b: Any) -> Tensor:
    """The quotient in floats, rounded to nearest except for an ulp near the ends of the range; integers become f32 first."""
    return elementwise("divide", a, b)


def floor_divide(a: Any, b: Any) -> Tensor:
    """The quotient rounded down. Integer division by 0 gives 0."""
    return elementwise("floor_divide", a, b)


def remainder(a: Any, b: Any) -> Tensor:
    """The remainder of floor division, with the sign of b. Exact for quotients up to 2**31 in f32, 2**69 in f64; 0 beyond
    these."""
    return elementwise("remainder", a, b)


def fmod(a: Any, b: Any) -> Tensor:
    """The remainder of division toward zero, with the sign of a and the limits of `remainder`."""
    return elementwise("fmod", a, b)


def float_power(a: Any, b: Any) -> Tensor:
    """a to the b, in floats."""
    return elementwise("float_power", a, b)


def negative(x: Any) -> Tensor:
    """-x; integers wrap."""
    return elementwise("negative", x)


def positive(x: Any) -> Tensor:
    """x itself."""
    return elementwise("positive", x)


def absolute(x: Any) -> Tensor:
    """The magnitude; the least integer is unchanged."""
    return elementwise("absolute", x)


def fabs(x: Any) -> Tensor:
    """The magnitude, in floats."""
    return elementwise("fabs", x)


def sign(x: Any) -> Tensor:
    """-1, 0 or 1; NaN for NaN."""
    return elementwise("sign", x)


def square(x: Any) -> Tensor:
    """x times x."""
    return elementwise("square", x)


def reciprocal(x: Any) -> Tensor:
    """1 / x; for integers without the fraction, and 0 for 0."""
    return elementwise("reciprocal", x)


def conjugate(x: Any) -> Tensor:
    """x itself, as it is real."""
    return elementwise("conjugate", x)


def real(x: Any) -> Tensor:
    """x itself, as it is real."""
    return tensor(x)


def imag(x: Any) -> Tensor:
    """Zeros, as x is real."""
    return recorded(lambda t: t.term(0).broadcast_to(t.value.tensor.dims), tensor(x))


def heaviside(a: Any, b: Any) -> Tensor:
    """0 where a is below 0, 1 where it is above, b where it is 0."""
    return elementwise("heaviside", a, b)


def divmod(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """`floor_divide` and `remainder`."""
    quotient, rest = results("divmod", a, b)
    return quotient, rest


def power(a: Any, b: Any) -> Tensor:
    """a to the b. Expand a whole exponent into products. An integer base needs an exponent that is not negative: a known
    negative exponent is a Problem, any other gives an unspecified value."""
    if isinstance(b, int | float) and not isinstance(b, bool) and float(b).is_integer() and abs(b) <= LARGEST_EXPONENT:
        x, exponent = tensor(a), int(b)
        if x.element.is_float:
            return recorded(lambda t: known_power(t, exponent), x)
    given = operands(a, b, operator="power")
    (element, _), outputs = checked_loop("power", given)
    formula = real_power if element.is_float else integer_power
    is_unknown = given[1].value.constant is None
    working = working_type(element, integers=True, floats=True) if element.kind == "unsigned" else element

    def of_terms(x: Term, y: Term) -> Term:
        if element.kind == "unsigned" and is_unknown:
            return power_by_digits(x, y, element.bits)
        return x.of(formula(x.builder, x.value, y.value))
    dims = broadcast(*(x.shape for x in given), operator="power")
    found, = recorded_as(of_terms, [converted(x, working) for x in given], outputs)
    return recorded(lambda t: t.broadcast_to(dims), found)


def known_power(x: Term, exponent: int) -> Term:
    return product_of_squares(x, exponent) if exponent >= 0 else inverse(product_of_squares(x, -exponent))


def maximum(a: Any, b: Any) -> Tensor:
    """The greater operand; NaN if either is NaN."""
    return elementwise("maximum", a, b)


def minimum(a: Any, b: Any) -> Tensor:
    """The lesser operand; NaN if either is NaN."""
    return elementwise("minimum", a, b)


def fmax(a: Any, b: Any) -> Tensor:
    """The greater operand; if one is NaN, the other one."""
    return elementwise("fmax", a, b)


def fmin(a: Any, b: Any) -> Tensor:
    """The lesser operand; if one is NaN, the other one."""
    return elementwise("fmin", a, b)


def clip(x: Any, low: Any = None, high: Any = None) -> Tensor:
    """`x` clamped to two bounds, either of which may be missing."""
    x = tensor(x)
    is_known = isinstance(low, int | float) and isinstance(high, int | float)
    takes_both = x.element.is_float or (is_narrow(x.element) and isinstance(low, int) and isinstance(high, int))
    if is_known and takes_both:
        for bound in (low, high):
            tensor(bound, x.element)
        return recorded(lambda t: rounding.clamp(t, low, high), x)
    x = x if low is None else maximum(x, low)
    return x if high is None else minimum(x, high)


def equal(a: Any, b: Any) -> Tensor:
    """True if a equals b, element by element."""
    return elementwise("equal", a, b)


def not_equal(a: Any, b: Any) -> Tensor:
    """True if a differs from b."""
    return elementwise("not_equal", a, b)


def greater(a: Any, b: Any) -> Tensor:
    """True if a is above b."""
    return elementwise("greater", a, b)


def greater_equal(a: Any, b: Any) -> Tensor:
    """True if a is above b or equal to b."""
    return elementwise("greater_equal", a, b)


def less(a: Any, b: Any) -> Tensor:
    """True if a is below b."""
    return elementwise("less", a, b)


def less_equal(a: Any, b: Any) -> Tensor:
    """True if a is below b or equal to b."""
    return elementwise("less_equal", a, b)


def logical_and(a: Any, b: Any) -> Tensor:
    """True if both operands are true, that is, not 0."""
    return elementwise("logical_and", a, b)


def logical_or(a: Any, b: Any) -> Tensor:
    """True if at least one operand is true."""
    return elementwise("logical_or", a, b)


def logical_xor(a: Any, b: Any) -> Tensor:
    """True if exactly one operand is true."""
    return elementwise("logical_xor", a, b)


def logical_not(x: Any) -> Tensor:
    """True if x is 0, or false."""
    return elementwise("logical_not", x)


def where(condition: Any, a: Any = None, b: Any = None) -> Tensor:
    """a where the condition is true, else b. Both are required: without them NumPy returns indices, whose shape is not known
    when tracing."""
    if a is None or b is None:
        raise refusal("where")
    x, y = operands(a, b, operator="where")
    chosen = astype(tensor(condition, I1), I1)
    dims = broadcast(chosen.shape, x.shape, y.shape, operator="where")
    return recorded(lambda c, t, u: select(c, t, u).broadcast_to(dims), chosen, x, y)


__all__ = ["absolute", "add", "astype", "clip", "conjugate", "divide", "divmod", "equal", "fabs", "float_power",
           "floor_divide", "fmax", "fmin", "fmod", "greater", "greater_equal", "heaviside", "imag", "less", "less_equal",
           "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
           "not_equal", "positive", "power", "real", "reciprocal", "remainder", "sign", "square", "subtract", "where"]
