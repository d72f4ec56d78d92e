"""A driver that records when each step begins and ends, for profiles. It reads the processor's own counter, so that a note
costs a few nanoseconds; the length of a tick must be measured separately. A step that is too short for the counter's resolution
may be repeated. A step that reads nothing that it writes is repeated between two readings. For any other step, the buffers that
it writes get their old contents back before each repetition, and the readings around each repetition are summed, less those
around nothing: a repeated step computes what it computes once.

The notes are an array of int64 in the frame: the number of notes and a sum of ticks, room for a note that is not kept, then the
notes in sequence, as long as there is room; then the number of repetitions of a step of each kernel. Contents of buffers are
kept in a second array (`kept_nbytes`).
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...elements.expression import Buffer
from ...graph.types import Array
from ...loops.ir import buffers_read, buffers_written
from ...loops.program import Program
from ...machine_code.llvm_writer import Member, Value, Writer, constant
from ...target.target import Target
from ..llvm import aarch64, riscv, x86
from .buffer_addresses import BufferAddresses, Slot, written_over
from .driver import Driver

FIELDS = ("kernel", "low", "high", "begin", "end", "thread")
"""Fields of a note: the kernel's number, the rows it computed, the counter before and after, and a number unique to the thread,
0 in a program that uses one thread."""

NOTE_BYTES = 8 * len(FIELDS)

MAX_NOTES = 1 << 16
"""Maximum number of notes of one run."""

COUNTERS: dict[str, Callable[[Writer], Value]] = {
    "x86": x86.read_counter, "aarch64": aarch64.read_counter, "riscv": riscv.read_counter}
"""Code that reads a counter of constant rate, by architecture."""
BARRIERS = {"x86": "lfence", "aarch64": "isb", "riscv": "fence"}
"""Instruction that completes all instructions before it before later ones begin, or comes nearest to that, by architecture."""
THREADS: dict[str, Callable[[Writer], Value]] = {"x86": x86.thread, "aarch64": aarch64.thread, "riscv": riscv.thread}
"""Code that identifies its thread on Linux, by architecture."""


def new_events(kernels: int) -> Array:
    """Return room for the notes of a run of `kernels` kernels, none of which is repeated."""
    events = np.zeros((notes_end() + -(-kernels // len(FIELDS)), len(FIELDS)), np.int64)
    repeats_of(events)[:] = 1
    return events


def notes_end() -> int:
    """Return the number of rows of the array before the repetition counts."""
    return MAX_NOTES + 2


def repeats_of(events: Array) -> Array:
    """Return the repetition count of each kernel's step, to be written before a run; there may be more counts than kernels."""
    return events[notes_end():].reshape(-1)


def kept_buffers(program: Program, places: BufferAddresses) -> list[tuple[Buffer, ...]]:
    """Return for each kernel the buffers that must get their contents back before a repetition: those that it writes, if it
    reads some of these bytes."""
    return [tuple(b for b in (*f.params, *f.scratch) if b in buffers_written(f))
            if buffers_read(f) & buffers_written(f) or written_over(f, places) else () for f in program.functions]


def kept_nbytes(program: Program, places: BufferAddresses) -> list[int]:
    """Return the bytes of these buffers of each kernel; the array that keeps their contents has the maximum."""
    return [sum(b.nbytes for b in buffers) for buffers in kept_buffers(program, places)]


def noted(events: Array) -> Array:
    """Return the notes of the last runs, one per row, and make room for new ones."""
    count = min(int(events[0, 0]), MAX_NOTES)
    events[0, 0] = 0
    return events[2:2 + count].copy()


SUM = Member(8, "i64")
"""The word after the number of notes: ticks of a step's repetitions."""


