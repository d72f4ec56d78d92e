"""Conversions between element types: Cast, CastLike, BitCast.

Floats become integers by dropping the fraction; numbers other than 0 are true. Floats of eight bits saturate unless an
attribute of the node disables it.
"""
from __future__ import annotations

import numpy as np

from ....runtime.errors import Problem, require
from ...formulas.bit_patterns import bitcast, seen_as
from ...formulas.narrow_floats import NARROW, narrow, opened
from ...formulas.term import Term
from ...graph.graph import Value
from ...graph.types import BY_STORAGE, F8E8M0, F32, I1, I8, I32, I64, UI8, UI32, Array, ElementType, TensorType
from ..data import Datum
from ..emitter import Emitter
from .element_types import EIGHT_BITS, IN_BYTES, element_of
from .operator import Operator, operator


def converted(x: Array, element: ElementType, saturate: bool = True, round_mode: str = "up") -> Array:
    """Return an array in another type, converted as by NumPy and ml_dtypes, with eight-bit floats clipped to their range."""
    if element == F8E8M0:
        return powers_of_two(x, saturate, round_mode)
    if element.is_float and element.bits <= 8:
        import ml_dtypes
        most = float(ml_dtypes.finfo(element.dtype).max)
        wide = x.astype(np.float32)
        held = np.where(np.isnan(wide), wide, np.clip(wide, -most, most)) if saturate else wide
        return np.asarray(held.astype(element.dtype))
    if element == I1:
        return np.asarray(x.astype(np.float32) != 0) if x.dtype.kind == "V" else np.asarray(x != 0)
    if element in IN_BYTES:
        whole = np.trunc(x.astype(np.float64)).astype(np.int64) if x.dtype.kind not in "iub" else x.astype(np.int64)
        count, half = 1 << element.bits, (1 << element.bits) // 2 if element.kind == "signed" else 0
        return np.asarray(((whole + half) % count - half).astype(element.dtype))
    if x.dtype.kind not in "iub" and element.is_integer:
        return integers_of(x, element)
    return np.asarray((x.astype(np.float32) if x.dtype.kind == "V" else x).astype(element.dtype))


def integers_of(x: Array, element: ElementType) -> Array:
    """Return floats without their fraction, by way of 64 bits, clipped to their range."""
    wide = np.trunc(x.astype(np.float64))
    if element.bits == 64:
        return np.asarray(wide.astype(element.dtype))
    return np.asarray(np.nan_to_num(wide).clip(-(2.0**62), 2.0**62).astype(np.int64).astype(element.dtype))


def powers_of_two(x: Array, saturate: bool, round_mode: str) -> Array:
    """Return the powers of two of the specification's table: from 2^-127 to 2^127, without a zero and a sign."""
    wide = np.abs(x.astype(np.float32).astype(np.float64))
    least, most = 2.0**-127, 2.0**127
    held = np.clip(np.nan_to_num(wide, nan=1.0, posinf=most), least, most)
    half, power = np.frexp(held)  # the fraction is below 1
    above = half > 0.5 if round_mode == "up" else half >= 0.75
    code = power - 1 + 127 + (above if round_mode != "down" else 0)
    is_none = np.isnan(wide) if saturate else ~((wide >= least) & (wide <= most))
    return np.asarray(np.where(is_none, 255, code).astype(np.uint8).view(F8E8M0.dtype))


