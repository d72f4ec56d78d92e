"""Random kernels: maps, reductions and windows with strides, reversals, guards, computed indices and mixed dtypes.

Data are small whole numbers, so that floats are exact in every order of summation.
"""
from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st
from tosaic.lowering.elements.affine import Affine, Axis, Range
from tosaic.lowering.elements.expression import (
    Buffer,
    Const,
    Expr,
    IndexValue,
    Load,
    Reduce,
    apply,
    cast,
    guard,
    is_float,
    reduce,
    select,
)
from tosaic.lowering.elements.interpret import evaluate, numpy_dtype
from tosaic.lowering.elements.tensor import gathered
from tosaic.lowering.graph.types import Array
from tosaic.lowering.kernels.kernel import Kernel

NUMBERS = ("float32", "int32", "int8", "int64", "float64", "int16", "uint8")
COMPUTED_WITH = {"float16": "float32", "bfloat16": "float32", "float8_e5m2": "float32"}


@dataclass
class Maker:
    """Draws expressions over `axes`, and the buffers that they read with their data."""
    draw: st.DrawFn
    data: dict[Buffer, Array] = field(default_factory=dict)
    count: itertools.count = field(default_factory=itertools.count)

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def choice(self, *options):
        return self.draw(st.sampled_from(options))

    # ---- indices -----------------------------------------------------------------------------------------------------
    def affine(self, axes: tuple[Axis, ...], simple: bool = False) -> Affine:
        terms = []
        for a in axes:
            c = self.choice(1, 1, 0) if simple else self.choice(0, 0, 1, 1, 1, 2, 3, -1, -2)
            if c:
                terms += (Affine.of(a) * c).terms
        return Affine.sum(terms, self.integer(-2, 2))

    def place(self, axes: tuple[Axis, ...], dtype: str, depth: int) -> Expr:
        """An element of a new buffer, guarded where the index can leave it."""
        shape, index, where = [], [], []
        for _ in range(self.integer(0, 3)):
            if depth and self.integer(0, 5) == 0:
                extent = self.integer(1, 6)
                index.append(gathered(self.number(axes, "int32", depth - 1), extent))
                shape.append(extent)
                continue
            i = self.affine(axes, simple=self.integer(0, 2) == 0)
            low, high = i.bounds
            i, high = i - low, high - low
            if high - 1 > 0 and self.integer(0, 3) == 0:
                extent, shift = self.integer(1, high), self.integer(0, 2)
                where.append(Range(i - shift, 0, extent))
                i = i - shift
            else:
                extent = high + 1 + self.integer(0, 1)
            index.append(i)
            shape.append(extent)
        buffer = self.buffer(tuple(shape), dtype)
        value: Expr = Load(buffer, tuple(index))
        if len(where) > 1 and not possible(where, axes):  # the verifier refuses an access that never is in range
            return Const(0, dtype)
        return guard(where, value, self.choice(0, 1)) if where else value

    def buffer(self, shape: tuple[int, ...], dtype: str) -> Buffer:
        size = int(np.prod(shape, dtype=int))
        number = next(self.count)
        low = 0 if dtype in ("bool", "uint8") else -3
        rng = np.random.default_rng(self.integer(0, 1 << 16))
        values = rng.integers(low, 2 if dtype == "bool" else 4, size).reshape(shape).astype(numpy_dtype(dtype))
        if self.integer(0, 3) == 0:
            return Buffer(f"c{number}", dtype, shape, "constant", values)
        buffer = Buffer(f"x{number}", dtype, shape, "argument")
        self.data[buffer] = values
        return buffer

    # ---- values ------------------------------------------------------------------------------------------------------
    def number(self, axes: tuple[Axis, ...], dtype: str, depth: int) -> Expr:
        if not depth:
            return self.leaf(axes, dtype, 0)
        sub = depth - 1
        match self.integer(0, 8):
            case 0 | 1:
                return self.leaf(axes, dtype, depth)
            case 2 | 3:
                primitive = self.choice("add", "sub", "mul", "min", "max")
                return apply(primitive, self.number(axes, dtype, sub), self.number(axes, dtype, sub))
            case 4:
                return select(self.condition(axes, sub), self.number(axes, dtype, sub), self.number(axes, dtype, sub))
            case 5:
                other = self.choice(*(("float32", "float64") if is_float(dtype) else ("int8", "int16", "int32", "int64")))
                return cast(self.number(axes, other, sub), dtype)
            case 6:
                i = self.affine(axes)
                low, high = i.bounds
                where = [Range(i, low + self.integer(0, 2), high + self.integer(-1, 2))]
                return guard(where, self.number(axes, dtype, sub), self.number(axes, dtype, sub))
            case _:
                return self.reduction(axes, dtype, sub)

    def leaf(self, axes: tuple[Axis, ...], dtype: str, depth: int) -> Expr:
        match self.integer(0, 5):
            case 0:
                return Const(self.integer(0, 3), dtype)
            case 1 if not is_float(dtype) and dtype not in ("uint8", "int8"):
                return IndexValue(self.affine(axes), dtype)
        return self.place(axes, dtype, depth)

    def condition(self, axes: tuple[Axis, ...], depth: int) -> Expr:
        if self.integer(0, 2) == 0:
            return self.place(axes, "bool", depth)
        dtype = self.choice("int32", "float32", "int8")
        return apply(self.choice("lt", "le", "eq"), self.number(axes, dtype, depth), self.number(axes, dtype, depth))

    def reduction(self, axes: tuple[Axis, ...], dtype: str, depth: int) -> Expr:
        inner = tuple(Axis(f"k{d}", self.integer(1, self.choice(3, 5, 20))) for d in range(self.integer(1, 2)))
        primitive = self.choice("add", "add", "min", "max")
        body = self.number((*axes, *inner), dtype, depth)
        if self.integer(0, 1) and primitive == "add":
            body = body * self.number((*axes, *inner), dtype, 0)
        result = reduce(primitive, inner, body)
        if isinstance(result, Reduce) and self.integer(0, 2) == 0:
            i = self.affine((*axes, *inner))
            low, high = i.bounds
            where = Range(i, low + self.integer(0, 2), high + self.integer(-1, 2))
            result = Reduce(result.primitive, result.axes, result.body, (*result.where, where))
            if is_float(dtype) and primitive != "add":  # an empty one is infinite, and infinities make NaN
                result = apply("max", apply("min", result, 9), -9)
        return result


