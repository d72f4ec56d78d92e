"""The upper halves of 64-bit sums of products, which exact rescaling is made of, in LLVM IR.

Vectors on x86 are taken apart into even and odd lanes, as its instruction for products of 32 bits needs them; then the
upper halves lie where they belong, or one lane beside. Elsewhere 64-bit arithmetic says it, and instructions exist.
"""
from __future__ import annotations

from ..loops.ir import Type
from .llvm_text import Arithmetic, Writer, spelled
from .target import Target

SIGN = 1 << 31


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
    pairs = [writer.put(f"bitcast {narrow} {v} to {wide}") for v in (x, y)]
    halves = []
    for odd in (False, True):
        low = pairs if odd else [a.op("shl", "i64", v, 32) for v in pairs]
        one, other = (a.op("ashr", "i64", v, 32) for v in low)
        total = a.op("add", "i64", a.op("mul", "i64", one, other), every_other(writer, z, lanes, odd))
        if nudged:
            code = a.op("lshr", "i64", pairs[0], 32) if odd else pairs[0]
            total = a.op("sub", "i64", total, a.op("and", "i64", code, SIGN))
        halves.append(writer.put(f"bitcast {wide} {total} to {narrow}"))
    numbers = ", ".join(f"i32 {i}, i32 {lanes + i}" for i in range(1, lanes, 2))
    return writer.put(f"shufflevector {narrow} {halves[0]}, {narrow} {halves[1]}, <{lanes} x i32> <{numbers}>")


def every_other(writer: Writer, z: str, lanes: int, odd: bool) -> str:
    t = spelled("i64", lanes)
    numbers = ", ".join(f"i32 {i}" for i in range(odd, lanes, 2))
    return writer.put(f"shufflevector {t} {z}, {t} poison, <{lanes // 2} x i32> <{numbers}>")
