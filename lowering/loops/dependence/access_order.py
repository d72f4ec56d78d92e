"""The order in which a function of the loop IR loads and stores the elements of its buffers. It decides whether a buffer may be
overwritten while the function still runs.

The loops are not run: each access is evaluated for all iterations of the loops around it at once, with the time at which it
happens. Times only order accesses. An access whose index is not known before a run may touch every element.
"""
from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import field
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ..ir import Block, For, Function, If, Let, Literal, Operand
from ..ranges import LinearForm
from .accesses import Access, Accesses

Integers = npt.NDArray[np.int64]
NEVER = np.iinfo(np.int64).max
MAX_ELEMENTS = 1 << 22
"""Maximum number of accesses to single elements that are examined; the order of a function with more counts as unknown."""
MAX_ITERATIONS = 1 << 12
"""Maximum number of iterations of a loop whose bounds are computed."""

OPERATIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
              "and": np.bitwise_and, "shl": np.left_shift, "ashr": np.right_shift, "lshr": np.right_shift}


class TooMany(Exception):
    """A function has more accesses than are examined."""


@dataclass(frozen=True, slots=True, eq=False)
class Touches:
    """The times at which each element of a buffer, or each group of neighbours that are always touched together, is stored for
    the first time (NEVER), loaded for the last time (-1), and touched `first` (NEVER) and `last` (-1)."""
    first_store: Integers
    last_load: Integers
    first: Integers
    last: Integers

    @staticmethod
    def none(groups: int) -> Touches:
        """Return the times of groups that no access touches."""
        first, last = np.full(groups, NEVER), np.full(groups, -1)
        return Touches(first, last, first.copy(), last.copy())

    def note(self, is_store: bool, groups: Integers, first: Integers, last: Integers) -> None:
        """Record that groups are touched, each between two times."""
        np.minimum.at(self.first, groups, first)
        np.maximum.at(self.last, groups, last)
        if is_store:
            np.minimum.at(self.first_store, groups, first)
        else:
            np.maximum.at(self.last_load, groups, last)


def touches(function: Function, buffers: Iterable[Buffer], most: int = MAX_ELEMENTS) -> dict[Buffer, Touches] | None:
    """Return the times at which a whole run of `function` touches the elements of these buffers; None if it has more accesses
    to single elements than `most`, or does not say which. Groups have the same size in all buffers."""
    if function.rows is not None:
        return None
    walk = AccessWalk(Accesses.of(function), frozenset(buffers), most)
    try:
        walk.block(function.body, Iterations(walk.accesses, np.zeros(1, np.int64)), 0)
    except TooMany:
        return None
    return walk.touches()


_answers: WeakKeyDictionary[Function, dict[tuple[Buffer, Buffer], bool]] = WeakKeyDictionary()


def may_overwrite(function: Function, read: Buffer, written: Buffer) -> bool:
    """True if `written` may occupy the same bytes as `read`: no element of `read` is loaded after one has been stored
    there. Cached."""
    known = _answers.setdefault(function, {})
    if (read, written) not in known:
        found = touches(function, {read, written})
        known[read, written] = found is not None and is_before(found[read].last_load, read, found[written].first_store, written)
    return known[read, written]


