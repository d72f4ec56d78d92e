"""Elementwise arithmetic of two operands: ADD, SUB, MUL, INTDIV, POW, MAXIMUM, MINIMUM. TOSA 1.0, section 2.5.

Cases that the specification leaves undefined have a result: integers wrap, a quotient by 0 is 0.
"""
from __future__ import annotations

from typing import ClassVar

import numpy as np

from ....runtime.errors import require
from ...elements import real_functions
from ...elements.affine import Affine
from ...elements.expression import Const, Expr, apply, cast, select
from ...elements.tensor import Element, Tensor
from ...graph.operator import Operand, attribute
from ...graph.types import I8, I16, I32, I64, Array, TensorType
from .elementwise import FLOATS, NUMBERS, Binary, Elementwise, Results, alike, as_number, is_integer, rounded, tensor, widened
from .operands import one_element


class Add(Binary, name="tosa.add"):
    """a + b."""
    results: ClassVar[Results] = NUMBERS

    def exact(self, a: Array, b: Array) -> Array:
        return np.add(a, b)

    def scalar(self, a: Expr, b: Expr) -> Expr:
        return a + b


class Sub(Binary, name="tosa.sub"):
    """a - b."""
    results: ClassVar[Results] = NUMBERS

    def exact(self, a: Array, b: Array) -> Array:
        return np.subtract(a, b)

    def scalar(self, a: Expr, b: Expr) -> Expr:
        return a - b


class IntDiv(Binary, name="tosa.intdiv", aliases=("tosa.int_div",)):
    """a / b, truncated. By 0 it is 0; the least integer by -1 is itself."""
    results: ClassVar[Results] = alike(I32, I64)

    def exact(self, a: Array, b: Array) -> Array:
        safe = np.where((b == 0) | (b == -1), 1, b)
        floor = np.floor_divide(a, safe)
        truncated = floor + ((a - floor * safe != 0) & ((a < 0) != (safe < 0)))
        return np.where(b == 0, 0, np.where(b == -1, np.negative(a), truncated))

    def scalar(self, a: Expr, b: Expr) -> Expr:
        is_zero, is_minus_one = b.equals(0), b.equals(-1)
        quotient = a / select(is_zero | is_minus_one, Const(1, b.dtype), b)
        return select(is_zero, Const(0, a.dtype), select(is_minus_one, a * -1, quotient))


class Pow(Binary, name="tosa.pow"):
    """a to the power b. The specification defines it for a > 0, and a = 0 with b > 0; here it is IEEE 754's `pow`."""
    results: ClassVar[Results] = FLOATS

    def exact(self, a: Array, b: Array) -> Array:
        return np.power(a, b)

    def scalar(self, a: Expr, b: Expr) -> Expr:
        return real_functions.power(a, b)


NAN_MODES = ("PROPAGATE", "IGNORE")


def check_nan_mode(mode: str) -> None:
    require(mode in NAN_MODES, f"nan_mode {mode!r} is not known", help=f"it is one of {', '.join(NAN_MODES)}",
            kind="attribute")


class Maximum(Binary, name="tosa.maximum"):
    """The greater of the two. A NaN is the result, or with nan_mode IGNORE only where both are."""
    nan_mode: str = attribute("nan_mode", default="PROPAGATE")
    results: ClassVar[Results] = NUMBERS

    def infer(self, a: Operand, b: Operand) -> TensorType:
        check_nan_mode(self.nan_mode)
        return self.result(a, b)

    def exact(self, a: Array, b: Array) -> Array:
        return np.maximum(a, b) if self.nan_mode == "PROPAGATE" else np.fmax(a, b)

    def scalar(self, a: Expr, b: Expr) -> Expr:
        if is_integer(a):
            return apply("max", a, b)
        return apply("maximum" if self.nan_mode == "PROPAGATE" else "maxnum", a, b)


class Minimum(Binary, name="tosa.minimum"):
    """The smaller of the two. A NaN is the result, or with nan_mode IGNORE only where both are."""
    nan_mode: str = attribute("nan_mode", default="PROPAGATE")
    results: ClassVar[Results] = NUMBERS

    def infer(self, a: Operand, b: Operand) -> TensorType:
        check_nan_mode(self.nan_mode)
        return self.result(a, b)

    def exact(self, a: Array, b: Array) -> Array:
        return np.minimum(a, b) if self.nan_mode == "PROPAGATE" else np.fmin(a, b)

    def scalar(self, a: Expr, b: Expr) -> Expr:
        if is_integer(a):
            return apply("min", a, b)
        return apply("minimum" if self.nan_mode == "PROPAGATE" else "minnum", a, b)


class Mul(Elementwise, name="tosa.mul"):
    """a * b. i8 and i16 give i32. i32 keeps the low half, or with a shift is (a * b + 2**(shift-1)) >> shift.

    The third operand is the shift, one i8 in 0..63, and 0 for every type but i32. A shift that only a run knows is
    taken modulo 64, and not looked at for other types.
    """
    results: ClassVar[Results] = {I8: I32, I16: I32} | NUMBERS

    def infer(self, a: Operand, b: Operand, shift: Operand) -> TensorType:
        one_element(shift, I8, "the shift")
        found = self.result(a, b)
        if shift.constant is not None:
            amount, most = int(shift.constant.reshape(-1)[0]), 63 if tensor(a).element == I32 else 0
            require(0 <= amount <= most, f"the shift of products of {tensor(a).element} must be in 0..{most}, it is {amount}",
                    kind="attribute")
        return found

    def reference(self, a: Array, b: Array, shift: Array) -> Array:
        if a.dtype.name not in ("int8", "int16", "int32"):
            with np.errstate(all="ignore"):
                return rounded(np.multiply(widened(a), widened(b)), a.dtype)
        product = np.multiply(a, b, dtype=np.int64)
        amount = int(shift.reshape(-1)[0]) % 64 if a.dtype == np.int32 else 0
        if amount > 0:
            product = np.right_shift(np.add(product, 1 << (amount - 1)), amount)
        return np.asarray(product.astype(np.int32))

    def element(self, out: TensorType, a: Tensor, b: Tensor, shift: Tensor) -> Element:
        is_shifted = a.type.element == I32 and not (shift.constant is not None and shift.integers[0] % 64 == 0)

        def element(*index: Affine) -> Expr:
            x, y = (as_number(t.broadcast(index)) for t in (a, b))
            if is_shifted:
                return cast(shifted(cast(x, "int64") * cast(y, "int64"), shift), "int32")
            if is_integer(x):
                x, y = cast(x, out.element.storage), cast(y, out.element.storage)
            return cast(x * y, out.element.storage)

        return element


def shifted(product: Expr, shift: Tensor) -> Expr:
    """Return (product + 2**(shift-1)) >> shift; the product for a shift of 0."""
    if shift.constant is not None:
        amount = shift.integers[0] % 64
        return product + (1 << amount >> 1) >> amount
    loaded = cast(shift.scalar(), "int64") & 63
    half = apply("lshr", Const(1, "int64") << loaded, 1)
    return product + half >> loaded
