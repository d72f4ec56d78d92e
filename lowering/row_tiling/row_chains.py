"""Chains of kernels whose rows depend only on the same rows of the kernel before, such as the scores, the softmax and the sums
of attention: their loops are fused over blocks of rows, and the tensors between them are kept for one block only.

The pass runs after fusion and the ordering of kernels, and chooses the kernels, the axes and the number of rows of a block. The
loops of a chain are one function (`schedule.row_reduction.fused_chain`). The bytes that each block reads again, because they do
not depend on the row, must stay in the cache or be fewer than the bytes saved.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from ...runtime.records import dataclass
from ..elements.affine import Affine, Axis
from ..elements.expression import Buffer, Load, Reduce
from ..elements.traverse import loads, nodes
from ..graph.types import ITEM_SIZES
from ..kernels.kernel import Branch, Compute, Kernel, Kernels, Loop, Step, conditions
from ..target.target import Target
from .row_access import begins_early, row_dimension, rows_of

MAX_CHAIN_KERNELS = 32
"""Maximum number of kernels of a chain; chains of attention have three to six."""
MIN_BLOCK_ROWS = 16
"""Minimum number of rows of a block, unless there are fewer: the rows of a tile of a product."""
INTERMEDIATE_L2_PART = 5
"""Tensors between kernels that take at most 1/5 of the second-level cache stay in it."""

Places = Mapping[int, int]
"""Map from each kernel that is in no chain yet to its position in its run."""
Link = Mapping[Axis, Axis]
"""Map from the axes of a reader to the axes of the kernel whose output it reads."""


@dataclass(frozen=True, slots=True)
class RowChain:
    """A chain of kernels by number, each but the first a reader of the one before. `rows` are the corresponding row axes of
    each kernel; the last of these axes is cut into blocks of at most `block` rows."""
    kernels: tuple[int, ...]
    rows: tuple[tuple[Axis, ...], ...]
    block: int


def chains(program: Kernels, target: Target) -> list[RowChain]:
    """Return the chains of a program; no two chains share a kernel."""
    finder = Finder(program, target)
    found: list[RowChain] = []
    for run in runs(program.steps):
        left = {number: place for place, number in enumerate(run)}
        for number in reversed(run):
            if number in left and (chain := finder.chain(number, left)):
                found.append(chain)
                for taken in chain.kernels:
                    del left[taken]
    return found


def runs(steps: Sequence[Step]) -> Iterator[list[int]]:
    """Yield the runs of kernels that run as a whole, one after the other."""
    run: list[int] = []
    for step in (*steps, None):
        if isinstance(step, Compute) and step.rows is None:
            run.append(step.kernel)
            continue
        yield run
        run = []
        match step:
            case Branch(_, then, otherwise):
                yield from runs(then)
                yield from runs(otherwise)
            case Loop(test, _, body):
                yield from runs(test)
                yield from runs(body)


class Finder:
    """The search for chains in one program."""

    def __init__(self, program: Kernels, target: Target) -> None:
        self.kernels, self.target = program.kernels, target
        self.read = [loads(k.value) for k in program.kernels]
        self.readers: dict[Buffer, set[int]] = {}
        self.writers: dict[Buffer, list[int]] = {}
        for number, kernel in enumerate(program.kernels):
            self.writers.setdefault(kernel.out, []).append(number)
            for load in self.read[number]:
                self.readers.setdefault(load.buffer, set()).add(number)
        self.needed = {*program.outputs, *conditions(program.steps)}
        self.links: dict[int, list[tuple[int, Link]]] = {}

    def chain(self, last: int, left: Places) -> RowChain | None:
        """Return the longest chain of the kernels `left` in a run that ends in kernel `last`; None if it does not pay."""
        numbers, links = [last], list[Link]()
        while len(numbers) < MAX_CHAIN_KERNELS and (found := self.before(numbers[0], last, left)) is not None:
            numbers.insert(0, found[0])
            links.insert(0, found[1])
        while links and not self.grows(numbers[0], links[0]):
            del numbers[0], links[0]
        rows = self.rows(numbers, links)
        block = self.block(numbers, rows) if links and rows else 0
        return RowChain(tuple(numbers), tuple(rows), block) if block else None

    def before(self, reader: int, last: int, left: Places) -> tuple[int, Link] | None:
        """Return the kernel that writes the largest tensor that only this kernel reads, row by row, and the link."""
        for writer, link in self.linked(reader):
            if writer in left and self.may_move(writer, last, left):
                return writer, link
        return None

    def linked(self, reader: int) -> Sequence[tuple[int, Link]]:
        """Return the kernels, with links, that write what only this kernel reads, row by row, largest tensors first; cached."""
        if reader not in self.links:
            buffers = dict.fromkeys(x.buffer for x in self.read[reader]) if reduces(self.kernels[reader]) else ()
            writers = [self.writer(b, reader) for b in sorted(buffers, key=lambda b: -b.nbytes)]
            self.links[reader] = [(w, link) for w in writers if w is not None and (
                link := shared_rows(self.kernels[reader], self.kernels[w]))]
        return self.links[reader]

    def writer(self, buffer: Buffer, reader: int) -> int | None:
        """Return the only kernel that writes a tensor, if nothing but `reader` needs the tensor; else None."""
        writers = self.writers.get(buffer, [])
        alone = buffer.role == "temporary" and buffer not in self.needed and self.readers[buffer] == {reader}
        return writers[0] if alone and len(writers) == 1 else None

    def may_move(self, number: int, last: int, left: Places) -> bool:
        """True if a kernel reads no variable, and no tensor that is written between the kernel and the end of `last`."""
        read = {x.buffer for x in self.read[number]}
        writers = [w for b in read for w in self.writers.get(b, ()) if w in left]
        return not any(b.role == "variable" for b in read) and not any(
            left[number] <= left[w] <= left[last] for w in writers)

    def grows(self, number: int, link: Link) -> bool:
        """True if a kernel writes more bytes in its rows than it reads: otherwise storing its result is better."""
        rows = set(link.values())
        read = {x.buffer for x in self.read[number] if any(i.axes & rows for i in x.index)}
        return self.kernels[number].out.nbytes > sum(b.nbytes for b in read)

    def rows(self, numbers: Sequence[int], links: Sequence[Link]) -> list[tuple[Axis, ...]]:
        """Return the axes of each kernel that run through the whole chain, in the order of the first kernel's axes. Axes of
        weights and innermost axes are excluded. Return an empty list if no axis remains."""
        axes = {a: a for a in self.kernels[numbers[-1]].axes if a.extent > 1}
        steps = [axes]
        for link in reversed(links):
            axes = {a: link[b] for a, b in axes.items() if b in link}
            steps.insert(0, axes)
        fixed = [weights(self.kernels[i]) | innermost(self.kernels[i]) for i in numbers]
        axes = {a: b for a, b in axes.items() if not any(step[a] in f for step, f in zip(steps, fixed))}
        first = self.kernels[numbers[0]].axes
        order = sorted(axes, key=lambda a: first.index(axes[a]))
        return [tuple(step[a] for a in order) for step in steps] if order else []

    def block(self, numbers: Sequence[int], rows: Sequence[tuple[Axis, ...]]) -> int:
        """Return the number of rows of a block; 0 if the chain does not pay."""
        inside = [self.kernels[i].out for i in numbers[:-1]]
        is_near = sum(b.nbytes for b in inside) <= self.target.l2_bytes // INTERMEDIATE_L2_PART
        if is_near or self.can_tile_first_axes(numbers, inside):
            return 0
        extent = rows[-1][-1].extent
        row = sum(b.nbytes for b in inside) // math.prod(a.extent for a in rows[-1])
        block = min(extent, max(min(MIN_BLOCK_ROWS, extent), self.target.block_bytes // 2 // row))
        again = sum(self.whole(i, own, inside) for i, own in zip(numbers, rows))
        near = again + row * block <= self.target.block_bytes
        return block if near or again <= 2 * row * block else 0

    def can_tile_first_axes(self, numbers: Sequence[int], inside: Sequence[Buffer]) -> bool:
        """True if the kernels can also be tiled by the rows of their first axes, and one row of each stays in the cache."""
        found = [rows_of(self.kernels[i]) for i in numbers]
        near = sum(b.nbytes // row_dimension(b)[1] for b in inside) <= self.target.block_bytes // 2
        return near and all(b and a and begins_early(b, a) for a, b in itertools.pairwise(found))

    def whole(self, number: int, rows: tuple[Axis, ...], inside: Sequence[Buffer]) -> int:
        """Return the bytes that each block reads again because they do not depend on the row."""
        found: dict[Buffer, int] = {}
        for x in self.read[number]:
            if x.buffer not in inside and not any(rows[-1] in i.axes for i in x.index):
                axes = {a for i in x.index for a in i.axes} - set(rows)
                size = math.prod(a.extent for a in axes) * ITEM_SIZES[x.dtype]
                found[x.buffer] = max(found.get(x.buffer, 0), min(size, x.buffer.nbytes))
        return sum(found.values())


def shared_rows(reader: Kernel, producer: Kernel) -> Link:
    """Map the axes of the reader to those of the producer. Every load of the producer's tensor must have the reader's axis
    alone in the index of the same dimension, and in no other index."""
    read = [x for x in loads(reader.value) if x.buffer is producer.out]
    if any(len(x.index) != len(producer.axes) for x in read):
        return {}
    found: dict[Axis, Axis] = {}
    for d, own in enumerate(producer.axes):
        places = {x.index[d] for x in read}
        axis = next((a for a in reader.axes if places == {Affine.of(a)} and a.extent == own.extent > 1), None)
        if axis is not None and not any(mentions(x, axis, d) for x in read):
            found[axis] = own
    return found


def reduces(kernel: Kernel) -> bool:
    return any(isinstance(e, Reduce) for e in nodes(kernel.value))


def weights(kernel: Kernel) -> frozenset[Axis]:
    """Return the axes of constants in sums: these constants are packed as a whole while compiling."""
    summed = [x for r in nodes(kernel.value) if isinstance(r, Reduce) for x in loads(r.body)]
    return frozenset(a for x in summed if x.buffer.role == "constant" for i in x.index for a in i.axes)


def innermost(kernel: Kernel) -> frozenset[Axis]:
    """Return the axis whose elements are neighbours in memory."""
    return frozenset([a for a in kernel.axes if a.extent > 1][-1:])


def mentions(x: Load, axis: Axis, place: int) -> bool:
    """True if the index of another dimension than `place` mentions an axis."""
    return any(axis in i.axes for d, i in enumerate(x.index) if d != place)
