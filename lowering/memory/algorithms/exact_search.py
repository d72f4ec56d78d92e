"""The smallest arena for the buffers of one pool, as far as a given effort goes: the exact search at the lower bound first,
and then at sizes between those ruled out and that of the best plan so far. Independent buffers are searched separately.
"""
from __future__ import annotations

import numpy as np

from ....runtime.records import dataclass
from .capacity_search import CapacitySearch, Effort
from .instance import Instance
from .ragged_arrays import Array, RaggedRows, distinct
from .search_state import FOUND, NONE

NEAR = 1.03
"""Maximum ratio of a plan's size to the lower bound at which the rest of the effort is spent on reaching the bound."""


LESS = 64
"""Divisor of sizes: the rest of the effort searches plans that are smaller by that fraction (1/64), by half of it, and so
on."""

MOST_EDGES = 100_000
"""Maximum number of conflicts that do not come from lifetimes; more take too long to cover with sections."""


@dataclass(frozen=True, slots=True)
class Smallest:
    """A plan of one pool: the offset of each buffer (None: no better plan was found), the plan's size, and a bound below which
    no plan is known to exist: the goal, or a proved bound."""
    offsets: Array | None
    size: int
    bound: int


def smallest(instance: Instance, offsets: Array, goal: int, effort: Effort, enough: int | None = None) -> Smallest:
    """Make a plan smaller, but not smaller than `goal`; `enough` is a size that matters more than others."""
    if not instance.is_intervals and len(instance.conflicts.items) > MOST_EDGES:
        return Smallest(offsets, top(instance, offsets, np.arange(len(instance))), goal)
    offsets, bound = offsets.copy(), goal
    sized = [(top(instance, offsets, members), members) for members in components(instance.sections, len(instance))]
    for size, members in sorted(sized, key=lambda p: -p[0]):
        if size > goal:
            found = shrink(instance.take(members), size, goal, effort, effort.visits, enough)
            if found.offsets is not None:
                offsets[members] = found.offsets
            goal, bound = max(goal, found.size), max(bound, found.bound)
    return Smallest(offsets, top(instance, offsets, np.arange(len(instance))), bound)


def top(instance: Instance, offsets: Array, chosen: Array) -> int:
    """Return the size that some of the buffers need."""
    return int((offsets[chosen] + instance.size[chosen]).max(initial=0))


def components(sections: RaggedRows, count: int) -> list[Array]:
    """Return the connected components of the buffers, joined by conflicts."""
    label, before = np.arange(count), np.full(count, -1)
    turned = sections.turned(count)
    while not np.array_equal(label, before):
        before = label
        label = -turned.greatest(sections.greatest(-label))
        label = label[label]
    return [np.flatnonzero(label == k) for k in distinct(label)]


def shrink(instance: Instance, below: int, goal: int, effort: Effort, visits: int, enough: int | None) -> Smallest:
    """Return the smallest plan of less than `below` bytes. Buffers that conflict with all others may as well be at the bottom;
    the rest may then have several components."""
    if len(instance) == 1:
        return Smallest(np.zeros(1, np.int64), int(instance.size[0]), int(instance.size[0]))
    grain = int(instance.alignment.max())
    everywhere = (instance.conflicts.lengths == len(instance) - 1) & (instance.size % grain == 0)
    if everywhere.all() or not everywhere.any():
        return search_sizes(CapacitySearch(instance), below, goal, effort, visits, enough)
    offsets = np.zeros(len(instance), np.int64)
    base = int(instance.size[everywhere].sum())
    offsets[everywhere] = np.cumsum(instance.size[everywhere]) - instance.size[everywhere]
    ids = np.flatnonzero(~everywhere)
    rest = instance.take(ids)
    separate = components(rest.sections, len(rest))
    left = None if enough is None else enough - base
    found = [shrink(rest.take(p), below - base, goal - base, effort, visits // len(separate), left) for p in separate]
    bound = base + max(f.bound for f in found)
    for members, plan in zip(separate, found):
        if plan.offsets is None:
            return Smallest(None, below, bound)
        offsets[ids[members]] = base + plan.offsets
    return Smallest(offsets, base + max(f.size for f in found), bound)


def search_sizes(search: CapacitySearch, below: int, goal: int, effort: Effort, visits: int, enough: int | None) -> Smallest:
    """Return the smallest plan of less than `below` bytes, and not below `goal`, that is found with at most `visits` visits."""
    step, best, proved = search.step, below, search.bound
    offsets: Array | None = None
    left = min(visits, effort.visits)
    stop = effort.visits - left

    def attempt(capacity: int, share: int) -> bool:
        nonlocal best, proved, offsets
        result = search.search_plan(capacity, min(share, effort.visits - stop), effort)
        if result == FOUND:
            offsets = search.offsets
            best = int((offsets + search.instance.size).max())
        if result == NONE:
            proved = max(proved, capacity + step)
        return result == FOUND

    aim = max(goal // step * step, proved)
    if aim < best and not attempt(aim, left * 3 // 8):
        low = aim + step
        if enough is not None and low <= enough < best and not attempt(enough // step * step, left // 4):
            low = enough // step * step + step
        while (low := max(low, proved)) <= (most := (best - 1) // step * step):
            middle = (low + most) // 2 // step * step
            low = low if attempt(middle, left // 16) else middle + step
        if proved <= aim and best <= NEAR * aim:
            attempt(aim, left)
        divisor = LESS
        while max(aim, proved) < best and best // divisor >= step and effort.visits > stop:
            if not attempt(max(aim, proved, (best - best // divisor) // step * step), left // 16):
                divisor *= 2
    return Smallest(offsets, best, min(proved, best))
