"""Formulas of TensorFlow Lite's kernels in TOSA's operators: what `kernels` writes operators with."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..dialects.tosa.activation import Clamp, Erf
from ..dialects.tosa.binary import Add, IntDiv, Mul, Sub
from ..dialects.tosa.bitwise import LogicalAnd, LogicalXor
from ..dialects.tosa.comparison import Equal, Greater, GreaterEqual
from ..dialects.tosa.conversion import Cast
from ..dialects.tosa.reduction import ReduceMax, ReduceSum
from ..dialects.tosa.rescale import Rescale
from ..dialects.tosa.ternary import Select
from ..dialects.tosa.unary import Abs, Ceil, Exp, Floor, Log, LogicalNot, Negate, Reciprocal
from ..graph.graph import Value
from ..graph.types import I8, I32, UI8, ElementType
from .writer import Writer


class Formulas(Writer):
    """Appends the operations of one operator."""
    __slots__ = ()

    # ---- parts of formulas -------------------------------------------------------------------------------------------
    def number(self, value: float, like: Value) -> Value:
        """A constant that takes part in operations with `like`."""
        return self.constant(np.full((1,) * like.tensor.rank, value, like.tensor.element.dtype))

    def ranked(self, a: Value, b: Value) -> tuple[Value, Value]:
        """Both with the greater rank."""
        rank = max(a.tensor.rank, b.tensor.rank)
        if a.tensor.rank == b.tensor.rank:
            return a, b
        return (self.reshaped(a, (1,) * (rank - a.tensor.rank) + a.tensor.dims),
                self.reshaped(b, (1,) * (rank - b.tensor.rank) + b.tensor.dims))

    def product(self, a: Value, b: Value) -> Value:
        return self.add(Mul(), a, b, self.constant(np.zeros(1, np.int8)))

    def negative(self, x: Value) -> Value:
        """Whether x is below 0."""
        return self.add(Greater(), self.number(0, x), x)

    def minus(self, x: Value) -> Value:
        zero_point = self.constant(np.zeros(1, x.tensor.element.dtype))
        return self.add(Negate(), x, zero_point, zero_point)

    # ---- division ----------------------------------------------------------------------------------------------------
    def remainder(self, a: Value, b: Value) -> Value:
        """a modulo b, with the sign of b."""
        if a.tensor.element != I32:
            return self.divided(a, b)[1]
        rest = self.add(Sub(), a, self.product(self.add(IntDiv(), a, b), b))
        differ = self.add(LogicalXor(), self.negative(rest), self.negative(b))
        is_there = self.add(LogicalNot(), self.add(Equal(), rest, self.number(0, rest)))
        return self.add(Select(), self.add(LogicalAnd(), differ, is_there), self.add(Add(), rest, b), rest)

    def divided(self, a: Value, b: Value) -> tuple[Value, Value]:
        """floor(a / b), which a reciprocal may miss by one, and a - floor(a / b) b, which shows it."""
        quotient = self.add(Floor(), self.product(a, self.add(Reciprocal(), b)))
        rest = self.add(Sub(), a, self.product(quotient, b))
        size = self.add(Select(), self.negative(b), self.minus(rest), rest)
        one, zero = self.number(1, rest), self.number(0, rest)
        less = self.add(Select(), self.negative(size), one, zero)
        more = self.add(Select(), self.add(GreaterEqual(), size, self.add(Abs(), b)), one, zero)
        quotient = self.add(Add(), self.add(Sub(), quotient, less), more)
        return quotient, self.add(Sub(), a, self.product(quotient, b))

    # ---- the greater of two ------------------------------------------------------------------------------------------
    def greater(self, a: Value, b: Value) -> Value:
        """a > b ? a : b, so the second operand where one is NaN, or they are equal."""
        return self.add(Select(), self.add(Greater(), a, b), a, b)

    def less(self, a: Value, b: Value) -> Value:
        """a < b ? a : b"""
        return self.add(Select(), self.add(Greater(), b, a), a, b)

    # ---- activations -------------------------------------------------------------------------------------------------
    def gelu(self, x: Value) -> Value:
        """x (1 + erf(x / sqrt 2)) / 2"""
        erf = self.add(Erf(), self.product(x, self.number(float(np.sqrt(0.5)), x)))
        return self.product(self.product(x, self.number(0.5, x)), self.add(Add(), erf, self.number(1, x)))

    def log_softmax(self, x: Value) -> Value:
        """x - max - log(sum exp(x - max)) along the last axis"""
        axis = x.tensor.rank - 1
        below = self.add(Sub(), x, self.add(ReduceMax(axis=axis), x))
        return self.add(Sub(), below, self.add(Log(), self.add(ReduceSum(axis=axis), self.add(Exp(), below))))

    # ---- integers ----------------------------------------------------------------------------------------------------
    def without_fraction(self, x: Value, element: ElementType) -> Value:
        """x as an integer, rounded towards zero."""
        return self.add(Cast(to=element), self.add(Select(), self.negative(x), self.add(Ceil(), x), self.add(Floor(), x)))

    def quantized(self, x: Value, scale: np.float32, zero_point: int, element: Any) -> Value:
        """clamp(round(x / scale) + zero point): halves are rounded away from zero."""
        y = self.product(x, self.number(float(np.float32(1) / scale), x))
        size = self.add(Abs(), y)
        whole = self.add(Floor(), size)
        is_half = self.add(GreaterEqual(), self.add(Sub(), size, whole), self.number(0.5, x))
        rounded = self.add(Add(), whole, self.add(Select(), is_half, self.number(1, x), self.number(0, x)))
        signed = self.add(Select(), self.negative(y), self.minus(rounded), rounded)
        least, greatest = (float(bound - zero_point) for bound in (element.minimum, element.maximum))
        integer = self.add(Cast(to=I32), self.add(Clamp(min_val=least, max_val=greatest), signed))
        stored, offset = (I8, 128) if element == UI8 else (element, 0)
        found = self.add(Cast(to=stored), self.add(Add(), integer, self.number(zero_point - offset, integer)))
        return self.unsigned(found) if element == UI8 else found

    def unsigned(self, x: Value) -> Value:
        """x + 128 as unsigned bytes."""
        op = Rescale(scale32=True, rounding_mode="SINGLE_ROUND", per_channel=False, input_unsigned=False, output_unsigned=True,
                     to=UI8)
        return self.add(op, x, self.constant(np.array([1 << 30], np.int32)), self.constant(np.array([30], np.int8)),
                        self.constant(np.array([-128], np.int8)), self.constant(np.zeros(1, np.uint8)))
