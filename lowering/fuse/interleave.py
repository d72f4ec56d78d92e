"""Kernels that run together, some rows of each at a time, so that what one writes is still near when the next reads
it.

Which rows a kernel needs of its producer follows from its index expressions; nothing here knows what kernels compute.
A buffer of which only the last rows are ever read again becomes a ring of so many rows.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..elements.affine import Affine
from ..elements.expression import Buffer, Load, Reduce
from ..elements.traverse import loads, nodes
from ..native.target import Target
from .kernel import Branch, Compute, Kernel, Kernels, Loop, Step, walk

Rows = npt.NDArray[np.int64]

RowPolicy = Literal["cache", "memory", "never"]
"""Which kernels run in turns: those whose tensors in between would not stay in the cache, those with which the least memory
is needed, or none."""


MOST_TRIED = 16
"""Ways of grouping that are looked at for the one with the least memory."""


@dataclass(frozen=True, slots=True)
class Interleaved:
    """The steps in their new order, which kernels run by rows, and the smaller buffers of those that became rings."""
    steps: tuple[Step, ...]
    by_rows: frozenset[int] = frozenset()
    rings: Mapping[Buffer, Buffer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class RowAccess:
    """A kernel that can run by rows: how many it has, and of each buffer that it reads, for each of its rows, the rows
    [first, end) that this needs; never none, even where all that it reads is padding: the loops of a kernel may read only
    what something has written."""
    kernel: Kernel
    rows: int
    reads: Mapping[Buffer, tuple[Rows, Rows]]


def rows_read(kernel: Kernel) -> dict[Buffer, tuple[Rows, Rows]]:
    """Of each buffer that a kernel reads: for each row of its output the first row that it reads, and the end."""
    axis = next((a for a in kernel.axes if a.extent > 1), kernel.axes[0])
    number = np.arange(axis.extent)
    found: dict[Buffer, tuple[Rows, Rows]] = {}
    for load in loads(kernel.value):
        d, rows = row_dimension(load.buffer)
        flat = load.is_flat and len(load.buffer.shape) > 1
        index = load.index[0 if flat else d] if load.index else Affine()
        if axis in index.hidden:
            first, end = np.zeros_like(number), np.full_like(number, rows)
        else:
            (low, high), step = index.without(axis).bounds, number * index.coefficient(axis)
            by = load.buffer.strides[d] if flat else 1
            first = np.clip((step + low) // by, 0, rows - 1)
            end = np.clip((step + high) // by + 1, 1, rows)
        before = found.get(load.buffer, (first, end))
        found[load.buffer] = np.minimum(before[0], first), np.maximum(before[1], end)
    return found


def row_dimension(buffer: Buffer) -> tuple[int, int]:
    """The first dimension with more than one row, and how many; the first one if there is none."""
    return next(((d, n) for d, n in enumerate(buffer.shape) if n > 1), (0, 1))


def rows_of(kernel: Kernel) -> RowAccess | None:
    """How a kernel runs by rows, where it has the rows, columns and channels that schedules can take apart: its buffer
    is no variable, which others could read before or after, and what it reads of itself is nothing."""
    axes = [a for a in kernel.axes if a.extent > 1]
    if len(axes) < 3 or kernel.out.role not in ("temporary", "result"):
        return None
    if any(isinstance(e, Load) and e.buffer is kernel.out for e in nodes(kernel.value)):
        return None
    if not any(isinstance(e, Reduce) for e in nodes(kernel.value)):
        return None
    return RowAccess(kernel, axes[0].extent, rows_read(kernel))


def interleave(program: Kernels, target: Target, rows: RowPolicy | None = None) -> Interleaved:
    """Runs of plain steps are put in order by rows where that pays; control flow stays where it is. Without a policy, what
    counts is the cache, or memory where there is none."""
    rows = rows or ("cache" if target.has_cache else "memory")
    if rows == "never":
        return Interleaved(program.steps)
    found = [rows_of(k) for k in program.kernels]
    if rows == "cache":
        return grouped(program, found, target.l2_bytes // 5)
    sizes = sorted({f.kernel.out.nbytes for f in found if f is not None})
    tried = [Interleaved(program.steps), *(grouped(program, found, size - 1) for size in sizes[-MOST_TRIED:])]
    return min(tried, key=lambda i: (most_live(program, i), len(i.steps)))


def grouped(program: Kernels, found: Sequence[RowAccess | None], most: int) -> Interleaved:
    """Kernels run in turns where what lies between them has more than `most` bytes."""
    by_rows: set[int] = set()

    def block(steps: Iterable[Step]) -> tuple[Step, ...]:
        result: list[Step] = []
        run: list[int] = []
        for step in (*steps, None):
            if isinstance(step, Compute) and step.rows is None:
                run.append(step.kernel)
                continue
            result += straight(run)
            run = []
            match step:
                case Branch(condition, then, otherwise):
                    result.append(Branch(condition, block(then), block(otherwise)))
                case Loop(test, condition, body):
                    result.append(Loop(block(test), condition, block(body)))
                case None:
                    pass
                case _:
                    result.append(step)
        return tuple(result)

    def straight(run: Sequence[int]) -> Iterator[Step]:
        for group in groups(run, found, most):
            if len(group) == 1:
                yield Compute(group[0])
            else:
                by_rows.update(group)
                yield from row_by_row([(i, found[i]) for i in group])  # type: ignore[misc]

    steps = block(program.steps)
    if not by_rows:
        return Interleaved(steps)
    return Interleaved(steps, frozenset(by_rows), rings(program, steps, found, by_rows))


def most_live(program: Kernels, interleaved: Interleaved) -> int:
    """The most bytes of temporaries that are live at a step, loops and branches taken as they are written."""
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    touched = [{k.out, *(x.buffer for x in loads(k.value))} for k in program.kernels]
    for tick, step in enumerate(walk(interleaved.steps)):
        for buffer in touched[step.kernel] if isinstance(step, Compute) else ():
            if buffer.role == "temporary":
                first.setdefault(buffer, tick)
                last[buffer] = tick
    changes: dict[int, int] = {}
    for buffer, start in first.items():
        nbytes = interleaved.rings.get(buffer, buffer).nbytes
        changes[start] = changes.get(start, 0) + nbytes
        changes[last[buffer] + 1] = changes.get(last[buffer] + 1, 0) - nbytes
    return max(itertools.accumulate(changes[tick] for tick in sorted(changes)), default=0)


def groups(run: Sequence[int], found: Sequence[RowAccess | None], most: int) -> Iterator[list[int]]:
    """Chains of kernels of which the tensors in between have more than `most` bytes."""
    group: list[int] = []
    for number in run:
        last, kernel = found[group[-1]] if group else None, found[number]
        joined = (last and kernel and last.kernel.out in kernel.reads
                  and last.kernel.out.nbytes > most and number not in group)
        if not joined and group:
            yield group
            group = []
        group.append(number)
    if group:
        yield group


def row_by_row(group: Sequence[tuple[int, RowAccess]]) -> list[Step]:
    """Each row of the last kernel as soon as the rows that it needs are there, and each of those as late as that allows."""
    place = {kernel.kernel.out: i for i, (_, kernel) in enumerate(group)}
    needs = [[(place[b], ends.tolist()) for b, (_, ends) in kernel.reads.items() if place.get(b, i) < i]
             for i, (_, kernel) in enumerate(group)]
    done = [0] * len(group)
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
    produce(last, group[last][1].rows)
    for position in range(last):  # rows that nobody in the group asked for
        produce(position, group[position][1].rows)
    return list(together([group[position][0] for position in order]))


def together(rows: Sequence[int]) -> Iterator[Compute]:
    """A step for each run of rows of the same kernel."""
    done: dict[int, int] = {}
    for kernel, run in itertools.groupby(rows):
        first = done.get(kernel, 0)
        done[kernel] = first + len(list(run))
        yield Compute(kernel, (first, done[kernel]))


# ---- rings -------------------------------------------------------------------------------------------------------
def rings(program: Kernels, steps: tuple[Step, ...], found: Sequence[RowAccess | None], by_rows: set[int]
          ) -> dict[Buffer, Buffer]:
    """The buffers of which not all rows must be kept, each with a smaller one, of as many rows as must be."""
    result: dict[Buffer, Buffer] = {}
    needed = {s.condition for s in walk(steps) if isinstance(s, (Branch, Loop))}
    order = [s for s in walk(steps) if isinstance(s, Compute)]
    for number in sorted(by_rows):
        out = program.kernels[number].out
        readers = [i for i, k in enumerate(program.kernels) if any(x.buffer is out for x in loads(k.value))]
        if out.role != "temporary" or out in program.outputs or out in needed or not set(readers) <= by_rows:
            continue
        d, extent = row_dimension(out)
        rows = most_rows(number, [(i, found[i]) for i in readers], out, order)
        if rows < extent and all(not (x.is_flat and len(out.shape) > 1)
                                 for i in readers for x in loads(program.kernels[i].value) if x.buffer is out):
            shape = (*out.shape[:d], rows, *out.shape[d + 1:])
            result[out] = Buffer(out.name, out.dtype, shape, out.role)
    return result


def most_rows(writer: int, readers: Sequence[tuple[int, RowAccess | None]], out: Buffer, order: Sequence[Compute]) -> int:
    """The most rows that are between being written and being read for the last time."""
    first = {i: first_needed(rows, out) for i, rows in readers if rows}
    done = dict.fromkeys(first, 0)
    most = 1
    for step in order:
        if step.kernel == writer:
            written = step.rows[1] if step.rows else row_dimension(out)[1]
            needed = min((first[i][row] for i, row in done.items() if row < len(first[i])), default=written - 1)
            most = max(most, written - needed)
        if step.kernel in done:
            done[step.kernel] = step.rows[1] if step.rows else len(first[step.kernel])
    return most


def first_needed(reader: RowAccess, out: Buffer) -> list[int]:
    """For each row of the reader, the first row of `out` that it or a later one reads."""
    first, _ = reader.reads[out]
    needed: list[int] = np.minimum.accumulate(first[::-1])[::-1].tolist()
    return needed
