"""Lists of numbers of different lengths, concatenated in one array: the form of conflicts and sections in the planner's
inner loops.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ....runtime.records import dataclass

Array = np.ndarray
"""A vector of int64."""


@dataclass(frozen=True, slots=True)
class RaggedRows:
    """Row i is `items[start[i]:start[i + 1]]`."""
    start: Array
    items: Array

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, i: int) -> Array:
        return self.items[self.start[i]:self.start[i + 1]]

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    @property
    def lengths(self) -> Array:
        return np.diff(self.start)

    @property
    def owners(self) -> Array:
        """Row of each item."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @staticmethod
    def of(lists: Sequence[Sequence[int]]) -> RaggedRows:
        """Return the rows of these lists."""
        return RaggedRows(starts([len(items) for items in lists]), np.array([i for items in lists for i in items], np.int64))

    @staticmethod
    def grouped(keys: Array, items: Array, count: int) -> RaggedRows:
        """Return `count` rows; row k holds the items whose key is k, in ascending order."""
        return RaggedRows(starts(np.bincount(keys, minlength=count)), items[np.lexsort((items, keys))].astype(np.int64))

    def turned(self, count: int) -> RaggedRows:
        """Return, for each of the numbers below `count`, the rows that hold it."""
        return RaggedRows.grouped(self.items, self.owners, count)

    def only(self, rows: Array, new: Array) -> RaggedRows:
        """Return some rows with their items renumbered: `new[item]`, or left out if that is negative."""
        keep = np.zeros(len(self), bool)
        keep[rows] = True
        owners, items = self.owners, new[self.items]
        chosen = keep[owners] & (items >= 0)
        counts = np.bincount(owners[chosen], minlength=len(self))[keep]
        return RaggedRows(starts(counts), items[chosen])

    def greatest(self, values: Array) -> Array:
        """Return the greatest value of the items of each row; no row is empty."""
        return np.maximum.reduceat(values[self.items], self.start[:-1]) if len(self) else values[:0]

    def sums(self, values: Array) -> Array:
        """Return the sum of the values of the items of each row; no row is empty."""
        return np.add.reduceat(values[self.items], self.start[:-1]) if len(self) else values[:0]


def starts(lengths: Sequence[int] | Array) -> Array:
    """Return the start of each row of these lengths, and the end of the last."""
    found = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=found[1:])
    return found


def distinct(values: Array) -> Array:
    """Return each value once, in ascending order. (The first use of NumPy's own `unique` loads its masked arrays, which takes
    longer than most plans.)"""
    found = np.sort(values)
    keep = np.ones(len(found), bool)
    keep[1:] = found[1:] != found[:-1]
    return found[keep]
