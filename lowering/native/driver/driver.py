"""The driver of a program in LLVM IR: the function that runs its steps. It is between the kernels that `emit` writes and its
callers (`process/load` in this process, `c_object/entry` in objects); `buffer_addresses` describes its memory.

Consecutive steps are rows of a constant table (kernel, first row, end row) that a loop walks; branches, loops and faults are
real ones. A kernel in tasks is forked on the pool phase by phase; the end of each phase is a barrier. In this process each
iteration of a loop polls the interrupt flag.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from ....runtime.interrupts import INTERRUPTED, LOOK, RUN_WORDS, START
from ...elements.expression import Buffer
from ...kernels.kernel import Branch, CheckTrue, CheckWritten, Compute, Kernel, Loop, MarkWritten, Parallel, Step
from ...loops.ir import buffers_written
from ...loops.program import Program
from ...machine_code.llvm_writer import Function, Member, Value, Writer, constant, data, symbol
from .buffer_addresses import BufferAddresses, Place, address_of
from .parallel_steps import bounds_data, fork, is_parallel, run_task
from .variable_rollback import Rollback, rollback_of

MOST_CALLS = 16
"""Maximum number of consecutive calls without a table: so few take less code than a walk of the table."""

ROW = "{ i32, i32, i32 }"
"""LLVM's type of a row of the table of steps."""
KERNEL, LOW, HIGH = Member(0, "i32"), Member(4, "i32"), Member(8, "i32")

Call = tuple[int, int, int]
"""A kernel, and its first and end row."""


