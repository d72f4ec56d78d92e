"""The bytes of each buffer that a step touches: part of the verifier's replay (`replay`).

A step of some rows touches the rows in its kernel's index expressions; every other step touches whole buffers. The bytes
that each row of a kernel touches are computed once, in tables. Buffers that share no bytes with others are left out:
nothing can overwrite them.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...elements.expression import Buffer, Load
from ...elements.traverse import loads
from ...kernels.kernel import Kernel
from ...loops.ir import buffers_read, buffers_written
from ...loops.program import Program
from .placed_buffers import Layout, Use


@dataclass(frozen=True, slots=True)
class Touched:
    """The uses of one step: it reads first, then it writes; scratch means nothing before and after. `pairs` are pairs of
    these uses, by number in that order, where the first is no read and the buffers share bytes."""
    name: str
    reads: tuple[Use, ...]
    writes: tuple[Use, ...]
    scratch: tuple[Use, ...]
    pairs: tuple[tuple[int, int], ...]

    @property
    def uses(self) -> tuple[Use, ...]:
        return *self.reads, *self.writes, *self.scratch


@dataclass(frozen=True, slots=True)
class RowTable:
    """The bytes of a buffer that each row of a kernel's output touches: from `first[row]` to before `end[row]`. Each load
    is monotonic in the rows, so the outermost bytes of a range of rows are those of its first or its last row."""
    buffer: Buffer
    first: Sequence[int]
    end: Sequence[int]

    def rows(self, low: int, last: int) -> Use:
        """Return the bytes that the rows from `low` to `last` touch, both included."""
        first, end = self.first, self.end
        return Use(self.buffer, min(first[low], first[last]), max(end[low], end[last]))


class StepUses:
    """The uses of the steps of a program, computed on demand."""

    def __init__(self, program: Program, layout: Layout) -> None:
        self.program, self.layout = program, layout
        self.whole_known: dict[int, Touched] = {}
        self.tables_known: dict[int, tuple[list[RowTable], list[RowTable]]] = {}

    def touched(self, kernel: int, rows: tuple[int, int] | None) -> Touched:
        """Return all bytes that one step reads, writes, and uses as scratch."""
        whole = self.whole_known.get(kernel) or self.whole(kernel)
        if rows is None:
            return whole
        if not self.program.kernels:  # a step that continues needs the rows that were written before
            reads = whole.reads + whole.writes if rows[0] > 0 else whole.reads
            return replace(whole, reads=reads, pairs=self.pairs(reads, whole.writes + whole.scratch))
        low, last = rows[0], rows[1] - 1
        read, written = self.tables_known.get(kernel) or self.tables(kernel)
        return Touched(whole.name, tuple([t.rows(low, last) for t in read]), tuple([t.rows(low, last) for t in written]),
                       whole.scratch, whole.pairs)

    def whole(self, kernel: int) -> Touched:
        """Return the uses of a step of all rows."""
        function = self.program.functions[kernel]
        near = [b for b in function.params if self.layout.is_shared(b)]
        reads, writes, scratch = (tuple(map(self.layout.whole, buffers)) for buffers in (
            [b for b in near if b in buffers_read(function)], [b for b in near if b in buffers_written(function)],
            filter(self.layout.is_shared, function.scratch)))
        self.whole_known[kernel] = Touched(function.name, reads, writes, scratch, self.pairs(reads, writes + scratch))
        return self.whole_known[kernel]

    def at_once(self, kernels: Sequence[int]) -> Touched:
        """Return the uses of kernels that are tiled by rows, in tasks at the same time; a buffer that one of them writes does
        not count as read."""
        found = [self.whole_known.get(k) or self.whole(k) for k in kernels]
        writes, scratch = ({u.buffer: u for u in uses} for uses in (
            [u for t in found for u in t.writes], [u for t in found for u in t.scratch]))
        reads = {u.buffer: u for t in found for u in t.reads if u.buffer not in writes}
        written = (*writes.values(), *scratch.values())
        return Touched(found[-1].name, tuple(reads.values()), tuple(writes.values()), tuple(scratch.values()),
                       self.pairs(tuple(reads.values()), written))

    def pairs(self, reads: Sequence[Use], written: Sequence[Use]) -> tuple[tuple[int, int], ...]:
        """Return the `pairs` of `Touched`."""
        uses = *reads, *written
        return tuple((i, j) for i in range(len(reads), len(uses)) for j in range(i)
                     if self.layout.meets(uses[i].buffer, uses[j].buffer))

    def tables(self, number: int) -> tuple[list[RowTable], list[RowTable]]:
        """Return the bytes that each row reads and writes: some rows of buffers whose layout is that of the kernel's
        expression, and all of other buffers."""
        kernel, whole = self.program.kernels[number], self.whole_known[number]
        axis = next(a for a in kernel.axes if a.extent > 1)
        found = row_loads(kernel, axis, {use.buffer for use in whole.reads})
        self.tables_known[number] = ([read_table(use.buffer, found.get(use.buffer, ()), axis.extent) for use in whole.reads],
                                     [written_table(use.buffer, kernel, axis.extent) for use in whole.writes])
        return self.tables_known[number]


# ---- tables ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class RowLoad:
    """The range of a load along its buffer's rows, from `low` to `high` for row 0 of the kernel's output, `step` further for
    each row; `unit` of these numbers make a row."""
    low: int
    high: int
    step: int
    unit: int


def row_loads(kernel: Kernel, axis: Axis, wanted: set[Buffer]) -> dict[Buffer, set[RowLoad]]:
    """Return the loads of some buffers as functions of the kernel's rows, each distinct one once."""
    found: dict[Buffer, set[RowLoad]] = {}
    for load in loads(kernel.value):
        if load.buffer in wanted:
            found.setdefault(load.buffer, set()).add(row_load(load, axis))
    return found


