"""The driver of a program, in LLVM IR: what walks the table of steps. It stands between the kernels that `emit`
writes and the interfaces that call it (`load` for this process, `interface_c` for objects).

A driver sees memory through a *frame*, an array of pointers, and through symbols of its module: `Places` says which
buffer is found how. Steps that follow each other are rows of a constant table (kernel, first row, end row) that a
loop walks; branches, loops and faults are real ones. In this process each iteration of a loop looks at the interrupt flag.
"""
from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import field

from ....runtime.interrupts import INTERRUPTED, START
from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...kernels.kernel import Branch, CheckTrue, CheckWritten, Compute, Kernel, Loop, MarkWritten, Parallel, Step
from ...loops.ir import buffers_written
from ...loops.program import Program
from ..llvm.llvm_text import quoted
from .parallel_steps import in_parts, parts_text
from .variable_rollback import Backup, backup_of

MOST_CALLS = 16
"""Calls in a row, without a table: so few take less code than what walks one."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Memory `offset` bytes behind pointer number `index` of the frame."""
    index: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Symbol:
    """Memory `offset` bytes behind what has a name in the module."""
    name: str
    offset: int = 0


Place = Slot | Symbol


@dataclass(frozen=True, slots=True)
class Places:
    """Where a program finds its memory: `buffers` each buffer, `flags` the byte of each variable that says whether it
    has been written, `backup` room for `Backup.nbytes` bytes where the program needs it, `pool` the pointer to the pool of
    threads (or null) where it has steps in parts, `interrupts` that to the interrupt flag where its loops look at it."""
    buffers: Mapping[Buffer, Place]
    flags: Mapping[Buffer, Place]
    backup: Place | None = None
    pool: Place | None = None
    interrupts: Place | None = None


# ---- text ------------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Writer:
    """Writes one function; values and labels are numbered."""
    lines: list[str] = field(default_factory=list)
    count: int = 0

    def put(self, text: str) -> str:
        """An instruction with a result: its name."""
        self.count += 1
        self.lines.append(f" %v{self.count} = {text}")
        return f"%v{self.count}"

    def do(self, text: str) -> None:
        self.lines.append(f" {text}")

    def labels(self, *names: str) -> list[str]:
        self.count += 1
        return [f"{name}{self.count}" for name in names]

    def start(self, label: str) -> None:
        """Begin the block `label`; the one before must have ended."""
        self.lines.append(f"{label}:")

    def enter(self, label: str) -> None:
        """Go on in the block `label`."""
        self.do(f"br label %{label}")
        self.start(label)

    def split(self, condition: str, yes: str, no: str) -> None:
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")

    def pointer(self, place: Place) -> str:
        """The address of a place; the frame is the argument `%frame`."""
        match place:
            case Symbol(name, offset):
                return self.offset(f"@{name}", offset)
            case Slot(index, offset):
                pointer = self.put(f"load ptr, ptr {self.offset('%frame', index, 'ptr')}")
                return self.offset(pointer, offset)

    def offset(self, pointer: str, index: int, element: str = "i8") -> str:
        return self.put(f"getelementptr {element}, ptr {pointer}, i64 {index}") if index else pointer

    def is_set(self, pointer: str) -> str:
        """Whether the byte there is not 0."""
        return self.put(f"icmp ne i8 {self.put(f'load i8, ptr {pointer}')}, 0")

    def copy(self, to: str, source: str, nbytes: int) -> None:
        self.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {nbytes}, i1 false)")


