"""RESCALE: an integer times a fraction, between quantized types. TOSA 1.0, section 2.12 and its scaling functions.

This module has the type rules and the reference; `scaling` has the computation.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....runtime.errors import require
from ...elements.affine import Affine
from ...elements.expression import Expr, cast
from ...elements.tensor import Element, Tensor
from ...graph.operator import Op, Operand, attribute, from_result
from ...graph.types import I8, I16, I32, I48, UI8, UI16, Array, ElementType, TensorType
from .elementwise import names, tensor
from .operands import ranked
from .scaling import ConstantFactors, LoadedFactors, Scaling

ROUNDING_MODES = ("SINGLE_ROUND", "DOUBLE_ROUND", "INEXACT_ROUND")
SOURCES, TARGETS = (I8, I16, I32, I48, UI8, UI16), (I8, I16, I32, UI8, UI16)


class Rescale(Op, name="tosa.rescale"):
    """(x - input_zp) * multiplier / 2**shift, rounded half up, + output_zp, clipped to the type of the result.

    DOUBLE_ROUND moves the product by 2**30 away from 0 before a shift of more than 31. INEXACT_ROUND is computed as
    SINGLE_ROUND. Beyond the range that the specification defines, i32 results wrap, others are clipped; shifts are
    taken modulo 64. A type of 8 or 16 bits is read as unsigned where the attributes say so; ui8 and ui16 must be.
    """
    scale32: bool = attribute("bool")
    rounding_mode: str = attribute("rounding_mode")
    per_channel: bool = attribute("bool")
    input_unsigned: bool = attribute("bool")
    output_unsigned: bool = attribute("bool")
    to: ElementType | None = from_result()

    def infer(self, x: Operand, multiplier: Operand, shift: Operand, input_zp: Operand, output_zp: Operand
              ) -> TensorType:
        found = tensor(x)
        require(self.to is not None, f"{self.name} needs the element type of its result")
        assert self.to is not None
        self.check_types(found.element, self.to)
        self.check_modes(found)
        channels = found.shape[-1] if self.per_channel and found.shape else None if self.per_channel else 1
        factor = I32 if self.scale32 else I16
        for operand, what, element in ((multiplier, "multiplier", factor), (shift, "shift", I8)):
            (length,) = ranked(operand, 1, f"the {what}")
            require(tensor(operand).element == element, f"the {what} must be {element}, it is {operand.type}")
            require(None in (length, channels) or length == channels,
                    f"the {what} has {length} numbers, {channels} are needed", kind="shape")
        check_zero_point(input_zp, found.element, self.input_unsigned, "input_zp")
        check_zero_point(output_zp, self.to, self.output_unsigned, "output_zp")
        return found.with_element(self.to)

    def check_types(self, source: ElementType, target: ElementType) -> None:
        require(source in SOURCES, f"{self.name} does not take {source}", help=f"it takes {names(SOURCES)}")
        require(target in TARGETS, f"{self.name} does not make {target}", help=f"it makes {names(TARGETS)}")
        require(not (self.input_unsigned and self.output_unsigned), "input and output cannot both be unsigned",
                kind="attribute")
        for side, element, unsigned in (("input", source, self.input_unsigned),
                                        ("output", target, self.output_unsigned)):
            require(unsigned or element.kind == "signed", f"{side}_unsigned must be true, the {side} is {element}",
                    kind="attribute")
            require(not unsigned or max(source.bits, target.bits) <= 16,
                    f"{side}_unsigned cannot be true from {source} to {target}: both must have 8 or 16 bits",
                    kind="attribute")

    def check_modes(self, x: TensorType) -> None:
        require(self.rounding_mode in ROUNDING_MODES, f"rounding_mode {self.rounding_mode!r} is not known",
                help=f"it is one of {', '.join(ROUNDING_MODES)}", kind="attribute")
        require(not self.scale32 or x.element != I48, "i48 has no room for scale32, a multiplier of 32 bits",
                kind="attribute")
        require(self.scale32 or self.rounding_mode != "DOUBLE_ROUND", "DOUBLE_ROUND needs scale32", kind="attribute")
        require(not self.per_channel or x.shape != (), "per_channel needs a last axis, the input has rank 0",
                kind="shape")

    def reference(self, x: Array, multiplier: Array, shift: Array, input_zp: Array, output_zp: Array) -> Array:
        assert self.to is not None
        value = as_integers(x, self.input_unsigned) - as_integers(input_zp, self.input_unsigned).reshape(())
        amount = shift.astype(np.int64) % 64
        half = np.where(amount > 0, np.left_shift(1, np.maximum(amount, 1) - 1), 0)
        product = value * multiplier.astype(np.int64) + half
        if self.rounding_mode == "DOUBLE_ROUND":
            product = product + np.where(amount > 31, np.where(value >= 0, 1 << 30, -1 << 30), 0)
        result = np.right_shift(product, amount)
        if self.to == I32:
            return np.asarray(result.astype(np.int32)).reshape(x.shape)
        low, high = limits(self.to, self.output_unsigned)
        result = np.clip(result + as_integers(output_zp, self.output_unsigned).reshape(()), low, high)
        return np.asarray(result.astype(self.to.dtype)).reshape(x.shape)

    def element(self, out: TensorType, x: Tensor, multiplier: Tensor, shift: Tensor, input_zp: Tensor, output_zp: Tensor
                ) -> Element:
        low, high = limits(out.element, self.output_unsigned)
        offset = zero_point(output_zp, out.element, self.output_unsigned)
        scaling = Scaling(low, high, offset, limits(x.type.element, self.input_unsigned))
        factors = self.factors(multiplier, shift) or LoadedFactors(multiplier, shift, self.is_double)
        return self.of_scaled(out, x, input_zp, lambda value, channel: scaling.scaled(value, factors, channel))

    @property
    def is_double(self) -> bool:
        return self.rounding_mode == "DOUBLE_ROUND"

    def factors(self, multiplier: Operand, shift: Operand) -> ConstantFactors | None:
        """Return the factors if they are known at compile time, else None."""
        if multiplier.constant is None or shift.constant is None:
            return None
        return ConstantFactors.of(multiplier.constant, shift.constant, self.is_double)

    def of_scaled(self, out: TensorType, x: Tensor, input_zp: Tensor, scaled: Callable[[Expr, Affine], Expr]) -> Element:
        """Return the element computed by `scaled` from x without its zero point, an int32 or int64, and the channel."""
        before = zero_point(input_zp, x.type.element, self.input_unsigned)

        def element(*index: Affine) -> Expr:
            value = zero_extended(x[index]) if self.input_unsigned else x[index]
            value = value if value.dtype == "int64" else cast(value, "int32")
            if not (isinstance(before, int) and before == 0):
                value = value - before
            channel = index[-1] if self.per_channel else Affine()
            return cast(scaled(value, channel), out.element.storage)

        return element


def limits(element: ElementType, unsigned: bool) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type, read as signed or unsigned."""
    return (0, (1 << element.bits) - 1) if unsigned else (element.minimum, element.maximum)


