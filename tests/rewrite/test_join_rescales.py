"""Additions of quantized tensors become one linear form, and give the same for every pair of bytes."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.tosaic.rescaled_sum import RescaledSum
from tosaic.lowering.graph.graph import Module, Value
from tosaic.lowering.graph.types import I8, I16, I32, ElementType
from tosaic.lowering.rewrite.join_rescales import join_rescales
from tosaic.lowering.rewrite.prune import prune
from tosaic.runtime.interpreter import Interpreter

from ..fuse.graphs import Graph

BYTES = np.arange(-128, 128).astype(np.int8)
UNIT = 1 << 30
Factors = Sequence[tuple[int, int]]
"""Multiplier and shift of one rescaling after the other."""


def scaled(g: Graph, x: Value, factor: tuple[int, int], to: ElementType, before: int = 0, after: int = 0,
           mode: str = "DOUBLE_ROUND", channels: int = 1) -> Value:
    multiplier, shift = (np.full(channels, n, dtype) for n, dtype in zip(factor, (np.int32, np.int8)))
    zero_points = (np.array([n], e.dtype) for n, e in ((before, x.tensor.element), (after, to)))
    return g.op("rescale", x, multiplier, shift, *zero_points, scale32=True, rounding_mode=mode, per_channel=channels > 1,
                input_unsigned=False, output_unsigned=False, to=to)


def addition(first: Factors, second: Factors, last: tuple[int, int], zero_points: tuple[int, int, int] = (0, 0, 0),
             name: str = "add", mode: str = "DOUBLE_ROUND", to: ElementType = I8, source: str = "int8", channels: int = 1
             ) -> Module:
    """As converters write it, of a column and a row: of every pair there is."""
    g = Graph()
    terms = []
    for shape, factors, zero_point in (((256, 1), first, zero_points[0]), ((1, 256), second, zero_points[1])):
        x = g.input(*shape, dtype=source)
        for number, factor in enumerate(factors):
            x = scaled(g, x, factor, I32, zero_point if number == 0 else 0, mode=mode)
        terms.append(x)
    return g.module(scaled(g, g.op(name, *terms), last, to, after=zero_points[2], mode=mode, channels=channels))


def is_joined(before: Module) -> bool:
    return any(isinstance(o.op, RescaledSum) for o in prune(join_rescales(before)).functions[0].body.operations)


def check(before: Module) -> None:
    """Joined, and what it was for every pair."""
    assert is_joined(before)
    arrays = BYTES[:, None], BYTES[None]
    expected, = Interpreter(before)(*arrays)
    assert len(np.unique(expected)) > 1
    np.testing.assert_array_equal(Interpreter(prune(join_rescales(before)))(*arrays)[0], expected)
    compiled = Traced(before, "main").compile()(*arrays)
    np.testing.assert_array_equal(compiled[0] if isinstance(compiled, tuple) else compiled, expected)


@pytest.mark.parametrize("seed", range(6))
def test_as_converters_write_additions(seed: int) -> None:
    """Operands shifted by 20 bits, one of them scaled to the other's scale."""
    rng = np.random.default_rng(seed)
    multiplier, last = (int(n) for n in rng.integers(UNIT, 2 * UNIT, 2))
    zero_points = tuple(int(n) for n in rng.integers(-128, 128, 3))
    terms = [[(UNIT, 10), (multiplier, int(rng.integers(31, 33)))], [(UNIT, 11)]]
    first, second = terms if seed % 2 else reversed(terms)
    check(addition(first, second, (last, int(rng.integers(48, 51))), zero_points))  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["SINGLE_ROUND", "DOUBLE_ROUND", "INEXACT_ROUND"])
@pytest.mark.parametrize("name", ["add", "sub"])
@pytest.mark.parametrize("factor", [(UNIT, 50), (UNIT, 51), (UNIT, 49), (3 * (UNIT >> 1), 51)],
                         ids=["the same", "half", "double", "three quarters"])
def test_sums_in_the_middle(factor: tuple[int, int], name: str, mode: str) -> None:
    """Every second sum is as near to one integer as to the next: the operators decide, and where they round away from zero
    no addend does the same."""
    module = addition([(UNIT, 10)], [(UNIT, 10)], factor, (3, -7, 11), name, mode)
    if mode == "DOUBLE_ROUND" and factor[1] == 51:
        assert not is_joined(module)
    else:
        check(module)


def test_without_zero_points() -> None:
    check(addition([(UNIT, 10)], [(1_500_450_271, 11)], (1_333_337_777, 50)))


STEEP = 2 * UNIT - 1, 2
"""A factor that leads out of 32 bits."""


@pytest.mark.parametrize("module", [
    addition([(UNIT, 10)], [(UNIT, 10)], (UNIT, 42), to=I16),
    addition([(UNIT, 15)], [(UNIT, 15)], (UNIT, 42), source="int16"),
    addition([(UNIT, 10), STEEP], [(UNIT, 10)], (UNIT, 50)),
    addition([(UNIT, 10)], [(UNIT, 30)], (UNIT, 50)),
    addition([(UNIT, 10)], [(UNIT, 10)], (UNIT, 50), name="maximum"),
], ids=["to 16 bits", "from 16 bits", "beyond 32 bits", "next to nothing", "another operator"])
def test_stays(module: Module) -> None:
    assert not is_joined(module)


def test_equal_factors_of_channels() -> None:
    check(addition([(UNIT, 10)], [(UNIT, 10)], (UNIT, 50), (1, 2, 3), channels=256))


def test_factors_that_differ_between_channels_stay() -> None:
    g = Graph()
    a, b = (scaled(g, g.input(4, 2, dtype="int8"), (UNIT, 10), I32) for _ in range(2))
    multiplier, shift = np.array([UNIT, UNIT + 1], np.int32), np.full(2, 50, np.int8)
    result = g.op("rescale", g.op("add", a, b), multiplier, shift, np.zeros(1, np.int32), np.zeros(1, np.int8), scale32=True,
                  rounding_mode="SINGLE_ROUND", per_channel=True, input_unsigned=False, output_unsigned=False, to=I8)
    assert not is_joined(g.module(result))


def test_factors_that_only_a_run_knows_stay() -> None:
    g = Graph()
    a, b = (scaled(g, g.input(4, 2, dtype="int8"), (UNIT, 10), I32) for _ in range(2))
    result = g.op("rescale", g.op("add", a, b), g.input(1, dtype="int32"), np.full(1, 50, np.int8), np.zeros(1, np.int32),
                  np.zeros(1, np.int8), scale32=True, rounding_mode="SINGLE_ROUND", per_channel=False, input_unsigned=False,
                  output_unsigned=False, to=I8)
    assert not is_joined(g.module(result))


def test_in_a_region() -> None:
    """What is in a branch is joined, too, also with operands from around it."""
    g = Graph()
    x, condition = g.input(256, dtype="int8"), g.input(dtype="bool")
    wide = scaled(g, x, (UNIT, 10), I32)
    branches = []
    for after in (0, 5):
        inner = Graph()
        branches.append(inner.finish(scaled(inner, inner.op("add", wide, wide), (UNIT, 50), I8, after=after)))
    module = g.module(g.op("cond_if", condition, regions=branches))
    arrays = BYTES, np.array(False)
    expected, = Interpreter(module)(*arrays)
    joined = join_rescales(module)
    assert sum(isinstance(o.op, RescaledSum) for o in joined.functions[0].body.walk()) == 2
    np.testing.assert_array_equal(Interpreter(joined)(*arrays)[0], expected)
