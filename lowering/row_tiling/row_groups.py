"""Which kernels are tiled by rows so that the least memory is needed. It stands before `tile_by_rows`, which makes steps and
rings of the groups that it finds, and asks `bytes_needed` which of several ways is the best.

A group of kernels keeps rings of what lies between them, but all of them from its beginning on; what it reads may shrink
while what it writes grows. So a long group is not always better than two short ones.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field

import numpy as np

from ...runtime.records import dataclass
from ..elements.expression import Buffer
from ..elements.traverse import loads
from ..kernels.kernel import Compute, Kernels, Step, walk
from .row_access import row_dimension
from .row_lifetimes import RowLifetimes, RowsRead, rows_used

Groups = Callable[[Sequence[int]], Iterable[list[int]]]
"""Cuts a run of kernels into groups."""


@dataclass(frozen=True, slots=True)
class BufferUses:
    """Of a program's kernels: what each reads, where each stands in the steps, and the place of the last one that reads a
    buffer (one that is still wanted at the end: none, but a place behind them all). `order` has the kernels by place;
    `counted` are the buffers that take memory."""
    reads: tuple[frozenset[Buffer], ...]
    order: tuple[int, ...]
    last: Mapping[Buffer, int]
    counted: frozenset[Buffer]

    @staticmethod
    def of(program: Kernels, workspace_io: bool) -> BufferUses:
        reads = tuple(frozenset(x.buffer for x in loads(k.value)) for k in program.kernels)
        order = tuple(s.kernel for s in walk(program.steps) if isinstance(s, Compute))
        last = {b: place for place, number in enumerate(order) for b in reads[number]}
        last |= dict.fromkeys(program.outputs, len(order))
        roles = ("temporary", "argument", "result") if workspace_io else ("temporary",)
        found = {b for some in reads for b in some} | {k.out for k in program.kernels}
        return BufferUses(reads, order, last, frozenset(b for b in found if b.role in roles))


def smallest(program: Kernels, uses: BufferUses, chains: Groups, rings: Mapping[Buffer, Buffer], sharing: bool) -> Groups:
    """Groups that need the least memory: each chain of kernels that could all be tiled is cut where that helps, given the
    rings that they would have together. Exact for what `Chain.cost` says of a group."""
    def cut(run: Sequence[int]) -> Iterable[list[int]]:
        for chain in chains(run):
            yield from KernelSequence(program, uses, rings, chain, sharing).cut()

    return cut


@dataclass(frozen=True, slots=True)
class KernelSequence:
    """Kernels each of which reads what one before it writes, in the order of the steps."""
    program: Kernels
    uses: BufferUses
    rings: Mapping[Buffer, Buffer]
    numbers: Sequence[int]
    sharing: bool
    known: dict[int, tuple[int, list[Buffer]]] = field(default_factory=dict)

    def cut(self) -> list[list[int]]:
        """The groups whose largest needs the least; as few as that allows."""
        best: list[tuple[int, int, int]] = [(0, 0, 0)]
        for end in range(1, len(self.numbers) + 1):
            best.append(min((max(best[begin][0], self.cost(begin, end)), best[begin][1] + 1, begin) for begin in range(end)))
        result: list[list[int]] = []
        end = len(self.numbers)
        while end:
            begin = best[end][2]
            result.insert(0, list(self.numbers[begin:end]))
            end = begin
        return result

    def cost(self, begin: int, end: int) -> int:
        """Bytes that the kernels from `begin` to before `end` need together: rings, what is there before and after, and the
        larger of what they use up and what they leave. One kernel alone does not run by rows."""
        uses, group = self.uses, self.numbers[begin:end]
        inside = [self.program.kernels[i].out for i in group]
        if begin not in self.known:
            self.known[begin] = self.before(begin)
        first, before = self.known[begin]
        last = first + len(group) - 1
        kept = shrinking = growing = rings = 0
        for b in before:
            if uses.last[b] > last:
                kept += b.nbytes
            else:
                shrinking += b.nbytes
        for b in inside:
            if b in uses.counted:
                alone = uses.last.get(b, last) <= last and b in self.rings
                rings += self.rings[b].nbytes if alone else 0
                growing += 0 if alone else b.nbytes
        return kept + rings + (max(shrinking, growing) if self.sharing and len(group) > 1 else shrinking + growing)


    def before(self, begin: int) -> tuple[int, list[Buffer]]:
        """The place of a kernel in the steps, and the buffers that are there before it, and read by it or later."""
        first = self.uses.order.index(self.numbers[begin])
        later = self.uses.order[first:]
        read = {b for i in later for b in self.uses.reads[i]} & self.uses.counted
        return first, list(read - {self.program.kernels[i].out for i in later})


# ---- what a way of grouping needs ------------------------------------------------------------------------------------
def bytes_needed(program: Kernels, steps: tuple[Step, ...], rings: Mapping[Buffer, Buffer], uses: BufferUses,
                 rows_read: Sequence[RowsRead | None]) -> int:
    """The most bytes that hold something at one step, loops and branches taken as they are written: rings as a whole, of
    other buffers the rows that are written already and read again."""
    computed = [s for s in walk(steps) if isinstance(s, Compute)]
    lives: dict[Buffer, RowLifetimes] = {}
    for tick, step in enumerate(computed):
        kernel = program.kernels[step.kernel]
        for b in uses.reads[step.kernel] | {kernel.out}:
            if b in uses.counted:
                life = lives.get(b)
                if life is None:
                    life = lives[b] = lifetimes(b, rings, len(computed))
                life.use(tick, rows_used(b, kernel.out, step.rows, rows_read[step.kernel], len(life.written)), b is kernel.out)
    change = np.zeros(len(computed) + 1, np.int64)
    for b, life in lives.items():
        used = life.written <= life.read
        nbytes = rings.get(b, b).nbytes // len(life.written)
        np.add.at(change, life.written[used], nbytes)
        np.add.at(change, life.read[used] + 1, -nbytes)
    return int(np.cumsum(change).max(initial=0))


def lifetimes(buffer: Buffer, rings: Mapping[Buffer, Buffer], steps: int) -> RowLifetimes:
    """Those of the rows of a buffer before any step; a ring has one row."""
    rows = 1 if buffer in rings else row_dimension(buffer)[1]
    return RowLifetimes.of(rows, 0 if buffer.role == "argument" else None, steps - 1 if buffer.role == "result" else None)
