"""The schedule of a program as text, and back: for each kernel the operators that it comes from, the rows that run at a
time, each loop nest with its axes and its strategy, and the tasks of its function.

    kernel 0: conv2d
      rows: a range at a time, the last 4 kept
      result0 [y<24 x_c<192] contraction: fma, tiles of 12 rows by 1 vectors of 16, ...
      tasks: 8 by %3 x 24, 1 phase, about 3000 of 20000 cycles

A text to read may come from anywhere; any other line is a Problem with its position.
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...runtime.errors import Position, Problem, Source, printable
from ...runtime.records import dataclass
from ..loops.schedule_record import ChainRecord, KernelRecord, NestRecord, RowRecord, TaskRecord

KERNEL = re.compile(r"kernel (\d{1,9}): ?(.*)")
ROWS = re.compile(r"  rows: a range at a time(?:, (\d{1,9}) tasks beside each other)?(?:, the last (\d{1,9}) kept)?")
CHAIN = re.compile(r"  rows: up to (\d{1,9}) at a time, in the loops of kernel (\d{1,9})")
FLOATS = re.compile(r"  float32: (.+)")
TASKS = re.compile(
    r"  tasks: (\d{1,9}) by ((?:%\d{1,9} x \d{1,18}, )+)(\d{1,9}) phases?, about (\d{1,18}) of (\d{1,18}) cycles")
LOOP = re.compile(r"%(\d+) x (\d+)")
NEST = re.compile(r"  (\S(?:.*?\S)?) \[(one element|[^\[\]<> ]+<\d{1,18}(?: [^\[\]<> ]+<\d{1,18})*)\] (\S.*)")
AXIS = re.compile(r"([^<> ]+)<(\d+)")
EXPECTED = {"  rows:": ("how rows are tiled, before the loop nests", "rows: a range at a time, the last 3 kept"),
            "  float32:": ("what is computed in float32, before the loop nests", "float32: sums"),
            "  tasks:": ("tasks, behind the loop nests", "tasks: 4 by %0 x 24, 1 phase, about 9000 of 36000 cycles"),
            "": ("a loop nest, its axes and its strategy", "result0 [i0<3] elementwise: 1 vectors of 8")}
"""Description and example of the line that is expected, by the beginning of the line that was found."""


@dataclass(frozen=True, slots=True)
class ScheduleText:
    """The text of a schedule, and its name in problems."""
    text: str
    source: str = "schedule"

    def read(self) -> tuple[KernelRecord, ...]:
        return read_schedule(self.text, self.source)

    @property
    def end(self) -> Position:
        """Position after the last character that is not a space: the position of a missing kernel."""
        return Source(self.source, self.text).position(len(self.text.rstrip()))


def print_schedule(schedules: Sequence[KernelRecord]) -> str:
    """Return the text of the schedules of all kernels, in order."""
    return "\n".join(line for number, record in enumerate(schedules) for line in lines_of(number, record))


def lines_of(number: int, record: KernelRecord) -> Iterator[str]:
    yield f"kernel {number}: {record.origin}".rstrip()
    if rows := record.rows:
        beside = f", {rows.tasks} tasks beside each other" if rows.tasks > 1 else ""
        kept = "" if rows.kept is None else f", the last {rows.kept} kept"
        yield f"  rows: a range at a time{beside}{kept}"
    if chain := record.chain:
        yield f"  rows: up to {chain.rows} at a time, in the loops of kernel {chain.last}"
    if record.in_floats:
        yield f"  float32: {record.in_floats}"
    for nest in record.nests:
        yield f"  {nest.name} {axes_of(nest)} {nest.strategy}"
    if tasks := record.tasks:
        loops = ", ".join(f"%{number} x {iterations}" for number, iterations in tasks.loops)
        phases = f"{tasks.phases} phase{'s' * (tasks.phases > 1)}"
        yield f"  tasks: {tasks.count} by {loops}, {phases}, about {tasks.cycles} of {tasks.whole} cycles"


def axes_of(nest: NestRecord) -> str:
    """Return the text of the axes of a nest with their extents, outermost first."""
    return "[" + (" ".join(f"{name}<{extent}" for name, extent in nest.axes) or "one element") + "]"


def read_schedule(text: str, name: str = "schedule") -> tuple[KernelRecord, ...]:
    """Return the schedules that a text describes; their positions are in a source of this name."""
    return ScheduleReader(text, name).schedules()


class ScheduleReader:
    """A reader of a schedule, line by line."""

    def __init__(self, text: str, name: str) -> None:
        self.source = Source(name, text)
        self.lines = text.split("\n")
        self.number = 0

    def schedules(self) -> tuple[KernelRecord, ...]:
        found: list[KernelRecord] = []
        while (line := self.peek()) is not None:
            if not line.strip():
                self.number += 1
                continue
            found.append(self.kernel(line, len(found)))
        return tuple(found)

    def peek(self) -> str | None:
        return self.lines[self.number] if self.number < len(self.lines) else None

    def position(self) -> Position:
        """Return the position of the line that was read last."""
        line = self.lines[self.number - 1]
        return Position(self.source, self.number, len(line) - len(line.lstrip()) + 1)

    def accept(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read the next line if it matches a pattern, and return the match."""
        match = pattern.fullmatch(self.peek() or "")
        self.number += match is not None
        return match

    def kernel(self, line: str, number: int) -> KernelRecord:
        match = self.accept(KERNEL)
        if match is None or int(match[1]) != number:
            self.number += match is None
            raise Problem(f"expected `kernel {number}: ` and its operators, got {printable(line)[:60]!r}", self.position(),
                          kind="schedule", help="what `tosaic show MODEL schedule` prints reads back")
        where = self.position()
        rows = RowRecord(int(m[1] or 1), int(m[2]) if m[2] else None, self.position()) if (m := self.accept(ROWS)) else None
        chain = ChainRecord(int(m[2]), int(m[1]), self.position()) if (m := self.accept(CHAIN)) else None
        floats = m[1] if (m := self.accept(FLOATS)) else ""
        nests = []
        while m := self.accept(NEST):
            axes = tuple((name, int(extent)) for name, extent in AXIS.findall(m[2])) if m[2] != "one element" else ()
            nests.append(NestRecord(m[1], axes, m[3], self.position()))
        tasks = None
        if m := self.accept(TASKS):
            loops = tuple((int(variable), int(iterations)) for variable, iterations in LOOP.findall(m[2]))
            tasks = TaskRecord(int(m[1]), loops, int(m[3]), int(m[4]), int(m[5]), self.position())
        following = self.peek()
        if following is not None and following.strip() and following.startswith(" "):
            self.number += 1
            what, example = next((e for start, e in EXPECTED.items() if following.startswith(start)), EXPECTED[""])
            raise Problem(f"expected {what}, got {printable(following.strip())[:60]!r}", self.position(), kind="schedule",
                          help=f"as `{example}`")
        return KernelRecord(match[2], tuple(nests), rows, chain, tasks, floats, where)
