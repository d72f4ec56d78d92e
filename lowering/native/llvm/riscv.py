"""Instructions of RISC-V that LLVM has no intrinsic for: what profiles need."""
from __future__ import annotations

from ...machine_code.llvm_writer import Value, Writer


def read_counter(writer: Writer) -> Value:
    """RDTIME: a counter that goes on evenly."""
    return writer.assembly("rdtime $0", "=r", "i64")


def thread(writer: Writer) -> Value:
    """A number that each thread of Linux has for itself: where its own memory is."""
    return writer.assembly("mv $0, tp", "=r", "i64")
