"""CONV2D, CONV3D, DEPTHWISE_CONV2D, TRANSPOSE_CONV2D.

Input NHWC (NDHWC), weight O, kernel, I (depthwise: kernel, C, M), bias of one number per output channel or one for all.
Integers and f64 are summed in the accumulator's type, other floats in float32, which is never less accurate than `acc_type`
requires.
"""
from __future__ import annotations

from typing import ClassVar

import numpy as np

from ....runtime.errors import require
from ...elements.affine import Affine, Axis, Range
from ...elements.expression import Const, Expr, IndexValue, apply, cast, guard, is_float, reduce
from ...elements.tensor import Element, Tensor, gathered
from ...graph.operator import Op, Operand, attribute
from ...graph.types import Array, ElementType, TensorType
from .block_scaling import real
from .elementwise import arithmetic, rounded
from .operands import one_of, ranked, same, tensor, zero_point
from .product_types import CONVOLUTIONS, PLAIN_CONVOLUTIONS, Table, checked
from .window import check, output_extents, window_slices


def centred(x: Expr, zero_point: Expr, dtype: str) -> Expr:
    """Return x, less its zero point, in the accumulator's dtype."""
    wide = cast(x, dtype)
    if is_float(dtype) or (isinstance(zero_point, Const) and zero_point.value == 0):
        return wide
    return wide - cast(zero_point, dtype)


def accumulator(result: ElementType) -> str:
    """Return the dtype in which products are summed, for a result of that type."""
    return arithmetic(result.storage)


def result_of(total: Expr, bias: Tensor, channel: Affine) -> Expr:
    """Return the sum of products with the bias, in the type of the result."""
    return cast(total + cast(bias.broadcast((channel,)), total.dtype), bias.type.element.storage)


class Convolution(Op):
    """The common base of convolutions: attributes, and the rules for element types and zero points."""
    pad: tuple[int, ...] = attribute("array<i64>")
    stride: tuple[int, ...] = attribute("array<i64>")
    dilation: tuple[int, ...] = attribute("array<i64>")
    acc_type: ElementType = attribute("type")
    local_bound: bool = attribute("bool", default=False)
    spatial: ClassVar[int] = 2
    combinations: ClassVar[Table] = CONVOLUTIONS

    def check_attributes(self) -> None:
        check("pad", self.pad, 2 * self.spatial, 0)
        check("stride", self.stride, self.spatial, 1)
        check("dilation", self.dilation, self.spatial, 1)

    def infer(self, x: Operand, weight: Operand, bias: Operand, input_zp: Operand, weight_zp: Operand) -> TensorType:
        self.check_attributes()
        batch, *extents, channels = ranked(x, self.spatial + 2, "the input")
        filters, *kernel, inputs = ranked(weight, self.spatial + 2, "the weight")
        require(same(channels, inputs), f"the input has {channels} channels, the weight {inputs}", kind="shape")
        element = result_element(self.combinations, self.acc_type, x, weight, bias, input_zp, weight_zp, filters)
        return TensorType((batch, *output_extents(extents, kernel, self.pad, self.stride, self.dilation), filters), element)

    def reference(self, x: Array, weight: Array, bias: Array, input_zp: Array, weight_zp: Array) -> Array:
        kernel = weight.shape[1:-1]
        slices = [window_slices(x.shape[d + 1], kernel[d], self.pad[2 * d:2 * d + 2], self.stride[d], self.dilation[d])
                  for d in range(self.spatial)]
        pixels, filters = exact(x, input_zp), exact(weight, weight_zp)
        total = np.zeros((x.shape[0], *(places for places, _ in slices), weight.shape[0]))
        for place in np.ndindex(*kernel):
            out, inside = zip(*(per_place[k] for k, (_, per_place) in zip(place, slices)))
            total[:, *out] += contracted(pixels[:, *inside], filters[:, *place])
        return with_bias(total, bias)

    def element(self, out: TensorType, x: Tensor, weight: Tensor, bias: Tensor, input_zp: Tensor, weight_zp: Tensor
                ) -> Element:
        dtype = accumulator(out.element)
        names = ("kd", "kh", "kw")[-self.spatial:]

        def element(n: Affine, *index: Affine) -> Expr:
            *place, filter = index
            kernel = [Axis(name, extent) for name, extent in zip(names, weight.type.dims[1:])]
            channel = Axis("ic", weight.type.dims[-1])
            at = self.window(place, kernel)
            where = [Range(i, 0, extent) for i, extent in zip(at, x.type.dims[1:])]
            pixel = guard(where, centred(x[n, *at, channel], input_zp.scalar(), dtype), 0)
            product = pixel * centred(weight[filter, *kernel, channel], weight_zp.scalar(), dtype)
            return result_of(reduce("add", (*kernel, channel), product), bias, filter)

        return element

    def window(self, place: list[Affine], kernel: list[Axis]) -> list[Affine]:
        """Return the input coordinates for a window position and a kernel offset."""
        return [o * s + Affine.of(k) * d - p
                for o, k, s, d, p in zip(place, kernel, self.stride, self.dilation, self.pad[::2])]


