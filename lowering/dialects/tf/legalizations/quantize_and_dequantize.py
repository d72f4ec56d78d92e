"""QuantizeAndDequantize: numbers rounded to steps that include zero, by a scale from a given range, or from that of the tensor.

The side of the range that needs the coarser steps decides the scale. A range that is known at compile time is computed here,
with TensorFlow's own roundings; others by operators, whose quotients are products by reciprocals.
"""
from __future__ import annotations

import numpy as np

from .....runtime.errors import Problem
from .....runtime.records import dataclass
from ....formulas.rounding import nearest_even
from ....formulas.working_types import evaluated
from ....graph.foreign import find, flag, number
from ....graph.graph import Operation, Value
from ....graph.types import F32, Array
from ...emitter import Emitter, integers
from .table import legalization

MAGIC = 1.5 * 2.0 ** 23
"""A number that rounds: adding it to a float32 of at most half its magnitude rounds the sum to a whole number, ties to even."""
MOST_BITS = 22


@dataclass(frozen=True, slots=True)
class StepScale:
    """Steps per unit, the step, and the range; they broadcast to the rounded tensor."""
    scale: Value
    inverse: Value
    low: Value
    high: Value


@legalization("tf.QuantizeAndDequantizeV2", "tf.QuantizeAndDequantizeV3", "tf.QuantizeAndDequantizeV4")
def quantize_and_dequantize(e: Emitter, operation: Operation, x: Value, low: Value, high: Value, *bits: Value) -> Value:
    """Round to steps. V3 has the number of bits as an operand."""
    least, most = steps(operation, bits)
    axis = int(number(operation, "axis", -1))
    given = bool(find(operation, "range_given") is not None and flag(operation, "range_given"))
    if not -1 <= axis < x.tensor.rank:
        raise Problem(f"axis {axis} is not one of {x.type}", kind="attribute")
    low, high = (along(e, v, x, axis) for v in (low, high)) if given else (extreme(e, n, x, axis) for n in ("min", "max"))
    found = known(e, low.constant, high.constant, least, most) if low.constant is not None and high.constant is not None \
        else computed(e, low, high, least, most)
    inside = e.arithmetic("maximum", e.arithmetic("minimum", x, found.high), found.low) if given else x
    return e.product(rounded(e, operation, e.product(inside, found.scale)), found.inverse)


def steps(operation: Operation, operand: tuple[Value, ...]) -> tuple[int, int]:
    """Return the least and the greatest number of steps."""
    bits = integers(operand[0], "the number of bits")[0] if operand else int(number(operation, "num_bits", 8))
    signed = find(operation, "signed_input") is None or flag(operation, "signed_input")
    if not 1 + signed <= bits <= MOST_BITS:
        raise Problem(f"{bits} bits: there may be {1 + signed} to {MOST_BITS}", kind="unsupported")
    if not signed:
        return 0, (1 << bits) - 1
    narrow = find(operation, "narrow_range") is not None and flag(operation, "narrow_range")
    return -(1 << (bits - 1)) + narrow, (1 << (bits - 1)) - 1


def along(e: Emitter, bound: Value, x: Value, axis: int) -> Value:
    """Return one bound, or one for each index of the axis, with the rank of x."""
    if bound.tensor.size == 1:
        return e.reshape(bound, (1,) * x.tensor.rank)
    if axis < 0 or bound.tensor.dims != (x.tensor.dims[axis],):
        raise Problem(f"a bound is {bound.type}, for {x.type}", kind="shape")
    return e.reshape(bound, [n if a == axis else 1 for a, n in enumerate(x.tensor.dims)])


def extreme(e: Emitter, which: str, x: Value, axis: int) -> Value:
    """Return the extreme of the tensor over all axes but one."""
    for other in range(x.tensor.rank):
        x = x if other == axis else e(f"reduce_{which}", x, axis=other)
    return x


def known(e: Emitter, low: Array, high: Array, least: int, most: int) -> StepScale:
    dtype = low.dtype.type
    largest = np.finfo(dtype).max
    with np.errstate(all="ignore"):
        below = np.where(dtype(least) * low > 0, dtype(least) / low, largest)
        above = np.where(dtype(most) * high > 0, dtype(most) / high, largest)
        by_low = below < above
        inverse = np.where(by_low, low / dtype(least), high / dtype(most))
        first, last = np.where(by_low, low, dtype(least) * inverse), np.where(by_low, dtype(most) * inverse, high)
    return StepScale(*(e.constant(np.asarray(v, dtype)) for v in (np.where(by_low, below, above), inverse, first, last)))


def computed(e: Emitter, low: Value, high: Value, least: int, most: int) -> StepScale:
    largest = e.splat(np.finfo(low.tensor.element.dtype).max, low)

    def side(bound: Value, count: int) -> Value:
        is_there = e.arithmetic("greater", e.product(bound, e.splat(count, bound)), e.splat(0, bound))
        return e.select(is_there, e.quotient(e.splat(count, bound), e.select(is_there, bound, e.splat(1, bound))), largest)

    below, above = side(low, least), side(high, most)
    by_low = e.arithmetic("greater", above, below)
    inverse = e.product(high, e.splat(1 / most, high))
    if least:
        inverse = e.select(by_low, e.product(low, e.splat(1 / least, low)), inverse)
    return StepScale(e.select(by_low, below, above), inverse, e.select(by_low, low, e.product(inverse, e.splat(least, low))),
                     e.select(by_low, e.product(inverse, e.splat(most, low)), high))


def rounded(e: Emitter, operation: Operation, x: Value) -> Value:
    match find(operation, "round_mode", "HALF_TO_EVEN"):
        case "HALF_TO_EVEN":
            if x.tensor.element != F32:
                return evaluated(nearest_even, e, [x])
            return e.difference(e.sum(x, e.splat(MAGIC, x)), e.splat(MAGIC, x))
        case "HALF_UP":
            return e("floor", e.sum(x, e.splat(0.5, x)))
        case other:
            raise Problem(f"the rounding {other} is not known", kind="unsupported", help="HALF_TO_EVEN or HALF_UP")
