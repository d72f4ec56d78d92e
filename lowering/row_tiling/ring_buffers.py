"""The buffers between kernels that are tiled by rows: of which only the last rows are kept, in a ring, and which each task has
for itself.
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
"""Copies of a buffer share no line of a cache."""


def rings(program: Kernels, steps: tuple[Step, ...], found: Sequence[RowAccess | None], by_rows: set[int]
          ) -> dict[Buffer, Buffer]:
    """The buffers of which not all rows must be kept, each with a smaller one, of as many rows as must be."""
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
    """The kernels that read each buffer, and the buffers that some kernel sees as flat."""
    readers: dict[Buffer, dict[int, None]] = {}
    flat: set[Buffer] = set()
    for i, kernel in enumerate(program.kernels):
        for x in loads(kernel.value):
            readers.setdefault(x.buffer, {})[i] = None
            if x.is_flat and len(x.buffer.shape) > 1:
                flat.add(x.buffer)
    return readers, flat


def sequences(steps: tuple[Step, ...]) -> Iterator[list[Compute]]:
    """The steps that run one after the other: those of each task, and all others."""
    groups = [s for s in walk(steps) if isinstance(s, Parallel)]
    inside = {id(s) for group in groups for task in group.tasks for s in task}
    yield [s for s in walk(steps) if isinstance(s, Compute) and id(s) not in inside]
    for group in groups:
        yield from map(list, group.tasks)


def most_rows(writer: int, readers: Sequence[tuple[int, RowAccess | None]], out: Buffer, order: Sequence[Compute]) -> int:
    """The most rows that are between being written and being read for the last time."""
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
    """The buffers that each task has for itself: what all kernels of a group but the last write. In place of each, one with a
    copy for each task."""
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
    """The buffer once for each task."""
    itemsize = ITEM_SIZES[buffer.dtype]
    size = -(-buffer.nbytes // COPY_ALIGNMENT_BYTES) * COPY_ALIGNMENT_BYTES // itemsize
    return Buffer(buffer.name, buffer.dtype, (tasks * size,), buffer.role, None, tasks)
