"""A value while a formula is built of it, written as arithmetic: `(x - 1) * reciprocal(x + 1)` appends TOSA for it.

A `Term` is a value of the new graph with the builder that extends it; a plain number beside it takes its type. Formulas are
functions of terms; what in them depends on the float format alone is in `Precision`.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from ...runtime.records import dataclass
from ..graph.graph import Value
from ..graph.types import F32, F64, I1, ElementType
from .tosa_builder import TosaBuilder


@dataclass(frozen=True, slots=True)
class Precision:
    """A float format. From `whole` on every number is an integer; x * `splitter` tells the upper half of the digits of x;
    x - x**3 is x for |x| below `negligible`."""
    digits: int
    """Binary ones."""
    negligible: float

    @property
    def whole(self) -> float:
        return 2.0 ** (self.digits - 1)

    @property
    def splitter(self) -> float:
        return 2.0 ** ((self.digits + 1) // 2) + 1


PRECISIONS = {F32: Precision(24, 2.0**-13), F64: Precision(53, 2.0**-27)}


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A value and what extends its graph. Comparisons give terms of bools; `&`, `|`, `^` and `~` are logical of bools, and
    of integers bit by bit."""
    builder: TosaBuilder
    value: Value

    @property
    def element(self) -> ElementType:
        return self.value.tensor.element

    @property
    def precision(self) -> Precision:
        return PRECISIONS[self.element]

    # ---- terms of terms ----------------------------------------------------------------------------------------------
    def of(self, value: Value) -> Term:
        return Term(self.builder, value)

    def term(self, other: Term | float) -> Term:
        """A number as a constant of this term's type."""
        return other if isinstance(other, Term) else self.of(self.builder.splat(other, self.value))

    def apply(self, name: str, *others: Term | float, **attributes: Any) -> Term:
        """The result of an elementwise operator of TOSA."""
        return self.of(self.builder.arithmetic(name, self.value, *(self.term(x).value for x in others), **attributes))

    def reduced(self, name: str, axis: int) -> Term:
        """The result of a reduction, of which the axis stays with extent 1."""
        return self.of(self.builder(name, self.value, axis=axis))

    def cast(self, element: ElementType) -> Term:
        return self.of(self.builder.cast(self.value, element))

    def broadcast_to(self, dims: Sequence[int]) -> Term:
        return self.of(self.builder.broadcast_to(self.value, dims))

    # ---- arithmetic --------------------------------------------------------------------------------------------------
    def __add__(self, other: Term | float) -> Term:
        return self.apply("add", other)

    def __radd__(self, other: float) -> Term:
        return self.term(other) + self

    def __sub__(self, other: Term | float) -> Term:
        return self.apply("sub", other)

    def __rsub__(self, other: float) -> Term:
        return self.term(other) - self

    def __mul__(self, other: Term | float) -> Term:
        return self.of(self.builder.product(self.value, self.term(other).value))

    def __rmul__(self, other: float) -> Term:
        return self.term(other) * self

    def __neg__(self) -> Term:
        return self.of(self.builder.negative(self.value))

    def __truediv__(self, other: Term | float) -> Term:
        """By way of the reciprocal, which is one ulp off; `division.divided` is exact."""
        return self * reciprocal(self.term(other))

    def __rtruediv__(self, other: float) -> Term:
        return self.term(other) / self

    # ---- comparisons -------------------------------------------------------------------------------------------------
    def __gt__(self, other: Term | float) -> Term:
        return self.apply("greater", other)

    def __ge__(self, other: Term | float) -> Term:
        return self.apply("greater_equal", other)

    def __lt__(self, other: Term | float) -> Term:
        return self.term(other) > self

    def __le__(self, other: Term | float) -> Term:
        return self.term(other) >= self

    def equals(self, other: Term | float) -> Term:
        return ~(self ^ self.term(other)) if self.element == I1 else self.apply("equal", other)

    def differs(self, other: Term | float) -> Term:
        return self ^ self.term(other) if self.element == I1 else ~self.apply("equal", other)

    # ---- logic, and bits ---------------------------------------------------------------------------------------------
    def bitwise(self, name: str, *others: Term | int) -> Term:
        given = [self.value, *(self.term(x).value for x in others)]
        if self.element == I1:
            return self.of(self.builder(f"logical_{name}", *self.builder.same_rank(*given)))
        return self.of(self.builder.bits(f"bitwise_{name}", *given))

    def apply_bits(self, name: str, other: Term | int) -> Term:
        """The result of an operator of TOSA on the bits of integers."""
        return self.of(self.builder.bits(name, self.value, self.term(other).value))

    def __and__(self, other: Term | int) -> Term:
        return self.bitwise("and", other)

    def __or__(self, other: Term | int) -> Term:
        return self.bitwise("or", other)

    def __xor__(self, other: Term | int) -> Term:
        return self.bitwise("xor", other)

    def __invert__(self) -> Term:
        return self.bitwise("not")

    def __lshift__(self, other: Term | int) -> Term:
        return self.of(self.builder.bits("logical_left_shift", self.value, self.term(other).value))

    def __rshift__(self, other: Term | int) -> Term:
        """The sign comes in from above; for numbers without one zeros."""
        operands = self.value, self.term(other).value
        if self.element.kind == "unsigned":
            return self.of(self.builder.bits("logical_right_shift", *operands))
        return self.of(self.builder.bits("arithmetic_right_shift", *operands, round=False))


Function = Callable[..., Term]


def operator(name: str) -> Callable[[Term], Term]:
    return lambda x: x.apply(name)


absolute, reciprocal, rsqrt, floor, ceil = map(operator, ("abs", "reciprocal", "rsqrt", "floor", "ceil"))
exp, log, sin, cos, tanh, erf, sigmoid = map(operator, ("exp", "log", "sin", "cos", "tanh", "erf", "sigmoid"))


def select(condition: Term, yes: Term | float, no: Term | float) -> Term:
    """One of the two, of which at least one is a term."""
    like = yes if isinstance(yes, Term) else no
    assert isinstance(like, Term)
    return like.of(like.builder.select(condition.value, like.term(yes).value, like.term(no).value))


def maximum(x: Term, y: Term | float) -> Term:
    """A NaN is the result."""
    return x.apply("maximum", y)


def minimum(x: Term, y: Term | float) -> Term:
    """A NaN is the result."""
    return x.apply("minimum", y)


def in_float(x: Term) -> Term:
    """Integers as f32."""
    return x if x.element.is_float else x.cast(F32)


def polynomial(x: Term, coefficients: Sequence[float]) -> Term:
    """The sum of coefficients[i] * x**i."""
    *rest, last = coefficients
    found = x * last + rest[-1]
    for coefficient in reversed(rest[:-1]):
        found = found * x + coefficient
    return found


def product_of_squares(base: Term, exponent: int) -> Term:
    """base**exponent for an exponent of 0 or more: the squares that its digits name, multiplied."""
    factors = [] if exponent else [base.term(1).broadcast_to(base.value.tensor.dims)]
    while exponent:
        if exponent & 1:
            factors.append(base)
        exponent >>= 1
        base = base * base if exponent else base
    return reduce(lambda a, b: a * b, factors)
