"""From a lowered function to its report: the plan's buffers with the kernels that write and read them, and the peaks."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ....lowering.elements.expression import Buffer
from ....lowering.kernels.kernel import Branch, CheckTrue, CheckWritten, Compute, Loop, MarkWritten, Parallel, Step
from ....lowering.loops.program import Program
from ....lowering.memory.lifetimes import access_of
from ....lowering.memory.plan import Plan, PlannedBuffer, names_of
from ....lowering.native.driver.variable_rollback import rollback_of
from ....runtime.errors import Position, Source, printable
from .figures import BufferLine, KernelLine, PoolLine, StepLine
from .live import peak_of
from .text import Report

if TYPE_CHECKING:
    from ...stage_data import LoweredData

SOURCE_WIDTH = 120
"""Characters of a line of the model that a kernel shows at most."""


def report(lowered: LoweredData, ladder: bool = False, code: bool = False) -> Report:
    """The report of a function after lowering; with its `ladder`, and with the sizes of its object file (`code`), where
    asked."""
    from .ladder import ladder_of
    from .object_size import object_size
    program, plan = lowered.program, lowered.plan
    timeline = tuple(ticks(program.steps))
    buffers = tuple(planned_lines(program, plan, timeline))
    return Report(
        program.name, lines(program.inputs), lines(program.outputs), tuple(variable_lines(program, plan)),
        plan.size_bytes, plan.lower_bound, rollback_of(program).nbytes, plan.algorithm,
        sum(b.nbytes for b in program.constants), tuple(kernel_lines(program)), len(program.steps), buffers,
        f"{lowered.target.triple}, {lowered.target.cpu}", dict(lowered.seconds),
        pool_lines(plan, buffers, timeline),
        peak_of([b for b in buffers if b.kind != "constant"], timeline), timeline, lines(program.constants),
        ladder_of(lowered) if ladder else (), object_size(lowered) if code else None)


def ticks(steps: Sequence[Step]) -> Iterator[StepLine]:
    """The steps in one line, as `lowering.memory.lifetimes` numbers them: the parts of a branch one after the other, of a
    loop its test, its condition, its body."""
    for step in steps:
        match step:
            case Compute(kernel, rows):
                yield StepLine("compute", kernel, rows)
            case Parallel(tasks):  # one step, named after the kernel that the others are for
                yield StepLine("compute", tasks[0][-1].kernel)
            case Branch(_, then, otherwise):
                yield StepLine("test")
                yield from ticks((*then, *otherwise))
            case Loop(test, _, body):
                yield from ticks(test)
                yield StepLine("test")
                yield from ticks(body)
            case CheckWritten() | CheckTrue():
                yield StepLine("check")
            case MarkWritten():
                yield StepLine("mark")


def pool_lines(plan: Plan, buffers: Sequence[BufferLine], timeline: Sequence[StepLine]) -> tuple[PoolLine, ...]:
    def held(pool: str) -> list[BufferLine]:
        return [b for b in buffers if b.pool == pool]

    return tuple(PoolLine(p.name, p.kind, p.size_bytes, p.limit_bytes, p.lower_bound, p.alignment,
                          peak_of(held(p.name), timeline) if p.kind == "workspace" else None) for p in plan.pools)


def planned_lines(program: Program, plan: Plan, timeline: Sequence[StepLine]) -> Iterator[BufferLine]:
    """The buffers of the plan, in the order of the program's names for them."""
    places = {b.name: b for b in plan.buffers}
    producers, readers = users(program, timeline)
    for buffer, name in names_of(program).items():
        if name in places:
            yield planned_line(buffer, places[name], producers.get(buffer), readers.get(buffer))


def planned_line(buffer: Buffer, place: PlannedBuffer, producer: int | None, reader: int | None) -> BufferLine:
    kind = "scratch" if buffer.role == "scratch" else place.kind
    return BufferLine(place.name, buffer.dtype, buffer.shape, place.size_bytes, place.byte_offset, place.pool, kind,
                      place.live, producer, reader)


def users(program: Program, timeline: Sequence[StepLine]) -> tuple[dict[Buffer, int], dict[Buffer, int]]:
    """The kernel that writes each buffer first, and the one that reads it last; of scratch the first and last that use
    it."""
    accesses = [access_of(f) for f in program.functions]
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    for step in timeline:
        if step.kernel is not None:
            access = accesses[step.kernel]
            for buffer in (*access.writes, *access.scratch):
                first.setdefault(buffer, step.kernel)
            last.update(dict.fromkeys((*access.reads, *access.scratch), step.kernel))
    return first, last


def kernel_lines(program: Program) -> Iterator[KernelLine]:
    """The kernels, each with its line of the model."""
    texts: dict[Source, list[str]] = {}
    for kernel in program.kernels:
        place, writes = kernel.position, f"{kernel.out.name}: {kernel.out.dtype}{list(kernel.out.shape)}"
        yield KernelLine(writes, kernel.origin, str(place) if place else None, source_line(place, texts) if place else None)


def source_line(position: Position, texts: dict[Source, list[str]]) -> str | None:
    """The line of the model at a position, cut to a line's length; `texts` remembers the lines of each source."""
    source = position.source
    if source not in texts:
        texts[source] = [] if source.text is None else source.text.split("\n")
    lines = texts[source]
    found = lines[position.line - 1] if position.line <= len(lines) else source.line(position.line)
    text = printable((found or "").strip()[:SOURCE_WIDTH + 1])
    return None if not text else text if len(text) <= SOURCE_WIDTH else text[:SOURCE_WIDTH] + "..."


def variable_lines(program: Program, plan: Plan) -> Iterator[BufferLine]:
    """The variables, with the pools that they are pinned to."""
    pools = {v.name: v.pool for v in plan.variables}
    for variable in program.variables:
        yield replace(line(variable.buffer), pool=pools.get(variable.buffer.name))


def line(buffer: Buffer) -> BufferLine:
    return BufferLine(buffer.name, buffer.dtype, buffer.shape, buffer.nbytes)


def lines(buffers: Sequence[Buffer]) -> tuple[BufferLine, ...]:
    return tuple(map(line, buffers))
