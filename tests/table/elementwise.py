"""Generators of the elementwise operators, of comparisons, CAST, TABLE and RESCALE."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import I1, I8, I16, I32, I48, BlockScaled, ElementType

from .combinations import Types
from .draft import NAN_MODES, Dims, Draft

Generator = Callable[[Draft, Types], Sequence[Value]]


def unary(name: str) -> Generator:
    return lambda d, types: [d.op(name, d.tensor(types[0], d.dims_of(types[0])))]


def operands(d: Draft, *elements: ElementType) -> list[Value]:
    """Operands that broadcast together; the second may be the first again."""
    shapes = d.together(len(elements))
    found = [d.tensor(elements[0], shapes[0])]
    for element, dims in zip(elements[1:], shapes[1:]):
        found.append(d.like(found[0], dims) if element == elements[0] else d.tensor(element, dims))
    return found


def binary(name: str) -> Generator:
    return lambda d, types: [d.op(name, *operands(d, types[0], types[0]))]


def nan_binary(name: str) -> Generator:
    return lambda d, types: [d.op(name, *operands(d, types[0], types[0]), nan_mode=d.choice(*NAN_MODES))]


def amounts(d: Draft, element: ElementType, dims: Dims) -> Value:
    return d.tensor(element, dims, (0, element.bits - 1))


def shift(name: str) -> Generator:
    def generator(d: Draft, types: Types) -> Sequence[Value]:
        a, b = d.together(2)
        attributes: dict[str, Any] = {"round": d.chance(0.6)} if name.startswith("arithmetic") else {}
        return [d.op(name, d.tensor(types[0], a), amounts(d, types[0], b), **attributes)]

    return generator


def intdiv(d: Draft, types: Types) -> Sequence[Value]:
    """No divisor is 0, and none is -1 where the dividend may be the least integer."""
    a, b = operands(d, types[0], types[0])
    if not d.hostile:
        d.change(b, lambda data: np.where(data == 0, 3, data))
        d.change(b, lambda data: np.where(data == -1, types[0].minimum if a is b else 1, data))
    return [d.op("intdiv", a, b)]


def power(d: Draft, types: Types) -> Sequence[Value]:
    """Of numbers that are not negative; a zero only to a positive power. The rest is not defined."""
    x, y = operands(d, types[0], types[0])
    if not d.hostile:
        d.change(x, np.abs)
    if d.mood in ("plain", "whole") and x is not y:
        d.change(y, lambda data: data * np.asarray(d.choice(0.5, 1.0, 4.0), data.dtype))
    return [d.op("pow", x, y)]


def mul(d: Draft, types: Types) -> Sequence[Value]:
    a, b = operands(d, types[0], types[0])
    amount = d.integer(0, 62) if types[0] == I32 else 0
    known = 0.7
    if d.hostile:
        amount, known = d.integer(-128, 127), 0.0
    return [d.op("mul", a, b, d.given(np.array([amount], np.int8), I8, known))]


def negate(d: Draft, types: Types) -> Sequence[Value]:
    element = types[0]
    return [d.op("negate", d.tensor(element, d.dims()), d.zero_point(element), d.zero_point(element))]


def clamp(d: Draft, types: Types) -> Sequence[Value]:
    element = types[0]
    attributes: dict[str, Any] = {"nan_mode": d.choice(*NAN_MODES)}
    bounds: list[float] = sorted(d.number(element) for _ in "ab")
    if d.chance(0.1):
        bounds = [bounds[0]] * 2
    return [d.op("clamp", d.tensor(element, d.dims()), min_val=bounds[0], max_val=bounds[1], **attributes)]


def selection(d: Draft, types: Types) -> Sequence[Value]:
    condition, yes, no = d.together(3)
    a = d.tensor(types[0], yes)
    return [d.op("select", d.tensor(I1, condition), a, d.like(a, no))]


def cast(d: Draft, types: Types) -> Sequence[Value]:
    dims = d.dims_of(next((t for t in types if isinstance(t, BlockScaled)), types[0]))
    return [d.op("cast", d.tensor(types[0], dims), to=types[1], input_unsigned=types[0].is_integer and d.chance(0.2))]


def table(d: Draft, types: Types) -> Sequence[Value]:
    entries = {I8: 256, I16: 513}.get(types[0], 256)
    return [d.op("table", d.tensor(types[0], d.dims()), d.tensor(types[1], (entries,), constant=0.6))]


# ---- rescale -----------------------------------------------------------------------------------------------------
def rescale(d: Draft, types: Types) -> Sequence[Value]:
    """Any legal choice of its modes, with multipliers and shifts that keep what the specification requires."""
    source, target = types
    x_unsigned, unsigned = signs(d, source, target)
    scale32 = source != I48 and d.chance(0.6)
    dims = d.dims()
    per_channel = bool(dims) and d.chance(0.5)
    x = d.tensor(source, dims)
    bits = source.bits + (source.bits <= 16)  # of the value less its zero point
    multiplier, amount = factors(d, dims[-1] if per_channel else 1, scale32, bits, source.bits - target.bits)
    mode = d.choice("SINGLE_ROUND", "INEXACT_ROUND", *(["DOUBLE_ROUND"] * (2 * scale32)))
    return [d.op("rescale", x, multiplier, amount, point(d, source, x_unsigned), point(d, target, unsigned), scale32=scale32,
                 rounding_mode=mode, per_channel=per_channel, input_unsigned=x_unsigned, output_unsigned=unsigned,
                 to=target)]


def signs(d: Draft, source: ElementType, target: ElementType) -> tuple[bool, bool]:
    """True if the input and the output are unsigned: at most one, and neither beside more than 16 bits."""
    if "unsigned" in (source.kind, target.kind):
        return source.kind == "unsigned", target.kind == "unsigned"
    if max(source.bits, target.bits) > 16:
        return False, False
    return d.choice((False, False), (True, False), (False, True))


def point(d: Draft, element: ElementType, unsigned: bool) -> Value:
    """A zero point: any for 8 bits, 0 or 32768 for unsigned 16."""
    if element.bits == 8:
        return d.zero_point(element, True)
    number = d.choice(0, 32768) if unsigned and element.bits == 16 else 0
    dtype = element.dtype
    return d.given(np.array([number], np.int64).astype(f"u{dtype.itemsize}").view(dtype), element, 0.8)


def factors(d: Draft, channels: int, scale32: bool, bits: int, down: int) -> tuple[Value, Value]:
    """Multipliers of 31 or 15 bits and shifts of 2 to 62; a shift of s takes values of s bits with their sign."""
    width, dtype = (31, np.int32) if scale32 else (15, np.int16)
    element = I32 if scale32 else I16
    greatest = (1 << width) - 1
    if d.hostile:
        return (d.tensor(element, (channels,), constant=0.5), d.tensor(I8, (channels,), constant=0.5))
    least = min(62, max(2, bits))
    usual = min(62, max(least, width + max(down, 0)))
    numbers = [d.choice(d.rng.randint(greatest // 2, greatest), d.integer(0, greatest), 1 << d.rng.randrange(width))
               for _ in range(channels)]
    shifts = [min(62, max(least, d.choice(usual, usual - 1, usual + 1, d.integer(least, 62)))) for _ in range(channels)]
    if d.chance(0.3):
        numbers, shifts = [numbers[0]] * channels, [shifts[0]] * channels
    known = d.choice(0.0, 1.0, 1.0, 0.5)
    return d.given(np.array(numbers, dtype), element, known), d.given(np.array(shifts, np.int8), I8, known)


UNARY = ("abs", "bitwise_not", "ceil", "clz", "cos", "erf", "exp", "floor", "log", "logical_not", "reciprocal", "rsqrt",
         "sigmoid", "sin", "tanh", "identity")
BINARY = ("add", "sub", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor", "equal",
          "greater", "greater_equal")
GENERATORS: dict[str, Generator] = {
    **{name: unary(name) for name in UNARY}, **{name: binary(name) for name in BINARY},
    **{name: shift(name) for name in ("arithmetic_right_shift", "logical_left_shift", "logical_right_shift")},
    "maximum": nan_binary("maximum"), "minimum": nan_binary("minimum"), "intdiv": intdiv, "pow": power, "mul": mul,
    "negate": negate, "clamp": clamp, "select": selection, "cast": cast, "table": table, "rescale": rescale}
