"""Recipes of convolutions, matmul, pools, resize, and reductions."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from tosaic.lowering.dialects.tosa.pooling import ACCUMULATORS
from tosaic.lowering.dialects.tosa.product_types import CONVOLUTIONS, PLAIN_CONVOLUTIONS, PRODUCTS, TRANSPOSED_PRODUCTS, Table
from tosaic.lowering.dialects.tosa.resize import BILINEAR
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import BF16, F8E4M3, F8E5M2, F16, F32, I1, I4, I8, I16, I32, I64, ElementType, TensorType

from .elementwise import NAN_MODES
from .maker import FLOATS, Maker, Recipe

OFTEN = (I8, I8, F32, F32, I16, F16, BF16, F8E4M3, F8E5M2)


def window(m: Maker, extent: int, most: int = 4, dilated: bool = True) -> tuple[int, int, int, int, int]:
    """(kernel, stride, dilation, before, after) that fit an axis exactly."""
    while True:
        kernel, stride = m.rng.randint(1, most), m.rng.choice((1, 1, 1, 2, 3))
        dilation = m.rng.choice((1, 1, 1, 2)) if dilated else 1
        limit = kernel - 1 if not dilated else 3
        before, after = (m.rng.randint(0, limit) if m.chance(0.5) else 0 for _ in range(2))
        room = extent - 1 + before + after - (kernel - 1) * dilation
        if room >= 0 and room % stride:
            after += stride - room % stride
            if after > limit:
                continue
        if room >= 0:
            return kernel, stride, dilation, before, after


def places(extent: int, kernel: int, stride: int, dilation: int, before: int, after: int) -> int:
    return (extent - 1 + before + after - (kernel - 1) * dilation) // stride + 1


def image(m: Maker, elements: Sequence[ElementType], rank: int = 4) -> Value:
    """Something to convolve, often of a good number of channels."""
    element = m.rng.choice([e for e in OFTEN if e in elements])
    if m.chance(0.25):
        dims = (m.rng.choice((1, 1, 2)), *(m.rng.choice((1, 3, 5, 8)) for _ in range(rank - 2)),
                m.rng.choice((1, 3, 4, 8, 16, 20)))
        if math.prod(dims) <= m.program.most:
            return m.fresh(TensorType(dims, element), constant=0.05)
    return m.pick((element,), rank)


def first_of(table: Table) -> tuple[ElementType, ...]:
    """What the first factor may be."""
    return tuple(dict.fromkeys(types[0] for types in table))


def combination(m: Maker, table: Table, first: ElementType) -> tuple[ElementType, ElementType, tuple[ElementType, ...]]:
    """Types that go with a first factor: of the second, of the result, of the accumulators; the second often alike."""
    found = [types for types in table if types[0] == first and types[1].kind != "block_scaled"]
    alike = [types for types in found if types[1] == first]
    _, second, result = m.rng.choice(alike if alike and m.chance(0.7) else found)
    return second, result, table[first, second, result]


def convolution(name: str, spatial: int) -> Recipe:
    def recipe(m: Maker) -> None:
        convolved(m, name, image(m, first_of(CONVOLUTIONS), spatial + 2))

    return recipe


def convolved(m: Maker, name: str, x: Value) -> Value | None:
    """A convolution of x, if it is not too much."""
    batch, *extents, channels = x.tensor.dims
    element, result, accumulators = combination(m, PLAIN_CONVOLUTIONS if name == "depthwise_conv2d" else CONVOLUTIONS,
                                                x.tensor.element)
    windows = [window(m, n, 3 if len(extents) == 3 else 4) for n in extents]
    out = [places(n, *w) for n, w in zip(extents, windows)]
    kernel = [w[0] for w in windows]
    if name == "depthwise_conv2d":
        multiplier = m.rng.choice((1, 1, 1, 2, 3))
        filters, dims = channels * multiplier, (*kernel, channels, multiplier)
        products = batch * math.prod(out) * filters * math.prod(kernel)
    else:
        filters = m.rng.choice((1, 2, 3, 8, 16, 17, 33, 64, 100)[:None if m.program.most > 10_000 else 7])
        dims = (filters, *kernel, channels)
        products = batch * math.prod(out) * filters * math.prod(kernel) * channels
    if batch * math.prod(out) * filters > m.program.most or not m.affordable(products):
        return None
    return m.op(name, x, filter_of(m, dims, element), bias(m, result, filters), m.zero_point(x.tensor.element),
                m.zero_point(element, element == I4), pad=tuple(p for w in windows for p in w[3:]),
                stride=tuple(w[1] for w in windows), dilation=tuple(w[2] for w in windows),
                acc_type=m.rng.choice(accumulators))


def filter_of(m: Maker, dims: tuple[int, ...], element: ElementType) -> Value:
    if element == I4:
        return m.fresh(TensorType(dims, I4), (-7, 7), 0.7)
    return m.exactly(TensorType(dims, element), constant=0.7)


def bias(m: Maker, element: ElementType, filters: int) -> Value:
    extent = filters if m.chance(0.8) else 1
    span = None if element.is_float or m.chance(0.3) else (-999, 999)
    return m.exactly(TensorType((extent,), element), span, constant=0.7)


def transpose_convolution(m: Maker) -> None:
    x = image(m, first_of(CONVOLUTIONS))
    batch, *extents, channels = x.tensor.dims
    element, result, accumulators = combination(m, CONVOLUTIONS, x.tensor.element)
    filters, kernel, stride = m.rng.choice((1, 2, 3, 8, 17)), [m.rng.randint(1, 4) for _ in "hw"], [
        m.rng.choice((1, 1, 2, 3)) for _ in "hw"]
    pads = tuple(m.rng.randint(-k + 1, 3) if m.chance(0.5) else 0 for k in kernel for _ in "ab")
    out = [(n - 1) * s + pads[2 * d] + pads[2 * d + 1] + k for d, (n, s, k) in enumerate(zip(extents, stride, kernel))]
    if min(out) < 1 or batch * math.prod(out) * filters > m.program.most:
        return
    if not m.affordable(batch * math.prod(out) * filters * math.prod(kernel) * channels):
        return
    m.op("transpose_conv2d", x, filter_of(m, (filters, *kernel, channels), element), bias(m, result, filters),
         m.zero_point(x.tensor.element), m.zero_point(element, element == I4), out_pad=pads, stride=tuple(stride),
         acc_type=m.rng.choice(accumulators))


def matmul(m: Maker) -> None:
    a = m.pick((m.rng.choice([e for e in OFTEN if e in first_of(PRODUCTS)]),), 3)
    batch, rows, inner = a.tensor.dims
    columns = m.rng.choice((1, 2, 5, 16, 17, 33, 64, 100)[:None if m.program.most > 10_000 else 6])
    if batch * rows * columns > m.program.most or not m.affordable(batch * rows * columns * inner):
        return
    element, result, _ = combination(m, PRODUCTS, a.tensor.element)
    b = m.exactly(TensorType((batch, inner, columns), element), constant=0.4)
    m.op("matmul", a, b, m.zero_point(a.tensor.element), m.zero_point(element), to=result)


def matmul_t(m: Maker) -> None:
    a = m.pick((m.rng.choice([e for e in OFTEN if e in first_of(TRANSPOSED_PRODUCTS)]),), 3)
    batch, rows, inner = a.tensor.dims
    columns = m.rng.choice((1, 2, 5, 16, 17, 33, 64, 100)[:None if m.program.most > 10_000 else 6])
    if batch * rows * columns > m.program.most or not m.affordable(batch * rows * columns * inner):
        return
    element, result, _ = combination(m, TRANSPOSED_PRODUCTS, a.tensor.element)
    b = m.exactly(TensorType((m.rng.choice((1, batch)), columns, inner), element), constant=0.4)
    m.op("matmul_t", a, b, m.zero_point(a.tensor.element), m.zero_point(element), to=result)


def pool(name: str) -> Recipe:
    def recipe(m: Maker) -> None:
        pooled(m, name, image(m, tuple(ACCUMULATORS)))

    return recipe


def pooled(m: Maker, name: str, x: Value) -> Value | None:
    """A pool of x, if it is not too large."""
    windows = [window(m, n, 4, dilated=False) for n in x.tensor.dims[1:3]]
    shape = [places(n, *w) for n, w in zip(x.tensor.dims[1:3], windows)]
    if x.tensor.dims[0] * math.prod(shape) * x.tensor.dims[3] > m.program.most:
        return None
    kernel, stride = tuple(w[0] for w in windows), tuple(w[1] for w in windows)
    pad = tuple(p for w in windows for p in w[3:])
    element = x.tensor.element
    points = () if name.startswith("max") else (m.zero_point(element), m.zero_point(element))
    attributes = ({"nan_mode": m.rng.choice(NAN_MODES)} if name.startswith("max")
                  else {"acc_type": m.rng.choice(ACCUMULATORS[element])})
    if name.endswith("adaptive"):
        return m.op(name, x, *points, m.shape(*kernel), m.shape(*stride), m.shape(*pad), **attributes)
    return m.op(name, x, *points, kernel=kernel, stride=stride, pad=pad, **attributes)


def image_chain(m: Maker) -> None:
    """Convolutions and pools of one another, as deep models have them, that run by rows where the cache is small."""
    element = m.rng.choice((F32, F32, F16, I8))
    dims = (1, m.rng.choice((5, 8, 12, 16)), m.rng.choice((1, 4, 7, 9)), m.rng.choice((1, 3, 4, 8)))
    x: Value | None = m.fresh(TensorType(dims, element), constant=0.0)
    for _ in range(m.rng.randint(2, 4)):
        made = m.rng.choice(("conv2d", "conv2d", "depthwise_conv2d", "avg_pool2d", "max_pool2d"))
        assert x is not None
        following = pooled(m, made, x) if "pool" in made else convolved(m, made, x)
        if following is None:
            break
        x = following
        if x.tensor.element != element and element.is_float:
            x = m.op("cast", x, to=element)
        elif x.tensor.element != element:  # the sums of bytes
            x = m.op("cast", m.op("arithmetic_right_shift", x, m.constant(np.full((1,) * 4, 6, np.int32)), round=True), to=I8)
        elif m.chance(0.3):
            x = m.op("tanh", x) if element.is_float else m.op("clamp", x, min_val=-60, max_val=60)
        if m.chance(0.15):
            x = m.op("reverse", x, axis=m.rng.choice((1, 2)))
        elif m.chance(0.15):
            x = m.op("add", x, x) if element.is_float else x


def resize(m: Maker) -> None:
    x = image(m, tuple(BILINEAR))
    lines = [scaled(m, n) for n in x.tensor.dims[1:3]]
    shape = [((extent - 1) * n - offset + border) // d + 1 for extent, (n, d, offset, border) in zip(x.tensor.dims[1:3], lines)]
    if x.tensor.dims[0] * math.prod(shape) * x.tensor.dims[3] > m.program.most:
        return
    (ny, dy, oy, by), (nx, dx, ox, bx) = lines
    m.op("resize", x, m.shape(ny, dy, nx, dx), m.shape(oy, ox), m.shape(by, bx),
         mode=m.rng.choice(("NEAREST_NEIGHBOR", "BILINEAR")))


def scaled(m: Maker, extent: int) -> tuple[int, int, int, int]:
    """(n, d, offset, border) of one axis."""
    while True:
        n, d = m.rng.choice((1, 2, 2, 3, 4, 6, 16)), m.rng.choice((1, 1, 2, 3, 4, 5))
        offset, border = (m.rng.randint(-n, n - 1) if m.chance(0.6) else 0 for _ in range(2))
        length = (extent - 1) * n - offset + border
        border -= length % d
        if length - length % d >= 0 and d < 16 * n and border >= -16 * n:
            return n, d, offset, border


REDUCTIONS: dict[str, tuple[ElementType, ...]] = {
    "reduce_all": (I1,), "reduce_any": (I1,), "reduce_sum": (I32, I64, *FLOATS), "reduce_product": FLOATS,
    **dict.fromkeys(("reduce_max", "reduce_min"), (I8, I16, I32, I64, *FLOATS)),
    "argmax": (I8, I16, I32, I64, F8E4M3, F8E5M2, *FLOATS)}


def reduction(name: str) -> Recipe:
    def recipe(m: Maker) -> None:
        x = m.pick(REDUCTIONS[name], fits=lambda t: t.rank > 0)
        attributes: dict[str, Any] = {"axis": m.rng.randrange(x.tensor.rank)}
        if name in ("reduce_max", "reduce_min", "argmax"):
            attributes["nan_mode"] = m.rng.choice(NAN_MODES)
        if name == "argmax":
            attributes["to"] = m.rng.choice((I32, I32, I64))
        m.op(name, x, **attributes)

    return recipe


RECIPES: dict[str, Recipe] = {
    "conv2d": convolution("conv2d", 2), "conv3d": convolution("conv3d", 3),
    "depthwise_conv2d": convolution("depthwise_conv2d", 2), "transpose_conv2d": transpose_convolution, "matmul": matmul,
    "matmul_t": matmul_t, "image chain": image_chain, "resize": resize,
    **{name: pool(name) for name in ("avg_pool2d", "max_pool2d", "avg_pool2d_adaptive", "max_pool2d_adaptive")},
    **{name: reduction(name) for name in REDUCTIONS}}
__all__ = ["F16", "F32", "RECIPES"]
