"""A driver that notes when each step begins and ends, for profiles. It reads the processor's own counter, so that a note costs
a few nanoseconds; how long a tick is has to be measured beside it. A step that is shorter than the counter can tell may be
repeated between two readings, where that changes nothing that is computed.

The notes are an array of int64 in the frame: how many there are, room for one that is not kept, and then the notes, one
behind the other, as long as there is room; behind them how often a step of each kernel is repeated.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...graph.types import Array
from ...loops.ir import buffers_read, buffers_written
from ...loops.program import Program
from ...machine_code.llvm_writer import Member, Value, Writer, constant
from ...target.target import Target
from ..llvm import aarch64, riscv, x86
from .buffer_addresses import BufferAddresses, Slot, written_over
from .driver import Driver

FIELDS = ("kernel", "low", "high", "begin", "end", "thread")
"""Of a note: the kernel's number, the rows it computed, the counter before and after, and a number that the thread has for
itself, 0 in a program that uses one."""

NOTE_BYTES = 8 * len(FIELDS)

MAX_NOTES = 1 << 16
"""Notes of one run that are kept."""

COUNTERS: dict[str, Callable[[Writer], Value]] = {
    "x86": x86.read_counter, "aarch64": aarch64.read_counter, "riscv": riscv.read_counter}
"""How code reads a counter that goes on evenly, by architecture."""
THREADS: dict[str, Callable[[Writer], Value]] = {"x86": x86.thread, "aarch64": aarch64.thread, "riscv": riscv.thread}
"""How code knows its thread on Linux, by architecture."""


def new_events(kernels: int) -> Array:
    """Room for the notes of a run of so many kernels, none of which is repeated."""
    events = np.zeros((notes_end() + -(-kernels // len(FIELDS)), len(FIELDS)), np.int64)
    repeats_of(events)[:] = 1
    return events


def notes_end() -> int:
    """Rows of the array before how often kernels are repeated."""
    return MAX_NOTES + 2


def repeats_of(events: Array) -> Array:
    """How often a step of each kernel is repeated, to be written before a run; more of them than there are kernels."""
    return events[notes_end():].reshape(-1)


def repeatable(program: Program, places: BufferAddresses) -> list[bool]:
    """Whether each kernel may be repeated: it reads no byte that it writes."""
    return [not (buffers_read(f) & buffers_written(f) or written_over(f, places)) for f in program.functions]


def noted(events: Array) -> Array:
    """The notes of the last runs, one to a row; there is room for new ones again."""
    count = min(int(events[0, 0]), MAX_NOTES)
    events[0, 0] = 0
    return events[2:2 + count].copy()


class TimedDriver(Driver):
    """A driver whose calls of kernels are noted at `events`."""

    def __init__(self, prefix: str, program: Program, names: Sequence[str], places: BufferAddresses, declared: dict[str, str],
                 exported: bool, events: Slot, target: Target) -> None:
        super().__init__(prefix, program, names, places, declared, exported)
        self.events, self.read_counter = events, COUNTERS[target.architecture]
        self.repeatable = repeatable(program, places)
        self.thread = THREADS[target.architecture] if self.is_parallel and "linux" in target.triple else None

    def call(self, w: Writer, kernel: int, low: Value, high: Value, task: Value | None) -> None:
        events = self.pointer(w, self.events)
        if self.repeatable[kernel]:
            times = w.load(w.address(events, notes_end() * NOTE_BYTES + 8 * kernel), "i64")
            begin = self.read_counter(w)
            with w.loop(times, once=True):
                super().call(w, kernel, low, high, task)
        else:
            begin = self.read_counter(w)
            super().call(w, kernel, low, high, task)
        end = self.read_counter(w)
        count = w.update("add", events, constant("i64", 1), "monotonic") if self.thread else w.load(events, "i64")
        row = w.select(w.compare("ult", count, MAX_NOTES), count, -1)
        note = w.address(w.address(events, 2 * NOTE_BYTES), row, f"[{len(FIELDS)} x i64]")
        thread = self.thread(w) if self.thread else constant("i64", 0)
        for i, value in enumerate((constant("i64", kernel), low, high, begin, end, thread)):
            w.keep(value, note, Member(8 * i, "i64"))
        if self.thread is None:
            w.store(w.op("add", count, 1), events)
