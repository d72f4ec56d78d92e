"""Elementwise functions of traced tensors with NumPy's names and NumPy's meaning, written in TOSA's operators.

TOSA adds, compares and takes maxima only of i32 and floats: i8 and i16 go through i32 and come back, which wraps as
NumPy does. The operators themselves, without any of this, are in `tosaic.tosa`.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ...lowering.graph.types import F32, I1, I16, I32, UI8, ElementType
from .conversion import broadcast, element_type, operands, tensor
from .tensor import Tensor
from .trace import apply, constant, problem


def astype(x: Any, dtype: Any) -> Tensor:
    """`x` converted; floats become integers by dropping the fraction, and anything but 0 is true."""
    x, element = tensor(x), element_type(dtype)
    if element == x.element:
        return x
    if x.element.is_float and element.kind == "bool":
        return not_equal(x, 0.0)
    if x.element.kind == "bool" and element.is_float:
        return astype(convert(x, I32), element)
    if x.element.is_float and element.is_integer:
        x = where(less(x, 0.0), apply("ceil", x), apply("floor", x))
    return convert(x, element)


def convert(x: Tensor, element: ElementType) -> Tensor:
    """TOSA's CAST; ui8, which it does not have, goes through RESCALE by 1 to or from i16."""
    if x.element == element:
        return x
    if x.element == UI8:
        return convert(rescaled(x, I16, input_unsigned=True), element)
    if element == UI8:
        return rescaled(convert(bitwise_and(convert(x, I32), 255), I16), UI8, output_unsigned=True)
    return apply("cast", x, to=element)


def rescaled(x: Tensor, element: ElementType, input_unsigned: bool = False, output_unsigned: bool = False) -> Tensor:
    """The same integers in another type."""
    one, shift = constant(np.full(1, 1 << 30, np.int32)), constant(np.full(1, 30, np.int8))
    return apply("rescale", x, one, shift, zero_point(x.element), zero_point(element), to=element, scale32=True,
                 rounding_mode="SINGLE_ROUND", per_channel=False, input_unsigned=input_unsigned,
                 output_unsigned=output_unsigned)


def is_narrow(x: Tensor) -> bool:
    """Whether `x` is of an integer type that TOSA does not compute in."""
    return x.element.is_integer and x.element.bits < 32


def zero_point(element: ElementType) -> Tensor:
    return constant(np.zeros(1, element.dtype), element)


def computed(name: str, *values: Any, **attributes: Any) -> Tensor:
    """An operator of i32 and floats; narrow integers go through i32 and come back."""
    given = operands(*values, operator=name)
    if not is_narrow(given[0]):
        return apply(name, *given, **attributes)
    return convert(apply(name, *(convert(x, I32) for x in given), **attributes), given[0].element)


def add(a: Any, b: Any) -> Tensor:
    return computed("add", a, b)


def subtract(a: Any, b: Any) -> Tensor:
    return computed("sub", a, b)


def multiply(a: Any, b: Any) -> Tensor:
    x, y = operands(a, b, operator="multiply")
    element = x.element
    if element.kind == "unsigned":
        x, y = convert(x, I32), convert(y, I32)
    return convert(apply("mul", x, y, constant(np.zeros(1, np.int8))), element)


def divide(a: Any, b: Any) -> Tensor:
    """a times the reciprocal of b; integers are converted to f32 first, as a true division has it."""
    x, y = operands(a, b, operator="divide")
    if not x.element.is_float:
        x, y = astype(x, F32), astype(y, F32)
    return multiply(x, apply("reciprocal", y))


def floor_divide(a: Any, b: Any) -> Tensor:
    """The quotient rounded down. Integer division by 0 gives an unspecified value."""
    x, y = operands(a, b, operator="floor_divide")
    if x.element.is_float:
        return apply("floor", divide(x, y))
    if is_narrow(x):
        return convert(floor_divide(convert(x, I32), convert(y, I32)), x.element)
    quotient = apply("intdiv", x, y)
    return subtract(quotient, convert(rounded_up(subtract(x, multiply(quotient, y)), y), x.element))


def remainder(a: Any, b: Any) -> Tensor:
    """What floor division leaves; it has the sign of b."""
    x, y = operands(a, b, operator="remainder")
    if x.element.is_float:
        return subtract(x, multiply(floor_divide(x, y), y))
    if is_narrow(x):
        return convert(remainder(convert(x, I32), convert(y, I32)), x.element)
    rest = subtract(x, multiply(apply("intdiv", x, y), y))
    return add(rest, where(rounded_up(rest, y), y, 0))


def rounded_up(rest: Tensor, divisor: Tensor) -> Tensor:
    """Whether a truncated quotient with this remainder lies above the exact one."""
    return logical_and(not_equal(rest, 0), less(bitwise_xor(rest, divisor), 0))


def power(a: Any, b: Any) -> Tensor:
    """a to the b. A whole number as exponent multiplies; otherwise a must be a positive float (or 0, for b > 0)."""
    if isinstance(b, int | float) and not isinstance(b, bool) and float(b).is_integer() and abs(b) <= 64:
        x = tensor(a)
        if b >= 0 and not (isinstance(b, float) and not x.element.is_float):
            return repeated(x, int(b))
        if x.element.is_float:
            return apply("reciprocal", repeated(x, -int(b)))
    x, y = operands(a, b, operator="power")
    if not x.element.is_float:
        raise problem(f"power of {x.type}: an integer needs a whole number from 0 to 64 as exponent",
                      help="convert it first: x.astype('f32')")
    return apply("pow", x, y)