class Conv2D(Convolution, name="tosa.conv2d"):
    """2-D convolution. TOSA 1.0, tensor operators."""


class Conv3D(Convolution, name="tosa.conv3d"):
    """3-D convolution; a weight is [OC, KD, KH, KW, IC]. TOSA 1.0, tensor operators."""
    spatial: ClassVar[int] = 3


class DepthwiseConv2D(Convolution, name="tosa.depthwise_conv2d"):
    """Every channel with its own M filters; a weight is [KH, KW, C, M], output channel c*M + m.
    TOSA 1.0, tensor operators."""
    combinations: ClassVar[Table] = PLAIN_CONVOLUTIONS

    def infer(self, x: Operand, weight: Operand, bias: Operand, input_zp: Operand, weight_zp: Operand) -> TensorType:
        self.check_attributes()
        batch, *extents, channels = ranked(x, 4, "the input")
        *kernel, inputs, multiplier = ranked(weight, 4, "the weight")
        require(same(channels, inputs), f"the input has {channels} channels, the weight {inputs}", kind="shape")
        inputs = channels if inputs is None else inputs
        filters = None if inputs is None or multiplier is None else inputs * multiplier
        element = result_element(self.combinations, self.acc_type, x, weight, bias, input_zp, weight_zp, filters)
        return TensorType((batch, *output_extents(extents, kernel, self.pad, self.stride, self.dilation), filters), element)

    def reference(self, x: Array, weight: Array, bias: Array, input_zp: Array, weight_zp: Array) -> Array:
        height, width, channels, multiplier = weight.shape
        rows = window_slices(x.shape[1], height, self.pad[:2], self.stride[0], self.dilation[0])
        columns = window_slices(x.shape[2], width, self.pad[2:], self.stride[1], self.dilation[1])
        pixels, filters = exact(x, input_zp), exact(weight, weight_zp).reshape(height, width, channels * multiplier)
        if multiplier > 1:
            pixels = pixels.repeat(multiplier, axis=-1)
        total = np.zeros((x.shape[0], rows[0], columns[0], channels * multiplier))
        for kh, (out_rows, in_rows) in enumerate(rows[1]):
            for kw, (out_columns, in_columns) in enumerate(columns[1]):
                total[:, out_rows, out_columns] += pixels[:, in_rows, in_columns] * filters[kh, kw]
        return with_bias(total, bias)

    def element(self, out: TensorType, x: Tensor, weight: Tensor, bias: Tensor, input_zp: Tensor, weight_zp: Tensor
                ) -> Element:
        dtype = accumulator(out.element)

        def element(n: Affine, oh: Affine, ow: Affine, filter: Affine) -> Expr:
            kernel = [Axis(name, extent) for name, extent in zip(("kh", "kw"), weight.type.dims)]
            c, m = quotient_and_remainder(filter, *weight.type.dims[2:])
            h, w = self.window([oh, ow], kernel)
            where = [Range(h, 0, x.type.dims[1]), Range(w, 0, x.type.dims[2])]
            pixel = guard(where, centred(x[n, h, w, c], input_zp.scalar(), dtype), 0)
            product = pixel * centred(weight[*kernel, c, m], weight_zp.scalar(), dtype)
            return result_of(reduce("add", tuple(kernel), product), bias, filter)

        return element


