"""Images at places that data name, beside ONNX Runtime: grids, regions of interest, blocks of columns, groups of words."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from .models import agree, one_node
from .test_layout import ints, numbers


def grid(*shape: int, reach: float) -> Any:
    return np.random.default_rng((7, *shape)).uniform(-reach, reach, shape).astype(np.float32)


GRIDS = [(mode, padding, corners) for i, mode in enumerate(("linear", "nearest", "cubic"))
         for j, padding in enumerate(("zeros", "border", "reflection")) for corners in (0, 1) if (i + j + corners) % 2 == 0]
"""Half of all, among them every pair of a mode and a padding."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("mode", "padding", "corners"), GRIDS)
def test_grids(mode: str, padding: str, corners: int) -> None:
    own = {"padding_mode": padding, "align_corners": corners}
    old = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    near, far = [numbers(2, 2, 4, 5), grid(2, 3, 4, 2, reach=1.3)], [numbers(1, 2, 1, 5), grid(1, 3, 5, 2, reach=4)]
    agree(one_node("GridSample", near, {"mode": old, **own}, 16), near, rtol=1e-3, atol=1e-3)
    agree(one_node("GridSample", far, {"mode": mode, **own}, 20), far, rtol=1e-3, atol=1e-3)
    if mode != "cubic":
        volume = [numbers(1, 2, 3, 4, 5), grid(1, 2, 3, 2, 3, reach=1.5)]
        agree(one_node("GridSample", volume, {"mode": mode, **own}, 20), volume, rtol=1e-3, atol=1e-3)


BOXES = np.float32([[0, 0, 5, 6], [1.3, 2.1, 7.9, 4.5], [3, 3, 3, 3], [-2, -3, 2, 9], [5, 5, 2, 1]])


ALIGNED = [(opset, coordinates, mode, samples)
           for i, (opset, coordinates) in enumerate(((10, None), (16, None), (16, "half_pixel"), (16, "output_half_pixel")))
           for j, mode in enumerate(("avg", "max")) for samples in range(4)
           if (i + j + samples) % 2 == 0 and (opset > 10 or samples > 0)]
"""Half of all, among them every way to place coordinates with each number of samples (0: as the extent has it)."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("opset", "coordinates", "mode", "samples"), ALIGNED)
def test_regions_are_aligned(opset: int, coordinates: str | None, mode: str, samples: int) -> None:
    arrays = [numbers(2, 3, 7, 8), BOXES, ints(0, 1, 0, 1, 1)]
    own: dict[str, Any] = {"mode": mode, "sampling_ratio": samples, "output_height": 3, "output_width": 2, "spatial_scale": 0.7}
    own |= {} if coordinates is None else {"coordinate_transformation_mode": coordinates}
    agree(one_node("RoiAlign", arrays, own, opset), arrays, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("shape", "scale"), [([3, 2], 0.7), ([1, 5], 2.0)])
def test_regions_are_pooled(shape: list[int], scale: float) -> None:
    boxes = np.concatenate([np.float32([[0], [1], [0], [1], [1]]), BOXES], 1)
    arrays = [numbers(2, 3, 7, 8), boxes]
    agree(one_node("MaxRoiPool", arrays, {"pooled_shape": shape, "spatial_scale": scale}, 16), arrays)


@pytest.mark.parametrize(("columns", "image", "block", "attributes"), [
    ((1, 5, 5), (5, 5), (1, 5), {}), ((2, 12, 4), (4, 4), (2, 2), {"dilations": [2, 2]}),
    ((2, 12, 9), (5, 4), (2, 2), {"strides": [2, 2], "pads": [0, 1, 1, 1]}), ((1, 16, 12), (3, 4, 3), (2, 2, 2), {}),
    ((1, 4, 4), (8,), (2,), {"strides": [2]})])
def test_columns_become_images(columns: Any, image: Any, block: Any, attributes: dict[str, Any]) -> None:
    inputs = [numbers(*columns), ints(*image), ints(*block)]
    agree(one_node("Col2Im", inputs, attributes, 18, constants=[1, 2]), inputs[:1])


@pytest.mark.parametrize("corners", [0, 1])
def test_affine_grids(corners: int) -> None:
    for theta, size in ((numbers(2, 2, 3), (2, 3, 4, 5)), (numbers(2, 3, 4), (2, 3, 4, 5, 2))):
        model = one_node("AffineGrid", [theta, ints(*size)], {"align_corners": corners}, 20, constants=[1])
        agree(model, [theta])


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("size", [(1, 3, 4, 5), (1, 1, 1, 3), (1, 2, 3, 1, 2), (3, 1, 1, 1)])
def test_affine_grids_with_extents_of_one(size: tuple[int, ...], corners: int) -> None:
    """The body that the specification gives drops such extents."""
    theta = numbers(size[0], len(size) - 2, len(size) - 1)
    agree(one_node("AffineGrid", [theta, ints(*size)], {"align_corners": corners}, 20, constants=[1]), [theta])


COUNTED = [(lengths, skips, mode) for i, lengths in enumerate(((1, 1), (1, 2), (2, 3), (1, 3)))
           for j, skips in enumerate((0, 1, 3)) for k, mode in enumerate(("TF", "IDF", "TFIDF")) if (i + j + k) % 3 == 0]
"""A third of all, among them every pair of two of the three."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("lengths", "skips", "mode"), COUNTED)
def test_groups_of_words_are_counted(mode: str, skips: int, lengths: tuple[int, int]) -> None:
    own = {"mode": mode, "max_skip_count": skips, "min_gram_length": lengths[0], "max_gram_length": lengths[1],
           "ngram_counts": [0, 2, 8], "ngram_indexes": [0, 1, 3, 2, 6, 5, 4],
           "pool_int64s": [0, 1, 1, 2, 3, 1, 0, 0, 1, 2, 3, 0, 0, 1], "weights": [2.0, 1.5, 3.0, 0.5, 1.0, 7.0, 8.0]}
    generator = np.random.default_rng(0)
    for words in (generator.integers(0, 4, (3, 9)), generator.integers(0, 4, 4).astype(np.int32)):
        agree(one_node("TfIdfVectorizer", [words], own, 9), [words])
