"""Pools whose first bytes belong to somebody else: an algorithm plans the bytes after these, as a pool that begins there.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ....runtime.errors import Label, Problem
from ..buffers import BufferInfo, PoolAllocation, PoolInfo, aligned
from .outcome import Outcome


def behind_offsets(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo],
                   place: Callable[[Sequence[PoolInfo]], Outcome]) -> Outcome:
    """Return the outcome of `place` for the pools after their offsets, converted to offsets in the whole pools."""
    starts = {p.name: start_of(p, buffers) for p in pools}
    if not any(starts.values()):
        return place(pools)
    try:
        found = place([behind(p, starts[p.name]) for p in pools])
    except Problem as problem:
        notes = [Label(None, f"bytes 0 to {start} of {name} are not for buffers") for name, start in starts.items() if start]
        raise Problem(problem.message, problem.position, kind=problem.kind, help=problem.help,
                      labels=(*problem.labels, *notes)) from None
    bounds = {name: bound + starts[name] if bound else 0 for name, bound in found.bounds.items()}
    return Outcome(moved(found.allocations, starts), bounds, found.proved)


def moved(allocations: Mapping[str, PoolAllocation], starts: Mapping[str, int]) -> dict[str, PoolAllocation]:
    return {name: PoolAllocation(place.pool, place.byte_offset + starts.get(place.pool, 0))
            for name, place in allocations.items()}


def start_of(pool: PoolInfo, buffers: Sequence[BufferInfo]) -> int:
    """Return the start of a pool for these buffers: the first byte from its offset on that is aligned for all it may hold."""
    alignments = [b.alignment for b in buffers if pool.suits(b) and (not b.pool_candidates or pool.name in b.pool_candidates)]
    return aligned(pool.pool_offset, max(alignments, default=1)) if pool.pool_offset else 0


def behind(pool: PoolInfo, start: int) -> PoolInfo:
    """Return the pool that begins at that byte."""
    size = None if pool.size_hint_bytes is None else max(0, pool.size_hint_bytes - start)
    alignment = None if pool.alignment is None else math.gcd(pool.alignment, start)
    return replace(pool, size_hint_bytes=size, alignment=alignment, pool_offset=0) if start else pool
