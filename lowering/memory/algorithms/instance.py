"""A planning problem of one pool as arrays of numbers: what the inner loops of the algorithms work on. Buffers are numbered
by falling name, so that a plan does not depend on the order they are given in; buffers without bytes are left out.
"""
from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import numpy as np

from ..buffers import BufferInfo
from .cliques import adjacency, as_set, clique_cover, members
from .ragged_arrays import Array, RaggedRows, distinct

Spans = tuple[Array, Array, Array]
"""(buffer, first tick, last tick) of each span of life."""


class Instance:
    """Buffers with sizes and alignments in bytes, and the numbers of those that each conflicts with (both ways, ascending).
    Conflicts count; lifetimes only help to find out how they hang together."""

    def __init__(self, buffers: Sequence[BufferInfo], conflicts: RaggedRows, sections: RaggedRows | None = None) -> None:
        self.buffers = tuple(buffers)
        self.size = np.array([b.size_bytes for b in buffers], np.int64)
        self.alignment = np.array([b.alignment for b in buffers], np.int64)
        self.conflicts = conflicts
        if sections is not None:
            self.sections = sections

    @staticmethod
    def of(buffers: Iterable[BufferInfo]) -> Instance:
        """The instance of these buffers; conflicts with others do not count."""
        known = sorted((b for b in buffers if b.size_bytes), key=lambda b: b.name, reverse=True)
        number = {b.name: i for i, b in enumerate(known)}
        return Instance(known, RaggedRows.of([sorted([number[name] for name in b.conflicts if name in number]) for b in known]))

    def __len__(self) -> int:
        return len(self.buffers)

    def take(self, chosen: Array) -> Instance:
        """Some of the buffers, in the same order."""
        new = np.full(len(self), -1)
        new[chosen] = np.arange(len(chosen))
        held = distinct(self.sections_of.only(chosen, np.arange(len(self.sections))).items)
        return Instance([self.buffers[i] for i in chosen.tolist()], self.conflicts.only(chosen, new),
                        self.sections.only(held, new))

    @functools.cached_property
    def live(self) -> RaggedRows | None:
        """The buffers that are live at each tick that counts, in order of time; None where lifetimes are not known."""
        spans = spans_of(self.buffers)
        return None if spans is None else live_together(spans, len(self))

    @functools.cached_property
    def is_intervals(self) -> bool:
        """True if the conflicts are those of buffers that are live together."""
        spans = spans_of(self.buffers)
        return spans is not None and self.live is not None and self.follows_from(spans, self.live)

    @functools.cached_property
    def sections(self) -> RaggedRows:
        """Sets of buffers that all conflict, such that each conflict lies in some set, and each buffer too. Where conflicts
        come from lifetimes, they are the ticks at which most is live, in order of time."""
        live = self.live
        if self.is_intervals and live is not None:
            return live
        near = adjacency(self.conflicts.start.tolist(), self.conflicts.items.tolist())
        return RaggedRows.of([members(clique) for clique in clique_cover(near, [row.tolist() for row in live or ()])])

    @functools.cached_property
    def sections_of(self) -> RaggedRows:
        """The sections of each buffer."""
        return self.sections.turned(len(self))

    def follows_from(self, spans: Spans, live: RaggedRows) -> bool:
        """True if the conflicts are exactly those of buffers that are live together."""
        owner, first, last = spans
        if len(distinct(owner)) < len(owner):  # several spans of one buffer
            covered = [0] * len(self)
            for row in map(np.ndarray.tolist, live):
                clique = as_set(row)
                for i in row:
                    covered[i] |= clique ^ 1 << i
            return covered == adjacency(self.conflicts.start.tolist(), self.conflicts.items.tolist())
        one, other = self.conflicts.owners, self.conflicts.items
        begin, end = np.full(len(self), 1), np.full(len(self), 0)
        begin[owner], end[owner] = first, last
        both = (np.searchsorted(np.sort(first), last, side="right")
                - np.searchsorted(np.sort(last), first, side="left") - 1).sum()
        return len(one) == both and bool((np.maximum(begin[one], begin[other]) <= np.minimum(end[one], end[other])).all())


def spans_of(buffers: Sequence[BufferInfo]) -> Spans | None:
    """The spans of life; None where lifetimes are not known."""
    if any(b.live is None for b in buffers):
        return None
    found = [(i, first, last) for i, b in enumerate(buffers) for first, last in b.live or ()]
    columns = np.array(found, np.int64).reshape(-1, 3).T
    return columns[0], columns[1], columns[2]


def live_together(spans: Spans, count: int) -> RaggedRows:
    """The buffers that are live at each tick that is the last to see one begin before one ends; then each of the `count`
    that is never live, by itself."""
    owner, first, last = spans
    starts = distinct(first)
    ticks = distinct(starts[np.searchsorted(starts, last, side="right") - 1]) if len(owner) else starts
    low, high = np.searchsorted(ticks, first, side="left"), np.searchsorted(ticks, last, side="right")
    length = high - low
    at = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length) + np.repeat(low, length)
    unused = np.flatnonzero(np.bincount(owner, minlength=count) == 0)
    keys, items = np.concatenate((at, len(ticks) + np.arange(len(unused)))), np.concatenate((np.repeat(owner, length), unused))
    if len(distinct(owner)) < len(owner):  # two spans of one buffer may meet
        keys, items = np.divmod(distinct(keys * count + items), count)
    return RaggedRows.grouped(keys, items, len(ticks) + len(unused))
