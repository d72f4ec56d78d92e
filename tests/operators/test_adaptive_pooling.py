"""AVG_POOL2D_ADAPTIVE and MAX_POOL2D_ADAPTIVE: pools whose window is computed."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.lowering.dialects.tosa.adaptive import AvgPool2DAdaptive, MaxPool2DAdaptive
from tosaic.lowering.dialects.tosa.pooling import AvgPool2D, MaxPool2D
from tosaic.lowering.graph.types import (
    BF16,
    F8E4M3,
    F16,
    F32,
    I8,
    I16,
    I32,
    I64,
    INDEX,
    Array,
    ElementType,
    ShapeType,
    TensorType,
)
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

from .dot_product import dot_product_bound
from .harness import Given, assert_equal, check, unknown
from .test_pooling import WINDOWS, integers, shape_for


def numbers(*extents: int) -> Array:
    return np.array(extents, np.int64)


def shape(*extents: int) -> Given:
    return Given(ShapeType(len(extents)), numbers(*extents))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("element", [I8, I16], ids=str)
def test_means_are_those_of_the_pool_with_that_window(window: Any, element: ElementType) -> None:
    _, kernel, stride, pad = window
    x, point = integers(shape_for(window), element), np.array([-3 if element == I8 else 0], element.dtype)
    found = check(AvgPool2DAdaptive(I32), x, point, point, *(numbers(*n) for n in (kernel, stride, pad)),
                  constants=range(1, 6), elements=dict.fromkeys((3, 4, 5), INDEX))
    assert_equal(found, AvgPool2D(kernel, stride, pad, I32).reference(x, point, point))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize(("element", "accumulator"), [(F32, F32), (F16, F16), (BF16, F32), (F8E4M3, F16)], ids=str)
def test_means_of_floats_are_within_the_dot_product_bound(window: Any, element: ElementType, accumulator: ElementType
                                                          ) -> None:
    _, kernel, stride, pad = window
    x, zero = np.random.default_rng(1).normal(size=shape_for(window)).astype(element.dtype), np.zeros(1, element.dtype)
    op = AvgPool2DAdaptive(accumulator)
    check(op, x, zero, zero, *(numbers(*n) for n in (kernel, stride, pad)), constants=range(1, 6),
          elements=dict.fromkeys((3, 4, 5), INDEX), bound=dot_product_bound(op, kernel[0] * kernel[1], element, accumulator))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("element", [I8, I16, F32, BF16, F8E4M3], ids=str)
@pytest.mark.parametrize("nan_mode", ["PROPAGATE", "IGNORE"])
def test_maxima_are_those_of_the_pool_with_that_window(window: Any, element: ElementType, nan_mode: str) -> None:
    _, kernel, stride, pad = window
    x = integers(shape_for(window), I8).astype(element.dtype)
    if element.is_float:
        x[0, 0, 0] = np.nan
    found = check(MaxPool2DAdaptive(nan_mode), x, *(numbers(*n) for n in (kernel, stride, pad)), constants=range(1, 4),
                  elements=dict.fromkeys((1, 2, 3), INDEX))
    assert_equal(found, MaxPool2D(kernel, stride, pad, nan_mode).reference(x))


IMAGE, ZERO = unknown(1, 6, 6, 2, element=I8), Given(TensorType((1,), I8), np.zeros(1, np.int8))
WINDOW = [shape(2, 2), shape(2, 2), shape(0, 0, 0, 0)]
BAD: list[tuple[list[Given], str]] = [
    ([shape(2), *WINDOW[1:]], r"the kernel must be !tosa.shape<2>, it is !tosa.shape<1>"),
    ([WINDOW[0], shape(2, 2, 2), WINDOW[2]], r"the stride must be !tosa.shape<2>"),
    ([*WINDOW[:2], shape(0, 0)], r"the pad must be !tosa.shape<4>"),
    ([Given(TensorType((2,), I64), numbers(2, 2)), *WINDOW[1:]], "the kernel must be !tosa.shape<2>, it is tensor<2xi64>"),
    ([shape(0, 2), *WINDOW[1:]], "kernel must not be below 1"),
    ([WINDOW[0], shape(2, 0), WINDOW[2]], "stride must not be below 1"),
    ([*WINDOW[:2], shape(-1, 0, 0, 0)], "pad must not be below 0"),
    ([*WINDOW[:2], shape(2, 0, 0, 0)], "must be below the kernel"),
    ([WINDOW[0], shape(3, 2), WINDOW[2]], "the stride 3 does not divide 4"),
    ([shape(7, 2), *WINDOW[1:]], "the window is larger than its input"),
]


@pytest.mark.parametrize(("window", "message"), BAD, ids=[message for _, message in BAD])
def test_windows_are_refused(window: list[Given], message: str) -> None:
    with pytest.raises(Problem, match=message):
        MaxPool2DAdaptive().result_types([IMAGE, *window])
    with pytest.raises(Problem, match=message):
        AvgPool2DAdaptive(I32).result_types([IMAGE, ZERO, ZERO, *window])


def test_other_rules_are_those_of_the_pools() -> None:
    assert MaxPool2DAdaptive().result_types([IMAGE, *WINDOW]) == (TensorType((1, 3, 3, 2), I8),)
    assert AvgPool2DAdaptive(I32).result_types([IMAGE, ZERO, ZERO, *WINDOW]) == (TensorType((1, 3, 3, 2), I8),)
    with pytest.raises(Problem, match="the accumulator of a pool of i8 may not be f32"):
        AvgPool2DAdaptive(F32).result_types([IMAGE, ZERO, ZERO, *WINDOW])
    with pytest.raises(Problem, match="the input must have rank 4"):
        MaxPool2DAdaptive().result_types([unknown(6, 6, 2, element=I8), *WINDOW])
    with pytest.raises(Problem, match="does not take 3 operands"):
        AvgPool2DAdaptive(I32).result_types([IMAGE, ZERO, ZERO])


def test_a_window_that_is_not_known_yet_leaves_places_unknown() -> None:
    window = [Given(ShapeType(2)), WINDOW[1], Given(ShapeType(4))]
    assert MaxPool2DAdaptive().result_types([IMAGE, *window]) == (TensorType((1, None, None, 2), I8),)
    assert AvgPool2DAdaptive(I32).result_types([IMAGE, ZERO, ZERO, *window]) == (TensorType((1, None, None, 2), I8),)
    with pytest.raises(Problem, match="the input of a pool may not be i32"):
        MaxPool2DAdaptive().result_types([unknown(1, 6, 6, 2, element=I32), *window])
    with pytest.raises(Problem, match="the zero point of the input must be i8"):
        AvgPool2DAdaptive(I32).result_types([IMAGE, Given(TensorType((1,), F32)), ZERO, *window])


TEXT = """
func.func @main(%x: tensor<2x6x9x3xf32>) -> (tensor<2x1x1x3xf32>, tensor<2x2x3x3xf32>) {
  %h = tosa.dim %x {axis = 1 : i32} : (tensor<2x6x9x3xf32>) -> !tosa.shape<1>
  %w = tosa.dim %x {axis = 2 : i32} : (tensor<2x6x9x3xf32>) -> !tosa.shape<1>
  %all = tosa.concat_shape %h, %w : (!tosa.shape<1>, !tosa.shape<1>) -> !tosa.shape<2>
  %places = tosa.const_shape {values = dense<[2, 3]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %part = tosa.div_floor_shape %all, %places : (!tosa.shape<2>, !tosa.shape<2>) -> !tosa.shape<2>
  %one = tosa.const_shape {values = dense<1> : tensor<2xindex>} : () -> !tosa.shape<2>
  %none = tosa.const_shape {values = dense<0> : tensor<4xindex>} : () -> !tosa.shape<4>
  %zero = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %mean = tosa.avg_pool2d_adaptive %x, %zero, %zero, %all, %one, %none {acc_type = f32} :
    (tensor<2x6x9x3xf32>, tensor<1xf32>, tensor<1xf32>, !tosa.shape<2>, !tosa.shape<2>, !tosa.shape<4>)
    -> tensor<2x1x1x3xf32>
  %most = tosa.max_pool2d_adaptive %x, %part, %part, %none {nan_mode = IGNORE} :
    (tensor<2x6x9x3xf32>, !tosa.shape<2>, !tosa.shape<2>, !tosa.shape<4>) -> tensor<2x2x3x3xf32>
  return %mean, %most : tensor<2x1x1x3xf32>, tensor<2x2x3x3xf32>
}
"""


def test_a_window_of_the_whole_image_is_computed_from_its_extents() -> None:
    model = tosaic.load(TEXT)
    x = np.random.default_rng(2).normal(size=(2, 6, 9, 3)).astype(np.float32)
    mean, most = model(x)
    np.testing.assert_allclose(mean, x.mean(axis=(1, 2), keepdims=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(most, x.reshape(2, 2, 3, 3, 3, 3).max(axis=(2, 4)))
    assert model.entry().check([[x]]).agrees
    text = print_module(read_module(TEXT))
    assert print_module(read_module(text)) == text and "#tosa.nan_mode<IGNORE>" in text and "acc_type = f32" in text


def test_windows_may_be_python_lists() -> None:
    x = np.arange(64, dtype=np.int8).reshape(1, 8, 8, 1)

    @tosaic.jit
    def pools(x: Any) -> Any:
        tosa = tosaic.tosa
        return (tosa.max_pool2d_adaptive(x, [2, 4], [2, 4], [0, 0, 0, 0]),
                tosa.avg_pool2d_adaptive(x, kernel=[2, 2], stride=[2, 2], pad=[0, 0, 0, 0]))

    most, mean = pools(x)
    np.testing.assert_array_equal(most, x.reshape(1, 4, 2, 2, 4, 1).max(axis=(2, 4)))
    np.testing.assert_array_equal(mean, np.floor(x.reshape(1, 4, 2, 4, 2, 1).mean(axis=(2, 4)) + 0.5).astype(np.int8))
