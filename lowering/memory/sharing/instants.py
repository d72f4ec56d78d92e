"""Live ranges of buffers inside a step of the program, while its kernel runs.

A tick of the line of `lifetimes` has `INSTANTS` instants; a *moment* is a tick with an instant: tick * INSTANTS + instant. A
step of which nothing finer is known has the instant 0 alone. Two finer facts are available: for all functions, the statements
of the body (*stages*: one fills a halo, one copies the image into it, one computes) that touch a buffer first and last; and for
functions that run as a whole, the accesses that touch an element first and last (`loops.dependence`).
"""
from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...loops.dependence.access_order import NEVER, touches
from ...loops.ir import Block, For, Function, GatherFrom, If, LoadFrom, LoadTile, StoreTile, StoreTo

Integers = npt.NDArray[np.int64]
INSTANTS = 1 << 32
MAX_ACCESSES = 1 << 20
"""Maximum number of accesses to single elements of a function that are examined: some 10 ms."""
PIECES = 64
"""Number of pieces into which a buffer is divided when distances between buffers are computed."""


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """The first and the last instant of a step, or moment, that touches each piece of a buffer. Pieces are consecutive, of
    `nbytes` bytes; the last may be shorter."""
    first: Integers
    last: Integers
    nbytes: int

    @staticmethod
    def whole(first: int, last: int, nbytes: int) -> Held:
        """Return a single piece."""
        return Held(np.array([first]), np.array([last]), nbytes)

    @property
    def starts(self) -> Integers:
        """Offset of the first byte of each piece."""
        return np.arange(len(self.first)) * self.nbytes

    def at(self, tick: int) -> Held:
        """Return the moments of the instants at a tick."""
        return Held(self.first + tick * INSTANTS, self.last + tick * INSTANTS, self.nbytes)

    def in_pieces(self, pieces: int = PIECES, inner: bool = False) -> Held:
        """Return at most `pieces` pieces, each made of neighbours and touched from their first instant to their last; with
        `inner`, only while all of them are."""
        count = len(self.first)
        if count <= pieces:
            return self
        each = -(-count // pieces)
        starts, (least, most) = np.arange(0, count, each), (np.maximum, np.minimum) if inner else (np.minimum, np.maximum)
        return Held(least.reduceat(self.first, starts), most.reduceat(self.last, starts), self.nbytes * each)


Instants = Mapping[Buffer, Held]
"""Instants by buffer of a function, parameters and scratch."""


_stages: WeakKeyDictionary[Function, Instants] = WeakKeyDictionary()
_elements: WeakKeyDictionary[Function, Instants | None] = WeakKeyDictionary()


def by_stages(function: Function) -> Instants:
    """Return instants that number the statements of the function's body; a buffer that no statement touches is always in
    use."""
    if (known := _stages.get(function)) is not None:
        return known
    spans: dict[Buffer, tuple[int, int]] = {}
    for number, stmt in enumerate(function.body):
        for buffer in buffers_touched([stmt]):
            spans[buffer] = spans.get(buffer, (number, number))[0], number
    return _stages.setdefault(function, {b: Held.whole(*spans.get(b, (0, INSTANTS - 1)), b.nbytes)
                                         for b in (*function.params, *function.scratch)})


def buffers_touched(block: Block) -> set[Buffer]:
    """Return the buffers that statements load or store."""
    found: set[Buffer] = set()
    for stmt in block:
        match stmt:
            case LoadFrom(address=address) | LoadTile(address=address) | StoreTo(address=address) | StoreTile(address=address):
                found.add(address.buffer)
            case GatherFrom(buffer=buffer):
                found.add(buffer)
            case For(body=body) | If(body=body):
                found |= buffers_touched(body)
    return found


def by_elements(function: Function) -> Instants | None:
    """Return instants that number the accesses that matter, in order; None if there are too many to analyze. An element that no
    access touches is in use all the time."""
    if function not in _elements:
        _elements[function] = elements(function)
    return _elements[function]


def elements(function: Function) -> Instants | None:
    buffers = [b for b in dict.fromkeys((*function.params, *function.scratch)) if b.role != "constant" and b.size]
    found = touches(function, buffers, MAX_ACCESSES) if buffers else None
    if found is None:
        return None
    first, last = (np.concatenate([getattr(found[b], name) for b in buffers]) for name in ("first", "last"))
    is_touched = first != NEVER
    times = np.unique(np.concatenate((first[is_touched], last[is_touched])))
    first = np.where(is_touched, np.searchsorted(times, first), 0)
    last = np.where(is_touched, np.searchsorted(times, last), INSTANTS - 1)
    ends = np.cumsum([len(found[b].first) for b in buffers])[:-1]
    return {b: Held(begin, end, b.nbytes // len(begin))
            for b, begin, end in zip(buffers, np.split(first, ends), np.split(last, ends))}
