"""Instructions of 64-bit Arm that LLVM has only as intrinsics of its own: what the process's threads and
profiles need.
"""
from __future__ import annotations

from ...machine_code.llvm_writer import Value, Writer

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
    """CNTVCT_EL0: a counter that goes on evenly."""
    return writer.assembly("mrs $0, cntvct_el0", "=r", "i64")


def thread(writer: Writer) -> Value:
    """A number that each thread of Linux has for itself: where its own memory is."""
    return writer.assembly("mrs $0, tpidr_el0", "=r", "i64")
