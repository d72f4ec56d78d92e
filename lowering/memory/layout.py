"""Where a plan puts the buffers of a program, and which of them have bytes in common: what the verifier goes by when it
replays the steps (`replay`). It knows nothing of how the plan was made.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..elements.expression import Buffer

if TYPE_CHECKING:
    from .plan import PlannedBuffer

Bytes = tuple[int, int]
"""From a byte to before another."""


class Use(NamedTuple):
    """Bytes of a buffer that a step touches."""
    buffer: Buffer
    first: int
    end: int


class Layout:
    """The places of the buffers: `at` has the bytes of each in its pool."""

    def __init__(self, placed: Mapping[Buffer, PlannedBuffer]) -> None:
        self.placed = placed
        self.at: dict[Buffer, Bytes] = {b: (p.byte_offset, p.byte_offset + b.nbytes) for b, p in placed.items()}
        self.pools = {p.pool: Inside([b for b in placed if placed[b].pool == p.pool], self.at)
                      for p in {p.pool: p for p in placed.values()}.values()}
        self.near_known: dict[Buffer, frozenset[Buffer]] = {}

    def name(self, buffer: Buffer) -> str:
        return self.placed[buffer].name

    def whole(self, buffer: Buffer) -> Use:
        return Use(buffer, 0, buffer.nbytes)

    def near(self, buffer: Buffer) -> frozenset[Buffer]:
        """The other buffers that share bytes with this one at some time."""
        found = self.near_known.get(buffer)
        if found is None:
            place = self.placed.get(buffer)
            found = self.pools[place.pool].near(self.at[buffer]) - {buffer} if place else frozenset()
            self.near_known[buffer] = found
        return found

    def share(self, one: Use, other: Use) -> bool:
        """Whether two uses have a byte in common."""
        if other.buffer not in self.near(one.buffer):
            return False
        a, b = self.at[one.buffer][0], self.at[other.buffer][0]
        return max(a + one.first, b + other.first) < min(a + one.end, b + other.end)


class Inside:
    """The buffers of one pool."""

    def __init__(self, buffers: list[Buffer], at: Mapping[Buffer, Bytes]) -> None:
        self.buffers = np.empty(len(buffers), object)
        self.buffers[:] = buffers
        self.first, self.end = (np.array(column, np.int64) for column in zip(*(at[b] for b in buffers)))

    def near(self, place: Bytes) -> frozenset[Buffer]:
        """Those with bytes there."""
        first, end = place
        return frozenset(self.buffers[(self.first < end) & (self.end > first)].tolist())
