"""Pools, normalisation and resizing of TensorFlow, as TOSA, against their references."""
from __future__ import annotations

import random

import ml_dtypes
import numpy as np
import pytest
from tosaic.lowering.dialects.tf.legalizations.resize import ResizedAxis
from tosaic.lowering.graph.types import Array
from tosaic.runtime.errors import Problem

from .operation_program import Known, check, operators, program
from .test_legalize_convolutions import FORMATS, arranged, values
from .three_ways import tosa_of


def pool_text(seed: int, spatial: int, explicit: bool) -> tuple[str, Array]:
    """The properties of a pool at random, and an input that its window fits."""
    draw = random.Random(seed)
    first = draw.random() < 0.4
    kernel, strides = (tuple(draw.randint(1, 4) for _ in range(spatial)) for _ in range(2))
    padding = draw.choice(["SAME", "VALID", "EXPLICIT"] if explicit else ["SAME", "VALID"])
    pads = [draw.randint(0, k - 1) for k in kernel for _ in range(2)]
    inner = tuple(k + draw.randint(0, 9 if spatial == 2 else 4) for k in kernel)
    text = (f'data_format = "{FORMATS[spatial, first]}", padding = "{padding}", ksize = {list(arranged(1, kernel, 1, first))}, '
            f"strides = {list(arranged(1, strides, 1, first))}")
    if padding == "EXPLICIT":
        text += f", explicit_paddings = {[0, 0, 0, 0, *pads] if first else [0, 0, *pads, 0, 0]}"
    return text, values(arranged(draw.randint(1, 2), inner, draw.randint(1, 6), first), seed)


@pytest.mark.parametrize("seed", range(10))
def test_pools_in_two_dimensions(seed: int) -> None:
    text, x = pool_text(seed, 2, explicit=True)
    check("MaxPool", text, [x], "f32")
    text, x = pool_text(seed + 50, 2, explicit=False)
    check("AvgPool", text, [x], "f32")


@pytest.mark.parametrize("seed", range(8))
def test_pools_in_three_dimensions(seed: int) -> None:
    text, x = pool_text(seed + 100, 3, explicit=False)
    check("MaxPool3D", text, [x], "f32")
    check("AvgPool3D", text, [x], "f32")


@pytest.mark.parametrize(("dtype", "element"), [
    (np.float16, "f16"), (ml_dtypes.bfloat16, "bf16"), (np.int8, "i8"), (np.int16, "i16"), (np.int32, "i32"),
    (np.uint8, "ui8")])
def test_pools_of_other_types(dtype: object, element: str) -> None:
    for seed in (3, 5):
        text, x = pool_text(seed, 2, explicit=False)
        check("MaxPool", text, [(4 * x).astype(dtype)], element)  # type: ignore[call-overload]
        if "f" in element:
            check("AvgPool", text, [x.astype(dtype)], element)  # type: ignore[call-overload]


@pytest.mark.parametrize(("text", "message"), [
    ('padding = "VALID", ksize = [1, 2, 2, 2], strides = [1, 1, 1, 1]', r"ksize is \[1, 2, 2, 2\]: along batch and channels"),
    ('padding = "VALID", ksize = [1, 9, 2, 1], strides = [1, 1, 1, 1]', "the window reaches over 9 elements"),
    ('padding = "EXPLICIT", ksize = [1, 2, 2, 1], strides = [1, 1, 1, 1], explicit_paddings = [0, 0, 2, 0, 0, 0, 0, 0]',
     "a padding of 2 is not below the window of 2"),
    ('padding = "VALID", ksize = [1, 2, 2, 1], strides = [1, 1, 1, 1], data_format = "HWNC"',
     "the data format HWNC is not known")])
def test_what_a_pool_may_not_be(text: str, message: str) -> None:
    with pytest.raises(Problem, match=message) as caught:
        tosa_of(program("MaxPool", text, [values((1, 6, 6, 3), 0)], "f32"))
    assert "tf.MaxPool" in str(caught.value)


# ---- normalisation -----------------------------------------------------------------------------------------------
RESULTS = ("f32",) * 5


def statistics(channels: int, mean: float = 0.0) -> list[Array]:
    scale, offset, middle, variance = (values((channels,), seed) for seed in range(4))
    return [scale, offset, middle + np.float32(mean), np.abs(variance) + np.float32(0.1)]


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("mean", [0.0, 5000.0])
def test_batch_normalisation_with_given_statistics(known: bool, data_format: str, mean: float) -> None:
    x = values((2, 5, 6, 5), 9) + np.float32(mean)
    given = statistics(5, mean)
    text = f'data_format = "{data_format}", epsilon = 1.0e-3 : f32, is_training = false'
    module = check("FusedBatchNormV3", text, [x, *(Known(v) if known else v for v in given)], *RESULTS)
    if known:
        assert len([n for n in operators(module) if n != "tosa.identity"]) == (2 if mean == 0 else 3)


