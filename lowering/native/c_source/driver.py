"""The driver of a program in C: the functions that run its steps, as `driver.driver` writes them for LLVM. Kernels are called
with pointers. A long run of calls is rows of a constant table that a loop walks. Branches, loops and checks are C's own. Tasks
go to the caller's thread pool, phase by phase, or run one after the other without a pool.
"""
from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...graph.types import ITEM_SIZES
from ...kernels.kernel import Branch, CheckTrue, CheckWritten, Compute, Loop, MarkWritten, Parallel, Step
from ...loops.ir import buffers_written
from ...loops.program import Program
from ..driver.driver import MOST_CALLS, Call, check_outputs, row_count
from ..driver.parallel_steps import is_parallel
from ..driver.variable_rollback import Rollback, rollback_of
from .c_text import memory_type

INDENT = "    "


@dataclass(frozen=True, slots=True)
class CPlace:
    """The location of memory: a C expression that points to it, or to its bytes where buffers of several types share it
    (`is_shared`)."""
    pointer: str
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class CPlaces:
    """The memory of a program, in a function that has a `frame`: `buffers`, the `flags` of variables as C expressions of their
    bytes, and, where the program needs them, room for copies of variables and the thread pool."""
    buffers: Mapping[Buffer, CPlace]
    flags: Mapping[Buffer, str]
    rollback: CPlace | None = None
    pool: str | None = None


