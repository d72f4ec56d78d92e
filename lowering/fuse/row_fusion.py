"""Row fusion: kernels that work on the same rows become one, such as the maximum of each row, the exponentials, their sum and
the quotients of a softmax, or mean, variance and result of a normalisation. So a row is read from memory once and written once.

The pass runs after fusion and inlines as fusion does. It also inlines values that are read twice, and reductions in reductions,
if the schedule of rows (`schedule.row_reduction`) computes no element twice.
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...runtime.records import dataclass
from ..elements.affine import Affine, Axis
from ..elements.expression import Apply, Buffer, Cast, Const, Expr, Load, Reduce
from ..elements.traverse import children, free_axes, loads, nodes, post_order, rewrite, substitute
from ..graph.types import ITEM_SIZES
from ..kernels.kernel import Branch, Compute, Kernel, Kernels, Loop, Step, conditions, walk

MOST_NODES = 300
"""Maximum number of nodes of an expression and of one to inline in it, together."""
MAX_ROW_ELEMENTS = 1 << 16
"""Maximum elements of a row that is the only one: a longer row is divided among threads, which all need its sums."""
MAX_NEIGHBOUR_ELEMENTS = 1 << 20
"""Maximum elements of one of several rows, if the elements of a row are neighbours in memory."""
MAX_STRIDED_ELEMENTS = 1 << 12
"""Maximum elements of one of several rows, if the elements of a row are strided."""
MAX_SAME_SET_ELEMENTS = 1 << 7
"""Maximum elements of one of several rows, if the stride in bytes is a multiple of PAGE_BYTES."""
PAGE_BYTES = 1 << 12


def fuse_rows(kernels: Kernels) -> Kernels:
    """Return the same function with kernels of the same rows merged."""
    merger = Merger(kernels)
    steps = merger.block(kernels.steps)
    if not merger.merged:
        return kernels
    used = sorted({s.kernel for s in walk(steps) if isinstance(s, Compute)})
    numbers = {old: new for new, old in enumerate(used)}
    kept = tuple(merger.merged.get(i, kernels.kernels[i]) for i in used)
    return replace(kernels, kernels=kept, steps=renumbered(steps, numbers))


def renumbered(steps: Sequence[Step], numbers: Mapping[int, int]) -> tuple[Step, ...]:
    result: list[Step] = []
    for step in steps:
        match step:
            case Compute(kernel, rows):
                result.append(Compute(numbers[kernel], rows))
            case Branch(condition, then, otherwise):
                result.append(Branch(condition, renumbered(then, numbers), renumbered(otherwise, numbers)))
            case Loop(test, condition, body):
                result.append(Loop(renumbered(test, numbers), condition, renumbered(body, numbers)))
            case _:
                result.append(step)
    return tuple(result)


Index = tuple[Affine, ...]


@dataclass(frozen=True, slots=True)
class KernelRun:
    """A run of kernels, one after the other: their numbers, the position of each, those that are `left`, and those that read
    values computed from reductions of the same run."""
    numbers: Sequence[int]
    places: Mapping[int, int]
    left: set[int]
    behind_sums: frozenset[int]

    @staticmethod
    def of(numbers: Sequence[int], behind_sums: frozenset[int]) -> KernelRun:
        return KernelRun(numbers, {number: i for i, number in enumerate(numbers)}, set(numbers), behind_sums)

    def behind(self, number: int, last: int) -> list[int]:
        """Return the kernels left after a kernel, up to `last`."""
        return [i for i in self.numbers[self.places[number] + 1:self.places[last] + 1] if i in self.left]


class Merger:
    """The search for groups in one function. `merged` maps the number of a group's last kernel to the kernel for the group."""

    def __init__(self, kernels: Kernels) -> None:
        self.kernels = kernels
        self.merged: dict[int, Kernel] = {}
        self.readers: dict[Buffer, set[int]] = {}
        self.writers: dict[Buffer, list[int]] = {}
        for number, kernel in enumerate(kernels.kernels):
            self.writers.setdefault(kernel.out, []).append(number)
            for load in loads(kernel.value):
                self.readers.setdefault(load.buffer, set()).add(number)
        self.needed = {*kernels.outputs, *conditions(kernels.steps)}

    def block(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        result: list[Step] = []
        run: list[int] = []
        for step in (*steps, None):
            if isinstance(step, Compute) and step.rows is None:
                run.append(step.kernel)
                continue
            result += [Compute(i) for i in self.run(run)]
            run = []
            match step:
                case Branch(condition, then, otherwise):
                    result.append(Branch(condition, self.block(then), self.block(otherwise)))
                case Loop(test, condition, body):
                    result.append(Loop(self.block(test), condition, self.block(body)))
                case None:
                    pass
                case _:
                    result.append(step)
        return tuple(result)

    def run(self, numbers: Sequence[int]) -> list[int]:
        """Return the kernels that are left of a run, the last of each group. The search for groups starts at the end."""
        run = KernelRun.of(numbers, self.behind_sums(numbers))
        for number in reversed(numbers):
            if number in run.left:
                run.left.difference_update(self.group(number, run))
        return [i for i in numbers if i in run.left]

    def behind_sums(self, numbers: Sequence[int]) -> frozenset[int]:
        """Return the kernels that read values computed from reductions of the same run."""
        known = set(numbers)
        stack = [i for i in numbers if reductions(self.kernels.kernels[i].value)]
        found = set[int]()
        while stack:
            further = self.readers.get(self.kernels.kernels[stack.pop()].out, set()) - found
            found |= further
            stack += further & known
        return frozenset(found)

    def group(self, last: int, run: KernelRun) -> set[int]:
        """Return the kernels that become a part of kernel `last`."""
        kernel = self.kernels.kernels[last]
        if not plain(kernel.value) or any(contracts(r) for r in reductions(kernel.value)):
            return set()
        value, gone, read = kernel.value, set[int](), list[Index]()
        while (found := self.next(kernel, value, last, run, gone, read)) is not None:
            number, value = found
            gone.add(number)
        if gone and reads_again(value):
            origins = [self.kernels.kernels[i].origin for i in (last, *sorted(gone, reverse=True))]
            origin = " ".join(" ".join(origins).split()[:8])
            self.merged[last] = replace(kernel, value=aligned(value), origin=origin)
            return gone
        return set()

    def next(self, kernel: Kernel, value: Expr, last: int, run: KernelRun, gone: set[int], read: list[Index]
             ) -> tuple[int, Expr] | None:
        """Return a kernel that can be inlined in `value` next, and the new `value`: a kernel that turns it into a row pattern,
        else one that leads to such a kernel. `read` collects the indices at which the group read what it now computes."""
        way: tuple[int, Expr, list[Index]] | None = None
        for buffer in dict.fromkeys(x.buffer for x in loads(value)):
            number = self.producer(buffer, {last, *gone}, run)
            if number is None or not self.may_move(number, last, run):
                continue
            producer = self.kernels.kernels[number]
            inside, places = inlined(value, producer)
            if inside is None:
                continue
            if reductions(inside):
                if has_rows(kernel, inside, [*read, *places]):
                    read += places
                    return number, inside
            elif way is None and number in run.behind_sums:
                way = number, inside, places
        if way is None:
            return None
        read += way[2]
        return way[:2]

    def producer(self, buffer: Buffer, group: set[int], run: KernelRun) -> int | None:
        """Return the kernel that writes a buffer, if nothing but the group reads the buffer; else None."""
        writers = self.writers.get(buffer, [])
        if buffer.role != "temporary" or buffer in self.needed or len(writers) != 1 or writers[0] not in run.left:
            return None
        return writers[0] if self.readers[buffer] <= group else None

    def may_move(self, number: int, last: int, run: KernelRun) -> bool:
        """True if nothing that a kernel reads is written between it and `last`."""
        kernel = self.kernels.kernels[number]
        between = run.behind(number, last)
        read = {x.buffer for x in loads(kernel.value)}
        return plain(kernel.value) and not any(self.kernels.kernels[i].out in read for i in between) and not any(
            contracts(r) for r in reductions(kernel.value))


# ---- expressions -----------------------------------------------------------------------------------------------------
def reductions(e: Expr) -> list[Reduce]:
    return [n for n in nodes(e) if isinstance(n, Reduce)]


def plain(e: Expr) -> bool:
    """True if an expression has no condition, no index from data and no rarely needed value."""
    for n in nodes(e):
        match n:
            case Const() | Apply() | Cast():
                pass
            case Load(index=index):
                if not all(isinstance(t, Axis) for i in index for t, _ in i.terms):
                    return False
            case Reduce(where=where):
                if where:
                    return False
            case _:
                return False
    return True


def contracts(r: Reduce) -> bool:
    """True if a reduction sums products of tensors with different axes; such a contraction has schedules of its own."""
    e = r.body
    while isinstance(e, Cast):
        e = e.arg
    match e:
        case Apply("mul", (x, y)) if r.primitive == "add" and loads(x) and loads(y):
            return free_axes(x) != free_axes(y)
    return False


def inlined(value: Expr, producer: Kernel) -> tuple[Expr | None, list[Index]]:
    """Inline `producer` in `value`; return the result, None if it would be too long, and the indices of the replaced loads."""
    read = [load.index for load in loads(value) if load.buffer is producer.out]
    many = sum(1 for e in (value, producer.value) for _ in nodes(e)) > MOST_NODES
    if many or any(len(index) != len(producer.axes) for index in read):
        return None, []
    known: dict[Index, Expr] = {}

    def change(e: Expr) -> Expr | None:
        if not isinstance(e, Load) or e.buffer is not producer.out:
            return None
        if e.index not in known:
            known[e.index] = substitute(producer.value, dict(zip(producer.axes, e.index)))
        return known[e.index]

    return rewrite(value, change), read


def has_rows(kernel: Kernel, value: Expr, read: Sequence[Index]) -> bool:
    """True if a value of the kernel's axes has the row pattern, and if what it computes instead of reading it, at the indices
    `read`, is not the same for several rows."""
    outer = rows_of(kernel, value)
    return outer is not None and all(outer <= frozenset().union(*(i.axes for i in index)) for index in read)


def rows_of(kernel: Kernel, value: Expr) -> frozenset[Axis] | None:
    """Return the axes of the rows, if all reductions of `value` are over whole rows of the same length, and a row has that many
    outputs, or one: then the schedule of rows computes each element once. Otherwise return None."""
    found = reductions(value)
    if not found:
        return None
    outer = free(found[0])
    long = [a for a in kernel.axes if a.extent > 1]
    inner = [a for a in long if a not in outer]
    if not outer <= set(long) or any(free(r) != outer for r in found):
        return None
    row = {math.prod(a.extent for a in r.axes) for r in found} | ({math.prod(a.extent for a in inner)} if inner else set())
    if len(row) > 1 or (len(found) == 1 and not inner):
        return None
    if not outer:
        return outer if row.pop() <= MAX_ROW_ELEMENTS and len(inner) < 3 else None
    return outer if long[0] in outer and row.pop() <= longest(kernel, inner) else None


def longest(kernel: Kernel, inner: Sequence[Axis]) -> int:
    """Return the maximum elements of a row that stays in the cache for the next walk along it: fewer if neighbours in the row
    are so far apart in memory that they share a few sets of the cache."""
    behind = kernel.axes[kernel.axes.index(inner[-1]) + 1:] if inner else ()
    stride = math.prod(a.extent for a in behind) * ITEM_SIZES[kernel.out.dtype]
    if stride == ITEM_SIZES[kernel.out.dtype]:
        return MAX_NEIGHBOUR_ELEMENTS
    return MAX_SAME_SET_ELEMENTS if stride % PAGE_BYTES == 0 else MAX_STRIDED_ELEMENTS


def reads_again(value: Expr) -> bool:
    """True if two walks along a row read the same tensor: otherwise separate kernels read no more memory."""
    bodies = [r.body for r in reductions(value)]
    walks = [{x.buffer for x in own_loads(e)} for e in (value, *bodies)]
    return sum(map(len, walks)) > len(set().union(*walks))


def own_loads(e: Expr) -> list[Load]:
    """Return the loads for one element, without those inside reductions."""
    inside = {id(x) for r in reductions(e) for x in nodes(r.body)}
    return [x for x in loads(e) if id(x) not in inside]


def free(r: Reduce) -> frozenset[Axis]:
    """Return the axes of the rows of a reduction: its free axes with more than one value."""
    bound = {a for n in reductions(r) for a in n.axes}
    return frozenset(a for a in free_axes(r) - bound if a.extent > 1)


def aligned(value: Expr) -> Expr:
    """Return `value` with the same axes in reductions that are not nested in each other, so that one loop computes them."""
    depth: dict[Expr, int] = {}
    axes: dict[tuple[int, ...], tuple[Axis, ...]] = {}
    done: dict[Expr, Expr] = {}

    def change(e: Expr) -> Expr | None:
        if not isinstance(e, Reduce):
            return None
        if e not in done:
            own = axes.setdefault((depth[e], *(a.extent for a in e.axes)), e.axes)
            moved = {a: Affine.of(b) for a, b in zip(e.axes, own) if a is not b}
            done[e] = Reduce(e.primitive, own, substitute(rewrite(e.body, change), moved))
        return done[e]

    for node in post_order((value,), children):
        depth[node] = max([depth[x] for x in children(node)], default=0) + isinstance(node, Reduce)
    return rewrite(value, change)