def cast(e: Emitter, x: Value, element: ElementType, saturate: bool = True, round_mode: str = "up") -> Value:
    """Return the same conversion in TOSA."""
    if x.tensor.element == element:
        return x
    x = opened(e, x)
    if element in NARROW:
        return narrow(e, x, element, saturate, round_mode)
    if element in EIGHT_BITS:
        if not saturate or not x.tensor.size:
            return e.cast(e.cast(x, F32), element)
        import ml_dtypes
        most = float(ml_dtypes.finfo(element.dtype).max)
        return e("cast", e("clamp", e.cast(x, F32), min_val=-most, max_val=most), to=element)
    if element in IN_BYTES:
        low = Term(e, e.cast(x, I32)) & (1 << element.bits) - 1
        half = 1 << (element.bits - 1)
        return (low if element.kind == "unsigned" else (low ^ half) - half).cast(IN_BYTES[element]).value
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
        return converted(x, element_of(self.to), bool(self.saturate), self.round_mode)

    def lower(self, e: Emitter, x: Value) -> Value:
        return cast(e, x, element_of(self.to), bool(self.saturate), checked_mode(self.round_mode))


def checked_mode(name: str) -> str:
    require(name in ("up", "down", "nearest"), f"round_mode {name} is not known", kind="attribute", help="up, down or nearest")
    return name


def strings_to(x: Array, element: ElementType) -> Array:
    """Return the numbers that strings spell."""
    return np.array([float(s) for s in x.reshape(-1)]).astype(element.dtype).reshape(x.shape)


@operator("CastLike")
class CastLike(Operator):
    saturate: int = 1
    round_mode: str = "up"

    def element(self, name: str) -> ElementType:
        """Return the element type of the second operand: 4 or 2 bits if the file declares it, because these are stored in
        bytes."""
        declared = self.operation.operands[1].type
        if isinstance(declared, TensorType) and declared.element in IN_BYTES:
            return declared.element
        if name not in BY_STORAGE:
            raise Problem(f"{name} has no place in TOSA", kind="unsupported")
        return BY_STORAGE[name]

    def reference(self, x: Array, like: Array) -> Array:
        return converted(x, self.element(like.dtype.name), bool(self.saturate), self.round_mode)

    def lower(self, e: Emitter, x: Value, like: Datum) -> Value:
        if not isinstance(like, Value):
            raise Problem("the type of strings is not one to compute with", kind="unsupported")
        return cast(e, x, self.element(like.tensor.element.storage), bool(self.saturate), checked_mode(self.round_mode))


@operator("BitCast")
class BitCast(Operator):
    """The same bits as another type of the same width. Bits of types below 8 bits are the lower ones of a byte."""
    to: int

    def reference(self, x: Array) -> Array:
        element = element_of(self.to)
        if not 1 < element.bits < 8:
            return np.asarray(np.ascontiguousarray(x).view(element.dtype)).reshape(x.shape)
        code = np.ascontiguousarray(x).view(np.uint8) % (1 << element.bits)
        if element.kind == "signed":
            code = code - ((code >> (element.bits - 1)).astype(np.int8) << element.bits)
            return np.asarray(code.astype(np.int8)).reshape(x.shape)
        return np.asarray(code.view(element.dtype)).reshape(x.shape)

    def lower(self, e: Emitter, x: Value) -> Value:
        own, element = x.tensor.element, element_of(self.to)
        if own == I1:
            x, own = e.cast(x, UI8), UI8
        if element == I1:  # a byte that is not 0 is true
            return e.cast(bitcast(e, x, UI8), I1)
        bits = self.width(own, element)
        require(bits == element.bits, f"{own} has {bits} bits, {element} has {element.bits}", kind="type",
                help="both must have as many")
        if element.bits >= 8:
            return bitcast(e, x, element)
        code = x if own.is_integer else seen_as(e, x, I8)
        if element.is_integer:
            return cast(e, code, element)
        return seen_as(e, (Term(e, code).cast(I32) & ((1 << bits) - 1)).cast(I8).value, element)

    def width(self, own: ElementType, element: ElementType) -> int:
        """Return the bits of the operand: for bytes, the declared number, or the needed number if the file declares none."""
        declared = self.operation.operands[0].type
        if isinstance(declared, TensorType) and declared.element in IN_BYTES:
            return declared.element.bits
        is_open = not isinstance(declared, TensorType) and own in IN_BYTES.values() and element.bits < 8
        return element.bits if is_open else own.bits
