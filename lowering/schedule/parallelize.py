"""The division of a function's loops among threads: a parallel for with a static partition. There is still one function: it
takes a range of units of work, and its outer loops run the iterations whose units are in it. A range (a chunk) is a task.

Nothing else changes: no sum is divided and the same instructions compute each element as before, so that results are
bit-identical for any number of threads. `loops.dependence` shows that the stores of the loops are independent. Loops that
only fill scratch run in each task, on private scratch; if that takes long, they are a separate phase, which is divided too
and fills scratch that all tasks read. A barrier separates phases.

With one task per thread, all threads wait for the slowest: processors do not run alike, and other work uses them, too. So if
it costs little, there are several tasks per thread, and the thread that is done first takes one more. A pool's thread starts
at its own share and goes on from there; only the tasks left at the end go to another thread.
"""
from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import field

from ...runtime.records import dataclass
from ...runtime.threads import MOST
from ..elements.expression import Buffer
from ..loops.cost import CostModel, cycles
from ..loops.dependence.dependence import Dependence
from ..loops.ir import (
    INDEX,
    Block,
    For,
    Function,
    GatherFrom,
    If,
    Let,
    Literal,
    LoadFrom,
    Operand,
    Shuffle,
    Stmt,
    Var,
    walk,
)
from ..loops.schedule_record import TaskRecord
from ..loops.substitute_buffers import substituted
from ..row_tiling.ring_buffers import copied
from ..target.costs import Costs

MAX_LONGEST_FRACTION = 0.8
"""Maximum cycles of the longest task, as a fraction of the cycles of the whole function."""
MAX_DIVIDED_DEPTH = 3
"""Number of levels of nested loops in which the search looks for loops to divide."""
WORK_UNITS = 1 << 20
"""Approximate number of units in the work of a phase."""


