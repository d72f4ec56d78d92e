"""Conversions between element types: Cast, CastLike, BitCast.

Floats become integers by dropping the fraction; what is not 0 is true. Floats of eight bits saturate unless the node says
otherwise.
"""
from __future__ import annotations

import numpy as np

from ....runtime.errors import Problem, require
from ...formulas.bit_patterns import bitcast
from ...formulas.term import Term
from ...graph.graph import Value
from ...graph.types import (
    BF16,
    BY_STORAGE,
    F8E4M3,
    F8E5M2,
    F16,
    F32,
    F64,
    I1,
    I4,
    I8,
    I16,
    I32,
    I64,
    UI4,
    UI8,
    UI16,
    UI32,
    UI64,
    Array,
    ElementType,
    TensorType,
)
from ..data import Datum
from ..emitter import Emitter
from .operator import Operator, operator

BY_NUMBER: dict[int, ElementType] = {
    1: F32, 2: UI8, 3: I8, 4: UI16, 5: I16, 6: I32, 7: I64, 9: I1, 10: F16, 11: F64, 12: UI32, 13: UI64, 16: BF16, 17: F8E4M3,
    19: F8E5M2, 21: UI4, 22: I4}
"""Element types by their numbers in onnx.proto."""
NAMES = {8: "strings", 14: "complex64", 15: "complex128", 18: "float8e4m3fnuz", 20: "float8e5m2fnuz", 23: "float4e2m1",
         24: "float8e8m0", 25: "uint2", 26: "int2"}
EIGHT_BITS = (F8E4M3, F8E5M2)


def element_of(number: int) -> ElementType:
    """The element type of a number; a Problem where there is none here."""
    if number not in BY_NUMBER:
        raise Problem(f"{NAMES.get(number, f'the type {number}')} have no place in TOSA", kind="unsupported")
    return BY_NUMBER[number]


def converted(x: Array, element: ElementType, saturate: bool = True) -> Array:
    """An array in another type, as NumPy and ml_dtypes have it, floats of eight bits held within their range."""
    if element in EIGHT_BITS:
        import ml_dtypes
        most = float(ml_dtypes.finfo(element.dtype).max)
        wide = x.astype(np.float32)
        held = np.where(np.isnan(wide), wide, np.clip(wide, -most, most)) if saturate else wide
        return np.asarray(held.astype(element.dtype))
    if element == I1:
        return np.asarray(x != 0)
    if element in (I4, UI4):
        whole = np.trunc(x.astype(np.float64)).astype(np.int64) if x.dtype.kind not in "iub" else x.astype(np.int64)
        return np.asarray(((whole + 8) % 16 - 8).astype(np.int8) if element == I4 else (whole % 16).astype(np.uint8))
    if x.dtype.kind not in "iub" and element.is_integer:
        return integers_of(x, element)
    return np.asarray(x.astype(element.dtype))


def integers_of(x: Array, element: ElementType) -> Array:
    """Floats without their fraction, by way of 64 bits; those out of range are held within it."""
    wide = np.trunc(x.astype(np.float64))
    if element.bits == 64:
        return np.asarray(wide.astype(element.dtype))
    return np.asarray(np.nan_to_num(wide).clip(-(2.0**62), 2.0**62).astype(np.int64).astype(element.dtype))


def cast(e: Emitter, x: Value, element: ElementType, saturate: bool) -> Value:
    """The same in TOSA."""
    if element in EIGHT_BITS:
        if not saturate or not x.tensor.size:
            return e.cast(e.cast(x, F32), element)
        import ml_dtypes
        most = float(ml_dtypes.finfo(element.dtype).max)
        return e("cast", e("clamp", e.cast(x, F32), min_val=-most, max_val=most), to=element)
    if element in (I4, UI4):
        low = Term(e, e.cast(x, I32)) & 15
        return ((low ^ 8) - 8).cast(I8).value if element == I4 else low.cast(UI8).value
    if x.tensor.element.is_float and element.is_integer and element.bits < 32:
        return e.cast(e.cast(x, I32), element)
    if x.tensor.element.is_float and element == UI32:
        return e.cast(e.cast(x, I64), element)
    return e.cast(x, element)


@operator("Cast")
class Cast(Operator):
    to: int
    saturate: int = 1
    round_mode: str = "up"

    def reference(self, x: Array) -> Array:
        if x.dtype == object:
            return strings_to(x, element_of(self.to))
        return converted(x, element_of(self.to), bool(self.saturate))

    def lower(self, e: Emitter, x: Value) -> Value:
        return cast(e, x, element_of(self.to), bool(self.saturate))


def strings_to(x: Array, element: ElementType) -> Array:
    """Numbers that are written as strings."""
    return np.array([float(s) for s in x.reshape(-1)]).astype(element.dtype).reshape(x.shape)


@operator("CastLike")
class CastLike(Operator):
    saturate: int = 1
    round_mode: str = "up"

    def element(self, name: str) -> ElementType:
        """The element type of the second operand: of four bits where the file says so, because these are stored in bytes."""
        declared = self.operation.operands[1].type
        if isinstance(declared, TensorType) and declared.element in (I4, UI4):
            return declared.element
        if name not in BY_STORAGE:
            raise Problem(f"{name} has no place in TOSA", kind="unsupported")
        return BY_STORAGE[name]

    def reference(self, x: Array, like: Array) -> Array:
        return converted(x, self.element(like.dtype.name), bool(self.saturate))

    def lower(self, e: Emitter, x: Value, like: Datum) -> Value:
        if not isinstance(like, Value):
            raise Problem("the type of strings is not one to compute with", kind="unsupported")
        return cast(e, x, self.element(like.tensor.element.storage), bool(self.saturate))


@operator("BitCast")
class BitCast(Operator):
    """The same bits as another type of the same width."""
    to: int

    def reference(self, x: Array) -> Array:
        return np.asarray(np.ascontiguousarray(x).view(element_of(self.to).dtype)).reshape(x.shape)

    def lower(self, e: Emitter, x: Value) -> Value:
        own, element = x.tensor.element, element_of(self.to)
        if own == I1:
            x, own = e.cast(x, UI8), UI8
        if element == I1:  # a byte that is not 0 is true
            return e.cast(bitcast(e, x, UI8), I1)
        require(own.bits == element.bits, f"{own} has {own.bits} bits, {element} has {element.bits}", kind="type",
                help="both must have as many")
        return bitcast(e, x, element)
