"""RESCALE_OF_SUMS: the operator that RESCALE of sums of products becomes (`rewrite/rescale_of_sums.py`) for processors that
multiply even words of vectors: it needs no 64-bit additions.

floor((x m + a) / 2^32) is floor((x + b) m / 2^32) + d, if b m is a less 2^32 d. RESCALE's addend a is a multiple of 2^30, so
that b is a multiple of 2^30 / 2^n if m is a multiple of 2^n, and no further than 2^30 from 0, or it is 2^31. The sums start
from b, besides their bias, where it costs nothing, and d is added to 32 bits. DOUBLE_ROUND of negative sums has another a: this
form is only for sums that are clipped below zero, as two numbers for b and for d are slower than two 64-bit sums. Measured.
"""
from __future__ import annotations

import numpy as np

from ....runtime.records import dataclass
from ...elements.affine import Affine
from ...elements.expression import Apply, Const, Expr, clamp
from ...elements.tensor import ConstantTable, Element, Tensor
from ...graph.operator import Operand
from ...graph.types import I8, Array, TensorType
from ..tosa.rescale import Rescale

ROOM = 1 << 30
"""Bound of sums (less than it) and of their addends (at most it), so that 32 bits hold both."""
WORD_BITS, MAX_SHIFT = 32, 50
"""Number of bits that a product's upper half drops; a zero point of 8 bits, shifted by the second, has room in 64 bits."""


class RescaleOfSums(Rescale, name="tosaic.rescale_of_sums"):
    """RESCALE to 8 bits with the same results, of sums that are less than 2^30 from 0."""

    def element(self, out: TensorType, x: Tensor, multiplier: Tensor, shift: Tensor, input_zp: Tensor, output_zp: Tensor
                ) -> Element:
        form = SumForm.of(self, multiplier, shift, output_zp)
        assert form is not None, "the rewrite has seen the same constants"
        return self.of_scaled(out, x, input_zp, form.scaled)


@dataclass(frozen=True, slots=True, eq=False)
class SumForm:
    """The form ((x + before) * multiplier >> 32) + after >> shift, clipped."""
    before: Array
    multiplier: Array
    after: Array
    shift: Array

    @staticmethod
    def of(op: Rescale, multiplier: Operand, shift: Operand, output_zp: Operand) -> SumForm | None:
        """Return the form of a RESCALE; None if a constant is unknown, the specification defines no result, or there is no such
        form or a better one."""
        factors = op.factors(multiplier, shift)
        if factors is None or output_zp.constant is None or op.to != I8:
            return None
        if not factors.are_defined or factors.left_shift is not None or (
                factors.shift.min() < WORD_BITS or factors.shift.max() > MAX_SHIFT):
            return None
        offset = int(output_zp.constant.reshape(-1)[0])
        if factors.is_double and I8.minimum < offset:  # negative sums are not clipped
            return None
        addend = factors.up + np.left_shift(offset, factors.shift)
        before = added_before(addend, factors.multiplier)
        if before is None:
            return None
        after = addend - before * factors.multiplier >> WORD_BITS
        return SumForm(before, factors.multiplier, after, factors.shift - WORD_BITS)

    def scaled(self, value: Expr, channel: Affine) -> Expr:
        """Return the scaled value, an int32."""
        def table(values: Array) -> Expr:
            return ConstantTable(values, "int32")(channel)

        x = value + table(self.before) if self.before.any() else value
        high = Apply("multiply_high", (x, table(self.multiplier), Const(0, "int64")), "int32") + table(self.after)
        return clamp(high >> table(self.shift) if self.shift.any() else high, I8.minimum, I8.maximum)


def added_before(addend: Array, multiplier: Array) -> Array | None:
    """Return b of each channel, for which b * multiplier is the addend in the lower 32 bits; None if there is none, or no
    room."""
    power = multiplier & -multiplier
    if not power.all() or (addend % power).any():
        return None
    odd = multiplier // power
    inverse = odd
    for _ in range(4):  # right in the lower 3 bits, then in twice as many each time
        inverse = inverse * (2 - odd * inverse)
    size = (1 << WORD_BITS) // power
    b = addend // power % size * (inverse % size) % size
    b = np.where(b > size // 2, b - size, b)
    return b if np.abs(b).max() <= ROOM else None
