"""DeformConv on random shapes and attributes: beside ONNX Runtime, which knows images, and without offsets beside Conv."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import tosaic

pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from tosaic.lowering.dialects.onnx.interpret import interpret

from .models import agree, one_node, runtime_results


def random_case(seed: int, axes: int) -> tuple[list[Any], dict[str, Any], list[int]]:
    """x, filters, bias, groups of all kinds; the attributes; how many places the window has."""
    random = np.random.default_rng(seed)

    def some(low: int, high: int) -> list[int]:
        return random.integers(low, high + 1, axes).tolist()
    kernel, strides, dilations, pads = some(1, 3), some(1, 2), some(1, 2), random.integers(0, 3, 2 * axes).tolist()
    extents = [n + (k - 1) * d for n, k, d in zip(some(1, 5), kernel, dilations)]
    places = [(n + pads[a] + pads[a + axes] - (k - 1) * d - 1) // s + 1
              for a, (n, k, d, s) in enumerate(zip(extents, kernel, dilations, strides))]
    group, offset_group = int(random.choice([1, 2, 3])), int(random.choice([1, 2, 3]))
    n, channels, outputs = int(random.integers(1, 3)), 6, 3 * group
    count = math.prod(kernel)
    arrays = [random.normal(size=dims).astype(np.float32) for dims in (
        (n, channels, *extents), (outputs, channels // group, *kernel), (n, offset_group * count * axes, *places), (outputs,),
        (n, offset_group * count, *places))]
    arrays[2] *= np.float32(2)
    arrays[2][random.random(arrays[2].shape) < 0.3] = np.round(random.normal())
    for left_out in (3, 4):
        arrays[left_out] = arrays[left_out] if random.random() < 0.6 else None
    own = {"strides": strides, "dilations": dilations, "pads": pads, "group": group, "offset_group": offset_group}
    return arrays, own, places


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(6))
def test_images_are_as_onnx_runtime_has_them(seed: int) -> None:
    arrays, own, _ = random_case(seed, 2)
    model = one_node("DeformConv", arrays, own, 19 if seed % 2 else 22)
    agree(model, [a for a in arrays if a is not None], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_whole_offsets_of_nothing_are_a_convolution(axes: int) -> None:
    arrays, own, _ = random_case(40 + axes, axes)
    x, w, offset, b, _ = arrays
    own.pop("offset_group")
    groups = {**own, "offset_group": offset.shape[1] // (axes * math.prod(w.shape[2:]))}
    plain = one_node("Conv", [x, w, b], own, 22)
    right = runtime_results(plain, [a for a in (x, w, b) if a is not None])
    given = [x, w, np.zeros_like(offset), b]
    agree(one_node("DeformConv", given, groups, 22), [a for a in given if a is not None], right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axes", [1, 3])
def test_lines_and_volumes_are_as_the_reference_has_them(axes: int) -> None:
    arrays, own, places = random_case(60 + axes, axes)
    model = tosaic.from_onnx(one_node("DeformConv", arrays, own, 22))
    given = [a for a in arrays if a is not None]
    right = interpret(model.module, "main", given)
    assert right[0].shape[2:] == tuple(places)
    np.testing.assert_allclose(model(*given), right[0], 1e-4, 1e-4)


def test_half_floats_round_once() -> None:
    arrays, own, _ = random_case(3, 2)
    wide = [a for a in arrays if a is not None]
    halves = [a.astype(np.float16) for a in wide]
    right = runtime_results(one_node("DeformConv", arrays, own, 22), [h.astype(np.float32) for h in halves])
    model = one_node("DeformConv", [None if a is None else a.astype(np.float16) for a in arrays], own, 22)
    agree(model, halves, [r.astype(np.float16) for r in right], rtol=2e-3, atol=2e-3)


def test_offsets_of_another_shape_are_refused() -> None:
    x, w, offset = (np.zeros(dims, np.float32) for dims in ((1, 2, 4, 4), (1, 2, 3, 3), (1, 9, 2, 2)))
    with pytest.raises(tosaic.Problem, match=r"offsets of shape \[1, 9, 2, 2\] are not \[1, 18, 2, 2\]"):
        tosaic.from_onnx(one_node("DeformConv", [x, w, offset], {}, 22))(x, w, offset)
