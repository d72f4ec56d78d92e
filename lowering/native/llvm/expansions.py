"""Operations that a target lacks, written with those that it has: products summed by fours or by pairs, look-ups in a table of
bytes, narrowing with saturation, scaling by powers of two, and the upper halves of products, which RESCALE is made of.
"""
from __future__ import annotations

import re
from collections.abc import Sequence

from ...graph.types import ITEM_SIZES
from ...loops.ir import Type
from ...machine_code.llvm_writer import Writer
from ...target.target import Target
from .llvm_text import BITS, SCALARS, Arithmetic, constant, llvm_type, spelled

HALF_WORD = 0xFFFF
"""The lower half of a word."""


# ---- products of bytes, look-ups and narrowing -----------------------------------------------------------------------
def dot4(writer: Writer, result: Type, values: list[str], extend: str) -> str:
    """acc + four products of bytes, extended so, and signed ones in each lane."""
    lanes, (total, x, y) = result.lanes, values
    wide, a = Arithmetic(writer, 4 * lanes), Arithmetic(writer, lanes)
    products = wide.op("mul", "i32", wide.cast(extend, "i8", x, "i32"), wide.cast("sext", "i8", y, "i32"))
    for first in range(4):
        total = a.op("add", "i32", total, every_nth(writer, products, lanes, 4, first))
    return total


def dot2(writer: Writer, result: Type, values: list[str]) -> str:
    """acc + two products of numbers of 16 bits in each lane."""
    lanes, (total, x, y) = result.lanes, values
    wide, a = Arithmetic(writer, 2 * lanes), Arithmetic(writer, lanes)
    products = wide.op("mul", "i32", wide.cast("sext", "i16", x, "i32"), wide.cast("sext", "i16", y, "i32"))
    even, odd = (every_nth(writer, products, lanes, 2, first) for first in range(2))
    return a.op("add", "i32", total, a.op("add", "i32", even, odd))


def pairs(writer: Writer, x: str, offsets: str, extend: str) -> str:
    """Four bytes, to which offsets are added, as two pairs of numbers of 16 bits."""
    four, two = Arithmetic(writer, 4), Arithmetic(writer, 2)
    numbers = four.op("add", "i32", four.cast(extend, "i8", x, "i32"), offsets)
    low, high = (writer.put(f"shufflevector <4 x i32> {numbers}, <4 x i32> poison, <2 x i32> <i32 {i}, i32 {i + 1}>")
                 for i in (0, 2))
    return two.op("or", "i32", two.op("and", "i32", low, HALF_WORD), two.op("shl", "i32", high, 16))


def dot_pairs(writer: Writer, lanes: int, values: Sequence[str]) -> str:
    """acc + the products of all numbers of 16 bits of two vectors of words."""
    (total, x, y), source = values, spelled("i32", lanes) if lanes > 1 else "i32"
    numbers = spelled("i16", 2 * lanes)
    x, y = (writer.put(f"bitcast {source} {v} to {numbers}") for v in (x, y))
    return products_added(writer, 2 * lanes, "i16", total, x, y)


def dot8(writer: Writer, values: Sequence[str]) -> str:
    """acc + the products of two rows and two columns of eight signed bytes: both rows beside both columns, summed by eights."""
    (total, x, y), t, a, wide = values, spelled("i8", 16), Arithmetic(writer, 4), Arithmetic(writer, 32)
    rows, columns = ([8 * i + k for i in order for k in range(8)] for order in ((0, 0, 1, 1), (0, 1, 0, 1)))
    factors = []
    for value, lanes in ((x, rows), (y, columns)):
        numbers = ", ".join(f"i32 {lane}" for lane in lanes)
        both = writer.put(f"shufflevector {t} {value}, {t} poison, <32 x i32> <{numbers}>")
        factors.append(wide.cast("sext", "i8", both, "i32"))
    products = wide.op("mul", "i32", *factors)
    for k in range(8):
        numbers, t = ", ".join(f"i32 {8 * i + k}" for i in range(4)), spelled("i32", 32)
        total = a.op("add", "i32", total, writer.put(f"shufflevector {t} {products}, {t} poison, <4 x i32> <{numbers}>"))
    return total


