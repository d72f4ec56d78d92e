"""Plans in which buffers share bytes while both are live, as far as `occupancy` allows: placed by first fit in several
orders, so that a plan may be smaller than everything that is live at one time.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ....runtime.errors import Problem
from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...loops.program import Program
from ..algorithms.first_fit import Bytes, Placement
from ..algorithms.lower_bound import lower_bound
from ..algorithms.run import Key, area_first, birth_first, conflicts_first, death_last, lifetime_first, ordered, size_first
from ..buffers import BufferInfo, PoolAllocation, PoolInfo, Ticks, aligned
from .climb import Climb
from .occupancy import Occupied, Spacing, in_place, occupancy, spacing_of, table

Spacings = Mapping[tuple[str, str], Spacing]
"""Of a pair of names: where the second may not begin, relative to the first."""

ORDERS: tuple[Key, ...] = (size_first, area_first, conflicts_first, lifetime_first, death_last, birth_first)


class Overlapping(Placement):
    """Buffers placed so far, which may share bytes as `spacings` says; pairs that it does not have share no byte."""

    def __init__(self, pools: Sequence[PoolInfo], spacings: Spacings) -> None:
        super().__init__(pools)
        self.spacings = spacings

    def _lowest(self, buffer: BufferInfo, occupied: dict[str, Bytes]) -> int:
        refused: list[Bytes] = []
        for name in buffer.conflicts:
            if name in occupied:
                start, end = occupied[name]
                spacing = self.spacings.get((name, buffer.name))
                refused += [(start - buffer.size_bytes, end)] if spacing is None else [
                    (start + low, start + high) for low, high in spacing]
        offset = 0
        for low, high in sorted(refused):
            if offset <= low:
                break
            if offset < high:
                offset = aligned(high, buffer.alignment)
        return offset


@dataclass(frozen=True, slots=True)
class Sharing:
    """What may lie on the same bytes: `spacings` of pairs of names (each pair one way), `occupied` of each buffer by name, and
    for each result that may be written over an operand: (operand, result, tick)."""
    spacings: Spacings
    occupied: Mapping[str, Sequence[Occupied]]
    over: tuple[tuple[str, str, int], ...]

    def place(self, buffers: Sequence[BufferInfo], pool: PoolInfo) -> dict[str, PoolAllocation] | None:
        """The smallest plan of several orders; None where nothing may be shared, or none fits the pool."""
        if not self.spacings:
            return None
        best: Overlapping | None = None
        order: Sequence[BufferInfo] = ()
        bound, spacings = self.bound(buffers), both_ways(self.spacings)
        for some in orders(buffers):
            try:
                found = place_all(some, [pool], spacings)
            except Problem:
                continue
            if best is None or found.sizes[pool.name] < best.sizes[pool.name]:
                best, order = found, some
            if best.sizes[pool.name] <= bound:
                break
        if best is None:
            return None
        better = climbed(order, spacings, best.sizes[pool.name], bound)
        return {b.name: PoolAllocation(pool.name, better[b.name]) for b in buffers} if better else best.allocations

    def bound(self, buffers: Sequence[BufferInfo]) -> int:
        """Bytes that no plan of these buffers can do without."""
        if not self.spacings:
            return lower_bound(buffers)
        known = {b.name: b for b in buffers}
        shared: dict[tuple[str, int], int] = {}
        for operand, result, tick in self.over:
            if operand in known and result in known:
                size = min(known[operand].size_bytes, known[result].size_bytes)
                shared[result, tick] = max(shared.get((result, tick), 0), size)
        by_tick: dict[int, int] = {}
        for (_, tick), size in shared.items():
            by_tick[tick] = by_tick.get(tick, 0) + size
        return max(most_occupied((self.occupied[b.name] for b in buffers), by_tick), lower_bound(self.independent(known)))

    def independent(self, known: Mapping[str, BufferInfo]) -> list[BufferInfo]:
        """Some of the buffers of which no two may share a byte while both are live: of those of each pair that may, the smaller
        one is left out. Their alignment counts in full."""
        out: set[str] = set()
        for pair in self.spacings:
            if known.keys() >= set(pair) and out.isdisjoint(pair):
                out.add(min(pair, key=lambda name: (known[name].size_bytes, name)))
        return [b for name, b in known.items() if name not in out]


def sharing_of(program: Program, names: Mapping[Buffer, str], live: Mapping[Buffer, tuple[Ticks, ...]]) -> Sharing:
    """What the loops and the rows of a program allow; `live` has the buffers to be placed."""
    occupied = occupancy(program, live)
    over = tuple(in_place(program, live))
    spacings: dict[tuple[str, str], Spacing] = {}
    finer = [b for b, spans in occupied.items() if len(spans) > len(live[b])]
    tables = {b: table(spans) for b, spans in occupied.items()} if finer else {}
    for one in finer:
        for other in occupied:
            if other is not one and (names[other], names[one]) not in spacings and meet(live[one], live[other]):
                spacings[names[one], names[other]] = spacing_of(tables[one], tables[other])
    for operand, result in over:
        pair = names[operand], names[result]
        pair = pair[::-1] if pair[::-1] in spacings else pair
        spacings[pair] = with_place_over(spacings.get(pair, ((-result.nbytes, operand.nbytes),)))
    return Sharing(spacings, {names[b]: spans for b, spans in occupied.items()},
                   tuple((names[a], names[b], live[b][0][0]) for a, b in over))


def with_place_over(refused: Spacing) -> Spacing:
    """The distances that are not allowed between two buffers, but for none at all: the one lies exactly over the other."""
    return tuple(part for low, high in refused for part in (((low, 0), (0, high)) if low < 0 < high else ((low, high),)))


def meet(one: Sequence[Ticks], other: Sequence[Ticks]) -> bool:
    """Whether two buffers are live at the same tick."""
    return any(a <= z and b <= y for a, y in one for b, z in other)


def both_ways(spacings: Spacings) -> Spacings:
    """The same, with each pair the other way round, too."""
    turned = {(b, a): tuple((-high, -low) for low, high in reversed(s)) for (a, b), s in spacings.items()}
    return {**spacings, **turned}


def orders(buffers: Sequence[BufferInfo]) -> Iterable[Sequence[BufferInfo]]:
    """Different orders to place the buffers in."""
    seen = set()
    for key in ORDERS:
        order = ordered(buffers, key)
        names = tuple(b.name for b in order)
        if names not in seen:
            seen.add(names)
            yield order


def place_all(order: Sequence[BufferInfo], pools: Sequence[PoolInfo], spacings: Spacings) -> Overlapping:
    placement = Overlapping(pools, spacings)
    for buffer in order:
        placement.place(buffer)
    return placement


def climbed(order: Sequence[BufferInfo], spacings: Spacings, size: int, bound: int) -> dict[str, int] | None:
    """The offset of each buffer in a plan of one pool that takes less than `size` bytes, if a search finds one."""
    offsets = Climb(order, spacings).search(range(len(order)), size, bound)
    return None if offsets is None else {b.name: offset for b, offset in zip(order, offsets)}


def most_occupied(occupied: Iterable[Sequence[Occupied]], shared: Mapping[int, int]) -> int:
    """Bytes that no plan can do without: the most that are occupied at one tick, less what a kernel may write over its
    operand then (`shared`, by tick)."""
    first, end, written, read = table(itertools.chain.from_iterable(occupied)).T
    ticks, nbytes = (np.fromiter(some, np.int64, len(shared)) for some in (shared.keys(), shared.values()))
    ticks, change = (np.concatenate(parts) for parts in (
        (written, read + 1, ticks, ticks + 1), (end - first, first - end, -nbytes, nbytes)))
    order = np.argsort(ticks)
    is_last = np.diff(ticks[order], append=np.iinfo(np.int64).max) > 0
    return int(np.cumsum(change[order])[is_last].max(initial=0))
