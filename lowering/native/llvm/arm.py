"""Instructions of 32-bit Arm that LLVM has only as target intrinsics: those of the DSP extension, which multiply bytes two at a
time.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ...loops.ir import Type
from ...machine_code.llvm_writer import Writer
from ...target.target import Target
from .llvm_text import llvm_type, spelled

BOTH_HALVES = 0x10001
"""Factor that copies a 16-bit number to both halves of a word."""


def pairs(extend: str, writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """SXTAB16 (or UXTAB16) widens bytes 0 and 2 of a word, or 1 and 3 of it rotated by eight, to two 16-bit numbers, and adds
    an offset to both."""
    if not target.has_dual_multiply:
        return None
    four, offset = values
    word, both = writer.put(f"bitcast <4 x i8> {four} to i32"), "poison"
    for i in range(2):
        both = writer.put(f"insertelement <2 x i32> {both}, i32 {widened(writer, extend, word, i == 1, offset)}, i32 {i}")
    return both


def dot_pairs(lanes: int, writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """SMLAD adds the products of two pairs to a sum."""
    if not target.has_dual_multiply:
        return None
    total, *factors = values
    for i in range(lanes):
        words = [writer.put(f"extractelement <{lanes} x i32> {v}, i32 {i}") if lanes > 1 else v for v in factors]
        total = writer.intrinsic("llvm.arm.smlad", "i32", [("i32", w) for w in (*words, total)])
    return total


def widened(writer: Writer, extend: str, word: str, rotated: bool, offset: str) -> str:
    """Return two bytes of a word, each plus an offset, as two 16-bit numbers."""
    if rotated:
        word = writer.intrinsic("llvm.fshr.i32", "i32", [("i32", word), ("i32", word), ("i32", "8")])
    if offset == "0":
        return writer.intrinsic(f"llvm.arm.{extend}b16", "i32", [("i32", word)])
    half = writer.put(f"and i32 {offset}, 65535")
    both = writer.put(f"mul i32 {half}, {BOTH_HALVES}")
    return writer.intrinsic(f"llvm.arm.{extend}ab16", "i32", [("i32", both), ("i32", word)])


# ---- vectors (Helium) ------------------------------------------------------------------------------------------------
NUMBER = re.compile(r"splat \(i\d+ (-?\d+)\)")
"""A splat vector."""
WORDS, BYTES = 4, 16
"""Number of words, and of bytes, in a vector."""
UPPER_HALVES = {"0": "llvm.arm.mve.vmulh", str(1 << 31): "llvm.arm.mve.vrmulh"}
"""Intrinsics by the number added before the lower half is dropped: nothing, or half of the unit."""


def has_words(target: Target, result: Type) -> bool:
    return target.rounds_words and result.lanes == WORDS


def rounded_product(writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """VQRDMULH: the upper halves of doubled products, rounded."""
    if not has_words(target, result):
        return None
    t = llvm_type(result)
    return writer.intrinsic("llvm.arm.mve.vqrdmulh.v4i32", t, [(t, v) for v in values])


def rounded_shift(writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """VRSHL: shift each lane by its lane of another vector, or all lanes by one number."""
    if not has_words(target, result):
        return None
    t, flags = llvm_type(result), [("i32", "0"), ("i32", "1"), ("i32", "0")]  # no saturation, rounded, signed
    if number := NUMBER.fullmatch(values[1]):
        return writer.intrinsic("llvm.arm.mve.vshl.scalar.v4i32", t, [(t, values[0]), ("i32", number[1]), *flags])
    return writer.intrinsic("llvm.arm.mve.vshl.vector.v4i32.v4i32", t, [(t, values[0]), (t, values[1]), *flags])


def multiply_high(writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """VMULH, VRMULH: the upper halves of products, if the number added to them is known."""
    number = NUMBER.fullmatch(values[2])
    if not has_words(target, result) or number is None or number[1] not in UPPER_HALVES:
        return None
    t = llvm_type(result)
    return writer.intrinsic(f"{UPPER_HALVES[number[1]]}.v4i32", t, [(t, values[0]), (t, values[1]), ("i32", "0")])  # signed


def dot(writer: Writer, target: Target, result: Type, values: Sequence[str]) -> str | None:
    """VMLADAVA: the products of sixteen signed bytes, added to a register."""
    if not target.sums_bytes:
        return None
    flags, t = [("i32", "0")] * 3, spelled("i8", BYTES)  # signed, added, not exchanged
    return writer.intrinsic("llvm.arm.mve.vmldava.v16i8", "i32", [
        *flags, ("i32", values[0]), (t, values[1]), (t, values[2])])


OPERATIONS: Mapping[str, Callable[[Writer, Target, Type, Sequence[str]], str | None]] = {
    f"dot {BYTES}": dot,
    "rounded_product": rounded_product, "rounded_shift": rounded_shift, "multiply_high": multiply_high,
    "pairs int8": partial(pairs, "sxt"), "pairs uint8": partial(pairs, "uxt"),
    "dot_pairs 1": partial(dot_pairs, 1), "dot_pairs 2": partial(dot_pairs, 2)}
"""By the loop IR's name, and the type of the first factor; each returns None if the target or the size lacks the
instructions."""
