"""In which order a function of the loop IR touches the elements of its buffers: what tells whether a buffer may be
overwritten while the function still runs.

The loops are not run: each access is worked out for all turns of the loops around it at once, with the time at which it
happens. Times only order accesses. Where an index is not known before a run, every element may be meant.
"""
from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import field
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ...runtime.records import dataclass
from ..elements.expression import Buffer
from ..graph.types import ITEM_SIZES
from .ir import (
    Address,
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
    ShapeTiles,
    StoreTile,
    StoreTo,
    TileAccess,
    Var,
)

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
    """Of each element of a buffer, or of each group of neighbours that are always touched together: when it is stored for the
    first time (NEVER), and when it is loaded for the last time (-1)."""
    first_store: Integers
    last_load: Integers


def touches(function: Function, buffers: Iterable[Buffer]) -> dict[Buffer, Touches] | None:
    """When a whole run of `function` touches the elements of these buffers; None where that is too much to find out. Groups
    are as large in all of them."""
    if function.rows is not None:
        return None
    walk = Walk(Outline.of(function), frozenset(buffers))
    try:
        walk.block(function.body, Turns(np.zeros(1, np.int64)), 0)
    except TooMany:
        return None
    return walk.touches()


_answers: WeakKeyDictionary[Function, dict[tuple[Buffer, Buffer], bool]] = WeakKeyDictionary()


def may_overwrite(function: Function, read: Buffer, written: Buffer) -> bool:
    """Whether `written` may lie on the same bytes as `read`: no element of `read` is loaded after one has been stored
    there. Found out once."""
    known = _answers.setdefault(function, {})
    if (read, written) not in known:
        found = touches(function, {read, written})
        known[read, written] = found is not None and is_before(found[read].last_load, read, found[written].first_store, written)
    return known[read, written]


