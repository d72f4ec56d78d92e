"""REDUCE_ALL, ANY, MAX, MIN, PRODUCT, SUM and ARGMAX."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.reduction import ArgMax, ReduceAll, ReduceAny, ReduceMax, ReduceMin, ReduceProduct, ReduceSum
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.lowering.graph.types import BF16, F8E4M3, F8E5M2, F16, F32, I1, I8, I16, I32, I64, Array, ElementType, TensorType
from tosaic.runtime.errors import Problem

from .dot_product import FRACTION, dot_product_bound
from .harness import check, unknown

SHAPES = [((1,), 0), ((7,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 3, 4), 1), ((2, 1, 3, 2), 1), ((2, 3, 1, 2, 2, 3), 5)]
INTEGERS, FLOATS = (I8, I16, I32), (F32, F16, BF16)


def integers(shape: tuple[int, ...], element: ElementType) -> Array:
    random = np.random.default_rng(0)
    return random.integers(element.minimum, element.maximum, shape, endpoint=True).astype(element.dtype)


def floats(shape: tuple[int, ...], element: ElementType, *, specials: bool = True) -> Array:
    random = np.random.default_rng(1)
    x = random.normal(size=shape)
    if specials:
        for value in (np.nan, -0.0, 0.0) + (() if element == F8E4M3 else (np.inf, -np.inf)):
            x[random.random(shape) < 0.15] = value
    return x.astype(element.dtype)


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("share", [0.2, 0.8])
def test_reduce_all_and_any(shape: tuple[int, ...], axis: int, share: float) -> None:
    x = np.random.default_rng(2).random(shape) < share
    assert (check(ReduceAll(axis), x) == x.all(axis, keepdims=True)).all()
    assert (check(ReduceAny(axis), x) == x.any(axis, keepdims=True)).all()


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("element", INTEGERS)
def test_integer_max_and_min(shape: tuple[int, ...], axis: int, element: ElementType) -> None:
    x = integers(shape, element)
    assert (check(ReduceMax(axis), x) == x.max(axis, keepdims=True)).all()
    assert (check(ReduceMin(axis), x) == x.min(axis, keepdims=True)).all()


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("nan_mode", ["PROPAGATE", "IGNORE"])
def test_float_max_and_min_treat_nan_as_their_mode_says(shape: tuple[int, ...], axis: int, element: ElementType,
                                                        nan_mode: str) -> None:
    x = floats(shape, element)
    wide = np.moveaxis(x.astype(np.float64), axis, -1)
    for op, which in ((ReduceMax(axis, nan_mode), max), (ReduceMin(axis, nan_mode), min)):
        out = np.moveaxis(check(op, x).astype(np.float64), axis, -1)
        for place in np.ndindex(*wide.shape[:-1]):
            seen = [v for v in wide[place] if not (nan_mode == "IGNORE" and np.isnan(v))]
            expected = np.nan if not seen or np.isnan(seen).any() else which(seen)
            assert out[place][0] == expected or (np.isnan(out[place][0]) and np.isnan(expected))


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_an_integer_sum_wraps(shape: tuple[int, ...], axis: int) -> None:
    x = integers(shape, I32)
    assert (check(ReduceSum(axis), x) == x.astype(np.int64).sum(axis, keepdims=True).astype(np.int32)).all()


@pytest.mark.parametrize(("shape", "axis"), [*SHAPES, ((2, 1000), 1)], ids=str)
@pytest.mark.parametrize("element", FLOATS)
def test_a_float_sum_is_within_the_dot_product_bound(shape: tuple[int, ...], axis: int, element: ElementType) -> None:
    op = ReduceSum(axis)
    bound = dot_product_bound(op, shape[axis], element, F32 if element == BF16 else element)
    check(op, floats(shape, element, specials=False), bound=bound)


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("element", FLOATS)
def test_a_product_is_within_its_bound(shape: tuple[int, ...], axis: int, element: ElementType) -> None:
    factor = (1 + 2.0 ** -(FRACTION[element] + 1)) ** shape[axis] - 1
    check(ReduceProduct(axis), floats(shape, element, specials=False),
          bound=lambda exact, *_: np.abs(exact) * factor + 2.0**-24)


def test_reduce_product_has_its_older_name() -> None:
    assert OPERATORS["tosa.reduce_prod"] is OPERATORS["tosa.reduce_product"] is ReduceProduct


def first_greatest(values: Array, nan_mode: str) -> int:
    """The specification's loop."""
    best, place = (np.nan if nan_mode == "IGNORE" else -np.inf), 0
    for i, value in enumerate(values):
        if np.isnan(value) or np.isnan(best):
            result = np.nan if nan_mode == "PROPAGATE" else best if np.isnan(value) else value
        else:
            result = value if value >= best else best
        if result != best and not (np.isnan(result) and np.isnan(best)):
            best, place = result, i
    return place


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("element", INTEGERS)
@pytest.mark.parametrize("ties", [False, True])
def test_argmax_of_integers_is_the_first_greatest(shape: tuple[int, ...], axis: int, element: ElementType, ties: bool
                                                  ) -> None:
    x = integers(shape, element)
    x = x % 2 - 1 if ties else x
    assert (check(ArgMax(axis), x) == x.argmax(axis)).all()


