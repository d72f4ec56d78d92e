"""How an integer is multiplied by a fraction multiplier / 2**shift, exactly, as an expression; RESCALE and the integer
average pool use it.

Three ways give the same: a shift where the multiplier is a power of two; float32, where that shows that its own errors
do not matter (`Likely`); else 64-bit integers.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...elements.affine import Affine
from ...elements.expression import Const, Expr, Likely, apply, cast, clamp, select
from ...elements.functions import ROUNDER, ROUNDER_BITS, SIGN
from ...elements.tensor import Table, Tensor
from ...graph.types import Array

NUDGE = 1 << 30
"""What DOUBLE_ROUND adds to the product, away from 0, where the shift is above 31."""


class Factors(Protocol):
    """Multiplier and shift of each channel."""

    def product(self, value: Expr, channel: Affine) -> Expr:
        """floor((value * multiplier + rounding) / 2**shift), an int64."""


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
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
class Constants:
    """Factors known when compiling: vectors with one entry per channel, or one for all."""
    multiplier: Array
    shift: Array
    is_double: bool
    tables: dict[str, Table]

    @staticmethod
    def of(multiplier: Array, shift: Array, is_double: bool) -> Constants:
        """The shift is taken modulo 64."""
        factor, amount = multiplier.astype(np.int64).reshape(-1), shift.astype(np.int64).reshape(-1) % 64
        half = np.where(amount > 0, np.left_shift(1, np.maximum(amount, 1) - 1), 0)
        nudge = np.where(is_double & (amount > 31), NUDGE, 0)
        powers = np.ldexp(1.0, -amount)
        tables = {"multiplier": Table(factor, "int64"), "shift": Table(amount, "int64"),
                  "up": Table(half + nudge, "int64"), "down": Table(half - nudge, "int64"),
                  "scale": Table(factor * powers, "float32"),
                  "nudge": Table((nudge * powers).astype(np.float32).view(np.int32), "int32")}
        return Constants(factor, amount, is_double and bool(nudge.any()), tables)

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

    def scaled(self, value: Expr, factors: Constants | Loaded, channel: Affine, zero_point: int | Expr = 0) -> Expr:
        """The scaled value, an int32; `value` is an int32 or int64, without its zero point."""
        if not isinstance(factors, Constants) or value.dtype == "int64" or not factors.are_defined:
            return self.exact(value, factors, channel)
        by_shift = self.by_shift(value, factors)
        if by_shift is not None:
            return by_shift
        if self.high - self.low > 0xFF or not isinstance(self.offset, int):
            return self.exact(value, factors, channel)
        least, greatest = self.domain
        if greatest - least > 0xFF:
            valid, fast = self.in_float(value, factors, channel)
            return Likely(valid, fast, self.exact(value, factors, channel))
        if isinstance(zero_point, int) and self.is_always_valid(factors, zero_point):
            return self.in_float(value, factors, channel)[1]
        return self.exact(value, factors, channel)

    def exact(self, value: Expr, factors: Factors, channel: Affine) -> Expr:
        """In int64. Results of 32 bits are not clipped: what the specification defines fits."""
        product = factors.product(value, channel)
        if self.high - self.low > 0xFFFF:
            return cast(product, "int32")
        if isinstance(self.offset, int):
            return cast(clamp(product, self.low - self.offset, self.high - self.offset), "int32") + self.offset
        return cast(clamp(product + cast(self.offset, "int64"), self.low, self.high), "int32")

    def by_shift(self, value: Expr, factors: Constants) -> Expr | None:
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

    def in_float(self, value: Expr, factors: Constants, channel: Affine) -> tuple[Expr, Expr]:
        """(whether it is right for sure, the result). Clipping the real number first keeps integers small, and a
        clipped one is an integer, far from a half."""
        assert isinstance(self.offset, int)
        real = clamp(factors.as_float(value, channel), float(self.low - self.offset), float(self.high - self.offset))
        rounded = real + ROUNDER  # the integer is in the low bits
        distance = apply("abs", real - (rounded - ROUNDER))
        return distance < 0.5 - self.margin, cast(rounded, "int32", bits=True) + (self.offset - ROUNDER_BITS)

    def is_always_valid(self, factors: Constants, zero_point: int) -> bool:
        """Whether float32 is right for every value of a small domain."""
        assert isinstance(self.offset, int)
        least, greatest = self.domain
        values = np.arange(least, greatest + 1)[:, None] - zero_point
        nudge = np.where(factors.is_double & (factors.shift > 31), NUDGE, 0) * np.where(values < 0, -1, 1)
        exact = (values * factors.multiplier + nudge) * np.ldexp(1.0, -factors.shift)
        clipped = np.clip(exact, self.low - self.offset, self.high - self.offset)
        return bool((np.abs(clipped - np.rint(clipped)) < 0.5 - 2 * self.margin).all())

