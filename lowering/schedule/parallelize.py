"""Divides the loops of a function among threads. The function stays one function: it takes a range of units of work, and its
outer loops run over the turns whose units are in it.

Nothing else changes: no sum is divided, each element is computed by the same instructions as before, so that results are
equal to the bit for any number of threads. What the loops store is shown to lie apart (`loops.apart`). Loops that only fill
scratch run in each part, on scratch of its own; where that would be much, they are a phase of their own, which is divided,
too, and fills scratch that all parts read.

As many parts as threads leave all waiting for the slowest: processors do not run alike, and others use them, too. So where it
costs little, there are several parts for each thread, and who is done first takes one more. A pool's thread begins where its
own share begins, and goes on from there; only what is left at the end goes to another one.
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
from ..loops.apart import Places
from ..loops.carried import Turns
from ..loops.cost import Costs, cycles
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
    LoadTile,
    Operand,
    Shuffle,
    Stmt,
    StoreTile,
    StoreTo,
    Var,
    walk,
)
from ..loops.schedule_record import TaskRecord
from ..loops.substitute import substituted
from ..row_tiling.ring_buffers import copied

GRAIN = 15_000
"""Cycles of a part at least: about five microseconds, many times what it takes to hand out work and to wait for it."""
REPEATED = 10_000
"""Cycles of filling scratch that each part may do for itself."""
MEETING = 4_000
"""What a phase costs beside its work, in cycles."""
LEAST_GAIN = 0.8
"""The longest part must take no more than this of what all take."""
DEEPEST = 3
"""Levels of loops that are looked at."""
UNITS = 1 << 20
"""Into how many units the work is counted, about."""
TURNS = (1, 2)
"""Parts for each thread. With four, products of floats whose weights come from memory were 4 % slower."""
UNEVEN = 0.10
"""How much longer a thread takes than others, in relation; what its last part takes is waited for."""
CLAIM = 1_000
"""Cycles to take a part: a word that threads share, and what was at hand of the part before."""
MOST_SCRATCH = 1 << 13
"""Bytes of scratch that each part has for itself, where there are more parts than threads."""


def parts_of(function: Function, threads: int) -> int:
    """How many parts its work is worth."""
    return max(1, min(threads, int(cycles(function) // GRAIN)))


@dataclass(frozen=True, slots=True)
class Shared:
    """A function that takes a range of units of its work, and how it has been divided."""
    function: Function
    tasks: TaskRecord


def share(function: Function, threads: int) -> Shared | None:
    """The function divided among threads; None where that does not pay."""
    parts, whole = parts_of(function, threads), cycles(function)
    if parts < 2:
        return None
    divider = Divider(function)
    found: list[tuple[float, int, Division]] = []
    for turns in TURNS if parts == threads else TURNS[:1]:
        if turns > 1 and (parts * turns > MOST or whole < parts * turns * GRAIN):
            break
        division = divider.best(parts * turns)
        if division is None or (turns > 1 and own_scratch(function, division) > MOST_SCRATCH):
            break
        found.append((expected(division, turns), turns, division))
    if not found:
        return None
    _, turns, best = min(found, key=lambda f: f[0])
    divided = divide(function, parts * turns, best)
    return None if divided is None else Shared(divided, record_of(function, parts * turns, best))


def share_among(function: Function, tasks: int) -> Shared | None:
    """The function divided into so many tasks, whether that pays or not; None where it cannot be."""
    best = Divider(function).best(tasks) if 1 < tasks <= MOST else None
    return None if best is None else Shared(rewritten(function, best, tasks), record_of(function, tasks, best))


def record_of(function: Function, tasks: int, division: Division) -> TaskRecord:
    loops = [(stmt.index.id, division.units[id(stmt)].turns) for stmt in walk(function.body)
             if isinstance(stmt, For) and id(stmt) in division.units]
    return TaskRecord(tasks, tuple(loops), len(division.phases), round(division.cycles), round(cycles(function)))


def expected(division: Division, turns: int) -> float:
    """Cycles until the last thread is done, each with so many parts."""
    meeting = MEETING * len(division.phases)
    each = division.cycles - meeting
    return meeting + turns * (each + CLAIM * len(division.phases) * (turns > 1)) + UNEVEN * each


def own_scratch(function: Function, division: Division) -> int:
    """Bytes of scratch that a part has for itself."""
    return sum(b.nbytes for b in function.scratch if b not in division.shared)


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """A loop that is divided: its turns, the cycles of each, and those of all together (turns of outer loops included)."""
    loop: For
    turns: int
    cycles: float


@dataclass(frozen=True, slots=True)
class Units:
    """Where the turns of a loop lie on the line of units: turn i from `first + i * each` on."""
    first: int
    each: int
    turns: int

    def turns_of(self, low: int, high: int) -> int:
        """How many turns have the middle of their units there."""
        def before(unit: int) -> int:
            return min(max(-(-(unit - self.first - self.each // 2) // self.each), 0), self.turns)
        return before(high) - before(low)


@dataclass(slots=True)
class Division:
    """How a function is divided: its loops with their units, the end of each phase, and the scratch that all parts share.
    `cycles` is how long the longest part takes."""
    units: dict[int, Units] = field(default_factory=dict)
    phases: list[int] = field(default_factory=list)
    shared: set[Buffer] = field(default_factory=set)
    cycles: float = 0.0


def divide(function: Function, parts: int, best: Division | None = None) -> Function | None:
    """The function for units of its work, to be run in so many parts; None where its loops cannot be divided so that it
    pays. Scratch of the result is there once for each part. `best` is how, where that is known."""
    best = best or Divider(function).best(parts)
    return None if best is None or best.cycles > LEAST_GAIN * cycles(function) else rewritten(function, best, parts)


class Divider:
    """Looks for loops of a function that can be divided."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.costs, self.places = Costs(function), Places(function)
        self.scratch = frozenset(function.scratch)
        self.filling: Counter[Buffer] = Counter()
        for stmt in function.body:
            _, writes = touched([stmt])
            if writes <= self.scratch:
                self.filling.update(dict.fromkeys(writes, round(self.costs.statement(stmt))))

    def best(self, parts: int) -> Division | None:
        """The loops whose longest part of so many is shortest."""
        found = [d for level in range(DEEPEST) if (d := self.division(level, parts)) is not None]
        return min(found, key=lambda d: d.cycles, default=None)

    def division(self, level: int, parts: int) -> Division | None:
        """Loops at a depth, or less deep where there are none."""
        result, end, common = Division(), 0, 0.0
        phase: list[Share] = []
        read: set[Buffer] = set()
        written: set[Buffer] = set()
        ever: set[Buffer] = set()
        own: set[Buffer] = set()
        stored: Counter[Buffer] = Counter()

        def meet() -> None:
            nonlocal end
            if phase:
                end = self.count(result, phase, end, parts)
                phase.clear()
                read.clear()
                written.clear()
                stored.clear()

        for stmt in self.function.body:
            reads, writes = touched([stmt])
            if not writes or self.is_repeated(stmt, writes):
                if reads & ever:
                    return None
                own |= writes
                common += self.costs.statement(stmt)
                continue
            if not isinstance(stmt, For) or stmt.params:
                return None
            targets = writes - self.scratch or writes
            if reads & written or targets & read or targets & written & self.scratch or any(
                    stored[b] >= b.size for b in targets & written):  # all of it was: this is written again
                meet()
            found = (self.shares(stmt, targets, depth, 1) for depth in range(level, -1, -1))
            shares = next((s for s in found if s is not None), None)
            if shares is None:
                return None
            if targets <= self.scratch:
                result.shared |= targets
            phase += shares
            read |= reads
            written |= targets
            stored.update({b: self.costs.stored([stmt], b) for b in targets})
            ever |= targets
            own |= writes - targets
        meet()
        if not result.phases or result.shared & own:
            return None
        result.cycles += common * len(result.phases)
        return result

    def is_repeated(self, stmt: Stmt, writes: Set[Buffer]) -> bool:
        """Whether each part does it for itself."""
        return writes <= self.scratch and all(self.filling[b] <= REPEATED for b in writes)

    def shares(self, loop: For, targets: Set[Buffer], depth: int, around: int) -> list[Share] | None:
        """The loops at a depth below `loop` that together store all `targets`; None where they cannot be divided."""
        if loop.params:
            return None
        if depth == 0:
            is_plain = isinstance(loop.low, Literal) and isinstance(loop.high, Literal)
            turns = self.costs.turns(loop)
            each = around * (self.costs.block(loop.body) + 1)
            is_apart = is_plain and self.places.apart(loop, targets) and not self.carries(loop)
            return [Share(loop, turns, each)] if is_apart else None
        found: list[Share] = []
        several = 0
        for stmt in loop.body:
            _, writes = touched([stmt])
            if not writes & targets:
                continue
            if not isinstance(stmt, For):
                return None
            inner = self.shares(stmt, targets, depth - 1, around * self.costs.turns(loop))
            if inner is None:
                return None
            found += inner
            several += 1
        if several > 1 and touched(loop.body)[0] & targets:
            return None
        return found or None

    def carries(self, loop: For) -> bool:
        """Whether scratch goes from turn to turn of a loop."""
        kept = self.scratch & touched(loop.body)[1]
        if not kept or self.costs.turns(loop) == 1:
            return False
        turns = Turns(loop, self.places)
        return any((turns.carry(buffer) or not turns.covers(buffer)) and not self.places.apart(loop, {buffer})
                   for buffer in kept & touched(loop.body)[0])

    def count(self, result: Division, shares: Sequence[Share], start: int, parts: int) -> int:
        """Put the loops of a phase on the line of units; where it ends."""
        total = sum(s.turns * s.cycles for s in shares)
        each = [max(2, 2 * round(s.cycles * UNITS / (2 * max(total, 1)))) for s in shares]
        firsts = itertools.accumulate((s.turns * n for s, n in zip(shares, each)), initial=start)
        found = [Units(first, n, s.turns) for s, n, first in zip(shares, each, firsts)]
        result.units |= {id(s.loop): units for s, units in zip(shares, found)}
        end = found[-1].first + found[-1].each * found[-1].turns
        edges = [start + (end - start) * i // parts for i in range(parts + 1)]
        longest = max(sum(units.turns_of(low, high) * s.cycles for s, units in zip(shares, found))
                      for low, high in itertools.pairwise(edges))
        inside = {id(s.loop) for s in shares}
        result.cycles += longest + MEETING + sum(self.beside(stmt, inside) for stmt in self.function.body)
        result.phases.append(end)
        return end

    def beside(self, stmt: Stmt, inside: Set[int]) -> float:
        """Cycles of what stands around divided loops: each part does it."""
        if not isinstance(stmt, For) or id(stmt) in inside or not any(id(s) in inside for s in walk(stmt.body)):
            return 0.0
        own = sum(self.beside(s, inside) if holds(s, inside) else self.costs.statement(s) for s in stmt.body)
        return self.costs.turns(stmt) * own


def holds(stmt: Stmt, loops: Set[int]) -> bool:
    """Whether one of the loops is this one, or in it."""
    return id(stmt) in loops or (isinstance(stmt, For) and any(id(s) in loops for s in walk(stmt.body)))


def touched(block: Block) -> tuple[set[Buffer], set[Buffer]]:
    """The buffers that statements read, and that they write."""
    reads: set[Buffer] = set()
    writes: set[Buffer] = set()
    for stmt in walk(block):
        match stmt:
            case LoadFrom(address=address) | LoadTile(address=address):
                reads.add(address.buffer)
            case GatherFrom(buffer=buffer):
                reads.add(buffer)
            case StoreTo(address=address) | StoreTile(address=address):
                writes.add(address.buffer)
    return reads, writes


# ---- the function ----------------------------------------------------------------------------------------------------
def rewritten(function: Function, division: Division, parts: int) -> Function:
    """The function with the bounds of its divided loops from units."""
    numbers = itertools.count(1 + max(number_of(stmt) for stmt in walk(function.body)))
    low, high = Var(next(numbers), INDEX, 0), Var(next(numbers), INDEX, 0)
    head: Block = []

    def op(name: str, x: Operand, y: int) -> Var:
        result = Var(next(numbers), INDEX, 0)
        head.append(Let(result, name, (x, Literal(y, INDEX))))
        return result

    def turn(unit: Var, units: Units, first: int) -> Var:
        """The first turn whose middle is not before a unit."""
        past = op("max", op("sub", unit, units.first + units.each // 2), 0)
        number = op("min", op("div", op("add", past, units.each - 1), units.each), units.turns)
        return op("add", number, first) if first else number

    def block(statements: Block) -> Block:
        return [moved(stmt) for stmt in statements]

    def moved(stmt: Stmt) -> Stmt:
        match stmt:
            case For() if id(stmt) in division.units:
                units, start = division.units[id(stmt)], stmt.low
                assert isinstance(start, Literal)
                bounds = [turn(unit, units, int(start.value)) for unit in (low, high)]
                return dataclasses.replace(stmt, low=bounds[0], high=bounds[1])
            case For() | If():
                return dataclasses.replace(stmt, body=block(stmt.body))
            case _:
                return stmt

    body = block(function.body)
    result = Function(function.name, function.params, function.scratch, [*head, *body], (low, high), tuple(division.phases))
    return substituted(result, {b: copied(b, parts) for b in function.scratch if b not in division.shared})


def number_of(stmt: Stmt) -> int:
    match stmt:
        case For(index=index, params=params, results=results):
            return max(v.id for v in (index, *params, *results))
        case Let(result=result) | LoadFrom(result=result) | GatherFrom(result=result) | Shuffle(result=result):
            return result.id
        case _:
            return 0
