"""What is right is taken: a graph of every operator, numbers at their limits, and what is beyond level 8K but harmless."""
from __future__ import annotations

import numpy as np
import pytest
import tosaic
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.interpreter import interpret

from .graphs import assert_refused, changed, problem_of, text, verified
from .legal import ALL, LEGAL, RESCALE

POOL = "kernel = array<i64: {0}, 1>, stride = array<i64: {1}, 1>, pad = array<i64: {2}, {2}, 0, 0>"
CONVOLUTION = "pad = array<i64: 0, 0, 0, 0>, stride = array<i64: {}, 1>, dilation = array<i64: {}, 1>, acc_type = i32"
BEYOND_LEVEL = [
    "reshape 2x3xi8 [1,1,1,1,1,2,3] -> 1x1x1x1x1x2x3xi8", "abs 1x2x1x1x2x2x3xi32 -> 1x2x1x1x2x2x3xi32",
    "reverse 2x1x2x1x2x2x3x2xi8 -> 2x1x2x1x2x2x3x2xi8 | axis = 4 : i32",
    "transpose 2x1x2x1x2x2x3xi8 -> 3x2x1x2x1x2x2xi8 | perms = array<i32: 6, 0, 1, 2, 3, 4, 5>",
    "reduce_sum 2x1x2x1x2x2x3xi32 -> 2x1x2x1x1x2x3xi32 | axis = 4 : i32",
    "max_pool2d 1x9001x1x1xi8 -> 1x2x1x1xi8 | " + POOL.format(9000, 1, 0),
    "max_pool2d 1x9001x1x1xi8 -> 1x2x1x1xi8 | " + POOL.format(1, 9000, 0),
    "max_pool2d 1x2x1x1xi8 -> 1x8404x1x1xi8 | " + POOL.format(9001, 1, 8701),
    "avg_pool2d 1x9001x1x1xi8 1xi8=0 1xi8=0 -> 1x2x1x1xi8 | acc_type = i32, " + POOL.format(9000, 1, 0),
    "conv2d 1x9001x1x1xi8 1x9000x1x1xi8 1xi32 1xi8=1 1xi8=2 -> 1x2x1x1xi32 | " + CONVOLUTION.format(1, 1),
    "conv2d 1x9001x1x1xi8 1x2x1x1xi8 1xi32 1xi8=1 1xi8=2 -> 1x2x1x1xi32 | " + CONVOLUTION.format(1, 8999),
    "transpose_conv2d 1x2x1x1xi8 1x1x1x1xi8 1xi32 1xi8=1 1xi8=2 -> 1x9001x1x1xi32 | out_pad = array<i64: 0, 0, 0, 0>, "
    "stride = array<i64: 9000, 1>, acc_type = i32",
    "resize 1x2x1x1xi8 [2048,1,1,1] [0,0] [0,0] -> 1x2049x1x1xi32 | mode = BILINEAR",
    "concat " + "1xi8 " * 100 + "-> 100xi8 | axis = 0 : i32",
]
"""Kernels, strides, paddings and dilated kernels above 8192, scales above 256, lists of more than 64 tensors."""


@pytest.mark.parametrize("name", ALL)
def test_a_right_graph_is_taken(name: str) -> None:
    verified(ALL[name])


def test_every_operator_of_tosa_1_0_has_a_right_graph() -> None:
    regions = {"cond_if", "while_loop"}
    variables = {"variable", "variable_read", "variable_write"}
    assert len(LEGAL) == 75 - len(regions) - len(variables) - len({"custom"})
    assert {f"tosa.{name}" for name in LEGAL} <= set(OPERATORS)


@pytest.mark.parametrize("line", BEYOND_LEVEL, ids=lambda line: line[:40])
def test_what_is_beyond_level_8k_and_harms_nobody_is_computed(line: str) -> None:
    module = read_module(text(line))
    rng = np.random.default_rng(3)
    inputs = [rng.integers(-9, 9, v.tensor.dims).astype(v.tensor.element.dtype) for v in module.functions[0].arguments]
    assert tosaic.load(text(line))(*inputs).tolist() == interpret(module, None, inputs)[0].tolist()


def test_rank_33_is_refused() -> None:
    problem = problem_of(f"abs {'1x' * 31}2x3xi32 -> {'1x' * 31}2x3xi32")
    assert problem is not None and "has rank 33, there may be 32 axes" in problem.message
    assert not problem.unsupported


def test_a_result_of_too_many_bytes_names_its_operator() -> None:
    assert_refused("tile 65536xi8 [65536] -> 4294967296xi8", "4294967296 bytes, level 8K allows 2^31 - 1")
    verified("tile 32767xi8 [65536] -> 2147418112xi8")


