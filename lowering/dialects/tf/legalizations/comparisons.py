"""Comparisons, tests of floats, logic, and selection between two tensors."""
from __future__ import annotations

import math
from collections.abc import Callable

from .....runtime.errors import Problem, require
from ....formulas.term import Term, absolute
from ....graph.graph import Operation, Value
from ....graph.types import I1
from ...emitter import Emitter
from .table import legalization

Comparison = Callable[[Term, Term], Term]


def comparison(compare: Comparison, *names: str) -> None:
    """Register a comparison of numbers for these operations; half floats and narrow integers are compared without widening."""
    @legalization(*names)
    def emit(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
        require(x.tensor.element != I1, "bools have no order")
        return compare(Term(e, x), Term(e, y)).value


comparison(lambda x, y: x < y, "tf.Less")
comparison(lambda x, y: x <= y, "tf.LessEqual")
comparison(lambda x, y: x > y, "tf.Greater")
comparison(lambda x, y: x >= y, "tf.GreaterEqual")


@legalization("tf.Equal")
def equal(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    return Term(e, x).equals(Term(e, y)).value


@legalization("tf.NotEqual")
def not_equal(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    return Term(e, x).differs(Term(e, y)).value


def question(about: Callable[[Term], Term], *names: str) -> None:
    """Register a test of each float for these operations."""
    @legalization(*names)
    def emit(e: Emitter, operation: Operation, x: Value) -> Value:
        require(x.tensor.element.is_float, f"it takes floats, not {x.tensor.element}")
        return about(Term(e, x)).value


question(lambda x: ~x.equals(x), "tf.IsNan")
question(lambda x: absolute(x).equals(math.inf), "tf.IsInf")
question(lambda x: absolute(x) < math.inf, "tf.IsFinite")


@legalization("tf.LogicalAnd")
def logical_and(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    return e.arithmetic("logical_and", x, y)


@legalization("tf.LogicalOr")
def logical_or(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    return e.arithmetic("logical_or", x, y)


@legalization("tf.LogicalNot")
def logical_not(e: Emitter, operation: Operation, x: Value) -> Value:
    return e("logical_not", x)


@legalization("tf.SelectV2")
def select(e: Emitter, operation: Operation, condition: Value, x: Value, y: Value) -> Value:
    """Select elements; the three operands broadcast together."""
    return e.select(condition, x, y)


@legalization("tf.Select")
def select_rows(e: Emitter, operation: Operation, condition: Value, x: Value, y: Value) -> Value:
    """Select whole rows by a condition of rank 1; otherwise there is one bool, or one for each element."""
    if x.tensor.dims != y.tensor.dims:
        raise Problem(f"the two tensors must have one shape, they are {x.type} and {y.type}", kind="shape")
    if condition.tensor.rank == 1 < x.tensor.rank:
        condition = e.reshape(condition, (*condition.tensor.dims, *(1,) * (x.tensor.rank - 1)))
    return e.select(condition, x, y)
