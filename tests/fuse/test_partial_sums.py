"""Sums over a concatenation are taken operand by operand, where that needs less memory than storing it."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.graph.graph import Value

from .graphs import Graph, conv, zero
from .test_fuse import agree


def depthwise(g: Graph, x: Value, taps: int, channels: int, pad: int = 0) -> Value:
    from tosaic.lowering.graph.types import I32
    rng = np.random.default_rng(3)
    weight = rng.integers(-127, 128, (taps, 1, channels, 1)).astype(np.int8)
    bias = rng.integers(-99, 99, channels).astype(np.int32)
    return g.op("depthwise_conv2d", x, weight, bias, np.array([-3], np.int8), zero("int8"), pad=(pad, pad, 0, 0), stride=(1, 1),
                dilation=(1, 1), acc_type=I32)


def test_a_convolution_over_two_tensors_stores_neither_together() -> None:
    g = Graph()
    old, new = g.input(1, 20, 1, 6, dtype="int8"), g.input(1, 1, 1, 6, dtype="int8")
    both = g.op("concat", old, new, axis=1)
    kernels = agree(g.module(depthwise(g, both, 21, 6)))
    assert [k.out.nbytes for k in kernels.kernels] == [24, 24]  # a sum for each channel, and the result


def test_what_would_need_more_memory_is_stored() -> None:
    """A pointwise convolution of two tensors side by side: its sums are four times as large as its input."""
    g = Graph()
    parts = [g.input(1, 6, 5, 2, dtype="int8") for _ in range(2)]
    weight = np.random.default_rng(0).integers(-127, 128, (16, 1, 1, 4)).astype(np.int8)
    both = g.op("concat", *parts, axis=3)
    kernels = agree(g.module(conv(g, both, weight, np.zeros(16, np.int32), zero_point=5)))
    assert [k.out.shape for k in kernels.kernels] == [(1, 6, 5, 4), (1, 6, 5, 16)]


def test_a_window_that_slides_over_the_seam_is_stored() -> None:
    g = Graph()
    parts = [g.input(1, 6, 1, 3, dtype="int8"), g.input(1, 4, 1, 3, dtype="int8")]
    kernels = agree(g.module(depthwise(g, g.op("concat", *parts, axis=1), 3, 3)))
    assert kernels.kernels[0].out.shape == (1, 10, 1, 3)


@pytest.mark.parametrize("operator", ["reduce_sum", "reduce_max", "reduce_min", "reduce_product"])
@pytest.mark.parametrize("counts", [(7, 1), (1, 2, 5), (3, 3, 3, 3)])
def test_reductions_over_several_operands(operator: str, counts: tuple[int, ...]) -> None:
    g = Graph()
    both = g.op("concat", *(g.input(n, 4) for n in counts), axis=0)
    kernels = agree(g.module(g.op("exp", g.op(operator, both, axis=0))))
    assert len(kernels.kernels) == len(counts)
    assert all(k.out.shape in ((4,), (1, 4)) for k in kernels.kernels)


def test_what_lies_around_the_sum_is_kept() -> None:
    g = Graph()
    old, new = g.input(1, 9, 1, 4, dtype="int8"), g.input(1, 1, 1, 4, dtype="int8")
    total = depthwise(g, g.op("concat", old, new, axis=1), 10, 4)
    kernels = agree(g.module(g.op("bitwise_and", total, np.full((1, 1, 1, 4), 0xFF, np.int32))))
    assert len(kernels.kernels) == 2
