"""Elementwise operators of one operand: ABS, BITWISE_NOT, CEIL, CLZ, COS, EXP, FLOOR, LOG, LOGICAL_NOT, NEGATE,
RECIPROCAL, RSQRT, SIN. TOSA 1.0, section 2.6.
"""
from __future__ import annotations

from typing import ClassVar

import numpy as np

from ...elements import real_functions
from ...elements.affine import Affine
from ...elements.expression import Apply, Const, Expr, apply, cast, clamp, extreme, literal, select
from ...elements.tensor import Element, Tensor
from ...graph.operator import Operand
from ...graph.types import I8, I16, I32, I64, Array, TensorType
from .elementwise import BITS, BOOLS, FLOATS, NUMBERS, Elementwise, Results, Unary, alike, is_integer, rounded, tensor, widened
from .operands import zero_point


class Abs(Unary, name="tosa.abs"):
    """Absolute value; the least integer stays."""
    results: ClassVar[Results] = NUMBERS

    def exact(self, x: Array) -> Array:
        return np.abs(x)

    def scalar(self, x: Expr) -> Expr:
        return apply("max", x, x * -1) if is_integer(x) else apply("abs", x)


class BitwiseNot(Unary, name="tosa.bitwise_not"):
    """Every bit flipped."""
    results: ClassVar[Results] = BITS

    def exact(self, x: Array) -> Array:
        return np.invert(x)

    def scalar(self, x: Expr) -> Expr:
        return x ^ -1


class LogicalNot(Unary, name="tosa.logical_not"):
    """True where the operand is false."""
    results: ClassVar[Results] = BOOLS

    def exact(self, x: Array) -> Array:
        return np.logical_not(x)

    def scalar(self, x: Expr) -> Expr:
        return x ^ 1


class Clz(Unary, name="tosa.clz"):
    """Zeros above the highest bit that is set; the width for 0."""
    results: ClassVar[Results] = alike(I32, I64)

    def exact(self, x: Array) -> Array:
        width = x.dtype.itemsize * 8
        unsigned = x.view(f"u{x.dtype.itemsize}")
        powers = np.left_shift(np.ones(width, unsigned.dtype), np.arange(width, dtype=unsigned.dtype))
        return width - np.searchsorted(powers, unsigned, side="right")

    def scalar(self, x: Expr) -> Expr:
        if x.dtype == "int32":
            return apply("clz", x)
        high, low = cast(apply("lshr", x, 32), "int32"), cast(x, "int32")
        return cast(select(high.equals(0), apply("clz", low) + 32, apply("clz", high)), "int64")


class Ceil(Unary, name="tosa.ceil"):
    """The least integer that is not below."""
    results: ClassVar[Results] = FLOATS

    def exact(self, x: Array) -> Array:
        return np.ceil(x)

    def scalar(self, x: Expr) -> Expr:
        return apply("ceil", x)


class Floor(Unary, name="tosa.floor"):
    """The greatest integer that is not above."""
    results: ClassVar[Results] = FLOATS

    def exact(self, x: Array) -> Array:
        return np.floor(x)

    def scalar(self, x: Expr) -> Expr:
        return apply("floor", x)


class Exp(Unary, name="tosa.exp"):
    """e to the power of the operand."""
    results: ClassVar[Results] = FLOATS

    def exact(self, x: Array) -> Array:
        return np.exp(x)

    def scalar(self, x: Expr) -> Expr:
        return real_functions.exponential(x)


class Log(Unary, name="tosa.log"):
    """Natural logarithm; NaN below 0."""
    results: ClassVar[Results] = FLOATS

    def exact(self, x: Array) -> Array:
        return np.log(x)

    def scalar(self, x: Expr) -> Expr:
        return real_functions.log(x)


class Sin(Unary, name="tosa.sin"):
    """Sine of an angle in radians."""
    results: ClassVar[Results] = FLOATS

    def exact(self, x: Array) -> Array:
        return np.sin(x)

    def scalar(self, x: Expr) -> Expr:
        return real_functions.sine(x)


class Cos(Unary, name="tosa.cos"):
    """Cosine of an angle in radians."""
    results: ClassVar[Results] = FLOATS

    def exact(self, x: Array) -> Array:
        return np.cos(x)

    def scalar(self, x: Expr) -> Expr:
        return real_functions.cosine(x)


class Reciprocal(Unary, name="tosa.reciprocal"):
    """1 / x. Of f64, the reciprocal of RSQRT is a square root, correctly rounded, where one kernel computes both."""
    results: ClassVar[Results] = FLOATS

    def exact(self, x: Array) -> Array:
        return np.reciprocal(x)

    def scalar(self, x: Expr) -> Expr:
        match x:
            case Apply("div", (Const(1.0), Apply("sqrt", (square,))), "float64"):
                return apply("sqrt", square)
        return literal(1.0, x.dtype) / x


class Rsqrt(Unary, name="tosa.rsqrt"):
    """1 / sqrt(x); NaN below 0, minus infinity for -0."""
    results: ClassVar[Results] = FLOATS

    def exact(self, x: Array) -> Array:
        return np.reciprocal(np.sqrt(x))

    def scalar(self, x: Expr) -> Expr:
        return literal(1.0, x.dtype) / apply("sqrt", x)


class Negate(Elementwise, name="tosa.negate"):
    """output_zp - (x - input1_zp); i8 and i16 are clipped, i32 and i64 wrap. Zero points are 0 for all types but i8."""
    results: ClassVar[Results] = alike(I8, I16) | NUMBERS

    def infer(self, x: Operand, input1_zp: Operand, output_zp: Operand) -> TensorType:
        element = tensor(x).element
        found = self.result(x)
        zero_point(input1_zp, element, "input1_zp")
        zero_point(output_zp, element, "output_zp")
        return found

    def reference(self, x: Array, input1_zp: Array, output_zp: Array) -> Array:
        if x.dtype in (np.int8, np.int16):
            value = output_zp.reshape(()).astype(np.int32) - (x.astype(np.int32) - input1_zp.reshape(()))
            info = np.iinfo(x.dtype)
            return np.asarray(np.clip(value, info.min, info.max).astype(x.dtype))
        with np.errstate(all="ignore"):
            return rounded(np.negative(widened(x)), x.dtype)

    def element(self, out: TensorType, x: Tensor, input1_zp: Tensor, output_zp: Tensor) -> Element:
        if out.element not in (I8, I16):
            return super().element(out, x)
        total = cast(input1_zp.scalar(), "int32") + cast(output_zp.scalar(), "int32")
        if input1_zp.constant is not None and output_zp.constant is not None:
            total = Const(input1_zp.integers[0] + output_zp.integers[0], "int32")
        low, high = (extreme(out.element.storage, which) for which in ("min", "max"))

        def element(*index: Affine) -> Expr:
            return cast(clamp(total - cast(x[index], "int32"), low, high), out.element.storage)

        return element

    def scalar(self, x: Expr) -> Expr:
        return x * -1
