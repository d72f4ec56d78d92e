"""TensorFlow's divisions, remainders and roots: quotients of floats are exact, integer division truncates unless the
operation's name names another rounding."""
from __future__ import annotations

from ....formulas.division import (
    divided,
    float_remainder,
    floored_quotient,
    integer_remainder,
    is_below,
    square_root,
    truncated_quotient,
)
from ....formulas.term import Term, reciprocal, select
from ....formulas.working_types import evaluated
from ....graph.graph import Operation, Value
from ...emitter import Emitter
from .formula import formula
from .table import legalization


@formula("tf.RealDiv")
def real_div(x: Term, y: Term) -> Term:
    return divided(x, y)


@formula("tf.Div", "tf.TruncateDiv", integers=True)
def truncate_div(x: Term, y: Term) -> Term:
    return divided(x, y) if x.element.is_float else truncated_quotient(x, y)


@legalization("tf.FloorDiv")
def floor_div(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    """Emit a floored quotient. A quotient of floats is rounded to their type first, as in TensorFlow."""
    if x.tensor.element.is_float:
        return e("floor", evaluated(divided, e, [x, y]))
    return evaluated(floored_quotient, e, [x, y], integers=True)


@formula("tf.TruncateMod", "tf.Mod", integers=True)
def truncate_mod(x: Term, y: Term) -> Term:
    return float_remainder(x, y) if x.element.is_float else integer_remainder(x, y)


@formula("tf.FloorMod", integers=True)
def floor_mod(x: Term, y: Term) -> Term:
    rest = truncate_mod(x, y)
    return select(is_below(rest, y), rest + y, rest)


@formula("tf.DivNoNan")
def div_no_nan(x: Term, y: Term) -> Term:
    """0 where y is 0."""
    is_zero = y.equals(0)
    return select(is_zero, x.term(0), divided(x, select(is_zero, y.term(1), y)))


@formula("tf.Xdivy")
def xdivy(x: Term, y: Term) -> Term:
    """0 where x is 0."""
    return select(x.equals(0), x.term(0), divided(x, y))


@legalization("tf.Reciprocal", "tf.Inv")
def inverse(e: Emitter, operation: Operation, x: Value) -> Value:
    return evaluated(reciprocal, e, [x])


@formula("tf.Sqrt")
def root(x: Term) -> Term:
    return square_root(x)
