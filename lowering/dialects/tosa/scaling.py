"""How an integer is multiplied by a fraction multiplier / 2**shift, exactly, as an expression; RESCALE and the integer
average pool use it.

Four ways give the same: a shift where the multiplier is a power of two; float32, where that is right for each of a few
values; the upper half of a product, where the shifts are constants that are large enough; else 64-bit integers. The upper
half is the primitive `multiply_high`, of which `native.llvm.expansions` makes vector instructions.
"""
from __future__ import annotations

from typing import Protocol

import numpy as np

from ....runtime.records import dataclass
from ...elements.affine import Affine
from ...elements.expression import Apply, Const, Expr, apply, cast, clamp, select
from ...elements.float_functions import ROUNDER, ROUNDER_BITS, SIGN
from ...elements.tensor import ConstantTable, Tensor
from ...graph.types import Array

NUDGE = 1 << 30
"""What DOUBLE_ROUND adds to the product, away from 0, where the shift is above 31."""


class Factors(Protocol):
    """Multiplier and shift of each channel."""

    def product(self, value: Expr, channel: Affine) -> Expr:
        """floor((value * multiplier + rounding) / 2**shift), an int64."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadedFactors:
    """Factors that only a run knows."""
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
    """Factors known when compiling: vectors with one entry per channel, or one for all."""
    multiplier: Array
    shift: Array
    up: Array
    """What rounds values that are not negative."""
    is_double: bool
    tables: dict[str, ConstantTable]

    @staticmethod
    def of(multiplier: Array, shift: Array, is_double: bool) -> ConstantFactors:
        """The shift is taken modulo 64."""
        factor, amount = multiplier.astype(np.int64).reshape(-1), shift.astype(np.int64).reshape(-1) % 64
        half = np.where(amount > 0, np.left_shift(1, np.maximum(amount, 1) - 1), 0)
        nudge = np.where(is_double & (amount > 31), NUDGE, 0)
        powers = np.ldexp(1.0, -amount)
        tables = {"multiplier": ConstantTable(factor, "int64"), "shift": ConstantTable(amount, "int64"),
                  "up": ConstantTable(half + nudge, "int64"), "down": ConstantTable(half - nudge, "int64"),
                  "scale": ConstantTable(factor * powers, "float32"),
                  "nudge": ConstantTable((nudge * powers).astype(np.float32).view(np.int32), "int32")}
        return ConstantFactors(factor, amount, half + nudge, is_double and bool(nudge.any()), tables)

    @property
    def uniform(self) -> tuple[int, int] | None:
        """Multiplier and shift where all channels have the same."""
        if (self.multiplier == self.multiplier[0]).all() and (self.shift == self.shift[0]).all():
            return int(self.multiplier[0]), int(self.shift[0])
        return None

    @property
    def are_defined(self) -> bool:
        """Whether the specification defines what they do."""
        return bool((self.multiplier >= 0).all() and (self.shift >= 2).all() and (self.shift <= 62).all())

    def product(self, value: Expr, channel: Affine) -> Expr:
        rounding = self.tables["up"](channel)
        if self.is_double:
            rounding = select(value < 0, self.tables["down"](channel), rounding)
        product = cast(value, "int64") * self.tables["multiplier"](channel) + rounding
        return product >> self.tables["shift"](channel)

    def for_upper_half(self, preshift: int, offset: int) -> tuple[ConstantTable, ConstantTable, ConstantTable]:
        """Multiplier, rounding with the offset, and what is left to shift, of products that have 2**ahead in them."""
        shift = self.shift + preshift
        addend = np.left_shift(self.up, preshift) + np.left_shift(offset, shift)
        return ConstantTable(self.multiplier, "int32"), ConstantTable(addend, "int64"), ConstantTable(shift - 32, "int32")

    def as_float(self, value: Expr, channel: Affine) -> Expr:
        """value * scale + nudge in float32: each rounding is off by at most 2^-24 of the result."""
        real, scale = cast(value, "float32"), self.tables["scale"](channel)
        if not self.is_double:
            return real * scale
        nudge = cast(self.tables["nudge"](channel) | (value & SIGN), "float32", bits=True)
        return apply("fma", real, scale, nudge)


@dataclass(frozen=True, slots=True)
class Scaling:
    """Results are low <= result <= high, `offset` included; operands lie within `domain` before their zero point."""
    low: int
    high: int
    offset: int | Expr
    domain: tuple[int, int]

    def scaled(self, value: Expr, factors: ConstantFactors | LoadedFactors, channel: Affine,
               zero_point: int | Expr = 0) -> Expr:
        """The scaled value, an int32; `value` is an int32 or int64, without its zero point."""
        if not isinstance(factors, ConstantFactors) or value.dtype == "int64" or not factors.are_defined:
            return self.exact(value, factors, channel)
        by_shift = self.by_shift(value, factors)
        if by_shift is not None:
            return by_shift
        few = max(self.domain[1] - self.domain[0], self.high - self.low) <= 0xFF
        if few and isinstance(zero_point, int) and isinstance(self.offset, int) and self.is_always_valid(factors, zero_point):
            return self.in_float(value, factors, channel)
        upper = self.by_upper_half(value, factors, channel)
        return self.exact(value, factors, channel) if upper is None else upper

    def by_upper_half(self, value: Expr, factors: ConstantFactors, channel: Affine) -> Expr | None:
        """The upper half of product and rounding, shifted by what is left: where all shifts are 32 or more, or become it by
        shifting operands that have the bits to spare. The offset goes into the rounding where there is room."""
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
        """Whether the nudge's sign matters: not for results that are clipped below zero."""
        return factors.is_double and not (isinstance(self.offset, int) and self.low >= self.offset)

    def exact(self, value: Expr, factors: Factors, channel: Affine) -> Expr:
        """In int64. Results of 32 bits are not clipped: what the specification defines fits."""
        product = factors.product(value, channel)
        if self.high - self.low > 0xFFFF:
            return cast(product, "int32")
        if isinstance(self.offset, int):
            return cast(clamp(product, self.low - self.offset, self.high - self.offset), "int32") + self.offset
        return cast(clamp(product + cast(self.offset, "int64"), self.low, self.high), "int32")

    def by_shift(self, value: Expr, factors: ConstantFactors) -> Expr | None:
        """The value shifted, where all channels have one power of two for a multiplier and no nudge."""
        if factors.uniform is None or factors.is_double:
            return None
        multiplier, shift = factors.uniform
        if multiplier <= 0 or multiplier & (multiplier - 1) or shift - multiplier.bit_length() >= 31:
            return None
        left = multiplier.bit_length() - 1 - shift
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

    @property
    def margin(self) -> float:
        """How near to a half a float32 result must not be to tell the integer: the largest result that is not clipped
        times 4 * 2^-24, which covers the roundings of `as_float`: three, or four where the target has no fma."""
        assert isinstance(self.offset, int)
        return (max(abs(self.low - self.offset), abs(self.high - self.offset)) + 1) * 2.0**-22

    def in_float(self, value: Expr, factors: ConstantFactors, channel: Affine) -> Expr:
        """In float32. Clipping the real number first keeps integers small."""
        assert isinstance(self.offset, int)
        real = clamp(factors.as_float(value, channel), float(self.low - self.offset), float(self.high - self.offset))
        return cast(real + ROUNDER, "int32", bits=True) + (self.offset - ROUNDER_BITS)  # the integer is in the low bits

    def is_always_valid(self, factors: ConstantFactors, zero_point: int) -> bool:
        """Whether float32 is right for every value of a small domain."""
        assert isinstance(self.offset, int)
        least, greatest = self.domain
        values = np.arange(least, greatest + 1)[:, None] - zero_point
        nudge = np.where(factors.is_double & (factors.shift > 31), NUDGE, 0) * np.where(values < 0, -1, 1)
        exact = (values * factors.multiplier + nudge) * np.ldexp(1.0, -factors.shift)
        clipped = np.clip(exact, self.low - self.offset, self.high - self.offset)
        return bool((np.abs(clipped - np.rint(clipped)) < 0.5 - 2 * self.margin).all())

