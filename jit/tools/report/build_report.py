"""The conversion of a lowered function to its report: the plan's buffers with the kernels that write and read them, and the
peaks."""
from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ....lowering.dialects.onnx.node import IN_FLOAT, MADE_FROM
from ....lowering.elements.expression import Buffer
from ....lowering.graph.file_position import FilePosition
from ....lowering.graph.quantized import Quantized, quantization_of
from ....lowering.kernels.kernel import Branch, CheckTrue, CheckWritten, Compute, Loop, MarkWritten, Parallel, Step
from ....lowering.loops.program import Program
from ....lowering.loops.traffic import Traffic, program_traffic
from ....lowering.memory.lifetimes import access_of
from ....lowering.memory.model_bound import model_bound
from ....lowering.memory.plan import Plan, PlannedBuffer, names_of
from ....lowering.memory.pool_traffic import pool_traffic
from ....lowering.native.driver.variable_rollback import rollback_of
from ....lowering.schedule.contraction.int8.word_panels import has_pairs
from ....lowering.schedule.contraction.pack_b import has_nibbles
from ....lowering.target.target import Target
from ....runtime.errors import Position, Source, printable
from .figures import BoardFit, BufferLine, KernelLine, NarrowConstants, PoolLine, StepLine
from .live import peak_of
from .model_names import model_names
from .shown_report import Report

if TYPE_CHECKING:
    from ...stage_data import LoweredData

NOTHING: Mapping[Buffer, Traffic] = {}
FLOAT16_INSTRUCTIONS = 2
"""Additional instructions of a float16 over a float32 on a Cortex-M: it is loaded, moved to the floating-point unit and
converted there."""
INT4_INSTRUCTIONS, INT4_SHIFTS = 1, 3
"""Additional instructions of two numbers in a byte over two bytes, with an instruction that extracts bits of a register and
sign-extends them, and without it. Counted in LLVM's code."""
PAIR_INSTRUCTIONS = 3 / 16
"""Additional instructions of bytes, per byte read, over pairs, which need no widening. Counted: 3 for eight weights."""
SOURCE_WIDTH = 120
"""Maximum number of characters of a model's line that a kernel shows."""


def report(lowered: LoweredData, ladder: bool = False, code: bool = False, boards: Sequence[BoardFit] = ()) -> Report:
    """Return the report of a function after lowering; on request with its `ladder` and the sizes of its object file (`code`),
    and with the verdicts for boards (`judge_boards`)."""
    from .ladder import ladder_of
    from .object_size import object_size
    program, plan = lowered.program, lowered.plan
    timeline, moved, numbers = tuple(ticks(program.steps)), program_traffic(program), lowered.quantized()
    called = model_names(lowered)
    buffers = tuple(labelled(b, called) for b in planned_lines(program, plan, timeline, moved))

    def lines(buffers: Sequence[Buffer]) -> tuple[BufferLine, ...]:
        return tuple(labelled(line(b, moved.get(b, Traffic()), numbers), called) for b in buffers)

    return Report(
        program.name, lines(program.inputs), lines(program.outputs),
        variable_lines(lines([v.buffer for v in program.variables]), plan),
        plan.size_bytes, plan.live_bytes, rollback_of(program).nbytes, plan.algorithm,
        sum(b.nbytes for b in program.constants), tuple(kernel_lines(program, called)), len(program.steps), buffers,
        f"{lowered.target.triple}, {lowered.target.cpu}", dict(lowered.seconds),
        pool_lines(plan, buffers, timeline, pool_traffic(program, plan, moved)),
        peak_of([b for b in buffers if b.kind != "constant"], timeline), timeline, lines(program.constants),
        ladder_of(lowered) if ladder else (), object_size(lowered) if code else None,
        tuple(map(str, lowered.module.attributes.get(IN_FLOAT, ()))), str(lowered.module.attributes.get(MADE_FROM, "")),
        tuple(narrow_constants(program, moved, lowered.target)), plan.is_proved, tuple(boards),
        model_bound(lowered.kernels, lowered.options.memory.workspace_io), lowered.options.memory.objective)


def in_line(steps: Sequence[Step]) -> Iterator[Step]:
    """Yield the steps in linear order, as `lowering.memory.lifetimes` numbers them: the parts of a branch one after the other;
    of a loop its test, its condition, its body. A branch or loop has the position at which its condition is tested."""
    for step in steps:
        match step:
            case Branch(_, then, otherwise):
                yield step
                yield from in_line((*then, *otherwise))
            case Loop(test, _, body):
                yield from in_line(test)
                yield step
                yield from in_line(body)
            case _:
                yield step


