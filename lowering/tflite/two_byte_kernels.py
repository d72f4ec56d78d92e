"""TensorFlow Lite operators on 16-bit integers, computed step by step as its reference kernels do: a converter's TOSA is one or
two steps off.

LOGISTIC and TANH interpolate one table of the sigmoid function, of 256 entries for operands without sign; SOFTMAX, EXP and LOG
use tables of 513. FULLY_CONNECTED rounds sums with a 31-bit scale, where a converter has 15 bits. Pools keep the activation
that a converter drops.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..formulas.rounding import clamp
from ..formulas.term import Term, absolute, minimum, select
from ..formulas.tosa_builder import TosaBuilder
from ..formulas.windows import fitted, same_pads
from ..graph.graph import Value
from ..graph.types import I8, I16, I32, I48, Array
from .constants import array_of
from .interpolated_tables import LEAST, MOST, STEPS, interpolated_table, looked_up
from .records import OperatorRecord, SubgraphRecord, TensorRecord
from .schema import ELEMENTS

WHOLE = 1 << 16

POOLS = ("AVERAGE_POOL_2D", "MAX_POOL_2D")
RELU, RELU_N1_TO_1, RELU6 = 1, 2, 3
"""Activations, by their number."""


def is_two_byte_kernel(graph: SubgraphRecord, operator: OperatorRecord) -> bool:
    """True if this module lowers an operator: one of these, on 16-bit tensors with a scale."""
    if len(operator.outputs) != 1 or not operator.inputs or min(operator.inputs[:2]) < 0:
        return False
    x, result = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    if any(ELEMENTS.get(t.type) != I16 or t.scale is None or not t.scale > 0 or t.zero_point for t in (x, result)):
        return False
    match operator.kind:
        case "LOGISTIC" | "TANH":
            return True
        case "SOFTMAX":
            return bool(x.shape)
        case "EXP" | "LOG":
            return True
        case "PRELU":
            alpha = graph.tensors[operator.inputs[1]]
            return (ELEMENTS.get(alpha.type) in (I8, I16) and alpha.scale is not None and not alpha.zero_point
                    and len(alpha.shape) <= len(x.shape))
        case "AVERAGE_POOL_2D" | "MAX_POOL_2D":
            return operator.options["activation"] in (RELU, RELU_N1_TO_1, RELU6) and None not in x.shape[1:]
        case "FULLY_CONNECTED":
            return fits(graph, operator)
    return False


def write_two_byte_kernel(e: TosaBuilder, graph: SubgraphRecord, operator: OperatorRecord, operands: Sequence[Value]) -> Value:
    """Return the result of such an operator."""
    x = operands[0]
    record, result = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    assert record.scale is not None and result.scale is not None, "is_two_byte_kernel has seen it"
    match operator.kind:
        case "LOGISTIC":
            return logistic(Term(e, x), record.scale)
        case "TANH":
            return tanh(Term(e, x), record.scale)
        case "SOFTMAX":
            return softmax(e, x, record.scale * np.float32(operator.options["beta"]))
        case "FULLY_CONNECTED":
            return fully_connected(e, graph, operator, x)
        case "PRELU":
            return prelu(e, operands, record.scale, graph.tensors[operator.inputs[1]].scale, result.scale)
        case kind if kind in POOLS:
            return pool(e, operator, x, result)
    least = float(np.float32(result.scale * np.float32(LEAST)))
    function = np.exp if operator.kind == "EXP" else lambda a: np.where(a > 0, np.log(a), least)
    table = interpolated_table(function, record.scale, 0, result.scale)
    return looked_up(e, x, table).cast(I16).value


# ---- sigmoid functions -----------------------------------------------------------------------------------------------
ENTRIES = 256


def sigmoids() -> Array:
    """Return the sigmoid function of every 24th, in units of 2 ** -16: half of the error in the middle between an entry and the
    next one corrects each entry; the last one is the greatest 16-bit number."""
    ends, middles = (WHOLE / (1 + np.exp(-(np.arange(ENTRIES) + shift) / 24)) for shift in (0, 0.5))
    entries = np.round(ends[:-1] + (middles[:-1] - (ends[1:] + ends[:-1]) / 2) / 2)
    return np.array([*entries, WHOLE - 1], np.int64)


def logistic(x: Term, scale: np.float32) -> Value:
    """Return the sigmoid of x in units of 2 ** -15."""
    place = placed(x, scale, (0,))
    found = above_half(absolute(place), 9, WHOLE - 2)
    half = 1 << 24
    return ((select(place < 0, -1 - found, found) + (half + (1 << 9))) >> 10).cast(I16).value


def tanh(x: Term, scale: np.float32) -> Value:
    """Return 2 sigmoid(2 x) - 1, in units of 2 ** -15."""
    place = placed(x, scale, (0, 1))
    found = above_half(absolute(place), 8, WHOLE - 1)
    return ((select(place < 0, -1 - found, found) + (1 << 7)) >> 8).cast(I16).value


def placed(x: Term, scale: np.float32, exact: Sequence[int]) -> Term:
    """Return x in units of 1 / (3 * 4096): by a factor of 15 bits, which is exact for the units 2 ** (n - 12), n of `exact`."""
    power = math.log2(scale)
    if abs(power - round(power)) < 1e-3 and round(power) + 12 in exact:
        return x.cast(I32) * (3 << round(power) + 12)
    factor, shift = float(scale) * 4096.0 * 3.0, 0
    while factor <= 32767 / 2 and shift <= 30:
        factor, shift = 2 * factor, shift + 1
    product = x.cast(I32) * int(factor)
    return product.apply("arithmetic_right_shift", shift, round=True) if shift else product


def above_half(size: Term, bits: int, last: int) -> Term:
    """Return the sigmoid function less a half, in units of 2 ** -(16 + bits); `bits` of these bits interpolate between two
    entries. `last` is the last entry, beyond which the function is constant."""
    half, e, entries = WHOLE // 2, size.builder, sigmoids()
    values, steps = np.zeros((2, STEPS + 1), np.int16)
    values[:ENTRIES], steps[:ENTRIES - 1] = [*(entries[:-1] - half), last - half], np.diff(entries)
    held = minimum(size, (ENTRIES - 1) << bits)
    entry = (((held >> bits) << 7) + LEAST).cast(I16).value
    value, step = (looked_up(e, entry, table) for table in (values, steps))
    return (value << bits) + (held & (1 << bits) - 1) * step


# ---- softmax ---------------------------------------------------------------------------------------------------------
DEEPEST = 10.0
"""Largest difference from the greatest element that counts: the exponential of larger differences is that of this one."""


def softmax(e: TosaBuilder, x: Value, scale: np.float32) -> Value:
    """Return the softmax along the last axis, in units of 2 ** -15, by tables of the exponential and of 1 / (1 + x)."""
    last, unit = x.tensor.rank - 1, np.float64(1) / (WHOLE - 1)
    wide = Term(e, e.cast(x, I32))
    steps = in_fixed_point(wide - wide.reduced("reduce_max", last), float(scale) / (DEEPEST / (WHOLE - 1)))
    exponentials = interpolated_table(np.exp, DEEPEST * unit, MOST, 2 * unit)
    powers = looked_up(e, clamp(steps + MOST, LEAST, MOST).cast(I16).value, exponentials)
    total = powers.reduced("reduce_sum", last)
    room = total.apply("clz")
    rest = (((total << (room - 1)) - (1 << 30)).apply("arithmetic_right_shift", 14, round=True) - (1 << 15))
    inverses = interpolated_table(lambda a: 1 / (1 + a), unit, LEAST, 2 * unit)
    inverse = looked_up(e, clamp(rest, LEAST, MOST).cast(I16).value, inverses)
    found = (powers * inverse).apply("arithmetic_right_shift", room.term(31) - room, round=True)
    return clamp(found, 0, MOST).cast(I16).value


# ---- two slopes ------------------------------------------------------------------------------------------------------
def prelu(e: TosaBuilder, operands: Sequence[Value], scale: np.float32, slope: np.float32 | None, result: np.float32) -> Value:
    """Return x if it is positive, else x times its slope: both rescaled to the result's scale."""
    assert slope is not None, "is_two_byte_kernel has seen it"
    x, alpha = (Term(e, e.cast(v, I32)) for v in e.same_rank(*operands))
    positive, negative = in_fixed_point(x, float(scale / result)), in_fixed_point(x * alpha, float(scale * slope / result))
    return clamp(select(x >= 0, positive, negative), LEAST, MOST).cast(I16).value


