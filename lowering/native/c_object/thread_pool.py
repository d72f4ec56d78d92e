"""How a C program gives threads to a model: the declarations in the headers of objects that have been compiled for several.
Other headers say nothing of it.
"""
from __future__ import annotations

from ..driver.parallel_steps import is_parallel, most_tasks
from .interface import Interface

STRUCTURE = """\
/* Threads that a run may use: parallel(context, task, argument, parts) calls task(argument, part) once for each part from 0 to
   parts - 1, on any threads and in any order, and returns when all of them have returned. What a part has written must then be
   seen by the caller, as a join or a mutex makes sure. Results are the same for any number of threads. */
#ifndef TOSAIC_THREAD_POOL
#define TOSAIC_THREAD_POOL
struct tosaic_thread_pool {
    void (*parallel)(void *context, void (*task)(void *argument, int64_t part), void *argument, int64_t parts);
    void *context;
};
#endif"""


def thread_sections(interface: Interface) -> list[str]:
    """The structure, and into how many tasks a run divides its steps: threads beyond that have nothing to do."""
    lines = [f"#define {entry.name.upper()}_PARTS {most_tasks(entry.program)} /* of a step, at most; a null pool runs them one "
             "after the other */" for entry in interface.entries if is_parallel(entry.program)]
    return [STRUCTURE, "\n".join(lines)] if lines else []