def task_count(function: Function, threads: int, costs: Costs) -> int:
    """Return the number of tasks, at most one per thread, that the work of a function is worth."""
    return max(1, min(threads, int(cycles(function, costs) // costs.task_grain_cycles)))


@dataclass(frozen=True, slots=True)
class Shared:
    """A function that takes a range of units of its work, and the record of its division."""
    function: Function
    tasks: TaskRecord


def share(function: Function, threads: int, costs: Costs) -> Shared | None:
    """Return the function divided among threads; None if that does not pay."""
    count, whole = task_count(function, threads, costs), cycles(function, costs)
    if count < 2:
        return None
    divider = Divider(function, costs)
    found: list[tuple[float, int, Division]] = []
    for each in costs.tasks_per_thread if count == threads else costs.tasks_per_thread[:1]:
        if each > 1 and (count * each > MOST or whole < count * each * costs.task_grain_cycles):
            break
        division = divider.best(count * each)
        if division is None or (each > 1 and own_scratch(function, division) > costs.own_scratch_bytes):
            break
        found.append((expected_cycles(division, each, costs), each, division))
    if not found:
        return None
    _, each, best = min(found, key=lambda f: f[0])
    divided = divide(function, count * each, costs, best)
    return None if divided is None else Shared(divided, record_of(function, count * each, best, costs))


def share_among(function: Function, tasks: int, costs: Costs) -> Shared | None:
    """Return the function divided into `tasks` tasks, whether that pays or not; None if it cannot be divided."""
    best = Divider(function, costs).best(tasks) if 1 < tasks <= MOST else None
    return None if best is None else Shared(rewritten(function, best, tasks), record_of(function, tasks, best, costs))


def record_of(function: Function, tasks: int, division: Division, costs: Costs) -> TaskRecord:
    loops = [(stmt.index.id, division.units[id(stmt)].iterations) for stmt in walk(function.body)
             if isinstance(stmt, For) and id(stmt) in division.units]
    return TaskRecord(tasks, tuple(loops), len(division.phases), round(division.cycles), round(cycles(function, costs)))


def expected_cycles(division: Division, per_thread: int, costs: Costs) -> float:
    """Return the cycles until the last thread is done, if each thread runs `per_thread` tasks."""
    barriers = costs.barrier_cycles * len(division.phases)
    task = division.cycles - barriers
    claims = costs.task_claim_cycles * len(division.phases) * (per_thread > 1)
    return barriers + per_thread * (task + claims) + costs.thread_imbalance_fraction * task


def own_scratch(function: Function, division: Division) -> int:
    """Return the bytes of private scratch of a task."""
    return sum(b.nbytes for b in function.scratch if b not in division.shared)


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """A divided loop: its iterations, and the cycles of one iteration, summed over all iterations of the enclosing loops."""
    loop: For
    iterations: int
    cycles: float


@dataclass(frozen=True, slots=True)
class Units:
    """The units of the iterations of a loop: iteration i has `each` units, from unit `first + i * each` on."""
    first: int
    each: int
    iterations: int

    def iterations_in(self, low: int, high: int) -> int:
        """Return the number of iterations whose middle unit is in the range from `low` to before `high`."""
        def before(unit: int) -> int:
            return min(max(-(-(unit - self.first - self.each // 2) // self.each), 0), self.iterations)
        return before(high) - before(low)


@dataclass(slots=True)
class Division:
    """The division of a function: its loops with their units, the end of each phase in units, and the scratch that all tasks
    share. `cycles` are the cycles of the longest task."""
    units: dict[int, Units] = field(default_factory=dict)
    phases: list[int] = field(default_factory=list)
    shared: set[Buffer] = field(default_factory=set)
    cycles: float = 0.0


def divide(function: Function, tasks: int, costs: Costs, best: Division | None = None) -> Function | None:
    """Return the function for units of its work, to be run in `tasks` tasks; None if no division of its loops pays. Private
    scratch of the result has a copy for each task. `best` is the division, if it is known."""
    best = best or Divider(function, costs).best(tasks)
    pays = best is not None and best.cycles <= MAX_LONGEST_FRACTION * cycles(function, costs)
    return rewritten(function, best, tasks) if best is not None and pays else None


class Divider:
    """The search for loops of a function that can be divided."""

    def __init__(self, function: Function, costs: Costs) -> None:
        self.function, self.costs = function, costs
        self.model, self.dependence = CostModel(function, costs), Dependence(function)
        self.scratch = frozenset(function.scratch)
        self.filling: Counter[Buffer] = Counter()
        for stmt in function.body:
            _, writes = self.dependence.touched(stmt)
            if writes <= self.scratch:
                self.filling.update(dict.fromkeys(writes, round(self.model.statement(stmt))))

    def best(self, tasks: int) -> Division | None:
        """Return the division into `tasks` tasks whose longest task is shortest; None if there is no division."""
        found = [d for level in range(MAX_DIVIDED_DEPTH) if (d := self.division(level, tasks)) is not None]
        return min(found, key=lambda d: d.cycles, default=None)

    def division(self, level: int, tasks: int) -> Division | None:
        """Return the division of the loops at a depth, or less deep where there are none; None if they cannot be divided."""
        result, end, common = Division(), 0, 0.0
        phase: list[Share] = []
        read: set[Buffer] = set()
        written: set[Buffer] = set()
        ever: set[Buffer] = set()
        own: set[Buffer] = set()
        stored: Counter[Buffer] = Counter()

        def barrier() -> None:
            nonlocal end
            if phase:
                end = self.count(result, phase, end, tasks)
                phase.clear()
                read.clear()
                written.clear()
                stored.clear()

        for stmt in self.function.body:
            reads, writes = self.dependence.touched(stmt)
            if not writes or self.is_repeated(stmt, writes):
                if reads & ever:
                    return None
                own |= writes
                common += self.model.statement(stmt)
                continue
            if not isinstance(stmt, For) or stmt.params:
                return None
            targets = writes - self.scratch or writes
            if reads & written or targets & read or targets & written & self.scratch or any(
                    stored[b] >= b.size for b in targets & written):  # the whole buffer was stored: this stores it again
                barrier()
            found = (self.shares(stmt, targets, depth, 1) for depth in range(level, -1, -1))
            shares = next((s for s in found if s is not None), None)
            if shares is None:
                return None
            if targets <= self.scratch:
                result.shared |= targets
            phase += shares
            read |= reads
            written |= targets
            stored.update({b: self.model.stored([stmt], b) for b in targets})
            ever |= targets
            own |= writes - targets
        barrier()
        if not result.phases or result.shared & own:
            return None
        result.cycles += common * len(result.phases)
        return result

    def is_repeated(self, stmt: Stmt, writes: Set[Buffer]) -> bool:
        """True if each task runs a statement itself, on private scratch."""
        return writes <= self.scratch and all(self.filling[b] <= self.costs.repeated_fill_cycles for b in writes)

    def shares(self, loop: For, targets: Set[Buffer], depth: int, around: int) -> list[Share] | None:
        """Return the loops at a depth below `loop` that together store all `targets`; None if they cannot be divided."""
        if loop.params:
            return None
        if depth == 0:
            is_plain = isinstance(loop.low, Literal) and isinstance(loop.high, Literal)
            iterations = self.model.iterations(loop)
            each = around * (self.model.block(loop.body) + 1)
            may_divide = is_plain and self.dependence.are_independent(loop, targets) and not self.dependence.is_carried(
                loop, self.scratch)
            return [Share(loop, iterations, each)] if may_divide else None
        found: list[Share] = []
        several = 0
        for stmt in loop.body:
            _, writes = self.dependence.touched(stmt)
            if not writes & targets:
                continue
            if not isinstance(stmt, For):
                return None
            inner = self.shares(stmt, targets, depth - 1, around * self.model.iterations(loop))
            if inner is None:
                return None
            found += inner
            several += 1
        if several > 1 and self.dependence.touched(loop)[0] & targets:
            return None
        return found or None

    def count(self, result: Division, shares: Sequence[Share], start: int, tasks: int) -> int:
        """Assign units to the loops of a phase, from the unit `start` on; return the end of the phase."""
        total = sum(s.iterations * s.cycles for s in shares)
        each = [max(2, 2 * round(s.cycles * WORK_UNITS / (2 * max(total, 1)))) for s in shares]
        firsts = itertools.accumulate((s.iterations * n for s, n in zip(shares, each)), initial=start)
        found = [Units(first, n, s.iterations) for s, n, first in zip(shares, each, firsts)]
        result.units |= {id(s.loop): units for s, units in zip(shares, found)}
        end = found[-1].first + found[-1].each * found[-1].iterations
        edges = [start + (end - start) * i // tasks for i in range(tasks + 1)]
        longest = max(sum(units.iterations_in(low, high) * s.cycles for s, units in zip(shares, found))
                      for low, high in itertools.pairwise(edges))
        inside = {id(s.loop) for s in shares}
        result.cycles += longest + self.costs.barrier_cycles + sum(self.beside(stmt, inside) for stmt in self.function.body)
        result.phases.append(end)
        return end

    def beside(self, stmt: Stmt, inside: Set[int]) -> float:
        """Return the cycles of the statements around divided loops, which each task runs."""
        if not isinstance(stmt, For) or id(stmt) in inside or not any(id(s) in inside for s in walk(stmt.body)):
            return 0.0
        own = sum(self.beside(s, inside) if holds(s, inside) else self.model.statement(s) for s in stmt.body)
        return self.model.iterations(stmt) * own


def holds(stmt: Stmt, loops: Set[int]) -> bool:
    """True if a statement is one of the loops, or contains one of them."""
    return id(stmt) in loops or (isinstance(stmt, For) and any(id(s) in loops for s in walk(stmt.body)))


# ---- the function ----------------------------------------------------------------------------------------------------
def rewritten(function: Function, division: Division, tasks: int) -> Function:
    """Return the function with the bounds of its divided loops computed from units."""
    numbers = itertools.count(1 + max(number_of(stmt) for stmt in walk(function.body)))
    low, high = Var(next(numbers), INDEX, 0), Var(next(numbers), INDEX, 0)
    head: Block = []

    def op(name: str, x: Operand, y: int) -> Var:
        result = Var(next(numbers), INDEX, 0)
        head.append(Let(result, name, (x, Literal(y, INDEX))))
        return result

    def iteration(unit: Var, units: Units, first: int) -> Var:
        """Return the first iteration whose middle unit is not before `unit`."""
        past = op("max", op("sub", unit, units.first + units.each // 2), 0)
        number = op("min", op("div", op("add", past, units.each - 1), units.each), units.iterations)
        return op("add", number, first) if first else number

    def block(statements: Block) -> Block:
        return [moved(stmt) for stmt in statements]

    def moved(stmt: Stmt) -> Stmt:
        match stmt:
            case For() if id(stmt) in division.units:
                units, start = division.units[id(stmt)], stmt.low
                assert isinstance(start, Literal)
                bounds = [iteration(unit, units, int(start.value)) for unit in (low, high)]
                return dataclasses.replace(stmt, low=bounds[0], high=bounds[1])
            case For() | If():
                return dataclasses.replace(stmt, body=block(stmt.body))
            case _:
                return stmt

    body = block(function.body)
    result = Function(function.name, function.params, function.scratch, [*head, *body], (low, high), tuple(division.phases))
    return substituted(result, {b: copied(b, tasks) for b in function.scratch if b not in division.shared})


def number_of(stmt: Stmt) -> int:
    match stmt:
        case For(index=index, params=params, results=results):
            return max(v.id for v in (index, *params, *results))
        case Let(result=result) | LoadFrom(result=result) | GatherFrom(result=result) | Shuffle(result=result):
            return result.id
        case _:
            return 0
