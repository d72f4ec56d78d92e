"""Quantisation as simulated in training: numbers that a scale of a given number of bits can hold, in float32 throughout.

The range is nudged so that zero is one of its steps. A range that is known at compile time is nudged here, with TensorFlow's
own roundings. Operators nudge a range that is known only at run time, and compute a quotient as a product by a reciprocal: a
number half way between two steps may then round to the other one.
"""
from __future__ import annotations

import numpy as np

from .....runtime.errors import Problem
from .....runtime.records import dataclass
from ....graph.foreign import flag, number
from ....graph.graph import Operation, Value
from ...emitter import Emitter
from .table import legalization

F = np.float32


@dataclass(frozen=True, slots=True)
class NudgedRange:
    """Bounds of a nudged range, the step, its inverse, and the number of steps below zero: values that broadcast to the
    quantised tensor."""
    low: Value
    high: Value
    step: Value
    inverse: Value
    zero: Value


@legalization("tf.FakeQuantWithMinMaxArgs")
def by_arguments(e: Emitter, operation: Operation, x: Value) -> Value:
    low, high = F(number(operation, "min", -6)), F(number(operation, "max", 6))
    if not low < high:
        raise Problem(f"the range from {low} to {high} is empty", kind="attribute")
    return rounded(e, x, nudged(e, operation, e.constant(low), e.constant(high)))


@legalization("tf.FakeQuantWithMinMaxVars", "tf.FakeQuantWithMinMaxVarsPerChannel")
def by_values(e: Emitter, operation: Operation, x: Value, low: Value, high: Value) -> Value:
    """Quantise with one range, or one for each element of the last axis. A range from 0 to 0 gives zeros."""
    for bound in (low, high):
        if bound.tensor.dims not in ((), x.tensor.dims[-1:]):
            raise Problem(f"a bound is {bound.type}, for {x.type}", kind="shape")
    found = rounded(e, x, nudged(e, operation, low, high))
    empty = e("logical_and", *(e("equal", v, e.splat(0, v)) for v in (low, high)))
    return found if empty.constant is not None and not empty.constant.any() else e.select(empty, e.splat(0, x), found)


def steps(operation: Operation) -> tuple[F, F]:
    """Return the first step and the last."""
    bits = int(number(operation, "num_bits", 8))
    if not 2 <= bits <= 16:
        raise Problem(f"num_bits is {bits}, it must be from 2 to 16", kind="attribute")
    return F(flag(operation, "narrow_range")), F((1 << bits) - 1)


def nudged(e: Emitter, operation: Operation, low: Value, high: Value) -> NudgedRange:
    """Return the range from `low` to `high`, moved by less than a step."""
    least, most = steps(operation)
    if low.constant is not None and high.constant is not None:
        return known(e, low.constant, high.constant, least, most)
    width = e.difference(high, low)
    step, inverse = e.product(width, e.splat(1 / (most - least), width)), e.quotient(e.splat(most - least, width), width)
    first, last = e.splat(least, width), e.splat(most, width)
    raw = e.difference(first, e.product(low, inverse))
    zero = e("maximum", first, e("minimum", last, floor_half(e, raw)))
    low, high = (e.product(e.difference(v, zero), step) for v in (first, last))
    return NudgedRange(low, high, step, inverse, e.difference(zero, first))


def known(e: Emitter, low: np.ndarray, high: np.ndarray, least: F, most: F) -> NudgedRange:
    """Return the same range for constants, rounded as in TensorFlow."""
    with np.errstate(all="ignore"):
        step, inverse = ((high - low) / (most - least)).astype(F), ((most - least) / (high - low)).astype(F)
        raw = least - low / step
        zero = np.where(raw < least, least, np.where(raw > most, most, np.floor(raw + F(0.5)))).astype(F)
        first, last = (least - zero) * step, (most - zero) * step
        return NudgedRange(*(e.constant(np.asarray(v, F)) for v in (first, last, step, inverse,
                                                                    np.floor(-first * inverse + F(0.5)))))


def rounded(e: Emitter, x: Value, r: NudgedRange) -> Value:
    """Return x rounded to the nearest step of the range, halves up."""
    inside = e.difference(e.arithmetic("maximum", e.arithmetic("minimum", x, r.high), r.low), r.low)
    return e.product(floor_half(e, e.difference(e.product(inside, r.inverse), r.zero)), r.step)


def floor_half(e: Emitter, x: Value) -> Value:
    return e("floor", e.sum(x, e.splat(0.5, x)))
