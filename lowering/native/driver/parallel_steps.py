"""Parallel steps as a driver runs them: each task is a range of rows of its table. The tasks go to the thread pool that the
caller has put into the frame, or run one after the other if that is null. A pool is a structure: the function that runs tasks,
and its first argument.
"""
from __future__ import annotations

from collections.abc import Sequence

from ...kernels.kernel import Compute, Parallel, walk
from ...loops.program import Program
from ...machine_code.llvm_writer import NULL, Function, Member, Value, data, numbers, symbol

JOB_FRAME, JOB_FIRST = Member(0), Member(8, "i64")
"""Members of the job that the tasks of one step share: the frame, and the number of the first task's bound."""


def most_tasks(program: Program) -> int:
    """Return the maximum number of tasks of a step, which a thread pool may run."""
    return max((len(s.tasks) if isinstance(s, Parallel) else s.tasks for s in walk(program.steps)
                if isinstance(s, Parallel | Compute)), default=1)


def is_parallel(program: Program) -> bool:
    """True if steps of a program are divided into tasks."""
    return most_tasks(program) > 1


def bounds_data(name: str, bounds: Sequence[int]) -> str:
    """Return the constant with the bounds of all tasks in the table of steps."""
    return data(name, "internal unnamed_addr constant", *numbers(bounds))


def run_task(f: Function, bounds: str, walk: Value) -> None:
    """`@<prefix>.task(job, number)`: run the rows of the table between two consecutive bounds."""
    job, number = f.params
    frame = f.load(job, JOB_FRAME)
    low = f.address(symbol(bounds), f.op("add", f.load(job, JOB_FIRST), number), "i32")
    rows = [f.cast("zext", f.load(place, "i32"), "i64") for place in (low, f.address(low, 1, "i32"))]
    f.call(walk, "void", frame, *rows, number)
    f.give()


def fork(f: Function, pool: Value, task: Value) -> None:
    """`@<prefix>.fork(frame, first, tasks)`: pass the tasks from bound number `first` on to the pool."""
    frame, first, tasks = f.params
    job = f.room(2, "i64")
    f.keep(frame, job, JOB_FRAME)
    f.keep(first, job, JOB_FIRST)
    serial, = f.blocks("serial")
    f.require(f.compare("ne", pool, NULL), serial)
    parallel, context = f.load(pool, "ptr"), f.load(f.address(pool, 1, "ptr"), "ptr")
    f.call(parallel, "void", context, task, job, tasks)
    f.give()
    f.enter(serial)
    with f.loop(tasks, once=True) as number:
        f.call(task, "void", job, number)
    f.give()