@pytest.mark.parametrize(("shape", "axis"), [*SHAPES, ((40, 4), 1)], ids=str)
@pytest.mark.parametrize("element", [F32, F16, BF16, F8E4M3, F8E5M2])
@pytest.mark.parametrize("nan_mode", ["PROPAGATE", "IGNORE"])
def test_argmax_of_floats_follows_the_specification(shape: tuple[int, ...], axis: int, element: ElementType,
                                                    nan_mode: str) -> None:
    x = floats(shape, element)
    out = check(ArgMax(axis, nan_mode), x)
    wide = np.moveaxis(x.astype(np.float64), axis, -1)
    for place in np.ndindex(*wide.shape[:-1]):
        assert out[place] == first_greatest(wide[place], nan_mode), wide[place]


@pytest.mark.parametrize("nan_mode", ["PROPAGATE", "IGNORE"])
@pytest.mark.parametrize("values", [
    [np.nan, np.nan], [np.nan, -np.inf], [-np.inf, np.nan, -np.inf], [-0.0, 0.0], [0.0, -0.0], [-1.0, -0.0, 0.0],
    [np.nan, 1.0, np.inf, np.nan], [-np.inf, -np.inf], [np.inf, np.nan], [-1e-45, 1e-45, 0.0],
], ids=str)
def test_argmax_of_special_floats_follows_the_specification(values: list[float], nan_mode: str) -> None:
    assert check(ArgMax(0, nan_mode), np.array(values, np.float32)).item() == first_greatest(np.array(values), nan_mode)


@pytest.mark.parametrize("element", [I8, I16, I32, F32])
def test_argmax_finds_a_place_beyond_16_bits(element: ElementType) -> None:
    x = np.zeros(70_000, element.dtype)
    x[69_999] = 1
    assert check(ArgMax(0), x).item() == 69_999
    assert check(ArgMax(0, to=I64), x).dtype == np.int64


# ---- what is refused ---------------------------------------------------------------------------------------------
REDUCTIONS = [(ReduceAll, I1), (ReduceAny, I1), (ReduceMax, I8), (ReduceMin, I8), (ReduceProduct, F32),
              (ReduceSum, I32), (ArgMax, I8)]


@pytest.mark.parametrize(("op", "element"), REDUCTIONS, ids=lambda p: getattr(p, "name", str(p)))
@pytest.mark.parametrize(("shape", "axis"), [((2, 3), 2), ((2, 3), -1), ((), 0)], ids=str)
def test_an_axis_must_be_one_of_the_input(op: Any, element: ElementType, shape: tuple[int, ...], axis: int) -> None:
    with pytest.raises(Problem, match=f"axis {axis} is outside the {len(shape)} axes"):
        op(axis).result_types([unknown(*shape, element=element)])


@pytest.mark.parametrize(("op", "element"), [(ReduceAll, I8), (ReduceAny, F32), (ReduceMax, I1), (ReduceMin, I1),
                                             (ReduceProduct, I8), (ReduceSum, I8), (ArgMax, I1)],
                         ids=lambda p: getattr(p, "name", str(p)))
def test_other_element_types_are_refused(op: Any, element: ElementType) -> None:
    with pytest.raises(Problem, match=f"may not be {element}"):
        op(0).result_types([unknown(2, element=element)])


def test_argmax_gives_integers() -> None:
    with pytest.raises(Problem, match="the result of an argmax may not be f32"):
        ArgMax(0, to=F32).result_types([unknown(2, element=F32)])


def test_the_axis_stays_with_extent_1_or_goes() -> None:
    assert ReduceMax(1).result_types([unknown(2, None, None, element=F32)]) == (TensorType((2, 1, None), F32),)
    assert ArgMax(1).result_types([unknown(2, None, None, element=F32)]) == (TensorType((2, None), I32),)