class Driver:
    """The functions that run one program: `@<prefix>.run(ptr %frame) -> i32` returns 0, or 1 + the number of a fault, or
    INTERRUPTED.

    `names[i]` is what kernel i's function is called in the module; an `exported` program is called from outside of it.
    """

    def __init__(self, prefix: str, program: Program, names: Sequence[str], places: Places, exported: bool = False) -> None:
        check_outputs(program)
        self.linkage = "" if exported else "internal "
        self.prefix, self.program, self.names, self.places = prefix, program, names, places
        self.table: list[str] = []
        self.bounds: list[int] = []
        self.used: dict[int, None] = {}
        self.flag = ""
        self.in_parts = in_parts(program)

    @property
    def entry(self) -> str:
        return f"{self.prefix}.run"

    def lines(self) -> list[str]:
        """All definitions."""
        backup = backup_of(self.program, self.places.interrupts is not None)
        steps = (self.function(f"{self.prefix}.steps", "internal ") if backup.variables else
                 self.function(self.entry, self.linkage))
        undo = self.undoing(backup) if backup.variables else []
        return self.calling() + self.walking() + (self.parting() if self.in_parts else []) + steps + undo

    # ---- kernels -----------------------------------------------------------------------------------------------------
    def calling(self) -> list[str]:
        """`@<prefix>.kernel(frame, number, low, high)`: loads the pointers of one kernel from the frame and calls it.
        One function with a switch, because LLVM takes longer to begin a function than to compile a short one."""
        if not self.used:
            return []
        w = Writer()
        cases = " ".join(f"i32 {kernel}, label %kernel{kernel}" for kernel in self.used)
        w.do(f"switch i32 %number, label %none [{cases}]")
        for kernel in self.used:
            w.start(f"kernel{kernel}")
            self.call(w, kernel, "%low", "%high", "%part")
            w.do("ret void")
        w.start("none")
        w.do("unreachable")
        name = f"{self.prefix}.kernel"
        return [f"define internal void @{name}(ptr %frame, i32 %number, i64 %low, i64 %high{self.part_parameter}) #0 {{",
                *w.lines, "}"]

    @property
    def part_parameter(self) -> str:
        """What functions take more in a program with steps in parts: the number of the part."""
        return ", i64 %part" if self.in_parts else ""

    def call(self, w: Writer, kernel: int, low: str, high: str, part: str) -> None:
        """Call a kernel with its pointers, which are in the frame; of buffers with copies, to that of the part."""
        function = self.program.functions[kernel]
        passed = [f"ptr {self.copy_of(w, b, part)}" for b in (*function.params, *function.scratch)]
        passed += [f"i64 {low}", f"i64 {high}"] if function.rows is not None else []
        w.do(f"call void @{quoted(self.names[kernel])}({', '.join(passed)})")

    def copy_of(self, w: Writer, buffer: Buffer, part: str) -> str:
        pointer = w.pointer(self.places.buffers[buffer])
        if buffer.copies == 1 or part == "0":
            return pointer
        distance = w.put(f"mul i64 {part}, {buffer.nbytes // buffer.copies}")
        return w.put(f"getelementptr i8, ptr {pointer}, i64 {distance}")

    def rows(self, step: Compute) -> tuple[int, int]:
        """The rows that a step computes."""
        kernel, function = self.program.kernels[step.kernel], self.program.functions[step.kernel]
        assert step.rows is None or function.rows is not None, f"{function.name} cannot do a part of its rows"
        return step.rows or (0, row_count(kernel))

    def walking(self) -> list[str]:
        """The table of steps, and the loop that runs a part of it."""
        if not self.table:
            return []
        p, row, part = self.prefix, "{ i32, i32, i32 }", ", i64 %part" if self.in_parts else ""
        return [f"@{p}.table = internal unnamed_addr constant [{len(self.table)} x {row}] [{', '.join(self.table)}]",
                f"define internal void @{p}.walk(ptr %frame, i64 %first, i64 %end{self.part_parameter}) #0 {{",
                "entry:",
                " br label %next",
                "next:",
                " %i = phi i64 [%first, %entry], [%following, %next]",
                f" %row = getelementptr {row}, ptr @{p}.table, i64 %i",
                f" %low_at = getelementptr {row}, ptr %row, i64 0, i32 1",
                f" %high_at = getelementptr {row}, ptr %row, i64 0, i32 2",
                " %kernel = load i32, ptr %row",
                " %low_row = load i32, ptr %low_at",
                " %high_row = load i32, ptr %high_at",
                " %low = zext i32 %low_row to i64",
                " %high = zext i32 %high_row to i64",
                f" call void @{p}.kernel(ptr %frame, i32 %kernel, i64 %low, i64 %high{part})",
                " %following = add i64 %i, 1",
                " %more = icmp ult i64 %following, %end",
                " br i1 %more, label %next, label %done",
                "done:",
                " ret void",
                "}"]

    # ---- steps -------------------------------------------------------------------------------------------------------
    def function(self, name: str, linkage: str) -> list[str]:
        w = Writer()
        if self.places.interrupts is not None:
            self.flag = where_to_look(w, self.places.interrupts)
        self.steps(w, self.program.steps)
        return [f"define {linkage}i32 @{name}(ptr %frame) #0 {{", *w.lines, " ret i32 0", "}"]

    def steps(self, w: Writer, steps: tuple[Step, ...]) -> None:
        run: list[Compute] = []
        for step in steps:
            if isinstance(step, Compute) and step.parts == 1:
                run.append(step)
                continue
            self.run(w, run)
            run = []
            self.step(w, step)
        self.run(w, run)

    def run(self, w: Writer, steps: list[Compute]) -> None:
        """Steps that follow each other: a few of as many kernels are called, others are rows of the table."""
        calls = [(step.kernel, *self.rows(step)) for step in steps]
        if len(calls) <= MOST_CALLS and len({kernel for kernel, _, _ in calls}) == len(calls):
            for kernel, low, high in calls:
                self.call(w, kernel, f"{low}", f"{high}", "0")
        else:
            first, end = self.listed(calls)
            part = ", i64 0" if self.in_parts else ""
            w.do(f"call void @{self.prefix}.walk(ptr %frame, i64 {first}, i64 {end}{part})")

    def listed(self, calls: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
        """Put calls (kernel, first row, end row) into the table: the first row of it, and the end."""
        self.used |= dict.fromkeys(kernel for kernel, _, _ in calls)
        first = len(self.table)
        self.table += [f"{{ i32, i32, i32 }} {{ i32 {k}, i32 {low}, i32 {high} }}" for k, low, high in calls]
        return first, len(self.table)

    def step(self, w: Writer, step: Step) -> None:
        match step:
            case Compute(kernel, _, parts):
                for low, high in itertools.pairwise((0, *self.program.functions[kernel].phases)):
                    edges = [low + (high - low) * i // parts for i in range(parts + 1)]
                    self.fork(w, [[(kernel, *span)] for span in itertools.pairwise(edges)])
            case Parallel(own):
                self.fork(w, [[(s.kernel, *self.rows(s)) for s in part] for part in own])
            case Branch(condition, then, otherwise):
                yes, no, end = w.labels("then", "else", "end")
                w.split(w.is_set(w.pointer(self.places.buffers[condition])), yes, no)
                w.start(yes)
                self.steps(w, then)
                w.do(f"br label %{end}")
                w.start(no)
                self.steps(w, otherwise)
                w.enter(end)
            case Loop(test, condition, body):
                again, inside, end = w.labels("test", "body", "end")
                w.enter(again)
                self.steps(w, test)
                w.split(w.is_set(w.pointer(self.places.buffers[condition])), inside, end)
                w.start(inside)
                self.look(w)
                self.steps(w, body)
                w.do(f"br label %{again}")
                w.start(end)
            case CheckWritten(variable, fault):
                self.check(w, self.places.flags[variable], fault)
            case CheckTrue(condition, fault):
                self.check(w, self.places.buffers[condition], fault)
            case MarkWritten(variable):
                w.do(f"store i8 1, ptr {w.pointer(self.places.flags[variable])}")

    def look(self, w: Writer) -> None:
        """End the run where the interrupt flag is set."""
        if self.flag:
            interrupted, further = w.labels("interrupted", "further")
            flag = w.put(f"load atomic i8, ptr {self.flag} monotonic, align 1")
            w.split(w.put(f"icmp eq i8 {flag}, 0"), further, interrupted)
            w.start(interrupted)
            w.do(f"ret i32 {INTERRUPTED}")
            w.start(further)

    def check(self, w: Writer, place: Place, fault: int) -> None:
        """Return the number of the fault unless the byte there is set."""
        failed, passed = w.labels("fault", "passed")
        w.split(w.is_set(w.pointer(place)), passed, failed)
        w.start(failed)
        w.do(f"ret i32 {fault + 1}")
        w.start(passed)

    # ---- parts -------------------------------------------------------------------------------------------------------
    def fork(self, w: Writer, parts: Sequence[Sequence[tuple[int, int, int]]]) -> None:
        """Parts that may run at the same time, each some rows of the table."""
        first = len(self.bounds)
        for calls in parts:
            begin, end = self.listed(calls)
            self.bounds += [begin] if len(self.bounds) == first else []
            self.bounds.append(end)
        w.do(f"call void @{self.prefix}.fork(ptr %frame, i64 {first}, i64 {len(parts)})")

    def parting(self) -> list[str]:
        """What runs parts, where there are some."""
        if not self.bounds:
            return []
        assert self.places.pool is not None, f"{self.program.name} has no place for its pool of threads"
        w = Writer()
        pool = w.pointer(self.places.pool)
        return parts_text(self.prefix, self.bounds, w.lines, pool)

    # ---- failing without a trace -------------------------------------------------------------------------------------
    def undoing(self, backup: Backup) -> list[str]:
        """The entry of a program that may fail after it has written: where a check may fail, it copies the variables
        before the run, and back if the run fails."""
        assert self.places.backup is not None, f"{self.program.name} has no room to keep its variables in"
        w = Writer()
        keep, kept, go, undo, done = w.labels("keep", "kept", "go", "undo", "done")
        if not backup.always:
            start = w.labels("start")[0]
            w.enter(start)
            self.split_if_written(w, backup.checked, go, keep)
            w.start(keep)
        self.copies(w, backup, back=False)
        if not backup.always:  # a run that fails before it has written anything has no copies to take back
            w.enter(kept)
            w.enter(go)
            has_copies = w.put(f"phi i1 [false, %{start}], [true, %{kept}]")
        status = w.put(f"call i32 @{self.prefix}.steps(ptr %frame)")
        failed = w.put(f"icmp ne i32 {status}, 0")
        w.split(failed if backup.always else w.put(f"and i1 {failed}, {has_copies}"), undo, done)
        w.start(undo)
        self.copies(w, backup, back=True)
        w.enter(done)
        return [f"define {self.linkage}i32 @{self.entry}(ptr %frame) #0 {{", *w.lines, f" ret i32 {status}", "}"]

    def split_if_written(self, w: Writer, variables: Sequence[Buffer], yes: str, no: str) -> None:
        """Go on at `yes` where all these variables have been written, else at `no`."""
        flags = [w.is_set(w.pointer(self.places.flags[b])) for b in variables]
        all_written = flags[0]
        for flag in flags[1:]:
            all_written = w.put(f"and i1 {all_written}, {flag}")
        w.split(all_written, yes, no)

    def copies(self, w: Writer, backup: Backup, back: bool) -> None:
        assert self.places.backup is not None
        room = w.pointer(self.places.backup)
        for i, (buffer, at) in enumerate(backup.variables):
            data, flag = w.pointer(self.places.buffers[buffer]), w.pointer(self.places.flags[buffer])
            kept, kept_flag = w.offset(room, at), w.offset(room, backup.flags_at + i)
            w.copy(data if back else kept, kept if back else data, buffer.nbytes)
            w.copy(flag if back else kept_flag, kept_flag if back else flag, 1)


def where_to_look(w: Writer, interrupts: Place) -> str:
    """The address of the byte at which the loops of this run look."""
    words = w.pointer(interrupts)
    begin = w.put(f"load ptr, ptr {w.offset(words, START)}")
    return w.put(f"call ptr {begin}(ptr {words})")


def row_count(kernel: Kernel) -> int:
    """Rows of a kernel: the extent of its outermost axis, the first that is longer than 1."""
    return next((a.extent for a in kernel.axes if a.extent > 1), 1)


def check_outputs(program: Program) -> None:
    """Each output must be a buffer of its own that a kernel writes: that is what fusion promises."""
    outputs = program.outputs
    assert len(set(outputs)) == len(outputs), f"{program.name} names a buffer twice in its outputs"
    assert all(b.role == "result" for b in outputs), f"{program.name} has an output that is no result"
    written = {b for f in program.functions for b in f.params if b.role == "result" and b in buffers_written(f)}
    missing = [b.name for b in outputs if b not in written]
    assert not missing, f"no kernel of {program.name} writes {', '.join(missing)}"
