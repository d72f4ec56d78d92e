"""A driver that notes when each step begins and ends, for profiles. It reads the processor's own counter, so that a note costs
a few nanoseconds; how long a tick is has to be measured beside it.

The notes are an array of int64 in the frame: how many there are, room for one that is not kept, and then the notes, one
behind the other, as long as there is room.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....runtime.errors import Problem
from ...graph.types import Array
from ...loops.program import Program
from ...memory.plan import Plan
from ...target.target import Target
from ..process.load import frame_places, frame_size
from .driver import Driver, Places, Slot, Writer
from .module import Part, module_text

FIELDS = ("kernel", "low", "high", "begin", "end")
"""Of a note: the kernel's number, the rows it computed, the counter before and after."""

MOST = 1 << 16
"""Notes of one run that are kept."""

COUNTERS = {"x86": "call i64 @llvm.readcyclecounter()", "aarch64": 'call i64 asm sideeffect "mrs $0, cntvct_el0", "=r"()',
            "riscv": 'call i64 asm sideeffect "rdtime $0", "=r"()'}
"""How code reads a counter that goes on evenly, by architecture."""


def new_events() -> Array:
    """Room for the notes of a run."""
    return np.zeros((MOST + 2, len(FIELDS)), np.int64)


def noted(events: Array) -> Array:
    """The notes of the last runs, one to a row; there is room for new ones again."""
    count = min(int(events[0, 0]), MOST)
    events[0, 0] = 0
    return events[2:2 + count].copy()


class TimedDriver(Driver):
    """A driver whose calls of kernels are noted at `events`."""

    def __init__(self, prefix: str, program: Program, names: Sequence[str], places: Places, exported: bool, events: Slot,
                 target: Target) -> None:
        super().__init__(prefix, program, names, places, exported)
        self.events, self.target = events, target

    def lines(self) -> list[str]:
        return [*super().lines(), "declare i64 @llvm.readcyclecounter()"]

    def call(self, w: Writer, kernel: int, low: str, high: str, part: str) -> None:
        clock = COUNTERS[self.target.architecture]
        begin = w.put(clock)
        super().call(w, kernel, low, high, part)
        end = w.put(clock)
        events = w.pointer(self.events)
        count = w.put(f"load i64, ptr {events}")
        has_room = w.put(f"icmp ult i64 {count}, {MOST}")
        row = w.put(f"select i1 {has_room}, i64 {count}, i64 -1")
        note = w.put(f"getelementptr [{len(FIELDS)} x i64], ptr {w.offset(events, 2 * len(FIELDS), 'i64')}, i64 {row}")
        for i, value in enumerate((f"{kernel}", low, high, begin, end)):
            w.do(f"store i64 {value}, ptr {w.offset(note, i, 'i64')}")
        w.do(f"store i64 {w.put(f'add i64 {count}, 1')}, ptr {events}")


def timed_text(program: Program, plan: Plan, target: Target) -> str:
    """As `native_text`, with notes in an array behind the constants of the frame."""
    if target.architecture not in COUNTERS:
        raise Problem(f"a profile needs a processor's counter, and that of {target.architecture} is not known",
                      kind="unsupported")
    places = frame_places(program, plan)
    assert isinstance(places.backup, Slot)
    events = Slot(frame_size(program, plan))
    return module_text([Part("program", program, places, exported=True, events=events)], target)
