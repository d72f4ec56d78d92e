"""Every rule of the tensor operators of TOSA 1.0: broken, it is a problem that names the operator and the rule."""
from __future__ import annotations

import pytest

from .graphs import assert_refused, changed
from .legal import ALL

INPUT_ZP, WEIGHT_ZP = "the zero point of the input must be 0", "the zero point of the weight must be 0"

OPERANDS_OF_CONVOLUTIONS = [
    ("1xi8=3 1xi8=-5", "2xi8=3 1xi8=-5", "the zero point of the input must have one element"),
    ("1xi8=3 1xi8=-5", "1xi8=3 i8=-5", "the zero point of the weight must have one element"),
    ("1xi8=3 1xi8=-5", "1xi8=3 1xi32=-5", "the zero point of the weight must be i8"),
    ("1xi8=3 1xi8=-5", "1xi8=3", "does not take 4 operands"),
    ("1xi8=3 1xi8=-5", "1xi8=3 1xi8=-5 1xi8=0", "does not take 6 operands"),
    ("acc_type = i32", "acc_type = i48", "may not be i48"),
    ("-> 1x", "-> 2x", "is declared"),
]
WINDOWS = [
    ("array<i64: 1, 1, 1, 1>", "array<i64: 1, -1, 1, 1>", "pad must not be below 0"),
    ("array<i64: 1, 1, 1, 1>", "array<i64: 1, 1, 1>", "pad has 3 numbers, 4 are needed"),
    ("array<i64: 2, 1>", "array<i64: 2, 0>", "stride must not be below 1"),
    ("array<i64: 2, 1>", "array<i64: 2>", "stride has 1 numbers, 2 are needed"),
    ("array<i64: 1, 2>", "array<i64: 0, 2>", "dilation must not be below 1"),
    ("array<i64: 1, 2>", "array<i64: 1, 2, 2>", "dilation has 3 numbers, 2 are needed"),
    ("array<i64: 2, 1>", "array<i64: 3, 1>", "the stride 3 does not divide 4"),
    ("array<i64: 1, 2>", "array<i64: 1, 7>", "the window is larger than its input"),
    ("1x6x5x2xi8 ", "1x5x2xi8 ", "the input must have rank 4"),
    ("-> 1x3x5x", "-> 1x4x5x", "but tensor<1x4x5x"),
    ("-> 1x3x5x", "-> 1x3x6x", "but tensor<1x3x6x"),
]
POOLS = [
    ("kernel = array<i64: 3, 2>", "kernel = array<i64: 0, 2>", "kernel must not be below 1"),
    ("kernel = array<i64: 3, 2>", "kernel = array<i64: 3>", "kernel has 1 numbers"),
    ("stride = array<i64: 3, 1>", "stride = array<i64: 3, -1>", "stride must not be below 1"),
    ("pad = array<i64: 1, 0, 0, 1>", "pad = array<i64: -1, 0, 0, 1>", "pad must not be below 0"),
    ("pad = array<i64: 1, 0, 0, 1>", "pad = array<i64: 1, 0, 0, 2>", "must be below the kernel"),
    ("pad = array<i64: 1, 0, 0, 1>", "pad = array<i64: 1, 0, 2, 1>", "must be below the kernel"),
    ("pad = array<i64: 1, 0, 0, 1>", "pad = array<i64: 1, 3, 0, 1>", "must be below the kernel"),
    ("pad = array<i64: 1, 0, 0, 1>", "pad = array<i64: 3, 0, 0, 1>", "must be below the kernel"),
    ("pad = array<i64: 1, 0, 0, 1>", "pad = array<i64: 1, 1, 0, 1>", "the stride 3 does not divide 4"),
    ("1x5x4x3x", "5x4x3x", "the input must have rank 4"),
    ("-> 1x2x4x3x", "-> 1x3x4x3x", "but tensor<1x3x4x3x"),
    ("-> 1x2x4x3x", "-> 1x2x5x3x", "but tensor<1x2x5x3x"),
]
WEIGHTS_OC = [
    ("3x4x2x2xi8", "3x4x2x3xi8", "the input has 2 channels, the weight 3"),
    ("3x4x2x2xi8", "4x2x2xi8", "the weight must have rank 4"),
    (" 3xi32", " 2xi32", "the bias has 2 numbers, for 3 output channels"),
    (" 3xi32", " 1x3xi32", "the bias must have rank 1"),
    (" 3xi32", " 3xi8", "may not be i8"),
    ("-> 1x3x5x3xi32", "-> 1x3x5x3xi8", "but tensor<1x3x5x3xi8> is declared"),
]
RULES = [
    ("argmax", "axis = 1", "axis = -1", "axis -1 is outside the 3 axes"),
    ("argmax", "axis = 1", "axis = 3", "axis 3 is outside the 3 axes"),
    ("argmax", "4x3x2xi8", "i8", "axis 1 is outside the 0 axes"),
    ("argmax", "-> 4x2xi32", "-> 4x1x2xi32", "but tensor<4x1x2xi32> is declared"),
    ("argmax", "-> 4x2xi32", "-> 4x3xi32", "but tensor<4x3xi32> is declared"),
    ("argmax", "-> 4x2xi32", "->", "has 1 results, 0 are declared"),
    ("argmax", "4x3x2xi8", "4x3x2xi1", "may not be i1"),
    *(("avg_pool2d", *rule) for rule in POOLS),
    ("avg_pool2d", "1xi8=3", "1xi8=3 1xi8=3", "does not take 4 operands"),
    ("avg_pool2d", "1xi8=3", "1xi16=3", "the zero point of the input must be i8"),
    ("avg_pool2d", "1xi8=-3", "2xi8=-3", "the zero point of the result must have one element"),
    ("avg_pool2d", "acc_type = i32", "acc_type = i48", "the accumulator of a pool of i8 may not be i48"),
    ("avg_pool2d f16", "1xf16=0.0 1xf16=0.0", "1xf16=1.0 1xf16=0.0", INPUT_ZP),
    ("avg_pool2d f16", "1xf16=0.0 1xf16=0.0", "1xf16=0.0 1xf16=1.0", "the zero point of the result must be 0"),
    *(("max_pool2d", *rule) for rule in POOLS),
    *(("conv2d", *rule) for rule in [*OPERANDS_OF_CONVOLUTIONS, *WINDOWS, *WEIGHTS_OC]),
    ("conv2d f16", "1xf16=0.0 1xf16=0.0", "1xf16=-1.0 1xf16=0.0", INPUT_ZP),
    ("conv2d f16", "1xf16=0.0 1xf16=0.0", "1xf16=0.0 1xf16=-1.0", WEIGHT_ZP),
    ("conv2d i4", "1xi4=0", "1xi4=1", WEIGHT_ZP),
    *(("conv3d", *rule) for rule in OPERANDS_OF_CONVOLUTIONS),
    ("conv3d i16", "1xi16=0", "1xi16=7", INPUT_ZP),
    ("conv3d", "array<i64: 1, 0, 1, 1, 1, 1>", "array<i64: -1, 0, 1, 1, 1, 1>", "pad must not be below 0"),
    ("conv3d", "array<i64: 1, 0, 1, 1, 1, 1>", "array<i64: 1, 1, 1, 1>", "pad has 4 numbers, 6 are needed"),
    ("conv3d", "array<i64: 4, 2, 1>", "array<i64: 0, 2, 1>", "stride must not be below 1"),
    ("conv3d", "array<i64: 4, 2, 1>", "array<i64: 3, 2, 1>", "the stride 3 does not divide 4"),
    ("conv3d", "array<i64: 3, 1, 2>", "array<i64: 0, 1, 2>", "dilation must not be below 1"),
    ("conv3d", " 3xi32", " 2xi32", "the bias has 2 numbers, for 3 output channels"),
    ("conv3d", "1x4x6x5x2xi8", "1x6x5x2xi8", "the input must have rank 5"),
    ("conv3d", "3x1x4x2x2xi8", "3x4x2x2xi8", "the weight must have rank 5"),
    ("conv3d", "3x1x4x2x2xi8", "3x1x4x2x1xi8", "the input has 2 channels, the weight 1"),
    ("conv3d", "-> 1x2x3x5x3x", "-> 1x3x3x5x3x", "but tensor<1x3x3x5x3x"),
    *(("depthwise_conv2d", *rule) for rule in [*OPERANDS_OF_CONVOLUTIONS, *WINDOWS]),
    ("depthwise_conv2d bf16", "1xbf16=0.0 1xbf16=0.0", "1xbf16=1.0 1xbf16=0.0", INPUT_ZP),
    ("depthwise_conv2d bf16", "1xbf16=0.0 1xbf16=0.0", "1xbf16=0.0 1xbf16=1.0", WEIGHT_ZP),
    ("depthwise_conv2d", "4x2x2x3xi8", "4x2x3x2xi8", "the input has 2 channels, the weight 3"),
    ("depthwise_conv2d", " 6xi32", " 3xi32", "the bias has 3 numbers, for 6 output channels"),
    ("depthwise_conv2d", "-> 1x3x5x6x", "-> 1x3x5x3x", "but tensor<1x3x5x3x"),
    *(("transpose_conv2d", *rule) for rule in OPERANDS_OF_CONVOLUTIONS),
    ("transpose_conv2d f32", "1xf32=0.0 1xf32=0.0", "1xf32=1.0 1xf32=0.0", INPUT_ZP),
    ("transpose_conv2d f32", "1xf32=0.0 1xf32=0.0", "1xf32=0.0 1xf32=1.0", WEIGHT_ZP),
    *(("transpose_conv2d", "array<i64: -2, -1, -1, 1>", f"array<i64: {pad}>", "cuts off the whole kernel")
      for pad in ("-3, -1, -1, 1", "-2, -3, -1, 1", "-2, -1, -2, 1", "-2, -1, -1, -2")),
    ("transpose_conv2d", "array<i64: -2, -1, -1, 1>", "array<i64: -2, -1>", "out_pad has 2 numbers, 4 are needed"),
    ("transpose_conv2d", "array<i64: 2, 1>", "array<i64: 0, 1>", "stride must not be below 1"),
    ("transpose_conv2d", "3x3x2x2xi8", "3x3x2x1xi8", "the input has 2 channels, the weight 1"),
    ("transpose_conv2d", " 3xi32", " 2xi32", "the bias has 2 numbers, for 3 output channels"),
    ("transpose_conv2d", "-> 1x4x5x3x", "-> 1x5x5x3x", "but tensor<1x5x5x3x"),
    ("transpose_conv2d", "-> 1x4x5x3x", "-> 1x4x6x3x", "but tensor<1x4x6x3x"),
    ("fft2d", "2x4x8xf32 2x4x8xf32 ->", "2x6x8xf32 2x6x8xf32 ->", "must be a power of two, it is 6"),
    ("fft2d", "2x4x8xf32 2x4x8xf32 ->", "2x4x3xf32 2x4x3xf32 ->", "must be a power of two, it is 3"),
    ("fft2d", "2x4x8xf32 2x4x8xf32 ->", "2x4x8xf32 2x8x8xf32 ->", "the imaginary part"),
    ("fft2d", "2x4x8xf32 2x4x8xf32 ->", "2x4x8xf32 ->", "does not take 1 operands"),
    ("fft2d", "2x4x8xf32 2x4x8xf32 ->", "2x4x8xf16 2x4x8xf16 ->", "f16"),
    ("fft2d", "-> 2x4x8xf32 2x4x8xf32", "-> 2x4x8xf32 2x4x5xf32", "but tensor<2x4x5xf32> is declared"),
    ("fft2d", "-> 2x4x8xf32 2x4x8xf32", "-> 2x4x8xf32", "has 2 results, 1 are declared"),
    ("rfft2d", "2x4x8xf32", "2x5x8xf32", "must be a power of two, it is 5"),
    ("rfft2d", "2x4x8xf32", "2x4x7xf32", "must be a power of two, it is 7"),
    ("rfft2d", "2x4x8xf32", "4x8xf32", "must have rank 3"),
    ("rfft2d", "-> 2x4x5xf32 2x4x5xf32", "-> 2x4x8xf32 2x4x8xf32", "but tensor<2x4x8xf32> is declared"),
    ("matmul", "1xi8=3", "1xi8=3 1xi8=0", "does not take 5 operands"),
    ("matmul", "2x4x5xi8", "2x3x5xi8", "the inner extents"),
    ("matmul", "2x4x5xi8", "1x4x5xi8", "the batches"),
    ("matmul", "2x3x4xi8", "3x4xi8", "must have rank 3"),
    ("matmul", "1xi8=-5", "2xi8=-5", "the zero point of the second operand must have one element"),
    ("matmul", "-> 2x3x5xi32", "-> 2x5x3xi32", "but tensor<2x5x3xi32> is declared"),
    ("matmul i16", "1xi16=0 1xi16=0", "1xi16=1 1xi16=0", "the zero point of the first operand must be 0"),
    ("matmul i16", "1xi16=0 1xi16=0", "1xi16=0 1xi16=1", "the zero point of the second operand must be 0"),
]


@pytest.mark.parametrize(("name", "old", "new", "words"), RULES)
def test_a_broken_rule_of_a_tensor_operator_is_named(name: str, old: str, new: str, words: str) -> None:
    assert_refused(changed(ALL[name], old, new), words)
