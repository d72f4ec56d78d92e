"""Plans in which buffers share bytes while both are live, as far as `occupancy` allows. First fit places the buffers in several
orders; a plan may be smaller than the sum of all that is live at one time.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from ....runtime.errors import Problem
from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...loops.ir import buffers_written
from ...loops.program import Program
from ..algorithms.first_fit import Bytes, Placement
from ..algorithms.lower_bound import lower_bound
from ..algorithms.run import Key, area_first, birth_first, conflicts_first, death_last, lifetime_first, ordered, size_first
from ..buffers import BufferInfo, PoolAllocation, PoolInfo, Ticks, aligned
from .climb import Climb
from .fullest_steps import instants_inside
from .instants import INSTANTS, Held, Instants
from .occupancy import Occupied, Spacing, Table, in_place, is_made, last_read, occupancy, spacing_of, table, whole_kernels

Spacings = Mapping[tuple[str, str], Spacing]
"""Offsets, by pair of names, at which the second buffer may not begin relative to the first."""

ORDERS: tuple[Key, ...] = (size_first, area_first, conflicts_first, lifetime_first, death_last, birth_first)


class Overlapping(Placement):
    """Buffers placed so far, which may share bytes as `spacings` allows; pairs without an entry share no byte."""

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
    """The sharing of bytes that a program allows: `spacings` by pair of names (each pair one way), the `occupied` pieces of
    each buffer, the number of its occupied bytes in `counts`, and in `over`, for each result that may be written over an
    operand at a step of one instant, (operand, result, moment)."""
    spacings: Spacings
    occupied: Mapping[str, Sequence[Occupied]]
    over: tuple[tuple[str, str, int], ...]
    counts: Mapping[str, Table]

    def place(self, buffers: Sequence[BufferInfo], pool: PoolInfo, effort: int = 1) -> dict[str, PoolAllocation] | None:
        """Return the smallest plan of several orders; None if nothing may be shared, or none fits the pool. `effort` multiplies
        the number of changes of order that are tried."""
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
        better = climbed(order, spacings, best.sizes[pool.name], bound, effort)
        return {b.name: PoolAllocation(pool.name, better[b.name]) for b in buffers} if better else best.allocations

    def bound(self, buffers: Sequence[BufferInfo]) -> int:
        """Return a lower bound of the bytes of any plan of these buffers."""
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
        return max(most_occupied((self.counts[b.name] for b in buffers), by_tick), lower_bound(self.independent(known)))

    def independent(self, known: Mapping[str, BufferInfo]) -> list[BufferInfo]:
        """Return some of the buffers such that no two may share a byte while both are live: the smaller one of each pair that
        may share is left out. The alignment of the others counts in full."""
        out: set[str] = set()
        for pair in self.spacings:
            if known.keys() >= set(pair) and out.isdisjoint(pair):
                out.add(min(pair, key=lambda name: (known[name].size_bytes, name)))
        return [b for name, b in known.items() if name not in out]


def sharing_of(program: Program, names: Mapping[Buffer, str], live: Mapping[Buffer, tuple[Ticks, ...]],
               conflicts: Mapping[str, frozenset[str]]) -> Sharing:
    """Return the sharing that the loops and the rows of a program allow; `live` has the live ranges of the buffers to be
    placed, `conflicts` the names that each conflicts with."""
    over = list(in_place(program, live))
    inside = instants_inside(program, live, over)
    found, known = occupancy(program, live, inside), {names[b]: b for b in live}
    tables = {name: table(found.pieces[b]) for name, b in known.items()}
    finer = [name for name, b in known.items() if is_finer(found.pieces[b], live[b])]
    spacings: dict[tuple[str, str], Spacing] = {}
    for one in finer:
        for other in conflicts[one]:
            if (other, one) not in spacings:
                spacing = spacing_of(tables[one], tables[other])
                if spacing != ((-known[other].nbytes, known[one].nbytes),):
                    spacings[one, other] = spacing
    exactly = [(a, b) for a, b, tick in over if tick not in inside] + list(over_operands(program, live, inside))
    for operand, result in exactly:
        pair = names[operand], names[result]
        pair = pair[::-1] if pair[::-1] in spacings else pair
        spacings[pair] = with_place_over(spacings.get(pair, ((-known[pair[1]].nbytes, known[pair[0]].nbytes),)))
    return Sharing(spacings, {name: found.pieces[b] for name, b in known.items()},
                   tuple((names[a], names[b], tick * INSTANTS) for a, b, tick in over if tick not in inside),
                   {name: found.counts[b] for name, b in known.items()})


def is_finer(pieces: Sequence[Occupied], live: Sequence[Ticks]) -> bool:
    """True if more is known of a buffer than the ticks between which it is live."""
    return len(pieces) > len(live) or any(o.written % INSTANTS or o.read % INSTANTS for o in pieces)


def over_operands(program: Program, live: Mapping[Buffer, tuple[Ticks, ...]], inside: Mapping[int, Instants]
                  ) -> Iterator[tuple[Buffer, Buffer]]:
    """Yield the pairs (operand, result) of steps with known instants where each byte of the operand is loaded for the last time
    before a byte of the result is stored over it."""
    for tick, step in whole_kernels(program):
        function, instants = program.functions[step.kernel], inside.get(tick, {})
        made = [b for b in function.params if b in buffers_written(function) and is_made(b, function) and b in instants
                and live.get(b, ((-1, -1),))[0][0] == tick]
        for operand, result in itertools.product(last_read(function, tick, live), made):
            if operand in instants and operand not in buffers_written(function) and comes_before(instants[operand],
                                                                                                instants[result]):
                yield operand, result


def comes_before(loaded: Held, stored: Held) -> bool:
    """True if each byte that both have is loaded for the last time before it is stored for the first."""
    grain = math.gcd(loaded.nbytes, stored.nbytes)
    last, first = np.repeat(loaded.last, loaded.nbytes // grain), np.repeat(stored.first, stored.nbytes // grain)
    both = min(len(last), len(first))
    return bool(np.all(last[:both] < first[:both]))


def with_place_over(refused: Spacing) -> Spacing:
    """Return the refused distances between two buffers without distance 0, at which one is exactly over the other."""
    return tuple(part for low, high in refused for part in (((low, 0), (0, high)) if low < 0 < high else ((low, high),)))


def both_ways(spacings: Spacings) -> Spacings:
    """Return the spacings with each pair the other way round, too."""
    turned = {(b, a): tuple((-high, -low) for low, high in reversed(s)) for (a, b), s in spacings.items()}
    return {**spacings, **turned}


def orders(buffers: Sequence[BufferInfo]) -> Iterable[Sequence[BufferInfo]]:
    """Yield different orders in which to place the buffers."""
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


def climbed(order: Sequence[BufferInfo], spacings: Spacings, size: int, bound: int, effort: int = 1) -> dict[str, int] | None:
    """Return the offset of each buffer in a plan of one pool of less than `size` bytes; None if a search finds none."""
    offsets = Climb(order, spacings).search(range(len(order)), size, bound, effort)
    return None if offsets is None else {b.name: offset for b, offset in zip(order, offsets)}


def most_occupied(occupied: Iterable[Table], shared: Mapping[int, int]) -> int:
    """Return a lower bound of the bytes of any plan: the most that are occupied at one moment, less the bytes that a kernel may
    write over its operand then (`shared`, by moment)."""
    first, end, written, read = np.concatenate([np.zeros((0, 4), np.int64), *occupied]).T
    ticks, nbytes = (np.fromiter(some, np.int64, len(shared)) for some in (shared.keys(), shared.values()))
    ticks, change = (np.concatenate(parts) for parts in (
        (written, read + 1, ticks, ticks + 1), (end - first, first - end, -nbytes, nbytes)))
    order = np.argsort(ticks)
    is_last = np.diff(ticks[order], append=np.iinfo(np.int64).max) > 0
    return int(np.cumsum(change[order])[is_last].max(initial=0))
