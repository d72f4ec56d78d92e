"""The pools and offsets of a program's buffers in a plan, and which buffers have bytes in common. The verifier uses these when
it replays the steps (`replay`). They are independent of how the plan was made.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...elements.expression import Buffer

if TYPE_CHECKING:
    from ..plan import PlannedBuffer

MAX_SCANNED_BUFFERS = 64
"""Number of buffers up to which a scan one by one is faster than whole arrays."""

Bytes = tuple[int, int]
"""Half-open range of bytes: first byte, end."""


class Use(NamedTuple):
    """Bytes of a buffer that a step touches."""
    buffer: Buffer
    first: int
    end: int


class Layout:
    """The layout of the buffers: `at` has the bytes of each in its pool."""

    def __init__(self, placed: Mapping[Buffer, PlannedBuffer]) -> None:
        self.placed = placed
        self.at: dict[Buffer, Bytes] = {b: (p.byte_offset, p.byte_offset + b.nbytes) for b, p in placed.items()}
        self.pools = {p.pool: PoolContents([b for b in placed if placed[b].pool == p.pool], self.at)
                      for p in {p.pool: p for p in placed.values()}.values()}
        self.shared = frozenset(b for inside in self.pools.values() for b in inside.shared())

    def name(self, buffer: Buffer) -> str:
        return self.placed[buffer].name

    def whole(self, buffer: Buffer) -> Use:
        return Use(buffer, 0, buffer.nbytes)

    def is_shared(self, buffer: Buffer) -> bool:
        """True if another buffer has some of the buffer's bytes at some time."""
        return buffer in self.shared

    def meets(self, one: Buffer, other: Buffer) -> bool:
        """True if two buffers have bytes in common at some time."""
        a, b = self.placed.get(one), self.placed.get(other)
        same_pool = a is not None and b is not None and one is not other and a.pool == b.pool
        return same_pool and overlap(self.at[one], self.at[other])

    def near(self, buffer: Buffer, among: Set[Buffer]) -> Iterable[Buffer]:
        """Return the buffers in `among` that have bytes in common with `buffer`."""
        if len(among) <= MAX_SCANNED_BUFFERS:
            return [other for other in among if self.meets(buffer, other)]
        return (self.pools[self.placed[buffer].pool].near(self.at[buffer]) - {buffer}) & among

    def share(self, one: Use, other: Use) -> bool:
        """True if two uses have a byte in common."""
        if not self.meets(one.buffer, other.buffer):
            return False
        a, b = self.at[one.buffer][0], self.at[other.buffer][0]
        return max(a + one.first, b + other.first) < min(a + one.end, b + other.end)


class PoolContents:
    """The buffers of one pool."""

    def __init__(self, buffers: list[Buffer], at: Mapping[Buffer, Bytes]) -> None:
        self.buffers = np.empty(len(buffers), object)
        self.buffers[:] = buffers
        self.first, self.end = (np.array(column, np.int64) for column in zip(*(at[b] for b in buffers)))

    def near(self, place: Bytes) -> frozenset[Buffer]:
        """Return the buffers with bytes in that range."""
        first, end = place
        return frozenset(self.buffers[(self.first < end) & (self.end > first)].tolist())

    def shared(self) -> Iterator[Buffer]:
        """Yield the buffers that have bytes in common with another: those that begin before the end of an earlier one, or
        before whose end the next one begins."""
        order = np.lexsort((self.end, self.first))
        order = order[self.first[order] < self.end[order]]
        if len(order) < 2:
            return
        first, reached = self.first[order], np.maximum.accumulate(self.end[order])
        behind = np.concatenate(([False], first[1:] < reached[:-1]))
        before = np.concatenate((first[1:] < self.end[order][:-1], [False]))
        yield from self.buffers[order[behind | before]].tolist()


def overlap(one: Bytes, other: Bytes) -> bool:
    return one[0] < other[1] and other[0] < one[1]
