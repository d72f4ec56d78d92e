"""Rows written by their numbers, or combined with existing rows: the scatters of front doors.

Rows are [N, K, C], updates [N, W, C] and their numbers [N, W]; a number that is out of range writes no row. If the numbers are
known when compiling, the result is assembled from rows and updates. Otherwise SCATTER writes, and updates that may share a row
are combined over all updates of the group: for each row those that hit it.
"""
from __future__ import annotations

import math

import numpy as np

from ...runtime.errors import require
from ..graph.graph import Value
from ..graph.types import I1, I32, I64, Array, ElementType
from .indexing import row_numbers
from .layout import part
from .term import Term
from .tosa_builder import TosaBuilder, is_narrow

ROUNDS = 8
"""Maximum number of combinations one after the other, for known numbers that repeat; more are reduced in one go."""
PIECES = 8
"""Maximum number of runs of rows that are concatenated as slices; more are gathered."""
REDUCTIONS = {"add": "reduce_sum", "mul": "reduce_product", "maximum": "reduce_max", "minimum": "reduce_min"}


class UpdatedRows:
    """Rows [N, K, C], and updates of some of them."""

    def __init__(self, e: TosaBuilder, x: Value, numbers: Value, updates: Value) -> None:
        self.e, self.x, self.numbers, self.updates = e, x, numbers, updates
        self.groups, self.count, self.columns = x.tensor.dims
        self.width = numbers.tensor.dims[1]

    @property
    def is_empty(self) -> bool:
        return not (self.groups * self.count * self.columns * self.width)

    # ---- updates that are written ------------------------------------------------------------------------------------
    def written(self) -> Value:
        """Return the rows with the updates written, the last one of those that share a row."""
        if self.is_empty:
            return self.x
        if (numbers := self.numbers.constant) is not None:
            hits = np.full((self.groups, self.count), -1)
            for w in range(self.width):
                group = np.flatnonzero((numbers[:, w] >= 0) & (numbers[:, w] < self.count))
                hits[group, numbers[group, w]] = w
            return self.put_together(np.where(hits < 0, np.arange(self.count), self.count + hits))
        x = self.x
        for start in range(0, self.width, self.count):  # SCATTER takes no more updates than there are rows
            stop = min(start + self.count, self.width)
            x = self.e("scatter", x, part(self.e, self.numbers, 1, start, stop), part(self.e, self.updates, 1, start, stop))
        return x

    def put_together(self, sources: Array) -> Value:
        """Return rows by their numbers, from the rows and then the updates: as slices, if these are few."""
        e = self.e
        same = bool((sources == sources[:1]).all())
        starts = np.flatnonzero(np.diff(sources[0], prepend=-2) != 1) if same else np.arange(self.count)
        starts = np.union1d(starts, np.flatnonzero(sources[0] == self.count))  # the first update follows the last row
        if not same or len(starts) > PIECES:
            both = e.concat([self.x, self.updates], 1)
            return e("gather", both, e.constant(sources.astype(np.int32)))
        pieces = []
        for start, stop in zip(starts, [*starts[1:], self.count]):
            first = int(sources[0, start])
            held, at = (self.x, first) if first < self.count else (self.updates, first - self.count)
            pieces.append(part(e, held, 1, at, at + int(stop - start)))
        return e.concat(pieces, 1)

    # ---- updates that are combined -----------------------------------------------------------------------------------
    def combined(self, name: str) -> Value:
        """Return every row combined with all of its updates, by one of `REDUCTIONS`."""
        e, x = self.e, self.x
        if self.is_empty:
            return x
        identity = identity_of(name, x.tensor.element)
        neutral = e.constant(np.full((1, 1, 1), identity, x.tensor.element.dtype), x.tensor.element)
        if (rounds := self.rounds()) is not None:
            rows = e.concat([self.updates, e.broadcast_to(neutral, (self.groups, 1, self.columns))], 1)
            for hits in rounds:
                places = np.where(hits < 0, self.width, hits).astype(np.int32)
                x = operation(name, Term(e, x), Term(e, e("gather", rows, e.constant(places))))
            return x
        if self.width <= self.count:  # each update writes the total of its row; those that share a row write the same
            total, _ = self.totals(name, self.numbers, neutral)
            rows = operation(name, Term(e, e("gather", x, self.numbers)), Term(e, total))
            return e("scatter", x, self.numbers, rows)
        each = e.constant(np.arange(self.count, dtype=self.numbers.tensor.element.dtype)[None])
        total, hit = self.totals(name, each, neutral)
        found = operation(name, Term(e, x), Term(e, total))
        if name != "add" or not x.tensor.element.is_float:
            return found
        touched = e.reshape(e("reduce_any", hit, axis=2), (self.groups, self.count, 1))  # a sum of none is 0.0, not -0.0
        return e.select(touched, found, x)

    def totals(self, name: str, targets: Value, neutral: Value) -> tuple[Value, Value]:
        """Return, for each of the numbers [N or 1, R], its updates combined, [N, R, C], and a mask of these, [N, R, W(, 1)]."""
        e, count = self.e, targets.tensor.dims[1]
        hit = e("equal", e.reshape(self.numbers, (self.groups, 1, self.width)), e.reshape(targets, (*targets.tensor.dims, 1)))
        columns = [self.columns] if self.columns > 1 else []
        if columns:
            hit = e.reshape(hit, (self.groups, count, self.width, 1))
        updates = e.reshape(self.updates, (self.groups, 1, self.width, *columns))
        own = e.select(hit, updates, e.reshape(neutral, (1,) * hit.tensor.rank))
        return e.reshape(e(REDUCTIONS[name], own, axis=2), (self.groups, count, self.columns)), hit

    def rounds(self) -> list[Array] | None:
        """Return, round by round, the update that hits each row, or -1; None if that is not known, or there are many rounds."""
        numbers = self.numbers.constant
        if numbers is None:
            return None
        hits: list[Array] = []
        seen = np.zeros((self.groups, self.count), np.int64)
        for w in range(self.width):
            group = np.flatnonzero((numbers[:, w] >= 0) & (numbers[:, w] < self.count))
            rows = numbers[group, w]
            turn = seen[group, rows]
            while turn.size and turn.max() >= len(hits):
                hits.append(np.full((self.groups, self.count), -1))
                if len(hits) > ROUNDS:
                    return None
            for k in np.unique(turn):
                hits[k][group[turn == k], rows[turn == k]] = w
            seen[group, rows] += 1
        return hits


