"""A search for a plan of one pool within a given size: the kernel of `search_kernel`, run with many orders of the buffers.

The time of a search varies by orders of magnitude with the order of the buffers, and most instances have an order
that leads to a plan almost at once. So there are many short runs: first with orders that often work, then with orders
that begin with the sections that made earlier runs backtrack (a weight of each section), perturbed a little at random.
Effort is counted, never timed, and the seed is fixed: the same buffers have the same plan.
"""
from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ....runtime.records import dataclass
from .compiled_python import compiled, is_compiled
from .instance import Instance
from .lower_bound import stacked
from .ragged_arrays import Array, RaggedRows, distinct
from .search_kernel import search
from .search_state import FOUND, HUGE, NODES, NONE, STOPPED, Search

FIRST_ORDERS = "TC", "UC", "SC", "TU", "TS", "CU"
"""T: most bytes in a section of a buffer, C: number of sections, U: last section, S: first one (the earliest first), B:
size x sections, O: number of conflicts; but for S, the greatest first."""

LEARNING_ORDERS = "U", "S", "C", "TC", "B", "O"
NOISE, SEED = 0.01, 1
BLAME = 1_000_000
"""Sum of the weights that a run adds to the sections in which it got stuck; each run first takes a tenth off all weights.
Weights are integers, so that their sums are the same on every machine."""
PYTHON_VISITS = 100_000
"""Visits in Python before it is worth the time (some 80 ms) to compile the kernel."""
RUN_VISITS = 20_000
"""Cost of starting a run, in visits."""


@dataclass(slots=True)
class Effort:
    """The effort that searches may still spend, in visits of buffers and sections, and the nodes that they have taken."""
    visits: int
    python: int = PYTHON_VISITS
    nodes: int = 0

    def share(self, visits: int) -> Effort:
        """Return a share of the effort, for one question."""
        return Effort(min(visits, self.visits), self.python)

    def spend(self, share: Effort, visits: int) -> None:
        """Account for a search that was given `visits` visits; `share` is what it left of them."""
        self.visits -= visits - share.visits
        self.python, self.nodes = share.python, self.nodes + share.nodes