# ---- fixed point -----------------------------------------------------------------------------------------------------
def multiplier_of(factor: float) -> tuple[int, int]:
    """Return a factor as a 31-bit integer and the number of bits by which its products are shifted right."""
    fraction, exponent = math.frexp(factor)
    multiplier = math.floor(fraction * (1 << 31) + 0.5)
    if multiplier == 1 << 31:
        multiplier, exponent = 1 << 30, exponent + 1
    return multiplier, min(max(31 - exponent, 2), 62)


def in_fixed_point(x: Term, *factors: float, rounding_mode: str = "DOUBLE_ROUND") -> Term:
    """Return x * factor of i32, with one factor or one for each element of the last axis, rounded twice as the kernels do."""
    multipliers, shifts = zip(*map(multiplier_of, factors))
    e, zero = x.builder, x.builder.constant(np.zeros(1, np.int32))
    constants = e.constant(np.array(multipliers, np.int32)), e.constant(np.array(shifts, np.int8))
    return x.of(e("rescale", x.value, *constants, zero, zero, to=I32, scale32=True, rounding_mode=rounding_mode,
                  per_channel=len(factors) > 1, input_unsigned=False, output_unsigned=False))


def limits(activation: int | float | str, scale: np.float32) -> tuple[int, int]:
    """Return the range of integers after an activation."""
    steps = {n: math.floor(float(np.float32(n) / scale) + 0.5) for n in (1, 6)}
    low, high = {RELU: (0, MOST), RELU_N1_TO_1: (-steps[1], steps[1]), RELU6: (0, steps[6])}.get(int(activation), (LEAST, MOST))
    return max(low, LEAST), min(high, MOST)


