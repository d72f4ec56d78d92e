"""Arithmetic on elements, with NumPy's broadcasting: Add, Sub, Mul, Div, Neg, Abs, Min, Max, Sum, Mean.

Before version 7 the second operand was broadcast from an `axis`, where the node said `broadcast`.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from ....runtime.errors import Problem
from ...formulas.division import divided, truncated_quotient
from ...formulas.term import Function, Term, absolute, maximum, minimum
from ...formulas.working_types import evaluated
from ...graph.graph import Value
from ...graph.types import Array
from ..emitter import Emitter
from .operator import Ints, Operator, operator


class Binary(Operator):
    """An operator of two tensors that broadcast."""
    axis: int | None = None
    broadcast: int = 0
    consumed_inputs: Ints = ()

    def aligned(self, rank: int, other: int) -> int:
        """How many axes of extent 1 the second operand needs behind its own."""
        if self.version >= 7 or self.axis is None:
            return 0
        return rank - other - (self.axis % rank if rank else 0)


def binary(name: str, function: Callable[[Array, Array], Array], formula: Function) -> None:
    """An operator that is a function of NumPy, and a formula of terms, of floats and integers."""
    class One(Binary):
        def reference(self, a: Array, b: Array) -> Array:
            return function(a, b.reshape(b.shape + (1,) * self.aligned(a.ndim, b.ndim)))

        def lower(self, e: Emitter, a: Value, b: Value) -> Value:
            b = e.reshape(b, (*b.tensor.dims, *(1,) * self.aligned(a.tensor.rank, b.tensor.rank)))
            same_elements(a, b)
            return evaluated(formula, e, (a, b), integers=True)
    One.__name__ = One.__qualname__ = name
    operator(name)(One)


def same_elements(*operands: Value) -> None:
    """A Problem unless all have one element type."""
    found = {str(v.tensor.element) for v in operands}
    if len(found) > 1:
        raise Problem(f"its operands are of {' and '.join(sorted(found))}, one type is needed", kind="type")


def quotient(a: Array, b: Array) -> Array:
    """Of integers rounded toward zero; by zero it is 0."""
    if a.dtype.kind == "f" or a.dtype.kind not in "iu":
        return a / b
    whole = np.abs(a) // np.where(b == 0, 1, np.abs(b))
    return np.asarray(np.where(b == 0, 0, np.where((a < 0) ^ (b < 0), -whole, whole)), a.dtype)


def lowered_quotient(a: Term, b: Term) -> Term:
    return divided(a, b) if a.element.is_float else truncated_quotient(a, b)


binary("Add", np.add, lambda a, b: a + b)
binary("Sub", np.subtract, lambda a, b: a - b)
binary("Mul", np.multiply, lambda a, b: a * b)
binary("Div", quotient, lowered_quotient)


def unary(name: str, function: Callable[[Array], Array], formula: Function, integers: bool = False) -> None:
    """An operator of one tensor."""
    class One(Operator):
        consumed_inputs: Ints = ()

        def reference(self, x: Array) -> Array:
            return np.asarray(function(x), x.dtype)

        def lower(self, e: Emitter, x: Value) -> Value:
            return evaluated(formula, e, (x,), integers=integers)
    One.__name__ = One.__qualname__ = name
    operator(name)(One)


unary("Neg", np.negative, lambda x: -x, integers=True)
unary("Abs", np.abs, absolute, integers=True)


def variadic(name: str, function: Callable[[Array, Array], Array], formula: Function) -> None:
    """An operator of one tensor or more, two after two."""
    class One(Operator):
        consumed_inputs: Ints = ()

        def reference(self, first: Array, *others: Array) -> Array:
            return reduce(function, others, first)

        def lower(self, e: Emitter, first: Value, *others: Value) -> Value:
            same_elements(first, *others)
            return reduce(lambda a, b: evaluated(formula, e, (a, b), integers=True), others, first)
    One.__name__ = One.__qualname__ = name
    operator(name)(One)


variadic("Min", np.minimum, minimum)
variadic("Max", np.maximum, maximum)
variadic("Sum", np.add, lambda a, b: a + b)


@operator("Mean")
class Mean(Operator):
    consumed_inputs: Ints = ()

    def reference(self, first: Array, *others: Array) -> Array:
        return np.asarray(reduce(np.add, others, first) / np.asarray(1 + len(others), first.dtype), first.dtype)

    def lower(self, e: Emitter, first: Value, *others: Value) -> Value:
        same_elements(first, *others)

        def mean(*terms: Term) -> Term:
            total = reduce(lambda a, b: a + b, terms)
            return divided(total, total.term(len(terms)))
        return evaluated(mean, e, (first, *others))