class Driver:
    """The functions that run one program: `@<prefix>.run(ptr %frame) -> i32` returns 0, or 1 + the number of a fault, or
    INTERRUPTED.

    `names[i]` is the name of kernel i's function in the module; an `exported` program is called from outside the module.
    `declared` collects the module's other declarations.
    """

    def __init__(self, prefix: str, program: Program, names: Sequence[str], places: BufferAddresses, declared: dict[str, str],
                 exported: bool = False) -> None:
        check_outputs(program)
        self.linkage = "" if exported else "internal "
        self.prefix, self.program, self.names, self.places, self.declared = prefix, program, names, places, declared
        self.table: list[str] = []
        self.bounds: list[int] = []
        self.used: dict[int, None] = {}
        self.looking: tuple[Value, Value, Value] | None = None
        self.is_parallel = is_parallel(program)

    @property
    def entry(self) -> str:
        return f"{self.prefix}.run"

    @property
    def walk(self) -> Value:
        """The function that runs rows of the table."""
        return symbol(f"{self.prefix}.walk")

    def lines(self) -> list[str]:
        """Return all definitions."""
        rollback = rollback_of(self.program, self.places.interrupts is not None)
        steps = (self.function(f"{self.prefix}.steps", "internal ") if rollback.variables else
                 self.function(self.entry, self.linkage))
        undo = self.undoing(rollback) if rollback.variables else []
        return self.calling() + self.walking() + self.forking() + steps + undo

    def writer(self, name: str, returns: str, linkage: str = "internal ", **params: str) -> Function:
        return Function(f"{self.prefix}.{name}", returns, params, self.declared, linkage)

    def pointer(self, w: Writer, place: Place) -> Value:
        return address_of(w, place, FRAME)

    # ---- kernels -----------------------------------------------------------------------------------------------------
    def calling(self) -> list[str]:
        """`@<prefix>.kernel(frame, number, low, high)`: load the pointers of one kernel from the frame and call it. One
        function with a switch, because LLVM takes longer to begin a function than to compile a short one."""
        if not self.used:
            return []
        w = self.writer("kernel", "void", frame="ptr", number="i32", low="i64", high="i64", **self.task_parameter)
        _, number, low, high, *task = w.params
        none, *blocks = w.blocks("none", *(f"kernel{kernel}." for kernel in self.used))
        w.switch(number, dict(zip(self.used, blocks)), none)
        for kernel, block in zip(self.used, blocks):
            w.enter(block)
            self.call(w, kernel, low, high, task[0] if task else None)
            w.give()
        w.enter(none)
        w.do("unreachable")
        return w.definition()

    @property
    def task_parameter(self) -> dict[str, str]:
        """The additional parameter of functions in a program with parallel steps: the number of the task."""
        return {"task": "i64"} if self.is_parallel else {}

    def call(self, w: Writer, kernel: int, low: Value, high: Value, task: Value | None) -> None:
        """Call a kernel with its pointers, which are in the frame; for a buffer with copies, pass the copy of the task (None:
        the first)."""
        function = self.program.functions[kernel]
        passed = [self.copy_of(w, b, task) for b in (*function.params, *function.scratch)]
        w.call(symbol(self.names[kernel]), "void", *passed, *([low, high] if function.rows is not None else []))

    def copy_of(self, w: Writer, buffer: Buffer, task: Value | None) -> Value:
        pointer = self.pointer(w, self.places.buffers[buffer])
        if buffer.copies == 1 or task is None:
            return pointer
        return w.address(pointer, w.op("mul", task, buffer.nbytes // buffer.copies))

    def rows(self, step: Compute) -> tuple[int, int]:
        """Return the rows that a step computes."""
        kernel, function = self.program.kernels[step.kernel], self.program.functions[step.kernel]
        assert step.rows is None or function.rows is not None, f"{function.name} cannot do some of its rows"
        return step.rows or (0, row_count(kernel))

    def walking(self) -> list[str]:
        """Return the table of steps, and the loop that runs some of its rows."""
        if not self.table:
            return []
        name = f"{self.prefix}.table"
        w = self.writer("walk", "void", frame="ptr", first="i64", end="i64", **self.task_parameter)
        frame, first, end, *task = w.params
        with w.loop(end, first, once=True) as i:
            row = w.address(symbol(name), i, ROW)
            kernel, low, high = (w.load(row, member) for member in (KERNEL, LOW, HIGH))
            rows = [w.cast("zext", x, "i64") for x in (low, high)]
            w.call(symbol(f"{self.prefix}.kernel"), "void", frame, kernel, *rows, *task)
        w.give()
        table = data(name, "internal unnamed_addr constant", f"[{len(self.table)} x {ROW}]", f"[{', '.join(self.table)}]")
        return [table, *w.definition()]

    # ---- steps -------------------------------------------------------------------------------------------------------
    def function(self, name: str, linkage: str) -> list[str]:
        w = Function(name, "i32", {"frame": "ptr"}, self.declared, linkage)
        if self.places.interrupts is not None:
            self.looking = self.begin_looking(w, self.places.interrupts)
        self.steps(w, self.program.steps)
        w.give(constant("i32", 0))
        return w.definition()

    def steps(self, w: Writer, steps: tuple[Step, ...]) -> None:
        run: list[Compute] = []
        for step in steps:
            if isinstance(step, Compute) and step.tasks == 1:
                run.append(step)
                continue
            self.run(w, run)
            run = []
            self.step(w, step)
        self.run(w, run)

    def run(self, w: Writer, steps: list[Compute]) -> None:
        """Run consecutive steps: direct calls if they are few and each calls another kernel, else rows of the table."""
        calls = [(step.kernel, *self.rows(step)) for step in steps]
        if len(calls) <= MOST_CALLS and len({kernel for kernel, _, _ in calls}) == len(calls):
            for kernel, low, high in calls:
                self.call(w, kernel, constant("i64", low), constant("i64", high), None)
        else:
            first_task = [constant("i64", 0)] if self.is_parallel else []
            w.call(self.walk, "void", FRAME, *(constant("i64", n) for n in self.listed(calls)), *first_task)

    def listed(self, calls: Iterable[Call]) -> tuple[int, int]:
        """Append calls to the table; return its first new row and the end row."""
        first = len(self.table)
        for kernel, low, high in calls:
            self.used[kernel] = None
            self.table.append(f"{ROW} {{ i32 {kernel}, i32 {low}, i32 {high} }}")
        return first, len(self.table)

    def step(self, w: Writer, step: Step) -> None:
        match step:
            case Compute(kernel, _, tasks):
                for low, high in itertools.pairwise((0, *self.program.functions[kernel].phases)):
                    edges = [low + (high - low) * i // tasks for i in range(tasks + 1)]
                    self.fork(w, [[(kernel, *span)] for span in itertools.pairwise(edges)])
            case Parallel(own):
                self.fork(w, [[(s.kernel, *self.rows(s)) for s in task] for task in own])
            case Branch(condition, then, otherwise):
                yes, no, end = w.blocks("then", "else", "end")
                w.branch(self.is_set(w, self.places.buffers[condition]), yes, no)
                w.enter(yes)
                self.steps(w, then)
                w.jump(end)
                w.enter(no)
                self.steps(w, otherwise)
                w.go_on(end)
            case Loop(test, condition, body):
                again, end = w.blocks("test", "end")
                w.go_on(again)
                self.steps(w, test)
                w.require(self.is_set(w, self.places.buffers[condition]), end)
                self.look(w)
                self.steps(w, body)
                w.jump(again)
                w.enter(end)
            case CheckWritten(variable, fault):
                self.check(w, self.places.flags[variable], fault)
            case CheckTrue(condition, fault):
                self.check(w, self.places.buffers[condition], fault)
            case MarkWritten(variable):
                w.store(constant("i8", 1), self.pointer(w, self.places.flags[variable]))

    def is_set(self, w: Writer, place: Place) -> Value:
        """Return a value that is true if the byte at `place` is not 0."""
        return w.compare("ne", w.load(self.pointer(w, place), "i8"), 0)

    def look(self, w: Writer) -> None:
        """Let Python handle signals if the interrupt flag is set, and in some iterations of a run; end the run if a handler
        raises."""
        if self.looking is not None:
            words, flag, run = self.looking
            look, interrupted, further = w.blocks("look", "interrupted", "further")
            left = w.op("sub", w.load(run, "i64"), 1)
            w.store(left, run)
            is_quiet = w.compare("eq", w.load(flag, "i8", "monotonic"), 0)
            w.branch(w.op("and", is_quiet, w.compare("ne", left, 0)), further, look, likely=True)
            w.enter(look)
            status = w.call(w.load(words, Member(LOOK)), "i32", words, run)
            w.branch(w.compare("eq", status, 0), further, interrupted)
            w.enter(interrupted)
            w.give(constant("i32", INTERRUPTED))
            w.enter(further)

    def begin_looking(self, w: Function, interrupts: Place) -> tuple[Value, Value, Value]:
        """Return the interrupt memory, the byte that the loops of this run poll, and the run's own words."""
        words, run = self.pointer(w, interrupts), w.room(RUN_WORDS, "i64", 8)
        return words, w.call(w.load(words, Member(START)), "ptr", words, run), run

    def check(self, w: Writer, place: Place, fault: int) -> None:
        """Return the number of the fault from the function unless the byte at `place` is set."""
        failed, passed = w.blocks("fault", "passed")
        w.branch(self.is_set(w, place), passed, failed)
        w.enter(failed)
        w.give(constant("i32", fault + 1))
        w.enter(passed)

    # ---- tasks -------------------------------------------------------------------------------------------------------
    def fork(self, w: Writer, tasks: Sequence[Sequence[Call]]) -> None:
        """Run tasks in parallel; each task is a range of rows of the table."""
        first = len(self.bounds)
        for calls in tasks:
            begin, end = self.listed(calls)
            self.bounds += [begin] if len(self.bounds) == first else []
            self.bounds.append(end)
        w.call(symbol(f"{self.prefix}.fork"), "void", FRAME, constant("i64", first), constant("i64", len(tasks)))

    def forking(self) -> list[str]:
        """Return the definitions that run tasks; none in a program without tasks."""
        if not self.bounds:
            return []
        assert self.places.pool is not None, f"{self.program.name} has no place for its pool of threads"
        task = self.writer("task", "void", job="ptr", number="i64")
        run_task(task, f"{self.prefix}.bounds", self.walk)
        w = self.writer("fork", "void", frame="ptr", first="i64", tasks="i64")
        fork(w, self.pointer(w, self.places.pool), task.pointer)
        return [bounds_data(f"{self.prefix}.bounds", self.bounds), *task.definition(), *w.definition()]

    # ---- failing without a trace -------------------------------------------------------------------------------------
    def undoing(self, rollback: Rollback) -> list[str]:
        """Return the entry of a program that may fail after a write: where a check may fail, it copies the variables before the
        run, and copies them back if the run fails."""
        w = Function(self.entry, "i32", {"frame": "ptr"}, self.declared, self.linkage)
        go, undo, done = w.blocks("go", "undo", "done")
        has_copies: Value | None = None
        if rollback.always:
            self.copies(w, rollback, back=False)
        else:  # a run that fails before its first write has no copies to restore
            keep, = w.blocks("keep")
            w.branch(w.every([self.is_set(w, self.places.flags[b]) for b in rollback.checked]), go(False), keep)
            w.enter(keep)
            self.copies(w, rollback, back=False)
            w.jump(go(True))
            has_copies, = w.enter(go, "i1")
        status = w.call(symbol(f"{self.prefix}.steps"), "i32", FRAME)
        failed = w.compare("ne", status, 0)
        w.branch(failed if has_copies is None else w.op("and", failed, has_copies), undo, done)
        w.enter(undo)
        self.copies(w, rollback, back=True)
        w.go_on(done)
        w.give(status)
        return w.definition()

    def copies(self, w: Writer, rollback: Rollback, back: bool) -> None:
        assert self.places.rollback is not None, f"{self.program.name} has no room to keep its variables in"
        room = self.pointer(w, self.places.rollback)
        for i, (buffer, offset) in enumerate(rollback.variables):
            data, flag = self.pointer(w, self.places.buffers[buffer]), self.pointer(w, self.places.flags[buffer])
            kept, kept_flag = w.address(room, offset), w.address(room, rollback.flags_at + i)
            w.copy(data if back else kept, kept if back else data, buffer.nbytes)
            w.copy(flag if back else kept_flag, kept_flag if back else flag, 1)


FRAME = Value("ptr", "%frame")
"""The first parameter of all functions of the driver, except tasks."""


def row_count(kernel: Kernel) -> int:
    """Return the rows of a kernel: the extent of its outermost axis longer than 1."""
    return next((a.extent for a in kernel.axes if a.extent > 1), 1)


def check_outputs(program: Program) -> None:
    """Assert that each output is a distinct buffer that a kernel writes, as fusion guarantees."""
    outputs = program.outputs
    assert len(set(outputs)) == len(outputs), f"{program.name} names a buffer twice in its outputs"
    assert all(b.role == "result" for b in outputs), f"{program.name} has an output that is no result"
    written = {b for f in program.functions for b in f.params if b.role == "result" and b in buffers_written(f)}
    missing = [b.name for b in outputs if b not in written]
    assert not missing, f"no kernel of {program.name} writes {', '.join(missing)}"
