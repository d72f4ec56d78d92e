"""In which order a function of the loop IR touches the elements of its buffers: what tells whether a buffer may be
overwritten while the function still runs.

The loops are not run: each access is worked out for all turns of the loops around it at once, with the time at which it
happens. Times only order accesses. Where an index is not known before a run, every element may be meant.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..elements.expression import Buffer
from .ir import Address, Block, For, Function, GatherFrom, If, Let, Literal, LoadFrom, Operand, StoreTo, Var, walk

Integers = npt.NDArray[np.int64]
NEVER = np.iinfo(np.int64).max
MOST = 1 << 22
"""Accesses to elements that are looked at; in a function with more the order is taken as not known."""

OPERATIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
              "and": np.bitwise_and, "shl": np.left_shift, "ashr": np.right_shift, "lshr": np.right_shift}


class TooMany(Exception):
    """More accesses than are looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class Touches:
    """Of each element of a buffer: when it is stored for the first time (NEVER), and when it is loaded for the last time
    (-1)."""
    first_store: Integers
    last_load: Integers


def touches(function: Function, buffers: Iterable[Buffer]) -> dict[Buffer, Touches] | None:
    """When a whole run of `function` touches the elements of these buffers; None where that is too much to find out."""
    found = {b: Touches(np.full(b.size, NEVER), np.full(b.size, -1)) for b in buffers}
    if function.rows is not None:
        return None
    try:
        Walk(found).block(function.body, Turns(np.zeros(1, np.int64)), 0)
    except TooMany:
        return None
    return found


