"""Comparisons, logic, bits, tests of floats, and selection between two tensors."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....runtime.errors import Problem
from ...formulas.term import Term, absolute, select
from ...graph.graph import Value
from ...graph.types import I1, I64, UI64, Array
from ..emitter import Emitter
from .arithmetic import TOP, Binary, same_elements
from .operator import Operator, operator

Compare = Callable[[Term, Term], Term]


def comparison(name: str, function: Callable[[Array, Array], Array], compare: Compare) -> None:
    class One(Binary):
        def reference(self, a: Array, b: Array) -> Array:
            return np.asarray(function(a, b.reshape(b.shape + (1,) * self.aligned(a.ndim, b.ndim))))

        def lower(self, e: Emitter, a: Value, b: Value) -> Value:
            same_elements(a, b)
            x, y = (Term(e, comparable(e, v)) for v in e.same_rank(a, self.same_axes(e, a, b)))
            return compare(x, y).value
    One.__name__ = One.__qualname__ = name
    operator(name)(One)


def comparable(e: Emitter, x: Value) -> Value:
    """Return numbers in a type that TOSA can compare, in the same order."""
    element = x.tensor.element
    if element == UI64:
        wide = Term(e, e.cast(x, I64))
        return (wide ^ wide.term(TOP)).value
    return e.cast(x, I64) if element.kind == "unsigned" and element.bits == 32 else x


comparison("Less", np.less, lambda x, y: x < y)
comparison("LessOrEqual", np.less_equal, lambda x, y: x <= y)
comparison("Greater", np.greater, lambda x, y: x > y)
comparison("GreaterOrEqual", np.greater_equal, lambda x, y: x >= y)
comparison("Equal", np.equal, lambda x, y: x.equals(y))


# ---- logic and bits ------------------------------------------------------------------------------------------------------
def logic(name: str, function: Callable[[Array, Array], Array], combine: Compare, of_bools: bool) -> None:
    class One(Binary):
        def reference(self, a: Array, b: Array) -> Array:
            return np.asarray(function(a, b.reshape(b.shape + (1,) * self.aligned(a.ndim, b.ndim))))

        def lower(self, e: Emitter, a: Value, b: Value) -> Value:
            same_elements(a, b)
            if of_bools != (a.tensor.element == I1) or a.tensor.element.is_float:
                raise Problem(f"it takes {'bools' if of_bools else 'integers'}, not {a.tensor.element}", kind="type")
            x, y = (Term(e, v) for v in e.same_rank(a, self.same_axes(e, a, b)))
            return combine(x, y).value
    One.__name__ = One.__qualname__ = name
    operator(name)(One)


for prefix, of_bools in (("", True), ("Bitwise", False)):
    logic(f"{prefix}And", np.bitwise_and, lambda x, y: x & y, of_bools)
    logic(f"{prefix}Or", np.bitwise_or, lambda x, y: x | y, of_bools)
    logic(f"{prefix}Xor", np.bitwise_xor, lambda x, y: x ^ y, of_bools)


@operator("Not", "BitwiseNot")
class Not(Operator):
    def reference(self, x: Array) -> Array:
        return np.invert(x)

    def lower(self, e: Emitter, x: Value) -> Value:
        return (~Term(e, x)).value


@operator("BitShift")
class BitShift(Operator):
    """Shifts by the width of a number or more leave only the sign; a negative distance counts as such a shift."""
    direction: str

    def reference(self, x: Array, by: Array) -> Array:
        width = 8 * x.dtype.itemsize
        shift = np.left_shift if self.direction == "LEFT" else np.right_shift
        is_beyond = (by >= width) | (by < 0)
        found = shift(x, np.where(is_beyond, np.asarray(width - 1, by.dtype), by))
        keeps_sign = x.dtype.kind == "i" and self.direction != "LEFT"
        return np.asarray(found if keeps_sign else np.where(is_beyond, 0, found), x.dtype)

    def lower(self, e: Emitter, x: Value, by: Value) -> Value:
        if self.direction not in ("LEFT", "RIGHT"):
            raise Problem(f"the direction {self.direction} is not known", kind="attribute", help="LEFT or RIGHT")
        same_elements(x, by)
        width = x.tensor.element.bits
        a, b = (Term(e, e.cast(v, I64)) for v in e.same_rank(x, by))
        beyond = (b >= width) | (b < 0)
        if self.direction != "LEFT" and x.tensor.element.kind == "signed":
            return e.cast((a >> select(beyond, b.term(width - 1), b)).value, x.tensor.element)
        inside = select(beyond, b.term(0), b)
        if self.direction == "LEFT":
            moved = a << inside
        else:
            moved = a.of(e("logical_right_shift", a.value, inside.value))
        return e.cast(select(beyond, moved.term(0), moved).value, x.tensor.element)


# ---- tests ---------------------------------------------------------------------------------------------------------------
@operator("IsNaN")
class IsNaN(Operator):
    def reference(self, x: Array) -> Array:
        return np.isnan(x)

    def lower(self, e: Emitter, x: Value) -> Value:
        a = Term(e, x)
        return (~a.equals(a)).value


@operator("IsInf")
class IsInf(Operator):
    detect_negative: int = 1
    detect_positive: int = 1

    def reference(self, x: Array) -> Array:
        return np.asarray((np.isposinf(x) & bool(self.detect_positive)) | (np.isneginf(x) & bool(self.detect_negative)))

    def lower(self, e: Emitter, x: Value) -> Value:
        a = Term(e, x)
        if self.detect_negative and self.detect_positive:
            return absolute(a).equals(np.inf).value
        return a.equals(np.inf if self.detect_positive else -np.inf if self.detect_negative else np.nan).value


@operator("Where")
class Where(Operator):
    def reference(self, condition: Array, x: Array, y: Array) -> Array:
        return np.where(condition, x, y)

    def lower(self, e: Emitter, condition: Value, x: Value, y: Value) -> Value:
        same_elements(x, y)
        return e.select(condition, x, y)
