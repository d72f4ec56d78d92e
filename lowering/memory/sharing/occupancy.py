"""Which bytes of a buffer hold something that is still wanted, and when: finer than lifetimes, which know whole buffers.

A kernel that runs by rows writes a buffer row by row, and its readers are done with it row by row; so two buffers that are
live together may still share bytes, where the one's rows are read before the other's are written. And a kernel that reads
each element before it stores there may write over an operand that nobody reads again. `spacing` says of a pair of buffers
how far apart they have to lie.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...elements.expression import Buffer, Load, Reduce
from ...elements.traverse import free_axes, loads, nodes
from ...kernels.kernel import Branch, CheckTrue, Compute, Kernel, Loop, Step, walk
from ...loops.access_order import may_overwrite
from ...loops.ir import buffers_read
from ...loops.program import Program
from ...row_tiling.row_access import row_dimension, rows_read
from ..buffers import Ticks

Rows = npt.NDArray[np.int64]
RowBounds = tuple[list[int], list[int]]
"""Of each row of a kernel's output the first row that it reads of a buffer, and the end."""
NEVER = np.iinfo(np.int64).max
Spacing = tuple[tuple[int, int], ...]
"""Open intervals, ascending: the offset of one buffer relative to another's lies in none of them."""


class Occupied(NamedTuple):
    """Bytes [first, end) of a buffer hold something from the tick `written` to the tick `read`, both included."""
    first: int
    end: int
    written: int
    read: int


def timed(steps: Sequence[Step]) -> Iterator[tuple[int, Compute]]:
    """The steps that compute, outside of branches and loops, each with its tick in the line of `lifetimes`; not those that run
    in parts at the same time."""
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
    """Buffers that branches, loops, checks and parts use: these have no more than a lifetime."""
    found: set[Buffer] = set()
    for outer in program.steps:
        for step in walk((outer,)):
            match step:
                case Branch(condition) | Loop(_, condition) | CheckTrue(condition):
                    found.add(condition)
                case Compute(kernel) if step is not outer:
                    found.update(program.functions[kernel].params)
    return found


def occupancy(program: Program, live: Mapping[Buffer, tuple[Ticks, ...]]) -> dict[Buffer, tuple[Occupied, ...]]:
    """Of each buffer of `live`: what is occupied when. One of which nothing finer is known is occupied as a whole."""
    whole = {b: tuple([Occupied(0, nbytes, *span) for span in spans]) for b, spans in live.items() for nbytes in [b.nbytes]}
    return {**whole, **(by_rows(program, live) if program.kernels else {})}


def by_rows(program: Program, live: Mapping[Buffer, tuple[Ticks, ...]]) -> dict[Buffer, tuple[Occupied, ...]]:
    """The buffers that kernels write or read row by row, and nothing else does."""
    ticks = list(timed(program.steps))
    partly = {b for _, s in ticks if s.rows is not None for b in program.functions[s.kernel].params} - used_elsewhere(program)
    whole = {k.out for k in program.kernels} | set(program.inputs)  # not the rings that some of them lie in
    lives = {b: Life.of(b, live[b][0]) for b in partly & whole if len(live.get(b, ())) == 1 and row_dimension(b)[1] > 1}
    reads: dict[int, Mapping[Buffer, RowBounds]] = {}
    for tick, step in ticks:
        kernel, function = program.kernels[step.kernel], program.functions[step.kernel]
        if step.kernel not in reads:
            reads[step.kernel] = row_bounds(kernel) if step.rows is not None else {}
        for b in function.params:
            if b in lives:
                lives[b].use(tick, b is kernel.out, step.rows, reads[step.kernel].get(b))
    return {b: life.occupied() for b, life in lives.items()}


def row_bounds(kernel: Kernel) -> dict[Buffer, RowBounds]:
    return {b: (first.tolist(), end.tolist()) for b, (first, end) in rows_read(kernel).items()}


