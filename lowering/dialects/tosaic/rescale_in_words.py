"""RESCALE_IN_WORDS: what RESCALE becomes (`rewrite/rescale_in_words.py`) for processors whose vectors have no elements of 64
bits, but rounded upper halves of doubled products and rounding shifts of 32 bits: Helium's VQRDMULH and VRSHL.

(x m + 2^30) >> 31, and that rounded and shifted by what is left, is x m with 2^30 and with half a unit of the result, shifted
at once: DOUBLE_ROUND where x is not negative. Where it is, the nudge is -2^30: one less before the shift. SINGLE_ROUND is the
upper half of x m, rounded and shifted: what it leaves away is below the half unit.
"""
from __future__ import annotations

from ....runtime.records import dataclass
from ...elements.affine import Affine
from ...elements.expression import Apply, Const, Expr, apply, clamp
from ...elements.tensor import ConstantTable, Element, Tensor
from ...graph.operator import Operand
from ...graph.types import TensorType
from ..tosa.elementwise import tensor
from ..tosa.rescale import Rescale, as_integers, limits
from ..tosa.scaling import ConstantFactors, Scaling

DOUBLED, UPPER = 31, 32
"""Bits that a doubled product's upper half leaves away, and a product's."""
HALF = 1 << 31
"""Of the unit of an upper half."""


class RescaleInWords(Rescale, name="tosaic.rescale_in_words"):
    """RESCALE, the same number for number, with constants for which 32 bits are enough."""

    def element(self, out: TensorType, x: Tensor, multiplier: Tensor, shift: Tensor, input_zp: Tensor, output_zp: Tensor
                ) -> Element:
        form = WordForm.of(self, x, multiplier, shift, output_zp)
        assert form is not None, "the rewrite has seen the same constants"
        return self.of_scaled(out, x, input_zp, form.scaled)


@dataclass(frozen=True, slots=True, eq=False)
class WordForm:
    """(x << ahead) times the factors, of which `dropped` bits are left away by a product's upper half, and the rest by a
    rounding shift."""
    scaling: Scaling
    factors: ConstantFactors
    ahead: int
    dropped: int

    @staticmethod
    def of(op: Rescale, x: Operand, multiplier: Operand, shift: Operand, output_zp: Operand) -> WordForm | None:
        """None where a constant is not known, the specification defines no result, or there is a better way or none."""
        factors, source = op.factors(multiplier, shift), tensor(x).element
        if factors is None or output_zp.constant is None or op.to is None or source.bits > 32:
            return None
        if not factors.are_defined or factors.left_shift is not None:
            return None
        offset = int(as_integers(output_zp.constant, op.output_unsigned).reshape(-1)[0])
        scaling = Scaling(*limits(op.to, op.output_unsigned), offset, limits(source, op.input_unsigned))
        least, most = int(factors.shift.min()), int(factors.shift.max())
        if least == most <= DOUBLED and has_room(scaling, DOUBLED - most):  # no nudge, nothing to shift
            return WordForm(scaling, factors, DOUBLED - most, DOUBLED)
        if factors.is_double:
            return WordForm(scaling, factors, 0, DOUBLED) if least > DOUBLED else None
        if least == most == UPPER:
            return WordForm(scaling, factors, 0, UPPER)
        ahead = max(0, UPPER + 1 - least)
        return WordForm(scaling, factors, ahead, UPPER) if has_room(scaling, ahead) and most + ahead < 2 * UPPER else None

    def scaled(self, value: Expr, channel: Affine) -> Expr:
        """The scaled value, an int32."""
        shift = self.factors.shift + self.ahead - self.dropped
        x = value << self.ahead if self.ahead else value
        multiplier = ConstantTable(self.factors.multiplier, "int32")(channel)
        if self.dropped == DOUBLED:
            high: Expr = apply("rounded_product", x, multiplier)
            if shift.any() and self.scaling.is_nudged(self.factors):
                high = high + (value >> 31)
        else:
            high = Apply("multiply_high", (x, multiplier, Const(0 if shift.any() else HALF, "int64")), "int32")
        result = apply("rounded_shift", high, ConstantTable(-shift, "int32")(channel)) if shift.any() else high
        low, top, offset = self.scaling.low, self.scaling.high, self.scaling.offset
        if top - low > 0xFFFF:
            return result
        assert isinstance(offset, int)
        if shift.min() > 0:  # what is shifted has room for a zero point
            return clamp(result + offset if offset else result, low, top)
        clipped = clamp(result, low - offset, top - offset)
        return clipped + offset if offset else clipped


def has_room(scaling: Scaling, ahead: int) -> bool:
    """True if operands, less a zero point, can be shifted so far."""
    return not ahead or max(map(abs, scaling.domain)) << ahead + 1 < 1 << 31
