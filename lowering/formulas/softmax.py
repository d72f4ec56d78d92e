"""Softmax and its logarithm along an axis. The greatest element is taken off first, so that no exponential overflows and one of
them is 1; of integers before they become f32, because their differences are smaller than they."""
from __future__ import annotations

from ..graph.types import I32
from .term import Term, exp, in_float, log
from .tosa_builder import is_narrow


def wide(x: Term) -> Term:
    """x in a type that holds the differences of its elements; of i32 those below 2**31."""
    return x.cast(I32) if is_narrow(x.element) else x


def shifted(x: Term, axis: int) -> Term:
    """x less the greatest along the axis, a float."""
    x = wide(x)
    return in_float(x - x.reduced("reduce_max", axis))


def softmax(x: Term, axis: int) -> Term:
    powers = exp(shifted(x, axis))
    return powers / powers.reduced("reduce_sum", axis)


def log_softmax(x: Term, axis: int) -> Term:
    distance = shifted(x, axis)
    return distance - log(exp(distance).reduced("reduce_sum", axis))


def log_sum_exp(x: Term, axis: int) -> Term:
    """The logarithm of the sum of exponentials, the axis of extent 1."""
    x = wide(x)
    greatest = x.reduced("reduce_max", axis)
    return log(exp(in_float(x - greatest)).reduced("reduce_sum", axis)) + in_float(greatest)