def narrow_constants(program: Program, moved: Mapping[Buffer, Traffic], target: Target) -> Iterator[NarrowConstants]:
    """Yield the savings and the costs of constants that the target keeps narrow."""
    halves = [b for b in program.constants if b.dtype == "float16" and target.keeps_float16]
    bytes_of_two = [b for b in program.constants if has_nibbles(b) and target.keeps_int4]
    pairs = [b for b in program.constants if has_pairs(b)]
    each = INT4_INSTRUCTIONS if "thumb2" in target.enabled else INT4_SHIFTS
    for type, buffers, numbers, instructions in (("float16", halves, 0.5, 0.5 * FLOAT16_INSTRUCTIONS),
                                                 ("int4", bytes_of_two, 2, each)):
        if buffers:
            read = sum(moved.get(b, Traffic()).read for b in buffers)
            yield NarrowConstants(type, sum(b.nbytes for b in buffers), int(read * numbers), int(read * instructions))
    if pairs:
        read, nbytes = sum(moved.get(b, Traffic()).read for b in pairs), sum(b.nbytes for b in pairs)
        yield NarrowConstants("int16", -nbytes // 2, -read // 2, -int(read * PAIR_INSTRUCTIONS))


def ticks(steps: Sequence[Step]) -> Iterator[StepLine]:
    """Yield the line of each step in linear order."""
    for step in in_line(steps):
        match step:
            case Compute(kernel, rows):
                yield StepLine("compute", kernel, rows)
            case Parallel(tasks):  # one step, named after the kernel that the others serve
                yield StepLine("compute", tasks[0][-1].kernel)
            case Branch() | Loop():
                yield StepLine("test")
            case CheckWritten() | CheckTrue():
                yield StepLine("check")
            case MarkWritten():
                yield StepLine("mark")


def pool_lines(plan: Plan, buffers: Sequence[BufferLine], timeline: Sequence[StepLine],
               moved: Mapping[str, Traffic]) -> tuple[PoolLine, ...]:
    def held(pool: str) -> list[BufferLine]:
        return [b for b in buffers if b.pool == pool]

    return tuple(PoolLine(p.name, p.kind, p.size_bytes, p.limit_bytes, p.live_bytes, p.alignment,
                          peak_of(held(p.name), timeline) if p.kind == "workspace" else None,
                          moved[p.name].read, moved[p.name].written) for p in plan.pools)


def planned_lines(program: Program, plan: Plan, timeline: Sequence[StepLine],
                  moved: Mapping[Buffer, Traffic] = NOTHING) -> Iterator[BufferLine]:
    """Yield the buffers of the plan, in the order of the program's names for them."""
    places = {b.name: b for b in plan.buffers}
    producers, readers = users(program, timeline)
    for buffer, name in names_of(program).items():
        if name in places:
            yield planned_line(buffer, places[name], producers.get(buffer), readers.get(buffer), moved.get(buffer, Traffic()))


def planned_line(buffer: Buffer, place: PlannedBuffer, producer: int | None, reader: int | None, moved: Traffic) -> BufferLine:
    kind = "scratch" if buffer.role == "scratch" else place.kind
    return BufferLine(place.name, buffer.dtype, buffer.shape, place.size_bytes, place.byte_offset, place.pool, kind,
                      place.live, producer, reader, moved.read, moved.written)


def users(program: Program, timeline: Sequence[StepLine]) -> tuple[dict[Buffer, int], dict[Buffer, int]]:
    """Return the kernel that writes each buffer first, and the one that reads it last; for scratch the first and last that use
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


def labelled(line: BufferLine, called: Mapping[str, str]) -> BufferLine:
    """Return the same line, with the model's name for the buffer."""
    return replace(line, label=called.get(line.name))


def kernel_lines(program: Program, called: Mapping[str, str]) -> Iterator[KernelLine]:
    """Yield the kernels, each with its line of the model."""
    texts: dict[Source, list[str]] = {}
    for kernel in program.kernels:
        place, out = kernel.position, kernel.out
        label = called.get(out.name) or (place.name if place else None)
        writes = f"{called.get(out.name, out.name)}: {out.dtype}{list(out.shape)}"
        yield KernelLine(writes, kernel.origin, place_text(place), source_line(place, texts) if place else None, label)


def place_text(position: Position | None) -> str | None:
    """Return a position in the model as text; in a file without lines, without the file's name."""
    match position:
        case FilePosition(path=path) if path:
            return printable(", ".join(path))
        case Position():
            return str(position)
        case _:
            return None


def source_line(position: Position, texts: dict[Source, list[str]]) -> str | None:
    """Return the line of the model at a position, truncated; `texts` caches the lines of each source."""
    source = position.source
    if source not in texts:
        texts[source] = [] if source.text is None else source.text.split("\n")
    lines = texts[source]
    found = lines[position.line - 1] if position.line <= len(lines) else source.line(position.line)
    text = printable((found or "").strip()[:SOURCE_WIDTH + 1])
    return None if not text else text if len(text) <= SOURCE_WIDTH else text[:SOURCE_WIDTH] + "..."


def variable_lines(lines: Sequence[BufferLine], plan: Plan) -> tuple[BufferLine, ...]:
    """Return the variables, with the pools that they are pinned to."""
    pools = {v.name: v.pool for v in plan.variables}
    return tuple(replace(line, pool=pools.get(line.name)) for line in lines)


def line(buffer: Buffer, moved: Traffic, numbers: Mapping[Buffer, Quantized]) -> BufferLine:
    told = quantization_of(numbers.get(buffer))
    scales, zero_points, axis = (told.scales, told.zero_points, told.axis) if told else ((), (), None)
    return BufferLine(buffer.name, buffer.dtype, buffer.shape, buffer.nbytes, strides=strides(buffer.shape), scales=scales,
                      zero_points=zero_points, axis=axis, read=moved.read, written=moved.written)


def strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a row-major array, in elements."""
    return tuple(math.prod(shape[axis + 1:]) for axis in range(len(shape)))
