"""Fake quantisation of TensorFlow, as TOSA, against its reference.

With a range that is known the arguments' form and the form per channel are equal to the bit. `FakeQuantWithMinMaxVars` divides
by the step in TensorFlow, which TOSA cannot, and a range from run time is nudged with reciprocals: there a number within a few
parts in 2**24 of the middle between two steps may fall on the other one, and no other number may.
"""
from __future__ import annotations

import random

import numpy as np
import pytest
from tosaic.lowering.graph.types import Array
from tosaic.runtime.errors import Problem

from .operation_program import Known, program
from .three_ways import three_ways, tosa_of


def drawn(seed: int) -> tuple[str, float, float, int]:
    """The properties, a range (some that do not hold zero), and the number of steps."""
    draw = random.Random(seed)
    bits, narrow = draw.choice([2, 4, 8, 8, 12, 16]), draw.random() < 0.5
    low, high = [(-draw.uniform(0.1, 5), draw.uniform(0.1, 5)), (draw.uniform(0, 1), draw.uniform(1.1, 3)),
                 (-draw.uniform(2, 3), -draw.uniform(0, 1))][seed % 3]
    low, high = (float(np.float32(v)) for v in (low, high))
    return f"num_bits = {bits} : i64, narrow_range = {str(narrow).lower()}", low, high, (1 << bits) - 1 - narrow


def numbers(low: float, high: float, count: int, seed: int) -> Array:
    """In the range, beyond it, and in the middle between steps, about."""
    generator = np.random.default_rng(seed)
    step = (high - low) / count
    middles = low + step * (generator.integers(-3, count + 3, 200) + 0.5)
    return np.concatenate([generator.uniform(low - 1, high + 1, 800), middles]).astype(np.float32).reshape(40, 25)


def answers(text: str, *arrays: Array) -> tuple[Array, Array, Array]:
    """The reference's, the TOSA interpreter's, and that of native code."""
    (expected,), (native,), (interpreted,) = three_ways(text, arrays)[1]
    return expected, interpreted, native


@pytest.mark.parametrize("seed", range(9))
def test_a_range_of_arguments_gives_tensorflows_bits(seed: int) -> None:
    text, low, high, count = drawn(seed)
    x = numbers(low, high, count, seed)
    expected, interpreted, native = answers(program(
        "FakeQuantWithMinMaxArgs", f"{text}, min = {low!r} : f32, max = {high!r} : f32", [x], "f32"), x)
    np.testing.assert_array_equal(interpreted, expected)
    np.testing.assert_array_equal(native, expected)


@pytest.mark.parametrize("seed", range(6))
def test_a_known_range_per_channel_gives_tensorflows_bits(seed: int) -> None:
    text, low, high, count = drawn(seed)
    x = numbers(low, high, count, seed)
    lows, highs = (np.float32(v) * np.linspace(0.5, 1, 25, dtype=np.float32) for v in (low, high))
    expected, interpreted, native = answers(program(
        "FakeQuantWithMinMaxVarsPerChannel", text, [x, Known(lows), Known(highs)], "f32"), x)
    np.testing.assert_array_equal(interpreted, expected)
    np.testing.assert_array_equal(native, expected)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("name", ["FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel"])
@pytest.mark.parametrize("seed", range(6))
def test_ranges_of_values_give_another_step_only_half_way_between_two(seed: int, name: str, known: bool) -> None:
    text, low, high, count = drawn(seed)
    x, shape = numbers(low, high, count, seed), (25,) if name.endswith("Channel") else ()
    bounds = [np.full(shape, v, np.float32) for v in (low, high)]
    given = [Known(b) if known else b for b in bounds]
    expected, *found = answers(program(name, text, [x, *given], "f32"), x, *([] if known else bounds))
    width = max(high, 0.0) - min(low, 0.0) if low * high > 0 else high - low
    for result in found:
        step = (high - low) / count
        moved = np.abs(result - expected) > 1e-5 * width
        assert (np.abs(result - expected) <= step * 1.001 + 1e-5 * width).all()
        place = np.abs((x - expected) / step) - 0.5  # of those that are moved: how far from the middle
        assert (np.abs(place[moved]) <= 2 ** -20 * count + 1e-6).all()


def test_a_range_from_zero_to_zero_gives_zeros() -> None:
    x, zero = numbers(-1, 1, 255, 0), np.zeros((), np.float32)
    for bounds in ([zero, zero], [Known(zero), Known(zero)]):
        arrays = [b for b in bounds if not isinstance(b, Known)]
        text = program("FakeQuantWithMinMaxVars", "num_bits = 8 : i64, narrow_range = false", [x, *bounds], "f32")
        assert not any(found.any() for found in answers(text, x, *arrays))


def test_what_a_range_may_not_be() -> None:
    x = numbers(-1, 1, 255, 0)
    with pytest.raises(Problem, match=r"the range from 3.* to 1.* is empty"):
        tosa_of(program("FakeQuantWithMinMaxArgs", "min = 3.0 : f32, max = 1.0 : f32", [x], "f32"))
    with pytest.raises(Problem, match="num_bits is 17"):
        tosa_of(program("FakeQuantWithMinMaxArgs", "num_bits = 17 : i64", [x], "f32"))
    with pytest.raises(Problem, match="a bound is tensor<3xf32>"):
        tosa_of(program("FakeQuantWithMinMaxVarsPerChannel", "num_bits = 8 : i64", [x, *[np.ones(3, np.float32)] * 2], "f32"))


# ---- QuantizeAndDequantize ---------------------------------------------------------------------------------------
def steps_text(seed: int, given: bool) -> tuple[str, int]:
    draw = random.Random(seed)
    signed, narrow, axis = draw.random() < 0.6, draw.random() < 0.5, draw.choice([-1, -1, 1])
    words = ", ".join(f"{n} = {str(v).lower()}" for n, v in (
        ("signed_input", signed), ("narrow_range", narrow), ("range_given", given)))
    mode = draw.choice(["HALF_TO_EVEN", "HALF_UP"])
    return f'{words}, num_bits = {draw.choice([4, 8, 12])} : i64, axis = {axis} : i64, round_mode = "{mode}"', axis


@pytest.mark.parametrize("seed", range(8))
def test_steps_of_a_known_range_give_tensorflows_bits(seed: int) -> None:
    text, axis = steps_text(seed, given=True)
    x, shape = numbers(-1, 2, 255, seed), (25,) if axis == 1 and seed % 2 else ()
    bounds = [Known(np.full(shape, v, np.float32)) for v in (-0.7 - seed / 8, 1.3 - seed / 8)]
    expected, interpreted, native = answers(program("QuantizeAndDequantizeV4", text, [x, *bounds], "f32"), x)
    np.testing.assert_array_equal(interpreted, expected)
    np.testing.assert_array_equal(native, expected)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_steps_of_a_range_from_run_time_differ_only_half_way_between_two(seed: int, given: bool) -> None:
    text, _ = steps_text(seed + 20, given)
    x = numbers(-1, 2, 255, seed)
    bounds = [np.full((), v, np.float32) for v in (-0.7, 1.3 + seed / 8)]
    expected, *found = answers(program("QuantizeAndDequantizeV2", text, [x, *bounds], "f32"), x, *bounds)
    for result in found:
        moved = np.abs(result - expected) > 1e-5 * np.abs(expected).max()
        middle = (result + expected)[moved] / 2
        assert moved.mean() < 0.02
        np.testing.assert_allclose(x[moved], middle, rtol=0, atol=1e-5 * np.abs(x).max())
