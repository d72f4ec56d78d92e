"""Row tiling: the kernels of a group run some rows at a time, so that the rows that one kernel writes are still in the cache
when the next reads them.

The index expressions of a kernel determine the rows that it needs of its producer; nothing here knows what kernels compute. A
buffer of which only the last rows are ever read again becomes a ring buffer of that number of rows.

For several threads, a group of kernels is cut into tasks, each with some rows of the last kernel and with private rings. Two
tasks that need the same few rows of the other kernels both compute them.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from typing import Literal

from ...runtime.records import dataclass
from ..elements.expression import Buffer
from ..elements.traverse import loads
from ..kernels.kernel import Branch, Compute, Kernels, Loop, Step, conditions
from ..target.target import Target
from .connected_kernels import connected, gathered
from .ring_buffers import copies, rings
from .row_access import RowAccess, begins_early, row_dimension, rows_of
from .row_chains import INTERMEDIATE_L2_PART, RowChain, chains
from .row_groups import BufferUses, Groups, bytes_needed, smallest
from .row_lifetimes import RowsRead
from .row_order import tiled_steps

RowPolicy = Literal["cache", "memory", "never"]
"""The policy that selects kernels for row tiling: those whose intermediate tensors would not stay in the cache, those with
which the least memory is needed, or none."""


MAX_TRIED_SIZES, MAX_TRIED_SIZES_CONNECTED = 16, 6
"""Maximum number of tensor sizes, the largest ones, for which a way of grouping is tried: of chains, and of longer groups."""


@dataclass(frozen=True, slots=True)
class TiledByRows:
    """The result of row tiling: the steps in their new order, the kernels that run by rows, and the ring of each buffer that
    has become one. `copies` maps each private buffer of tasks to one buffer with all copies. `blocks` are chains of kernels
    whose loops are inside those of the last one."""
    steps: tuple[Step, ...]
    by_rows: frozenset[int] = frozenset()
    rings: Mapping[Buffer, Buffer] = field(default_factory=dict)
    copies: Mapping[Buffer, Buffer] = field(default_factory=dict)
    blocks: tuple[RowChain, ...] = ()

    def chain(self, kernel: int) -> RowChain | None:
        """Return the chain that contains a kernel, or None."""
        return next((c for c in self.blocks if kernel in c.kernels), None)


def tile_by_rows(program: Kernels, target: Target, rows: RowPolicy | None = None, threads: int = 1,
                 whole: Set[int] = frozenset()) -> TiledByRows:
    """Put runs of plain steps in order by rows where that pays; control flow stays in its position. The default policy is the
    cache, or memory if there is no cache. With the policy "cache", groups are cut into tasks for `threads`, and the kernels
    `whole`, which are faster whole, are in no group."""
    return ways(program, target, rows, threads, whole=whole)[0]


def ways(program: Kernels, target: Target, rows: RowPolicy | None = None, threads: int = 1, workspace_io: bool = False,
         whole: Set[int] = frozenset()) -> list[TiledByRows]:
    """Return all results for `tile_by_rows` that may be the best. If memory counts, these are the best way if buffers that are
    both live share bytes, as far as rows allow it, the best way if they do not, and the best with chains alone. Only a plan can
    tell which of them needs the least. With `workspace_io`, the memory of inputs and outputs counts, too."""
    rows = rows or ("cache" if target.has_cache else "memory")
    if rows == "never":
        return [TiledByRows(program.steps)]
    found = [rows_of(k) for k in program.kernels]
    if rows == "cache":
        most = target.l2_bytes // INTERMEDIATE_L2_PART * threads  # each has a cache of its own
        blocks = tuple([c for c in chains(program, target) if not whole & {*c.kernels}])
        alone = {i for c in blocks for i in c.kernels} | whole
        found = [None if i in alone else f for i, f in enumerate(found)]
        groups = larger_than(found, most, False, target.block_bytes, beside=threads == 1)
        way = grouped(program, found, groups, threads)
        return [replace(way, blocks=blocks, steps=without(way.steps, {i for c in blocks for i in c.kernels[:-1]}))]
    uses, every = BufferUses.of(program, workspace_io), [rows_of(k, sums_alone=False) for k in program.kernels]
    plain = [TiledByRows(program.steps), *candidates(program, found, larger_than, uses, MAX_TRIED_SIZES)]
    tried = [*plain, *candidates(program, every, connected, uses, MAX_TRIED_SIZES_CONNECTED)]
    together = gathered(program, every)
    if together.steps != program.steps:
        tried += candidates(together, every, connected, BufferUses.of(together, workspace_io), MAX_TRIED_SIZES_CONNECTED)
    reads, nothing = [None if f is None else f.reads for f in every], [None] * len(every)

    def needed(known: Sequence[RowsRead | None]) -> list[tuple[int, int, int]]:
        return [(bytes_needed(program, way.steps, way.rings, uses, known), len(way.steps), number)
                for number, way in enumerate(tried)]

    sharing, apart = needed(reads), needed(nothing)
    return [tried[i] for i in dict.fromkeys(min(some)[2] for some in (sharing, apart, sharing[:len(plain)]))]


def candidates(program: Kernels, found: Sequence[RowAccess | None], larger: Callable[[Sequence[RowAccess | None], int], Groups],
               uses: BufferUses, most: int) -> Iterator[TiledByRows]:
    """Yield ways of grouping that may need the least memory: around tensors that are larger than some size, for `most` sizes,
    and cut so that the largest group needs the least."""
    sizes = sorted({f.kernel.out.nbytes for f in found if f is not None})
    whole = larger(found, 0)
    rings = grouped(program, found, whole).rings
    ways = [larger(found, size - 1) for size in sizes[-most:]]
    ways += [smallest(program, uses, whole, rings, sharing) for sharing in (True, False)]
    runs, seen = list(straight_runs(program.steps)), list[dict[tuple[int, ...], list[list[int]]]]()
    for way in ways:
        cuts = {tuple(run): list(way(run)) for run in runs}
        if cuts not in seen:
            seen.append(cuts)
            yield grouped(program, found, lambda run, cuts=cuts: cuts[tuple(run)])  # type: ignore[misc]


def straight_runs(steps: Sequence[Step]) -> Iterator[list[int]]:
    """Yield the runs of kernels between other steps, including those inside branches and loops."""
    run: list[int] = []
    for step in (*steps, None):
        match step:
            case Compute(kernel, None):
                run.append(kernel)
                continue
            case Branch(_, then, otherwise):
                yield from (*straight_runs(then), *straight_runs(otherwise))
            case Loop(test, _, body):
                yield from (*straight_runs(test), *straight_runs(body))
        yield run
        run = []


def without(steps: Sequence[Step], numbers: Set[int]) -> tuple[Step, ...]:
    """Return the steps without those of some kernels."""
    result: list[Step] = []
    for step in steps:
        match step:
            case Compute(kernel) if kernel in numbers:
                pass
            case Branch(condition, then, otherwise):
                result.append(Branch(condition, without(then, numbers), without(otherwise, numbers)))
            case Loop(test, condition, body):
                result.append(Loop(without(test, numbers), condition, without(body, numbers)))
            case _:
                result.append(step)
    return tuple(result)


def larger_than(found: Sequence[RowAccess | None], most: int, rereads: bool = True, constants: int | None = None,
                beside: bool = False) -> Groups:
    """Return groups of kernels whose intermediate tensors have more than `most` bytes. Without `rereads`, two joined kernels
    read again at most twice the bytes of the tensor between them. If `constants` is given, the constants of a group have at
    most that number of bytes. With `beside`, a kernel may read the output of any kernel of its group."""
    return lambda run: groups(run, found, most, rereads, constants, beside)


def grouped(program: Kernels, found: Sequence[RowAccess | None], groups: Groups, threads: int = 1) -> TiledByRows:
    """Return the steps and rings of kernels that are tiled in these groups; in tasks, if there are several threads."""
    by_rows: set[int] = set()
    readers = readers_of(program) if threads > 1 else {}

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
        for whole in groups(run):
            for group in separate(program, whole, readers) if threads > 1 and len(whole) > 1 else [whole]:
                if len(group) == 1:
                    yield Compute(group[0])
                else:
                    by_rows.update(group)
                    yield from tiled_steps([(i, found[i]) for i in group], threads)  # type: ignore[misc]

    steps = block(program.steps)
    if not by_rows:
        return TiledByRows(steps)
    smaller = rings(program, steps, found, by_rows)
    return TiledByRows(steps, frozenset(by_rows), smaller, copies(program, steps, smaller))


def groups(run: Sequence[int], found: Sequence[RowAccess | None], most: int, rereads: bool, constants: int | None,
           beside: bool = False) -> Iterator[list[int]]:
    """Yield chains of kernels whose intermediate tensors have more than `most` bytes, and whose constants have at most
    `constants` bytes. With `beside`, a kernel may read the output of any kernel in its chain."""
    group: list[int] = []

    def joins(producer: RowAccess | None, kernel: RowAccess) -> bool:
        return (producer is not None and begins_early(kernel, producer) and producer.kernel.out.nbytes > most
                and (rereads or max(read_again(producer), read_again(kernel)) <= 2 * producer.kernel.out.nbytes))

    for number in run:
        kernel, producers = found[number], [found[i] for i in (group if beside else group[-1:])]
        joined = kernel and number not in group and None not in producers and any(joins(p, kernel) for p in producers)
        if not joined and group:
            yield from parted(group, found, constants)
            group = []
        group.append(number)
    if group:
        yield from parted(group, found, constants)


def parted(chain: list[int], found: Sequence[RowAccess | None], constants: int | None) -> list[list[int]]:
    """Cut a chain into groups whose constants have at most `constants` bytes, so that the tensors between groups are small:
    only these leave the cache."""
    kernels = [found[i] for i in chain]
    sizes = [constant_bytes(k) if k else 0 for k in kernels]
    if constants is None or len(chain) == 1 or sum(sizes) <= constants:
        return [chain]
    best: list[tuple[int, list[list[int]]]] = [(0, [])]
    for end in range(1, len(chain) + 1):
        ways = []
        for start in range(end):
            if start == end - 1 or sum(sizes[start:end]) <= constants:
                before, cut = best[start], kernels[start - 1] if start else None
                ways.append((before[0] + (cut.kernel.out.nbytes if cut else 0), [*before[1], chain[start:end]]))
        best.append(min(ways, key=lambda way: (way[0], len(way[1]))))
    return best[-1][1]


def read_again(kernel: RowAccess) -> int:
    """Return the bytes that the rows after the first read again, of tensors that each row reads whole."""
    whole = [b for b, (first, ends) in kernel.reads.items() if b.role != "constant" and row_dimension(b)[1] > 1
             and not first.any() and bool((ends == row_dimension(b)[1]).all())]
    return sum(b.nbytes for b in whole) * (kernel.rows - 1)


def constant_bytes(kernel: RowAccess) -> int:
    """Return the bytes of constants that a kernel reads."""
    return sum(b.nbytes for b in kernel.reads if b.data is not None)


def readers_of(program: Kernels) -> dict[Buffer, set[int]]:
    """Return the kernels that read each buffer."""
    found: dict[Buffer, set[int]] = {}
    for i, kernel in enumerate(program.kernels):
        for x in loads(kernel.value):
            found.setdefault(x.buffer, set()).add(i)
    return found


def separate(program: Kernels, group: Sequence[int], readers: Mapping[Buffer, Set[int]]) -> list[list[int]]:
    """Return the chains of a group in which only the last kernel writes a buffer that is read outside of the chain, so that
    each task can have private copies of the others."""
    outside = {*program.outputs, *conditions(program.steps)}

    def is_own(number: int, chain: Sequence[int]) -> bool:
        out = program.kernels[number].out
        return out not in outside and out.role == "temporary" and readers.get(out, set()) <= {*chain}

    for place, number in enumerate(group[:-1]):
        if not is_own(number, group):
            return [*separate(program, group[:place + 1], readers), *separate(program, group[place + 1:], readers)]
    return [list(group)]