# ---- sums of products ------------------------------------------------------------------------------------------------
def fits(graph: SubgraphRecord, operator: OperatorRecord) -> bool:
    """True if the sums of a FULLY_CONNECTED with constant weights fit 32 bits, and its scales reduce them."""
    x, weight, *bias = (graph.tensors[t] for t in operator.inputs if t >= 0)
    result = graph.tensors[operator.outputs[0]]
    shape = weight.shape
    if any(t.data is None for t in (weight, *bias)) or len(shape) != 2 or ELEMENTS.get(weight.type) != I8:
        return False
    if weight.scales is None or len(weight.scales) not in (1, shape[0]) or np.any(weight.zero_points):
        return False
    if None in x.shape[1:] or None in result.shape[1:] or x.shape[-1:] != shape[1:] or operator.options["weights_format"]:
        return False
    total = np.abs(array_of(weight).astype(np.int64)).sum(1) * -LEAST + (np.abs(array_of(bias[0])) if bias else 0)
    return bool(total.max(initial=0) < 1 << 31) and max(factors_of(x, weight, result)) < 1


def factors_of(x: TensorRecord, weight: TensorRecord, result: TensorRecord) -> list[float]:
    assert x.scale is not None and weight.scales is not None and result.scale is not None, "fits has seen it"
    return [float(x.scale) * float(scale) / float(result.scale) for scale in weight.scales]


def fully_connected(e: TosaBuilder, graph: SubgraphRecord, operator: OperatorRecord, x: Value) -> Value:
    """Return x times a matrix: exact sums, rescaled to the result's scale and rounded once, halves away from zero."""
    record, weight, *bias = (graph.tensors[t] for t in operator.inputs if t >= 0)
    result = graph.tensors[operator.outputs[0]]
    filters = array_of(weight)
    outputs, inputs = filters.shape
    added = array_of(bias[0]).astype(np.int64) if bias else np.zeros(outputs, np.int64)
    zeros = e.constant(np.zeros(1, np.int16)), e.constant(np.zeros(1, np.int8))
    sums = e("conv2d", e.reshape(x, (None, 1, 1, inputs)), e.constant(filters.reshape(outputs, 1, 1, inputs)),
             e.constant(added, I48), *zeros, pad=(0, 0, 0, 0), stride=(1, 1), dilation=(1, 1), acc_type=I48)
    wide = whole(e, sums)
    found = in_fixed_point(absolute(wide), *factors_of(record, weight, result), rounding_mode="SINGLE_ROUND")
    assert result.scale is not None, "is_two_byte_kernel has seen it"
    held = clamp(select(wide < 0, -found, found), *limits(operator.options["activation"], result.scale))
    return e.reshape(held.cast(I16).value, result.shape)


def whole(e: TosaBuilder, x: Value) -> Term:
    """Return 48-bit sums that fit 32 bits in 32 bits."""
    constants = e.constant(np.array([4], np.int16)), e.constant(np.array([2], np.int8))
    zeros = e.constant(np.zeros(1, np.int64), I48), e.constant(np.zeros(1, np.int32))
    return Term(e, e("rescale", x, *constants, *zeros, to=I32, scale32=False, rounding_mode="SINGLE_ROUND",
                     per_channel=False, input_unsigned=False, output_unsigned=False))


# ---- pools -----------------------------------------------------------------------------------------------------------
def pool(e: TosaBuilder, operator: OperatorRecord, x: Value, result: TensorRecord) -> Value:
    """Return a pool with an activation."""
    options = operator.options
    kernel, strides = ([int(options[f"{name}_{side}"]) for side in "hw"] for name in ("filter", "stride"))
    pads = [(0, 0)] * 2 if options["padding"] else [same_pads(*n) for n in zip(x.tensor.dims[1:3], kernel, strides)]
    held, fitting = fitted(e, x, pads, kernel, strides)
    attributes = {"kernel": tuple(kernel), "stride": tuple(strides), "pad": tuple(n for pair in fitting for n in pair)}
    if operator.kind == "MAX_POOL_2D":
        found = e("max_pool2d", held, **attributes)
    else:
        zero = e.zero_point(I16)
        found = e("avg_pool2d", held, zero, zero, acc_type=I32, **attributes)
    assert result.scale is not None, "is_two_byte_kernel has seen it"
    return clamp(Term(e, found), *limits(options["activation"], result.scale)).value
