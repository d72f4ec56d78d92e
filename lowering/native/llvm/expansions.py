"""The upper halves of 64-bit sums of products, which exact rescaling is made of, in LLVM IR.

Vectors on x86 are taken apart into even and odd lanes, as its instruction for products of 32 bits needs them; then the
upper halves lie where they belong, or one lane beside. Elsewhere 64-bit arithmetic says it, and instructions exist.
"""
from __future__ import annotations

import re

from ...loops.ir import Type
from ...target.target import Target
from .llvm_text import Arithmetic, Writer, spelled

SIGN = 1 << 31
NUMBER = re.compile(r"splat \(i(?:32|64) (-?\d+)\)")
"""A vector of one number."""


def multiply_high(writer: Writer, target: Target, type: Type, values: list[str], nudged: bool) -> str:
    """(x * y + z) >> 32, of `type`; with `nudged` of 2^31 less where x is negative."""
    if target.architecture == "x86" and type.lanes >= 4 and type.lanes % 2 == 0:
        return by_parity(writer, type.lanes, values, nudged)
    x, y, z = values
    a = Arithmetic(writer, type.lanes)
    product = a.op("mul", "i64", a.cast("sext", "i32", x, "i64"), a.cast("sext", "i32", y, "i64"))
    if nudged:
        z = a.op("sub", "i64", z, a.cast("zext", "i32", a.op("and", "i32", x, -SIGN), "i64"))
    upper = a.op("lshr", "i64", a.op("add", "i64", product, z), 32)
    return a.cast("trunc", "i64", upper, "i32")


def by_parity(writer: Writer, lanes: int, values: list[str], nudged: bool) -> str:
    """The products of even lanes, those of odd lanes, and their upper halves by turns."""
    x, y, z = values
    a, wide = Arithmetic(writer, lanes // 2), spelled("i64", lanes // 2)
    narrow = spelled("i32", lanes)
    factors = [Factor(a, v, wide, narrow) for v in (x, y)]
    halves = []
    for odd in (False, True):
        one, other = (f.lanes(odd) for f in factors)
        total = a.op("add", "i64", a.op("mul", "i64", one, other), every_other(writer, z, lanes, odd))
        if nudged:
            pairs = factors[0].pairs()
            code = a.op("lshr", "i64", pairs, 32) if odd else pairs
            total = a.op("sub", "i64", total, a.op("and", "i64", code, SIGN))
        halves.append(writer.put(f"bitcast {wide} {total} to {narrow}"))
    numbers = ", ".join(f"i32 {i}, i32 {lanes + i}" for i in range(1, lanes, 2))
    return writer.put(f"shufflevector {narrow} {halves[0]}, {narrow} {halves[1]}, <{lanes} x i32> <{numbers}>")


class Factor:
    """A vector of i32 whose even or odd lanes are wanted as i64. Those of one number are that number: LLVM would find it out,
    at a price that each kernel pays many times."""

    def __init__(self, arithmetic: Arithmetic, value: str, wide: str, narrow: str) -> None:
        self.arithmetic, self.value, self.wide, self.narrow = arithmetic, value, wide, narrow
        self.number = NUMBER.fullmatch(value)
        self._pairs = ""

    def pairs(self) -> str:
        """Two lanes at a time."""
        self._pairs = self._pairs or self.arithmetic.writer.put(f"bitcast {self.narrow} {self.value} to {self.wide}")
        return self._pairs

    def lanes(self, odd: bool) -> str:
        if self.number:
            return f"splat (i64 {(int(self.number[1]) + SIGN) % (2 * SIGN) - SIGN})"
        low = self.pairs() if odd else self.arithmetic.op("shl", "i64", self.pairs(), 32)
        return self.arithmetic.op("ashr", "i64", low, 32)


def every_other(writer: Writer, z: str, lanes: int, odd: bool) -> str:
    if NUMBER.fullmatch(z):
        return z
    t = spelled("i64", lanes)
    numbers = ", ".join(f"i32 {i}" for i in range(odd, lanes, 2))
    return writer.put(f"shufflevector {t} {z}, {t} poison, <{lanes // 2} x i32> <{numbers}>")
