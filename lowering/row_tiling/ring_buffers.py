"""The buffers between kernels that are tiled by rows: ring buffers, which keep only the last rows, and the private buffers of
each task.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..elements.expression import Buffer
from ..elements.traverse import loads
from ..graph.types import ITEM_SIZES
from ..kernels.kernel import Compute, Kernels, Parallel, Step, conditions, walk
from ..target.costs import COSTS
from .row_access import RowAccess, first_needed, row_dimension

COPY_ALIGNMENT_BYTES = COSTS.cache_line_bytes
"""Alignment of the copies of a buffer, so that they share no cache line."""


def rings(program: Kernels, steps: tuple[Step, ...], found: Sequence[RowAccess | None], by_rows: set[int]
          ) -> dict[Buffer, Buffer]:
    """Map each buffer that never needs all its rows to a ring buffer of the rows that are live at once."""
    result: dict[Buffer, Buffer] = {}
    needed = conditions(steps) | {*program.outputs}
    orders, (readers, flat) = [*sequences(steps)], reading(program)
    for number in sorted(by_rows):
        out = program.kernels[number].out
        mine = readers.get(out, {})
        if out.role != "temporary" or out in needed or out in flat or not by_rows.issuperset(mine):
            continue
        d, extent = row_dimension(out)
        rows = max(most_rows(number, [(i, found[i]) for i in mine], out, order) for order in orders)
        if rows < extent:
            shape = (*out.shape[:d], rows, *out.shape[d + 1:])
            result[out] = Buffer(out.name, out.dtype, shape, out.role)
    return result


def reading(program: Kernels) -> tuple[dict[Buffer, dict[int, None]], set[Buffer]]:
    """Return the kernels that read each buffer, and the buffers that some kernel reads by flat index."""
    readers: dict[Buffer, dict[int, None]] = {}
    flat: set[Buffer] = set()
    for i, kernel in enumerate(program.kernels):
        for x in loads(kernel.value):
            readers.setdefault(x.buffer, {})[i] = None
            if x.is_flat and len(x.buffer.shape) > 1:
                flat.add(x.buffer)
    return readers, flat


def sequences(steps: tuple[Step, ...]) -> Iterator[list[Compute]]:
    """Yield the sequences of steps that run one after the other: first the steps outside of tasks, then those of each task."""
    groups = [s for s in walk(steps) if isinstance(s, Parallel)]
    inside = {id(s) for group in groups for task in group.tasks for s in task}
    yield [s for s in walk(steps) if isinstance(s, Compute) and id(s) not in inside]
    for group in groups:
        yield from map(list, group.tasks)


def most_rows(writer: int, readers: Sequence[tuple[int, RowAccess | None]], out: Buffer, order: Sequence[Compute]) -> int:
    """Return the maximum number of rows that are live at once, from their write to their last read."""
    first = {i: first_needed(rows, out) for i, rows in readers if rows}
    done = {i: next((s.rows[0] for s in order if s.kernel == i and s.rows), 0) for i in first}
    most = 1
    for step in order:
        if step.kernel == writer:
            written = step.rows[1] if step.rows else row_dimension(out)[1]
            needed = min((first[i][row] for i, row in done.items() if row < len(first[i])), default=written - 1)
            most = max(most, written - needed)
        if step.kernel in done:
            done[step.kernel] = step.rows[1] if step.rows else len(first[step.kernel])
    return most


def copies(program: Kernels, steps: tuple[Step, ...], rings: Mapping[Buffer, Buffer]) -> dict[Buffer, Buffer]:
    """Map each private buffer of the tasks, the outputs of all kernels of a group but the last, to a buffer with a copy for
    each task."""
    result: dict[Buffer, Buffer] = {}
    for step in walk(steps):
        if isinstance(step, Parallel):
            last = step.tasks[0][-1].kernel
            for number in dict.fromkeys(s.kernel for task in step.tasks for s in task if s.kernel != last):
                out = program.kernels[number].out
                small = rings.get(out, out)
                result[small] = copied(small, len(step.tasks))
    return result


def copied(buffer: Buffer, tasks: int) -> Buffer:
    """Return the buffer with a copy for each task."""
    itemsize = ITEM_SIZES[buffer.dtype]
    size = -(-buffer.nbytes // COPY_ALIGNMENT_BYTES) * COPY_ALIGNMENT_BYTES // itemsize
    return Buffer(buffer.name, buffer.dtype, (tasks * size,), buffer.role, None, tasks)