def row_load(load: Load, axis: Axis) -> RowLoad:
    d = rows_dimension(load.buffer)
    flat = load.is_flat and len(load.buffer.shape) > 1
    place = load.index[0 if flat else d] if load.index else Affine()
    if axis in place.hidden:
        return RowLoad(0, load.buffer.size, 0, 1)
    low, high = place.without(axis).bounds
    return RowLoad(low, high, place.coefficient(axis), load.buffer.strides[d] if flat else 1)


def read_table(buffer: Buffer, found: Iterable[RowLoad], extent: int) -> RowTable:
    """Return all bytes that the loads of a row touch, clipped to the rows of the buffer; without any load, the whole buffer."""
    rows = rows_of(buffer)
    number, nbytes = np.arange(extent), buffer.nbytes // rows
    first, end = [], []
    for load in found:
        place = number * load.step
        first.append(((place + load.low) // load.unit).clip(0, rows - 1))
        end.append(((place + load.high) // load.unit + 1).clip(1, rows))
    if not first:
        return RowTable(buffer, [0] * extent, [buffer.nbytes] * extent)
    return RowTable(buffer, (np.minimum.reduce(first) * nbytes).tolist(), (np.maximum.reduce(end) * nbytes).tolist())


def written_table(buffer: Buffer, kernel: Kernel, extent: int) -> RowTable:
    """Return the bytes that each row writes: its own row of the kernel's output, the whole of any other buffer."""
    if buffer is not kernel.out:
        return RowTable(buffer, [0] * extent, [buffer.nbytes] * extent)
    rows = rows_of(buffer)
    nbytes = buffer.nbytes // rows
    return RowTable(buffer, [min(row, rows - 1) * nbytes for row in range(extent)],
                    [min(row + 1, rows) * nbytes for row in range(extent)])


def rows_dimension(buffer: Buffer) -> int:
    return next((d for d, n in enumerate(buffer.shape) if n > 1), 0)


def rows_of(buffer: Buffer) -> int:
    return buffer.shape[rows_dimension(buffer)] if buffer.shape else 1
