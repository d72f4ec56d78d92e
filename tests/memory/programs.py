"""Programs for the planner's tests: functions that only say what they read and write, random programs in which every
read has a write before it, and a machine that runs a program on real bytes, at the offsets of a plan.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.kernels.kernel import Branch, Compute, Loop, Step
from tosaic.lowering.loops.ir import INDEX, Address, Function, Literal, LoadFrom, Stmt, StoreTo, Type, Var, walk
from tosaic.lowering.loops.program import Program
from tosaic.lowering.memory.plan import Plan, PlannedBuffer, names_of

ZERO = Literal(0, INDEX)
BYTE = Type("int8")


@dataclass(slots=True)
class Sketch:
    """A program in the making."""
    functions: list[Function] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)

    def buffer(self, name: str, size: int = 64, scratch: bool = False) -> Buffer:
        self.buffers.append(Buffer(name, "int8", (size,), "scratch" if scratch else "temporary"))
        return self.buffers[-1]

    def kernel(self, reads: Sequence[Buffer] = (), writes: Sequence[Buffer] = (),
               scratch: Sequence[Buffer] = ()) -> int:
        """The number of a function that writes and reads these buffers: not in an order that would let them share bytes."""
        body: list[Stmt] = [StoreTo(Address(b, ZERO, 0), Literal(1, BYTE), 1) for b in (*writes, *scratch)]
        body += [LoadFrom(Var(i, BYTE, 0), Address(b, ZERO, 0), 1) for i, b in enumerate(reads)]
        params = tuple(dict.fromkeys((*reads, *writes)))
        self.functions.append(Function(f"kernel_{len(self.functions)}", params, tuple(scratch), body))
        return len(self.functions) - 1

    def step(self, reads: Sequence[Buffer] = (), writes: Sequence[Buffer] = (), scratch: Sequence[Buffer] = (),
             rows: tuple[int, int] | None = None) -> Compute:
        return Compute(self.kernel(reads, writes, scratch), rows)

    def program(self, *steps: Step) -> Program:
        return Program("main", (), (), (), tuple(self.functions), steps)


# ---- random programs -------------------------------------------------------------------------------------------------
@st.composite
def programs(draw: st.DrawFn, steps: int = 12) -> Program:
    """A program with branches, loops, scratch, and buffers that are written again; reads only what has been written on
    every way there."""
    sketch = Sketch()
    flag = sketch.buffer("flag", 1)
    return sketch.program(sketch.step((), (flag,)), *draw_steps(draw, sketch, [flag], steps, 2))


def draw_steps(draw: st.DrawFn, sketch: Sketch, written: list[Buffer], count: int, depth: int) -> tuple[Step, ...]:
    """Steps that may read `written`, which grows by what they surely write."""
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, count))):
        kind = draw(st.sampled_from(["compute"] * 5 + ["rows", "branch", "loop"])) if depth else "compute"
        match kind:
            case "compute":
                steps.append(draw_compute(draw, sketch, written))
            case "rows":
                whole = draw_compute(draw, sketch, written)
                steps += [Compute(whole.kernel, (0, 4)), *draw_steps(draw, sketch, written, 3, 0),
                          Compute(whole.kernel, (4, 8))]
            case "branch":
                condition, then, otherwise = draw(st.sampled_from(written)), list(written), list(written)
                steps.append(Branch(condition, draw_steps(draw, sketch, then, 4, depth - 1),
                                    draw_steps(draw, sketch, otherwise, 4, depth - 1)))
                written += [b for b in then if b in otherwise and b not in written]
            case "loop":
                test = draw_steps(draw, sketch, written, 3, depth - 1)
                condition = draw(st.sampled_from(written))
                steps.append(Loop(test, condition, draw_steps(draw, sketch, list(written), 5, depth - 1)))
    return tuple(steps)


def draw_compute(draw: st.DrawFn, sketch: Sketch, written: list[Buffer]) -> Compute:
    reads = draw(st.lists(st.sampled_from(written), max_size=3, unique_by=id))
    old = [b for b in sketch.buffers if b.role == "temporary"]
    if draw(st.integers(0, 3)) == 0:
        out = draw(st.sampled_from(old))
    else:
        out = sketch.buffer(f"t{len(sketch.buffers)}", draw(st.integers(1, 300)))
    scratch = []
    if draw(st.integers(0, 4)) == 0:
        scratch.append(sketch.buffer("scratch", draw(st.integers(1, 300)), scratch=True))
    if out not in written:
        written.append(out)
    return sketch.step(reads, (out,), scratch)


# ---- running one on bytes --------------------------------------------------------------------------------------------
class Clobbered(Exception):
    """A kernel read bytes that are not what was written."""


class Machine:
    """Runs a program: a write marks every byte of a buffer with the buffer and the number of the write; a read wants
    all bytes to be marked so. `decide` answers each condition."""

    def __init__(self, program: Program, plan: Plan, decide: Callable[[], bool]) -> None:
        names, places = names_of(program), {b.name: b for b in plan.buffers}
        self.program, self.decide = program, decide
        self.places: dict[Buffer, PlannedBuffer] = {b: places[name] for b, name in names.items() if name in places}
        self.memory: dict[tuple[str, int], tuple[Buffer, int]] = {}
        self.version: dict[Buffer, int] = {}

    def run(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case Compute(kernel, rows):
                    self.compute(self.program.functions[kernel], rows is not None and rows[0] > 0)
                case Branch(condition, then, otherwise):
                    self.read(condition)
                    self.run(then if self.decide() else otherwise)
                case Loop(test, condition, body):
                    while True:
                        self.run(test)
                        self.read(condition)
                        if not self.decide():
                            break
                        self.run(body)

    def compute(self, function: Function, continues: bool) -> None:
        """Inputs are read, outputs and scratch are written, and then all of them are looked at: whatever order the
        kernel has, nothing that it uses may share bytes. One that goes on needs what it has written before."""
        reads = [s.address.buffer for s in walk(function.body) if isinstance(s, LoadFrom)]
        stores = [s.address.buffer for s in walk(function.body) if isinstance(s, StoreTo)]
        kept = function.params if continues else reads
        for buffer in kept:
            self.read(buffer)
        for buffer in stores:
            if buffer not in kept or not continues:
                self.write(buffer)
        for buffer in (*reads, *stores):
            self.read(buffer)

    def cells(self, buffer: Buffer) -> list[tuple[str, int]]:
        place = self.places[buffer]
        return [(place.pool, place.byte_offset + i) for i in range(buffer.nbytes)]

    def write(self, buffer: Buffer) -> None:
        self.version[buffer] = self.version.get(buffer, 0) + 1
        self.memory.update(dict.fromkeys(self.cells(buffer), (buffer, self.version[buffer])))

    def read(self, buffer: Buffer) -> None:
        if any(self.memory.get(cell) != (buffer, self.version[buffer]) for cell in self.cells(buffer)):
            raise Clobbered(buffer.name)
