"""Vectors of integers clipped to half their size and put together by groups of 16 bytes, in LLVM IR."""
from __future__ import annotations

from ...graph.types import ITEM_SIZES
from ...loops.ir import Type
from .llvm_text import BITS, SCALARS, Arithmetic, Writer, llvm_type, spelled

GROUP_BYTES = 16
INSTRUCTIONS = {64: ("avx512bw", "llvm.x86.avx512.{}.512"), 32: ("avx2", "llvm.x86.avx2.{}"),
                16: ("sse2", "llvm.x86.sse2.{}.128")}
"""By the bytes of an operand: which feature has them, and how they are called."""


def pack(writer: Writer, enabled: frozenset[str], result: Type, values: list[str]) -> str:
    """`values` are two vectors of twice the size of the result's elements."""
    half = SCALARS[result.dtype]
    lanes, wide = result.lanes // 2, f"i{2 * BITS[half]}"
    t, size = spelled(wide, lanes), lanes * BITS[wide] // 8
    feature, name = INSTRUCTIONS.get(size, ("", ""))
    if feature in enabled:
        short = "packssdw" if wide == "i32" else "packsswb"
        return writer.call(name.format(short), llvm_type(result), [(t, v) for v in values])
    a, most = Arithmetic(writer, lanes), 1 << BITS[half] - 1
    x, y = (a.cast("trunc", wide, clipped(writer, wide, lanes, v, most), half) for v in values)
    group, narrow = GROUP_BYTES // (2 * ITEM_SIZES[result.dtype]), spelled(half, lanes)
    order = [lanes * side + first + i for first in range(0, lanes, group) for side in (0, 1) for i in range(group)]
    numbers = ", ".join(f"i32 {n}" for n in order)
    return writer.put(f"shufflevector {narrow} {x}, {narrow} {y}, <{result.lanes} x i32> <{numbers}>")


def clipped(writer: Writer, scalar: str, lanes: int, x: str, most: int) -> str:
    """-most <= x < most."""
    a = Arithmetic(writer, lanes)
    x = a.select(a.op("icmp slt", scalar, x, -most), scalar, a.value(scalar, -most), x)
    return a.select(a.op("icmp sgt", scalar, x, most - 1), scalar, a.value(scalar, most - 1), x)