class TimedDriver(Driver):
    """A driver that records its calls of kernels at `events`; the next pointer of the frame is the array of kept contents."""

    def __init__(self, prefix: str, program: Program, names: Sequence[str], places: BufferAddresses, declared: dict[str, str],
                 exported: bool, events: Slot, target: Target) -> None:
        super().__init__(prefix, program, names, places, declared, exported)
        self.events, self.read_counter = events, COUNTERS[target.architecture]
        self.kept, self.barrier = kept_buffers(program, places), BARRIERS[target.architecture]
        self.thread = THREADS[target.architecture] if self.is_parallel and "linux" in target.triple else None

    def call(self, w: Writer, kernel: int, low: Value, high: Value, task: Value | None) -> None:
        events = self.pointer(w, self.events)
        times = w.load(w.address(events, notes_end() * NOTE_BYTES + 8 * kernel), "i64")
        measure = self.restored if self.kept[kernel] else self.repeated
        begin, end = measure(w, times, kernel, lambda: super(TimedDriver, self).call(w, kernel, low, high, task))
        count = w.update("add", events, constant("i64", 1), "monotonic") if self.thread else w.load(events, "i64")
        row = w.select(w.compare("ult", count, MAX_NOTES), count, -1)
        note = w.address(w.address(events, 2 * NOTE_BYTES), row, f"[{len(FIELDS)} x i64]")
        thread = self.thread(w) if self.thread else constant("i64", 0)
        for i, value in enumerate((constant("i64", kernel), low, high, begin, end, thread)):
            w.keep(value, note, Member(8 * i, "i64"))
        if self.thread is None:
            w.store(w.op("add", count, 1), events)

    def repeated(self, w: Writer, times: Value, kernel: int, step: Callable[[], None]) -> tuple[Value, Value]:
        """Repeat a step; return the counter before and after."""
        begin = self.read_counter(w)
        with w.loop(times, once=True):
            step()
        return begin, self.read_counter(w)

    def restored(self, w: Writer, times: Value, kernel: int, step: Callable[[], None]) -> tuple[Value, Value]:
        """Run a step; return the counter before and after. A repeated step then runs `times` more times, each on the same
        contents of the buffers that it writes, and only the ticks of these repetitions count. Only runs of one thread repeat
        steps."""
        events, is_repeated = self.pointer(w, self.events), w.compare("ugt", times, 1)
        with w.when(is_repeated):
            self.copy_kept(w, kernel, back=False)
        begin = self.read_counter(w)
        step()
        end = self.read_counter(w)
        with w.when(is_repeated):
            w.keep(0, events, SUM)
            with w.loop(times, once=True):
                self.copy_kept(w, kernel, back=True)
                self.add_ticks(w, events, "add", step)
            with w.loop(times, once=True):
                self.add_ticks(w, events, "sub", lambda: None)
        ticks = w.load(events, SUM)
        all_ended = w.op("add", begin, w.select(w.compare("sgt", ticks, 0), ticks, 0))
        return begin, w.select(is_repeated, all_ended, end)

    def add_ticks(self, w: Writer, events: Value, operation: str, step: Callable[[], None]) -> None:
        """Add or subtract the ticks of a step. A barrier makes earlier instructions complete before a reading: else the
        processor runs a short step during the reading."""
        begin = self.ordered_reading(w)
        step()
        w.keep(w.op(operation, w.load(events, SUM), w.op("sub", self.ordered_reading(w), begin)), events, SUM)

    def ordered_reading(self, w: Writer) -> Value:
        w.assembly(self.barrier, "~{memory}", "void")
        read = self.read_counter(w)
        w.assembly(self.barrier, "~{memory}", "void")
        return read

    def copy_kept(self, w: Writer, kernel: int, back: bool) -> None:
        """Copy the contents of a kernel's buffers to the array that keeps them, or back."""
        room, offset = self.pointer(w, Slot(self.events.index + 1)), 0
        for buffer in self.kept[kernel]:
            data, kept = self.pointer(w, self.places.buffers[buffer]), w.address(room, offset)
            w.copy(data if back else kept, kept if back else data, buffer.nbytes)
            offset += buffer.nbytes
