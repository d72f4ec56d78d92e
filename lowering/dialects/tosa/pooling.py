"""AVG_POOL2D and MAX_POOL2D: windows over the rows and columns of an NHWC tensor. Padding never counts.

The adaptive pools (`adaptive.py`) are the same pools with the window as operands.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....runtime.errors import require
from ...elements.affine import Affine, Axis, Range
from ...elements.expression import Expr, cast, clamp, extreme, guard, reduce
from ...elements.tensor import ConstantTable, Element, Tensor
from ...graph.operator import Op, Operand, attribute
from ...graph.types import BF16, F8E4M3, F8E5M2, F16, F32, F64, I8, I16, I32, Array, ElementType, TensorType
from .binary import check_nan_mode
from .convolution import centred
from .elementwise import arithmetic, rounded, widened
from .operands import Shape, one_of, ranked, tensor, zero_point
from .window import check, output_extents, window_slices

ACCUMULATORS: dict[ElementType, tuple[ElementType, ...]] = {
    I8: (I32,), I16: (I32,), F8E4M3: (F16,), F8E5M2: (F16,), F16: (F16, F32), BF16: (F32,), F32: (F32,), F64: (F64,)}
"""Type of the input: types of the accumulator of AVG_POOL2D. f64 is an extension (`elementwise.EXTENSION`)."""


def pooled_shape(x: Operand, kernel: tuple[int, ...], stride: tuple[int, ...], pad: tuple[int, ...]) -> Shape:
    """Return the shape of the result, after checking the attributes that both pools have."""
    check("kernel", kernel, 2, 1)
    check("stride", stride, 2, 1)
    check("pad", pad, 4, 0)
    for d, extent in enumerate(kernel):
        require(max(pad[2 * d:2 * d + 2]) < extent, f"pad {list(pad)} must be below the kernel {list(kernel)}",
                kind="attribute")
    batch, *extents, channels = ranked(x, 4, "the input")
    one_of(tensor(x, "the input").element, tuple(ACCUMULATORS), "the input of a pool")
    return (batch, *output_extents(extents, kernel, pad, stride, (1, 1)), channels)


class AvgPool2D(Op, name="tosa.avg_pool2d"):
    """The mean of a window; integers by a 32-bit reciprocal of the count. TOSA 1.0, tensor operators."""
    kernel: tuple[int, ...] = attribute("array<i64>")
    stride: tuple[int, ...] = attribute("array<i64>")
    pad: tuple[int, ...] = attribute("array<i64>")
    acc_type: ElementType = attribute("type")

    def infer(self, x: Operand, input_zp: Operand, output_zp: Operand) -> TensorType:
        shape = pooled_shape(x, self.kernel, self.stride, self.pad)
        element = tensor(x, "the input").element
        one_of(self.acc_type, ACCUMULATORS[element], f"the accumulator of a pool of {element}")
        zero_point(input_zp, element, "the zero point of the input")
        zero_point(output_zp, element, "the zero point of the result")
        return TensorType(shape, element)

    def reference(self, x: Array, input_zp: Array, output_zp: Array) -> Array:
        integer = x.dtype.kind == "i"
        wide = x.astype(np.int64) - int(input_zp.reshape(-1)[0]) if integer else x.astype(np.float64)
        total = windowed(wide, np.add, 0, self.kernel, self.stride, self.pad)
        ones = np.ones((1, *x.shape[1:3], 1), np.int64)
        count = windowed(ones, np.add, 0, self.kernel, self.stride, self.pad)
        if not integer:
            return rounded(total / count, x.dtype)
        bits = np.frompyfunc(lambda n: (int(n) - 1).bit_length(), 1, 1)(count).astype(np.int64)
        multiplier, shift = (((1 << 30) + 1) << bits) // count, 30 + bits
        mean = (total * multiplier + (1 << (shift - 1))) >> shift
        limits = np.iinfo(x.dtype)
        return (mean + int(output_zp.reshape(-1)[0])).clip(limits.min, limits.max).astype(x.dtype)

    def element(self, out: TensorType, x: Tensor, input_zp: Tensor, output_zp: Tensor) -> Element:
        counts = np.outer(*(in_range(x.type.dims[d + 1], out.dims[d + 1], self.kernel[d], self.stride[d],
                                     self.pad[2 * d]) for d in range(2)))
        dtype = arithmetic(out.element.storage) if out.element.is_float else "int32"
        finish = mean_of_floats(counts, out) if out.element.is_float else mean_of_integers(counts, out, output_zp)

        def element(n: Affine, oh: Affine, ow: Affine, c: Affine) -> Expr:
            kh, kw = Axis("kh", self.kernel[0]), Axis("kw", self.kernel[1])
            h, w = window(oh, ow, kh, kw, self.stride, self.pad)
            value = centred(x[n, h, w, c], input_zp.scalar(), dtype)
            return finish(reduce("add", (kh, kw), inside(value, x, h, w, 0)), oh, ow)

        return element


class MaxPool2D(Op, name="tosa.max_pool2d"):
    """The greatest value of a window. TOSA 1.0, tensor operators."""
    kernel: tuple[int, ...] = attribute("array<i64>")
    stride: tuple[int, ...] = attribute("array<i64>")
    pad: tuple[int, ...] = attribute("array<i64>")
    nan_mode: str = attribute("nan_mode", default="PROPAGATE")

    def infer(self, x: Operand) -> TensorType:
        check_nan_mode(self.nan_mode)
        return TensorType(pooled_shape(x, self.kernel, self.stride, self.pad), tensor(x, "the input").element)

    def reference(self, x: Array) -> Array:
        if x.dtype.kind == "i":
            return windowed(x, np.maximum, np.iinfo(x.dtype).min, self.kernel, self.stride, self.pad)
        combine, least = (np.fmax, np.nan) if self.nan_mode == "IGNORE" else (np.maximum, -np.inf)
        wide = widened(x)
        return windowed(wide, combine, least, self.kernel, self.stride, self.pad).astype(x.dtype)

    def element(self, out: TensorType, x: Tensor) -> Element:
        storage = out.element.storage
        dtype = arithmetic(storage)
        primitive = "max" if not out.element.is_float else "maxnum" if self.nan_mode == "IGNORE" else "maximum"
        least = float("nan") if primitive == "maxnum" else extreme(dtype, "min")

        def element(n: Affine, oh: Affine, ow: Affine, c: Affine) -> Expr:
            kh, kw = Axis("kh", self.kernel[0]), Axis("kw", self.kernel[1])
            h, w = window(oh, ow, kh, kw, self.stride, self.pad)
            value = cast(x[n, h, w, c], dtype)
            return cast(reduce(primitive, (kh, kw), inside(value, x, h, w, least)), storage)

        return element


Finish = Callable[[Expr, Affine, Affine], Expr]


def window(oh: Affine, ow: Affine, kh: Axis, kw: Axis, stride: tuple[int, ...], pad: tuple[int, ...]
           ) -> tuple[Affine, Affine]:
    """Return row and column of the input under an offset of the window."""
    return oh * stride[0] + Affine.of(kh) - pad[0], ow * stride[1] + Affine.of(kw) - pad[2]


def inside(value: Expr, x: Tensor, h: Affine, w: Affine, outside: float) -> Expr:
    """Return `value` if row and column are not padding, else `outside`."""
    return guard([Range(h, 0, x.type.dims[1]), Range(w, 0, x.type.dims[2])], value, outside)


def in_range(extent: int, places: int, kernel: int, stride: int, before: int) -> Array:
    """Return, for each position of a window along one axis, the number of its inputs that are not padding."""
    start = np.arange(places) * stride - before
    return np.minimum(start + kernel, extent) - np.maximum(start, 0)


def placed(values: Array, dtype: str) -> Callable[[Affine, Affine], Expr]:
    """Return a table over rows and columns of window positions; over rows or columns alone if that is enough."""
    if (values == values[:, :1]).all():
        rows = ConstantTable(values[:, 0], dtype)
        return lambda oh, ow: rows(oh)
    if (values == values[:1]).all():
        columns = ConstantTable(values[0], dtype)
        return lambda oh, ow: columns(ow)
    table, width = ConstantTable(values, dtype), values.shape[1]
    return lambda oh, ow: table(oh * width + ow)


def mean_of_floats(counts: Array, out: TensorType) -> Finish:
    count = placed(counts, arithmetic(out.element.storage))
    return lambda total, oh, ow: cast(total / count(oh, ow), out.element.storage)


def mean_of_integers(counts: Array, out: TensorType, output_zp: Tensor) -> Finish:
    """Return (total * multiplier + half) >> shift, with the multiplier and the shift for each position's count."""
    logarithm = np.searchsorted(1 << np.arange(32), counts)
    multiplier = placed((((1 << 30) + 1) << logarithm) // counts, "int64")
    shift, half = placed(logarithm + 30, "int64"), placed(1 << (logarithm + 29), "int64")

    def finish(total: Expr, oh: Affine, ow: Affine) -> Expr:
        scaled = (cast(total, "int64") * multiplier(oh, ow) + half(oh, ow)) >> shift(oh, ow)
        mean = cast(scaled, "int32") + cast(output_zp.scalar(), "int32")
        return cast(clamp(mean, out.element.minimum, out.element.maximum), out.element.storage)

    return finish


def windowed(x: Array, combine: Any, empty: float, kernel: tuple[int, ...], stride: tuple[int, ...],
             pad: tuple[int, ...]) -> Array:
    """Return `combine` over every window of rows and columns: rows first, then columns of the result."""
    for axis in (1, 2):
        places, slices = window_slices(x.shape[axis], kernel[axis - 1], pad[2 * axis - 2:2 * axis], stride[axis - 1])
        moved = np.moveaxis(x, axis, 0)
        result = np.full((places, *moved.shape[1:]), empty, x.dtype)
        for out, inside in slices:
            combine(result[out], moved[inside], out=result[out])
        x = np.moveaxis(result, 0, axis)
    return np.ascontiguousarray(x)
