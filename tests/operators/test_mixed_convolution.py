"""Convolutions of two types of floats into a third, which TOSA 1.1 adds, and bytes into fp32."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.convolution import Conv2D, Conv3D, DepthwiseConv2D, TransposeConv2D
from tosaic.lowering.graph.operator import Op
from tosaic.lowering.graph.types import BF16, F8E4M3, F8E5M2, F16, F32, Array, ElementType
from tosaic.runtime.errors import Problem

from ..native.machines import runs_here
from ..schedule.kernels import TARGETS
from .dot_product import dot_product_bound
from .harness import Given, check, unknown
from .test_convolution import Types, agree, name_of, operands, typed, zero
from .test_elementwise_native import check as check_native

SMALL = (F8E4M3, F8E5M2, F16, BF16)
MIXED: list[Types] = [*((a, b, F32, F32) for a, b in itertools.product((*SMALL, F32), repeat=2)),
                      *((a, b, F16, F32) for a, b in itertools.product(SMALL, repeat=2)),
                      *((a, b, BF16, F32) for a, b in itertools.product((F8E4M3, F8E5M2, BF16), repeat=2)),
                      (BF16, F8E4M3, F16, BF16), (F8E5M2, F8E5M2, F16, BF16), (F8E4M3, F16, F16, F16)]


def arrays_for(op: Op, types: Types, channels: int = 3, filters: int = 4) -> list[Array]:
    random = np.random.default_rng(0)
    depth = (3,) if isinstance(op, Conv3D) else ()
    return operands(random, types, (2, *depth, 5, 4, channels), (filters, *depth, 2, 3, channels), filters)


OPS = [lambda acc: Conv2D((1, 0, 1, 1), (1, 1), (1, 1), acc), lambda acc: Conv3D((0,) * 6, (1,) * 3, (1,) * 3, acc),
       lambda acc: TransposeConv2D((0, 1, -1, 0), (2, 1), acc)]


@pytest.mark.parametrize("types", MIXED, ids=name_of)
@pytest.mark.parametrize("make", OPS, ids=["conv2d", "conv3d", "transpose_conv2d"])
def test_two_types_of_floats_are_within_the_dot_product_bound(make: Any, types: Types) -> None:
    op = make(types[3])
    agree(op, types, arrays_for(op, types), 18 * (3 if isinstance(op, Conv3D) else 1))


@pytest.mark.parametrize("element", [F8E4M3, F8E5M2])
def test_bytes_of_a_depthwise_convolution_sum_in_fp32(element: ElementType) -> None:
    types = element, element, F32, F32
    random = np.random.default_rng(1)
    agree(DepthwiseConv2D((0,) * 4, (1, 1), (1, 1), F32), types, operands(random, types, (1, 5, 4, 3), (2, 3, 3, 2), 6), 6)


@pytest.mark.parametrize(("types", "message"), [
    ((F16, BF16, F16, F16), "the accumulator of f16 and bf16 may not be f16"),
    ((F32, F16, F16, F32), "the bias, beside f32 and f16, may not be f16"),
    ((F16, BF16, BF16, F32), "the bias, beside f16 and bf16, may not be bf16"),
    ((F8E5M2, F8E4M3, F32, F16), "the accumulator of f8E5M2 and f8E4M3FN may not be f16")], ids=str)
def test_other_types_are_refused(types: Types, message: str) -> None:
    x, weight, bias = typed((1, 4, 4, 3), types[0]), typed((2, 3, 3, 3), types[1]), typed((1,), types[2])
    with pytest.raises(Problem, match=message):
        Conv2D((0,) * 4, (1, 1), (1, 1), types[3]).result_types([x, weight, bias, zero(types[0]), zero(types[1])])


def test_each_factor_has_a_zero_point_of_its_own_type() -> None:
    x, weight, bias = typed((1, 4, 4, 3), F8E4M3), typed((2, 3, 3, 3), BF16), typed((1,), F32)
    op = Conv2D((0,) * 4, (1, 1), (1, 1), F32)
    op.result_types([x, weight, bias, zero(F8E4M3), zero(BF16)])
    with pytest.raises(Problem, match="the zero point of the weight must be bf16"):
        op.result_types([x, weight, bias, zero(F8E4M3), zero(F8E4M3)])
    with pytest.raises(Problem, match="the zero point of the weight must be 0 for bf16, it is 1"):
        op.result_types([x, weight, bias, zero(F8E4M3), zero(BF16, 1)])


def test_a_depthwise_convolution_takes_one_type() -> None:
    depthwise = DepthwiseConv2D((0,) * 4, (1, 1), (1, 1), F32)
    x, bias = unknown(1, 4, 4, 3, element=F8E4M3), unknown(1, element=F32)
    with pytest.raises(Problem, match="the weight, beside f8E4M3FN, may not be f16"):
        depthwise.result_types([x, unknown(3, 3, 3, 1, element=F16), bias, zero(F8E4M3), zero(F16)])
    weight: Given = unknown(3, 3, 3, 1, element=F8E4M3)
    found, = depthwise.result_types([x, weight, bias, zero(F8E4M3), zero(F8E4M3)])
    assert str(found) == "tensor<1x2x2x3xf32>"


@pytest.mark.parametrize("target", [
    pytest.param(t, marks=pytest.mark.skipif(not runs_here(t), reason="this processor lacks its instructions"), id=key)
    for key, t in TARGETS.items() if key in ("512 bits", "256 bits, no masks", "128 bits", "scalar")])
@pytest.mark.parametrize("types", [(F8E4M3, F8E4M3, F32, F32), (F8E5M2, BF16, F16, F32), (F16, F8E4M3, F32, F32),
                                   (F32, F16, F32, F32)], ids=name_of)
def test_mixed_convolutions_in_native_code(types: Types, target: Any) -> None:
    for make in OPS:
        op = make(types[3])
        for channels, filters, constants in ((3, 4, (3, 4)), (8, 33, (1, 3, 4))):
            arrays = arrays_for(op, types, channels, filters)
            terms = 6 * channels * (3 if isinstance(op, Conv3D) else 1)
            check_native(target, op, *arrays, constants=constants,
                         bound=dot_product_bound(op, terms, types[2], types[3], True))


def test_the_reference_is_the_sum_of_products() -> None:
    random = np.random.default_rng(2)
    x, weight = random.integers(-8, 8, (1, 3, 3, 2)), random.integers(-8, 8, (1, 3, 3, 2))
    found = check(Conv2D((0,) * 4, (1, 1), (1, 1), F32), x.astype(F8E4M3.dtype), weight.astype(BF16.dtype),
                  np.array([0.5], np.float32), np.zeros(1, F8E4M3.dtype), np.zeros(1, BF16.dtype), constants=(3, 4))
    assert found.item() == (x * weight).sum() + 0.5
