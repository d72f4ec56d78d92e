"""Checks of a program's table of steps: it names only functions and buffers that exist, a function that computes rows is
asked for all of them, and each step reads only what an earlier step has written.
"""
from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import NoReturn

from ...runtime.errors import Problem
from ..elements.expression import Buffer
from ..kernels.kernel import Branch, CheckTrue, CheckWritten, Compute, Kernel, Loop, MarkWritten, Parallel, Step, walk
from .ir import Function, buffers_read, buffers_written
from .program import Program
from .ranges import Interval

FILLED = frozenset({"argument", "constant", "variable"})
"""Roles of buffers that hold a value before the first step."""

MAX_TASKS = 64
"""Maximum number of tasks of a step: a thread pool records in one word which of them have begun."""


def fail(program: Program, what: str) -> NoReturn:
    raise Problem(f"{program.name}: {what}", kind="internal")


def row_count(kernel: Kernel) -> int:
    """Return the extent of the kernel's outermost axis that is longer than 1."""
    return next((a.extent for a in kernel.axes if a.extent > 1), 1)


def rows_of(program: Program) -> dict[int, Interval]:
    """Return the range of rows that each function that computes rows is asked for."""
    if len(program.kernels) != len(program.functions):
        fail(program, f"{len(program.functions)} functions compute {len(program.kernels)} kernels")
    asked: dict[int, set[Interval]] = {}
    for step in walk(program.steps):
        if isinstance(step, Parallel):
            check_tasks(program, step)
        if isinstance(step, Compute):
            rows = checked(program, step)
            if program.functions[step.kernel].rows and not program.functions[step.kernel].phases:
                asked.setdefault(step.kernel, set()).add(rows)
    return {k: (0, without_gap(program, k, ranges)) for k, ranges in asked.items()}


def checked(program: Program, step: Compute) -> Interval:
    """Return the rows of a step; fail if the kernel does not have them."""
    if not 0 <= step.kernel < len(program.functions):
        fail(program, f"step computes kernel {step.kernel} of {len(program.functions)}")
    function, count = program.functions[step.kernel], row_count(program.kernels[step.kernel])
    if not 1 <= step.tasks <= MAX_TASKS:
        fail(program, f"{function.name} runs in {step.tasks} tasks")
    if bool(function.phases) != (step.tasks > 1):
        fail(program, f"{function.name} runs in {step.tasks} tasks, and is {'' if function.phases else 'not '}divided")
    if step.tasks > 1:
        check_division(program, function, step)
    if step.rows is None:
        return 0, count
    low, high = step.rows
    if function.rows is None:
        fail(program, f"{function.name} cannot compute rows {low} to {high}")
    if not 0 <= low < high <= count:
        fail(program, f"{function.name} computes rows {low} to {high} of {count}")
    return low, high


def check_division(program: Program, function: Function, step: Compute) -> None:
    """Check a divided function: phases ascend, and scratch has a copy for each task or is filled in a phase of its own."""
    if step.rows is not None or any(a >= b for a, b in itertools.pairwise((0, *function.phases))):
        fail(program, f"{function.name} is divided into phases that end at {function.phases}")
    for b in function.scratch:
        if b.copies not in (1, step.tasks) or (b.copies == 1 and len(function.phases) == 1):
            fail(program, f"{function.name} runs in {step.tasks} tasks, and has {b.copies} copies of {b!r}")


def check_tasks(program: Program, step: Parallel) -> None:
    """Check that, unless each task has its own copy, tasks share no rows of a buffer that one of them writes, and read no
    buffer that another one writes."""
    rows: dict[Buffer, list[Interval]] = {}
    read: set[Buffer] = set()
    if not 2 <= len(step.tasks) <= MAX_TASKS:
        fail(program, f"{len(step.tasks)} tasks run at the same time")
    for task in step.tasks:
        for own in task:
            if not 0 <= own.kernel < len(program.functions):
                fail(program, f"step computes kernel {own.kernel} of {len(program.functions)}")
            function = program.functions[own.kernel]
            if own.rows is None or own.tasks > 1:
                fail(program, f"{function.name} runs as a whole in a task")
            if function.scratch and any(b.copies < len(step.tasks) for b in function.scratch):
                fail(program, f"{len(step.tasks)} tasks run {function.name}, and share its scratch")
            read |= buffers_read(function)
        for b, spans in written_rows(program, task).items():
            rows.setdefault(b, []).extend(spans)
    for b, spans in rows.items():
        if b.copies < len(step.tasks) and (b in read or any(x[1] > y[0] for x, y in itertools.pairwise(sorted(spans)))):
            fail(program, f"tasks that run at the same time meet in {b!r}")


def written_rows(program: Program, task: Sequence[Compute]) -> dict[Buffer, list[Interval]]:
    found: dict[Buffer, list[Interval]] = {}
    for step in task:
        for b in buffers_written(program.functions[step.kernel]):
            if step.rows is not None and b.role != "scratch":
                found.setdefault(b, []).append(step.rows)
    return found


def without_gap(program: Program, kernel: int, ranges: Collection[Interval]) -> int:
    """Return the end of rows that are adjacent or overlap, from 0 to the last; fail if there is a gap."""
    end = 0
    for low, high in sorted(ranges):
        if low > end:
            break
        end = max(end, high)
    if end != row_count(program.kernels[kernel]):
        fail(program, f"{program.functions[kernel].name}: row {end} is never computed")
    return end


def verify_steps(program: Program, needs: Sequence[Collection[Buffer]]) -> None:
    """Check the steps in order; `needs[i]` are the buffers that functions[i] reads before it has written them."""
    writes = [buffers_written(f) for f in program.functions]

    def run(steps: Sequence[Step], full: frozenset[Buffer]) -> frozenset[Buffer]:
        """Return the buffers that hold a value after the steps."""
        for step in steps:
            match step:
                case Compute(kernel):
                    for b in needs[kernel]:
                        present(b, full, program.functions[kernel].name)
                    full |= writes[kernel]
                case Parallel(tasks):
                    full = frozenset().union(*(run(task, full) for task in tasks))
                case Branch(condition, then, otherwise):
                    present(condition, full, "a branch")
                    full = run(then, full) & run(otherwise, full)
                case Loop(test, condition, body):
                    full = run(test, full)
                    present(condition, full, "a loop")
                    run(body, full)
                case CheckWritten(variable, fault):
                    if variable.role != "variable" or not 0 <= fault < len(program.faults):
                        fail(program, f"fault {fault} of {len(program.faults)} checks {variable!r}")
                case CheckTrue(condition, fault):
                    present(condition, full, "a check")
                    if condition.size != 1 or condition.dtype != "bool" or not 0 <= fault < len(program.faults):
                        fail(program, f"fault {fault} of {len(program.faults)} checks {condition!r}")
                case MarkWritten(variable):
                    if variable.role != "variable":
                        fail(program, f"{variable!r} is marked as written, and is no variable")
        return full

    def present(b: Buffer, full: frozenset[Buffer], reader: str) -> None:
        if b.role not in FILLED and b not in full:
            fail(program, f"{reader} reads {b!r} before a step has written it")

    full = run(program.steps, frozenset())
    for b in program.outputs:
        present(b, full, "the caller")