@dataclass(slots=True)
class Life:
    """Of each row of a buffer: the tick when it is written, and the one when it is read for the last time."""
    buffer: Buffer
    written: list[int]
    read: list[int]

    @staticmethod
    def of(buffer: Buffer, span: Ticks) -> Life:
        """An input is there from the start."""
        _, rows = row_dimension(buffer)
        return Life(buffer, [span[0] if buffer.role == "argument" else NEVER] * rows,
                    [span[1] if buffer.role == "result" else -1] * rows)

    def use(self, tick: int, is_written: bool, rows: tuple[int, int] | None, read: RowBounds | None) -> None:
        """A step writes rows, or reads what those rows need; ticks only rise."""
        first, end = 0, len(self.read)
        if is_written:
            first, end = rows or (first, end)
            self.written[first:end] = [min(before, tick) for before in self.written[first:end]]
        elif rows is not None and read is not None:
            low, high = read
            first, end = min(low[rows[0]:rows[1]]), max(high[rows[0]:rows[1]])
        self.read[first:end] = [max(before, tick) for before in self.read[first:end]]

    def occupied(self) -> tuple[Occupied, ...]:
        """Neighbouring rows with the same life together."""
        lives = list(zip(self.written, self.read))
        nbytes = self.buffer.nbytes // len(lives)
        edges = [0, *(i for i in range(1, len(lives)) if lives[i] != lives[i - 1]), len(lives)]
        return tuple(Occupied(a * nbytes, z * nbytes, *lives[a]) for a, z in itertools.pairwise(edges))


# ---- pairs -----------------------------------------------------------------------------------------------------------
def spacing(one: Sequence[Occupied], other: Sequence[Occupied]) -> Spacing:
    """Where `other` may not begin, relative to the beginning of `one`: so that no byte is occupied by both at a tick."""
    return spacing_of(table(one), table(other))


def table(spans: Iterable[Occupied]) -> Rows:
    """A row for each: first byte, end, tick written, tick read."""
    return np.fromiter(itertools.chain.from_iterable(spans), np.int64).reshape(-1, 4)


def spacing_of(a: Rows, b: Rows) -> Spacing:
    """`spacing` of two tables."""
    together = (a[:, None, 2] <= b[None, :, 3]) & (b[None, :, 2] <= a[:, None, 3])
    one, other = np.nonzero(together)
    return merged(a[one, 0] - b[other, 1], a[one, 1] - b[other, 0])


def merged(low: Rows, high: Rows) -> Spacing:
    """The union of open intervals; two that only touch leave the point between them."""
    if not len(low):
        return ()
    order = np.argsort(low)
    starts, reached = low[order], np.maximum.accumulate(high[order])
    apart = np.flatnonzero(starts[1:] >= reached[:-1])
    return tuple(zip(starts[[0, *apart + 1]].tolist(), reached[[*apart, -1]].tolist()))


def in_place(program: Program, live: Mapping[Buffer, tuple[Ticks, ...]]) -> Iterator[tuple[Buffer, Buffer]]:
    """Pairs (operand, result) that may lie on the same bytes: a kernel reads the one for the last time and writes the other
    for the first, each element after it has been read."""
    for tick, step in timed(program.steps) if program.kernels else ():
        if step.rows is not None or step.parts > 1:  # another part may read what one has overwritten
            continue
        kernel, function = program.kernels[step.kernel], program.functions[step.kernel]
        out = kernel.out
        if out not in function.params or live.get(out, ((-1, -1),))[0][0] != tick:
            continue
        last = [b for b in function.params if b in buffers_read(function) and b is not out and b.nbytes == out.nbytes
                and b.dtype == out.dtype and [s[1] for s in live.get(b, ())] == [tick]]
        elsewhere = read_elsewhere(kernel) if last else set()
        for b in last:
            if b not in elsewhere and may_overwrite(function, b, out):
                yield b, out


def read_elsewhere(kernel: Kernel) -> set[Buffer]:
    """Buffers of which not every element is read for the element at the same place alone, or for the row that it is in: a
    quick test, before the order of the loops is looked at."""
    place, found = tuple(map(Affine.of, kernel.axes)), list(nodes(kernel.value))
    reductions = [e for e in found if isinstance(e, Reduce)]
    along = {Affine.of(a) for r in reductions for a in r.axes}
    free: dict[Load, frozenset[Axis]] = {}  # along axes on which no reduction around a load depends its values are one row
    for r in reductions:
        axes = free_axes(r)
        free |= {e: free.get(e, frozenset()) | axes for e in loads(r.body)}
    return {e.buffer for e in found if isinstance(e, Load) and (len(e.index) != len(place) or any(
        i != p and (e not in free or i not in along or p.axes & free[e]) for i, p in zip(e.index, place)))}
