"""Activation functions, including softmax."""
from __future__ import annotations

import math

from .....runtime.errors import require
from ....formulas.rounding import clamp
from ....formulas.softmax import log_softmax, softmax
from ....formulas.term import Term, absolute, exp, maximum, minimum, select
from ....formulas.transcendental import expm1_below_half, log1p
from ....graph.foreign import number
from ....graph.graph import Operation, Value
from ...emitter import Emitter
from .formula import formula
from .table import legalization

SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772
"""Constants of SELU, from G. Klambauer et al., Self-Normalizing Neural Networks, 2017."""


@legalization("tf.Relu")
def relu(e: Emitter, operation: Operation, x: Value) -> Value:
    return clamp(Term(e, x), 0, math.inf).value


@legalization("tf.Relu6")
def relu6(e: Emitter, operation: Operation, x: Value) -> Value:
    return clamp(Term(e, x), 0, 6).value


@legalization("tf.LeakyRelu")
def leaky_relu(e: Emitter, operation: Operation, x: Value) -> Value:
    a = Term(e, x)
    return select(a > 0, a, a * number(operation, "alpha")).value


@formula("tf.Elu")
def elu(x: Term) -> Term:
    return select(x < 0, expm1_below_half(minimum(x, 0)), x)


@formula("tf.Selu")
def selu(x: Term) -> Term:
    return select(x < 0, expm1_below_half(minimum(x, 0)) * (SELU_SCALE * SELU_ALPHA), x * SELU_SCALE)


@formula("tf.Softplus")
def softplus(x: Term) -> Term:
    return maximum(x, 0) + log1p(exp(-absolute(x)))


@formula("tf.Softsign")
def softsign(x: Term) -> Term:
    return x / (absolute(x) + 1)


# ---- along the last axis -----------------------------------------------------------------------------------------
def last_axis(x: Term) -> int:
    require(x.value.tensor.rank > 0, "it needs an axis, its operand has rank 0", kind="shape")
    return x.value.tensor.rank - 1


@formula("tf.Softmax")
def softmax_of_rows(x: Term) -> Term:
    return softmax(x, last_axis(x))


@formula("tf.LogSoftmax")
def log_softmax_of_rows(x: Term) -> Term:
    return log_softmax(x, last_axis(x))
