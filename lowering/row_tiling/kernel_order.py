"""An order of kernels in which less is live at a time: kernels between two branches, loops or checks may run in any order
that keeps every read behind its write. Exact where few orders are open, a beam search where many are.

It stands between fusion and row tiling. What it counts is the bytes of buffers that only this function needs; what the
planner makes of them may be less still.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...runtime.records import dataclass
from ..elements.expression import Buffer
from ..elements.traverse import loads
from ..kernels.kernel import Branch, CheckTrue, Compute, Kernel, Kernels, Loop, Step, walk

BEAM_STATES = 48
"""Sets of kernels that have run that are looked at further, for each number of them: all, where there are no more."""
MAX_ORDERED_KERNELS = 400
"""Kernels of a run that are put in order; a longer one stays as it is."""


def ordered(kernels: Kernels) -> Kernels:
    """The same kernels, each run of steps in the order that needs the fewest bytes at a time, if one is found that needs
    fewer than theirs."""
    outside = kept(kernels)
    return replace(kernels, steps=tuple(block(kernels, kernels.steps, outside)))


def kept(kernels: Kernels) -> Mapping[Buffer, int]:
    """How many steps use each temporary, and once more for what is needed outside of kernels (conditions, results)."""
    count: dict[Buffer, int] = dict.fromkeys(kernels.outputs, 1)
    for step in walk(kernels.steps):
        match step:
            case Compute(number):
                for buffer in touched(kernels.kernels[number]):
                    count[buffer] = count.get(buffer, 0) + 1
            case Branch(condition) | Loop(_, condition) | CheckTrue(condition):
                count[condition] = count.get(condition, 0) + 1
    return count


def touched(kernel: Kernel) -> frozenset[Buffer]:
    return frozenset(x.buffer for x in loads(kernel.value)) | {kernel.out}


def block(kernels: Kernels, steps: Sequence[Step], outside: Mapping[Buffer, int]) -> Iterator[Step]:
    """Runs of plain steps in a better order; everything else where it is."""
    run: list[int] = []
    for step in (*steps, None):
        if isinstance(step, Compute) and step.rows is None:
            run.append(step.kernel)
            continue
        yield from map(Compute, best_order(kernels, run, outside))
        run = []
        match step:
            case Branch(condition, then, otherwise):
                yield Branch(condition, tuple(block(kernels, then, outside)), tuple(block(kernels, otherwise, outside)))
            case Loop(test, condition, body):
                yield Loop(tuple(block(kernels, test, outside)), condition, tuple(block(kernels, body, outside)))
            case None:
                return
            case _:
                yield step


@dataclass(frozen=True, slots=True)
class KernelNode:
    """A kernel of a run: what it must come after, the bytes that begin to live with it, and the buffers that it uses."""
    after: int
    born: int
    uses: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OrderProblem:
    """The kernels of a run as numbers; `sizes` and `uses` are of the buffers that live and die within it."""
    tasks: tuple[KernelNode, ...]
    sizes: tuple[int, ...]
    users: tuple[int, ...]
    """Of each buffer, the tasks that use it, as bits."""

    def peak(self, order: Sequence[int]) -> int:
        """The most bytes live at a time."""
        done = live = most = 0
        for number in order:
            live += self.tasks[number].born
            most = max(most, live)
            done |= 1 << number
            live -= self.dead(number, done)
        return most

    def dead(self, number: int, done: int) -> int:
        """Bytes that nobody needs once `done` has run, the task `number` as the last."""
        return sum(self.sizes[b] for b in self.tasks[number].uses if self.users[b] & ~done == 0)

    @property
    def least(self) -> int:
        """Bytes that some task needs in any order: what it uses."""
        return max((sum(self.sizes[b] for b in t.uses) for t in self.tasks), default=0)


def best_order(kernels: Kernels, run: Sequence[int], outside: Mapping[Buffer, int]) -> list[int]:
    """The kernels of a run in the order found; in theirs, if nothing is gained."""
    if not 2 < len(run) <= MAX_ORDERED_KERNELS or len(set(run)) < len(run):
        return list(run)
    problem = run_of([kernels.kernels[n] for n in run], outside)
    now = problem.peak(range(len(run)))
    if now <= problem.least:
        return list(run)
    order = search(problem, now)
    return [run[i] for i in order] if order is not None else list(run)


def run_of(kernels: Sequence[Kernel], outside: Mapping[Buffer, int]) -> OrderProblem:
    """The tasks of a run, and what lives only within it."""
    uses = [touched(k) for k in kernels]
    count: dict[Buffer, int] = {}
    for used in uses:
        for buffer in used:
            count[buffer] = count.get(buffer, 0) + 1
    written = {k.out for k in kernels}
    inner = [b for b in dict.fromkeys(b for k in kernels for b in (k.out, *(x.buffer for x in loads(k.value))))
             if b.role == "temporary" and b in written and count[b] == outside.get(b, 0)]
    number = {b: i for i, b in enumerate(inner)}
    tasks = []
    born: set[Buffer] = set()
    for i, kernel in enumerate(kernels):
        fresh = kernel.out in number and kernel.out not in born
        born.add(kernel.out)
        tasks.append(KernelNode(before(kernels, uses, i), kernel.out.nbytes if fresh else 0,
                          tuple(number[b] for b in uses[i] if b in number)))
    users = tuple(sum(1 << i for i, used in enumerate(uses) if b in used) for b in inner)
    return OrderProblem(tuple(tasks), tuple(b.nbytes for b in inner), users)


def before(kernels: Sequence[Kernel], uses: Sequence[frozenset[Buffer]], i: int) -> int:
    """The earlier kernels that kernel i must stay behind: one of the two writes what the other uses."""
    return sum(1 << j for j in range(i) if kernels[j].out in uses[i] or kernels[i].out in uses[j])


@dataclass(frozen=True, slots=True)
class PartialOrder:
    """Kernels that have run, as bits; the bytes live now, the most that were at a time; the order."""
    done: int
    live: int
    peak: int
    order: tuple[int, ...]


def search(problem: OrderProblem, now: int) -> tuple[int, ...] | None:
    """An order with a peak below `now`, the lowest found; None without one."""
    states = [PartialOrder(0, 0, 0, ())]
    count = len(problem.tasks)
    for _ in range(count):
        found: dict[int, PartialOrder] = {}
        for state in states:
            for nxt in following(problem, state, now):
                known = found.get(nxt.done)
                if known is None or (nxt.peak, nxt.order) < (known.peak, known.order):
                    found[nxt.done] = nxt
        states = sorted(found.values(), key=lambda s: (s.peak, s.live, s.order))[:BEAM_STATES]
    return states[0].order if states else None


def following(problem: OrderProblem, state: PartialOrder, now: int) -> Iterator[PartialOrder]:
    """The states one kernel further that stay below `now`."""
    for number, task in enumerate(problem.tasks):
        if state.done >> number & 1 or task.after & ~state.done:
            continue
        live = state.live + task.born
        peak = max(state.peak, live)
        if peak < now:
            done = state.done | 1 << number
            yield PartialOrder(done, live - problem.dead(number, done), peak, (*state.order, number))
