"""RESCALE_IN_FLOAT: the operator that RESCALE between 8-bit tensors becomes (`rewrite/rescale_in_float.py`) for processors that
compute float32, if that is right for each of the 256 values.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....runtime.records import dataclass
from ...elements.affine import Affine
from ...elements.expression import Expr, apply, cast, clamp
from ...elements.float_functions import ROUNDER, ROUNDER_BITS, SIGN
from ...elements.tensor import ConstantTable, Element, Tensor
from ...graph.operator import Operand
from ...graph.types import Array, TensorType
from ..tosa.elementwise import tensor
from ..tosa.rescale import Rescale, as_integers, limits
from ..tosa.scaling import NUDGE, ConstantFactors

FEW_BITS = 8
"""Maximum number of bits of operands and results: all their values can be tried."""


class RescaleInFloat(Rescale, name="tosaic.rescale_in_float"):
    """RESCALE with the same results, with constants for which float32 is enough."""

    def element(self, out: TensorType, x: Tensor, multiplier: Tensor, shift: Tensor, input_zp: Tensor, output_zp: Tensor
                ) -> Element:
        form = FloatForm.of(self, x, (multiplier, shift, input_zp, output_zp))
        assert form is not None, "the rewrite has seen the same constants"
        return self.of_scaled(out, x, input_zp, form.scaled)


@dataclass(frozen=True, slots=True, eq=False)
class FloatForm:
    """The form round(clip(value * scale + nudge)) + offset, in float32: the nudge has the sign of the value. Operands are in
    `domain` before their zero point is subtracted, results between `low` and `high`, the offset included."""
    factors: ConstantFactors
    domain: tuple[int, int]
    zero_point: int
    low: int
    high: int
    offset: int
    scale: ConstantTable
    nudge: ConstantTable

    @staticmethod
    def of(op: Rescale, x: Operand, constants: Sequence[Operand]) -> FloatForm | None:
        """Return the form of a RESCALE; None if a constant is unknown or a tensor has more than 8 bits. `constants` are
        multiplier, shift and zero points."""
        multiplier, shift, before, after = constants
        factors, source = op.factors(multiplier, shift), tensor(x).element
        if factors is None or before.constant is None or after.constant is None or op.to is None:
            return None
        if max(source.bits, op.to.bits) > FEW_BITS:
            return None
        zero_point, offset = (int(as_integers(constant, unsigned).reshape(-1)[0]) for constant, unsigned in (
            (before.constant, op.input_unsigned), (after.constant, op.output_unsigned)))
        powers = np.ldexp(1.0, -factors.shift)
        nudge = (np.where(op.is_double & (factors.shift > 31), NUDGE, 0) * powers).astype(np.float32)
        return FloatForm(factors, limits(source, op.input_unsigned), zero_point, *limits(op.to, op.output_unsigned), offset,
                         ConstantTable(factors.multiplier * powers, "float32"), ConstantTable(nudge.view(np.int32), "int32"))

    def scaled(self, value: Expr, channel: Affine) -> Expr:
        """Return the scaled value. Clipping the real number first keeps integers small."""
        real = clamp(self.real(value, channel), float(self.low - self.offset), float(self.high - self.offset))
        return cast(real + ROUNDER, "int32", bits=True) + (self.offset - ROUNDER_BITS)  # the integer is in the low bits

    def real(self, value: Expr, channel: Affine) -> Expr:
        """Return the scaled real number. Each rounding has an error of at most 2^-24 of the result."""
        real, scale = cast(value, "float32"), self.scale(channel)
        if not self.factors.is_double:
            return real * scale
        nudge = cast(self.nudge(channel) | (value & SIGN), "float32", bits=True)
        return apply("fma", real, scale, nudge)

    @property
    def margin(self) -> float:
        """Minimum distance from a half at which a float32 result determines the integer: the largest result that is not clipped
        times 4 * 2^-24, which covers the roundings of `real`: three, or four if the target has no fma."""
        return (max(abs(self.low - self.offset), abs(self.high - self.offset)) + 1) * 2.0**-22

    @property
    def is_right(self) -> bool:
        """True if the form gives the specification's result for each value, and the specification defines it."""
        if not self.factors.are_defined:
            return False
        least, greatest = self.domain
        values = np.arange(least, greatest + 1)[:, None] - self.zero_point
        clipped = np.clip(self.exact(values), self.low - self.offset, self.high - self.offset)
        return bool((np.abs(clipped - np.rint(clipped)) < 0.5 - 2 * self.margin).all())

    def exact(self, values: Array) -> Array:
        """Return scaled values before rounding, one row for each, one column for each channel."""
        factors = self.factors
        nudge = np.where(factors.is_double & (factors.shift > 31), NUDGE, 0) * np.where(values < 0, -1, 1)
        return np.asarray((values * factors.multiplier + nudge) * np.ldexp(1.0, -factors.shift))