def is_before(loaded: Integers, read: Buffer, stored: Integers, written: Buffer) -> bool:
    """Whether each byte that both buffers have is loaded earlier than stored; given are the times of the elements."""
    sizes = [b.nbytes // max(b.size, 1) for b in (read, written)]
    if sizes[0] != sizes[1]:
        loaded, stored = np.repeat(loaded, sizes[0]), np.repeat(stored, sizes[1])
    both = min(len(loaded), len(stored))
    return bool(np.all(loaded[:both] < stored[:both]))


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


Alike = dict[tuple[Buffer, bool, Operand, int], list[tuple[int, int]]]
"""Accesses of one block by (buffer, whether they store, base, elements): the (offset, time) of each."""


@dataclass(frozen=True, slots=True)
class TileRows:
    """An access to the rows of a tile: so many, of `active` elements each."""
    access: TileAccess
    rows: int
    active: int

    @property
    def addresses(self) -> list[Address]:
        """Where each row begins."""
        first = self.access.address
        return [Address(first.buffer, first.base, first.offset + i * self.access.stride) for i in range(self.rows)]


Touching = LoadFrom | GatherFrom | StoreTo | TileRows | For | If


@dataclass(frozen=True, slots=True)
class Inside:
    """Of a block: the accesses in it and what has some inside, the buffers that those touch, and no less time than one turn
    takes: one for each access, loops with as many turns as they may have."""
    touching: list[Touching]
    buffers: set[Buffer]
    time: int


@dataclass(slots=True, eq=False)
class Outline:
    """What of a function matters here: its blocks, by their identity, and where its values come from."""
    blocks: dict[int, Inside] = field(default_factory=dict)
    definitions: dict[Var, Let] = field(default_factory=dict)
    shapes: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(function: Function) -> Outline:
        """Found once for each function."""
        if (known := _outlines.get(function)) is not None:
            return known
        found = Outline()
        found.add(function.body)
        return _outlines.setdefault(function, found)

    def add(self, block: Block) -> Inside:
        touching: list[Touching] = []
        buffers: set[Buffer] = set()
        time = 0
        for stmt in block:
            match stmt:
                case Let(result=result):
                    self.definitions[result] = stmt
                case (LoadFrom(address=Address(buffer=buffer)) | GatherFrom(buffer=buffer)
                      | StoreTo(address=Address(buffer=buffer))):
                    touching.append(stmt)
                    buffers.add(buffer)
                    time += 1
                case ShapeTiles(shapes):
                    self.shapes = shapes
                case LoadTile(tile, Address(buffer=buffer)) | StoreTile(tile, Address(buffer=buffer)):
                    rows, nbytes = self.shapes[tile]
                    touching.append(TileRows(stmt, rows, nbytes // ITEM_SIZES[buffer.dtype]))
                    buffers.add(buffer)
                    time += 1
                case For(body=body) | If(body=body):
                    inner = self.add(body)
                    touching.append(stmt)
                    buffers |= inner.buffers
                    time += inner.time * (most_turns(stmt) if isinstance(stmt, For) else 1)
        self.blocks[id(block)] = Inside(touching, buffers, time)
        return self.blocks[id(block)]


_outlines: WeakKeyDictionary[Function, Outline] = WeakKeyDictionary()


def most_turns(loop: For) -> int:
    """Turns that a loop has at most; of one whose bounds are worked out, what is allowed."""
    return 1 << 12 if not (isinstance(loop.low, Literal) and isinstance(loop.high, Literal)) else max(
        int(loop.high.value) - int(loop.low.value), 0)


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """Accesses that differ in nothing but the place: `places` are the first elements of each, as many as `times`; None where
    all elements of the buffer may be meant."""
    buffer: Buffer
    is_store: bool
    active: int
    places: Integers | None
    times: Integers


class Walk:
    """Goes through a function once; `marks` are the accesses that it finds."""

    def __init__(self, outline: Outline, found: frozenset[Buffer]) -> None:
        self.blocks, self.definitions, self.found = outline.blocks, outline.definitions, found
        self.marks: list[Mark] = []
        self.left = MOST

    def block(self, block: Block, turns: Turns, start: int) -> int:
        """Go through a block that begins at `turns.times + start`: how much time it takes."""
        time, alike = start, Alike()
        for stmt in self.blocks[id(block)].touching:
            match stmt:
                case LoadFrom(address=address, active=active) | StoreTo(address=address, active=active):
                    if address.buffer in self.found:
                        self.note(alike, address, isinstance(stmt, StoreTo), active, turns, time)
                        time += 1
                case TileRows(access, _, active):
                    if access.address.buffer in self.found:
                        for address in stmt.addresses:
                            self.note(alike, address, isinstance(access, StoreTile), active, turns, time)
                        time += 1
                case GatherFrom(buffer=buffer) if buffer in self.found:
                    self.marks.append(Mark(buffer, False, 1, None, turns.times + time))
                    time += 1
                case If(body=body) if not self.found.isdisjoint(self.blocks[id(body)].buffers):
                    time = self.block(body, Turns(turns.times, turns, np.ones(len(turns.times), np.int64)), time)
                case For(body=body) if not self.found.isdisjoint(self.blocks[id(body)].buffers):
                    time += self.loop(stmt, turns, time)
        self.mark(alike, turns)
        return time

    def note(self, alike: Alike, address: Address, is_store: bool, active: int, turns: Turns, time: int) -> None:
        """An access, to be marked with those like it."""
        self.left -= len(turns.times) * active
        if self.left < 0:
            raise TooMany
        alike.setdefault((address.buffer, is_store, address.base, active), []).append((address.offset, time))

    def loop(self, stmt: For, turns: Turns, start: int) -> int:
        """All turns of a loop in all turns around it: how much time they take at most."""
        low, high = turns.of(stmt.low, self.definitions), turns.of(stmt.high, self.definitions)
        if low is None or high is None:
            raise TooMany
        count = np.maximum(high - low, 0)
        total = int(count.sum())
        if total > self.left or count.max(initial=0) > most_turns(stmt):
            raise TooMany
        inside = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
        each = self.blocks[id(stmt.body)].time
        around = np.repeat(turns.times, count)
        inner = Turns(around + start + inside * each, turns, count)
        inner.values[stmt.index] = np.repeat(low, count) + inside
        self.block(stmt.body, inner, 0)
        return int(count.max(initial=0)) * each

    def mark(self, alike: Alike, turns: Turns) -> None:
        """The accesses of a block, to `active` neighbours in each turn: those that differ in nothing but the offset at once."""
        for (buffer, is_store, start, active), accesses in alike.items():
            base, (offsets, times) = turns.of(start, self.definitions), np.array(accesses, np.int64).T
            places = None if base is None else (base[:, None] + offsets).reshape(-1)
            self.marks.append(Mark(buffer, is_store, active, places, (turns.times[:, None] + times).reshape(-1)))

    def touches(self) -> dict[Buffer, Touches]:
        """What the accesses come to."""
        grain = self.grain()
        found = {b: Touches(np.full(b.size // grain, NEVER), np.full(b.size // grain, -1)) for b in self.found}
        for mark in self.marks:
            fill(found[mark.buffer], mark, grain)
        return found

    def grain(self) -> int:
        """The size of the largest groups of elements, of each buffer as many, that are touched together."""
        sizes = [b.size for b in self.found] + [m.active for m in self.marks if m.places is not None]
        places = [int(np.gcd.reduce(m.places)) for m in self.marks if m.places is not None]
        return math.gcd(*sizes, *places) or 1


def fill(touched: Touches, mark: Mark, grain: int) -> None:
    """Note accesses, group by group."""
    first, last = touched.first_store, touched.last_load
    if mark.places is None:
        if mark.is_store:
            np.minimum(first, mark.times.min(initial=NEVER), out=first)
        else:
            np.maximum(last, mark.times.max(initial=-1), out=last)
        return
    groups = mark.active // grain
    places = (mark.places[:, None] // grain + np.arange(groups)).reshape(-1)
    inside, times = (places >= 0) & (places < len(first)), np.repeat(mark.times, groups)  # masked lanes may lie outside
    if mark.is_store:
        np.minimum.at(first, places[inside], times[inside])
    else:
        np.maximum.at(last, places[inside], times[inside])
