"""Several pools, each as small as can be found, the least wanted one first: the objective "bytes". A plan is asked for again
and again with a smaller limit of a pool, by bisection, while the pools after it keep the sizes that they have.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ....runtime.errors import Problem
from ..buffers import BufferInfo, PoolInfo, sizes_of
from .outcome import Outcome

TRIES = 8
"""Limits that are tried of a pool."""

Attempt = Callable[[Sequence[PoolInfo]], Outcome | None]
"""Plans for pools with limits; None, or a Problem, where it finds none."""


def with_smaller_pools(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], first: Outcome, attempt: Attempt) -> Outcome:
    """Return a plan of which no pool but the first is larger than in `first`, unless one after it is smaller."""
    best, limited = first, list(pools)
    for i in range(len(pools) - 1, 0, -1):
        low, high = 0, size_of(buffers, pools, best, i)
        for _ in range(TRIES):
            if low >= high:
                break
            middle = (low + high) // 2
            found = tried(attempt, [replace(p, size_hint_bytes=middle) if j == i else p for j, p in enumerate(limited)])
            if found is None:
                low = middle + 1
            else:
                best, high = found, size_of(buffers, pools, found, i)
        limited[i] = replace(pools[i], size_hint_bytes=high)
    return best


def size_of(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], found: Outcome, i: int) -> int:
    return sizes_of(buffers, pools, found.allocations)[len(pools) - 1 - i]


def tried(attempt: Attempt, pools: Sequence[PoolInfo]) -> Outcome | None:
    try:
        return attempt(pools)
    except Problem:
        return None
