"""Generators of the operators on shapes, which are folded while compiling: what comes of one is the shape of a reshape,
where it is a shape that a tensor of a few elements can have.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import I8

from .combinations import Types
from .draft import Draft
from .elementwise import Generator

LARGEST = (1 << 31) - 1
Numbers = Sequence[int]


def seen(d: Draft, shape: Value) -> list[Value]:
    """A tensor of that shape; of another where no small tensor has it."""
    numbers = [] if shape.constant is None else shape.constant.tolist()
    fits = shape.constant is not None and min(numbers, default=1) > 0 and math.prod(numbers) <= d.most and len(numbers) <= 6
    x = d.tensor(I8, (math.prod(numbers) if fits else 3,))
    return [d.op("reshape", x, shape) if fits else x]


def extents(d: Draft, count: int) -> list[int]:
    """Small ones, as those of a tensor."""
    return [d.choice(1, 1, 2, 3, 4, 8) for _ in range(count)]


def large(d: Draft, count: int, high: int = LARGEST) -> list[int]:
    """Up to the greatest that a shape may hold."""
    return [d.integer(0, high) for _ in range(count)]


def length(d: Draft) -> int:
    return d.choice(0, 1, 2, 3, 6, 16)


def unary(name: str, low: int, high: int) -> Generator:
    def generator(d: Draft, types: Types) -> Sequence[Value]:
        numbers = extents(d, length(d)) if d.chance(0.5) else [d.integer(low, high) for _ in range(length(d))]
        return seen(d, d.op(name, d.shape(*numbers)))

    return generator


def binary(name: str, fits: Callable[[int, int], bool]) -> Generator:
    """Two shapes of one length, of small extents or of any that the operator takes."""
    def generator(d: Draft, types: Types) -> Sequence[Value]:
        count, draw = length(d), d.choice(extents, extents, large)
        while True:
            a, b = draw(d, count), draw(d, count)
            if all(map(fits, a, b)):
                break
            a, b = [n // 50_000 for n in a], [n // 50_000 for n in b]
            if all(map(fits, a, b)):
                break
        first = d.shape(*a)
        return seen(d, d.op(name, first, first if d.chance(0.1) and all(map(fits, a, a)) else d.shape(*b)))

    return generator


def assert_equal(d: Draft, types: Types) -> Sequence[Value]:
    numbers, broadcast = extents(d, length(d)), d.chance(0.5)
    other = [1 if broadcast and d.chance(0.3) else n for n in numbers]
    d.ops("assert_equal_shape", d.shape(*numbers), d.shape(*other), allow_broadcast=broadcast)
    return [d.tensor(I8, (3,))]


def concat(d: Draft, types: Types) -> Sequence[Value]:
    """At most 16 extents together, none of the lists empty."""
    count = d.choice(1, 2, 3, 16)
    most = 16 // count if d.chance(0.4) else max(1, 6 // count)
    return seen(d, d.op("concat_shape", *(d.shape(*extents(d, d.rng.randint(1, most))) for _ in range(count))))


def slicing(d: Draft, types: Types) -> Sequence[Value]:
    numbers = extents(d, d.choice(1, 2, 3, 6, 16))
    size = d.integer(1, min(6, len(numbers)))
    start = d.integer(0, len(numbers) - size)
    return seen(d, d.op("slice_shape", d.shape(*numbers), *(d.constant(np.array([n], np.int32)) for n in (start, size))))


def dim(d: Draft, types: Types) -> Sequence[Value]:
    dims = d.dims_of(types[0], 1)
    return seen(d, d.op("dim", d.tensor(types[0], dims), axis=d.rng.randrange(len(dims))))


GENERATORS: dict[str, Generator] = {
    "add_shape": binary("add_shape", lambda a, b: a + b <= LARGEST), "sub_shape": binary("sub_shape", lambda a, b: True),
    "mul_shape": binary("mul_shape", lambda a, b: a * b <= LARGEST), "max_shape": binary("max_shape", lambda a, b: True),
    "min_shape": binary("min_shape", lambda a, b: True),
    **{f"{name}_shape": binary(f"{name}_shape", lambda a, b: b > 0) for name in ("div_ceil", "div_floor", "mod")},
    "exp2_shape": unary("exp2_shape", 0, 30), "log2_ceil_shape": unary("log2_ceil_shape", 1, LARGEST),
    "log2_floor_shape": unary("log2_floor_shape", 1, LARGEST), "assert_equal_shape": assert_equal, "concat_shape": concat,
    "slice_shape": slicing, "dim": dim}
