"""RESCALE_IN_WORDS: the operator that RESCALE becomes (`rewrite/rescale_in_words.py`) for processors whose vectors have no
64-bit elements, but rounded upper halves of doubled products and rounding 32-bit shifts: Helium's VQRDMULH and VRSHL.

(x m + 2^30) >> 31, rounded and shifted by the remaining shift, equals x m plus 2^30 plus half a unit of the result, shifted at
once: DOUBLE_ROUND for nonnegative x. For negative x the nudge is -2^30: one less before the shift. SINGLE_ROUND is the upper
half of x m, rounded and shifted: the bits that it drops are below the half unit.
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
"""Number of bits that the upper half of a doubled product drops, and that of a product."""
HALF = 1 << 31
"""Half a unit of an upper half."""


class RescaleInWords(Rescale, name="tosaic.rescale_in_words"):
    """RESCALE with the same results, with constants for which 32 bits are enough."""

    def element(self, out: TensorType, x: Tensor, multiplier: Tensor, shift: Tensor, input_zp: Tensor, output_zp: Tensor
                ) -> Element:
        form = WordForm.of(self, x, multiplier, shift, output_zp)
        assert form is not None, "the rewrite has seen the same constants"
        return self.of_scaled(out, x, input_zp, form.scaled)


@dataclass(frozen=True, slots=True, eq=False)
class WordForm:
    """The form (x << ahead) times the factors, of which a product's upper half drops `dropped` bits, and a rounding shift the
    rest."""
    scaling: Scaling
    factors: ConstantFactors
    ahead: int
    dropped: int

    @staticmethod
    def of(op: Rescale, x: Operand, multiplier: Operand, shift: Operand, output_zp: Operand) -> WordForm | None:
        """Return the form of a RESCALE; None if a constant is unknown, the specification defines no result, or there is a
        better form or none."""
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
        """Return the scaled value, an int32."""
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
        if shift.min() > 0:  # the shifted number has room for a zero point
            return clamp(result + offset if offset else result, low, top)
        clipped = clamp(result, low - offset, top - offset)
        return clipped + offset if offset else clipped


def has_room(scaling: Scaling, ahead: int) -> bool:
    """True if operands, less a zero point, can be shifted by `ahead` bits."""
    return not ahead or max(map(abs, scaling.domain)) << ahead + 1 < 1 << 31