def may_overwrite(function: Function, read: Buffer, written: Buffer) -> bool:
    """Whether `written` may lie on the same bytes as `read`: no element of `read` is loaded after one has been stored
    there."""
    size = max(read.nbytes, written.nbytes)
    found = touches(function, {read, written})
    if found is None:
        return False
    loaded, stored = np.full(size, -1), np.full(size, NEVER)
    loaded[:read.nbytes] = np.repeat(found[read].last_load, read.nbytes // max(read.size, 1))
    stored[:written.nbytes] = np.repeat(found[written].first_store, written.nbytes // max(written.size, 1))
    return bool(np.all(loaded < stored))


@dataclass(slots=True, eq=False)
class Turns:
    """All turns of the loops around a place, in order: their times, and the values known there. `repeats` says how often
    each turn of the loops further out occurs here."""
    times: Integers
    outer: Turns | None = None
    repeats: Integers | None = None
    values: dict[Var, Integers | None] = field(default_factory=dict)

    def of(self, x: Operand, definitions: dict[Var, Let]) -> Integers | None:
        """The value of an integer in each turn; None where it is not known."""
        if isinstance(x, Literal):
            return np.full(len(self.times), int(x.value), np.int64)
        if x not in self.values:
            self.values[x] = self.worked_out(x, definitions)
        return self.values[x]

    def worked_out(self, x: Var, definitions: dict[Var, Let]) -> Integers | None:
        if self.outer is not None and x.depth < self.depth:
            value = self.outer.of(x, definitions)
            return None if value is None or self.repeats is None else np.repeat(value, self.repeats)
        let = definitions.get(x)
        if let is None or x.type.lanes > 1:
            return None
        args = [self.of(a, definitions) if a.type.dtype.startswith("int") and a.type.lanes == 1 else None for a in let.args]
        known = [a for a in args if a is not None]
        if len(known) < len(args):
            return None
        if let.op == "cast":
            return known[0]
        if let.op == "div" and np.all(known[0] >= 0) and np.all(known[1] > 0):
            return known[0] // known[1]
        operation = OPERATIONS.get(let.op)
        return None if operation is None else np.asarray(operation(*known), np.int64)

    @property
    def depth(self) -> int:
        return 0 if self.outer is None else self.outer.depth + 1


class Walk:
    """Goes through a function once; `found` is filled in."""

    def __init__(self, found: dict[Buffer, Touches]) -> None:
        self.found = found
        self.definitions: dict[Var, Let] = {}
        self.left = MOST

    def touches(self, block: Block) -> bool:
        """Whether something inside touches one of the buffers."""
        return any(self.buffer(s) in self.found for s in walk(block) if isinstance(s, (LoadFrom, GatherFrom, StoreTo)))

    @staticmethod
    def buffer(stmt: LoadFrom | GatherFrom | StoreTo) -> Buffer:
        return stmt.buffer if isinstance(stmt, GatherFrom) else stmt.address.buffer

    def block(self, block: Block, turns: Turns, start: int) -> int:
        """Go through a block that begins at `turns.times + start`: how much time it takes."""
        time = start
        for stmt in block:
            match stmt:
                case Let(result=result):
                    self.definitions[result] = stmt
                case LoadFrom(address=address, active=active) if address.buffer in self.found:
                    self.mark(address, active, turns, time, is_store=False)
                    time += 1
                case StoreTo(address=address, active=active) if address.buffer in self.found:
                    self.mark(address, active, turns, time, is_store=True)
                    time += 1
                case GatherFrom(buffer=buffer) if buffer in self.found:
                    last = self.found[buffer].last_load
                    np.maximum(last, turns.times.max(initial=-1) + time, out=last)
                    time += 1
                case If(body=body):
                    time = self.block(body, Turns(turns.times, turns, np.ones(len(turns.times), np.int64)), time)
                case For(body=body) if self.touches(body):
                    time += self.loop(stmt, turns, time)
        return time

    def loop(self, stmt: For, turns: Turns, start: int) -> int:
        """All turns of a loop in all turns around it: how much time they take at most."""
        low, high = turns.of(stmt.low, self.definitions), turns.of(stmt.high, self.definitions)
        if low is None or high is None:
            raise TooMany
        count = np.maximum(high - low, 0)
        total = int(count.sum())
        if total > self.left or count.max(initial=0) > self.most_turns(stmt):
            raise TooMany
        inside = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
        each = self.duration(stmt.body)
        around = np.repeat(turns.times, count)
        inner = Turns(around + start + inside * each, turns, count)
        inner.values[stmt.index] = np.repeat(low, count) + inside
        self.block(stmt.body, inner, 0)
        return int(count.max(initial=0)) * each

    def duration(self, block: Block) -> int:
        """No less time than one turn of a block takes: one for each access in it, loops with as many turns as they may
        have."""
        return sum(self.most_turns(s) * self.duration(s.body) if isinstance(s, For) else self.duration(s.body)
                   if isinstance(s, If) else 1 for s in block if isinstance(s, (LoadFrom, GatherFrom, StoreTo, For, If)))

    def most_turns(self, loop: For) -> int:
        """Turns that a loop has at most; of one whose bounds are worked out, what is allowed."""
        return 1 << 12 if not (isinstance(loop.low, Literal) and isinstance(loop.high, Literal)) else max(
            int(loop.high.value) - int(loop.low.value), 0)

    def mark(self, address: Address, active: int, turns: Turns, time: int, is_store: bool) -> None:
        """An access to `active` neighbours in each turn."""
        touched, size = self.found[address.buffer], address.buffer.size
        when = turns.times + time
        base = turns.of(address.base, self.definitions)
        self.left -= len(when) * active
        if self.left < 0:
            raise TooMany
        if base is None:
            (np.minimum(touched.first_store, when.min(initial=NEVER), out=touched.first_store) if is_store else
             np.maximum(touched.last_load, when.max(initial=-1), out=touched.last_load))
            return
        places = ((base + address.offset)[:, None] + np.arange(active)).reshape(-1)
        times = np.repeat(when, active)
        inside = (places >= 0) & (places < size)  # masked lanes may lie outside
        if is_store:
            np.minimum.at(touched.first_store, places[inside], times[inside])
        else:
            np.maximum.at(touched.last_load, places[inside], times[inside])