def dot(writer: Writer, lanes: int, values: Sequence[str]) -> str:
    """acc + the products of all lanes of two vectors of signed bytes."""
    return products_added(writer, lanes, "i8", *values)


def products_added(writer: Writer, lanes: int, scalar: str, total: str, x: str, y: str) -> str:
    """acc + the products of signed integers."""
    a = Arithmetic(writer, lanes)
    products = a.op("mul", "i32", a.cast("sext", scalar, x, "i32"), a.cast("sext", scalar, y, "i32"))
    if lanes > 1:
        products = writer.intrinsic(f"llvm.vector.reduce.add.v{lanes}i32", "i32", [(a.type("i32"), products)])
    return Arithmetic(writer, 1).op("add", "i32", total, products)


def every_nth(writer: Writer, x: str, lanes: int, n: int, first: int) -> str:
    t = spelled("i32", n * lanes)
    if lanes == 1:
        return writer.put(f"extractelement {t} {x}, i32 {first}")
    numbers = ", ".join(f"i32 {n * i + first}" for i in range(lanes))
    return writer.put(f"shufflevector {t} {x}, {t} poison, <{lanes} x i32> <{numbers}>")


QUARTER = 64
"""Bytes of each of the four vectors that hold a table of 256."""


def lookup(writer: Writer, result: Type, values: list[str]) -> str:
    """table[x + 128] for each lane of x, signed bytes; `values` are x and the quarters of the table. Lane by lane, from the
    quarter that the upper two bits say."""
    (x, *quarters), t, quarter, total = values, llvm_type(result), spelled("i8", QUARTER), "poison"
    one = Arithmetic(writer, 1)
    for lane in range(result.lanes):
        byte = x if result.lanes == 1 else writer.put(f"extractelement {t} {x}, i32 {lane}")
        place = one.op("xor", "i8", byte, -128)
        low = one.cast("zext", "i8", one.op("and", "i8", place, QUARTER - 1), "i32")
        entries = [writer.put(f"extractelement {quarter} {q}, i32 {low}") for q in quarters]
        first, second = (one.select(one.op("icmp ne", "i8", one.op("and", "i8", place, QUARTER), 0), "i8", b, a)
                         for a, b in (entries[:2], entries[2:]))
        entry = one.select(one.op("icmp slt", "i8", place, 0), "i8", second, first)
        total = entry if result.lanes == 1 else writer.put(f"insertelement {t} {total}, i8 {entry}, i32 {lane}")
    return total


PACKED_BYTES = 16
"""`pack` interleaves its operands by groups of this many bytes."""


def pack(writer: Writer, result: Type, values: list[str]) -> str:
    """Two vectors of integers clipped to half their size and interleaved by groups of 16 bytes."""
    half = SCALARS[result.dtype]
    lanes, wide = result.lanes // 2, f"i{2 * BITS[half]}"
    a, most = Arithmetic(writer, lanes), 1 << BITS[half] - 1
    x, y = (a.cast("trunc", wide, clipped(a, wide, v, most), half) for v in values)
    group, narrow = PACKED_BYTES // (2 * ITEM_SIZES[result.dtype]), spelled(half, lanes)
    order = [lanes * side + first + i for first in range(0, lanes, group) for side in (0, 1) for i in range(group)]
    numbers = ", ".join(f"i32 {n}" for n in order)
    return writer.put(f"shufflevector {narrow} {x}, {narrow} {y}, <{result.lanes} x i32> <{numbers}>")


def clipped(a: Arithmetic, scalar: str, x: str, most: int) -> str:
    """-most <= x < most."""
    x = a.select(a.op("icmp slt", scalar, x, -most), scalar, a.value(scalar, -most), x)
    return a.select(a.op("icmp sgt", scalar, x, most - 1), scalar, a.value(scalar, most - 1), x)


# ---- powers of two ---------------------------------------------------------------------------------------------------
ROUNDER, ONE, EXPONENT = 1.5 * 2.0**23, 0x3F80_0000, -1 << 23
"""Added to a whole number, the first leaves it in the low bits; the bits of 1.0; those of an exponent and the sign."""


