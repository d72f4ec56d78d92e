"""Random groups of windows that are tiled by rows and divided into tasks: whatever their strides, and whoever else reads what
lies between, each row is computed, and results are the same.
"""
from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.kernels.interpret import run
from tosaic.lowering.kernels.kernel import Kernels, Parallel, walk
from tosaic.lowering.loops.interpret_steps import run_program
from tosaic.lowering.loops.verify import verify_program
from tosaic.lowering.row_tiling.row_tiling import RowPolicy
from tosaic.lowering.schedule.schedule import lower, lower_each_way
from tosaic.lowering.target.presets import target

from ..fuse.graphs import Graph, conv

TINY = replace(target("x86-64-v4"), l2_bytes=1 << 10, block_bytes=1 << 20)
CHOICES: tuple[tuple[int, RowPolicy], ...] = (
    (1, "memory"), (1, "cache"), (2, "cache"), (3, "cache"), (5, "cache"), (3, "memory"))
"""Threads, and which kernels are tiled."""


def windows(seed: int) -> Kernels:
    """Two to five windows over each other, of which some have strides above their extents; now and then one of the values
    between is a result as well, or is added behind the next window."""
    rng, g = random.Random(seed), Graph()
    x, seen = g.input(rng.choice((1, 1, 2)), rng.randint(12, 40), rng.randint(6, 12), rng.choice((2, 4))), list[Value]()
    for _ in range(rng.randint(2, 5)):
        if min(x.tensor.dims[1:3]) < 6:
            break
        y = window(rng, g, x)
        if y.type == x.type and seen and rng.random() < 0.4:
            y = g.op("add", y, x)
        x = y
        seen.append(x)
    results = [x, *(v for v in seen[:-1] if rng.random() < 0.2)]
    module = g.module(*results)
    return fuse(module, module.function("main"))


def window(rng: random.Random, g: Graph, x: Value) -> Value:
    """A convolution of some kind that leaves at least a row."""
    height, width = rng.choice((1, 1, 2, 3)), rng.choice((1, 3))
    dilation, pad = rng.choice((1, 1, 2)), rng.choice((0, 0, 1))
    stride = rng.choice((1, 1, 2, 3, 5))
    dims, channels = x.tensor.dims, x.tensor.dims[-1]
    ends = []
    for extent, k in ((dims[1], height), (dims[2], width)):
        free = extent + 2 * pad - 1 - (k - 1) * dilation
        ends.append(pad + (-free) % stride)  # the operator wants whole steps
    kind = rng.choice(("conv2d", "depthwise_conv2d"))
    out = rng.choice((channels, 8))
    shape = (out, height, width, channels) if kind == "conv2d" else (height, width, channels, 1)
    numbers = np.random.default_rng(rng.getrandbits(32))
    weight = (numbers.integers(-3, 4, shape) / 2).astype(np.float32)
    bias = numbers.integers(-3, 4, out if kind == "conv2d" else channels).astype(np.float32)
    return conv(g, x, weight, bias, name=kind, pad=(pad, ends[0], pad, ends[1]), stride=(stride, stride),
                dilation=(dilation, dilation))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("part", range(4))
def test_every_row_is_computed_whatever_the_strides(part: int) -> None:
    """Verified as each compile is."""
    divided = 0
    for seed in range(part * 25, part * 25 + 25):
        kernels = windows(seed)
        for threads, rows in CHOICES:
            for program in lower_each_way(kernels, TINY, rows, threads):
                verify_program(program)
                divided += any(isinstance(s, Parallel) for s in walk(program.steps))
    assert divided > 5


def test_what_a_chain_and_a_later_one_read_is_no_copy_of_a_task() -> None:
    """The second of three convolutions is a result, and the third adds the first."""
    g, numbers = Graph(), np.random.default_rng(0)

    def same(x: Value) -> Value:
        return conv(g, x, numbers.integers(-3, 4, (8, 3, 3, 8)).astype(np.float32), np.zeros(8, np.float32), pad=(1, 1, 1, 1))

    first = same(g.input(1, 12, 9, 8))
    second = same(first)
    module = g.module(second, g.op("add", same(second), first))
    kernels = fuse(module, module.function("main"))
    program = lower(kernels, TINY, "cache", 2)
    verify_program(program)
    x = numbers.integers(-4, 5, (1, 12, 9, 8)).astype(np.float32)
    for actual, right in zip(run_program(program, [x]), run(kernels, [x]), strict=True):
        np.testing.assert_array_equal(actual, right)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(12))
def test_tasks_of_rows_give_the_same_results(seed: int) -> None:
    kernels = windows(1000 + seed)
    numbers = np.random.default_rng(seed)
    inputs = [numbers.integers(-4, 5, b.shape).astype(b.dtype) for b in kernels.inputs]
    program = lower(kernels, TINY, "cache", 2 + seed % 2)
    for actual, right in zip(run_program(program, inputs), run(kernels, inputs), strict=True):
        np.testing.assert_array_equal(actual, right)
