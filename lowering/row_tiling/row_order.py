"""The steps of kernels that are tiled by rows, some rows of each at a time: for one thread, or in tasks that compute some
rows of the last kernel each.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from ..kernels.kernel import Compute, Parallel
from .row_access import RowAccess, first_needed

MIN_TASK_ROWS = 3
"""Minimum number of rows of the last kernel of a group in a task."""


def row_by_row(group: Sequence[tuple[int, RowAccess]], low: int = 0, high: int | None = None,
               before: Sequence[int] | None = None) -> list[Compute]:
    """Return steps that compute each row of the last kernel, or each from `low` to `high`, as soon as the rows that it needs
    are computed, and these as late as that allows. Kernels that no kernel of the group reads keep pace with the last one.
    `before` are the rows at which the task for the rows before `low` has stopped."""
    place = {kernel.kernel.out: i for i, (_, kernel) in enumerate(group)}
    needs = [[(place[b], ends.tolist()) for b, (_, ends) in kernel.reads.items() if place.get(b, i) < i]
             for i, (_, kernel) in enumerate(group)]
    begin = starts(group, low, before)
    done = list(begin)
    order: list[int] = []

    def produce(position: int, end: int) -> None:
        """Run kernel `position` until row `end`, each of its producers first as far as needed."""
        for row in range(done[position], end):
            for earlier, ends in needs[position]:
                if ends[row] > done[earlier]:
                    produce(earlier, ends[row])
            order.append(position)
            done[position] = row + 1

    last = len(group) - 1
    rows = group[last][1].rows
    unread = [] if low or high is not None else sorted({*range(last)} - {earlier for some in needs for earlier, _ in some})
    for row in range(low, rows if high is None else high) if unread else ():
        produce(last, row + 1)
        for position in unread:
            produce(position, group[position][1].rows * (row + 1) // rows)
    produce(last, rows if high is None else high)
    if high in (None, rows):
        for position in range(last):  # rows that no kernel of the group needs
            produce(position, group[position][1].rows)
    return list(merged([group[position][0] for position in order], {k: n for (k, _), n in zip(group, begin)}))


def starts(group: Sequence[tuple[int, RowAccess]], low: int, before: Sequence[int] | None = None) -> list[int]:
    """Return the first row of each kernel that the rows of the last kernel from `low` on need; row 0 of each if `low` is 0. No
    such row is after the row at which the task `before` has stopped, so that rows that no window reads, because the window is
    lower than its stride, are computed as well."""
    if not low:
        return [0] * len(group)
    needed = [kernel.rows for _, kernel in group] if before is None else list(before)
    needed[-1] = low
    for position in range(len(group) - 1, 0, -1):
        for earlier in range(position):
            if (out := group[earlier][1].kernel.out) in group[position][1].reads and needed[position] < group[position][1].rows:
                needed[earlier] = min(needed[earlier], first_needed(group[position][1], out)[needed[position]])
    return needed


def tiled_steps(group: Sequence[tuple[int, RowAccess]], threads: int) -> list[Compute] | list[Parallel]:
    """Return the steps of a group, cut into tasks with about the same number of rows of the last kernel each."""
    rows = group[-1][1].rows
    tasks = min(threads, rows // MIN_TASK_ROWS)
    if tasks < 2:
        return row_by_row(group)
    edges, stopped = [rows * i // tasks for i in range(tasks + 1)], [0] * len(group)
    found: list[tuple[Compute, ...]] = []
    for low, high in itertools.pairwise(edges):
        found.append(tuple(row_by_row(group, low, high, stopped)))
        ends = {step.kernel: step.rows[1] for step in found[-1] if step.rows}
        stopped = [max(ends.get(kernel, 0), end) for (kernel, _), end in zip(group, stopped)]
    return [Parallel(tuple(found))]


def merged(rows: Sequence[int], begin: Mapping[int, int]) -> Iterator[Compute]:
    """Yield a step for each run of rows of the same kernel; `begin` has the first row of each kernel."""
    done = dict(begin)
    for kernel, run in itertools.groupby(rows):
        first = done[kernel]
        done[kernel] = first + len(list(run))
        yield Compute(kernel, (first, done[kernel]))