@pytest.mark.parametrize("factor", [None, 1.0, 0.25])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_batch_normalisation_with_the_batchs_own_statistics(factor: float | None, data_format: str) -> None:
    text = f'data_format = "{data_format}", epsilon = 1.0e-3 : f32, is_training = true' + (
        "" if factor is None else f", exponential_avg_factor = {factor:e} : f32")
    check("FusedBatchNormV3", text, [values((3, 4, 6, 4), 9) + np.float32(2), *statistics(4)], *RESULTS)


@pytest.mark.parametrize(("dtype", "element"), [(np.float16, "f16"), (ml_dtypes.bfloat16, "bf16")])
def test_batch_normalisation_of_half_floats_counts_in_single_precision(dtype: object, element: str) -> None:
    x = values((2, 3, 4, 5), 9, dtype)
    text = 'data_format = "NHWC", epsilon = 1.0e-3 : f32, is_training = true'
    check("FusedBatchNormV3", text, [x, *statistics(5)], element, *RESULTS[1:])


def test_batch_normalisation_wants_a_number_for_each_channel() -> None:
    text = 'data_format = "NHWC", epsilon = 1.0e-3 : f32, is_training = false'
    with pytest.raises(Problem, match="the input has 4 channels, tensor<3xf32> is not one number for each"):
        tosa_of(program("FusedBatchNormV3", text, [values((1, 2, 2, 4), 0), *statistics(3)], *RESULTS))


@pytest.mark.parametrize("text", ["", "depth_radius = 2 : i64, bias = 2.0 : f32, alpha = 0.3 : f32, beta = 0.75 : f32",
                                  "depth_radius = 1 : i64, beta = 1.0 : f32"])
def test_local_response_normalisation(text: str) -> None:
    check("LRN", text, [values((2, 3, 4, 9), 1)], "f32")


# ---- resizing ----------------------------------------------------------------------------------------------------
MODES = ["align_corners = false, half_pixel_centers = false", "align_corners = true, half_pixel_centers = false",
         "align_corners = false, half_pixel_centers = true"]


@pytest.mark.parametrize(("seed", "text"), [(seed, MODES[seed % 3]) for seed in range(12)])
def test_resizing(seed: int, text: str) -> None:
    draw = random.Random(seed)
    shape = draw.randint(1, 2), draw.randint(1, 17), draw.randint(1, 17), draw.randint(1, 3)
    size = Known(np.array([draw.randint(1, 40), draw.randint(1, 40)], np.int32))
    check("ResizeNearestNeighbor", text, [values(shape, seed), size], "f32")
    check("ResizeBilinear", text, [values(shape, seed), size], "f32")


@pytest.mark.parametrize("text", MODES)
@pytest.mark.parametrize(("before", "after"), [((70, 5), (3, 2)), ((3, 4), (2300, 6)), ((40, 1), (1, 1)), ((1, 1), (33, 2))])
def test_resizing_beyond_what_tosa_resizes(before: tuple[int, int], after: tuple[int, int], text: str) -> None:
    for name in ("ResizeNearestNeighbor", "ResizeBilinear"):
        check(name, text, [values((1, *before, 2), 1), Known(np.array(after, np.int32))], "f32")


@pytest.mark.parametrize(("dtype", "element"), [(np.int8, "i8"), (np.uint8, "ui8"), (np.int32, "i32"), (np.float16, "f16")])
def test_resizing_other_types(dtype: object, element: str) -> None:
    x = (20 * values((1, 4, 5, 2), 1)).astype(dtype)  # type: ignore[call-overload]
    for text in MODES:
        size = Known(np.array([7, 3], np.int32))
        check("ResizeNearestNeighbor", text, [x, size], element)
        check("ResizeBilinear", text, [x, size], "f32")


def test_places_that_single_precision_moves_are_not_those_of_resize() -> None:
    moved = [(before, after) for before in range(1, 40) for after in range(1, 80)
             if not gathers_like_tosa(ResizedAxis(before, after, False, False))]
    assert moved, "every place is the same"
    for before, after in moved[:2]:
        size = Known(np.array([after, 1], np.int32))
        module = check("ResizeNearestNeighbor", MODES[0], [values((1, before, 1, 2), 1), size], "f32")
        assert "tosa.resize" not in operators(module)


def gathers_like_tosa(line: ResizedAxis) -> bool:
    """True if whole numbers say the same as single precision."""
    return bool((np.arange(line.after) * line.before // line.after == line.nearest()).all())


@pytest.mark.parametrize(("x", "size", "text", "message"), [
    ((1, 4, 4), [2, 2], MODES[0], "a tensor of rank 4 is needed"), ((1, 4, 4, 1), [2, 0], MODES[0], r"the size is \[2, 0\]"),
    ((1, 4, 4, 1), [2, 2], MODES[1].replace("false", "true"), "exclude each other")])
def test_what_a_resize_may_not_be(x: tuple[int, ...], size: list[int], text: str, message: str) -> None:
    with pytest.raises(Problem, match=message):
        tosa_of(program("ResizeBilinear", text, [values(x, 0), Known(np.array(size, np.int32))], "f32"))
