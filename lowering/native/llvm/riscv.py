"""Instructions of RISC-V that LLVM has only as intrinsics of its own, or none for: operations of the loop IR that vectors (V
1.0) have whole, and what profiles need.

The intrinsics are of vectors whose length is a multiple of the processor's; ours, of a known length, are the beginning of such
ones.
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
"""LLVM counts the length of a vector register in blocks of this size."""
MAX_GROUP = 8
"""Registers that an instruction takes as one, at most."""
TO_NEAREST = "0"
"""Rounding of fixed-point instructions: half a unit is added."""


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
    """VSSRA: shifts to the right, rounded; by as much as another vector says, which is less than nothing, or by a number."""
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
    """LLVM's type of vectors of int32 that begin with ours; None where there are none."""
    lanes, bits = result.lanes, vector_bits(target.enabled)
    if not target.rounds_words or lanes < 2 or lanes & (lanes - 1) or 32 * lanes > MAX_GROUP * bits:
        return None
    return f"<vscale x {max(1, lanes * BLOCK_BITS // bits)} x i32>"


def suffix(type: str) -> str:
    """How a type is called in the name of an intrinsic."""
    return f"nxv{type.split()[2]}i32"


def widened(writer: Writer, value: str, type: Type, to: str) -> str:
    return writer.intrinsic(f"llvm.vector.insert.{suffix(to)}.v{type.lanes}i32", to, [
        (to, "poison"), (llvm_type(type), value), ("i64", "0")])


def narrowed(writer: Writer, value: str, type: Type, source: str) -> str:
    return writer.intrinsic(f"llvm.vector.extract.v{type.lanes}i32.{suffix(source)}", llvm_type(type), [
        (source, value), ("i64", "0")])


OPERATIONS: Mapping[str, Callable[[Writer, Target, Type, Sequence[str]], str | None]] = {
    "rounded_product": rounded_product, "rounded_shift": rounded_shift}
"""By the loop IR's name; each says None where the target or the size lacks the instruction."""

# ---- threads and time ------------------------------------------------------------------------------------------------

def read_counter(writer: Writer) -> Value:
    """RDTIME: a counter that goes on evenly."""
    return writer.assembly("rdtime $0", "=r", "i64")


def thread(writer: Writer) -> Value:
    """A number that each thread of Linux has for itself: where its own memory is."""
    return writer.assembly("mv $0, tp", "=r", "i64")
