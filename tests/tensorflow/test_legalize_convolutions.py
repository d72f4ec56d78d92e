"""Convolutions of TensorFlow, as TOSA, against their references: shapes, strides, dilations and paddings at random."""
from __future__ import annotations

import random

import ml_dtypes
import numpy as np
import pytest
from tosaic.lowering.graph.types import Array
from tosaic.runtime.errors import Problem

from .operation_program import Known, check, operators, program
from .three_ways import tosa_of

FORMATS = {(2, False): "NHWC", (2, True): "NCHW", (3, False): "NDHWC", (3, True): "NCDHW"}


def values(shape: tuple[int, ...], seed: int, dtype: object = np.float32) -> Array:
    generator = np.random.default_rng((seed, *shape))
    if np.dtype(dtype).kind == "i":  # type: ignore[call-overload]
        return generator.integers(-9, 9, shape).astype(dtype)  # type: ignore[no-any-return, call-overload]
    return generator.standard_normal(shape).astype(dtype)  # type: ignore[call-overload]


def arranged(batch: int, inner: tuple[int, ...], channels: int, first: bool) -> tuple[int, ...]:
    return (batch, channels, *inner) if first else (batch, *inner, channels)


def properties(spatial: int, first: bool, padding: str, strides: tuple[int, ...], dilations: tuple[int, ...],
               pads: tuple[int, ...] = ()) -> str:
    explicit = [0, 0, 0, 0, *pads] if first else [0, 0, *pads, 0, 0]
    return (f'data_format = "{FORMATS[spatial, first]}", padding = "{padding}", '
            f"strides = {list(arranged(1, strides, 1, first))}, dilations = {list(arranged(1, dilations, 1, first))}"
            + (f", explicit_paddings = {explicit}" if padding == "EXPLICIT" else ""))


class Drawn:
    """A convolution at random that has at least one place for its window."""

    def __init__(self, seed: int, spatial: int = 2, first: bool | None = None) -> None:
        draw = random.Random(seed)
        self.first = draw.random() < 0.4 if first is None else first
        self.padding = draw.choice(["SAME", "VALID", "EXPLICIT"])
        self.kernel = tuple(draw.randint(1, 4) for _ in range(spatial))
        self.strides = tuple(draw.randint(1, 4) for _ in range(spatial))
        self.dilations = tuple(draw.choice([1, 1, 2, 3]) for _ in range(spatial))
        reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations)]
        self.pads = tuple(draw.randint(0, 5) for _ in range(2 * spatial))
        self.inner = tuple(k + draw.randint(0, 9 if spatial == 2 else 4) for k in reach)
        self.batch, self.groups, self.inputs, self.each = (draw.randint(1, n) for n in (2, 3, 4, 4))
        self.text = properties(spatial, self.first, self.padding, self.strides, self.dilations, self.pads)

    def image(self, channels: int, dtype: object = np.float32) -> Array:
        return values(arranged(self.batch, self.inner, channels, self.first), 1, dtype)


@pytest.mark.parametrize("seed", range(20))
def test_convolutions_in_two_dimensions(seed: int) -> None:
    drawn = Drawn(seed)
    filter = values((*drawn.kernel, drawn.inputs, drawn.groups * drawn.each), 2)
    check("Conv2D", drawn.text, [drawn.image(drawn.groups * drawn.inputs), Known(filter) if seed % 2 else filter], "f32")


@pytest.mark.parametrize("seed", range(20))
def test_depthwise_convolutions(seed: int) -> None:
    drawn = Drawn(seed + 100)
    filter = values((*drawn.kernel, drawn.inputs, drawn.each), 2)
    check("DepthwiseConv2dNative", drawn.text, [drawn.image(drawn.inputs), Known(filter) if seed % 2 else filter], "f32")


@pytest.mark.parametrize("seed", range(12))
def test_convolutions_in_three_dimensions(seed: int) -> None:
    drawn = Drawn(seed + 200, spatial=3)
    if drawn.padding == "EXPLICIT":
        drawn.text = properties(3, drawn.first, "SAME", drawn.strides, drawn.dilations)
    check("Conv3D", drawn.text, [drawn.image(drawn.inputs), values((*drawn.kernel, drawn.inputs, drawn.each), 2)], "f32")


