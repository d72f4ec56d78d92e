"""x * 2**n of the loop IR -> LLVM instructions: one where the processor has it (AVX-512), else two products, so that a
result below the normal numbers is rounded once and one beyond the range is infinite.
"""
from __future__ import annotations

from ...loops.ir import Type
from .llvm_text import SCALARS, Arithmetic, Writer, llvm_type

SCALE = {16: ("512", "i16"), 8: ("256", "i8"), 4: ("128", "i8")}
"""Lanes of float -> the size in the intrinsic's name, and its mask's type."""
CURRENT_ROUNDING = "4"
ROUNDER, ONE, EXPONENT = 1.5 * 2.0**23, 0x3F80_0000, -1 << 23
"""Added to a whole number, the first leaves it in the low bits; the bits of 1.0; those of an exponent and the sign."""


def scaled(writer: Writer, enabled: frozenset[str], vector_bytes: int, result: Type, x: str, n: str) -> str:
    """x * 2**n for whole numbers n of a float, -252 <= n <= 252."""
    if "avx512f" in enabled and result.lanes in SCALE and 4 * result.lanes <= vector_bytes and (
            result.lanes == 16 or "avx512vl" in enabled):
        return by_instruction(writer, result, x, n)
    scalar, a = SCALARS[result.dtype], Arithmetic(writer, result.lanes)
    low = a.bits(scalar, a.op("fadd", scalar, n, ROUNDER), "i32")
    whole = a.op("shl", "i32", low, 23)
    half = a.op("and", "i32", a.op("shl", "i32", low, 22), EXPONENT)
    for exponent in (half, a.op("sub", "i32", whole, half)):
        power = a.bits("i32", a.op("add", "i32", exponent, ONE), scalar)
        x = a.op("fmul", scalar, x, power)
    return x


def by_instruction(writer: Writer, result: Type, x: str, n: str) -> str:
    size, mask = SCALE[result.lanes]
    t = llvm_type(result)
    args = [(t, x), (t, n), (t, "zeroinitializer"), (mask, "-1")]
    if result.lanes == 16:
        args.append(("i32", CURRENT_ROUNDING))
    return writer.call(f"llvm.x86.avx512.mask.scalef.ps.{size}", t, args)
