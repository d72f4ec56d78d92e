"""Faults that random graphs have found, each in the smallest graph that shows it."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.graph.graph import Block, Module
from tosaic.lowering.graph.types import F8E4M3, F16, F32, I32

from ..fuse.graphs import Graph, random, zero
from .oracles.native import USABLE
from .oracles.verdict import Depth, check

Arrays = tuple[np.ndarray, ...]


def holds(module: Module, *calls: Arrays, loops: bool = True) -> None:
    """Every oracle agrees, on random inputs if none are given."""
    numbers = np.random.default_rng(1)
    inputs = calls or (tuple(random(numbers, v) for v in module.function("main").arguments),)
    check(module, inputs, Depth(operators=("host",), loops=tuple(USABLE) if loops else (), text=False))


def test_a_negative_number_to_a_power_that_is_subnormal_is_no_number() -> None:
    g = Graph()
    x, y = g.input(4), g.input(4)
    base = np.array([-1.5, -1e-45, 2.0, -3.0], np.float32)
    holds(g.module(g.op("pow", x, y)), (base, np.array([1e-45, -1e-45, 1e-45, 3.0], np.float32)))


def test_weights_of_eight_bit_floats_are_packed_while_compiling() -> None:
    rng, g = np.random.default_rng(2), Graph()
    x = g.input(1, 4, 4, 5, dtype="float8_e4m3fn")
    weight = rng.standard_normal((17, 2, 2, 5)).astype(F8E4M3.dtype)
    y = g.op("conv2d", x, weight, np.zeros(17, np.float16), zero("float8_e4m3fn"), zero("float8_e4m3fn"),
             pad=(0, 0, 0, 0), stride=(1, 1), dilation=(1, 1), acc_type=F16)
    holds(g.module(y))


@pytest.mark.parametrize("known", (False, True))
def test_a_condition_that_is_known_when_compiling_takes_its_branch(known: bool) -> None:
    g = Graph()
    x = g.input(2, 3)
    regions: list[Block] = []
    for name in ("tanh", "floor"):
        inner = Graph(name)
        regions.append(inner.finish(inner.op(name, x)))
    y = g.op("cond_if", np.array([known]), regions=regions)
    holds(g.module(y, g.op("add", y, x)))


def test_rows_whose_window_is_all_padding_wait_for_what_the_kernel_reads() -> None:
    rng, g = np.random.default_rng(3), Graph()
    x = g.op("exp", g.op("matmul", g.input(2, 16, 3), rng.standard_normal((2, 3, 16)).astype(np.float32), zero("float32"),
                         zero("float32")))
    images = g.op("reshape", x, g.shape(1, 2, 1, 16, 16))
    weight = rng.standard_normal((5, 3, 1, 2, 16)).astype(np.float32)
    y = g.op("conv3d", images, weight, np.zeros(5, np.float32), zero("float32"), zero("float32"),
             pad=(3, 0, 0, 0, 0, 3), stride=(2, 1, 1), dilation=(1, 1, 1), acc_type=F32)
    holds(g.module(y))


def test_a_part_of_a_concat_that_a_vector_never_reaches_is_no_access() -> None:
    g = Graph()
    x = g.input(7)
    joined = g.op("concat", x, x, x, x, axis=0)
    holds(g.module(g.op("reshape", joined, g.shape(7, 4))))


def test_a_padded_concat_of_two_short_operands_compiles() -> None:
    g = Graph()
    x, y = g.input(1, 2, dtype="int16"), g.input(1, 33, dtype="int16")
    joined = g.op("concat", x, y, g.op("reverse", x, axis=1), np.arange(5, dtype=np.int16).reshape(1, 5), axis=1)
    padded = g.op("pad", joined, g.shape(1, 0, 0, 3), np.array([7], np.int16))
    holds(g.module(g.op("reshape", padded, g.shape(2, 3, 5, 3, 1, 1))))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("rows", "stride", "pads"), (
    (1, (2, 2), (0, 0, 1, 1)), (5, (3, 2), (-2, 0, 0, 0)), (1, (3, 3), (0, 0, 0, 0)), (2, (2, 3), (1, -1, 0, 2))))
def test_each_phase_of_a_transposed_convolution_reads_its_own_weights(rows: int, stride: tuple[int, int],
                                                                      pads: tuple[int, ...]) -> None:
    rng, g = np.random.default_rng(4), Graph()
    x = g.input(1, rows, 3, 8, dtype="int8")
    weight = rng.integers(-9, 9, (2, 3, 4, 8)).astype(np.int8)
    y = g.op("transpose_conv2d", x, weight, np.array([585, 563], np.int32), np.array([3], np.int8), zero("int8"),
             out_pad=pads, stride=stride, acc_type=I32)
    holds(g.module(y))


def test_a_sum_that_leaves_the_range_of_floats_on_its_way_may_be_anything() -> None:
    g = Graph()
    x = g.input(2, 4)
    large = np.array([[3e38, 3e38, -3e38, -3e38], [1e38, 1.0, 2.0, 3.0]], np.float32)
    holds(g.module(g.op("reduce_sum", x, axis=1), g.op("reduce_product", x, axis=1)), (large,))


def test_arithmetic_of_infinite_constants_is_no_index() -> None:
    g = Graph()
    holds(g.module(g.op("pow", np.full((1, 1), np.inf, np.float32), g.input(2, 3))))