@pytest.mark.parametrize("seed", range(15))
def test_transposed_convolutions_go_back_to_any_shape_that_leads_here(seed: int) -> None:
    drawn = Drawn(seed + 300)
    reach = [(k - 1) * d + 1 for k, d in zip(drawn.kernel, drawn.dilations)]
    match drawn.padding:
        case "SAME":
            places = [-(-n // s) for n, s in zip(drawn.inner, drawn.strides)]
        case "VALID":
            places = [(n - k) // s + 1 for n, k, s in zip(drawn.inner, reach, drawn.strides)]
        case _:
            pads = zip(drawn.pads[::2], drawn.pads[1::2])
            places = [(n + sum(p) - k) // s + 1 for n, p, k, s in zip(drawn.inner, pads, reach, drawn.strides)]
    sizes = np.array(arranged(drawn.batch, drawn.inner, drawn.inputs, drawn.first), np.int32)
    x = values(arranged(drawn.batch, tuple(places), drawn.each, drawn.first), 3)
    filter = values((*drawn.kernel, drawn.inputs, drawn.each), 2)
    check("Conv2DBackpropInput", drawn.text, [Known(sizes), Known(filter) if seed % 2 else filter, x], "f32")


@pytest.mark.parametrize(("dtype", "element"), [(np.float16, "f16"), (ml_dtypes.bfloat16, "bf16"), (np.int32, "i32")])
@pytest.mark.parametrize("seed", range(3))
def test_other_types(seed: int, dtype: object, element: str) -> None:
    drawn = Drawn(seed + 400)
    check("Conv2D", drawn.text, [drawn.image(drawn.inputs, dtype), values((*drawn.kernel, drawn.inputs, drawn.each), 2, dtype)],
          element)
    check("DepthwiseConv2dNative", drawn.text,
          [drawn.image(drawn.inputs, dtype), values((*drawn.kernel, drawn.inputs, drawn.each), 2, dtype)], element)


def test_a_convolution_with_constant_filter_is_one_operator() -> None:
    text = properties(2, False, "SAME", (1, 1), (1, 1))
    module = tosa_of(program("Conv2D", text, [values((1, 8, 8, 3), 0), Known(values((3, 3, 3, 5), 1))], "f32"))
    assert operators(module) == ["tosa.conv2d"]


def test_what_a_stride_leaves_over_is_taken_from_the_padding_or_cropped() -> None:
    same = properties(2, False, "SAME", (2, 2), (1, 1))
    module = tosa_of(program("Conv2D", same, [values((1, 8, 7, 3), 0), Known(values((3, 3, 3, 5), 1))], "f32"))
    assert operators(module) == ["tosa.conv2d"]
    valid = properties(2, False, "VALID", (2, 2), (1, 1))
    module = tosa_of(program("Conv2D", valid, [values((1, 8, 7, 3), 0), Known(values((3, 3, 3, 5), 1))], "f32"))
    assert operators(module) == ["tosa.slice", "tosa.conv2d"]


def test_a_filter_of_one_input_channel_makes_a_convolution_of_groups_depthwise() -> None:
    module = tosa_of(program("Conv2D", properties(2, False, "SAME", (1, 1), (1, 1)),
                               [values((1, 8, 8, 6), 0), Known(values((3, 3, 1, 12), 1))], "f32"))
    assert operators(module) == ["tosa.depthwise_conv2d"]


PLAIN = properties(2, False, "VALID", (1, 1), (1, 1))


@pytest.mark.parametrize(("name", "text", "image", "filter", "message"), [
    ("Conv2D", PLAIN, (1, 8, 8, 3), (3, 3, 2, 4), "do not divide into groups"),
    ("Conv2D", PLAIN, (1, 8, 8, 6), (3, 3, 2, 4), "do not divide into groups"),
    ("Conv2D", PLAIN, (1, 8, 8, 3), (3, 3, 3), "the filter is tensor<3x3x3xf32>, a tensor of rank 4"),
    ("Conv2D", PLAIN, (8, 8, 3), (3, 3, 3, 4), "the input is tensor<8x8x3xf32>, a tensor of rank 4"),
    ("Conv2D", PLAIN, (1, 2, 8, 3), (3, 3, 3, 4), "the window reaches over 3 elements, the input has 2"),
    ("Conv2D", PLAIN.replace("NHWC", "NCHW_VECT_C"), (1, 8, 8, 3), (3, 3, 3, 4), "the data format NCHW_VECT_C is not known"),
    ("Conv2D", PLAIN.replace("VALID", "REFLECT"), (1, 8, 8, 3), (3, 3, 3, 4), "the padding REFLECT is not known"),
    ("Conv2D", PLAIN.replace("strides = [1, 1, 1, 1]", "strides = [1, 1, 1, 2]"), (1, 8, 8, 3), (3, 3, 3, 4),
     r"strides is \[1, 1, 1, 2\]: along batch and channels"),
    ("Conv2D", PLAIN.replace("strides = [1, 1, 1, 1]", "strides = [1, 1]"), (1, 8, 8, 3), (3, 3, 3, 4), "4 positive numbers"),
    ("Conv2D", PLAIN.replace("VALID", "EXPLICIT"), (1, 8, 8, 3), (3, 3, 3, 4), r"explicit_paddings is \[\]"),
    ("DepthwiseConv2dNative", PLAIN, (1, 8, 8, 3), (3, 3, 2, 4), "the input has 3 channels, the filter"),
    ("Conv3D", PLAIN.replace("NHWC", "NDHWC"), (1, 8, 8, 3), (3, 3, 3, 3, 4), "a tensor of rank 5 is needed")])
def test_what_a_convolution_may_not_be(name: str, text: str, image: tuple[int, ...], filter: tuple[int, ...], message: str
                                       ) -> None:
    with pytest.raises(Problem, match=message) as caught:
        tosa_of(program(name, text, [values(image, 0), values(filter, 1)], "f32"))
    assert f"tf.{name}" in str(caught.value) and caught.value.position is not None


def test_a_transposed_convolution_must_lead_back_to_its_input() -> None:
    sizes = Known(np.array([1, 9, 9, 3], np.int32))
    with pytest.raises(Problem, match=r"the input must have the shape \[1, 7, 7, 4\]"):
        tosa_of(program("Conv2DBackpropInput", PLAIN, [sizes, values((3, 3, 3, 4), 0), values((1, 6, 7, 4), 1)], "f32"))
    with pytest.raises(Problem, match="the shape of the result must be known"):
        tosa_of(program("Conv2DBackpropInput", PLAIN, [sizes.array, values((3, 3, 3, 4), 0), values((1, 7, 7, 4), 1)], "f32"))