def possible(where: list[Range], axes: tuple[Axis, ...]) -> bool:
    """True if there are values of the axes for which all conditions hold."""
    inside = guard(where, Const(1, "int32"), 0)
    return bool(evaluate(inside, axes).any())


@st.composite
def kernels(draw: st.DrawFn) -> tuple[Kernel, dict[Buffer, Array]]:
    maker = Maker(draw)
    extents = [maker.integer(1, 4) for _ in range(maker.integer(0, 3))]
    if maker.integer(0, 5):
        extents.append(maker.integer(1, maker.choice(5, 20, 70)))
    axes = tuple(Axis(f"i{d}", n) for d, n in enumerate(extents))
    dtype = maker.choice(*NUMBERS, "bool", *COMPUTED_WITH)
    if dtype == "bool":
        value = maker.condition(axes, 2)
    else:
        value = maker.number(axes, COMPUTED_WITH.get(dtype, dtype), maker.integer(1, 3))
    role = maker.choice("temporary", "result")
    return Kernel(Buffer("out", dtype, tuple(extents), role), axes, cast(value, dtype)), maker.data


@st.composite
def windows(draw: st.DrawFn) -> tuple[Kernel, dict[Buffer, Array]]:
    """Sums of products over windows with padding: convolutions, depthwise ones, pools and products of matrices, of
    bytes, integers and floats, with constant or computed weights, in any order of axes, and something done with the
    sums."""
    maker = Maker(draw)
    dtype = maker.choice("int8", "int8", "uint8", "float32", "int16", "float16")
    wide = {"int8": "int32", "uint8": "int32", "int16": "int64"}.get(dtype, "float32")
    rows, columns, filters = maker.integer(1, 5), maker.integer(1, 33), maker.integer(1, maker.choice(9, 40))
    channels = maker.integer(1, maker.choice(4, 20))
    batch = tuple(Axis("n", maker.integer(1, 3)) for _ in range(maker.integer(0, 1)))
    oh, ow, oc, ic = Axis("oh", rows), Axis("ow", columns), Axis("oc", filters), Axis("ic", channels)
    taps = Axis("kh", maker.integer(1, 3)), Axis("kw", maker.choice(1, 2, 3, 9))
    strides, dilations = [maker.integer(1, 2) for _ in taps], [maker.integer(1, 2) for _ in taps]
    pads = [maker.integer(0, 2) for _ in taps]
    at = [Affine.of(o) * s + Affine.of(k) * d - p for o, k, s, d, p in zip((oh, ow), taps, strides, dilations, pads)]
    extents = [max(1, i.bounds[1] + 1 - maker.integer(0, p + 1)) for i, p in zip(at, pads)]
    deep = maker.integer(0, 3) > 0  # otherwise each channel by itself
    depth = ic if deep else oc
    x = maker.buffer((*(a.extent for a in batch), *extents, depth.extent), dtype)
    zero_point = maker.choice(0, 3, -128 if dtype == "int8" else 0)
    pixel = cast(Load(x, (*map(Affine.of, batch), *at, Affine.of(depth))), wide)
    if zero_point and not is_float(wide):
        pixel = pixel - zero_point
    pixel = guard([Range(i, 0, n) for i, n in zip(at, extents)], pixel, 0)
    order = maker.choice((oc, *taps, ic), (*taps, ic, oc)) if deep else maker.choice((*taps, oc), (oc, *taps))
    every = (*batch, *order) if maker.integer(0, 3) == 0 else order
    weight = maker.buffer(tuple(a.extent for a in every), "int8" if dtype == "uint8" else dtype)
    factor = cast(Load(weight, tuple(map(Affine.of, every))), wide)
    if maker.integer(0, 7) == 0 and not is_float(wide):
        factor = factor - 1
    total: Expr = reduce("add", (*taps, ic) if deep else taps, pixel * factor)
    axes = (*batch, oh, ow, oc)
    for _ in range(maker.integer(0, 2)):
        total = apply(maker.choice("add", "max", "sub"), total, maker.number(axes, wide, maker.integer(0, 1)))
    out = wide if maker.integer(0, 1) else {"int32": "int8", "int64": "int16"}.get(wide, "float32")
    value = cast(total, out)
    return Kernel(Buffer("out", out, tuple(a.extent for a in axes), "result"), axes, value), maker.data
