"""Microsoft's operators of quantized tensors other than products: QLinearAdd, QLinearMul, QLinearSigmoid, QLinearLeakyRelu,
QLinearConcat, QLinearSoftmax, QLinearWhere; and tosaic's own QLinearTable and AsUnsigned.

A function of one byte is a table of 256 values, which is computed at compile time if scales are known. The others compute in
float32 between bytes, in ONNX Runtime's order without fused products. The type of the result's zero point decides its sign;
ONNX Runtime requires the same sign of all operands, rewrites do not.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....runtime.errors import Problem, require
from ...formulas.quantization import as_signed, as_unsigned, dequantized, factor_of, quantized, stored
from ...formulas.softmax import softmax
from ...formulas.term import Term, select, sigmoid
from ...graph.graph import Value
from ...graph.types import F32, I8, Array
from ..emitter import Emitter
from .operator import Operator, operator
from .quantize import check_bytes, nearest, real


# ---- two operands --------------------------------------------------------------------------------------------------------
class OfTwo(Operator):
    """An operator of two operands. `lift` is 128 if a rewrite has turned unsigned bytes into signed ones: they are lifted for
    the computation, so that it rounds as that of the file's bytes does."""
    lift: int = 0

    def lifted(self, x: Array | None, like: Array) -> Array:
        """Return bytes as floats; an omitted zero point is 0, lifted as the bytes are."""
        own = like if x is None else x
        wide = np.zeros((), np.float32) if x is None else x.astype(np.float32)
        return np.asarray(wide + np.float32(self.lift if own.dtype == np.int8 else 0), np.float32)

    def emitted_lifted(self, e: Emitter, x: Value | None, like: Value) -> Term:
        """Return the same in TOSA."""
        own = like if x is None else x
        wide = Term(e, e.constant(np.float32(0)) if x is None else e.cast(x, F32))
        return wide + self.lift if self.lift and own.tensor.element == I8 else wide

    def reference(self, a: Array, a_scale: Array, a_zero: Array | None, b: Array, b_scale: Array, b_zero: Array | None,
                  c_scale: Array, c_zero: Array | None = None) -> Array:
        zeros = [self.lifted(zero, like) for zero, like in ((a_zero, a), (b_zero, b), (c_zero, a))]
        steps = self.steps(self.lifted(a, a), self.lifted(b, b), (a_scale, b_scale, c_scale), zeros)
        return nearest(np.rint(steps) - self.lift, None, a.dtype if c_zero is None else c_zero.dtype)

    def lower(self, e: Emitter, a: Value, a_scale: Value, a_zero: Value | None, b: Value, b_scale: Value,
              b_zero: Value | None, c_scale: Value, c_zero: Value | None = None) -> Value:
        check_bytes(*(v for v in (a, b, a_zero, b_zero, c_zero) if v is not None))
        zeros = [self.emitted_lifted(e, zero, like) for zero, like in ((a_zero, a), (b_zero, b), (c_zero, a))]
        x, y = self.emitted_lifted(e, a, a), self.emitted_lifted(e, b, b)
        steps = self.emitted_steps(e, (x, y), (a_scale, b_scale, c_scale), zeros)
        back = e.constant(np.array(-self.lift, np.int8)) if self.lift else None
        return stored(e, steps.value, back, (a if c_zero is None else c_zero).tensor.element)

    def steps(self, x: Array, y: Array, scales: Sequence[Array], zeros: Sequence[Array]) -> Array:
        """Return the numbers before the final rounding, including the result's zero point."""
        raise NotImplementedError

    def emitted_steps(self, e: Emitter, operands: tuple[Term, Term], scales: tuple[Value, ...], zeros: Sequence[Term]) -> Term:
        raise NotImplementedError


@operator("com.microsoft.QLinearAdd")
class QLinearAdd(OfTwo):
    """a * (a_scale / c_scale) + b * (b_scale / c_scale) plus the contribution of the zero points."""

    def steps(self, x: Array, y: Array, scales: Sequence[Array], zeros: Sequence[Array]) -> Array:
        first, second = scales[0] / scales[2], scales[1] / scales[2]
        return (x * first + (zeros[2] - (first * zeros[0] + second * zeros[1]))) + y * second

    def emitted_steps(self, e: Emitter, operands: tuple[Term, Term], scales: tuple[Value, ...], zeros: Sequence[Term]) -> Term:
        first, second = (Term(e, factor_of(e, (s,), scales[2])) for s in scales[:2])
        fixed = zeros[2] - (first * zeros[0] + second * zeros[1])
        return (operands[0] * first + fixed) + operands[1] * second