def scaleb(writer: Writer, result: Type, values: list[str]) -> str:
    """x * 2**n for whole numbers n of a float, -252 <= n <= 252: two products, so that a result below the normal numbers is
    rounded once and one beyond the range is infinite."""
    (x, n), scalar, a = values, SCALARS[result.dtype], Arithmetic(writer, result.lanes)
    low = a.bits(scalar, a.op("fadd", scalar, n, ROUNDER), "i32")
    whole = a.op("shl", "i32", low, 23)
    half = a.op("and", "i32", a.op("shl", "i32", low, 22), EXPONENT)
    for exponent in (half, a.op("sub", "i32", whole, half)):
        power = a.bits("i32", a.op("add", "i32", exponent, ONE), scalar)
        x = a.op("fmul", scalar, x, power)
    return x


# ---- upper halves of 64-bit sums of products -------------------------------------------------------------------------
SIGN = 1 << 31
NUMBER = re.compile(r"splat \(i(?:32|64) (-?\d+)\)")
"""A vector of one number."""
ZEROS = constant("i64", 2, 0)
"""Zeros in any number of lanes."""


def multiply_high(writer: Writer, target: Target, type: Type, values: list[str], nudged: bool) -> str:
    """(x * y + z) >> 32, of `type`, which exact rescaling is made of; with `nudged` of 2^31 less where x is negative.

    Vectors on x86 are split into even and odd lanes, as its instruction for products of 32 bits needs them; then the
    upper halves lie where they belong, or one lane beside. Elsewhere 64-bit arithmetic says it, and instructions exist.
    """
    if target.multiplies_even_words and type.lanes >= 4 and type.lanes % 2 == 0:
        return by_parity(writer, type.lanes, values, nudged)
    x, y, z = values
    a = Arithmetic(writer, type.lanes)
    product = a.op("mul", "i64", a.cast("sext", "i32", x, "i64"), a.cast("sext", "i32", y, "i64"))
    if nudged:
        z = a.op("sub", "i64", z, a.cast("zext", "i32", a.op("and", "i32", x, -SIGN), "i64"))
    upper = a.op("lshr", "i64", a.op("add", "i64", product, z), 32)
    return a.cast("trunc", "i64", upper, "i32")


def rounded_product(writer: Writer, type: Type, values: Sequence[str]) -> str:
    """(x * y + 2**30) >> 31 of int32, y not negative."""
    a = Arithmetic(writer, type.lanes)
    product = a.op("mul", "i64", *(a.cast("sext", "i32", v, "i64") for v in values))
    return a.cast("trunc", "i64", a.op("ashr", "i64", a.op("add", "i64", product, 1 << 30), 31), "i32")


def rounded_shift(writer: Writer, type: Type, values: Sequence[str]) -> str:
    """x * 2**n of int32, rounded half up, for -31 <= n <= 0: of twice x, so that what is rounded away is one bit."""
    a = Arithmetic(writer, type.lanes)
    twice = a.op("shl", "i64", a.cast("sext", "i32", values[0], "i64"), 1)
    shifted = a.op("ashr", "i64", twice, a.cast("zext", "i32", a.op("sub", "i32", 0, values[1]), "i64"))
    return a.cast("trunc", "i64", a.op("ashr", "i64", a.op("add", "i64", shifted, 1), 1), "i32")


def by_parity(writer: Writer, lanes: int, values: list[str], nudged: bool) -> str:
    """The products of even lanes, those of odd lanes, and their upper halves interleaved."""
    x, y, z = values
    a, wide = Arithmetic(writer, lanes // 2), spelled("i64", lanes // 2)
    narrow = spelled("i32", lanes)
    factors = [Factor(a, v, wide, narrow) for v in (x, y)]
    halves = []
    for odd in (False, True):
        one, other = (f.lanes(odd) for f in factors)
        total = a.op("mul", "i64", one, other)
        if z != ZEROS:
            total = a.op("add", "i64", total, every_other(writer, z, lanes, odd))
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
