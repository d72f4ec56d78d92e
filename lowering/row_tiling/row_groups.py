"""The choice of groups of kernels to tile by rows so that the least memory is needed. `tile_by_rows` makes steps and rings from
the groups that are found here, and compares several ways of grouping by `bytes_needed`.

A group keeps rings of the tensors between its kernels, but all rings from the start of the group on; its inputs may shrink
while its outputs grow. So a long group is not always better than two short ones.
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
"""A function that cuts a run of kernels into groups."""


@dataclass(frozen=True, slots=True)
class BufferUses:
    """The uses of buffers in a program: `reads` has the buffers that each kernel reads, `order` the kernels in the order of the
    steps, `last` the position in this order of the last kernel that reads a buffer (the number of kernels for a buffer that is
    needed at the end). `counted` are the buffers that take memory."""
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
    """Return groups that need the least memory: cut each chain of kernels that could all be tiled where that helps, given the
    rings that the whole chain would have. Exact for the cost of a group that `KernelSequence.cost` returns."""
    def cut(run: Sequence[int]) -> Iterable[list[int]]:
        for chain in chains(run):
            yield from KernelSequence(program, uses, rings, chain, sharing).cut()

    return cut


@dataclass(frozen=True, slots=True)
class KernelSequence:
    """Kernels in the order of the steps, each of which reads the output of an earlier one."""
    program: Kernels
    uses: BufferUses
    rings: Mapping[Buffer, Buffer]
    numbers: Sequence[int]
    sharing: bool
    known: dict[int, tuple[int, list[Buffer]]] = field(default_factory=dict)

    def cut(self) -> list[list[int]]:
        """Return the groups whose maximum memory is the least; as few groups as that allows."""
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
        """Return the bytes that the kernels from `begin` to before `end` need together: rings, buffers live before and after,
        and the larger of the inputs that die and the outputs; the sum of these two without `sharing`, or for a single kernel,
        which does not run by rows."""
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
        """Return the position of a kernel in the steps, and the buffers that exist before it and that it or a later kernel
        reads."""
        first = self.uses.order.index(self.numbers[begin])
        later = self.uses.order[first:]
        read = {b for i in later for b in self.uses.reads[i]} & self.uses.counted
        return first, list(read - {self.program.kernels[i].out for i in later})


# ---- the memory of a way of grouping ---------------------------------------------------------------------------------
def bytes_needed(program: Kernels, steps: tuple[Step, ...], rings: Mapping[Buffer, Buffer], uses: BufferUses,
                 rows_read: Sequence[RowsRead | None]) -> int:
    """Return the maximum number of bytes live at one step, with loops and branches taken as straight-line code. Rings count as
    a whole, other buffers by the rows that are already written and will be read again."""
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
    """Return the live ranges of the rows of a buffer before any step; a ring counts as one row."""
    rows = 1 if buffer in rings else row_dimension(buffer)[1]
    return RowLifetimes.of(rows, 0 if buffer.role == "argument" else None, steps - 1 if buffer.role == "result" else None)
