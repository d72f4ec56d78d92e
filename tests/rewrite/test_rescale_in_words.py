"""RESCALE by products and shifts of 32 bits that round, for vectors that have no elements of 64: the same number for number
where it is done, and where it is not."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tosaic.lowering.dialects.tosaic.rescale_in_words import RescaleInWords
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import I8, I16, I32, Array, ElementType
from tosaic.lowering.loops.interpret_steps import run_program
from tosaic.lowering.rewrite.rescale_in_words import rescale_in_words
from tosaic.lowering.schedule import lower
from tosaic.lowering.target.presets import target
from tosaic.runtime.interpreter import Interpreter

from ..fuse.graphs import Graph
from .test_rescale_in_float import MODES, UNIT, scaled

M55 = target("cortex-m55")
TYPES = pytest.mark.parametrize("types", [(I32, I8), (I32, I16), (I32, I32), (I16, I8), (I8, I32), (I16, I32)],
                                ids=lambda t: f"{t[0].storage} to {t[1].storage}")


def of_numbers(multiplier: Sequence[int], shift: Sequence[int], types: tuple[ElementType, ElementType], zero_point: int,
               mode: str, rows: int) -> Module:
    g = Graph()
    x = g.input(rows, len(multiplier), dtype=types[0].storage)
    return g.module(scaled(g, x, multiplier, shift, (0, zero_point), mode, (types[0], False, types[1], False)))


def hostile(element: ElementType, channels: int, random: np.random.Generator) -> Array:
    """Ends, numbers near zero, powers of two and what is beside them, and some by lot."""
    low, high = int(np.iinfo(element.storage).min), int(np.iinfo(element.storage).max)
    powers = [s * (1 << k) + d for k in range(32) for s in (1, -1) for d in (-1, 0, 1)]
    some = [n for n in (low, low + 1, high - 1, high, *powers) if low <= n <= high]
    numbers = np.array([*some, *random.integers(low, high, 60, endpoint=True)], element.storage)
    return np.stack([random.permutation(numbers) for _ in range(channels)], axis=1)


@pytest.mark.sampled(2)
@TYPES
@MODES
def test_the_same_numbers_as_the_specification_says(types: tuple[ElementType, ElementType], mode: str) -> None:
    random, found = np.random.default_rng(5), 0
    for channels in (1, 1, 1, 1, 6, 6):
        least = int(random.integers(20, 40))
        multiplier = random.choice([UNIT, 2 * UNIT - 1, 3, *random.integers(UNIT, 2 * UNIT, 5)], channels).tolist()
        shift = random.integers(least, least + 1 + 9 * (channels > 1), channels).tolist()
        zero_point = int(random.integers(-128, 128)) if types[1] is I8 else 0
        x = hostile(types[0], channels, random)
        module = of_numbers(multiplier, shift, types, zero_point, mode, len(x))
        other = rescale_in_words(module)
        found += any(isinstance(o.op, RescaleInWords) for o in other.functions[0].body.walk())
        expected, = Interpreter(module)(x)
        np.testing.assert_array_equal(run_program(lower(fuse(other, other.function("main")), M55), [x])[0], expected)
    assert found


@MODES
def test_shifts_at_the_edges(mode: str) -> None:
    """One bit of rounding, none, and all that are left."""
    random, found = np.random.default_rng(6), set()
    for shift in (2, 11, 30, 31, 32, 33, 34, 61, 62):
        x = hostile(I32, 1, random)
        module = of_numbers([1_518_500_249], [shift], (I32, I8), -7, mode, len(x))
        other = rescale_in_words(module)
        if any(isinstance(o.op, RescaleInWords) for o in other.functions[0].body.walk()):
            found.add(shift)
        np.testing.assert_array_equal(run_program(lower(fuse(other, other.function("main")), M55), [x])[0],
                                      Interpreter(module)(x)[0])
    assert found >= {31, 33, 34, 61, 62}
