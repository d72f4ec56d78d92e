"""AVG_POOL2D and MAX_POOL2D."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.pooling import AvgPool2D, MaxPool2D
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Load, Reduce
from tosaic.lowering.elements.tensor import stored
from tosaic.lowering.graph.types import BF16, F8E4M3, F8E5M2, F16, F32, I8, I16, I32, I48, Array, ElementType, TensorType
from tosaic.runtime.errors import Problem

from .dot_product import dot_product_bound
from .harness import Given, check, unknown

WINDOWS = [  # places, kernel, stride, pad
    ((3, 4), (1, 1), (1, 1), (0, 0, 0, 0)),
    ((4, 3), (2, 2), (2, 2), (0, 0, 0, 0)),
    ((4, 5), (3, 3), (1, 1), (1, 1, 1, 1)),
    ((3, 4), (3, 2), (2, 1), (0, 2, 1, 0)),
    ((4, 2), (2, 5), (1, 3), (0, 0, 4, 3)),
    ((2, 2), (4, 3), (3, 2), (3, 0, 0, 0)),
    ((1, 1), (7, 7), (1, 1), (0, 0, 0, 0)),
    ((2, 3), (2, 2), (3, 3), (1, 0, 0, 1)),
]
FLOATS = [(F32, F32), (F16, F16), (F16, F32), (BF16, F32), (F8E4M3, F16), (F8E5M2, F16)]


def shape_for(window: Any, channels: int = 3) -> tuple[int, ...]:
    places, kernel, stride, pad = window
    return (2, *((places[d] - 1) * stride[d] + kernel[d] - sum(pad[2 * d:2 * d + 2]) for d in range(2)), channels)


def integers(shape: tuple[int, ...], element: ElementType, seed: int = 0) -> Array:
    random = np.random.default_rng(seed)
    return random.integers(element.minimum, element.maximum + 1, shape).astype(element.dtype)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize(("element", "zero_points"), [(I8, (0, 0)), (I8, (-128, 127)), (I8, (17, -5)), (I16, (0, 0))])
@pytest.mark.parametrize("constants", [(1, 2), ()], ids=["known zero points", "zero points from data"])
def test_integer_avg_pool2d_follows_the_specification(window: Any, element: ElementType, zero_points: tuple[int, int],
                                                      constants: tuple[int, ...]) -> None:
    _, kernel, stride, pad = window
    x = integers(shape_for(window), element)
    out = check(AvgPool2D(kernel, stride, pad, I32), x, *(np.array([z], element.dtype) for z in zero_points),
                constants=constants)
    for n, oy, ox, c in np.ndindex(*out.shape):
        inside = [int(x[n, oy * stride[0] - pad[0] + ky, ox * stride[1] - pad[2] + kx, c]) - zero_points[0]
                  for ky, kx in np.ndindex(*kernel) if 0 <= oy * stride[0] - pad[0] + ky < x.shape[1]
                  and 0 <= ox * stride[1] - pad[2] + kx < x.shape[2]]
        k = (len(inside) - 1).bit_length()
        multiplier, shift = (((1 << 30) + 1) << k) // len(inside), 30 + k
        mean = ((sum(inside) * multiplier + (1 << (shift - 1))) >> shift) + zero_points[1]
        assert out[n, oy, ox, c] == min(max(mean, element.minimum), element.maximum)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize(("element", "acc_type"), FLOATS, ids=str)
def test_float_avg_pool2d_is_within_the_dot_product_bound(window: Any, element: ElementType,
                                                          acc_type: ElementType) -> None:
    _, kernel, stride, pad = window
    x = np.random.default_rng(1).normal(size=shape_for(window)).astype(element.dtype)
    op, zero = AvgPool2D(kernel, stride, pad, acc_type), np.zeros(1, element.dtype)
    terms = kernel[0] * kernel[1]
    check(op, x, zero, zero, constants=(1, 2), bound=dot_product_bound(op, terms, element, acc_type))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("element", [I8, I16])
def test_integer_max_pool2d_is_the_greatest_of_its_window(window: Any, element: ElementType) -> None:
    _, kernel, stride, pad = window
    x = integers(shape_for(window), element, 2)
    out = check(MaxPool2D(kernel, stride, pad), x)
    for n, oy, ox, c in np.ndindex(*out.shape):
        rows = slice(max(0, oy * stride[0] - pad[0]), oy * stride[0] - pad[0] + kernel[0])
        columns = slice(max(0, ox * stride[1] - pad[2]), ox * stride[1] - pad[2] + kernel[1])
        assert out[n, oy, ox, c] == x[n, rows, columns, c].max()


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("element", [F32, F16, BF16, F8E4M3, F8E5M2])
@pytest.mark.parametrize("nan_mode", ["PROPAGATE", "IGNORE"])
def test_float_max_pool2d_treats_nan_as_its_mode_says(window: Any, element: ElementType, nan_mode: str) -> None:
    _, kernel, stride, pad = window
    random = np.random.default_rng(3)
    values = random.normal(size=shape_for(window))
    values[random.random(values.shape) < 0.3] = np.nan
    if element != F8E4M3:
        values[random.random(values.shape) < 0.2] = -np.inf
    out = check(MaxPool2D(kernel, stride, pad, nan_mode), values.astype(element.dtype)).astype(np.float64)
    x = values.astype(element.dtype).astype(np.float64)
    for n, oy, ox, c in np.ndindex(*out.shape):
        rows = slice(max(0, oy * stride[0] - pad[0]), oy * stride[0] - pad[0] + kernel[0])
        columns = slice(max(0, ox * stride[1] - pad[2]), ox * stride[1] - pad[2] + kernel[1])
        seen = [v for v in x[n, rows, columns, c].flat if not (nan_mode == "IGNORE" and np.isnan(v))]
        expected = np.nan if not seen or np.isnan(seen).any() else max(seen)
        np.testing.assert_equal(out[n, oy, ox, c], expected)


@pytest.mark.parametrize("element", [I8, F32])
@pytest.mark.parametrize("nan_mode", ["PROPAGATE", "IGNORE"])
def test_padding_is_left_out_of_a_pool(element: ElementType, nan_mode: str) -> None:
    """The guards are the reduction's own, so that the body needs none."""
    x = stored(TensorType((1, 5, 5, 2), element), Buffer("x", element.storage, (1, 5, 5, 2)))
    out = TensorType((1, 5, 5, 2), element)
    axes = [Affine.of(Axis("i", n)) for n in out.dims]
    found = MaxPool2D((3, 3), (1, 1), (1, 1, 1, 1), nan_mode).element(out, x)(*axes)
    assert isinstance(found, Reduce) and len(found.where) == 2 and isinstance(found.body, Load)


