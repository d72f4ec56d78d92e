"""A lower bound of the size of any plan in one pool, as far as it can be computed quickly: the bytes of buffers that are all
live together, padded where alignment forces it. The bound is printed beside every plan, and a search stops at it.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from ..buffers import BufferInfo
from .cliques import adjacency, heavy_cliques, members
from .ragged_arrays import Array, RaggedRows, distinct

SEEDS, VISITS = 64, 20_000
"""Effort of the search for heavy sets of mutual conflicts: number of buffers to begin with, and of buffers to visit then."""
FEW_SEEDS, FEW_VISITS = 4, 500
"""The same numbers, if lifetimes have given a bound already."""
MOST_EDGES = 200_000
"""Maximum number of conflicts with which that search is tried."""


def lower_bound(buffers: Sequence[BufferInfo]) -> int:
    """Return a lower bound of the bytes that one pool needs to hold all `buffers`; never more than the best plan has.

    With lifetimes, the bound is the most that is live at one tick. If only conflicts are known (they must be symmetric), or
    buffers live in several spans, so that three may conflict without a common tick, the bound is the heaviest set of mutual
    conflicts that a short search finds.
    """
    buffers = [b for b in buffers if b.size_bytes]
    if len(buffers) < 2:
        return sum(b.size_bytes for b in buffers)
    size, alignment = sizes_and_alignments(buffers)
    found = 0
    if all(b.live is not None for b in buffers):
        found = max((most_together(buffers, size, alignment, grain) for grain in distinct(alignment).tolist()), default=0)
        if all(len(b.live or ()) <= 1 for b in buffers):
            return found
    if sum(len(b.conflicts) for b in buffers) > MOST_EDGES:
        return max([found, *(b.size_bytes for b in buffers)])
    cliques = cliques_of(buffers, *((FEW_SEEDS, FEW_VISITS) if found else (SEEDS, VISITS)))
    return max([found, *(bytes_together(size[clique], alignment[clique]) for clique in cliques)])


def memory_pressure(buffers: Sequence[BufferInfo]) -> int:
    """Return the largest sum of bytes that are live together; if only conflicts are known, of the mutual conflicts found."""
    return lower_bound([dataclasses.replace(b, alignment=1) for b in buffers])


def sizes_and_alignments(buffers: Sequence[BufferInfo]) -> tuple[Array, Array]:
    return np.array([b.size_bytes for b in buffers], np.int64), np.array([b.alignment for b in buffers], np.int64)


def most_together(buffers: Sequence[BufferInfo], size: Array, alignment: Array, grain: int) -> int:
    """Return the largest size of the buffers, of those aligned to `grain` bytes or more, that are live at one tick. Ticks are
    visited by falling sums, so that few are examined."""
    spans = [(i, first, last) for i, b in enumerate(buffers) if b.alignment >= grain for first, last in b.live or ()]
    if not spans:
        return 0
    owner, first, last = np.array(spans, np.int64).T
    taken = (-(-size // grain) * grain)[owner]
    starts = distinct(first)
    begun, ended = np.zeros(len(starts), np.int64), np.zeros(len(starts) + 1, np.int64)
    np.add.at(begun, np.searchsorted(starts, first), taken)
    np.add.at(ended, np.searchsorted(starts, last, side="right"), taken)
    totals = np.cumsum(begun - ended[:-1])
    best, most_padding = 0, int(alignment.max()) - grain
    for k in np.argsort(-totals, kind="stable").tolist():
        if totals[k] + most_padding <= best:
            break
        live = distinct(owner[(first <= starts[k]) & (last >= starts[k])])
        best = max(best, stacked(size[live], alignment[live], grain))
    return best


def stacked(size: Array, alignment: Array, grain: int) -> int:
    """Return the least size of buffers of which no two share a byte, all aligned to `grain` bytes or more. Each buffer below
    the topmost takes its size rounded up to `grain`, whichever buffer is the topmost."""
    taken = -(-size // grain) * grain
    return int((-(-(taken.sum() - taken) // alignment) * alignment + size).min())


def bytes_together(size: Array, alignment: Array) -> int:
    """Return the least size of buffers of which no two share a byte, by each of their alignments."""
    return max(stacked(size[fine], alignment[fine], grain) for grain in distinct(alignment).tolist()
               for fine in [alignment >= grain])


def cliques_of(buffers: Sequence[BufferInfo], seeds: int, visits: int) -> Iterable[list[int]]:
    """Return heavy sets of mutual conflicts, among them the heaviest that is found."""
    number = {b.name: i for i, b in enumerate(buffers)}
    rows = RaggedRows.of([[number[name] for name in b.conflicts if name in number] for b in buffers])
    near = adjacency(rows.start.tolist(), rows.items.tolist())
    grain = min((b.alignment for b in buffers), default=1)
    weights = [-(-b.size_bytes // grain) * grain for b in buffers]
    return map(members, heavy_cliques(near, weights, seeds, visits)) if buffers else []