@operator("com.microsoft.QLinearMul")
class QLinearMul(OfTwo):
    """(a - a_zero) * (b - b_zero), exact, times one factor; the zero point is added before rounding."""

    def steps(self, x: Array, y: Array, scales: Sequence[Array], zeros: Sequence[Array]) -> Array:
        return ((x - zeros[0]) * (y - zeros[1])) * (scales[0] * scales[1] / scales[2]) + zeros[2]

    def emitted_steps(self, e: Emitter, operands: tuple[Term, Term], scales: tuple[Value, ...], zeros: Sequence[Term]) -> Term:
        x, y = operands[0] - zeros[0], operands[1] - zeros[1]
        return x * y * Term(e, factor_of(e, scales[:2], scales[2])) + zeros[2]


@operator("com.microsoft.QLinearWhere")
class QLinearWhere(Operator):
    def reference(self, condition: Array, x: Array, x_scale: Array, x_zero: Array, y: Array, y_scale: Array, y_zero: Array,
                  z_scale: Array, z_zero: Array) -> Array:
        found = np.where(condition, real(x, x_scale, x_zero), real(y, y_scale, y_zero))
        return nearest(found / z_scale, z_zero, x.dtype)

    def lower(self, e: Emitter, condition: Value, x: Value, x_scale: Value, x_zero: Value, y: Value, y_scale: Value,
              y_zero: Value, z_scale: Value, z_zero: Value) -> Value:
        check_bytes(x, y)
        one, other = (moved(e, v, s, z, z_scale, z_zero) for v, s, z in ((x, x_scale, x_zero), (y, y_scale, y_zero)))
        return e.select(condition, one, other)


# ---- functions of one byte -----------------------------------------------------------------------------------------------
def by_table(e: Emitter, x: Value, table: Array) -> Value:
    """Return entries of a table with one entry for each byte, in order."""
    signed = table if table.dtype == np.int8 else (table.astype(np.int16) - 128).astype(np.int8)
    found = e("table", as_signed(e, x), e.constant(signed))
    return found if table.dtype == np.int8 else as_unsigned(e, found)


def tabulated(e: Emitter, x: Value, function: Callable[[Value], Value]) -> Value:
    """Return a function of bytes: by a table of its values, if they are known."""
    element = x.tensor.element
    every = np.arange(element.minimum, element.maximum + 1).astype(element.dtype)
    table = function(e.constant(every)).constant
    if table is None or table.size != every.size:
        return function(x)
    table = table.reshape(-1)
    return x if table.dtype == every.dtype and np.array_equal(table, every) else by_table(e, x, table)


@operator("tosaic.QLinearTable")
class QLinearTable(Operator):
    """Entry x of a table: the form in which rewrites write functions between bytes."""

    def reference(self, x: Array, table: Array) -> Array:
        return np.asarray(table[x.astype(np.int64) - np.iinfo(x.dtype).min])

    def lower(self, e: Emitter, x: Value, table: Value) -> Value:
        check_bytes(x, table)
        if table.constant is None:
            raise Problem("the table must be known when compiling", kind="unsupported")
        return by_table(e, x, table.constant)


@operator("tosaic.AsUnsigned")
class AsUnsigned(Operator):
    """Signed bytes plus 128: rewrites insert it before readers of unsigned bytes that are stored as `i8`."""

    def reference(self, x: Array) -> Array:
        return np.asarray((x.astype(np.int16) + 128).astype(np.uint8))

    def lower(self, e: Emitter, x: Value) -> Value:
        return as_unsigned(e, x)


class OfOneByte(Operator):
    """A function of floats whose operand and result are bytes."""

    def reference(self, x: Array, x_scale: Array, x_zero: Array | None, y_scale: Array, y_zero: Array | None = None) -> Array:
        return nearest(self.function(real(x, x_scale, x_zero)) / y_scale, y_zero, x.dtype)

    def lower(self, e: Emitter, x: Value, x_scale: Value, x_zero: Value | None, y_scale: Value, y_zero: Value | None = None
              ) -> Value:
        check_bytes(x)

        def function(given: Value) -> Value:
            found = self.formula(Term(e, dequantized(e, given, x_scale, x_zero)))
            return quantized(e, found.value, y_scale, y_zero, x.tensor.element)
        return tabulated(e, x, function)

    def function(self, x: Array) -> Array:
        raise NotImplementedError

    def formula(self, x: Term) -> Term:
        raise NotImplementedError


