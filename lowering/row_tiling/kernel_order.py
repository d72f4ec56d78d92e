"""An order of kernels with fewer bytes live at a time: kernels between two branches, loops or checks may run in any order that
keeps every read after its write. The search is exact if few orders are open, a beam search if many are.

The pass runs between fusion and row tiling. It counts the bytes of buffers that only this function needs; the planner may need
fewer still.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...runtime.records import dataclass
from ..elements.expression import Buffer
from ..elements.traverse import loads
from ..kernels.kernel import Branch, CheckTrue, Compute, Kernel, Kernels, Loop, Step, walk

BEAM_STATES = 48
"""Beam width: the maximum number of sets of kernels that have run that the search extends, for each size of a set."""
MAX_ORDERED_KERNELS = 400
"""Maximum kernels of a run that is reordered; a longer run stays as it is."""


def ordered(kernels: Kernels) -> Kernels:
    """Return the same kernels, with each run of steps in the order found that needs the fewest bytes at a time, or unchanged if
    no order is found that needs fewer."""
    outside = kept(kernels)
    return replace(kernels, steps=tuple(block(kernels, kernels.steps, outside)))


def kept(kernels: Kernels) -> Mapping[Buffer, int]:
    """Return the number of steps that use each buffer, plus one for each use outside of kernels (conditions, results)."""
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
    """Yield the steps, with runs of plain steps in a better order and everything else in its position."""
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
    """A kernel of a run: the kernels that it must follow, as bits; the bytes that become live with it; the buffers that it
    uses."""
    after: int
    born: int
    uses: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OrderProblem:
    """The kernels of a run as numbers. `sizes` and `users` are of the buffers whose live ranges are within the run."""
    tasks: tuple[KernelNode, ...]
    sizes: tuple[int, ...]
    users: tuple[int, ...]
    """For each buffer, the tasks that use it, as bits."""

    def peak(self, order: Sequence[int]) -> int:
        """Return the maximum number of bytes live at a time."""
        done = live = most = 0
        for number in order:
            live += self.tasks[number].born
            most = max(most, live)
            done |= 1 << number
            live -= self.dead(number, done)
        return most

    def dead(self, number: int, done: int) -> int:
        """Return the bytes whose live range ends with task `number`, the last one of `done`."""
        return sum(self.sizes[b] for b in self.tasks[number].uses if self.users[b] & ~done == 0)

    @property
    def least(self) -> int:
        """Lower bound in bytes of the peak of any order: the buffers that a single task uses."""
        return max((sum(self.sizes[b] for b in t.uses) for t in self.tasks), default=0)


def best_order(kernels: Kernels, run: Sequence[int], outside: Mapping[Buffer, int]) -> list[int]:
    """Return the kernels of a run in the order found; in their own order, if nothing is gained."""
    if not 2 < len(run) <= MAX_ORDERED_KERNELS or len(set(run)) < len(run):
        return list(run)
    problem = run_of([kernels.kernels[n] for n in run], outside)
    now = problem.peak(range(len(run)))
    if now <= problem.least:
        return list(run)
    order = search(problem, now)
    return [run[i] for i in order] if order is not None else list(run)


def run_of(kernels: Sequence[Kernel], outside: Mapping[Buffer, int]) -> OrderProblem:
    """Return the tasks of a run, and the buffers that are live only within it."""
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
    """Return, as bits, the earlier kernels that kernel i must follow: one of the two writes a buffer that the other uses."""
    return sum(1 << j for j in range(i) if kernels[j].out in uses[i] or kernels[i].out in uses[j])


@dataclass(frozen=True, slots=True)
class PartialOrder:
    """A state of the search: the kernels that have run, as bits; the bytes live now; their maximum so far; the order."""
    done: int
    live: int
    peak: int
    order: tuple[int, ...]


def search(problem: OrderProblem, now: int) -> tuple[int, ...] | None:
    """Return the order with the lowest peak found below `now`; None if there is none."""
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
    """Yield the states one kernel further whose peak is below `now`."""
    for number, task in enumerate(problem.tasks):
        if state.done >> number & 1 or task.after & ~state.done:
            continue
        live = state.live + task.born
        peak = max(state.peak, live)
        if peak < now:
            done = state.done | 1 << number
            yield PartialOrder(done, live - problem.dead(number, done), peak, (*state.order, number))