def is_before(loaded: Integers, read: Buffer, stored: Integers, written: Buffer) -> bool:
    """True if each byte that both buffers have is loaded before it is stored; `loaded` and `stored` are times of elements."""
    sizes = [b.nbytes // max(b.size, 1) for b in (read, written)]
    if sizes[0] != sizes[1]:
        loaded, stored = np.repeat(loaded, sizes[0]), np.repeat(stored, sizes[1])
    both = min(len(loaded), len(stored))
    return bool(np.all(loaded[:both] < stored[:both]))


@dataclass(slots=True, eq=False)
class Iterations:
    """All iterations of the loops around a statement, in order: their times, and the values of symbols there. `repeats` is the
    number of times that each iteration of the outer loops occurs here."""
    accesses: Accesses
    times: Integers
    outer: Iterations | None = None
    repeats: Integers | None = None
    values: dict[int, Integers | None] = field(default_factory=dict)

    def of(self, form: LinearForm) -> Integers | None:
        """Return the value of a form in each iteration; None if it is not known."""
        total = np.full(len(self.times), form.const, np.int64)
        for symbol, coefficient in form.terms.items():
            value = self.symbol(symbol)
            if value is None:
                return None
            total += value if coefficient == 1 else value * coefficient
        return total

    def operand(self, x: Operand) -> Integers | None:
        return self.of(self.accesses.symbols.form(x))

    def symbol(self, symbol: int) -> Integers | None:
        if symbol not in self.values:
            self.values[symbol] = self.worked_out(symbol)
        return self.values[symbol]

    def worked_out(self, symbol: int) -> Integers | None:
        x = self.accesses.symbols.origins.get(symbol)
        if x is None or x.type.lanes > 1:
            return None
        if self.outer is not None and x.depth < self.depth:
            value = self.outer.symbol(symbol)
            return None if value is None or self.repeats is None else np.repeat(value, self.repeats)
        match self.accesses.symbols.definitions.get(x):
            case Let(op=op, args=args) if all(a.type.dtype.startswith("int") and a.type.lanes == 1 for a in args):
                return computed(op, [self.operand(a) for a in args])
        return None

    @property
    def depth(self) -> int:
        return 0 if self.outer is None else self.outer.depth + 1


def computed(op: str, args: list[Integers | None]) -> Integers | None:
    """Return the result of an operation in each iteration; None if it is not known."""
    known = [a for a in args if a is not None]
    if len(known) < len(args):
        return None
    if op == "div" and np.all(known[0] >= 0) and np.all(known[1] > 0):
        return known[0] // known[1]
    operation = OPERATIONS.get(op)
    return None if operation is None else np.asarray(operation(*known), np.int64)


Alike = dict[tuple[Buffer, bool, LinearForm, int], list[tuple[int, int]]]
"""Accesses of one block by (buffer, whether they store, base, elements): the (offset, time) of each."""


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """Accesses that differ only in the offset: `places` are the first elements of each, as many as `times`; None where an
    access may touch any element of the buffer."""
    buffer: Buffer
    is_store: bool
    active: int
    places: Integers | None
    times: Integers


class AccessWalk:
    """A single walk through a function; `marks` are the accesses that it finds."""

    def __init__(self, accesses: Accesses, buffers: frozenset[Buffer], most: int) -> None:
        self.accesses, self.buffers = accesses, buffers
        self.marks: list[Mark] = []
        self.left = most
        self.durations: dict[int, int] = {}

    def block(self, block: Block, iterations: Iterations, start: int) -> int:
        """Walk a block that begins at `iterations.times + start`; return its end, relative to `iterations.times`."""
        time, alike = start, Alike()
        for event in self.accesses.inside(block).events:
            match event:
                case Access(buffer=buffer):
                    if buffer in self.buffers:
                        self.note(alike, event, iterations, time)
                        time += 1
                case If(body=body):
                    if self.has_some(body):
                        ones = np.ones(len(iterations.times), np.int64)
                        time = self.block(body, Iterations(self.accesses, iterations.times, iterations, ones), time)
                case For(body=body):
                    if self.has_some(body):
                        time += self.loop(event, iterations, time)
        self.mark(alike, iterations)
        return time

    def has_some(self, block: Block) -> bool:
        inside = self.accesses.inside(block)
        return not (self.buffers.isdisjoint(inside.loaded) and self.buffers.isdisjoint(inside.stored))

    def note(self, alike: Alike, access: Access, iterations: Iterations, time: int) -> None:
        """Record an access, to be marked together with similar ones."""
        if access.base is None:
            self.marks.append(Mark(access.buffer, access.is_store, 1, None, iterations.times + time))
            return
        self.left -= len(iterations.times) * access.active * access.rows
        if self.left < 0:
            raise TooMany
        alike.setdefault((access.buffer, access.is_store, access.base, access.active), []).extend(
            [(offset, time) for offset in access.offsets])

    def loop(self, stmt: For, iterations: Iterations, start: int) -> int:
        """Walk all iterations of a loop in all iterations around it; return the most time that they take."""
        low, high = iterations.operand(stmt.low), iterations.operand(stmt.high)
        if low is None or high is None:
            raise TooMany
        count = np.maximum(high - low, 0)
        total = int(count.sum())
        if total > self.left or count.max(initial=0) > most_iterations(stmt):
            raise TooMany
        inside = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
        each = self.duration(stmt.body)
        around = np.repeat(iterations.times, count)
        inner = Iterations(self.accesses, around + start + inside * each, iterations, count)
        inner.values[self.accesses.symbol(stmt)] = np.repeat(low, count) + inside
        self.block(stmt.body, inner, 0)
        return int(count.max(initial=0)) * each

    def duration(self, block: Block) -> int:
        """Return an upper bound of the time of one run of a block: one for each access, loops with their most iterations."""
        if id(block) not in self.durations:
            self.durations[id(block)] = sum(
                1 if isinstance(event, Access) else self.duration(event.body) * most_iterations(event)
                for event in self.accesses.inside(block).events)
        return self.durations[id(block)]

    def mark(self, alike: Alike, iterations: Iterations) -> None:
        """Mark the accesses of a block, to `active` neighbours in each iteration; those that differ only in the offset at
        once."""
        for (buffer, is_store, start, active), accesses in alike.items():
            base, (offsets, times) = iterations.of(start), np.array(accesses, np.int64).T
            places = None if base is None else (base[:, None] + offsets).reshape(-1)
            self.marks.append(Mark(buffer, is_store, active, places, (iterations.times[:, None] + times).reshape(-1)))

    def touches(self) -> dict[Buffer, Touches]:
        """Return the times of all marked accesses, by buffer."""
        grain = self.grain()
        found = {b: Touches.none(b.size // grain) for b in self.buffers}
        for mark in self.marks:
            fill(found[mark.buffer], mark, grain)
        return found

    def grain(self) -> int:
        """Return the size, the same in all buffers, of the largest groups of elements that are touched together."""
        sizes = [b.size for b in self.buffers] + [m.active for m in self.marks if m.places is not None]
        places = [int(np.gcd.reduce(m.places)) for m in self.marks if m.places is not None]
        return math.gcd(*sizes, *places) or 1


def most_iterations(stmt: For | If) -> int:
    """Return the most iterations of a loop; `MAX_ITERATIONS` if its bounds are computed."""
    match stmt:
        case For(low=Literal(value=low), high=Literal(value=high)):
            return max(int(high) - int(low), 0)
        case For():
            return MAX_ITERATIONS
    return 1


def fill(touched: Touches, mark: Mark, grain: int) -> None:
    """Record accesses, group by group."""
    if not len(mark.times):
        return
    if mark.places is None:
        touched.note(mark.is_store, np.arange(len(touched.first)), mark.times.min(), mark.times.max())
        return
    groups = mark.active // grain
    places = (mark.places[:, None] // grain + np.arange(groups)).reshape(-1)
    inside, times = (places >= 0) & (places < len(touched.first)), np.repeat(mark.times, groups)
    touched.note(mark.is_store, places[inside], times[inside], times[inside])  # masked lanes may be out of range
