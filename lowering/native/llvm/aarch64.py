"""Instructions of 64-bit Arm that LLVM has only as intrinsics of its own: operations of the loop IR that the processor has
whole, and what the process's threads and profiles need.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...loops.ir import Type
from ...machine_code.llvm_writer import Value, Writer
from ...target.target import Target
from .llvm_text import BITS, SCALARS, llvm_type, spelled

# ---- operations of the loop IR ---------------------------------------------------------------------------------------
REGISTER_BITS = 128
WORD_LANES = (2, 4)
"""Lanes of int32: those of half a register, and of one."""


def dot4_signed(writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """SDOT: acc + four products of signed bytes in each lane. The factor that may be one lane for all is its last operand."""
    lanes = result.lanes
    if target.dot_product != "s8s8" or lanes not in WORD_LANES:
        return None
    t, byte = llvm_type(result), spelled("i8", 4 * lanes)
    return writer.intrinsic(f"llvm.aarch64.neon.sdot.v{lanes}i32.v{4 * lanes}i8", t, [
        (t, values[0]), (byte, values[2]), (byte, values[1])])


def dot8(writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """SMMLA: 2 by 2 sums, acc + products of two rows and two columns of eight signed bytes."""
    if not target.has_byte_pairs:
        return None
    t, byte = llvm_type(result), spelled("i8", 16)
    return writer.intrinsic("llvm.aarch64.neon.smmla.v4i32.v16i8", t, [(t, values[0]), (byte, values[1]), (byte, values[2])])


def rounded_product(writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """SQRDMULH: the upper halves of doubled products, rounded."""
    return of_words(writer, target, result, "sqrdmulh", values)


def rounded_shift(writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """SRSHL: shift each lane by its lane of another vector, right if that is negative."""
    return of_words(writer, target, result, "srshl", values)


def of_words(writer: Writer, target: Target, result: Type, name: str, values: Sequence[str]) -> str | None:
    if not target.rounds_words or result.lanes not in WORD_LANES:
        return None
    t = llvm_type(result)
    return writer.intrinsic(f"llvm.aarch64.neon.{name}.v{result.lanes}i32", t, [(t, v) for v in values])


def pack(writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """SQXTN, SQXTN2: two vectors of integers, saturated to half their size and concatenated."""
    half, lanes = SCALARS[result.dtype], result.lanes // 2
    if BITS[half] * result.lanes != REGISTER_BITS:
        return None
    t, wide = spelled(half, lanes), spelled(f"i{2 * BITS[half]}", lanes)
    low, high = (writer.intrinsic(f"llvm.aarch64.neon.sqxtn.v{lanes}{half}", t, [(wide, v)]) for v in values)
    numbers = ", ".join(f"i32 {i}" for i in range(result.lanes))
    return writer.put(f"shufflevector {t} {low}, {t} {high}, <{result.lanes} x i32> <{numbers}>")


OPERATIONS: Mapping[str, Callable[[Writer, Target, Type, Sequence[str]], str | None]] = {
    "dot4_signed": dot4_signed, "dot8": dot8, "rounded_product": rounded_product,
    "rounded_shift": rounded_shift, "pack": pack}
"""By the loop IR's name; each returns None if the target or the size lacks the instruction."""

# ---- threads and time ------------------------------------------------------------------------------------------------
YIELD = "1"
"""The hint that a thread waits for another one."""


def pause(writer: Writer) -> None:
    writer.intrinsic("llvm.aarch64.hint", "void", [("i32", YIELD)])


def save_float_mode(writer: Writer, place: Value) -> None:
    """FPCR: the mode of floats (rounding, denormals)."""
    writer.store(Value("i64", writer.intrinsic("llvm.aarch64.get.fpcr", "i64", [])), place)


def restore_float_mode(writer: Writer, place: Value) -> None:
    writer.intrinsic("llvm.aarch64.set.fpcr", "void", [writer.load(place, "i64")])


def read_counter(writer: Writer) -> Value:
    """CNTVCT_EL0: a counter of constant rate."""
    return writer.assembly("mrs $0, cntvct_el0", "=r", "i64")


def thread(writer: Writer) -> Value:
    """Return a number unique to each Linux thread: the address of its thread-local memory."""
    return writer.assembly("mrs $0, tpidr_el0", "=r", "i64")
