"""Resize and Upsample beside ONNX Runtime: modes, ways to place coordinates, versions, policies, element types."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from .models import agree, one_node
from .test_layout import ints, numbers

FLOATS = ((1, 1, 1.7, 0.6), (1, 1, 2, 3), (1, 1, 0.5, 1 / 3))
SIZES = ((1, 2, 8, 3), (1, 2, 1, 1), (1, 2, 10, 14))
COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "half_pixel_symmetric", "align_corners", "tf_crop_and_resize")


VARIANTS: dict[str, list[dict[str, Any]]] = {
    "nearest": [{"nearest_mode": n} for n in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")],
    "linear": [{}, {"antialias": 1}],
    "cubic": [{}, {"antialias": 1}, {"exclude_outside": 1, "cubic_coeff_a": -0.5}, {"exclude_outside": 1, "antialias": 1}]}
"""Attributes of each mode: half of them with one extent and the other half with the next, in turn from one way to place
coordinates to the next."""


def holds(inputs: Sequence[Any], opset: int, op: str = "Resize", **attributes: Any) -> None:
    model = one_node(op, inputs, attributes, opset, constants=range(1, len(inputs)))
    agree(model, inputs[:1], rtol=1e-4, atol=1e-4)


def grids(coordinates: str) -> list[tuple[Any, Any]]:
    """Scales or sizes. Where a scale does not give a whole number, ONNX's tests place aligned corners by the product and ONNX
    Runtime by the whole number; where it has a fraction in single precision, both may see ties of symmetric ones."""
    scales = FLOATS[1:2] if coordinates in ("align_corners", "half_pixel_symmetric") else FLOATS
    return [(np.float32(s), None) for s in scales] + [(None, ints(*s)) for s in SIZES]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_every_way_to_place_coordinates(mode: str, coordinates: str) -> None:
    roi = np.float32([0, 0, 0.1, -0.2, 1, 1, 0.8, 1.1]) if coordinates == "tf_crop_and_resize" else np.zeros(0, np.float32)
    own: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": coordinates}
    own |= {"extrapolation_value": 10.0} if coordinates == "tf_crop_and_resize" else {}
    for number, (scales, sizes) in enumerate(grids(coordinates), COORDINATES.index(coordinates)):
        inputs = [numbers(1, 2, 5, 7), roi, scales, *([] if sizes is None else [sizes])]
        for each in VARIANTS[mode][number % 2::2]:
            holds(inputs, 19, **each, **own)


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_versions(mode: str, opset: int) -> None:
    x, none = numbers(1, 2, 5, 7), np.zeros(0, np.float32)
    holds([x, none, np.float32(FLOATS[0])], opset, mode=mode)
    holds([x, none, none, ints(*SIZES[0])], opset, mode=mode)
    if opset == 11:
        holds([x, none, np.float32(FLOATS[0])], opset, mode="nearest", coordinate_transformation_mode="tf_half_pixel_for_nn")


@pytest.mark.parametrize("scales", [(1, 1, 2, 2), (1, 1, 0.5, 0.5), (1, 1, 0.6, 1.3), (1, 1, 1 / 3, 2), (1, 1, 2.3, 3.1)])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_before_there_were_coordinates(mode: str, scales: tuple[float, ...]) -> None:
    x = numbers(1, 2, 5, 7)
    holds([x, np.float32(scales)], 10, mode=mode)
    if min(scales) >= 1:
        holds([x, np.float32(scales)], 9, "Upsample", mode=mode)
        holds([x], 7, "Upsample", mode=mode, scales=[float(s) for s in scales])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_policies_and_axes(mode: str, policy: str) -> None:
    x = numbers(1, 2, 5, 7)
    holds([x, None, None, ints(8, 9)], 18, mode=mode, axes=[2, 3], keep_aspect_ratio_policy=policy)
    holds([x, None, None, ints(9, 8)], 18, mode=mode, axes=[3, 2], keep_aspect_ratio_policy=policy)
    if policy == "stretch":  # ONNX Runtime leaves negative axes as they are with the others
        holds([x, None, None, ints(9, 8)], 18, mode=mode, axes=[-1, -2])
    if mode == "linear":
        volume = numbers(1, 2, 4, 5, 6)
        holds([volume, None, None, ints(8, 9, 3)], 18, mode=mode, axes=[2, 3, 4], keep_aspect_ratio_policy=policy)


@pytest.mark.parametrize("axes", [[2, 3], [3, 2]])
def test_a_part_of_some_axes(axes: list[int]) -> None:
    holds([numbers(1, 1, 5, 6), np.float32([0.2, 0.7, 0.3, 1.2]), None, ints(4, 4)], 18, mode="linear", axes=axes,
          coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=-3.0)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "float16"])
@pytest.mark.parametrize("scales", [(1, 1, 2, 4), (1, 1, 0.5, 0.25)])
def test_element_types(dtype: str, scales: tuple[float, ...]) -> None:
    """Weights that are exact: integers lose their fractions."""
    x = numbers(1, 2, 5, 7, dtype=dtype)
    holds([x, None, np.float32(scales)], 13, mode="nearest")
    if dtype != "float16":
        holds([x // 256 if dtype == "int32" else x, None, np.float32(scales)], 13, mode="linear")


def test_ranks() -> None:
    for x, scales in ((numbers(5), [2.5]), (numbers(5, 6), [2, 1.5]), (numbers(2, 5, 6), [1, 2.5, 2]),
                      (numbers(1, 5, 6, 3), [1, 2, 2, 1])):
        if x.ndim > 1:
            holds([x, None, np.float32(scales)], 13, mode="linear")
        holds([x, None, np.float32(scales)], 13, mode="nearest")
