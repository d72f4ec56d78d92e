"""Look-ups in a table of 256 bytes that lies in four vectors, in LLVM IR."""
from __future__ import annotations

from ...loops.ir import Type
from .llvm_text import Arithmetic, Writer, llvm_type, spelled

LANES = 64
WHOLE = spelled("i8", LANES)
PERMUTE = "llvm.x86.avx512.vpermi2var.qi.512"


def lookup(writer: Writer, enabled: frozenset[str], result: Type, values: list[str]) -> str:
    """table[x + 128] for each lane of x, signed bytes; `values` are x and the quarters of the table."""
    x, *parts = values
    if "avx512vbmi" not in enabled or result.lanes > LANES:
        return one_by_one(writer, result, x, parts)
    wide = x if result.lanes == LANES else resized(writer, x, result.lanes, LANES)
    below, above = (writer.call(PERMUTE, WHOLE, [(WHOLE, one), (WHOLE, wide), (WHOLE, other)])
                    for one, other in (parts[:2], parts[2:]))
    a = Arithmetic(writer, LANES)
    found = a.select(a.op("icmp slt", "i8", wide, 0), "i8", below, above)
    return found if result.lanes == LANES else resized(writer, found, LANES, result.lanes)


def resized(writer: Writer, x: str, lanes: int, wanted: int) -> str:
    """The first lanes; more of them hold anything."""
    t = spelled("i8", lanes)
    if lanes == 1:
        return writer.put(f"insertelement {spelled('i8', wanted)} poison, i8 {x}, i32 0")
    if wanted == 1:
        return writer.put(f"extractelement {t} {x}, i32 0")
    numbers = ", ".join(f"i32 {i if i < lanes else 0}" for i in range(wanted))
    return writer.put(f"shufflevector {t} {x}, {t} poison, <{wanted} x i32> <{numbers}>")


def one_by_one(writer: Writer, result: Type, x: str, parts: list[str]) -> str:
    """Lane by lane, from the quarter that the upper two bits say."""
    t, total = llvm_type(result), "poison"
    one = Arithmetic(writer, 1)
    for lane in range(result.lanes):
        byte = x if result.lanes == 1 else writer.put(f"extractelement {t} {x}, i32 {lane}")
        place = one.op("xor", "i8", byte, -128)
        low = one.cast("zext", "i8", one.op("and", "i8", place, LANES - 1), "i32")
        entries = [writer.put(f"extractelement {WHOLE} {part}, i32 {low}") for part in parts]
        first, second = (one.select(one.op("icmp ne", "i8", one.op("and", "i8", place, LANES), 0), "i8", b, a)
                         for a, b in (entries[:2], entries[2:]))
        entry = one.select(one.op("icmp slt", "i8", place, 0), "i8", second, first)
        total = entry if result.lanes == 1 else writer.put(f"insertelement {t} {total}, i8 {entry}, i32 {lane}")
    return total
