"""Products of quantized matrices, summed in 32 bits: MatMulInteger, QLinearMatMul, and Microsoft's QGemm, MatMulIntegerToFloat
and DynamicQuantizeMatMul.

Sums become integers of the result's scale as in ONNX Runtime: in float32 times one factor, rounded to the nearest even.
"""
from __future__ import annotations

import numpy as np

from ....runtime.errors import require
from ...formulas.contractions import batched_product, swapped
from ...formulas.quantization import as_signed, factor_of, one_number, requantized
from ...formulas.term import Term
from ...graph.graph import Value
from ...graph.types import F32, I8, I32, Array
from ..emitter import Emitter
from .operator import Operator, operator
from .quantize import BYTES, dynamic, emitted_dynamic, nearest


# ---- NumPy ---------------------------------------------------------------------------------------------------------------
def by_rows(numbers: Array | None, count: int) -> Array:
    """Return parameters of the left operand: one, one for each row, or in a shape that broadcasts."""
    if numbers is None:
        return np.zeros((), np.int64)
    return numbers.reshape(-1, 1) if numbers.ndim == 1 and numbers.size > 1 and count > 1 else numbers


def total_of(a: Array, b: Array, a_zero: Array | None, b_zero: Array | None) -> Array:
    """Return the product of both operands less their zero points, in 32 bits."""
    left = a.astype(np.int64) - by_rows(a_zero, a.ndim).astype(np.int64)
    right = b.astype(np.int64) - (0 if b_zero is None else b_zero.astype(np.int64))
    return np.asarray(np.matmul(left, right), np.int64).astype(np.int32)


def in_steps(total: Array, factor: Array, zero: Array) -> Array:
    """Return sums times a factor in float32, as integers of the zero point's type."""
    return nearest(np.asarray(total.astype(np.float32) * factor, np.float32), zero, zero.dtype)


# ---- TOSA ----------------------------------------------------------------------------------------------------------------
def emitted_total(e: Emitter, a: Value, b: Value, a_zero: Value | None, b_zero: Value | None) -> Value:
    """Return the product of both operands less their zero points, in 32 bits. Zero points that differ between rows or columns
    are subtracted from the sums."""
    for operand, zero in ((a, a_zero), (b, b_zero)):
        require(operand.tensor.element in BYTES and (zero is None or zero.tensor.element == operand.tensor.element),
                f"it takes bytes and zero points of their type, not {operand.type}", kind="type")
        require(operand.tensor.rank > 0, f"it takes matrices, not {operand.type}", kind="shape")
    rows = e.reshape(a, (1, *a.tensor.dims)) if a.tensor.rank == 1 else a
    columns = e.reshape(b, (*b.tensor.dims, 1)) if b.tensor.rank == 1 else b
    batch = np.broadcast_shapes(rows.tensor.dims[:-2], columns.tensor.dims[:-2])
    dims = (*batch, *rows.tensor.dims[-2:-1] * (a.tensor.rank > 1), *columns.tensor.dims[-1:] * (b.tensor.rank > 1))
    if not a.tensor.size or not b.tensor.size:
        return e.broadcast_to(e.constant(np.zeros((), np.int32)), dims)
    (left, x), (right, y) = one_zero(e, rows, a_zero, True), one_zero(e, columns, b_zero, False)
    signed = as_signed(e, rows), as_signed(e, columns)
    found = Term(e, batched_product(e, *signed, I32, (left, right)))
    if x is not None:
        found = found - x * summed(e, signed[1], right, -2)
    if y is not None:
        found = found - y * summed(e, signed[0], left, -1)
    if x is not None and y is not None:
        found = found + x * y * rows.tensor.dims[-1]
    return e.reshape(found.value, dims)


def one_zero(e: Emitter, x: Value, zero: Value | None, of_rows: bool) -> tuple[Value, Term | None]:
    """Return the zero point that TOSA takes, for signed bytes, and the zero points that differ, which are handled
    separately."""
    if zero is None:
        zero = e.constant(np.zeros((), x.tensor.element.dtype))
    known = one_number(zero)
    if known is not None and zero.tensor.size > 1:
        zero = e.constant(np.full((), known, x.tensor.element.dtype))
    signed = as_signed(e, zero)
    if zero.tensor.size == 1:
        return e.reshape(signed, (1,)), None
    if of_rows and zero.tensor.rank == 1:
        signed = e.reshape(signed, (*zero.tensor.dims, 1))
    return e.zero_point(I8), Term(e, e.cast(signed, I32))


def summed(e: Emitter, x: Value, zero: Value, axis: int) -> Term:
    """Return the sums of rows (-1) or columns (-2), less the zero point; the axis is kept."""
    wide = Term(e, e.cast(x, I32)) - Term(e, e.cast(zero, I32))
    return wide.reduced("reduce_sum", x.tensor.rank + axis)


def emitted_by_rows(e: Emitter, numbers: Value, count: int) -> Value:
    dims = numbers.tensor.dims
    return e.reshape(numbers, (*dims, 1)) if len(dims) == 1 and dims[0] > 1 and count > 1 else numbers


