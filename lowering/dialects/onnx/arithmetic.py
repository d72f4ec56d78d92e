"""Arithmetic on elements, with NumPy's broadcasting: Add, Sub, Mul, Div, Mod, Pow, Neg, Abs, Sign, Min, Max, Sum, Mean, Clip.

Before version 7 the second operand was broadcast from an `axis`, if the node had `broadcast`.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np

from ....runtime.errors import Problem
from ...formulas.division import divided, float_remainder, floored_remainder, integer_remainder, is_below, truncated_quotient
from ...formulas.powers import integer_power, real_power
from ...formulas.rounding import sign
from ...formulas.term import Function, Term, absolute, maximum, minimum, select
from ...formulas.working_types import evaluated
from ...graph.graph import Value
from ...graph.types import F32, UI64, Array
from ..emitter import Emitter
from .operator import Ints, Operator, operator

TOP = -(1 << 63)
"""The sign bit: flipping it gives unsigned 64-bit numbers the order of signed ones."""


class Binary(Operator):
    """An operator of two tensors that broadcast."""
    axis: int | None = None
    broadcast: int = 0
    consumed_inputs: Ints = ()

    def aligned(self, rank: int, other: int) -> int:
        """Return the number of axes of extent 1 that the second operand needs after its own."""
        if self.version >= 7 or self.axis is None:
            return 0
        return rank - other - (self.axis % rank if rank else 0)

    def same_axes(self, e: Emitter, a: Value, b: Value) -> Value:
        """Return the second operand reshaped so that it broadcasts as in NumPy."""
        return e.reshape(b, (*b.tensor.dims, *(1,) * self.aligned(a.tensor.rank, b.tensor.rank)))


def binary(name: str, function: Callable[[Array, Array], Array], formula: Function) -> None:
    """Register an operator with a NumPy function, and a formula of terms, for floats and integers."""
    class One(Binary):
        def reference(self, a: Array, b: Array) -> Array:
            return function(a, b.reshape(b.shape + (1,) * self.aligned(a.ndim, b.ndim)))

        def lower(self, e: Emitter, a: Value, b: Value) -> Value:
            same_elements(a, b)
            return evaluated(formula, e, (a, self.same_axes(e, a, b)), integers=True)
    One.__name__ = One.__qualname__ = name
    operator(name)(One)


def same_elements(*operands: Value) -> None:
    """Raise a Problem unless all operands have one element type."""
    found = {str(v.tensor.element) for v in operands}
    if len(found) > 1:
        raise Problem(f"its operands are of {' and '.join(sorted(found))}, one type is needed", kind="type")


binary("Add", np.add, lambda a, b: a + b)
binary("Sub", np.subtract, lambda a, b: a - b)
binary("Mul", np.multiply, lambda a, b: a * b)


# ---- quotients and remainders --------------------------------------------------------------------------------------------
def quotient(a: Array, b: Array) -> Array:
    """Return the quotient; integers round toward zero, and a quotient by zero is 0."""
    if a.dtype.kind not in "iu":
        return a / b
    divisor = np.where(b == 0, np.ones_like(b), b)
    whole = a // divisor
    rest = a - whole * divisor
    if a.dtype.kind == "i":
        whole = whole + ((rest != 0) & ((a < 0) ^ (divisor < 0))).astype(a.dtype)
    return np.asarray(np.where(b == 0, 0, whole), a.dtype)


@operator("Div")
class Div(Binary):
    """A quotient; integers are rounded toward zero."""

    def reference(self, a: Array, b: Array) -> Array:
        return quotient(a, b.reshape(b.shape + (1,) * self.aligned(a.ndim, b.ndim)))

    def lower(self, e: Emitter, a: Value, b: Value) -> Value:
        same_elements(a, b)
        formula = unsigned_quotient if a.tensor.element == UI64 else lowered_quotient
        return evaluated(formula, e, (a, self.same_axes(e, a, b)), integers=True)


def lowered_quotient(a: Term, b: Term) -> Term:
    return divided(a, b) if a.element.is_float else truncated_quotient(a, b)


def below(a: Term, b: Term) -> Term:
    """True if a is less than b; both are i64 that hold unsigned numbers."""
    return (a ^ a.term(TOP)) < (b ^ b.term(TOP))


def unsigned_quotient(a: Term, b: Term) -> Term:
    """Return the quotient of unsigned numbers in i64: the quotient of half of a, doubled, is at most one too small. A divisor
    with the highest bit set goes into a once or not at all."""
    half = a.of(a.builder("logical_right_shift", *a.builder.same_rank(a.value, a.term(1).value)))
    twice = truncated_quotient(half, select(b < 0, b.term(1), b)) << 1
    found = twice + select(below(a - twice * b, b), a.term(0), 1)
    return select(b < 0, select(below(a, b), a.term(0), 1), found)


def remainder(a: Array, b: Array, truncates: bool) -> Array:
    if a.dtype.kind not in "iu":
        return np.asarray(np.fmod(a, b) if truncates else np.mod(a, b), a.dtype)
    divisor = np.where(b == 0, np.ones_like(b), b)
    return np.asarray(np.where(b == 0, 0, np.fmod(a, divisor) if truncates else np.mod(a, divisor)), a.dtype)


@operator("Mod")
class Mod(Operator):
    """The remainder with the sign of the divisor, as in Python; with `fmod` that of the dividend, as in C."""
    fmod: int = 0

    def reference(self, a: Array, b: Array) -> Array:
        return remainder(a, b, bool(self.fmod))

    def lower(self, e: Emitter, a: Value, b: Value) -> Value:
        same_elements(a, b)
        if a.tensor.element.is_float:
            return evaluated(float_remainder if self.fmod else floored_rest, e, (a, b))
        if a.tensor.element == UI64:
            return evaluated(lambda x, y: x - unsigned_quotient(x, y) * y, e, (a, b), integers=True)
        return evaluated(integer_remainder if self.fmod else floored_remainder, e, (a, b), integers=True)


def floored_rest(x: Term, y: Term) -> Term:
    """Return the remainder of floats with the sign of the divisor."""
    rest = float_remainder(x, y)
    return select(is_below(rest, y), rest + y, rest)


@operator("Pow")
class Pow(Binary):
    """A power. The result has the type of the base; the exponent may have another."""

    def reference(self, a: Array, b: Array) -> Array:
        b = b.reshape(b.shape + (1,) * self.aligned(a.ndim, b.ndim))
        if a.dtype.kind in "iu" and b.dtype.kind in "iu":
            return np.asarray(np.where(b < 0, np.power(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype),
                                       np.power(a, np.abs(b).astype(a.dtype))), a.dtype)
        return np.asarray(np.power(a.astype(np.float64), b.astype(np.float64)) if a.dtype.kind in "iu" else
                          np.power(a, b.astype(a.dtype)), a.dtype)

    def lower(self, e: Emitter, a: Value, b: Value) -> Value:
        b, element = self.same_axes(e, a, b), a.tensor.element
        dims = np.broadcast_shapes(a.tensor.dims, b.tensor.dims)
        if element.is_integer and b.tensor.element.is_integer:
            return e.broadcast_to(integer_power(e, a, b), dims)
        working = F32 if element.is_integer else element
        found = real_power(e, e.cast(a, working), e.cast(b, working))
        return e.broadcast_to(e.cast(found, element), dims)


# ---- one operand ---------------------------------------------------------------------------------------------------------
def unary(name: str, function: Callable[[Array], Array], formula: Function, integers: bool = False) -> None:
    """Register an operator of one tensor."""
    class One(Operator):
        consumed_inputs: Ints = ()

        def reference(self, x: Array) -> Array:
            return np.asarray(function(x), x.dtype)

        def lower(self, e: Emitter, x: Value) -> Value:
            return evaluated(formula, e, (x,), integers=integers)
    One.__name__ = One.__qualname__ = name
    operator(name)(One)


unary("Neg", np.negative, lambda x: -x, integers=True)
unary("Abs", np.abs, lambda x: absolute(x), integers=True)


@operator("Sign")
class Sign(Operator):
    def reference(self, x: Array) -> Array:
        return np.asarray(np.sign(x), x.dtype)

    def lower(self, e: Emitter, x: Value) -> Value:
        if x.tensor.element.kind == "unsigned":
            return evaluated(lambda a: select(a.equals(0), a.term(0), 1), e, (x,), integers=True)
        return evaluated(sign, e, (x,), integers=True)


# ---- any number of operands ----------------------------------------------------------------------------------------------
class Variadic(Operator):
    """An operator of one tensor or more, combined pairwise."""
    consumed_inputs: Ints = ()


def ordered(formula: Function) -> Function:
    """Return a formula of an order, for i64 that hold unsigned numbers."""
    def of_bits(a: Term, b: Term) -> Term:
        return formula(a ^ a.term(TOP), b ^ b.term(TOP)) ^ a.term(TOP)
    return of_bits


def variadic(name: str, function: Callable[[Array, Array], Array], formula: Function, of_order: bool = False) -> None:
    class One(Variadic):
        def reference(self, first: Array, *others: Array) -> Array:
            return reduce(function, others, first)

        def lower(self, e: Emitter, first: Value, *others: Value) -> Value:
            same_elements(first, *others)
            chosen = ordered(formula) if of_order and first.tensor.element == UI64 else formula
            return reduce(lambda a, b: evaluated(chosen, e, (a, b), integers=True), others, first)
    One.__name__ = One.__qualname__ = name
    operator(name)(One)


variadic("Min", np.minimum, minimum, of_order=True)
variadic("Max", np.maximum, maximum, of_order=True)
variadic("Sum", np.add, lambda a, b: a + b)


@operator("Mean")
class Mean(Variadic):
    def reference(self, first: Array, *others: Array) -> Array:
        return np.asarray(reduce(np.add, others, first) / np.asarray(1 + len(others), first.dtype), first.dtype)

    def lower(self, e: Emitter, first: Value, *others: Value) -> Value:
        same_elements(first, *others)

        def mean(*terms: Term) -> Term:
            total = reduce(lambda a, b: a + b, terms)
            return divided(total, total.term(len(terms)))
        return evaluated(mean, e, (first, *others))


# ---- between bounds ------------------------------------------------------------------------------------------------------
@operator("Clip")
class Clip(Operator):
    """Clip. Bounds were attributes before version 11; an omitted bound is none. The greater bound wins if they cross."""
    min: float | None = None
    max: float | None = None
    consumed_inputs: Ints = ()

    def reference(self, x: Array, low: Array | None = None, high: Array | None = None) -> Array:
        least = low if low is not None and low.size else self.min
        most = high if high is not None and high.size else self.max
        found = x if least is None else np.maximum(x, np.asarray(least, x.dtype))
        return np.asarray(found if most is None else np.minimum(found, np.asarray(most, x.dtype)), x.dtype)

    def lower(self, e: Emitter, x: Value, low: Value | None = None, high: Value | None = None) -> Value:
        element = x.tensor.element
        bounds = [self.bound(e, x, given, own) for given, own in ((low, self.min), (high, self.max))]
        if (clamped := self.clamped(e, x, bounds)) is not None:
            return clamped
        for bound, formula in zip(bounds, (maximum, minimum)):
            if bound is not None:
                chosen = ordered(formula) if element == UI64 else formula
                x = evaluated(chosen, e, (x, bound), integers=True)
        return x

    def bound(self, e: Emitter, x: Value, given: Value | None, own: float | None) -> Value | None:
        if given is not None and given.tensor.size:
            return e.reshape(given, ())
        return None if own is None else e.constant(np.asarray(own, x.tensor.element.dtype), x.tensor.element)

    def clamped(self, e: Emitter, x: Value, bounds: list[Value | None]) -> Value | None:
        """Return TOSA's own operator, if both bounds are known, in order, and not NaN."""
        element = x.tensor.element
        if not (element.is_float or (element.kind == "signed" and element.bits < 32)) or not x.tensor.size:
            return None
        if any(b is not None and b.constant is None for b in bounds):
            return None
        number = float if element.is_float else int
        ends = (-math.inf, math.inf) if element.is_float else (element.minimum, element.maximum)
        least, most = (number(end if b is None or b.constant is None else b.constant.item()) for b, end in zip(bounds, ends))
        if not least <= most or element.name == "f64":
            return None
        return e("clamp", x, min_val=least, max_val=most)
