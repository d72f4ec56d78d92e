"""The kernels of operators and short chains, by every strategy, against the meaning of their expressions."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import F32, I8, I32, I48

from ..fuse.graphs import Graph, conv, rescale, zero
from .kernels import check

RNG = np.random.default_rng(7)
SAME = (1, 1, 1, 1)


def floats(*shape: int) -> np.ndarray:
    """Halves: sums of their products are exact in every order."""
    return (RNG.integers(-6, 7, shape) / 2).astype(np.float32)


def integers(*shape: int, dtype: str = "int8") -> np.ndarray:
    return RNG.integers(-127, 128, shape).astype(dtype)


def convolution(g: Graph, x: Value, out: int, kernel: tuple[int, int], **window: tuple[int, ...]) -> Value:
    channels = x.tensor.dims[-1]
    return conv(g, x, floats(out, *kernel, channels), floats(out), **window)


def byte_convolution(g: Graph, x: Value, out: int, kernel: tuple[int, int], zero_point: int = 3, **window: tuple[int, ...]
                     ) -> Value:
    channels = x.tensor.dims[-1]
    return conv(g, x, integers(out, *kernel, channels), RNG.integers(-999, 999, out).astype(np.int32), zero_point, **window)


def depthwise(g: Graph, x: Value, multiplier: int = 1, zero_point: int = 0, **window: tuple[int, ...]) -> Value:
    channels = x.tensor.dims[-1]
    if x.tensor.element.is_float:
        return conv(g, x, floats(3, 3, channels, multiplier), floats(channels * multiplier), name="depthwise_conv2d", **window)
    bias = RNG.integers(-999, 999, channels * multiplier).astype(np.int32)
    return conv(g, x, integers(3, 3, channels, multiplier), bias, zero_point, "depthwise_conv2d", **window)


def wide_convolution(g: Graph) -> Value:
    """i16 times i8, summed in i48."""
    bias = g.constant(RNG.integers(-999, 999, 9).astype(np.int64), I48)
    return g.op("conv2d", g.input(1, 6, 7, 5, dtype="int16"), integers(9, 3, 3, 5), bias, zero("int16"), zero("int8"), pad=SAME,
                stride=(1, 1), dilation=(1, 1), acc_type=I48)


def clamp(g: Graph, x: Value) -> Value:
    low, high = (0.0, 1.0) if x.tensor.element.is_float else (-7, 100)
    return g.op("clamp", x, min_val=low, max_val=high)


Case = Callable[[Graph], Value]
CASES: dict[str, Case] = {
    "add": lambda g: g.op("add", g.input(3, 37), g.input(1, 37)),
    "chain": lambda g: g.op("sub", g.op("tanh", g.op("exp", g.op("add", g.input(5, 100), floats(1, 1)))), floats(5, 1)),
    "clamp i8": lambda g: clamp(g, g.input(3, 333, dtype="int8")),
    "pad": lambda g: g.op("pad", g.input(2, 5, 40), g.shape(0, 1, 1, 0, 2, 3), np.array([7], np.float32)),
    "slice": lambda g: g.op("slice", g.input(4, 50), g.shape(1, 3), g.shape(2, 33)),
    "concat": lambda g: g.op("concat", g.input(3, 20), g.input(3, 37), g.input(3, 5), axis=1),
    "concat slice add": lambda g: g.op("add", g.op("slice", g.op("concat", g.input(3, 20), g.input(3, 37), axis=1),
                                                   g.shape(0, 5), g.shape(3, 40)), floats(3, 40)),
    "transpose": lambda g: g.op("transpose", g.input(37, 50), perms=(1, 0)),
    "transpose 4": lambda g: g.op("transpose", g.input(2, 7, 5, 33), perms=(0, 3, 1, 2)),
    "transpose i8 exp": lambda g: g.op("transpose", g.input(19, 40, dtype="int8"), perms=(1, 0)),
    "transpose add": lambda g: g.op("add", g.op("transpose", g.input(37, 50), perms=(1, 0)), g.input(50, 37)),
    "reshape": lambda g: g.op("tanh", g.op("reshape", g.input(2, 3, 5, 7), g.shape(6, 35))),
    "reverse": lambda g: g.op("reverse", g.input(5, 43), axis=1),
    "reverse rows": lambda g: g.op("reverse", g.input(5, 43), axis=0),
    "tile": lambda g: g.op("tile", g.input(2, 5), g.shape(3, 4)),
    "reduce rows": lambda g: g.op("reduce_sum", g.input(5, 77), axis=1),
    "reduce max rows": lambda g: g.op("reduce_max", g.input(5, 133, dtype="int8"), axis=1),
    "reduce columns": lambda g: g.op("reduce_sum", g.input(50, 77), axis=0),
    "reduce all": lambda g: g.op("reduce_all", g.input(5, 77, dtype="bool"), axis=1),
    "reduce product": lambda g: g.op("reduce_product", g.input(3, 9), axis=1),
    "reduce square": lambda g: g.op("add", g.op("reduce_sum", g.op("exp", g.input(4, 30, 19)), axis=1), floats(4, 1, 1)),
    "argmax": lambda g: g.op("argmax", g.input(5, 77), axis=1),
    "argmax rows": lambda g: g.op("argmax", g.input(9, 40, dtype="int8"), axis=0),
    "max_pool": lambda g: g.op("max_pool2d", g.input(1, 11, 13, 20), kernel=(3, 3), stride=(2, 2), pad=SAME),
    "max_pool i8": lambda g: g.op("max_pool2d", g.input(1, 10, 12, 70, dtype="int8"), kernel=(2, 2), stride=(2, 2),
                                  pad=(0, 0, 0, 0)),
    "avg_pool": lambda g: g.op("avg_pool2d", g.input(1, 9, 11, 20), zero("float32"), zero("float32"), kernel=(3, 3),
                               stride=(1, 1), pad=SAME, acc_type=F32),
    "avg_pool i8": lambda g: g.op("avg_pool2d", g.input(1, 9, 11, 20, dtype="int8"), np.array([3], np.int8),
                                  np.array([-4], np.int8), kernel=(3, 3), stride=(2, 2), pad=SAME, acc_type=I32),
    "matmul": lambda g: g.op("matmul", g.input(1, 29, 33), floats(1, 33, 50), zero("float32"), zero("float32")),
    "matmul of activations": lambda g: g.op("matmul", g.input(2, 129, 33), g.input(2, 33, 50), zero("float32"),
                                            zero("float32")),
    "matmul of few rows": lambda g: g.op("matmul", g.input(2, 5, 33), g.input(2, 33, 21), zero("float32"), zero("float32")),
    "matmul of bytes": lambda g: g.op("matmul", g.input(2, 70, 33, dtype="int8"), g.input(2, 33, 21, dtype="int8"),
                                      np.array([3], np.int8), np.array([-9], np.int8)),
    "matmul i16": lambda g: g.op("matmul", g.input(1, 9, 33, dtype="int16"), g.input(1, 33, 21, dtype="int16"),
                                 zero("int16"), zero("int16")),
    "matrix times vector": lambda g: g.op("matmul", g.input(1, 29, 133), g.input(1, 133, 1), zero("float32"),
                                          zero("float32")),
    "vector times transposed": lambda g: g.op("matmul", g.input(1, 1, 133), g.op(
        "transpose", g.input(1, 29, 133), perms=(0, 2, 1)), zero("float32"), zero("float32")),
    "matmul transposed": lambda g: g.op("matmul", g.input(1, 40, 33), g.op(
        "transpose", g.input(1, 29, 33), perms=(0, 2, 1)), zero("float32"), zero("float32")),
    "conv 1x1": lambda g: clamp(g, convolution(g, g.input(1, 9, 7, 24), 40, (1, 1))),
    "conv 1x1 padded": lambda g: clamp(g, convolution(g, g.input(1, 9, 7, 24), 40, (1, 1), pad=(1, 2, 3, 0))),
    "conv 3x3": lambda g: clamp(g, convolution(g, g.input(1, 9, 30, 8), 24, (3, 3), pad=SAME)),
    "conv 3x3 s2": lambda g: clamp(g, convolution(g, g.input(1, 17, 31, 3), 32, (3, 3), stride=(2, 2), pad=SAME)),
    "conv 3x3 d2": lambda g: convolution(g, g.input(1, 12, 30, 4), 16, (3, 3), dilation=(2, 2), pad=(2, 2, 2, 2)),
    "conv 1x20": lambda g: convolution(g, g.input(1, 1, 50, 4), 16, (1, 20), pad=(0, 0, 10, 9)),
    "conv of one channel": lambda g: convolution(g, g.input(1, 7, 9, 1), 8, (3, 3), pad=SAME),
    "conv to one channel": lambda g: convolution(g, g.input(1, 7, 9, 8), 1, (3, 3), pad=SAME),
    "conv batch": lambda g: convolution(g, g.input(3, 7, 9, 8), 20, (3, 3), pad=SAME),
    "conv pad op": lambda g: convolution(g, g.op("pad", g.input(1, 9, 30, 8), g.shape(0, 0, 1, 1, 1, 1, 0, 0),
                                                 zero("float32")), 24, (3, 3)),
    "conv 3x3 i8": lambda g: rescale(g, byte_convolution(g, g.input(1, 9, 20, 8, dtype="int8"), 24, (3, 3), pad=SAME), 24,
                                     RNG),
    "conv 3x3 i8 s2": lambda g: rescale(g, byte_convolution(g, g.input(1, 9, 21, 3, dtype="int8"), 24, (3, 3), -128,
                                                            stride=(2, 2), pad=SAME), 24, RNG),
    "conv 1x1 i8": lambda g: rescale(g, byte_convolution(g, g.input(1, 9, 7, 72, dtype="int8"), 40, (1, 1)), 40, RNG),
    "conv 1x1 i8 padded": lambda g: byte_convolution(g, g.input(1, 9, 7, 5, dtype="int8"), 40, (1, 1), 7, pad=(1, 2, 0, 1)),
    "fully connected i8": lambda g: byte_convolution(g, g.input(1, 1, 1, 75, dtype="int8"), 11, (1, 1)),
    "conv i16": wide_convolution,
    "depthwise": lambda g: clamp(g, depthwise(g, g.input(1, 9, 30, 40), pad=SAME)),
    "depthwise i8": lambda g: rescale(g, depthwise(g, g.input(1, 9, 20, 40, dtype="int8"), 1, -7, pad=SAME), 40, RNG),
    "depthwise s2": lambda g: clamp(g, depthwise(g, g.input(1, 16, 28, 32), stride=(2, 2), pad=(0, 1, 0, 1))),
    "depthwise twice": lambda g: depthwise(g, g.input(1, 7, 9, 6), 2, pad=SAME),
    "transpose_conv2d": lambda g: g.op("transpose_conv2d", g.input(1, 5, 6, 4), floats(7, 3, 3, 4), floats(7),
                                       zero("float32"), zero("float32"), out_pad=(0, 0, 0, 0), stride=(2, 2), acc_type=F32),
    "transpose_conv2d s1": lambda g: g.op("transpose_conv2d", g.input(1, 5, 6, 4), floats(7, 3, 3, 4), floats(7),
                                          zero("float32"), zero("float32"), out_pad=(-1, 0, -1, 0), stride=(1, 1),
                                          acc_type=F32),
    "resize nearest": lambda g: g.op("resize", g.input(1, 7, 9, 5), g.shape(3, 2, 3, 2), g.shape(0, 0), g.shape(0, 0),
                                     mode="NEAREST_NEIGHBOR"),
    "resize bilinear": lambda g: g.op("resize", g.input(1, 7, 9, 5), g.shape(4, 2, 4, 2), g.shape(-1, -1), g.shape(1, 1),
                                      mode="BILINEAR"),
    "gather": lambda g: g.op("gather", g.input(2, 9, 21), g.input(2, 6, dtype="int32")),
    "scatter": lambda g: g.op("scatter", g.input(2, 9, 21), g.constant(
        np.array([[3, 1, 0, 8], [5, 2, 7, 6]], np.int32)), g.input(2, 4, 21)),
    "table": lambda g: g.op("table", g.input(3, 50, dtype="int8"), integers(256)),
    "select": lambda g: g.op("select", g.input(3, 50, dtype="bool"), g.input(3, 50), g.input(1, 50)),
    "intdiv": lambda g: g.op("intdiv", g.input(3, 21, dtype="int32"), g.input(3, 21, dtype="int32")),
    "cast to i8": lambda g: g.op("cast", g.input(3, 50), to=I8),
    "rank 0": lambda g: g.op("add", g.input(), g.input()),
    "one element": lambda g: g.op("exp", g.input(1, 1, 1)),
    "block": lambda g: convolution(g, clamp(g, depthwise(g, clamp(g, convolution(
        g, g.input(1, 14, 20, 16), 48, (1, 1))), stride=(2, 2), pad=(0, 1, 0, 1))), 24, (1, 1)),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_gives_what_its_expression_means(name: str) -> None:
    g = Graph()
    module = g.module(CASES[name](g))
    kernels = fuse(module, module.function("main"))
    large = max(k.out.size for k in kernels.kernels) > 1200
    check(kernels.kernels, interpret=not large)
