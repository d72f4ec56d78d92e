"""CAST_TO_BLOCK_SCALED, CAST_FROM_BLOCK_SCALED, MATMUL_T_BLOCK_SCALED, CONV2D_BLOCK_SCALED: values and their scales as two
tensors. 32 neighbours along the last axis share a scale. `rewrite/decompose.py` rewrites all of them to the first two on rows
of one block and the plain operators, so that only the first two have an `element`. TOSA 1.1 draft.
"""
from __future__ import annotations

import numpy as np

from ....runtime.errors import require
from ...elements.affine import Affine
from ...elements.expression import Expr, IndexValue, cast
from ...elements.tensor import Element, Tensor, gathered
from ...graph.operator import Op, Operand, attribute, from_result
from ...graph.types import BF16, F4E2M1, F6E2M3, F6E3M2, F8E4M3, F8E5M2, F8E8M0, F32, MXINT8, Array, ElementType, TensorType
from .adaptive import known_shape
from .block_scaling import real_values, scale_of, values_of
from .operands import Shape, known, one_of, ranked, same, same_shape, tensor, written
from .window import check, output_extents, window_slices

VALUES = (F8E4M3, F8E5M2, F6E2M3, F6E3M2, F4E2M1, MXINT8)
CONVOLUTION_VALUES = VALUES[:-1]
SIZES = {"BLOCK_SIZE_1": 1, "BLOCK_SIZE_32": 32}


def size_of(name: str) -> int:
    """Return the number of values that share a scale; raise a Problem for an invalid block size."""
    require(name in SIZES, f"{name} is no block size", kind="attribute", help="BLOCK_SIZE_1 or BLOCK_SIZE_32")
    return SIZES[name]


def shared_size(name: str) -> int:
    """Return the same number for an operator that needs scales."""
    size = size_of(name)
    require(size > 1, "a block must have more than one value", kind="attribute", help="BLOCK_SIZE_32")
    return size


