"""Instructions of 32-bit Arm that LLVM has only as intrinsics of its own: those of the DSP extension, by which products of
bytes are done two at a time.
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...loops.ir import Type
from ...machine_code.llvm_writer import Writer
from ...target.target import Target

BOTH_HALVES = 0x10001
"""A number of 16 bits times this stands in both halves of a word."""


def dot4_offset(extend: str, writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """SXTAB16 (or UXTAB16) widens bytes 0 and 2 of a word, and rotated by eight 1 and 3, to two numbers of 16 bits, and adds
    to both; SMLAD adds the products of two pairs to a sum. Both factors are widened alike, so that their pairs match."""
    if not target.has_dual_multiply or result.lanes != 1:
        return None
    total, *words, offset = values
    x, y = (writer.put(f"bitcast <4 x i8> {word} to i32") for word in words)
    for rotated in (False, True):
        pair = widened(writer, extend, x, rotated, offset)
        other = widened(writer, "sxt", y, rotated, "0")
        total = writer.intrinsic("llvm.arm.smlad", "i32", [("i32", pair), ("i32", other), ("i32", total)])
    return total


def widened(writer: Writer, extend: str, word: str, rotated: bool, offset: str) -> str:
    """Two bytes of a word, plus an offset, as two numbers of 16 bits."""
    if rotated:
        word = writer.intrinsic("llvm.fshr.i32", "i32", [("i32", word), ("i32", word), ("i32", "8")])
    if offset == "0":
        return writer.intrinsic(f"llvm.arm.{extend}b16", "i32", [("i32", word)])
    half = writer.put(f"and i32 {offset}, 65535")
    both = writer.put(f"mul i32 {half}, {BOTH_HALVES}")
    return writer.intrinsic(f"llvm.arm.{extend}ab16", "i32", [("i32", both), ("i32", word)])


OPERATIONS = {"dot4_offset int8": partial(dot4_offset, "sxt"), "dot4_offset uint8": partial(dot4_offset, "uxt")}
"""By the loop IR's name, and the type of the first factor; each says None where the target or the size lacks the
instructions."""
