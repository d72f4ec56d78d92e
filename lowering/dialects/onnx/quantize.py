"""Numbers as integers of fewer bits and back: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.

A scale is one number, one for each index along an axis, or one for each block along it; a zero point has its shape. Quotients
are float32 for all operand types, unless the node has a precision: as ONNX Runtime computes them.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....runtime.errors import Problem, require
from ...formulas.division import divided
from ...formulas.narrow_floats import opened
from ...formulas.quantization import dequantized, quantized, steps_of, stored
from ...formulas.reductions import operator as one_operator
from ...formulas.reductions import reduced
from ...formulas.term import Term, maximum, minimum, select
from ...graph.graph import Value
from ...graph.types import BY_STORAGE, F8E8M0, F32, I8, UI8, Array, ElementType, TensorType
from ..emitter import Emitter
from .casts import cast, converted
from .element_types import IN_BYTES, LIMITS, element_of
from .operator import Operator, operator


class Scaled(Operator):
    """An operator with a scale and a zero point."""
    axis: int = 1
    block_size: int = 0

    def blocks(self, dims: Sequence[int], scale: Sequence[int]) -> tuple[int, int]:
        """Return the axis that scales differ along, and the number of elements that share one; raise a Problem if the shapes do
        not fit."""
        rank = len(dims)
        require(-rank <= self.axis < rank, f"axis {self.axis} is not one of a tensor of rank {rank}", kind="shape")
        axis = self.axis % rank
        if len(scale) == 1 and scale[0] == dims[axis]:
            return axis, 1
        fits = len(scale) == rank and all(n == m for a, (n, m) in enumerate(zip(dims, scale)) if a != axis) and scale[axis] > 0
        size = self.block_size or (-(-dims[axis] // scale[axis]) if fits else 1)
        require(fits and -(-dims[axis] // size) == scale[axis],
                f"scales of shape {list(scale)} do not fit {list(dims)} along axis {axis}", kind="shape")
        return axis, size

    def spread(self, numbers: Array, dims: Sequence[int]) -> Array:
        """Return scales or zero points that broadcast to a tensor of these extents."""
        if numbers.size == 1 and numbers.ndim < 2:
            return numbers.reshape(())
        axis, size = self.blocks(dims, numbers.shape)
        if numbers.ndim == 1:
            return numbers.reshape([-1 if a == axis else 1 for a in range(len(dims))])
        return np.take(np.repeat(numbers, size, axis), range(dims[axis]), axis)

    def emitted_spread(self, e: Emitter, numbers: Value, dims: Sequence[int]) -> Value:
        """Return the same in TOSA."""
        own = numbers.tensor.dims
        if numbers.tensor.size == 1 and len(own) < 2:
            return e.reshape(numbers, ())
        axis, size = self.blocks(dims, own)
        if len(own) == 1:
            return e.reshape(numbers, [own[0] if a == axis else 1 for a in range(len(dims))])
        if size == 1:
            return numbers
        before, behind = int(np.prod(own[:axis])), int(np.prod(own[axis + 1:]))
        wide = e.tile(e.reshape(numbers, (before, own[axis], 1, behind)), (1, 1, size, 1))
        whole = e.reshape(wide, (*own[:axis], own[axis] * size, *own[axis + 1:]))
        return e.slice(whole, [0] * len(dims), dims)

    def declared(self, number: int) -> ElementType | None:
        """Return the element type of an operand if the file declares it to have four bits, or two."""
        operands = self.operation.operands
        type = operands[number].type if number < len(operands) else None
        return type.element if isinstance(type, TensorType) and type.element in LIMITS else None


@operator("QuantizeLinear", "com.microsoft.QuantizeLinear")
class QuantizeLinear(Scaled):
    saturate: int = 1
    output_dtype: int = 0
    precision: int = 0

    def element(self, zero_point: str | None) -> ElementType:
        """Return the element type of the result: that of the zero point (given as its storage type), or the node's, or unsigned
        bytes."""
        if zero_point is not None:
            found = self.declared(2) or named(zero_point)
        else:
            found = element_of(self.output_dtype) if self.output_dtype else UI8
        small = found.is_float and found.bits <= 8 and found != F8E8M0
        require(small or (found.is_integer and found.bits <= 16), f"it does not make {found}", kind="type")
        return found

    def reference(self, x: Array, y_scale: Array, y_zero_point: Array | None = None) -> Array:
        element = self.element(None if y_zero_point is None else y_zero_point.dtype.name)
        scale = self.spread(y_scale, x.shape).astype(np.float32)
        steps = np.asarray(x.astype(np.float32) / scale, np.float32)
        if self.precision:
            steps = steps.astype(element_of(self.precision).dtype).astype(np.float32)
        if element.is_float:
            if element.bits < 8 and y_zero_point is not None:
                steps = steps + self.spread(y_zero_point, x.shape).astype(np.float32)
            return converted(steps, element, bool(self.saturate))
        zero = np.float64(0) if y_zero_point is None else self.spread(y_zero_point, x.shape).astype(np.float64)
        low, high = LIMITS.get(element, (element.minimum, element.maximum))
        return np.asarray(np.clip(np.nan_to_num(np.rint(steps.astype(np.float64))) + zero, low, high).astype(element.dtype))

    def lower(self, e: Emitter, x: Value, y_scale: Value, y_zero_point: Value | None = None) -> Value:
        element = self.element(None if y_zero_point is None else y_zero_point.tensor.element.storage)
        if not x.tensor.size:
            return e.zeros(x.tensor.with_element(IN_BYTES.get(element, element)))
        steps = steps_of(e, x, self.emitted_spread(e, opened(e, y_scale), x.tensor.dims))
        if self.precision:
            steps = e.cast(e.cast(steps, element_of(self.precision)), F32)
        if element.is_float:
            if element.bits < 8 and y_zero_point is not None:
                steps = e.sum(*e.same_rank(steps, opened(e, self.emitted_spread(e, y_zero_point, x.tensor.dims))))
            return cast(e, steps, element, bool(self.saturate))
        zero = None if y_zero_point is None else self.emitted_spread(e, y_zero_point, x.tensor.dims)
        return stored(e, steps, zero, IN_BYTES.get(element, element), LIMITS.get(element))


def named(storage: str) -> ElementType:
    """Return the element type of a dtype; raise a Problem if there is none."""
    if storage not in BY_STORAGE:
        raise Problem(f"{storage} has no place in TOSA", kind="unsupported")
    return BY_STORAGE[storage]


@operator("DequantizeLinear", "com.microsoft.DequantizeLinear")
class DequantizeLinear(Scaled):
    output_dtype: int = 0

    def reference(self, x: Array, x_scale: Array, x_zero_point: Array | None = None) -> Array:
        scale = self.spread(x_scale, x.shape).astype(np.float32)
        named(x.dtype.name)
        if x.dtype.kind in "iu":
            zero = np.int64(0) if x_zero_point is None else self.spread(x_zero_point, x.shape).astype(np.int64)
            real = np.asarray((x.astype(np.int64) - zero).astype(np.int32).astype(np.float32) * scale, np.float32)
        else:
            real = np.asarray(x.astype(np.float32) * scale, np.float32)
        element = element_of(self.output_dtype) if self.output_dtype else BY_STORAGE[x_scale.dtype.name]
        return np.asarray(real.astype(element.dtype))

    def lower(self, e: Emitter, x: Value, x_scale: Value, x_zero_point: Value | None = None) -> Value:
        element = element_of(self.output_dtype) if self.output_dtype else x_scale.tensor.element
        require(element.is_float, f"it does not make {element}", kind="type")
        if not x.tensor.size:
            return e.zeros(x.tensor.with_element(element))
        scale = self.emitted_spread(e, opened(e, x_scale), x.tensor.dims)
        if x.tensor.element.is_float:
            return e.cast(e.product(e.cast(opened(e, x), F32), e.cast(scale, F32)), element)
        zero = None if x_zero_point is None else self.emitted_spread(e, x_zero_point, x.tensor.dims)
        return e.cast(dequantized(e, x, scale, zero), element)


# ---- bytes, for the operators beside --------------------------------------------------------------------------------------
BYTES = (I8, UI8)


def check_bytes(*values: Value) -> None:
    """Raise a Problem unless all values are bytes."""
    for value in values:
        require(value.tensor.element in BYTES, f"it takes bytes, not {value.type}", kind="type")


def real(x: Array, scale: Array, zero: Array | None) -> Array:
    """Return the numbers that bytes represent."""
    steps = x.astype(np.int32) - (0 if zero is None else zero.astype(np.int32))
    return np.asarray(steps.astype(np.float32) * scale, np.float32)


def nearest(steps: Array, zero: Array | None, dtype: np.dtype) -> Array:
    """Return steps rounded to the nearest integer, with the zero point added, clipped to the range."""
    info = np.iinfo(dtype)
    found = np.rint(steps).astype(np.float64) + (0 if zero is None else zero.astype(np.float64))
    return np.asarray(np.clip(found, info.min, info.max).astype(dtype))


# ---- scales that are found from the numbers ------------------------------------------------------------------------------
def dynamic(x: Array) -> tuple[Array, Array, Array]:
    """Return bytes, their scale and zero point for the range of x and 0, as the specification defines them."""
    low, high = np.minimum(x.min(initial=0), np.float32(0)), np.maximum(x.max(initial=0), np.float32(0))
    scale = np.float32(1) if high == low else np.float32(high - low) / np.float32(255)
    zero = np.rint(np.clip(np.float32(0) - low / scale, 0, 255))
    steps = np.rint(np.asarray(x / scale, np.float32)).astype(np.float64) + zero
    return np.clip(steps, 0, 255).astype(np.uint8), np.asarray(scale, np.float32), np.asarray(zero.astype(np.uint8))


def emitted_dynamic(e: Emitter, x: Value) -> tuple[Value, Value, Value]:
    """Return the same in TOSA."""
    if x.tensor.element != F32:
        raise Problem(f"it takes f32, not {x.tensor.element}", kind="type")
    axes = range(x.tensor.rank)
    low = Term(e, e.reshape(reduced(e, x, axes, one_operator("reduce_min"), 0), ()))
    high = Term(e, e.reshape(reduced(e, x, axes, one_operator("reduce_max"), 0), ()))
    low, high = minimum(low, 0.0), maximum(high, 0.0)
    scale = select(high.equals(low), high.term(1), divided(high - low, high.term(255)))
    zero = stored(e, (divided(-low, scale)).value, None, UI8)
    return quantized(e, x, scale.value, zero, UI8), scale.value, zero


@operator("DynamicQuantizeLinear")
class DynamicQuantizeLinear(Operator):
    def reference(self, x: Array) -> tuple[Array, ...]:
        return dynamic(x)

    def lower(self, e: Emitter, x: Value) -> tuple[Value, ...]:
        return emitted_dynamic(e, x)