def operation(name: str, x: Term, y: Term) -> Value:
    """Return x and y, combined."""
    return (x * y).value if name == "mul" else x.apply(name, y).value


def identity_of(name: str, element: ElementType) -> float:
    """Return the identity of a combination; for sums -0.0, which leaves zeros of both signs alone."""
    least, most = (-math.inf, math.inf) if element.is_float else (element.minimum, element.maximum)
    return {"add": -0.0 if element.is_float else 0, "mul": 1, "maximum": least, "minimum": most}[name]


# ---- tensors of any shape ------------------------------------------------------------------------------------------------
def updated_rows(e: TosaBuilder, x: Value, indices: Value, updates: Value) -> UpdatedRows:
    """Return a tensor, and updates of its parts at tuples of indices, as rows of one group."""
    *outer, depth = indices.tensor.dims
    dims = x.tensor.dims
    require(depth <= len(dims), f"{indices.type} names {depth} axes of {x.type}", kind="shape")
    count, width, columns = math.prod(dims[:depth]), math.prod(outer), math.prod(dims[depth:])
    expected = (*outer, *dims[depth:])
    require(updates.tensor.dims == expected and updates.tensor.element == x.tensor.element,
            f"the updates are {updates.type}, but {indices.type} names parts of {x.type} of extents {list(expected)}",
            kind="shape")
    numbers = row_numbers(e, indices, dims[:depth], checked=True) if width else e.constant(np.zeros((0, 1), np.int32))
    return UpdatedRows(e, e.reshape(x, (1, count, columns)), e.reshape(numbers, (1, width)),
                       e.reshape(updates, (1, width, columns)))


def combining_type(element: ElementType) -> ElementType:
    """Return the type in which updates are combined; unsigned sums and products have the same bits."""
    if element == I1 or is_narrow(element):
        return I32
    return I64 if element.kind == "unsigned" else element


def combined(e: TosaBuilder, x: Value, indices: Value, updates: Value, name: str) -> Value:
    """Return x with updates combined into it by one of `REDUCTIONS`."""
    own, element = x.tensor.element, combining_type(x.tensor.element)
    rows = updated_rows(e, e.cast(x, element), indices, e.cast(updates, element))
    return e.cast(e.reshape(rows.combined(name), x.tensor.dims), own)
