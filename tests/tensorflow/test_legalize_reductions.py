"""Reductions, places of extremes and running sums of TensorFlow in TOSA, against each operation's reference."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tosaic.lowering.graph.types import BY_STORAGE, Array
from tosaic.runtime.errors import Problem

from .one_operation import BF16, INTEGERS, answers, check_exactly, integers, text_of
from .three_ways import tosa_of

SHAPE = (3, 4, 5, 2)
AXES: list[Any] = [0, -1, [0], [1, 2], [0, 2], [-1, 0], [0, 1, 2, 3], []]
FLOATS = ("float32", "float16", "bfloat16")
BOUND = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 1e-2}


def numbers(dtype: str, seed: int = 0) -> Array:
    random = np.random.default_rng(seed)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, SHAPE, dtype, endpoint=True)
    return random.standard_normal(SHAPE).astype(BF16 if dtype == "bfloat16" else dtype)


def keep(yes: bool) -> str:
    return f"keep_dims = {'true' if yes else 'false'}"


def check(name: str, x: Array, axis: Any, **options: Any) -> None:
    """Integers exactly, floats within their bound of the range."""
    expected, *found = answers(name, x, np.asarray(axis, np.int32), constants=[1], **options)
    right = expected[0]
    for mine, *_ in found:
        assert mine.dtype == right.dtype and mine.shape == right.shape
        if right.dtype.kind in "biu":
            np.testing.assert_array_equal(mine, right)
            continue
        wide, bound = right.astype(np.float64), BOUND[right.dtype.name]
        largest = np.abs(wide[np.isfinite(wide)]).max(initial=0)
        np.testing.assert_allclose(mine.astype(np.float64), wide, rtol=bound, atol=bound * largest)


NAMES = ("Sum", "Prod", "Max", "Min", "Mean", "EuclideanNorm")
ALONG = [pytest.param(name, axis, id=f"{name}-{axis}") for i, name in enumerate(NAMES) for j, axis in enumerate(AXES)
         if (i + j) % 2 == 0]
"""Half of all, in turn from one function to the next, as below."""


@pytest.mark.parametrize(("name", "axis"), ALONG)
def test_reductions_along_one_axis_several_and_none(name: str, axis: Any) -> None:
    for yes in (False, True):
        check(f"tf.{name}", numbers("float32"), axis, properties=keep(yes))


OF_ALL_TYPES = [(name, dtype) for i, name in enumerate(NAMES) for j, dtype in enumerate(("float16", "bfloat16", *INTEGERS))
                if (i + j) % 2 == 0 and (name != "EuclideanNorm" or dtype not in INTEGERS)]


@pytest.mark.parametrize(("name", "dtype"), OF_ALL_TYPES)
def test_reductions_of_all_types(name: str, dtype: str) -> None:
    check(f"tf.{name}", numbers(dtype), [1, 2], properties=keep(False))
    check(f"tf.{name}", numbers(dtype), -1, properties=keep(True))


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", ["All", "Any"])
def test_reductions_of_bools(name: str, axis: Any) -> None:
    check(f"tf.{name}", np.random.default_rng(1).random(SHAPE) < (0.9 if name == "All" else 0.1), axis, properties=keep(False))


def test_half_the_sum_of_squares() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert [found[0].tolist() for found in answers("tf.L2Loss", x)] == [253.0] * 3


@pytest.mark.parametrize("name", ["Sum", "Prod", "Max", "Min", "Mean"])
def test_what_is_not_finite_goes_through_a_reduction(name: str) -> None:
    x = np.float32([[np.nan, 1, 2], [np.inf, 1, 2], [np.inf, -np.inf, 1], [-np.inf, 0, 1], [3, 4, 5]])
    for axis in (0, 1):
        check(f"tf.{name}", x, axis)


@pytest.mark.parametrize(("dtype", "value", "count"), [
    ("uint8", 200, 3), ("int8", 100, 3), ("int8", 1, 300), ("int16", 30000, 70000), ("int32", 2**31 - 1, 3),
    ("float32", 1, 41)])
def test_the_mean_of_equal_numbers_is_that_number(dtype: str, value: int, count: int) -> None:
    """Sums of integers do not wrap, and the quotient of a float is exact: 41 * (1 / 41) is not 1."""
    x = np.full(count, value, dtype)
    assert answers("tf.Mean", x, np.int32([0]), constants=[1])[1][0] == x[0]


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8"])
def test_a_reduction_of_nothing_is_its_neutral_element(dtype: str) -> None:
    """TensorFlow's own answers. There are no arguments without elements, but there are constants."""
    low, high = (-np.inf, np.inf) if dtype == "float32" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    right = {"Sum": 0.0, "Prod": 1.0, "Max": low, "Min": high, "Mean": np.nan if dtype == "float32" else 0.0}
    for name, neutral in (right | ({"EuclideanNorm": 0.0} if dtype == "float32" else {})).items():
        text = text_of(f"tf.{name}", [np.zeros((0, 2), dtype), np.int32([0])], [str(BY_STORAGE[dtype])], constants=[0, 1])
        yielded, = tosa_of(text).function("main").body.yields
        assert yielded.constant is not None
        np.testing.assert_array_equal(yielded.constant, np.array([neutral, neutral], dtype))