@operator("com.microsoft.QLinearSigmoid")
class QLinearSigmoid(OfOneByte):
    def function(self, x: Array) -> Array:
        return np.asarray(1 / (1 + np.exp(-x.astype(np.float64))), np.float32)

    def formula(self, x: Term) -> Term:
        return sigmoid(x)


@operator("com.microsoft.QLinearLeakyRelu")
class QLinearLeakyRelu(OfOneByte):
    alpha: float = 0.01

    def function(self, x: Array) -> Array:
        return np.where(x >= 0, x, x * np.float32(self.alpha))

    def formula(self, x: Term) -> Term:
        return select(x >= 0, x, x * self.alpha)


# ---- other scales --------------------------------------------------------------------------------------------------------
def moved(e: Emitter, x: Value, x_scale: Value, x_zero: Value | None, y_scale: Value, y_zero: Value | None) -> Value:
    """Return bytes of another scale: by a table, if both scales are known."""
    check_bytes(x, *([] if y_zero is None else [y_zero]))
    element = (x if y_zero is None else y_zero).tensor.element
    return tabulated(e, x, lambda given: quantized(e, dequantized(e, given, x_scale, x_zero), y_scale, y_zero, element))


@operator("com.microsoft.QLinearConcat")
class QLinearConcat(Operator):
    """A concatenation whose operands each come with a scale and a zero point."""
    axis: int

    def reference(self, y_scale: Array, y_zero: Array, *operands: Array) -> Array:
        parts = [nearest(real(x, scale, zero) / y_scale, y_zero, y_zero.dtype)
                 for x, scale, zero in zip(operands[::3], operands[1::3], operands[2::3], strict=True)]
        return np.concatenate(parts, self.axis)

    def lower(self, e: Emitter, y_scale: Value, y_zero: Value, *operands: Value) -> Value:
        require(len(operands) > 0 and not len(operands) % 3, "each operand needs a scale and a zero point", kind="type")
        check_bytes(*operands[::3])
        rank = operands[0].tensor.rank
        require(-rank <= self.axis < rank, f"axis {self.axis} is not one of a tensor of rank {rank}", kind="shape")
        parts = [moved(e, x, scale, zero, y_scale, y_zero)
                 for x, scale, zero in zip(operands[::3], operands[1::3], operands[2::3])]
        return e.concat(parts, self.axis % rank)


# ---- softmax --------------------------------------------------------------------------------------------------------------
@operator("com.microsoft.QLinearSoftmax")
class QLinearSoftmax(Operator):
    """Softmax in float32, up to a step off ONNX Runtime's integers; for a version (`opset`) before 13 along all axes from
    `axis` on."""
    axis: int = -1
    opset: int

    def axes(self, rank: int) -> tuple[int, ...]:
        require(-rank <= self.axis < max(rank, 1), f"axis {self.axis} is not one of a tensor of rank {rank}", kind="shape")
        first = self.axis % rank if rank else 0
        return tuple(range(first, rank)) if self.opset < 13 else (first,)

    def reference(self, x: Array, x_scale: Array, x_zero: Array | None, y_scale: Array, y_zero: Array) -> Array:
        axes = self.axes(x.ndim)
        values = real(x, x_scale, x_zero).astype(np.float64)
        powers = np.exp(values - values.max(axes, keepdims=True))
        found = np.asarray(powers / powers.sum(axes, keepdims=True), np.float32)
        return nearest(found / y_scale, y_zero, x.dtype)

    def lower(self, e: Emitter, x: Value, x_scale: Value, x_zero: Value | None, y_scale: Value, y_zero: Value) -> Value:
        check_bytes(x)
        dims, axes = x.tensor.dims, self.axes(x.tensor.rank)
        real = e.reshape(dequantized(e, x, x_scale, x_zero), self.folded(dims, axes))
        found = e.reshape(softmax(Term(e, real), axes[0]).value, dims)
        return quantized(e, found, y_scale, y_zero, x.tensor.element)

    def folded(self, dims: Sequence[int], axes: Sequence[int]) -> list[int]:
        """Return the extents with those axes as one."""
        return [*dims[:axes[0]], int(np.prod(dims[axes[0]:axes[-1] + 1])), *dims[axes[-1] + 1:]]