def blocked(shape: Shape, block: int, what: str) -> Shape:
    """Return the shape of the scales for values of a shape, whose last extent must be whole blocks."""
    require(len(shape) > 0, f"{what} has rank 0, and no axis for blocks", kind="shape")
    *rest, last = shape
    require(last is None or last % block == 0, f"the last extent of {what}, {written(shape)}, is no multiple of {block}",
            kind="shape")
    return (*rest, None if last is None else last // block)


def scaled(data: Operand, scale: Operand, block: int, what: str, allowed: tuple[ElementType, ...] = VALUES) -> Shape:
    """Return the shape of values with these scales, after checking the types and shapes of both."""
    values, scales = tensor(data, what), tensor(scale, f"the scale of {what}")
    one_of(values.element, allowed, what)
    one_of(scales.element, (F8E8M0,), f"the scale of {what}")
    assert values.shape is not None and scales.shape is not None
    expected = blocked(values.shape, block, what)
    require(same_shape(expected, scales.shape), f"the scale of {what} is {scales}, but {values} has scales of "
            f"{written(expected)}", kind="shape")
    return values.shape


def one_type(first: Operand, second: Operand, what: str) -> None:
    a, b = first.type.element, second.type.element
    require(a == b, f"{what} must have values of one type, not {a} and {b}")


def real_scaled(data: Array, scale: Array) -> Array:
    """Return values times their scales in float64."""
    return real_values(data) * np.repeat(scale.astype(np.float64), data.shape[-1] // scale.shape[-1], axis=-1)


class CastFromBlockScaled(Op, name="tosa.cast_from_block_scaled"):
    """Values times their scales. TOSA 1.1 draft, type conversion."""
    block_size: str = attribute("block_size")
    to: ElementType | None = from_result()

    def infer(self, data: Operand, scale: Operand) -> TensorType:
        shape = scaled(data, scale, shared_size(self.block_size), "the input")
        require(self.to is not None, f"{self.name} needs the element type of its result")
        assert self.to is not None
        return TensorType(shape, one_of(self.to, (BF16, F32), "the result"))

    def reference(self, data: Array, scale: Array) -> Array:
        assert self.to is not None
        return real_scaled(data, scale).astype(self.to.dtype)

    def element(self, out: TensorType, data: Tensor, scale: Tensor) -> Element:
        block, (*_, scales) = size_of(self.block_size), scale.type.dims

        def element(*index: Affine) -> Expr:
            *rest, last = index
            parts = last.divide(block)
            place = parts[0] if parts else gathered(IndexValue(last) / block, scales)
            value = cast(data[index], "float32")
            if data.type.element == MXINT8:
                value = value * 2.0**-6
            return cast(value * cast(scale[*rest, place], "float32"), out.element.storage)

        return element


class CastToBlockScaled(Op, name="tosa.cast_to_block_scaled"):
    """The nearest values (`to`) with their scales, two results. TOSA 1.1 draft, type conversion. `stochastic_round`, which the
    draft had for a time, must not be true."""
    block_size: str = attribute("block_size")
    to: ElementType | None = from_result()
    stochastic_round: bool = attribute("bool", default=False, elided=True)

    def infer(self, x: Operand) -> tuple[TensorType, TensorType]:
        found = tensor(x, "the input")
        require(not self.stochastic_round, "stochastic rounding is not supported", kind="unsupported",
                help="stochastic_round = false rounds to the nearest")
        one_of(found.element, (BF16, F32), "the input")
        assert found.shape is not None
        scales = blocked(found.shape, shared_size(self.block_size), "the input")
        require(self.to is not None, f"{self.name} needs the element type of its first result")
        assert self.to is not None
        return found.with_element(one_of(self.to, VALUES, "the first result")), TensorType(scales, F8E8M0)

    def reference(self, x: Array) -> tuple[Array, Array]:
        assert self.to is not None
        scale = scale_of(x, self.to)
        return values_of(x, scale, self.to), scale


class MatMulTBlockScaled(Op, name="tosa.matmul_t_block_scaled"):
    """Products of rows with rows, all of them block-scaled; a batch of one goes with any batch. TOSA 1.1 draft, tensor
    operators."""
    block_size: str = attribute("block_size")

    def infer(self, a: Operand, a_scale: Operand, b: Operand, b_scale: Operand) -> TensorType:
        block = shared_size(self.block_size)
        batch, height, inner = ranked(a, 3, "the first operand")
        other, width, depth = ranked(b, 3, "the second operand")
        ranked(a_scale, 3, "the scale of the first operand")
        ranked(b_scale, 3, "the scale of the second operand")
        scaled(a, a_scale, block, "the first operand")
        scaled(b, b_scale, block, "the second operand")
        one_type(a, b, "both operands")
        require(other == 1 or same(batch, other), f"the batch of {b.type} is neither 1 nor that of {a.type}", kind="shape")
        require(same(inner, depth), f"the last extents of {a.type} and {b.type} differ", kind="shape")
        batch = known(batch, other if other != 1 else None)
        return TensorType((batch, height, width), F32)

    def reference(self, a: Array, a_scale: Array, b: Array, b_scale: Array) -> Array:
        product = real_scaled(a, a_scale) @ real_scaled(b, b_scale).swapaxes(1, 2)
        return np.asarray(product).astype(np.float32)


class Conv2DBlockScaled(Op, name="tosa.conv2d_block_scaled"):
    """2-D convolution of block-scaled images with block-scaled weights; `pad`, `stride` and `dilation` are operands.
    TOSA 1.1 draft, tensor operators."""
    block_size: str = attribute("block_size")

    def infer(self, x: Operand, x_scale: Operand, weight: Operand, weight_scale: Operand, bias: Operand, pad: Operand,
              stride: Operand, dilation: Operand) -> TensorType:
        block = shared_size(self.block_size)
        batch, *extents, channels = ranked(x, 4, "the input")
        filters, *kernel, inputs = ranked(weight, 4, "the weight")
        scaled(x, x_scale, block, "the input", CONVOLUTION_VALUES)
        scaled(weight, weight_scale, block, "the weight", CONVOLUTION_VALUES)
        one_type(x, weight, "the input and the weight")
        require(same(channels, inputs), f"the input has {channels} channels, the weight {inputs}", kind="shape")
        one_of(tensor(bias, "the bias").element, (F32,), "the bias")
        count, = ranked(bias, 1, "the bias")
        require(count == 1 or same(count, filters), f"the bias has {count} numbers, for {filters} output channels",
                kind="shape")
        window = (known_shape(pad, "the pad", 4), known_shape(stride, "the stride", 2),
                  known_shape(dilation, "the dilation", 2))
        check("pad", window[0], 4, 0)
        check("stride", window[1], 2, 1)
        check("dilation", window[2], 2, 1)
        return TensorType((batch, *output_extents(extents, kernel, *window), filters), F32)

    def reference(self, x: Array, x_scale: Array, weight: Array, weight_scale: Array, bias: Array, pad: Array,
                  stride: Array, dilation: Array) -> Array:
        pixels, filters = real_scaled(x, x_scale), real_scaled(weight, weight_scale)
        margins, steps, gaps = (tuple(map(int, a.tolist())) for a in (pad, stride, dilation))
        (rows, by_row), (columns, by_column) = (
            window_slices(x.shape[d + 1], weight.shape[d + 1], margins[2 * d:2 * d + 2], steps[d], gaps[d]) for d in (0, 1))
        total = np.zeros((x.shape[0], rows, columns, weight.shape[0]))
        for kh, (out_rows, in_rows) in enumerate(by_row):
            for kw, (out_columns, in_columns) in enumerate(by_column):
                total[:, out_rows, out_columns] += pixels[:, in_rows, in_columns] @ filters[:, kh, kw].T
        return (total + bias.astype(np.float64)).astype(np.float32)
