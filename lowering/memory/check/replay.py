"""The core of the verifier: a replay of a program's steps on a plan without computing anything. It records which bytes of each
buffer another one has overwritten since they were written, and finds reads of those. With `placed_buffers` (shared bytes),
`step_uses` (bytes that a step touches), `step_order` (in which order) and `contents` (of the pools), it shares with the
planners only the order of accesses (`loops/dependence`)."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ...elements.expression import Buffer
from ...kernels.kernel import Branch, CheckTrue, CheckWritten, Compute, Loop, MarkWritten, Parallel, Step, walk
from ...loops.dependence.access_order import may_overwrite
from ...loops.program import Program
from .contents import Contents
from .placed_buffers import Layout, Use
from .step_order import are_apart
from .step_uses import StepUses, Touched

if TYPE_CHECKING:
    from ..plan import PlannedBuffer


class Replay:
    """A replay of the steps on contents instead of numbers: both arms of each branch, each loop until nothing changes."""

    def __init__(self, program: Program, placed: Mapping[Buffer, PlannedBuffer]) -> None:
        self.program, self.layout = program, Layout(placed)
        self.uses = StepUses(program, self.layout)
        self.known: dict[tuple[int, tuple[int, int] | None], Touched] = {}
        self.now = Contents(self.layout)
        self.faults: list[str] = []

    def whole_run(self) -> None:
        """Replay a whole run: the caller writes inputs and reads outputs; constants exist before and after."""
        given = (*self.program.constants, *self.program.inputs)
        for buffer in given:
            self.now.write(self.layout.whole(buffer))
        if any(b in self.now.gone for b in given):
            self.faults.append("inputs or constants share bytes")
        for step, last in zip(self.program.steps, self.last_used()):
            self.run((step,))
            self.now.forget(last)
        for buffer in (*self.program.outputs, *self.program.constants):
            self.read(self.layout.whole(buffer), "the caller")

    def last_used(self) -> list[list[Buffer]]:
        """Return, for each step of the whole run, the buffers that no later step touches, nor the caller."""
        last: dict[Buffer, int] = {}
        for number, step in enumerate(self.program.steps):
            for inner in walk((step,)):
                last.update((b, number) for b in touched_by(self.program, inner))
        found: list[list[Buffer]] = [[] for _ in self.program.steps]
        for buffer in last.keys() - {*self.program.outputs, *self.program.constants}:
            found[last[buffer]].append(buffer)
        return found

    def run(self, steps: Iterable[Step]) -> None:
        for step in steps:
            match step:
                case Compute(kernel, rows, tasks):
                    self.compute(kernel, rows, tasks)
                case Parallel():
                    self.parallel(step)
                case Branch(condition, then, otherwise):
                    self.read(self.layout.whole(condition), "a branch")
                    before = self.now.copy()
                    self.run(then)
                    after, self.now = self.now, before
                    self.run(otherwise)
                    self.now = self.now.meet(after)
                case Loop():
                    self.loop(step)
                case CheckTrue(condition):
                    self.read(self.layout.whole(condition), "a check")
                case CheckWritten() | MarkWritten():
                    pass

    def loop(self, loop: Loop) -> None:
        """Replay a loop: each iteration starts with the contents that are certain after any number of iterations. These only
        shrink, so the replay ends."""
        while True:
            start = self.now.copy()
            self.run(loop.test)
            self.read(self.layout.whole(loop.condition), "a loop")
            end = self.now.copy()
            self.run(loop.body)
            met = start.meet(self.now)
            if met.same(start):
                self.now = end
                return
            self.now = met

    def compute(self, kernel: int, rows: tuple[int, int] | None, tasks: int) -> None:
        step = self.known.get((kernel, rows))
        if step is None:
            step = self.known[kernel, rows] = self.uses.touched(kernel, rows)
            is_in_order = tasks == 1 and (rows is None or bool(self.program.kernels))
            self.check_at_once(step, kernel if is_in_order else None, rows is None)
        self.take(step)

    def parallel(self, parallel: Parallel) -> None:
        """Replay tasks that run at the same time as one step, in which no two buffers share a byte. Each task has its own copy
        of a buffer that the tasks both write and read."""
        step = self.uses.at_once(tuple(dict.fromkeys(s.kernel for task in parallel.tasks for s in task)))
        self.check_at_once(step, None, is_whole=False)
        self.take(step)

    def take(self, step: Touched) -> None:
        for use in step.reads:
            self.read(use, step.name)
        for use in step.scratch + step.writes:  # a byte of both is the result's in the end: `are_apart`
            self.now.write(use)

    def read(self, use: Use, reader: str) -> None:
        if (by := self.now.clobbered(use)) is not None:
            self.faults.append(f"{reader} reads {self.layout.name(use.buffer)}, whose bytes {by} has overwritten")

    def check_at_once(self, step: Touched, kernel: int | None, is_whole: bool) -> None:
        """Check that a buffer that one step writes shares no byte with another that the step uses, unless `kernel` is done with
        each byte in the one buffer before it uses the byte in the other."""
        uses = step.uses if step.pairs else ()
        for i, j in step.pairs:
            one, other = uses[i], uses[j]
            is_over = is_whole and other in step.reads and one in step.writes
            if self.layout.share(one, other) and (kernel is None or not (
                    (is_over and self.is_over(kernel, other.buffer, one.buffer))
                    or self.are_apart(kernel, one.buffer, other.buffer, is_whole))):
                pair = f"{self.layout.name(other.buffer)} and {self.layout.name(one.buffer)}"
                self.faults.append(f"{step.name} uses {pair} at once, which share bytes")

    def is_over(self, kernel: int, read: Buffer, written: Buffer) -> bool:
        """True if `written` is exactly over `read`, and the order of the loops allows it."""
        return (self.layout.at[read][0] == self.layout.at[written][0]
                and may_overwrite(self.program.functions[kernel], read, written))

    def are_apart(self, kernel: int, one: Buffer, other: Buffer, is_whole: bool) -> bool:
        """True if each byte that both have is needed in only one of the buffers at a time."""
        distance = self.layout.at[other][0] - self.layout.at[one][0]
        return are_apart(self.program.functions[kernel], one, other, distance, is_whole)


def touched_by(program: Program, step: Step) -> Sequence[Buffer]:
    """Return the buffers that a step itself touches, without its nested steps."""
    match step:
        case Compute(kernel):
            return *program.functions[kernel].params, *program.functions[kernel].scratch
        case Branch(condition) | Loop(_, condition) | CheckTrue(condition):
            return (condition,)
    return ()
