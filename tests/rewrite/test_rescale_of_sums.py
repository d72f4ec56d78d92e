"""RESCALE of sums with what rounds added before the product: the same number for number, at each step of a result and for the
largest sums; and where it is not done."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tosaic.lowering.dialects.tosaic.rescale_of_sums import MAX_SHIFT, ROOM, RescaleOfSums
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import I8, I32
from tosaic.lowering.loops.interpret_steps import run_program
from tosaic.lowering.rewrite.rescale_of_sums import LARGEST_PRODUCT, rescale_of_sums
from tosaic.lowering.schedule import lower
from tosaic.lowering.target.presets import target
from tosaic.runtime.interpreter import Interpreter

from ..fuse.graphs import Graph, conv
from .test_rescale_in_float import MODES, UNIT, scaled

TARGETS = [target(name, features=features) for name, features in (
    ("x86-64-v4", "+avx512vnni"), ("x86-64-v3", "+avxvnni"), ("x86-64-v4", ""), ("x86-64", ""))]
CONVERSION = (I32, False, I8, False)
PIXELS = np.arange(-128, 128).astype(np.int8).reshape(1, 16, 16, 1)
MULTIPLIERS = (UNIT, UNIT + 1, UNIT + 3, 2 * UNIT - 1, 2 * UNIT - 2, 3 * UNIT // 2, UNIT + (1 << 20))


def of_bytes(bias: Sequence[int], multiplier: Sequence[int], shift: Sequence[int], zero_point: int, mode: str,
             name: str = "conv2d") -> Module:
    """The RESCALE of a byte and a number, in each channel."""
    g = Graph()
    x = g.input(*PIXELS.shape, dtype="int8")
    shape = (1, 1, 1, len(bias)) if name == "depthwise_conv2d" else (len(bias), 1, 1, 1)
    total = conv(g, x, np.ones(shape, np.int8), np.array(bias, np.int32), name=name)
    return g.module(scaled(g, total, multiplier, shift, (0, zero_point), mode, CONVERSION))


def is_of_sums(module: Module) -> bool:
    return any(isinstance(o.op, RescaleOfSums) for o in module.functions[0].body.walk())


def check(module: Module) -> None:
    other = rescale_of_sums(module)
    assert is_of_sums(other)
    expected, = Interpreter(module)(PIXELS)
    np.testing.assert_array_equal(Interpreter(other)(PIXELS)[0], expected)
    for machine in TARGETS:
        program = lower(fuse(other, other.function("main")), machine)
        np.testing.assert_array_equal(run_program(program, [PIXELS])[0], expected)


@pytest.mark.sampled(2)
@MODES
@pytest.mark.parametrize("name", ["conv2d", "depthwise_conv2d"])
def test_results_reach_each_step_from_the_same_sum_on(mode: str, name: str) -> None:
    """Bytes are added to the sums with which a result reaches one of its steps, so that those just below are there, too."""
    random = np.random.default_rng(8)
    steps = [0, 1, 2, 127, 128, 254, 255, *random.integers(1, 256, 9).tolist()]
    for least in (33, 38, MAX_SHIFT - 9):
        multiplier = [*MULTIPLIERS, *random.integers(UNIT, 2 * UNIT, len(steps) - len(MULTIPLIERS)).tolist()]
        shift = random.integers(least, least + 10, len(steps)).tolist()
        sums = [min(((2 * step - 1) << s - 1) // m, ROOM - LARGEST_PRODUCT - 1) for step, m, s in zip(steps, multiplier, shift)]
        check(of_bytes(sums, multiplier, shift, -128, mode, name=name))


@MODES
def test_the_largest_sums_have_room(mode: str) -> None:
    largest = ROOM - LARGEST_PRODUCT - 1
    bias = [sign * largest for sign in (1, -1) for _ in MULTIPLIERS]
    check(of_bytes(bias, [*MULTIPLIERS] * 2, [33 + n % 9 for n in range(len(bias))], -128, mode))
    if mode != "DOUBLE_ROUND":
        check(of_bytes(bias, [*MULTIPLIERS] * 2, [MAX_SHIFT] * len(bias), 127, mode))


def test_one_factor_for_all_channels() -> None:
    g = Graph()
    x = g.input(*PIXELS.shape, dtype="int8")
    total = conv(g, x, np.ones((5, 1, 1, 1), np.int8), np.array([0, 7, 100_000, 200_001, -9], np.int32))
    check(g.module(scaled(g, total, [UNIT + 5], [41], (0, -128), "DOUBLE_ROUND", CONVERSION)))


@pytest.mark.parametrize("bias, multiplier, shift, zero_point, mode", [
    pytest.param(ROOM - LARGEST_PRODUCT, UNIT + 1, 40, -128, "SINGLE_ROUND", id="no room"),
    pytest.param(0, UNIT + 1, 31, -128, "SINGLE_ROUND", id="shift of less than a word"),
    pytest.param(0, UNIT + 1, MAX_SHIFT + 1, -128, "SINGLE_ROUND", id="large shift"),
    pytest.param(0, UNIT + 1, 40, -127, "DOUBLE_ROUND", id="negative sums that round down"),
    pytest.param(0, UNIT + 1, 32, -128, "SINGLE_ROUND", id="half a word before the product"),
    pytest.param(0, UNIT, 40, -128, "SINGLE_ROUND", id="power of two"),
])
def test_where_it_is_not_done(bias: int, multiplier: int, shift: int, zero_point: int, mode: str) -> None:
    assert not is_of_sums(rescale_of_sums(of_bytes([bias] * 2, [multiplier] * 2, [shift] * 2, zero_point, mode)))


def test_sums_of_what_is_no_convolution_are_not_known() -> None:
    g = Graph()
    x = g.input(4, dtype="int32")
    assert not is_of_sums(rescale_of_sums(g.module(scaled(g, x, [UNIT + 1], [40], (0, -128), kind=CONVERSION))))