@dataclass(slots=True)
class CDriver:
    """The writer of one program's driver; names begin with `prefix`. `kernels[i]` is the name of kernel i's function. `table`
    holds rows of calls, `bounds` the rows of the table where tasks begin and end."""
    prefix: str
    program: Program
    kernels: Sequence[str]
    places: CPlaces
    table: list[Call] = field(default_factory=list)
    bounds: list[int] = field(default_factory=list)
    used: dict[int, None] = field(default_factory=dict)

    @property
    def frame(self) -> str:
        return f"const struct {self.prefix}_frame *frame"

    def definitions(self) -> list[str]:
        """Return all functions and tables. The last one is the driver's `entry`: `<prefix>_steps`, or `<prefix>_guarded` where
        a failed run must restore variables."""
        check_outputs(self.program)
        rollback = rollback_of(self.program)
        body = self.steps(self.program.steps, 1)
        steps = "\n".join([f"static int32_t {self.prefix}_steps({self.frame}) {{", *self.unused(body), *body,
                           f"{INDENT}return TOSAIC_OK;", "}"])
        guarded = [self.guarded(rollback)] if rollback.variables else []
        return [*self.calling(), *self.walking(), *self.forking(), steps, *guarded]

    @property
    def entry(self) -> str:
        return f"{self.prefix}_{'guarded' if rollback_of(self.program).variables else 'steps'}"

    def unused(self, body: Sequence[str]) -> list[str]:
        return [] if any("frame" in line for line in body) else [f"{INDENT}(void)frame;"]

    # ---- kernels -----------------------------------------------------------------------------------------------------
    def call(self, kernel: int, low: str, high: str, task: str | None) -> str:
        """Return a call of a kernel with its pointers; for a buffer with copies, pass the copy of the task (None: the
        first)."""
        function = self.program.functions[kernel]
        written = buffers_written(function)
        passed = [self.argument(b, b in written, task) for b in (*function.params, *function.scratch)]
        return f"{self.kernels[kernel]}({', '.join([*passed, *([low, high] if function.rows is not None else [])])});"

    def argument(self, buffer: Buffer, is_written: bool, task: str | None) -> str:
        place = self.places.buffers[buffer]
        pointer = place.pointer
        if buffer.copies > 1 and task is not None:
            pointer += f" + (ptrdiff_t){task} * {buffer.nbytes // buffer.copies}"
        if not place.is_shared or ITEM_SIZES[buffer.dtype] > 1:
            return pointer
        own = memory_type(buffer.dtype)
        return pointer if own == "uint8_t" else f"({'' if is_written else 'const '}{own} *)({pointer})"

    def rows(self, step: Compute) -> tuple[int, int]:
        return step.rows or (0, row_count(self.program.kernels[step.kernel]))

    @property
    def task(self) -> str:
        """The additional parameter of functions in a program with parallel steps."""
        return ", int64_t task" if is_parallel(self.program) else ""

    def calling(self) -> list[str]:
        """`<prefix>_kernel`: one call of a row of the table."""
        if not self.used:
            return []
        task = "task" if self.task else None
        cases = [f"{INDENT}case {kernel}: {self.call(kernel, 'low', 'high', task)} break;" for kernel in self.used]
        given, text = ["low", "high", *([task] if task else [])], "\n".join(cases)
        unused = [f"{INDENT}(void){name};" for name in given if not re.search(rf"[ (]{name}[,)]|\){name} \*", text)]
        unused += self.unused(cases)
        return ["\n".join([f"static void {self.prefix}_kernel({self.frame}, unsigned number, int_fast32_t low, "
                           f"int_fast32_t high{self.task}) {{", *unused, f"{INDENT}switch (number) {{", *cases,
                           f"{INDENT}default: break;", f"{INDENT}}}", "}"])]

    def walking(self) -> list[str]:
        """Return the table of steps, and the loop that runs some of its rows."""
        if not self.table:
            return []
        t = "uint16_t" if max(max(row) for row in self.table) < 1 << 16 else "uint32_t"
        rows = ",\n".join(f"{INDENT}{{{kernel}, {low}, {high}}}" for kernel, low, high in self.table)
        given, p = ", task" if self.task else "", self.prefix
        return [f"/* Calls of kernels: number, first row, end row. */\n"
                f"static const struct {{ {t} kernel, low, high; }} {self.prefix}_table[{len(self.table)}] = {{\n{rows}\n}};",
                f"static void {self.prefix}_walk({self.frame}, int_fast32_t first, int_fast32_t end{self.task}) {{\n"
                f"    for (int_fast32_t i = first; i < end; ++i)\n"
                f"        {p}_kernel(frame, {p}_table[i].kernel, (int_fast32_t){p}_table[i].low,\n"
                f"            (int_fast32_t){p}_table[i].high{given});\n}}"]

    # ---- steps -------------------------------------------------------------------------------------------------------
    def steps(self, steps: Sequence[Step], depth: int) -> list[str]:
        lines: list[str] = []
        run: list[Compute] = []
        for step in steps:
            if isinstance(step, Compute) and step.tasks == 1:
                run.append(step)
                continue
            lines += self.run(run, depth) + self.step(step, depth)
            run = []
        return lines + self.run(run, depth)

    def run(self, steps: Sequence[Compute], depth: int) -> list[str]:
        """Return a run of consecutive steps: direct calls if they are few and each calls another kernel, else rows of the
        table."""
        calls, indent = [(step.kernel, *self.rows(step)) for step in steps], INDENT * depth
        if len(calls) <= MOST_CALLS and len({kernel for kernel, _, _ in calls}) == len(calls):
            return [indent + self.call(kernel, str(low), str(high), None) for kernel, low, high in calls]
        first, end = self.listed(calls)
        return [f"{indent}{self.prefix}_walk(frame, {first}, {end}{', 0' if self.task else ''});"]

    def listed(self, calls: Sequence[Call]) -> tuple[int, int]:
        """Append calls to the table; return its first new row and the end row."""
        first = len(self.table)
        self.used |= dict.fromkeys(kernel for kernel, _, _ in calls)
        self.table += calls
        return first, len(self.table)

    def step(self, step: Step, depth: int) -> list[str]:
        indent = INDENT * depth
        match step:
            case Compute(kernel, _, tasks):
                lines = []
                for low, high in itertools.pairwise((0, *self.program.functions[kernel].phases)):
                    edges = [low + (high - low) * i // tasks for i in range(tasks + 1)]
                    lines.append(indent + self.fork([[(kernel, *span)] for span in itertools.pairwise(edges)]))
                return lines
            case Parallel(own):
                return [indent + self.fork([[(s.kernel, *self.rows(s)) for s in task] for task in own])]
            case Branch(condition, then, otherwise):
                lines = [f"{indent}if ({self.is_set(condition)}) {{", *self.steps(then, depth + 1)]
                other = self.steps(otherwise, depth + 1)
                return [*lines, *([f"{indent}}} else {{", *other] if other else []), f"{indent}}}"]
            case Loop(test, condition, body):
                return [f"{indent}for (;;) {{", *self.steps(test, depth + 1),
                        f"{indent}{INDENT}if (!({self.is_set(condition)})) break;", *self.steps(body, depth + 1), f"{indent}}}"]
            case CheckWritten(variable, fault):
                return [f"{indent}if ({self.places.flags[variable]} == 0) return {fault + 1};"]
            case CheckTrue(condition, fault):
                return [f"{indent}if (!({self.is_set(condition)})) return {fault + 1};"]
            case MarkWritten(variable):
                return [f"{indent}{self.places.flags[variable]} = 1;"]
        raise TypeError(step)

    def is_set(self, condition: Buffer) -> str:
        """Return an expression that is true if the byte of the condition is not 0."""
        return f"*({self.places.buffers[condition].pointer}) != 0"

    # ---- tasks -------------------------------------------------------------------------------------------------------
    def fork(self, tasks: Sequence[Sequence[Call]]) -> str:
        """Return the call that runs tasks in parallel; each task is a range of rows of the table."""
        first = len(self.bounds)
        for calls in tasks:
            begin, end = self.listed(calls)
            self.bounds += [begin] if len(self.bounds) == first else []
            self.bounds.append(end)
        return f"{self.prefix}_fork(frame, {first}, {len(tasks)});"

    def forking(self) -> list[str]:
        """Return the definitions that run tasks; none in a program without tasks."""
        if not self.bounds:
            return []
        p, pool = self.prefix, self.places.pool
        return [f"/* Where in the table tasks begin and end. */\n"
                f"static const uint32_t {p}_bounds[{len(self.bounds)}] = {{{', '.join(map(str, self.bounds))}}};",
                f"struct {p}_job {{\n    {self.frame};\n    const uint32_t *bounds;\n}};",
                f"static void {p}_task(void *argument, int64_t part) {{\n"
                f"    const struct {p}_job *job = (const struct {p}_job *)argument;\n"
                f"    {p}_walk(job->frame, (int_fast32_t)job->bounds[part], (int_fast32_t)job->bounds[part + 1], part);\n}}",
                f"static void {p}_fork({self.frame}, int_fast32_t first, int64_t tasks) {{\n"
                f"    struct {p}_job job;\n    job.frame = frame;\n    job.bounds = {p}_bounds + first;\n"
                f"    if ({pool} != NULL) {{\n"
                f"        {pool}->parallel({pool}->context, {p}_task, &job, tasks);\n        return;\n    }}\n"
                f"    for (int64_t part = 0; part < tasks; ++part)\n        {p}_task(&job, part);\n}}"]

    # ---- failing without a trace -------------------------------------------------------------------------------------
    def guarded(self, rollback: Rollback) -> str:
        """Return the entry of a program that may fail after a write: where a check may fail, it copies the variables before the
        run, and copies them back if the run fails."""
        keep, undo = (self.copies(rollback, back, 2) for back in (False, True))
        condition = "1" if rollback.always else " || ".join(f"{self.places.flags[b]} == 0" for b in rollback.checked)
        return "\n".join([f"static int32_t {self.entry}({self.frame}) {{", f"    const int keeps = {condition};",
                          "    int32_t status;", "    if (keeps) {", *keep, "    }",
                          f"    status = {self.prefix}_steps(frame);", "    if (status != TOSAIC_OK && keeps) {", *undo,
                          "    }", "    return status;", "}"])

    def copies(self, rollback: Rollback, back: bool, depth: int) -> list[str]:
        assert self.places.rollback is not None, f"{self.program.name} has no room to keep its variables in"
        lines, room = [], self.places.rollback.pointer
        for i, (buffer, offset) in enumerate(rollback.variables):
            data, flag = self.places.buffers[buffer].pointer, self.places.flags[buffer]
            kept, kept_flag = f"{room} + {offset}", f"*({room} + {rollback.flags_at + i})"
            sides = (data, kept) if back else (kept, data)
            lines += [f"COPY({sides[0]}, {sides[1]}, {buffer.nbytes});",
                      f"{flag} = {kept_flag};" if back else f"{kept_flag} = {flag};"]
        return [INDENT * depth + line for line in lines]