class CapacitySearch:
    """Buffers of one pool that conflict with one another, in the form that the search needs. `bound` is the least size that
    they can have; every size is a multiple of `step`."""

    def __init__(self, instance: Instance) -> None:
        self.instance, count = instance, len(instance)
        self.sections, self.grain = by_alignment(instance)
        self.sections_of = self.sections.turned(count)
        grain = self.grain[self.sections.owners]
        taken = -(-instance.size[self.sections.items] // grain) * grain
        self.total = np.add.reduceat(taken, self.sections.start[:-1])
        self.slack = np.maximum.reduceat(taken - instance.size[self.sections.items], self.sections.start[:-1])
        self.bound = max(stacked(instance.size[row], instance.alignment[row], int(g))
                         for row, g in zip(self.sections, self.grain))
        self.step = int(np.gcd.reduce(np.concatenate((instance.size, instance.alignment))))
        self.low = self.sections_of.items[self.sections_of.start[:-1]]
        self.high = self.sections_of.items[self.sections_of.start[1:] - 1] + 1
        self.cost = 100 + count + len(self.sections) + 2 * len(instance.conflicts.items) // count
        self.weight = np.zeros(len(self.sections), np.int64)
        self.offsets = np.zeros(count, np.int64)
        self.kinds = self.equals()

    def equals(self) -> Array:
        """Return a number for each buffer, the same for identical ones."""
        rows = zip(self.instance.size.tolist(), self.instance.alignment.tolist(), (r.tobytes() for r in self.sections_of))
        numbers: dict[tuple[int, int, bytes], int] = {}
        return np.array([numbers.setdefault(row, len(numbers)) for row in rows])

    @functools.cached_property
    def crossing(self) -> Array:
        """Number of buffers, for each section, that are in or around it and the one before."""
        change = np.zeros(len(self.sections) + 1, np.int64)
        np.add.at(change, self.low + 1, 1)
        np.add.at(change, self.high, -1)
        return np.cumsum(change)

    @functools.cached_property
    def keys(self) -> dict[str, Array]:
        """Sort keys of orders, each with values from 0 to 1."""
        length = self.instance.sections_of.lengths
        keys = {"T": self.sections_of.greatest(self.total), "C": length, "U": self.high, "S": -self.low,
                "B": self.instance.size * length, "O": self.instance.conflicts.lengths}
        return {name: (k - k.min()) / max(1, k.max() - k.min()) for name, k in keys.items()}

    # ---- one size ----------------------------------------------------------------------------------------------------
    def search_plan(self, capacity: int, visits: int, effort: Effort) -> int:
        """Search for a plan within `capacity`: FOUND with `offsets` filled, NONE, or STOPPED after `visits` visits."""
        if capacity < self.bound:
            return NONE
        for order, most, jump in self.orders():
            nodes = min(most, visits // self.cost)
            if nodes <= 0:
                break
            result, taken = self.run(order, capacity, nodes, jump, effort)
            visits -= taken * self.cost + RUN_VISITS
            effort.visits -= taken * self.cost + RUN_VISITS
            effort.nodes += taken
            if result == FOUND or (result == NONE and not jump):
                return result
        return STOPPED

    def orders(self) -> Iterator[tuple[Array, int, bool]]:
        """Yield orders of the buffers, each with the number of nodes to try it for, and whether to jump back."""
        short = max(3 * len(self.instance), 500)
        plain = [self.order([self.keys[c] for c in name]) for name in FIRST_ORDERS]
        yield plain[0], 2 * short, False
        yield from ((order, 2 * short, True) for order in plain)
        draw = random.Random(SEED)
        for restart in itertools.count(1):
            yield plain[restart % len(plain)], 8 * short * luby(restart), False
            for name, learnt in itertools.product(LEARNING_ORDERS, (None, RaggedRows.greatest, RaggedRows.sums)):
                keys = [self.keys[c] + NOISE * np.array([draw.random() for _ in self.kinds]) for c in name]
                yield (self.order(([learnt(self.sections_of, self.weight)] if learnt else []) + keys),
                       short * luby(restart), True)

    @staticmethod
    def order(keys: list[Array]) -> Array:
        """Return the order by falling keys, then by number."""
        return np.lexsort([-k for k in reversed(keys)])

    # ---- one run -----------------------------------------------------------------------------------------------------
    def run(self, order: Array, capacity: int, nodes: int, jump: bool, effort: Effort) -> tuple[int, int]:
        """Run one search, in Python if that is likely to end soon, otherwise in machine code; return its result and its nodes.
        The choice does not affect the answer."""
        allowed = 0 if is_compiled(search) else min(nodes, effort.python // self.cost)
        if allowed > 0:
            result = self.start(search, self.lists, order, capacity, allowed, jump)
            effort.python -= self.lists.now[NODES] * self.cost
            if result != STOPPED or nodes == allowed:
                return self.learn(self.lists, result)
        code = compiled(search, Search) if self.total.max() < HUGE else None
        record = self.lists if code is None else self.arrays
        return self.learn(record, self.start(code or search, record, order, capacity, nodes, jump))

    def start(self, kernel: Callable[..., int], record: Search, order: Array, capacity: int, nodes: int, jump: bool) -> int:
        self.reset(record, order, capacity)
        return kernel(record, len(self.instance), len(self.sections), capacity, nodes, int(jump))

    def learn(self, record: Search, result: int) -> tuple[int, int]:
        """Keep the findings of a run: the plan, or the sections where it got stuck."""
        if result == FOUND:
            self.offsets = np.array(record.offset, np.int64)
        blame = np.array(record.blame, np.int64)[:len(self.sections)]
        self.weight = self.weight * 9 // 10 + blame * BLAME // max(1, int(blame.sum()))
        return result, int(record.now[NODES])

    @functools.cached_property
    def arrays(self) -> Search:
        """Record on which the machine code works."""
        return Search(**{name: values.astype(np.int64) for name, values in self.fields().items()})

    @functools.cached_property
    def lists(self) -> Search:
        """Record on which Python works."""
        return Search(**{name: values.tolist() for name, values in self.fields().items()})

    def fields(self) -> dict[str, Array]:
        """Return the arrays of a search: those that never change, and room for the rest."""
        instance, count, sections = self.instance, len(self.instance), len(self.sections)
        components = count * (count.bit_length() + 3) + 10
        given = {"size": instance.size, "alignment": instance.alignment, "conflict_start": instance.conflicts.start,
                 "conflict": instance.conflicts.items, "section_start": self.sections_of.start,
                 "section": self.sections_of.items, "low": self.low, "high": self.high,
                 "member_start": self.sections.start, "member": self.sections.items, "grain": self.grain}
        sizes = dict.fromkeys(("rank", "twin", "offset", "placed", "chosen", "parent", "free", "frame_trail", "frame_component",
                               "frame_pending", "frame_components", "frame_listed"), count)
        sizes |= dict.fromkeys(("total", "limit", "crossing", "hint", "blame", "piece", "piece_size", "piece_low",
                                "piece_component"), sections + 1)
        sizes |= dict.fromkeys(("component_first", "component_last", "component_low", "component_high", "component_frame",
                                "component_next", "listed"), components)
        sizes |= {"trail_buffer": len(instance.conflicts.items) // 2 + 1, "now": 9}
        sizes["trail_offset"] = sizes["trail_buffer"]
        return given | {name: np.zeros(size, np.int64) for name, size in sizes.items()}

    def reset(self, record: Search, order: Array, capacity: int) -> None:
        """Reset a record to the start, for an order and a size."""
        count = len(self.instance)
        rank = np.empty(count, np.int64)
        rank[order] = np.arange(count)
        zeros = np.zeros(count, np.int64)
        sections = zip(("total", "limit", "crossing", "hint", "blame"), (
            self.total, capacity + self.slack, self.crossing[:-1], self.sections.items[self.sections.start[:-1]],
            np.zeros_like(self.total)))
        buffers = zip(("rank", "twin", "offset", "placed", "listed"), (rank, self.twins(order), zeros, zeros, order))
        for name, values in (*buffers, *sections, ("now", np.zeros(9, np.int64))):
            put(getattr(record, name), values)

    def twins(self, order: Array) -> Array:
        """Return, for each buffer, the identical one before it in `order`; -1 for none."""
        by_kind = order[np.argsort(self.kinds[order], kind="stable")]
        same = self.kinds[by_kind[1:]] == self.kinds[by_kind[:-1]]
        twin = np.full(len(order), -1)
        twin[by_kind[1:][same]] = by_kind[:-1][same]
        return twin


def luby(restart: int) -> int:
    """Return 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ...: the length of a restart if the time of the search is unknown (Luby, Sinclair
    and Zuckerman 1993). Restarts count from 1."""
    while restart & restart + 1:
        restart -= (1 << restart.bit_length() - 1) - 1
    return (restart + 1) // 2


def put(target: Any, values: Array) -> None:
    """Write into the first elements of an array, or of a list."""
    target[:len(values)] = values if isinstance(target, np.ndarray) else values.tolist()


def by_alignment(instance: Instance) -> tuple[RaggedRows, Array]:
    """Return the sections, and as further sections those members of each that are aligned more than others; with the alignment
    that all members of each have. A buffer at a multiple of 64 bytes takes multiples of 64 bytes."""
    rows, grains, sections = [], [], instance.sections
    for row in sections:
        alignment = instance.alignment[row]
        for grain in distinct(alignment).tolist():
            rows.append(row[alignment >= grain])
            grains.append(grain)
    return (RaggedRows(np.cumsum([0, *map(len, rows)]), np.concatenate(rows)) if rows else sections), np.array(grains, np.int64)
