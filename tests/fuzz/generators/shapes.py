"""Recipes of the operators on shapes: lists of extents computed from others, and what is reshaped or cut by them."""
from __future__ import annotations

import math

import numpy as np
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import TensorType

from .layout import ANY
from .maker import Maker, Recipe


def numbers(value: Value) -> list[int]:
    """The extents of a shape, which are known as soon as it is made."""
    assert value.constant is not None
    return [int(n) for n in value.constant]


def dims(m: Maker, x: Value) -> Value:
    """The shape of a tensor, axis by axis."""
    parts = [m.op("dim", x, axis=axis) for axis in range(x.tensor.rank)]
    return m.op("concat_shape", *parts)


def part(m: Maker, shape: Value, start: int, size: int) -> Value:
    start_and_size = (m.constant(np.array([n], np.int32)) for n in (start, size))
    return m.op("slice_shape", shape, *start_and_size)


def known(m: Maker, extents: list[int]) -> Value:
    """A shape that is computed and has these extents."""
    size, other = len(extents), [m.rng.randint(1, 9) for _ in extents]
    match m.rng.choice(("add", "sub", "mul", "quotient", "mod", "max", "min", "power", "slice", "constant")):
        case "add":
            return m.op("add_shape", m.shape(*(n - k for n, k in zip(extents, other))), m.shape(*other))
        case "sub":
            return m.op("sub_shape", m.shape(*(n + k for n, k in zip(extents, other))), m.shape(*other))
        case "mul":
            return m.op("mul_shape", m.shape(*(-n for n in extents)), m.shape(*[-1] * size))
        case "quotient":
            ceil = m.chance(0.5)
            whole = [n * k - m.rng.randrange(k) if ceil else n * k + m.rng.randrange(k) for n, k in zip(extents, other)]
            return m.op("div_ceil_shape" if ceil else "div_floor_shape", m.shape(*whole), m.shape(*other))
        case "mod":
            larger = [n + k for n, k in zip(extents, other)]
            return m.op("mod_shape", m.shape(*(n + 3 * k for n, k in zip(extents, larger))), m.shape(*larger))
        case "max":
            return m.op("max_shape", m.shape(*extents), m.shape(*(n - k for n, k in zip(extents, other))))
        case "min":
            return m.op("min_shape", m.shape(*(n + k for n, k in zip(extents, other))), m.shape(*extents))
        case "power":
            return powers(m, extents)
        case "slice":
            before, behind = m.rng.randint(0, 3), m.rng.randint(0, 3)
            return part(m, m.shape(*[7] * before, *extents, *[9] * behind), before, size)
        case _:
            return m.shape(*extents)


def powers(m: Maker, extents: list[int]) -> Value:
    """Extents as the powers of two below them, and the rest."""
    logarithms = m.op("log2_floor_shape", m.shape(*extents))
    if m.chance(0.5):
        logarithms = m.op("log2_ceil_shape", m.shape(*(1 << e for e in numbers(logarithms))))
    whole = m.op("exp2_shape", logarithms)
    return m.op("add_shape", whole, m.shape(*(n - k for n, k in zip(extents, numbers(whole)))))


def reshaped(m: Maker) -> None:
    """A reshape whose shape is computed, and a check of it."""
    x = m.pick(ANY, fits=lambda t: t.rank > 0)
    extents = list(m.regrouped(x.tensor.dims, m.rng.randint(1, 6)))
    shape = known(m, extents)
    for axis, n in enumerate(x.tensor.dims[:2]):
        if n in extents[:2] and m.chance(0.5):
            part_of_it = part(m, shape, extents.index(n), 1)
            m.ops("assert_equal_shape", part_of_it, m.op("dim", x, axis=axis), allow_broadcast=m.chance(0.5))
    m.op("reshape", x, shape)


def cut(m: Maker) -> None:
    """A slice that leaves out what is computed from the tensor's own shape."""
    x = m.pick(ANY, fits=lambda t: t.rank > 0)
    whole = dims(m, x)
    half = m.op("div_ceil_shape", whole, m.shape(*[2] * x.tensor.rank))
    m.op("slice", x, m.op("sub_shape", whole, half), half)
    if m.chance(0.3) and math.prod(x.tensor.dims) * 2 <= m.program.most:
        m.op("tile", x, known(m, [2, *[1] * (x.tensor.rank - 1)]))


def constant_tensor(m: Maker) -> None:
    """The extents of a tensor that is not read otherwise."""
    x = m.fresh(TensorType(m.dims(2), m.rng.choice(ANY)))
    m.ops("assert_equal_shape", dims(m, x), known(m, list(x.tensor.dims)), allow_broadcast=False)
    m.op("reshape", x, m.op("mul_shape", m.op("dim", x, axis=0), m.op("dim", x, axis=1)))


RECIPES: dict[str, Recipe] = {"computed shape": reshaped, "computed slice": cut, "flat shape": constant_tensor}
