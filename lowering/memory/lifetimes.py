"""Live ranges of a program's buffers: the steps in one line, and the spans of that line in which a buffer holds a value
that is still needed. The planner's conflicts follow from these.

Steps are numbered in the order they are written: the arms of a branch one after the other, a loop's test, its
condition, its body; tasks that run at the same time are one step. Execution takes some of the steps in that order, and
goes back only at the end of a loop's body. So a buffer is live from its first use to its last; only a buffer that a later
iteration of a loop may still read, or that is read after the loop, is live over the whole loop.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from ...runtime.records import dataclass
from ..elements.expression import Buffer
from ..kernels.kernel import Branch, CheckTrue, CheckWritten, Compute, Loop, MarkWritten, Parallel, Step
from ..loops.ir import Function, buffers_read, buffers_written
from .buffers import Ticks


@dataclass(frozen=True, slots=True)
class KernelAccess:
    """The memory accesses of one kernel: buffers whose contents it reads, buffers that it writes (every element, when it
    runs from its first row to its last), and scratch whose contents mean nothing before and after."""
    reads: tuple[Buffer, ...] = ()
    writes: tuple[Buffer, ...] = ()
    scratch: tuple[Buffer, ...] = ()


def access_of(function: Function) -> KernelAccess:
    """Return the accesses of a function of the loop IR to its buffers, in the order of its parameters."""
    read, written = buffers_read(function), buffers_written(function)
    return KernelAccess(tuple(b for b in function.params if b in read), tuple(b for b in function.params if b in written),
                        function.scratch)


def at_once(accesses: Iterable[KernelAccess]) -> KernelAccess:
    """Return the accesses of kernels that are tiled by rows, in tasks: a buffer that one kernel writes is no read of
    another."""
    every = list(dict.fromkeys(accesses))
    writes = dict.fromkeys(b for a in every for b in a.writes)
    return KernelAccess(tuple(dict.fromkeys(b for a in every for b in a.reads if b not in writes)), tuple(writes),
                        tuple(dict.fromkeys(b for a in every for b in a.scratch)))


@dataclass(slots=True)
class Flow:
    """The data flow of a piece of program, which may read `exposed` before writing it, and has written `written` at its end."""
    exposed: set[Buffer] = field(default_factory=set)
    written: set[Buffer] = field(default_factory=set)

    def add(self, after: Flow) -> None:
        """Append the flow of the next piece."""
        self.exposed |= after.exposed - self.written
        self.written |= after.written

    def then(self, after: Flow) -> Flow:
        return Flow(self.exposed | (after.exposed - self.written), self.written | after.written)


@dataclass(slots=True)
class Timeline:
    """The line of steps as it grows. `uses` are (tick, buffer) in order; `loops` are the span of a loop, its uses as a
    range of `uses`, and the buffers that the loop reads before it writes them."""
    accesses: Sequence[KernelAccess]
    tick: int = 0
    uses: list[tuple[int, Buffer]] = field(default_factory=list)
    scratch: dict[Buffer, list[int]] = field(default_factory=dict)
    loops: list[tuple[Ticks, range, set[Buffer]]] = field(default_factory=list)

    def run(self, steps: Iterable[Step]) -> Flow:
        flow = Flow()
        for step in steps:
            flow.add(self.step(step))
        return flow

    def step(self, step: Step) -> Flow:
        match step:
            case Compute(kernel, rows):
                return self.compute(self.accesses[kernel], continues=rows is not None and rows[0] > 0)
            case Parallel(tasks):
                return self.compute(at_once([self.accesses[s.kernel] for task in tasks for s in task]), continues=False)
            case Branch(condition, then, otherwise):
                tested, first, second = self.read(condition), self.run(then), self.run(otherwise)
                return tested.then(Flow(first.exposed | second.exposed, first.written & second.written))
            case Loop():
                return self.loop(step)
            case CheckWritten(buffer) | CheckTrue(buffer) | MarkWritten(buffer):
                return self.read(buffer)

    def compute(self, access: KernelAccess, continues: bool) -> Flow:
        """Add one step of a kernel; a step that `continues` with later rows needs the rows that already exist."""
        self.uses += [(self.tick, b) for b in (*access.reads, *access.writes)]
        for b in access.scratch:
            self.scratch.setdefault(b, []).append(self.tick)
        self.tick += 1
        reads = access.reads + access.writes if continues else access.reads
        return Flow(set(reads), set(access.writes))

    def read(self, buffer: Buffer) -> Flow:
        return self.compute(KernelAccess(reads=(buffer,)), continues=False)

    def loop(self, loop: Loop) -> Flow:
        """Add a loop. The test runs at least once; the body may not run."""
        start, first_use = self.tick, len(self.uses)
        test = self.run(loop.test).then(self.read(loop.condition))
        flow = test.then(self.run(loop.body))
        self.loops.append(((start, self.tick - 1), range(first_use, len(self.uses)), flow.exposed))
        return Flow(flow.exposed, test.written)


def lifetimes(steps: Iterable[Step], accesses: Sequence[KernelAccess]) -> dict[Buffer, tuple[Ticks, ...]]:
    """Return the spans of ticks in which each buffer that the steps use is live, in ascending order.

    `accesses[i]` are those of `Compute(i)`. Scratch may have many spans, one for each run of its kernel; other buffers
    have one.
    """
    line = Timeline(accesses)
    line.run(steps)
    begun: dict[Buffer, int] = {}
    for tick, buffer in line.uses:
        begun.setdefault(buffer, tick)
    ended = {buffer: tick for tick, buffer in line.uses}
    hull = {buffer: (tick, ended[buffer]) for buffer, tick in begun.items()}
    for (start, end), uses, exposed in line.loops:
        for buffer in dict.fromkeys(line.uses[i][1] for i in uses):
            first, last = hull[buffer]
            if buffer in exposed or last > end:
                hull[buffer] = min(first, start), max(last, end)
    found: dict[Buffer, tuple[Ticks, ...]] = {b: (span,) for b, span in hull.items()}
    for buffer, ticks in line.scratch.items():
        found[buffer] = joined([*found.get(buffer, ()), *((t, t) for t in ticks)])
    return found


def joined(spans: Iterable[Ticks]) -> tuple[Ticks, ...]:
    """Return the same ticks in as few spans as possible, in ascending order."""
    result: list[Ticks] = []
    for first, last in sorted(spans):
        if result and first <= result[-1][1] + 1:
            result[-1] = result[-1][0], max(last, result[-1][1])
        else:
            result.append((first, last))
    return tuple(result)