class TransposeConv2D(Op, name="tosa.transpose_conv2d"):
    """Every input pixel adds its multiple of the kernel to the output, `stride` apart; `out_pad` (top, bottom, left,
    right) widens the output, or narrows it where negative. TOSA 1.0, tensor operators."""
    out_pad: tuple[int, ...] = attribute("array<i64>")
    stride: tuple[int, ...] = attribute("array<i64>")
    acc_type: ElementType = attribute("type")
    local_bound: bool = attribute("bool", default=False)
    combinations: ClassVar[Table] = CONVOLUTIONS

    def infer(self, x: Operand, weight: Operand, bias: Operand, input_zp: Operand, weight_zp: Operand) -> TensorType:
        check("stride", self.stride, 2, 1)
        check("out_pad", self.out_pad, 4, -(1 << 31))
        batch, *extents, channels = ranked(x, 4, "the input")
        filters, *kernel, inputs = ranked(weight, 4, "the weight")
        require(same(channels, inputs), f"the input has {channels} channels, the weight {inputs}", kind="shape")
        element = result_element(self.combinations, self.acc_type, x, weight, bias, input_zp, weight_zp, filters)
        return TensorType((batch, *(self.extent(d, extents[d], kernel[d]) for d in range(2)), filters), element)

    def extent(self, d: int, extent: int | None, kernel: int | None) -> int | None:
        """Return the output's extent along spatial axis `d`."""
        if kernel is None:
            return None
        before, after = self.out_pad[2 * d:2 * d + 2]
        require(min(before, after) > -kernel, f"out_pad {list(self.out_pad)} cuts off the whole kernel of {kernel}",
                kind="attribute")
        if extent is None:
            return None
        result = (extent - 1) * self.stride[d] + before + after + kernel
        require(result > 0, f"out_pad {list(self.out_pad)} leaves nothing of the output", kind="shape")
        return result

    def reference(self, x: Array, weight: Array, bias: Array, input_zp: Array, weight_zp: Array) -> Array:
        filters, height, width, _ = weight.shape
        rows, columns = (self.extent(d, x.shape[d + 1], weight.shape[d + 1]) or 0 for d in range(2))
        pixels, weights = exact(x, input_zp), exact(weight, weight_zp)
        total = np.zeros((x.shape[0], rows, columns, filters))
        for kh in range(height):
            out_rows, in_rows = spread(x.shape[1], rows, self.stride[0], kh + self.out_pad[0])
            for kw in range(width):
                out_columns, in_columns = spread(x.shape[2], columns, self.stride[1], kw + self.out_pad[2])
                total[:, out_rows, out_columns] += contracted(pixels[:, in_rows, in_columns], weights[:, kh, kw])
        return with_bias(total, bias)

    def element(self, out: TensorType, x: Tensor, weight: Tensor, bias: Tensor, input_zp: Tensor, weight_zp: Tensor
                ) -> Element:
        """Return the element: output row o = stride*q + r takes input row q - j through kernel row r + stride*j, for every
        j."""
        dtype = accumulator(out.element)

        def element(n: Affine, oh: Affine, ow: Affine, filter: Affine) -> Expr:
            taps = [Axis(name, -(-extent // stride)) for name, extent, stride in
                    zip(("jh", "jw"), weight.type.dims[1:], self.stride)]
            channel = Axis("ic", weight.type.dims[-1])
            at, kernel, where = [], [], []
            for d, o in enumerate((oh, ow)):
                q, r = self.phase(o, d, out.dims[d + 1])
                at.append(q - taps[d])
                kernel.append(r + Affine.of(taps[d]) * self.stride[d])
                where += [Range(at[d], 0, x.type.dims[d + 1]), Range(kernel[d], 0, weight.type.dims[d + 1])]
            product = (centred(x[n, *at, channel], input_zp.scalar(), dtype)
                       * centred(weight[filter, *kernel, channel], weight_zp.scalar(), dtype))
            return result_of(reduce("add", (*taps, channel), guard(where, product, 0)), bias, filter)

        return element

    def phase(self, o: Affine, d: int, extent: int) -> tuple[Affine, Affine]:
        """Return (o - out_pad) divided by the stride, the quotient rounded down, and its remainder."""
        stride, before = self.stride[d], self.out_pad[2 * d]
        whole = max(0, -(-before // stride))  # keeps the dividend nonnegative
        q, r = quotient_and_remainder(o - before + whole * stride, (extent - 1 - before) // stride + whole + 1, stride)
        return q - whole, r


def quotient_and_remainder(index: Affine, quotients: int, divisor: int) -> tuple[Affine, Affine]:
    """Return index // divisor, below `quotients`, and index % divisor; computed at run time if they are not affine."""
    if quotients == 1:
        return Affine(), index
    if (parts := index.divide(divisor)) is not None:
        return parts
    value = IndexValue(index)
    quotient = apply("div", value, divisor)
    return gathered(quotient, quotients), gathered(value - quotient * divisor, divisor)


def result_element(table: Table, acc_type: ElementType, x: Operand, weight: Operand, bias: Operand, input_zp: Operand,
                   weight_zp: Operand, filters: int | None) -> ElementType:
    """Return the element type of the result, which is the bias', after checking the types of the operands, the bias and the
    zero points."""
    names = "the input", "the weight", "the bias"
    types = [tensor(operand, name).element for operand, name in zip((x, weight, bias), names)]
    accumulators = checked(table, types, names)
    one_of(acc_type, accumulators, f"the accumulator of {' and '.join(map(str, types[:2]))}")
    extent, = ranked(bias, 1, "the bias")
    require(extent == 1 or same(extent, filters), f"the bias has {extent} numbers, for {filters} output channels",
            kind="shape")
    zero_point(input_zp, types[0], "the zero point of the input")
    zero_point(weight_zp, types[1], "the zero point of the weight")
    return types[2]


# ---- NumPy -------------------------------------------------------------------------------------------------------
def spread(extent: int, places: int, stride: int, shift: int) -> tuple[slice, slice]:
    """Return, for the existing outputs i*stride + shift, the slice of outputs and the slice of inputs i."""
    low = max(0, -(shift // stride))
    high = max(low, min(extent, (places - 1 - shift) // stride + 1))
    start = low * stride + shift
    return slice(start, start + (high - low) * stride, stride), slice(low, high)


def exact(x: Array, zero_point: Array) -> Array:
    """Return x less its zero point in float64, where sums of fewer than 2**29 products of 24 bits are exact."""
    wide = real(x)
    return wide if x.dtype.kind not in "iu" or not zero_point.any() else wide - float(zero_point.reshape(-1)[0])


def contracted(pixels: Array, filters: Array) -> Array:
    """Return [..., IC] times [OC, IC]: [..., OC], as one product of matrices."""
    flat = pixels.reshape(-1, pixels.shape[-1]) @ filters.T
    return flat.reshape(*pixels.shape[:-1], filters.shape[0])


def with_bias(total: Array, bias: Array) -> Array:
    """Return the sums plus the bias in the bias' type; integers wrap."""
    if bias.dtype.kind == "i":
        return (total.astype(np.int64) + bias).astype(bias.dtype)
    return rounded(total + bias.astype(np.float64), bias.dtype)
