"""Instructions of RISC-V that LLVM has only as target intrinsics, or not at all: operations of the loop IR that are one vector
instruction (V 1.0), and those that profiles need.

The intrinsics take vectors whose length is a multiple of the processor's; the emitter's fixed-length vectors are their first
lanes.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...loops.ir import Type
from ...machine_code.llvm_writer import Value, Writer
from ...target.features import vector_bits
from ...target.target import Target
from .llvm_text import llvm_type, splat_number

# ---- operations of the loop IR ---------------------------------------------------------------------------------------
BLOCK_BITS = 64
"""Bits of a block, LLVM's unit of a vector register's length."""
MAX_GROUP = 8
"""Maximum number of registers that an instruction takes as one group."""
TO_NEAREST = "0"
"""Rounding mode of fixed-point instructions: add half a unit."""


def rounded_product(writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """VSMUL: the upper halves of doubled products, rounded."""
    found = scalable(target, result)
    if found is None:
        return None
    x, y = (widened(writer, v, result, found) for v in values)
    made = writer.intrinsic(f"llvm.riscv.vsmul.{suffix(found)}.{suffix(found)}.i64", found, [
        (found, "poison"), (found, x), (found, y), ("i64", TO_NEAREST), ("i64", f"{result.lanes}")])
    return narrowed(writer, made, result, found)


def rounded_shift(writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """VSSRA: rounding right shift, by the negated lanes of another vector or by a number."""
    found = scalable(target, result)
    if found is None:
        return None
    x, t, number = widened(writer, values[0], result, found), llvm_type(result), splat_number(values[1])
    if number is not None and number > 0:
        return None
    if number is None:
        amounts = widened(writer, writer.put(f"sub {t} zeroinitializer, {values[1]}"), result, found)
        kind, operand = suffix(found), (found, amounts)
    else:
        kind, operand = "i64", ("i64", f"{-number}")
    made = writer.intrinsic(f"llvm.riscv.vssra.{suffix(found)}.{kind}.i64", found, [
        (found, "poison"), (found, x), operand, ("i64", TO_NEAREST), ("i64", f"{result.lanes}")])
    return narrowed(writer, made, result, found)


def scalable(target: Target, result: Type) -> str | None:
    """Return LLVM's type of scalable vectors of int32 that hold the result; None if there is none."""
    lanes, bits = result.lanes, vector_bits(target.enabled)
    if not target.rounds_words or lanes < 2 or lanes & (lanes - 1) or 32 * lanes > MAX_GROUP * bits:
        return None
    return f"<vscale x {max(1, lanes * BLOCK_BITS // bits)} x i32>"


def suffix(type: str) -> str:
    """Return the name of a type in the name of an intrinsic."""
    return f"nxv{type.split()[2]}i32"


def widened(writer: Writer, value: str, type: Type, to: str) -> str:
    return writer.intrinsic(f"llvm.vector.insert.{suffix(to)}.v{type.lanes}i32", to, [
        (to, "poison"), (llvm_type(type), value), ("i64", "0")])


def narrowed(writer: Writer, value: str, type: Type, source: str) -> str:
    return writer.intrinsic(f"llvm.vector.extract.v{type.lanes}i32.{suffix(source)}", llvm_type(type), [
        (source, value), ("i64", "0")])


OPERATIONS: Mapping[str, Callable[[Writer, Target, Type, Sequence[str]], str | None]] = {
    "rounded_product": rounded_product, "rounded_shift": rounded_shift}
"""By the loop IR's name; each returns None if the target or the size lacks the instruction."""

# ---- threads and time ------------------------------------------------------------------------------------------------

def read_counter(writer: Writer) -> Value:
    """RDTIME: a counter of constant rate."""
    return writer.assembly("rdtime $0", "=r", "i64")


def thread(writer: Writer) -> Value:
    """Return a number unique to each Linux thread: the address of its thread-local memory."""
    return writer.assembly("mv $0, tp", "=r", "i64")
