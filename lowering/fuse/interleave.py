"""Kernels that run together, some rows of each at a time, so that what one writes is still near when the next reads
it.

Which rows a kernel needs of its producer follows from its index expressions; nothing here knows what kernels compute.
A buffer of which only the last rows are ever read again becomes a ring of so many rows.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..elements.affine import Affine, Axis
from ..elements.expression import Buffer, Load, Reduce
from ..elements.traverse import loads, nodes
from ..native.target import Target
from .kernel import Branch, Compute, Kernel, Kernels, Loop, Step, walk

RowPolicy = Literal["cache", "always", "never"]
"""Which kernels run in turns: those whose tensors in between would not stay in the cache, all that can, or none."""


@dataclass(frozen=True, slots=True)
class Interleaved:
    """The steps in their new order, which kernels run by rows, and the smaller buffers of those that became rings."""
    steps: tuple[Step, ...]
    by_rows: frozenset[int] = frozenset()
    rings: Mapping[Buffer, Buffer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class RowAccess:
    """A kernel that can run by rows: `axis` is the axis of its rows, `loads` say which rows of others each of them
    needs."""
    kernel: Kernel
    axis: Axis
    loads: tuple[Load, ...]

    @property
    def buffers(self) -> frozenset[Buffer]:
        return frozenset(x.buffer for x in self.loads)

    def read(self, buffer: Buffer, row: int) -> tuple[int, int] | None:
        """The rows [first, end) of `buffer` that output row `row` reads, if it reads that buffer; never none, even
        where all that it reads is padding: the loops of a kernel may read only what something has written."""
        spans = [self.span(x, row) for x in self.loads if x.buffer is buffer]
        if not spans:
            return None
        _, rows = row_dimension(buffer)
        return max(0, min(low for low, _ in spans)), min(rows, max(0, *(high for _, high in spans)) + 1)

    def span(self, load: Load, row: int) -> tuple[int, int]:
        d, _ = row_dimension(load.buffer)
        at = {self.axis: Affine.of(row)}
        if load.is_flat and len(load.buffer.shape) > 1:
            low, high = load.index[0].substitute(at).bounds
            stride = load.buffer.strides[d]
            return low // stride, high // stride
        return load.index[d].substitute(at).bounds


def row_dimension(buffer: Buffer) -> tuple[int, int]:
    """The first dimension with more than one row, and how many; the first one if there is none."""
    return next(((d, n) for d, n in enumerate(buffer.shape) if n > 1), (0, 1))


def rows_of(kernel: Kernel) -> RowAccess | None:
    """How a kernel runs by rows, where it has the rows, columns and channels that schedules can take apart: its buffer
    is no variable, which others could read before or after, and what it reads of itself is nothing."""
    axes = [a for a in kernel.axes if a.extent > 1]
    read = tuple(loads(kernel.value))
    if len(axes) < 3 or kernel.out.role not in ("temporary", "result") or any(x.buffer is kernel.out for x in read):
        return None
    return RowAccess(kernel, axes[0], read) if any(isinstance(e, Reduce) for e in nodes(kernel.value)) else None


def interleave(program: Kernels, target: Target, rows: RowPolicy = "cache") -> Interleaved:
    """Runs of plain steps are put in order by rows where that pays; control flow stays where it is."""
    if rows == "never":
        return Interleaved(program.steps)
    found = [rows_of(k) for k in program.kernels]
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
        for group in groups(run, found, target.l2_bytes // 5 if rows == "cache" else 0):
            if len(group) == 1:
                yield Compute(group[0])
            else:
                by_rows.update(group)
                yield from row_by_row([(i, found[i]) for i in group])  # type: ignore[misc]

    steps = block(program.steps)
    if not by_rows:
        return Interleaved(steps)
    return Interleaved(steps, frozenset(by_rows), rings(program, steps, found, by_rows))


def groups(run: Sequence[int], found: Sequence[RowAccess | None], most: int) -> Iterator[list[int]]:
    """Chains of kernels of which the tensors in between have more than `most` bytes."""
    group: list[int] = []
    for number in run:
        last, kernel = found[group[-1]] if group else None, found[number]
        joined = (last and kernel and last.kernel.out in kernel.buffers
                  and last.kernel.out.nbytes > most and number not in group)
        if not joined and group:
            yield group
            group = []
        group.append(number)
    if group:
        yield group


def row_by_row(group: Sequence[tuple[int, RowAccess]]) -> list[Step]:
    """Each row of the last kernel as soon as the rows that it needs are there."""
    steps: list[Step] = []
    done = [0] * len(group)

    def produce(position: int, end: int) -> None:
        """Run kernel `position` until row `end`, each of its producers first as far as needed."""
        number, kernel = group[position]
        if done[position] >= end:
            return
        for earlier in range(position):
            read = [kernel.read(group[earlier][1].kernel.out, row) for row in range(done[position], end)]
            produce(earlier, max((r[1] for r in read if r), default=0))
        steps.append(Compute(number, (done[position], end)))
        done[position] = end

    last = len(group) - 1
    for row in range(group[last][1].axis.extent):
        produce(last, row + 1)
    for position in range(last):  # rows that nobody in the group asked for
        produce(position, group[position][1].axis.extent)
    return steps


# ---- rings -------------------------------------------------------------------------------------------------------
def rings(program: Kernels, steps: tuple[Step, ...], found: Sequence[RowAccess | None], by_rows: set[int]
          ) -> dict[Buffer, Buffer]:
    """The buffers of which not all rows must be kept, each with a smaller one of a power of two of rows."""
    result: dict[Buffer, Buffer] = {}
    needed = {s.condition for s in walk(steps) if isinstance(s, (Branch, Loop))}
    order = [s for s in walk(steps) if isinstance(s, Compute)]
    for number in sorted(by_rows):
        out = program.kernels[number].out
        readers = [i for i, k in enumerate(program.kernels) if any(x.buffer is out for x in loads(k.value))]
        if out.role != "temporary" or out in program.outputs or out in needed or not set(readers) <= by_rows:
            continue
        d, extent = row_dimension(out)
        rows = 1 << (most_rows(number, [(i, found[i]) for i in readers], out, order) - 1).bit_length()
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
    needed = [(reader.read(out, row) or (1 << 62, 0))[0] for row in range(reader.axis.extent)]
    for row in reversed(range(len(needed) - 1)):
        needed[row] = min(needed[row], needed[row + 1])
    return needed
