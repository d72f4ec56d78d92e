"""The bytes of a buffer that hold a value still needed, by time: finer than lifetimes, which know whole buffers.

A kernel that is tiled by rows writes a buffer row by row, and its readers are done with it row by row; so two buffers that are
live at the same time may still share bytes, where the rows of one are read before those of the other are written. A kernel is
done with an operand, or with scratch, before it ends, and begins to write its result after it has begun (`instants`); this is
analyzed for the kernels at which the memory is fullest. And a kernel that loads each element before it stores there may write
over an operand that nobody reads again. `spacing` returns the distances between two buffers that are not allowed.
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
from ...loops.dependence.access_order import may_overwrite
from ...loops.ir import Function, buffers_read, buffers_written
from ...loops.program import Program
from ...row_tiling.row_access import row_dimension, rows_read
from ...row_tiling.row_lifetimes import RowLifetimes, RowsRead, rows_used
from ..buffers import Ticks
from .instants import INSTANTS, Held, Instants

COUNTED = 4096
"""Number of pieces into which a buffer is divided when live bytes are counted."""
Table = npt.NDArray[np.int64]
Spacing = tuple[tuple[int, int], ...]
"""Open intervals, ascending: the offset of one buffer relative to another's is in none of them."""


class Occupied(NamedTuple):
    """Bytes [first, end) of a buffer that hold a value from the moment `written` to the moment `read`, both included."""
    first: int
    end: int
    written: int
    read: int


@dataclass(frozen=True, slots=True, eq=False)
class Occupancy:
    """The occupied bytes of each buffer by time: in few pieces, each occupied while one of its bytes is; and their number, as
    rows (0, bytes, moment written, moment read), never too many."""
    pieces: dict[Buffer, tuple[Occupied, ...]]
    counts: dict[Buffer, Table]


def timed(steps: Sequence[Step]) -> Iterator[tuple[int, Compute]]:
    """Yield the steps that compute, outside of branches and loops, each with its tick in the line of `lifetimes`; not those of
    tasks that run at the same time."""
    tick = 0
    for step in steps:
        if isinstance(step, Compute):
            yield tick, step
        tick += length(step)


def length(step: Step) -> int:
    """Return the number of ticks that a step takes."""
    match step:
        case Branch(_, then, otherwise):
            return 1 + sum(map(length, (*then, *otherwise)))
        case Loop(test, _, body):
            return 1 + sum(map(length, (*test, *body)))
    return 1


def used_elsewhere(program: Program) -> set[Buffer]:
    """Return the buffers that branches, loops, checks and tasks use: only the lifetime of these is known."""
    found: set[Buffer] = set()
    for outer in program.steps:
        for step in walk((outer,)):
            match step:
                case Branch(condition) | Loop(_, condition) | CheckTrue(condition):
                    found.add(condition)
                case Compute(kernel) if step is not outer:
                    found.update(program.functions[kernel].params)
    return found


def occupancy(program: Program, live: Mapping[Buffer, tuple[Ticks, ...]], inside: Mapping[int, Instants]) -> Occupancy:
    """Return the occupancy of the buffers; `inside` has the instants of some ticks, the others have one instant."""
    pieces, counts = dict[Buffer, tuple[Occupied, ...]](), dict[Buffer, Table]()
    functions = {tick: program.functions[step.kernel] for tick, step in timed(program.steps) if tick in inside}
    for b, spans in live.items():
        uses = [ends_of(b, span, inside, functions) for span in spans]
        pieces[b] = tuple([o for use in uses for o in occupied_by(b.nbytes, *use)])
        counts[b] = counted(b.nbytes, uses) if len(pieces[b]) > len(spans) else table(pieces[b])
    if program.kernels:
        rows = by_rows(program, live, inside)
        pieces |= rows
        counts |= {b: table(found) for b, found in rows.items()}
    return Occupancy(pieces, counts)


def ends_of(buffer: Buffer, span: Ticks, inside: Mapping[int, Instants], functions: Mapping[int, Function]
            ) -> tuple[Held, Held]:
    """Return the moments at which a buffer begins and ceases to hold a value in a span of its life: those of the kernels there,
    if the first writes it and does not need it before, and the last does not write it."""
    first, last = span
    written, read = Held.whole(0, 0, buffer.nbytes), Held.whole(0, INSTANTS - 1 if last in inside else 0, buffer.nbytes)
    if first in functions and buffer in inside[first] and buffer.role != "argument" and is_made(buffer, functions[first]):
        written = inside[first][buffer]
    if last in functions and buffer in inside[last] and buffer.role != "result" and is_let_go(buffer, functions[last]):
        read = inside[last][buffer]
    return written.at(first), read.at(last)


