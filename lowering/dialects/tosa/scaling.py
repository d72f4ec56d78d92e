"""Multiplication of an integer by a fraction multiplier / 2**shift, exactly and in integers, as an expression of RESCALE.

Three methods give the same result: a shift if the multiplier is a power of two; the upper half of a product if the shifts are
constants that are large enough; else 64-bit integers. The upper half is the primitive `multiply_high`, which
`native.llvm.expansions` lowers to vector instructions. Processors that compute floats have a fourth method, an operator of its
own (`tosaic.rescale_in_float`).
"""
from __future__ import annotations

from typing import Protocol

import numpy as np

from ....runtime.records import dataclass
from ...elements.affine import Affine
from ...elements.expression import Apply, Const, Expr, apply, cast, clamp, select
from ...elements.tensor import ConstantTable, Tensor
from ...graph.types import Array

NUDGE = 1 << 30
"""Number that DOUBLE_ROUND adds to the product, away from 0, if the shift is above 31."""


class Factors(Protocol):
    """Multiplier and shift of each channel."""

    def product(self, value: Expr, channel: Affine) -> Expr:
        """Return floor((value * multiplier + rounding) / 2**shift), an int64."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadedFactors:
    """Factors that are known only at run time."""
    multiplier: Tensor
    shift: Tensor
    is_double: bool

    def product(self, value: Expr, channel: Affine) -> Expr:
        factor, amount = (cast(x.broadcast((channel,)), "int64") for x in (self.multiplier, self.shift))
        amount = amount & 63
        rounding = apply("lshr", Const(1, "int64") << amount, 1)
        if self.is_double:
            signed = select(value < 0, Const(-NUDGE, "int64"), Const(NUDGE, "int64"))
            rounding = rounding + select(amount > 31, signed, Const(0, "int64"))
        return cast(value, "int64") * factor + rounding >> amount


@dataclass(frozen=True, slots=True, eq=False)
class ConstantFactors:
    """Factors known at compile time: vectors with one entry per channel, or one for all."""
    multiplier: Array
    shift: Array
    up: Array
    """Addend that rounds nonnegative values."""
    is_double: bool
    tables: dict[str, ConstantTable]

    @staticmethod
    def of(multiplier: Array, shift: Array, is_double: bool) -> ConstantFactors:
        """Return the factors of these constants, with the shift modulo 64."""
        factor, amount = multiplier.astype(np.int64).reshape(-1), shift.astype(np.int64).reshape(-1) % 64
        half = np.where(amount > 0, np.left_shift(1, np.maximum(amount, 1) - 1), 0)
        nudge = np.where(is_double & (amount > 31), NUDGE, 0)
        tables = {"multiplier": ConstantTable(factor, "int64"), "shift": ConstantTable(amount, "int64"),
                  "up": ConstantTable(half + nudge, "int64"), "down": ConstantTable(half - nudge, "int64")}
        return ConstantFactors(factor, amount, half + nudge, is_double and bool(nudge.any()), tables)

    @property
    def uniform(self) -> tuple[int, int] | None:
        """Multiplier and shift if all channels have the same, else None."""
        if (self.multiplier == self.multiplier[0]).all() and (self.shift == self.shift[0]).all():
            return int(self.multiplier[0]), int(self.shift[0])
        return None

    @property
    def left_shift(self) -> int | None:
        """n if the fraction of all channels is 2**n, without a nudge; else None."""
        if self.uniform is None or self.is_double:
            return None
        multiplier, shift = self.uniform
        if multiplier <= 0 or multiplier & (multiplier - 1) or shift - multiplier.bit_length() >= 31:
            return None
        return multiplier.bit_length() - 1 - shift

    @property
    def are_defined(self) -> bool:
        """True if the specification defines the results for these factors."""
        return bool((self.multiplier >= 0).all() and (self.shift >= 2).all() and (self.shift <= 62).all())

    def product(self, value: Expr, channel: Affine) -> Expr:
        rounding = self.tables["up"](channel)
        if self.is_double:
            rounding = select(value < 0, self.tables["down"](channel), rounding)
        product = cast(value, "int64") * self.tables["multiplier"](channel) + rounding
        return product >> self.tables["shift"](channel)

    def for_upper_half(self, preshift: int, offset: int) -> tuple[ConstantTable, ConstantTable, ConstantTable]:
        """Return the multiplier, the rounding addend including the offset, and the remaining shift, for products with an
        additional factor of 2**preshift."""
        shift = self.shift + preshift
        addend = np.left_shift(self.up, preshift) + np.left_shift(offset, shift)
        return ConstantTable(self.multiplier, "int32"), ConstantTable(addend, "int64"), ConstantTable(shift - 32, "int32")


@dataclass(frozen=True, slots=True)
class Scaling:
    """A scaling with results low <= result <= high, `offset` included, and operands in `domain` before their zero point is
    subtracted."""
    low: int
    high: int
    offset: int | Expr
    domain: tuple[int, int]

    def scaled(self, value: Expr, factors: ConstantFactors | LoadedFactors, channel: Affine) -> Expr:
        """Return the scaled value, an int32; `value` is an int32 or int64, without its zero point."""
        if not isinstance(factors, ConstantFactors) or value.dtype == "int64" or not factors.are_defined:
            return self.exact(value, factors, channel)
        if (left := factors.left_shift) is not None:
            return self.shifted(value, left)
        upper = self.by_upper_half(value, factors, channel)
        return self.exact(value, factors, channel) if upper is None else upper

    def by_upper_half(self, value: Expr, factors: ConstantFactors, channel: Affine) -> Expr | None:
        """Return the upper half of product and rounding, shifted by the remaining shift, if all shifts are 32 or more, or
        become so by shifting operands that have spare bits; else None. The offset is part of the rounding if there is room."""
        preshift = max(0, 32 - int(factors.shift.min()))
        last = int(factors.shift.max()) + preshift
        room = not preshift or max(map(abs, self.domain)) << preshift + 1 < 1 << 31
        if not room or last > 62 or (self.is_nudged(factors) and not (factors.shift > 31).all()):
            return None
        is_short = self.high - self.low <= 0xFFFF
        folded = self.offset if is_short and isinstance(self.offset, int) and abs(self.offset) << last < 1 << 60 else 0
        multiplier, addend, shift = factors.for_upper_half(preshift, folded)
        primitive = "multiply_high_nudged" if self.is_nudged(factors) else "multiply_high"
        x = value << preshift if preshift else value
        high = Apply(primitive, (x, multiplier(channel), addend(channel)), "int32")
        result = high >> shift(channel) if last > 32 else high
        if not is_short:
            return result
        if folded or (isinstance(self.offset, int) and not self.offset):
            return clamp(result, self.low, self.high)
        if isinstance(self.offset, int):
            return clamp(result, self.low - self.offset, self.high - self.offset) + self.offset
        return clamp(clamp(result, -1 << 30, 1 << 30) + self.offset, self.low, self.high)

    def is_nudged(self, factors: ConstantFactors) -> bool:
        """True if the nudge's sign matters: not for results that are clipped below zero."""
        return factors.is_double and not (isinstance(self.offset, int) and self.low >= self.offset)

    def exact(self, value: Expr, factors: Factors, channel: Affine) -> Expr:
        """Return the scaled value computed in int64. Results of 32 bits are not clipped: those that the specification defines
        fit."""
        product = factors.product(value, channel)
        if self.high - self.low > 0xFFFF:
            return cast(product, "int32")
        if isinstance(self.offset, int):
            return cast(clamp(product, self.low - self.offset, self.high - self.offset), "int32") + self.offset
        return cast(clamp(product + cast(self.offset, "int64"), self.low, self.high), "int32")

    def shifted(self, value: Expr, left: int) -> Expr:
        """Return the value times 2**left, rounded."""
        if left > 0:
            result = (value if self.high - self.low > 0xFFFF else clamp(value, -1 << 30 - left, 1 << 30 - left)) << left
        elif left < 0:
            result = (value >> -left) + (value >> -left - 1 & 1)
        else:
            result = value
        if self.high - self.low > 0xFFFF:
            return result
        if isinstance(self.offset, int):
            return clamp(result, self.low - self.offset, self.high - self.offset) + self.offset
        return clamp(clamp(result, -1 << 30, 1 << 30) + self.offset, self.low, self.high)
