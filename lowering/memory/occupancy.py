"""Which bytes of a buffer hold something that is still wanted, and when: finer than lifetimes, which know whole buffers.

A kernel that runs by rows writes a buffer row by row, and its readers are done with it row by row; so two buffers that are
live together may still share bytes, where the one's rows are read before the other's are written. And a kernel that reads
each element before it stores there may write over an operand that nobody reads again. `spacing` says of a pair of buffers
how far apart they have to lie.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..elements.affine import Affine
from ..elements.expression import Buffer, Load, Reduce
from ..elements.traverse import nodes
from ..fuse.interleave import row_dimension, rows_read
from ..fuse.kernel import Branch, Compute, Kernel, Loop, Step, walk
from ..loops.ir import buffers_read
from ..loops.order import may_overwrite
from ..loops.program import Program
from .buffers import Ticks

Rows = npt.NDArray[np.int64]
Spacing = tuple[tuple[int, int], ...]
"""Open intervals, ascending: the offset of one buffer relative to another's lies in none of them."""


@dataclass(frozen=True, slots=True)
class Occupied:
    """Bytes [first, end) of a buffer hold something from the tick `written` to the tick `read`, both included."""
    first: int
    end: int
    written: int
    read: int


def timed(steps: Sequence[Step]) -> Iterator[tuple[int, Compute]]:
    """The steps that compute, outside of branches and loops, each with its tick in the line of `lifetimes`."""
    tick = 0
    for step in steps:
        if isinstance(step, Compute):
            yield tick, step
        tick += length(step)


def length(step: Step) -> int:
    """Ticks that a step takes."""
    match step:
        case Branch(_, then, otherwise):
            return 1 + sum(map(length, (*then, *otherwise)))
        case Loop(test, _, body):
            return 1 + sum(map(length, (*test, *body)))
    return 1


def used_elsewhere(program: Program) -> set[Buffer]:
    """Buffers that branches and loops use: these have no more than a lifetime."""
    found: set[Buffer] = set()
    for outer in program.steps:
        for step in walk((outer,)):
            match step:
                case Branch(condition) | Loop(_, condition):
                    found.add(condition)
                case Compute(kernel) if step is not outer:
                    found.update(program.functions[kernel].params)
    return found


def occupancy(program: Program, live: Mapping[Buffer, tuple[Ticks, ...]]) -> dict[Buffer, tuple[Occupied, ...]]:
    """Of each buffer of `live`: what is occupied when. One of which nothing finer is known is occupied as a whole."""
    whole = {b: tuple(Occupied(0, b.nbytes, *span) for span in spans) for b, spans in live.items()}
    return {**whole, **(by_rows(program, live) if program.kernels else {})}


def by_rows(program: Program, live: Mapping[Buffer, tuple[Ticks, ...]]) -> dict[Buffer, tuple[Occupied, ...]]:
    """The buffers that kernels write or read row by row, and nothing else does."""
    ticks = list(timed(program.steps))
    partly = {b for _, s in ticks if s.rows is not None for b in program.functions[s.kernel].params} - used_elsewhere(program)
    whole = {k.out for k in program.kernels} | set(program.inputs)  # not the rings that some of them lie in
    lives = {b: Life.of(b, live[b][0]) for b in partly & whole if len(live.get(b, ())) == 1 and row_dimension(b)[1] > 1}
    reads: dict[int, Mapping[Buffer, tuple[Rows, Rows]]] = {}
    for tick, step in ticks:
        kernel, function = program.kernels[step.kernel], program.functions[step.kernel]
        if step.kernel not in reads:
            reads[step.kernel] = rows_read(kernel) if step.rows is not None else {}
        for b in function.params:
            if b in lives:
                lives[b].use(tick, b is kernel.out, step.rows, reads[step.kernel].get(b))
    return {b: life.occupied() for b, life in lives.items()}