# ---- operators -----------------------------------------------------------------------------------------------------------
@operator("MatMulInteger")
class MatMulInteger(Operator):
    def reference(self, a: Array, b: Array, a_zero_point: Array | None = None, b_zero_point: Array | None = None) -> Array:
        return total_of(a, b, a_zero_point, b_zero_point)

    def lower(self, e: Emitter, a: Value, b: Value, a_zero_point: Value | None = None, b_zero_point: Value | None = None
              ) -> Value:
        return emitted_total(e, a, b, a_zero_point, b_zero_point)


@operator("QLinearMatMul")
class QLinearMatMul(Operator):
    def reference(self, a: Array, a_scale: Array, a_zero_point: Array, b: Array, b_scale: Array, b_zero_point: Array,
                  y_scale: Array, y_zero_point: Array) -> Array:
        total = total_of(a, b, a_zero_point, b_zero_point)
        left, right, wanted = (v.astype(np.float32) for v in (by_rows(a_scale, a.ndim), b_scale, y_scale))
        return in_steps(total, left * right / by_rows(wanted, a.ndim), by_rows(y_zero_point, a.ndim))

    def lower(self, e: Emitter, a: Value, a_scale: Value, a_zero_point: Value, b: Value, b_scale: Value, b_zero_point: Value,
              y_scale: Value, y_zero_point: Value) -> Value:
        total = emitted_total(e, a, b, a_zero_point, b_zero_point)
        left, wanted, zero = (emitted_by_rows(e, v, a.tensor.rank) for v in (a_scale, y_scale, y_zero_point))
        require(zero.tensor.element in BYTES, f"it makes bytes, not {zero.tensor.element}", kind="type")
        return requantized(e, total, factor_of(e, (left, b_scale), wanted), zero, zero.tensor.element)


@operator("com.microsoft.QGemm")
class QGemm(Operator):
    """alpha * A * B + C, C of 32 bits with the scale of the products; the result is float if it has no scale."""
    alpha: float = 1.0
    transA: int = 0
    transB: int = 0

    def reference(self, a: Array, a_scale: Array, a_zero: Array, b: Array, b_scale: Array, b_zero: Array,
                  c: Array | None = None, y_scale: Array | None = None, y_zero: Array | None = None) -> Array:
        total = total_of(a.T if self.transA else a, b.T if self.transB else b, a_zero, b_zero)
        total = total if c is None else total + c
        factor = np.float32(self.alpha) * a_scale * b_scale
        if y_scale is None or y_zero is None:
            return np.asarray(total.astype(np.float32) * factor, np.float32)
        return in_steps(total, factor / y_scale, y_zero)

    def lower(self, e: Emitter, a: Value, a_scale: Value, a_zero: Value, b: Value, b_scale: Value, b_zero: Value,
              c: Value | None = None, y_scale: Value | None = None, y_zero: Value | None = None) -> Value:
        require(a.tensor.rank == b.tensor.rank == 2, f"it takes matrices, not {a.type} and {b.type}", kind="shape")
        total = emitted_total(e, swapped(e, a) if self.transA else a, swapped(e, b) if self.transB else b, a_zero, b_zero)
        total = total if c is None else e.sum(total, c)
        factor = factor_of(e, (a_scale, b_scale), y_scale, self.alpha)
        if y_scale is None or y_zero is None:
            return e.product(e.cast(total, F32), factor)
        return requantized(e, total, factor, y_zero, y_zero.tensor.element)


# ---- results in float32 --------------------------------------------------------------------------------------------------
@operator("com.microsoft.MatMulIntegerToFloat")
class MatMulIntegerToFloat(Operator):
    def reference(self, a: Array, b: Array, a_scale: Array, b_scale: Array, a_zero: Array | None = None,
                  b_zero: Array | None = None, bias: Array | None = None) -> Array:
        found = total_of(a, b, a_zero, b_zero).astype(np.float32) * (by_rows(a_scale, a.ndim) * b_scale)
        return np.asarray(found if bias is None else found + bias, a_scale.dtype)

    def lower(self, e: Emitter, a: Value, b: Value, a_scale: Value, b_scale: Value, a_zero: Value | None = None,
              b_zero: Value | None = None, bias: Value | None = None) -> Value:
        factor = factor_of(e, (emitted_by_rows(e, a_scale, a.tensor.rank), b_scale), None)
        found = e.product(e.cast(emitted_total(e, a, b, a_zero, b_zero), F32), factor)
        return e.cast(found if bias is None else e.sum(found, e.cast(bias, F32)), a_scale.tensor.element)


@operator("com.microsoft.DynamicQuantizeMatMul")
class DynamicQuantizeMatMul(Operator):
    """A product whose left operand is quantized to bytes with a scale computed from its range."""

    def reference(self, a: Array, b: Array, b_scale: Array, b_zero: Array | None = None, bias: Array | None = None) -> Array:
        stored, scale, zero = dynamic(a)
        found = total_of(stored, b, zero, b_zero).astype(np.float32) * (scale * b_scale)
        return np.asarray(found if bias is None else found + bias, np.float32)

    def lower(self, e: Emitter, a: Value, b: Value, b_scale: Value, b_zero: Value | None = None, bias: Value | None = None
              ) -> Value:
        stored, scale, zero = emitted_dynamic(e, a)
        found = e.product(e.cast(emitted_total(e, stored, b, zero, b_zero), F32), factor_of(e, (scale, b_scale), None))
        return found if bias is None else e.sum(found, bias)