# ---- what is refused ---------------------------------------------------------------------------------------------
GOOD: dict[str, Any] = {"kernel": (2, 2), "stride": (1, 1), "pad": (0, 0, 0, 0)}
X = unknown(1, 4, 4, 3, element=I8)
ZERO = Given(TensorType((1,), I8), np.zeros(1, np.int8))
BAD: list[tuple[dict[str, Any], Given, str]] = [
    ({"kernel": (0, 2)}, X, "kernel must not be below 1"),
    ({"kernel": (2,)}, X, "kernel has 1 numbers, 2 are needed"),
    ({"stride": (1, 0)}, X, "stride must not be below 1"),
    ({"pad": (0, 0, -1, 0)}, X, "pad must not be below 0"),
    ({"pad": (2, 0, 0, 0)}, X, r"must be below the kernel \[2, 2\]"),
    ({"pad": (0, 0, 0, 2)}, X, r"must be below the kernel \[2, 2\]"),
    ({"kernel": (3, 2), "stride": (2, 1)}, X, "the stride 2 does not divide 1"),
    ({"kernel": (5, 1)}, X, "the window is larger than its input"),
    ({}, unknown(4, 4, 3, element=I8), "the input must have rank 4"),
    ({}, unknown(1, 4, 4, 3, element=I32), "the input of a pool may not be i32"),
]


@pytest.mark.parametrize(("attributes", "x", "message"), BAD, ids=[b[2] for b in BAD])
def test_a_pool_refuses(attributes: dict[str, Any], x: Given, message: str) -> None:
    with pytest.raises(Problem, match=message):
        MaxPool2D(**GOOD | attributes).result_types([x])
    zero = Given(TensorType((1,), x.type.element), np.zeros(1, x.type.element.dtype))
    with pytest.raises(Problem, match=message):
        AvgPool2D(**GOOD | attributes, acc_type=I32).result_types([x, zero, zero])


@pytest.mark.parametrize(("element", "acc_type", "zero_points", "message"), [
    (I8, I48, (0, 0), "the accumulator of a pool of i8 may not be i48"),
    (I16, I32, (1, 0), "the zero point of the input must be 0 for i16, it is 1"),
    (I16, I32, (0, 2), "the zero point of the result must be 0 for i16, it is 2"),
    (F32, F32, (0, 1), "the zero point of the result must be 0 for f32"),
])
def test_avg_pool2d_refuses(element: ElementType, acc_type: ElementType, zero_points: tuple[int, int], message: str
                            ) -> None:
    operands = [Given(TensorType((1,), element), np.array([z], element.dtype)) for z in zero_points]
    with pytest.raises(Problem, match=message):
        AvgPool2D(**GOOD, acc_type=acc_type).result_types([unknown(1, 4, 4, 3, element=element), *operands])


def test_an_unknown_extent_stays_unknown() -> None:
    found, = MaxPool2D(**GOOD).result_types([unknown(None, 4, None, 3, element=I8)])
    assert found == TensorType((None, 3, None, 3), I8)
    assert AvgPool2D(**GOOD, acc_type=I32).result_types([X, ZERO, ZERO]) == (TensorType((1, 3, 3, 3), I8),)
