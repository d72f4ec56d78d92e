"""Instructions of x86 that LLVM has only as intrinsics of its own, but for those of the matrix unit (`amx`): operations of the
loop IR that the processor has whole, and what the process's threads and profiles need.
"""
from __future__ import annotations

from collections.abc import Sequence

from ...loops.ir import Type
from ...machine_code.llvm_writer import Value, Writer
from ...target.target import Target
from .llvm_text import BITS, SCALARS, Arithmetic, llvm_type, resized, spelled

# ---- operations of the loop IR ---------------------------------------------------------------------------------------
DOT_PRODUCTS = {4: "128", 8: "256", 16: "512"}
"""Lanes of the accumulator -> the size in the instruction's name."""
PAIR_PRODUCTS = {16: ("avx512bw", "llvm.x86.avx512.pmaddw.d.512"), 8: ("avx2", "llvm.x86.avx2.pmadd.wd"),
                 4: ("sse2", "llvm.x86.sse2.pmadd.wd")}
"""By the lanes of the sums: the feature that has products of pairs of 16 bits, and their name."""
PACKS = {64: ("avx512bw", "llvm.x86.avx512.{}.512"), 32: ("avx2", "llvm.x86.avx2.{}"), 16: ("sse2", "llvm.x86.sse2.{}.128")}
"""By the bytes of an operand: the feature that has them, and their name."""
PERMUTED_BYTES = 64
"""Lanes of the permutation of bytes, which takes two vectors as one table of 128."""
SCALES = {16: ("512", "i16"), 8: ("256", "i8"), 4: ("128", "i8")}
"""Lanes of float -> the size in the name of VSCALEFPS, and its mask's type."""
CURRENT_ROUNDING = "4"


def dot4(writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """VPDPBUSD: acc + four products of unsigned and signed bytes in each lane."""
    lanes = result.lanes
    if target.dot_product != "u8s8" or lanes not in DOT_PRODUCTS or 4 * lanes > target.vector_bytes:
        return None
    t, byte = llvm_type(result), spelled("i8", 4 * lanes)
    return writer.intrinsic(f"llvm.x86.avx512.vpdpbusd.{DOT_PRODUCTS[lanes]}", t, [
        (t, values[0]), (byte, values[1]), (byte, values[2])])


def dot2(writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """VPMADDWD, and an addition: acc + two products of numbers of 16 bits in each lane."""
    feature, name = PAIR_PRODUCTS.get(result.lanes, ("", ""))
    if feature not in target.enabled:
        return None
    pairs = spelled("i16", 2 * result.lanes)
    products = writer.intrinsic(name, llvm_type(result), [(pairs, values[1]), (pairs, values[2])])
    return Arithmetic(writer, result.lanes).op("add", "i32", values[0], products)


def pack(writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """VPACKSSDW, VPACKSSWB: two vectors of integers clipped to half their size, by groups of 16 bytes."""
    lanes, wide = result.lanes // 2, f"i{2 * BITS[SCALARS[result.dtype]]}"
    feature, name = PACKS.get(lanes * BITS[wide] // 8, ("", ""))
    if feature not in target.enabled:
        return None
    short, t = "packssdw" if wide == "i32" else "packsswb", spelled(wide, lanes)
    return writer.intrinsic(name.format(short), llvm_type(result), [(t, v) for v in values])


def lookup(writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """VPERMI2B: table[x + 128] for each lane of x, signed bytes; `values` are x and the quarters of the table."""
    if "avx512vbmi" not in target.enabled or result.lanes > PERMUTED_BYTES:
        return None
    (x, *quarters), t = values, spelled("i8", PERMUTED_BYTES)
    wide = x if result.lanes == PERMUTED_BYTES else resized(writer, x, result.lanes, PERMUTED_BYTES)
    below, above = (writer.intrinsic("llvm.x86.avx512.vpermi2var.qi.512", t, [(t, one), (t, wide), (t, other)])
                    for one, other in (quarters[:2], quarters[2:]))
    a = Arithmetic(writer, PERMUTED_BYTES)
    found = a.select(a.op("icmp slt", "i8", wide, 0), "i8", below, above)
    return found if result.lanes == PERMUTED_BYTES else resized(writer, found, PERMUTED_BYTES, result.lanes)


def scaleb(writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """VSCALEFPS: x * 2**n for whole numbers n of a float."""
    fits = result.lanes in SCALES and 4 * result.lanes <= target.vector_bytes
    if "avx512f" not in target.enabled or not fits or (result.lanes < 16 and "avx512vl" not in target.enabled):
        return None
    (size, mask), t = SCALES[result.lanes], llvm_type(result)
    args = [*((t, v) for v in values), (t, "zeroinitializer"), (mask, "-1")]
    if result.lanes == 16:
        args.append(("i32", CURRENT_ROUNDING))
    return writer.intrinsic(f"llvm.x86.avx512.mask.scalef.ps.{size}", t, args)


OPERATIONS = {"dot4": dot4, "dot2": dot2, "pack": pack, "lookup": lookup, "scaleb": scaleb}
"""By the loop IR's name; each returns None if the target or the size lacks the instruction."""


def finish_streaming(writer: Writer) -> None:
    """SFENCE: make stores past the caches visible to other threads."""
    writer.intrinsic("llvm.x86.sse.sfence", "void", [])


# ---- threads and time ------------------------------------------------------------------------------------------------
def pause(writer: Writer) -> None:
    """PAUSE, in a loop that waits for another thread."""
    writer.intrinsic("llvm.x86.sse2.pause", "void", [])


def save_float_mode(writer: Writer, place: Value) -> None:
    """STMXCSR: the mode of floats (rounding, denormals)."""
    writer.intrinsic("llvm.x86.sse.stmxcsr", "void", [place])


def restore_float_mode(writer: Writer, place: Value) -> None:
    writer.intrinsic("llvm.x86.sse.ldmxcsr", "void", [place])


def read_counter(writer: Writer) -> Value:
    """RDTSC: a counter of constant rate."""
    return Value("i64", writer.intrinsic("llvm.readcyclecounter", "i64", []))


def thread(writer: Writer) -> Value:
    """Return a number unique to each Linux thread: the address of its control block, at FS:0."""
    return writer.assembly("movq %fs:0, $0", "=r", "i64")
