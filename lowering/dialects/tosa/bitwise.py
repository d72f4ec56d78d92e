"""Bits of two operands: BITWISE_AND, _OR, _XOR, LOGICAL_AND, _OR, _XOR, and the shifts. TOSA 1.0, section 2.5.

The specification leaves shifts by negative amounts or by at least the width undefined; here the amount is taken modulo the
width.
"""
from __future__ import annotations

from typing import ClassVar

import numpy as np

from ...elements.expression import Const, Expr, apply, select
from ...graph.operator import attribute
from ...graph.types import ITEM_SIZES, Array
from .elementwise import BITS, BOOLS, Binary, Results


class BitwiseAnd(Binary, name="tosa.bitwise_and"):
    """Bits that are set in both."""
    results: ClassVar[Results] = BITS

    def exact(self, a: Array, b: Array) -> Array:
        return np.bitwise_and(a, b)

    def scalar(self, a: Expr, b: Expr) -> Expr:
        return a & b


class BitwiseOr(Binary, name="tosa.bitwise_or"):
    """Bits that are set in either."""
    results: ClassVar[Results] = BITS

    def exact(self, a: Array, b: Array) -> Array:
        return np.bitwise_or(a, b)

    def scalar(self, a: Expr, b: Expr) -> Expr:
        return a | b


class BitwiseXor(Binary, name="tosa.bitwise_xor"):
    """Bits in which the two differ."""
    results: ClassVar[Results] = BITS

    def exact(self, a: Array, b: Array) -> Array:
        return np.bitwise_xor(a, b)

    def scalar(self, a: Expr, b: Expr) -> Expr:
        return a ^ b


class LogicalAnd(Binary, name="tosa.logical_and"):
    """True where both are."""
    results: ClassVar[Results] = BOOLS

    def exact(self, a: Array, b: Array) -> Array:
        return np.logical_and(a, b)

    def scalar(self, a: Expr, b: Expr) -> Expr:
        return a & b


class LogicalOr(Binary, name="tosa.logical_or"):
    """True where either is."""
    results: ClassVar[Results] = BOOLS

    def exact(self, a: Array, b: Array) -> Array:
        return np.logical_or(a, b)

    def scalar(self, a: Expr, b: Expr) -> Expr:
        return a | b


class LogicalXor(Binary, name="tosa.logical_xor"):
    """True where one is and the other is not."""
    results: ClassVar[Results] = BOOLS

    def exact(self, a: Array, b: Array) -> Array:
        return np.logical_xor(a, b)

    def scalar(self, a: Expr, b: Expr) -> Expr:
        return a ^ b


def inside(amount: Expr) -> Expr:
    """Return a shift's amount modulo the width."""
    return amount & (ITEM_SIZES[amount.dtype] * 8 - 1)


class LogicalLeftShift(Binary, name="tosa.logical_left_shift"):
    """a << b."""
    results: ClassVar[Results] = BITS

    def exact(self, a: Array, b: Array) -> Array:
        return np.left_shift(a, np.mod(b, a.dtype.itemsize * 8))

    def scalar(self, a: Expr, b: Expr) -> Expr:
        return a << inside(b)


class LogicalRightShift(Binary, name="tosa.logical_right_shift"):
    """a >> b, zeros coming in from above."""
    results: ClassVar[Results] = BITS

    def exact(self, a: Array, b: Array) -> Array:
        unsigned = np.dtype(f"u{a.dtype.itemsize}")
        amount = np.mod(b, a.dtype.itemsize * 8).astype(unsigned)
        return np.right_shift(a.astype(unsigned), amount).astype(a.dtype)

    def scalar(self, a: Expr, b: Expr) -> Expr:
        return apply("lshr", a, inside(b))


class ArithmeticRightShift(Binary, name="tosa.arithmetic_right_shift"):
    """a >> b, the sign coming in from above; with `round`, plus the last bit that was shifted out."""
    round: bool = attribute("bool")
    results: ClassVar[Results] = BITS

    def exact(self, a: Array, b: Array) -> Array:
        amount = np.mod(b, a.dtype.itemsize * 8)
        result = np.right_shift(a, amount)
        if self.round:
            last_out = np.right_shift(a, np.maximum(amount, 1) - 1) % 2
            result = result + np.where(amount > 0, last_out, 0)
        return result

    def scalar(self, a: Expr, b: Expr) -> Expr:
        amount = inside(b)
        result = a >> amount
        if not self.round:
            return result
        last_out = (a >> inside(b - 1)) & 1
        return result + select(amount.equals(0), Const(0, a.dtype), last_out)