@dataclass(slots=True)
class Life:
    """Of each row of a buffer: the tick when it is written, and the one when it is read for the last time."""
    buffer: Buffer
    written: Rows
    read: Rows

    @staticmethod
    def of(buffer: Buffer, span: Ticks) -> Life:
        """An input is there from the start."""
        _, rows = row_dimension(buffer)
        start = span[0] if buffer.role == "argument" else np.iinfo(np.int64).max
        return Life(buffer, np.full(rows, start), np.full(rows, span[1] if buffer.role == "result" else -1))

    def use(self, tick: int, is_written: bool, rows: tuple[int, int] | None, read: tuple[Rows, Rows] | None) -> None:
        """A step writes rows, or reads what those rows need."""
        if is_written:
            part = slice(*rows) if rows else slice(None)
            self.written[part] = np.minimum(self.written[part], tick)
            self.read[part] = np.maximum(self.read[part], tick)
            return
        if rows is not None and read is not None:
            low, high = read
            self.read[int(low[rows[0]:rows[1]].min()):int(high[rows[0]:rows[1]].max())] = tick
        else:
            self.read[:] = tick

    def occupied(self) -> tuple[Occupied, ...]:
        """Neighbouring rows with the same life together."""
        _, rows = row_dimension(self.buffer)
        nbytes = self.buffer.nbytes // rows
        changes = np.flatnonzero(np.diff(self.written) | np.diff(self.read)) + 1
        edges = [0, *changes.tolist(), rows]
        return tuple(Occupied(a * nbytes, z * nbytes, int(self.written[a]), int(self.read[a]))
                     for a, z in itertools.pairwise(edges))


# ---- pairs -----------------------------------------------------------------------------------------------------------
def spacing(one: Sequence[Occupied], other: Sequence[Occupied]) -> Spacing:
    """Where `other` may not begin, relative to the beginning of `one`: so that no byte is occupied by both at a tick."""
    a, b = (np.array([(o.first, o.end, o.written, o.read) for o in side], np.int64) for side in (one, other))
    together = (a[:, None, 2] <= b[None, :, 3]) & (b[None, :, 2] <= a[:, None, 3])
    low = (a[:, None, 0] - b[None, :, 1])[together]
    high = (a[:, None, 1] - b[None, :, 0])[together]
    return merged(low, high)


def merged(low: Rows, high: Rows) -> Spacing:
    """The union of open intervals; two that only touch leave the point between them."""
    result: list[tuple[int, int]] = []
    for start, end in sorted(set(zip(low.tolist(), high.tolist()))):
        if result and start < result[-1][1]:
            result[-1] = result[-1][0], max(end, result[-1][1])
        else:
            result.append((start, end))
    return tuple(result)


def in_place(program: Program, live: Mapping[Buffer, tuple[Ticks, ...]]) -> Iterator[tuple[Buffer, Buffer]]:
    """Pairs (operand, result) that may lie on the same bytes: a kernel reads the one for the last time and writes the other
    for the first, each element after it has been read."""
    for tick, step in timed(program.steps) if program.kernels else ():
        if step.rows is not None:
            continue
        kernel, function = program.kernels[step.kernel], program.functions[step.kernel]
        if kernel.out not in function.params or live.get(kernel.out, ((-1, -1),))[0][0] != tick:
            continue
        for b in function.params:
            if b in buffers_read(function) and b is not kernel.out and [s[1] for s in live.get(b, ())] == [tick] and (
                    is_read_in_place(kernel, b) and may_overwrite(function, b, kernel.out)):
                yield b, kernel.out


def is_read_in_place(kernel: Kernel, buffer: Buffer) -> bool:
    """Whether each element of `buffer` is read for the element at the same place alone: a quick test, before the order of
    the loops is looked at."""
    place = tuple(map(Affine.of, kernel.axes))
    inside = {id(e) for r in nodes(kernel.value) if isinstance(r, Reduce) for e in nodes(r.body)}
    read = [e for e in nodes(kernel.value) if isinstance(e, Load) and e.buffer is buffer]
    same = buffer.nbytes == kernel.out.nbytes and buffer.dtype == kernel.out.dtype
    return same and all(id(e) not in inside and e.index == place for e in read)