def repeated(x: Tensor, exponent: int) -> Tensor:
    """`x` multiplied by itself, in few steps."""
    if exponent == 0:
        return constant(np.ones(x.shape, x.element.dtype), x.element)
    half = repeated(x, exponent // 2) if exponent > 1 else None
    squared = x if half is None else multiply(half, half)
    return multiply(squared, x) if exponent > 1 and exponent % 2 else squared


def negative(x: Any) -> Tensor:
    x = tensor(x)
    if is_narrow(x):
        return subtract(0, x)
    return apply("negate", x, zero_point(x.element), zero_point(x.element))


def absolute(x: Any) -> Tensor:
    return computed("abs", x)


def sign(x: Any) -> Tensor:
    """-1, 0 or 1."""
    x = tensor(x)
    return subtract(astype(greater(x, 0), x.element), astype(less(x, 0), x.element))


def maximum(a: Any, b: Any) -> Tensor:
    return computed("maximum", a, b)


def minimum(a: Any, b: Any) -> Tensor:
    return computed("minimum", a, b)


def fmax(a: Any, b: Any) -> Tensor:
    """The greater one; a NaN gives the other."""
    return computed("maximum", a, b, nan_mode="IGNORE")


def fmin(a: Any, b: Any) -> Tensor:
    """The lesser one; a NaN gives the other."""
    return computed("minimum", a, b, nan_mode="IGNORE")


def clip(x: Any, low: Any = None, high: Any = None) -> Tensor:
    """`x` brought between two bounds, either of which may be missing."""
    x = tensor(x)
    plain = isinstance(low, int | float) and isinstance(high, int | float)
    if plain and (x.element.is_float or is_narrow(x)):
        for bound in (low, high):
            tensor(bound, x.element)
        return apply("clamp", x, min_val=low, max_val=high)
    x = x if low is None else maximum(x, low)
    return x if high is None else minimum(x, high)


def compare(name: str, a: Any, b: Any) -> Tensor:
    x, y = operands(a, b, operator=name)
    if is_narrow(x):
        x, y = convert(x, I32), convert(y, I32)
    return apply(name, x, y)


def equal(a: Any, b: Any) -> Tensor:
    x, y = operands(a, b, operator="equal")
    return logical_not(logical_xor(x, y)) if x.element == I1 else compare("equal", x, y)


def not_equal(a: Any, b: Any) -> Tensor:
    x, y = operands(a, b, operator="not_equal")
    return logical_xor(x, y) if x.element == I1 else logical_not(compare("equal", x, y))


def greater(a: Any, b: Any) -> Tensor:
    return compare("greater", a, b)


def greater_equal(a: Any, b: Any) -> Tensor:
    return compare("greater_equal", a, b)


def less(a: Any, b: Any) -> Tensor:
    x, y = operands(a, b, operator="less")
    return compare("greater", y, x)


def less_equal(a: Any, b: Any) -> Tensor:
    x, y = operands(a, b, operator="less_equal")
    return compare("greater_equal", y, x)


def logical(name: str, *values: Any) -> Tensor:
    return apply(f"logical_{name}", *operands(*(astype(v, I1) for v in values), operator=f"logical_{name}"))


def logical_and(a: Any, b: Any) -> Tensor:
    return logical("and", a, b)


def logical_or(a: Any, b: Any) -> Tensor:
    return logical("or", a, b)


def logical_xor(a: Any, b: Any) -> Tensor:
    return logical("xor", a, b)


def logical_not(x: Any) -> Tensor:
    return logical("not", x)


def bitwise(name: str, *values: Any) -> Tensor:
    """Of integers bit by bit, of bools the logical one."""
    given = operands(*values, operator=f"bitwise_{name}")
    return apply(f"{'logical' if given[0].element == I1 else 'bitwise'}_{name}", *given)


def bitwise_and(a: Any, b: Any) -> Tensor:
    return bitwise("and", a, b)


def bitwise_or(a: Any, b: Any) -> Tensor:
    return bitwise("or", a, b)


def bitwise_xor(a: Any, b: Any) -> Tensor:
    return bitwise("xor", a, b)


def invert(x: Any) -> Tensor:
    return bitwise("not", x)


def left_shift(a: Any, b: Any) -> Tensor:
    return apply("logical_left_shift", *operands(a, b, operator="left_shift"))


def right_shift(a: Any, b: Any) -> Tensor:
    """Shifted right; the sign stays."""
    return apply("arithmetic_right_shift", *operands(a, b, operator="right_shift"), round=False)


def where(condition: Any, a: Any, b: Any) -> Tensor:
    """a where the condition is true, else b."""
    x, y = operands(a, b, operator="where")
    chosen = astype(tensor(condition, I1), I1)
    shape = broadcast(chosen.shape, x.shape, y.shape, operator="where")
    return apply("select", *(tensor(v, rank=len(shape)) for v in (chosen, x, y)))


__all__ = ["absolute", "add", "astype", "bitwise_and", "bitwise_or", "bitwise_xor", "clip", "divide", "equal",
           "floor_divide", "fmax", "fmin", "greater", "greater_equal", "invert", "left_shift", "less", "less_equal",
           "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
           "not_equal", "power", "remainder", "right_shift", "sign", "subtract", "where"]