def test_an_extent_that_is_not_known_may_be_any_that_fits() -> None:
    verified("add ?x3xi32 2x1xi32 -> ?x3xi32")
    verified("add ?x3xi32 ?x1xi32 -> 2x3xi32")
    verified("conv2d ?x?x5x2xi8 3x4x2x2xi8 3xi32 1xi8=3 1xi8=-5 -> 1x?x5x3xi32 |"
             + LEGAL["conv2d"].partition("|")[2])
    verified(f"rescale ?x?xi8 ?xi32 ?xi8 1xi8 1xi8 -> ?x?xi8 | {RESCALE.replace('per_channel = false', 'per_channel = true')}")
    assert_refused("add ?x3xi32 2x4xi32 -> 2x3xi32", "do not broadcast: 3 and 4")
    assert_refused(changed(LEGAL["conv2d"], "1x3x5x3xi32", "?x4x?x3xi32"), "but tensor<?x4x?x3xi32> is declared")


def test_a_rank_that_is_not_known_is_what_tosaic_cannot_do() -> None:
    problem = problem_of("abs *xi32 -> *xi32")
    assert problem is not None and problem.unsupported


DYNAMIC = """
func.func @f(%x: tensor<1x?x?x3xf32>, %y: tensor<?x6xf32>) -> (tensor<1x1x1x3xf32>, tensor<1x?x?x3xf32>, tensor<?x2x3xf32>) {
  %h = tosa.dim %x {axis = 1 : i32} : (tensor<1x?x?x3xf32>) -> !tosa.shape<1>
  %w = tosa.dim %x {axis = 2 : i32} : (tensor<1x?x?x3xf32>) -> !tosa.shape<1>
  %n = tosa.dim %y {axis = 0 : i32} : (tensor<?x6xf32>) -> !tosa.shape<1>
  %kernel = tosa.concat_shape %h, %w : (!tosa.shape<1>, !tosa.shape<1>) -> !tosa.shape<2>
  %one = tosa.const_shape {values = dense<1> : tensor<1xindex>} : () -> !tosa.shape<1>
  %two = tosa.const_shape {values = dense<2> : tensor<1xindex>} : () -> !tosa.shape<1>
  %three = tosa.const_shape {values = dense<3> : tensor<1xindex>} : () -> !tosa.shape<1>
  %stride = tosa.const_shape {values = dense<1> : tensor<2xindex>} : () -> !tosa.shape<2>
  %nothing = tosa.const_shape {values = dense<0> : tensor<2xindex>} : () -> !tosa.shape<2>
  %pad = tosa.const_shape {values = dense<0> : tensor<4xindex>} : () -> !tosa.shape<4>
  %zero = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %mean = tosa.avg_pool2d_adaptive %x, %zero, %zero, %kernel, %stride, %pad {acc_type = f32} : (tensor<1x?x?x3xf32>,
    tensor<1xf32>, tensor<1xf32>, !tosa.shape<2>, !tosa.shape<2>, !tosa.shape<4>) -> tensor<1x1x1x3xf32>
  %rows = tosa.sub_shape %h, %one : (!tosa.shape<1>, !tosa.shape<1>) -> !tosa.shape<1>
  %scale = tosa.concat_shape %h, %rows, %two, %one : (!tosa.shape<1>, !tosa.shape<1>, !tosa.shape<1>, !tosa.shape<1>)
    -> !tosa.shape<4>
  %image = tosa.resize %x, %scale, %nothing, %nothing {mode = NEAREST_NEIGHBOR} : (tensor<1x?x?x3xf32>, !tosa.shape<4>,
    !tosa.shape<2>, !tosa.shape<2>) -> tensor<1x?x?x3xf32>
  %shape = tosa.concat_shape %n, %two, %three : (!tosa.shape<1>, !tosa.shape<1>, !tosa.shape<1>) -> !tosa.shape<3>
  %flat = tosa.reshape %y, %shape : (tensor<?x6xf32>, !tosa.shape<3>) -> tensor<?x2x3xf32>
  return %mean, %image, %flat : tensor<1x1x1x3xf32>, tensor<1x?x?x3xf32>, tensor<?x2x3xf32>
}
"""


def test_what_is_computed_from_extents_that_are_not_known_may_be_anything_until_they_are() -> None:
    model = tosaic.load(DYNAMIC)
    for h, w, n in ((4, 5, 2), (2, 3, 1)):
        x, y = np.arange(h * w * 3, dtype=np.float32).reshape(1, h, w, 3), np.arange(n * 6, dtype=np.float32).reshape(n, 6)
        mean, image, flat = model(x, y)
        assert np.allclose(mean, x.mean((1, 2), keepdims=True))
        assert image.shape == (1, h + 1, 2 * w - 1, 3)
        assert image[0, 0, :, 0].tolist() == x[0, 0, (np.arange(2 * w - 1) + 1) // 2, 0].tolist()
        assert flat.tolist() == y.reshape(n, 2, 3).tolist()