def has_zero_point(element: ElementType, unsigned: bool) -> bool:
    return element.bits == 8 or (element.bits == 16 and unsigned)


def as_integers(x: Array, unsigned: bool) -> Array:
    """Return x in int64, with its bits read as unsigned or not."""
    return (x.view(f"u{x.dtype.itemsize}") if unsigned else x).astype(np.int64)


def zero_extended(x: Expr) -> Expr:
    """Return an integer of 8 or 16 bits as a nonnegative int32."""
    return cast(x, "int32") & (0xFF if x.dtype in ("int8", "uint8") else 0xFFFF)


def check_zero_point(operand: Operand, element: ElementType, unsigned: bool, what: str) -> None:
    """Check that a zero point is one number of the type that it shifts: any for 8 bits, 0 or 32768 for unsigned 16 bits, else
    0."""
    found = tensor(operand)
    require(found.element.bits == element.bits and found.element.is_integer, f"{what} must be {element}, it is {found}")
    (length,) = ranked(operand, 1, what)
    require(length in (1, None), f"{what} must have one element, it is {found}", kind="shape")
    if operand.constant is None or element.bits == 8:
        return
    value = int(as_integers(operand.constant, unsigned).reshape(-1)[0])
    allowed = (0, 32768) if has_zero_point(element, unsigned) else (0,)
    require(value in allowed, f"{what} must be {' or '.join(map(str, allowed))} for {element}, it is {value}",
            kind="attribute")


def zero_point(operand: Tensor, element: ElementType, unsigned: bool) -> int | Expr:
    """Return a zero point as a number, or as an int32 expression if it is unknown."""
    if not has_zero_point(element, unsigned):
        return 0
    if operand.constant is not None:
        return int(as_integers(operand.constant, unsigned).reshape(-1)[0])
    return zero_extended(operand.scalar()) if unsigned else cast(operand.scalar(), "int32")