# ---- places of extremes ------------------------------------------------------------------------------------------
PLACES = [(name, dtype, element) for i, name in enumerate(("ArgMax", "ArgMin"))
          for j, dtype in enumerate((*FLOATS, *INTEGERS, "bool")) for k, element in enumerate(("i64", "i32"))
          if (i + j + k) % 2 == 0]


@pytest.mark.parametrize(("name", "dtype", "element"), PLACES)
def test_places_of_extremes_are_the_first_ones(name: str, dtype: str, element: str) -> None:
    many = (np.random.default_rng(2).integers(0, 3, SHAPE)).astype(BF16 if dtype == "bfloat16" else dtype)
    check(f"tf.{name}", many, -1, results=[element])
    if dtype != "bool":
        check(f"tf.{name}", numbers(dtype), 0, results=[element])


@pytest.mark.parametrize("name", ["ArgMax", "ArgMin"])
def test_a_nan_is_no_extreme(name: str) -> None:
    x = np.float32([[np.nan, -np.inf, 1, 2], [1, np.nan, 0, 5], [np.nan] * 4, [-np.inf] * 4, [np.inf, 1, 2, np.inf],
                    [np.nan, np.inf, 1, 2], [0.0, -0.0, 0.0, -0.0]])
    check(f"tf.{name}", x[:6], 1, results=["i64"])


# ---- running sums ------------------------------------------------------------------------------------------------
RUNNING = [(name, dtype, exclusive, reverse) for i, name in enumerate(("Cumsum", "Cumprod"))
           for j, dtype in enumerate(("float32", "float16", "int32", "int64", "uint8"))
           for k, exclusive in enumerate(("false", "true")) for m, reverse in enumerate(("false", "true"))
           if (i + j + k + m) % 2 == 0]


@pytest.mark.parametrize(("name", "dtype", "exclusive", "reverse"), RUNNING)
def test_running_sums_and_products(name: str, dtype: str, exclusive: str, reverse: str) -> None:
    properties = f"exclusive = {exclusive}, reverse = {reverse}"
    x = numbers(dtype)
    if dtype == "float16":  # the reference rounds after each step
        x = np.rint(x)
    check(f"tf.{name}", x, -2, properties=properties)
    for extent in (1, 2, 7) if dtype == "float32" else ():
        check(f"tf.{name}", x.reshape(-1)[:extent], 0, properties=properties)


# ---- the k greatest ----------------------------------------------------------------------------------------------
@pytest.mark.sampled(2)
@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int8", "uint8", "int64"])
def test_the_k_greatest_in_order(dtype: str, k: int) -> None:
    random = np.random.default_rng(3)
    for x in (random.integers(0, 4, (2, 3, 5)).astype(dtype), random.permutation(integers(dtype)[0])[:5] if dtype in INTEGERS
              else random.standard_normal(9).astype(dtype)):
        check_exactly("tf.TopKV2", x, np.int32(k), results=[str(BY_STORAGE[dtype]), "i32"], constants=[1])


# ---- what cannot be compiled -------------------------------------------------------------------------------------
X = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(("name", "operands", "constants", "message"), [
    ("tf.Sum", [X, np.int32([0])], [], r"tf\.Sum: the axes of a reduction must be known when compiling"),
    ("tf.Sum", [X, np.int32([2])], [1], r"tf\.Sum: axis 2 is not one of a tensor of rank 2"),
    ("tf.Max", [X, np.int32([0, -2])], [1], r"tf\.Max: axes \[0, 0\] of a tensor of rank 2: one is there twice"),
    ("tf.Mean", [X > 0, np.int32([0])], [1], r"tf\.Mean: it takes floats or integers, not i1"),
    ("tf.All", [X, np.int32([0])], [1], r"tf\.All: it takes bools, not f32"),
    ("tf.EuclideanNorm", [np.int32([1]), np.int32([0])], [1], r"tf\.EuclideanNorm: it takes floats, not i32"),
    ("tf.ArgMax", [X, np.int32(0)], [], r"tf\.ArgMax: the axis must be known when compiling"),
    ("tf.Cumsum", [X, np.int32(5)], [1], r"tf\.Cumsum: axis 5 is not one of a tensor of rank 2"),
    ("tf.TopKV2", [X, np.int32(4)], [1], r"tf\.TopKV2: tensor<2x3xf32> has no 4 elements along its last axis")])
def test_problems_name_the_operation_and_the_reason(name: str, operands: list[Array], constants: list[int],
                                                    message: str) -> None:
    elements = ["i64" if name == "tf.ArgMax" else str(BY_STORAGE[operands[0].dtype.name])]
    with pytest.raises(Problem, match=message):
        tosa_of(text_of(name, operands, elements + ["i32"] * (name == "tf.TopKV2"), constants=constants))
