"""Graphs of one contraction each, so many that every strategy, packing and border of `schedule/contraction` is in some:
for `loop_texts.py`."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from tosaic.lowering.graph.graph import Module, Value
from tosaic.tests.fuse.graphs import Graph, conv, rescale, zero

SEED = 7
PRODUCTS = [(1, 1, 64, 64), (1, 1, 1000, 300), (1, 7, 40, 33), (1, 33, 100, 70), (1, 64, 64, 64), (1, 128, 256, 512),
            (1, 49, 320, 960), (1, 512, 512, 512), (3, 17, 48, 64), (2, 100, 130, 36), (1, 20, 1000, 1024), (1, 1, 2048, 2048),
            (1, 257, 3, 129), (1, 1024, 1024, 1024), (1, 8, 2000, 700), (1, 96, 64, 4096), (1, 40, 300, 3000)]
"""Batch, rows, columns, terms."""
WINDOWS: list[tuple[str, tuple[int, int, int], int, tuple[int, int], dict[str, Any]]] = [
    ("1x1", (14, 14, 64), 32, (1, 1), {}),
    ("1x1 wide", (28, 28, 96), 24, (1, 1), {}),
    ("1x1 odd", (7, 7, 33), 21, (1, 1), {}),
    ("1x1 long", (7, 7, 320), 1280, (1, 1), {}),
    ("3x3", (14, 14, 32), 32, (3, 3), {"pad": (1, 1, 1, 1)}),
    ("3x3 large", (28, 28, 64), 64, (3, 3), {"pad": (1, 1, 1, 1)}),
    ("3x3 image", (32, 32, 3), 16, (3, 3), {"pad": (0, 1, 0, 1), "stride": (2, 2)}),
    ("3x3 strided", (28, 28, 32), 48, (3, 3), {"pad": (1, 0, 1, 0), "stride": (2, 2)}),
    ("5x5 dilated", (20, 20, 8), 20, (5, 5), {"pad": (4, 4, 4, 4), "dilation": (2, 2)}),
    ("3x3 valid", (12, 12, 16), 24, (3, 3), {}),
    ("7x7", (21, 21, 4), 40, (7, 7), {"pad": (3, 3, 3, 3), "stride": (2, 2)}),
    ("1x5", (1, 40, 24), 30, (1, 5), {"pad": (0, 0, 2, 2)}),
    ("10x4", (49, 10, 1), 64, (10, 4), {"pad": (4, 5, 1, 1), "stride": (2, 2)}),
    ("6x1", (6, 1, 32), 16, (6, 1), {}),
    ("3x3 deep", (7, 7, 256), 256, (3, 3), {"pad": (1, 1, 1, 1)})]
"""Name, height, width and channels of the input, channels of the output, size of the window, attributes."""
DEPTHWISE: list[tuple[tuple[int, int, int], tuple[int, int], dict[str, Any]]] = [
    ((14, 14, 32), (3, 3), {"pad": (1, 1, 1, 1)}),
    ((7, 7, 160), (3, 3), {"pad": (1, 1, 1, 1)}),
    ((28, 28, 24), (5, 5), {"pad": (1, 2, 1, 2), "stride": (2, 2)}),
    ((25, 5, 64), (3, 3), {"pad": (1, 1, 1, 1)})]
TRANSPOSED = [((8, 8, 16), 24, (2, 2), (2, 2)), ((6, 9, 8), 12, (3, 3), (2, 2)), ((5, 5, 32), 16, (4, 4), (2, 2))]
VECTORS = [(1000, 512), (64, 2048), (4096, 1024), (10, 100)]
"""Rows and terms of matrices that are multiplied by a vector."""
Make = Callable[[Graph, np.random.Generator], Value]


def contractions() -> Iterator[tuple[str, Module]]:
    """Each graph with its name."""
    for name, make in {**dict(products()), **dict(windows()), **dict(others())}.items():
        g = Graph()
        result = make(g, np.random.default_rng(SEED))
        yield name, g.module(result)


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def integers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-128, 128, shape).astype(np.int8)


# ---- products of matrices ---------------------------------------------------------------------------------------------
def products() -> Iterator[tuple[str, Make]]:
    for shape in PRODUCTS:
        for dtype, zero_points in (("float32", (0, 0)), ("int8", (3, 0))):
            yield f"matmul {dtype} {shape}", partial(matmul, shape=shape, dtype=dtype, zero_points=zero_points)
            yield f"matmul {dtype} constant {shape}", partial(
                matmul, shape=shape, dtype=dtype, zero_points=zero_points, constant=True, epilogue=True)
    for shape in PRODUCTS[2:10]:
        yield f"matmul along K {shape}", partial(matmul, shape=shape, along=True)
        yield f"matmul a along M {shape}", partial(matmul, shape=shape, across=True)
        yield f"matmul float16 {shape}", partial(matmul, shape=shape, dtype="float16", constant=True)
        yield f"matmul computed {shape}", partial(matmul, shape=shape, constant=True, computed=True)
        yield f"matmul int8 along K {shape}", partial(matmul, shape=shape, dtype="int8", along=True, zero_points=(1, -7))
        yield f"matmul int8 zero points {shape}", partial(
            matmul, shape=shape, dtype="int8", constant=True, zero_points=(9, 4))
    for shape in ((1, 64, 48, 64), (1, 1, 96, 128)):
        yield f"matmul int4 {shape}", partial(
            matmul, shape=shape, dtype="int8", constant=True, zero_points=(2, 0), four_bits=True)
        yield f"matmul int16 {shape}", partial(matmul, shape=shape, dtype="int16")


def matmul(g: Graph, rng: np.random.Generator, shape: tuple[int, int, int, int], dtype: str = "float32", constant: bool = False,
           along: bool = False, across: bool = False, zero_points: tuple[int, int] = (0, 0), epilogue: bool = False,
           four_bits: bool = False, computed: bool = False) -> Value:
    """a[batch, rows, terms] times b[batch, terms, columns]; b lies `along` K, a `across` it; a is `computed`."""
    batch, rows, columns, terms = shape
    a = g.input(batch, *((terms, rows) if across else (rows, terms)), dtype=dtype)
    if across:
        a = g.op("transpose", a, perms=(0, 2, 1))
    if computed:
        a = g.op("sigmoid", a)
    if constant:
        data = floats(rng, batch, terms, columns).astype(dtype) if dtype != "int8" else integers(rng, batch, terms, columns)
        b = g.constant(data >> 4 if four_bits else data)
    else:
        b = g.input(batch, *((columns, terms) if along else (terms, columns)), dtype=dtype)
        b = g.op("transpose", b, perms=(0, 2, 1)) if along else b
    total = g.op("matmul", a, b, *(np.array([z], dtype) for z in zero_points))
    if not epilogue:
        return total
    if dtype == "int8":
        biased = g.op("add", total, rng.integers(-999, 999, (1, 1, columns)).astype(np.int32))
        return rescale(g, biased, columns, rng)
    return g.op("tanh", g.op("add", total, floats(rng, 1, 1, columns)))


# ---- windows ---------------------------------------------------------------------------------------------------------
def windows() -> Iterator[tuple[str, Make]]:
    for dtype in ("float32", "int8"):
        for name, shape, channels, size, attributes in WINDOWS:
            yield f"conv {name} {dtype}", partial(
                window, shape=shape, channels=channels, size=size, dtype=dtype, **attributes)
        for shape, size, attributes in DEPTHWISE:
            yield f"depthwise {shape} {size} {dtype}", partial(
                window, shape=shape, channels=1, size=size, dtype=dtype, depthwise=True, **attributes)


def window(g: Graph, rng: np.random.Generator, shape: tuple[int, int, int], channels: int, size: tuple[int, int], dtype: str,
           depthwise: bool = False, pad: tuple[int, ...] = (0, 0, 0, 0), stride: tuple[int, int] = (1, 1),
           dilation: tuple[int, int] = (1, 1)) -> Value:
    x = g.input(1, *shape, dtype=dtype)
    weight_shape = (*size, shape[2], 1) if depthwise else (channels, *size, shape[2])
    made = shape[2] if depthwise else channels
    is_integer = dtype == "int8"
    weight = integers(rng, *weight_shape) if is_integer else floats(rng, *weight_shape)
    bias = rng.integers(-999, 999, made).astype(np.int32) if is_integer else floats(rng, made)
    y = conv(g, x, weight, bias, 3 if is_integer else 0, "depthwise_conv2d" if depthwise else "conv2d", pad, stride, dilation)
    if is_integer:
        return rescale(g, y, made, rng)
    return g.op("clamp", y, min_val=0.0, max_val=6.0)


# ---- others ----------------------------------------------------------------------------------------------------------
def others() -> Iterator[tuple[str, Make]]:
    for dtype in ("float32", "int8"):
        for shape, channels, size, stride in TRANSPOSED:
            yield f"transposed {shape} {size} {dtype}", partial(
                transposed, shape=shape, channels=channels, size=size, stride=stride, dtype=dtype)
        for rows, terms in VECTORS:
            yield f"gemv {dtype} {rows}x{terms}", partial(gemv, rows=rows, terms=terms, dtype=dtype)
    yield "residual 1x1", residual
    yield "attention", attention


def transposed(g: Graph, rng: np.random.Generator, shape: tuple[int, int, int], channels: int, size: tuple[int, int],
               stride: tuple[int, int], dtype: str) -> Value:
    from tosaic.lowering.graph.types import F32, I32
    x, is_integer = g.input(1, *shape, dtype=dtype), dtype == "int8"
    weight = integers(rng, channels, *size, shape[2]) if is_integer else floats(rng, channels, *size, shape[2])
    bias = rng.integers(-999, 999, channels).astype(np.int32) if is_integer else floats(rng, channels)
    zero_point = np.array([3 if is_integer else 0], dtype)
    return g.op("transpose_conv2d", x, weight, bias, zero_point, zero(dtype), out_pad=(0, 0, 0, 0), stride=stride,
                acc_type=I32 if is_integer else F32)


def gemv(g: Graph, rng: np.random.Generator, rows: int, terms: int, dtype: str = "float32") -> Value:
    """A vector by a matrix that is read along its rows."""
    x, w = g.input(1, 1, terms, dtype=dtype), g.input(1, rows, terms, dtype=dtype)
    return g.op("matmul", x, g.op("transpose", w, perms=(0, 2, 1)), zero(dtype), zero(dtype))


def residual(g: Graph, rng: np.random.Generator) -> Value:
    """A large 1x1 convolution whose epilogue reads another large tensor."""
    x, other = g.input(1, 112, 112, 96), g.input(1, 112, 112, 64)
    return g.op("add", conv(g, x, floats(rng, 64, 1, 1, 96), floats(rng, 64)), other)


def attention(g: Graph, rng: np.random.Generator) -> Value:
    """Two products of matrices that come while running, with a softmax between them."""
    q, k, v = (g.input(4, 96, 64) for _ in range(3))
    scores = g.op("matmul", q, g.op("transpose", k, perms=(0, 2, 1)), zero("float32"), zero("float32"))
    powers = g.op("exp", g.op("sub", scores, g.op("reduce_max", scores, axis=2)))
    weights = g.op("mul", powers, g.op("reciprocal", g.op("reduce_sum", powers, axis=2)), zero("int8"))
    return g.op("matmul", weights, v, zero("float32"), zero("float32"))
