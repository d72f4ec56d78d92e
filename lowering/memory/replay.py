"""Runs a program's steps on a plan without computing anything: notes which bytes of each buffer have been overwritten by
another since they were written, and what is still read of those. Part of the verifier; shares nothing with the planners.

A step of some rows touches the rows that its kernel's index expressions say; every other one touches whole buffers.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..elements.expression import Buffer, Load
from ..elements.traverse import loads
from ..fuse.kernel import Branch, CheckWritten, Compute, Kernel, Loop, MarkWritten, Step
from ..loops.ir import buffers_read, buffers_written
from ..loops.order import may_overwrite
from ..loops.program import Program

if TYPE_CHECKING:
    from .plan import PlannedBuffer

Bytes = tuple[int, int]
"""Of a buffer, from a byte to before another."""


@dataclass(frozen=True, slots=True)
class Use:
    """Bytes of a buffer that a step touches."""
    buffer: Buffer
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Touched:
    """What one step touches: first it reads, then it writes; scratch means nothing before and after."""
    name: str
    reads: tuple[Use, ...]
    writes: tuple[Use, ...]
    scratch: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class RowLoad:
    """The place of a load along its buffer's rows, from `low` to `high` for row 0 of the kernel's output, `step` further for
    each row; in units of `unit` to a row."""
    buffer: Buffer
    low: int
    high: int
    step: int
    unit: int

    def rows(self, first: int, end: int) -> Bytes:
        """The rows that it reads for the output's rows from first to end."""
        steps = self.step * first, self.step * (end - 1)
        last = self.buffer.shape[rows_dimension(self.buffer)]
        return (min(max((self.low + min(steps)) // self.unit, 0), last - 1),
                max(min((self.high + max(steps)) // self.unit + 1, last), 1))


@dataclass(slots=True)
class Contents:
    """What the pools hold at one point of a run: the buffers of which some bytes are there, and of each buffer the bytes that
    are gone since they were written, with who overwrote them."""
    present: set[Buffer] = field(default_factory=set)
    gone: dict[Buffer, dict[Bytes, str]] = field(default_factory=dict)

    def copy(self) -> Contents:
        return Contents(set(self.present), {b: dict(spans) for b, spans in self.gone.items()})

    def meet(self, other: Contents) -> Contents:
        """What is certain when either may be the case."""
        met = self.copy()
        met.present |= other.present
        for buffer, spans in other.gone.items():
            for (first, end), by in spans.items():
                met.lose(Use(buffer, first, end), by)
        return met

    def lose(self, use: Use, by: str) -> None:
        """Bytes are overwritten; spans that touch become one."""
        first, end, rest = use.first, use.end, {}
        for (a, z), known in self.gone.get(use.buffer, {}).items():
            if a <= end and first <= z:
                first, end, by = min(first, a), max(end, z), known
            else:
                rest[a, z] = known
        self.gone[use.buffer] = {**rest, (first, end): by}
        if end - first == use.buffer.nbytes:
            self.present.discard(use.buffer)

    def gain(self, use: Use) -> None:
        """Bytes hold the buffer's own again."""
        self.present.add(use.buffer)
        spans = self.gone.pop(use.buffer, None)
        if spans:
            rest = {part: by for (first, end), by in spans.items() for part in ((first, min(end, use.first)),
                                                                              (max(first, use.end), end)) if part[0] < part[1]}
            if rest:
                self.gone[use.buffer] = rest

    def same(self, other: Contents) -> bool:
        mine, others = ({b: spans.keys() for b, spans in c.gone.items() if spans} for c in (self, other))
        return mine == others and self.present == other.present


class Replay:
    """Runs the steps on contents instead of numbers: both parts of each branch, each loop until nothing changes."""

    def __init__(self, program: Program, placed: Mapping[Buffer, PlannedBuffer]) -> None:
        self.program, self.placed = program, placed
        self.pools = {name: i for i, name in enumerate(dict.fromkeys(p.pool for p in placed.values()))}
        self.spans = np.array([(self.pools[p.pool], p.byte_offset, p.byte_offset + b.nbytes) for b, p in placed.items()],
                              np.int64).reshape(-1, 3)
        self.buffers = list(placed)
        self.near_known: dict[Buffer, frozenset[Buffer]] = {}
        self.known: dict[tuple[int, tuple[int, int] | None], Touched] = {}
        self.rows_read: dict[int, list[RowLoad]] = {}
        self.now = Contents()
        self.faults: list[str] = []

    def whole_run(self) -> None:
        """The caller gives inputs, and finds outputs; constants are there before and after."""
        given = [b for b in (*self.program.constants, *self.program.inputs) if b in self.placed]
        for buffer in given:
            self.write(whole(buffer))
        if any(b in self.now.gone for b in given):
            self.faults.append("inputs or constants share bytes")
        self.run(self.program.steps)
        for buffer in (*self.program.outputs, *self.program.constants):
            if buffer in self.placed:
                self.read(whole(buffer), "the caller")

    def run(self, steps: Iterable[Step]) -> None:
        for step in steps:
            match step:
                case Compute(kernel, rows):
                    if (kernel, rows) not in self.known:
                        self.known[kernel, rows] = self.touched(kernel, rows)
                        self.check_at_once(kernel, rows, self.known[kernel, rows])
                    self.compute(self.known[kernel, rows])
                case Branch(condition, then, otherwise):
                    self.read(whole(condition), "a branch")
                    before = self.now.copy()
                    self.run(then)
                    after, self.now = self.now, before
                    self.run(otherwise)
                    self.now = self.now.meet(after)
                case Loop():
                    self.loop(step)
                case CheckWritten() | MarkWritten():
                    pass

    def loop(self, loop: Loop) -> None:
        """Each turn starts with what is certain after any number of turns; that only shrinks, so it ends."""
        while True:
            start = self.now.copy()
            self.run(loop.test)
            self.read(whole(loop.condition), "a loop")
            end = self.now.copy()
            self.run(loop.body)
            met = start.meet(self.now)
            if met.same(start):
                self.now = end
                return
            self.now = met

    def compute(self, step: Touched) -> None:
        for use in step.reads:
            self.read(use, step.name)
        for use in (*step.writes, *step.scratch):
            self.write(use)

    def read(self, use: Use, reader: str) -> None:
        for (first, end), by in self.now.gone.get(use.buffer, {}).items():
            if first < use.end and use.first < end:
                self.faults.append(f"{reader} reads {self.placed[use.buffer].name}, whose bytes {by} has overwritten")
                return

    def write(self, use: Use) -> None:
        place = self.placed.get(use.buffer)
        if place is None:
            return
        start, end = place.byte_offset + use.first, place.byte_offset + use.end
        for other in self.near(use.buffer) & self.now.present:
            at = self.placed[other].byte_offset
            lost = Use(other, max(start - at, 0), min(end - at, other.nbytes))
            if lost.first < lost.end:
                self.now.lose(lost, place.name)
        self.now.gain(use)

    def near(self, buffer: Buffer) -> frozenset[Buffer]:
        """The other buffers that share bytes with this one at some time."""
        if buffer not in self.near_known:
            place = self.placed[buffer]
            pool, first, end = self.spans.T
            here = (pool == self.pools[place.pool]) & (first < place.byte_offset + buffer.nbytes) & (end > place.byte_offset)
            self.near_known[buffer] = frozenset(self.buffers[i] for i in np.flatnonzero(here)) - {buffer}
        return self.near_known[buffer]

    # ---- what a step touches -----------------------------------------------------------------------------------------
    def touched(self, kernel: int, rows: tuple[int, int] | None) -> Touched:
        """All bytes that one step reads, writes, and uses for itself."""
        function = self.program.functions[kernel]
        read, written = buffers_read(function), buffers_written(function)
        reads = [whole(b) for b in function.params if b in read]
        writes = [whole(b) for b in function.params if b in written]
        if rows is not None and self.program.kernels:
            reads, writes = self.some_rows(kernel, rows, reads, writes)
        elif rows is not None and rows[0] > 0:  # it goes on: what is there already must be there still
            reads += writes
        return Touched(function.name, tuple(reads), tuple(writes), tuple(map(whole, function.scratch)))

    def some_rows(self, number: int, rows: tuple[int, int], reads: list[Use],
                  writes: list[Use]) -> tuple[list[Use], list[Use]]:
        """Of buffers that lie in memory as the kernel's expression has them: the rows alone."""
        kernel = self.program.kernels[number]
        if number not in self.rows_read:
            self.rows_read[number] = [row_load(load, kernel) for load in loads(kernel.value)]
        found: dict[Buffer, Bytes] = {}
        for load in self.rows_read[number]:
            first, end = load.rows(*rows)
            known = found.get(load.buffer, (first, end))
            found[load.buffer] = min(first, known[0]), max(end, known[1])
        return ([part_of(u.buffer, *found[u.buffer]) if u.buffer in found else u for u in reads],
                [part_of(u.buffer, *rows) if u.buffer is kernel.out else u for u in writes])

    def check_at_once(self, kernel: int, rows: tuple[int, int] | None, step: Touched) -> None:
        """What one step writes shares no byte with what else it uses, unless its loops read each byte before."""
        written = [use for use in (*step.writes, *step.scratch) if use.buffer in self.placed]
        used = {use.buffer for use in (*step.reads, *written)}
        written = [use for use in written if self.near(use.buffer) & used]
        for i, one in enumerate(written):
            for other in (*step.reads, *written[:i]):
                if self.share(one, other) and not (rows is None and other in step.reads and one in step.writes
                                                   and self.is_over(kernel, other.buffer, one.buffer)):
                    pair = f"{self.placed[other.buffer].name} and {self.placed[one.buffer].name}"
                    self.faults.append(f"{step.name} uses {pair} at once, which share bytes")

    def share(self, one: Use, other: Use) -> bool:
        a, b = self.placed.get(one.buffer), self.placed.get(other.buffer)
        return (one.buffer is not other.buffer and a is not None and b is not None and a.pool == b.pool
                and max(a.byte_offset + one.first, b.byte_offset + other.first)
                < min(a.byte_offset + one.end, b.byte_offset + other.end))

    def is_over(self, kernel: int, read: Buffer, written: Buffer) -> bool:
        """Whether the one lies exactly on the other, and the loops go well with that."""
        return (self.placed[read].byte_offset == self.placed[written].byte_offset
                and may_overwrite(self.program.functions[kernel], read, written))


def whole(buffer: Buffer) -> Use:
    return Use(buffer, 0, buffer.nbytes)


def rows_dimension(buffer: Buffer) -> int:
    return next((d for d, n in enumerate(buffer.shape) if n > 1), 0)


def part_of(buffer: Buffer, first: int, end: int) -> Use:
    """Rows of a buffer, which are cut to those that it has."""
    rows = buffer.shape[rows_dimension(buffer)]
    nbytes = buffer.nbytes // rows
    return Use(buffer, min(first, rows - 1) * nbytes, min(end, rows) * nbytes)


def row_load(load: Load, kernel: Kernel) -> RowLoad:
    """A load as the rows of its kernel move it."""
    d = rows_dimension(load.buffer)
    flat = load.is_flat and len(load.buffer.shape) > 1
    place, axis = load.index[0] if flat else load.index[d], next(a for a in kernel.axes if a.extent > 1)
    unit = load.buffer.strides[d] if flat else 1
    if axis in place.hidden:
        return RowLoad(load.buffer, 0, load.buffer.size, 0, 1)
    low, high = place.without(axis).bounds
    return RowLoad(load.buffer, low, high, place.coefficient(axis), unit)
