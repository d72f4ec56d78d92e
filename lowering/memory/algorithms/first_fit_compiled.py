"""Placement of the same buffers in many orders: in Python while there is little to do, in machine code when there is much. The
choice does not affect the answer.
"""
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Literal

import numpy as np

from ....runtime.records import dataclass
from ..buffers import BufferInfo, PoolAllocation, PoolInfo
from . import first_fit_kernel
from .compiled_python import MachineCode, as_array, compiled, is_compiled
from .first_fit import first_fit, lowest_first, no_room
from .first_fit_kernel import NOWHERE, Placing
from .ragged_arrays import RaggedRows
from .search_state import HUGE

Method = Literal["first_fit", "lowest_first"]
"""Method of placement: each buffer in the first gap, in the given order; or always the buffer that could be lowest."""

PYTHON_VISITS = 400_000
"""Number of conflicts visited in Python before it is worth the time to compile."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The allocations of the buffers, and the bytes that each pool needs."""
    allocations: dict[str, PoolAllocation]
    sizes: dict[str, int]


class Placer:
    """A placer of `buffers`, whose conflicts are symmetric, into `pools`."""

    def __init__(self, buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo]) -> None:
        self.buffers, self.pools = tuple(buffers), tuple(pools)
        self.number = {b.name: i for i, b in enumerate(self.buffers)}
        self.visits = 1 + len(buffers) + sum(len(b.conflicts) for b in buffers)
        self.left = PYTHON_VISITS

    def place(self, method: Method, order: Sequence[BufferInfo]) -> Placed:
        """Place all buffers, in this order. Raises a Problem if a buffer fits in none of its pools."""
        self.left -= self.visits
        kernel = getattr(first_fit_kernel, method)
        code = compiled(kernel, Placing) if (self.left < 0 or is_compiled(kernel)) and self.is_small else None
        if code is not None:
            return self.natively(code, order)
        found = {"first_fit": first_fit, "lowest_first": lowest_first}[method](order, self.pools)
        return Placed(found.allocations, found.sizes)

    @property
    def is_small(self) -> bool:
        """True if the integers of the machine code have enough bits."""
        return sum(b.size_bytes + b.alignment for b in self.buffers) * len(self.buffers) < HUGE

    def natively(self, code: MachineCode, order: Sequence[BufferInfo]) -> Placed:
        state = self.state
        state.order[:] = [self.number[b.name] for b in order]
        state.pool[:], state.offset[:], state.floor[:] = NOWHERE, 0, 0
        if code(state, len(order)) < len(order):
            raise self.refusal(state)
        names = [p.name for p in self.pools]
        ends = np.zeros(len(names), np.int64)
        np.maximum.at(ends, state.pool, np.add(state.offset, state.size))
        allocations = {b.name: PoolAllocation(names[pool], offset) for b, pool, offset
                       in zip(self.buffers, np.array(state.pool).tolist(), np.array(state.offset).tolist())}
        return Placed(allocations, dict(zip(names, ends.tolist())))

    def refusal(self, state: Placing) -> Exception:
        """Return the Problem of the buffer that was to be placed when there was no room."""
        lists = Placing(*(np.array(getattr(state, name)).tolist() for name in Placing.__slots__))
        failed = lists.refused[0]
        buffer = self.buffers[failed]
        tried = [(pool, first_fit_kernel.lowest(lists, failed, self.pools.index(pool)) + buffer.size_bytes)
                 for pool in buffer.candidates(self.pools)]
        return no_room(buffer, tried, self.pools)

    @functools.cached_property
    def state(self) -> Placing:
        """State on which the machine code works."""
        known, pool_numbers = self.number, {p.name: k for k, p in enumerate(self.pools)}
        conflicts = RaggedRows.of([sorted([known[name] for name in b.conflicts if name in known]) for b in self.buffers])
        candidates = RaggedRows.of([[pool_numbers[p.name] for p in b.candidates(self.pools)] for b in self.buffers])
        limits = [HUGE if p.size_hint_bytes is None else min(p.size_hint_bytes, HUGE) for p in self.pools]

        numbers = {"size": as_array([b.size_bytes for b in self.buffers]),
                   "alignment": as_array([b.alignment for b in self.buffers]), "limit": as_array(limits),
                   "conflict_start": conflicts.start, "conflict": conflicts.items,
                   "candidate_start": candidates.start, "candidate": candidates.items, "refused": as_array([NOWHERE])}
        room = {name: np.zeros(len(self.buffers), np.int64) for name in ("order", "pool", "offset", "floor", "heap")}
        return Placing(**numbers, **room)