def is_made(buffer: Buffer, function: Function) -> bool:
    """True if a function needs no contents of a buffer that were there before."""
    return buffer in function.scratch or buffer not in buffers_read(function)


def is_let_go(buffer: Buffer, function: Function) -> bool:
    """True if a function leaves no contents in a buffer for others."""
    return buffer in function.scratch or buffer not in buffers_written(function)


def occupied_by(nbytes: int, written: Held, read: Held) -> Iterator[Occupied]:
    """Yield the pieces of a buffer; neighbours with the same moments are merged."""
    starts, begin, end = joint(written.in_pieces(), read.in_pieces(), nbytes)
    is_new = np.flatnonzero((np.diff(begin, prepend=-1) != 0) | (np.diff(end, prepend=-1) != 0))
    stops = [*starts[is_new[1:]].tolist(), nbytes]
    yield from map(Occupied._make, zip(starts[is_new].tolist(), stops, begin[is_new].tolist(), end[is_new].tolist()))


def joint(written: Held, read: Held, nbytes: int) -> tuple[Table, Table, Table]:
    """Return the starts of the pieces of both, and the moments of each piece."""
    starts = np.union1d(written.starts, read.starts)
    starts = starts[starts < nbytes] if nbytes else starts[:1]
    return starts, written.first[starts // max(written.nbytes, 1)], read.last[starts // max(read.nbytes, 1)]


def counted(nbytes: int, uses: Sequence[tuple[Held, Held]]) -> Table:
    """Return the bytes of a buffer that are occupied between the same moments; with too many pieces, between fewer moments."""
    rows = []
    for written, read in uses:
        starts, begin, end = joint(written.in_pieces(COUNTED, inner=True), read.in_pieces(COUNTED, inner=True), nbytes)
        sizes = np.diff(starts, append=nbytes)
        rows.append(np.stack((np.zeros_like(sizes), sizes, begin, end), axis=1)[begin <= end])
    return np.concatenate(rows)


def by_rows(program: Program, live: Mapping[Buffer, tuple[Ticks, ...]], inside: Mapping[int, Instants]
            ) -> dict[Buffer, tuple[Occupied, ...]]:
    """Return the occupied pieces of the buffers that kernels write or read row by row, and nothing else uses."""
    ticks = list(timed(program.steps))
    partly = {b for _, s in ticks if s.rows is not None for b in program.functions[s.kernel].params} - used_elsewhere(program)
    whole = {k.out for k in program.kernels} | set(program.inputs)  # not the rings that some of them lie in
    lives = {b: lifetimes(b, live[b][0]) for b in partly & whole if len(live.get(b, ())) == 1 and row_dimension(b)[1] > 1}
    reads: dict[int, RowsRead] = {}
    for tick, step in ticks:
        kernel, function = program.kernels[step.kernel], program.functions[step.kernel]
        if step.kernel not in reads:
            reads[step.kernel] = rows_read(kernel) if step.rows is not None else {}
        for b in function.params:
            if b in lives:
                life = lives[b]
                first, last = within(b, function, tick, inside.get(tick))
                rows = rows_used(b, kernel.out, step.rows, reads[step.kernel], len(life.read))
                if b is kernel.out:
                    life.use(first, rows, True)
                life.use(last, rows, False)
    return {b: occupied(b, life) for b, life in lives.items()}


def within(buffer: Buffer, function: Function, tick: int, instants: Instants | None) -> tuple[int, int]:
    """Return the moments at which a step begins and ceases to use a buffer."""
    if instants is None or buffer not in instants:
        return tick * INSTANTS, tick * INSTANTS + (0 if instants is None else INSTANTS - 1)
    held = instants[buffer].at(tick)
    return (int(held.first.min()) if is_made(buffer, function) else tick * INSTANTS,
            int(held.last.max()) if is_let_go(buffer, function) else tick * INSTANTS + INSTANTS - 1)


def lifetimes(buffer: Buffer, span: Ticks) -> RowLifetimes:
    """Return the lifetimes of the rows of a buffer that is live in `span`, before any step: an input is live from the start, a
    result to the end."""
    return RowLifetimes.of(row_dimension(buffer)[1], span[0] * INSTANTS if buffer.role == "argument" else None,
                           span[1] * INSTANTS + INSTANTS - 1 if buffer.role == "result" else None)


def occupied(buffer: Buffer, life: RowLifetimes) -> tuple[Occupied, ...]:
    """Return the occupied pieces of a buffer; neighbouring rows with the same lifetime are one piece."""
    lives = list(zip(life.written.tolist(), life.read.tolist()))
    nbytes = buffer.nbytes // len(lives)
    edges = [0, *(i for i in range(1, len(lives)) if lives[i] != lives[i - 1]), len(lives)]
    return tuple(Occupied(a * nbytes, z * nbytes, *lives[a]) for a, z in itertools.pairwise(edges))


# ---- pairs -----------------------------------------------------------------------------------------------------------
def spacing(one: Sequence[Occupied], other: Sequence[Occupied]) -> Spacing:
    """Return the offsets, relative to `one`, at which `other` may not begin: there both would occupy a byte at a tick."""
    return spacing_of(table(one), table(other))


def table(spans: Iterable[Occupied]) -> Table:
    """Return a row for each span: first byte, end, tick written, tick read."""
    return np.fromiter(itertools.chain.from_iterable(spans), np.int64).reshape(-1, 4)


def spacing_of(a: Table, b: Table) -> Spacing:
    """Return the `spacing` of two tables."""
    overlap = (a[:, None, 2] <= b[None, :, 3]) & (b[None, :, 2] <= a[:, None, 3])
    one, other = np.nonzero(overlap)
    return merged(a[one, 0] - b[other, 1], a[one, 1] - b[other, 0])


def merged(low: Table, high: Table) -> Spacing:
    """Return the union of open intervals; two that only touch leave the point between them."""
    if not len(low):
        return ()
    order = np.argsort(low)
    starts, reached = low[order], np.maximum.accumulate(high[order])
    gaps = np.flatnonzero(starts[1:] >= reached[:-1])
    return tuple(zip(starts[[0, *gaps + 1]].tolist(), reached[[*gaps, -1]].tolist()))


def in_place(program: Program, live: Mapping[Buffer, tuple[Ticks, ...]]) -> Iterator[tuple[Buffer, Buffer, int]]:
    """Yield (operand, result, tick) where both may be on the same bytes: at that tick a kernel reads the operand for the last
    time and writes the result for the first, each element after it has been read."""
    for tick, step in whole_kernels(program):
        kernel, function = program.kernels[step.kernel], program.functions[step.kernel]
        out = kernel.out
        if out not in function.params or live.get(out, ((-1, -1),))[0][0] != tick:
            continue
        for b in last_read(function, tick, live):
            if may_write_over(kernel, function, b):
                yield b, out, tick


def whole_kernels(program: Program) -> Iterator[tuple[int, Compute]]:
    """Yield the steps that run a kernel as a whole, with their ticks; not in tasks, which may read what another has
    overwritten."""
    return ((tick, step) for tick, step in timed(program.steps if program.kernels else ())
            if step.rows is None and step.tasks == 1)


def last_read(function: Function, tick: int, live: Mapping[Buffer, tuple[Ticks, ...]]) -> list[Buffer]:
    """Return the buffers that are last read by this function, at this tick."""
    return [b for b in function.params if b in buffers_read(function) and [s[1] for s in live.get(b, ())] == [tick]]


def may_write_over(kernel: Kernel, function: Function, operand: Buffer) -> bool:
    """True if the result of a kernel may be on the bytes of an operand of the same type and size: each element of the operand
    is loaded before the result stores over it."""
    out = kernel.out
    return (operand is not out and (operand.dtype, operand.nbytes) == (out.dtype, out.nbytes)
            and operand not in read_elsewhere(kernel) and may_overwrite(function, operand, out))


def read_elsewhere(kernel: Kernel) -> set[Buffer]:
    """Return the buffers with elements that are read for more than the result's element at the same index, or its row: a quick
    test, before the order of the loops is examined."""
    place, found = tuple(map(Affine.of, kernel.axes)), list(nodes(kernel.value))
    reductions = [e for e in found if isinstance(e, Reduce)]
    along = {Affine.of(a) for r in reductions for a in r.axes}
    free: dict[Load, frozenset[Axis]] = {}  # a load's values are one row along axes that no reduction around it depends on
    for r in reductions:
        axes = free_axes(r)
        free |= {e: free.get(e, frozenset()) | axes for e in loads(r.body)}
    return {e.buffer for e in found if isinstance(e, Load) and (len(e.index) != len(place) or any(
        i != p and (e not in free or i not in along or p.axes & free[e]) for i, p in zip(e.index, place)))}
