"""Counts of the elements that a comparison has compared, and of those that it could not decide, by reason."""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from ....lowering.graph.types import Array

ROUNDING = "any rounding changes them"
UNBOUNDED = "the specification bounds no error there"
NANS = "NaN on both sides"


@dataclass(frozen=True, slots=True)
class Elements:
    """Number of compared elements, and of elements that could not be compared, by reason."""
    compared: int = 0
    uncompared: tuple[tuple[str, int], ...] = ()

    @property
    def not_comparable(self) -> int:
        return sum(count for _, count in self.uncompared)

    @property
    def reasons(self) -> str:
        """Number of elements that could not be compared and why; empty if all could be."""
        if not self.uncompared:
            return ""
        listed = ", ".join(f"{reason} ({count:,})" for reason, count in self.uncompared)
        return f"{self.not_comparable:,} not comparable: {listed}"


@dataclass(slots=True)
class Tally:
    """A counter of elements while they are compared."""
    compared: int = 0
    uncompared: Counter[str] = field(default_factory=Counter)

    def add(self, actual: Array, expected: Array, free: Array | bool, reason: str) -> int:
        """Count the elements of a result; elements that are `free` count as not comparable for that reason, as do pairs of NaN.
        Return the number of compared elements."""
        is_free = np.broadcast_to(free, expected.shape)
        nans = both_nan(actual, expected) & ~is_free
        for why, mask in ((reason, is_free), (NANS, nans)):
            if count := int(np.count_nonzero(mask)):
                self.uncompared[why] += count
        compared = expected.size - int(np.count_nonzero(is_free | nans))
        self.compared += compared
        return compared

    @property
    def elements(self) -> Elements:
        return Elements(self.compared, tuple(sorted(self.uncompared.items())))


def both_nan(actual: Array, expected: Array) -> Array:
    """Return a mask of elements that are NaN in both: a NaN tells little about its computation."""
    if actual.dtype.kind in "iub" or expected.dtype.kind in "iub" or actual.shape != expected.shape:
        return np.zeros(expected.shape, bool)
    return np.isnan(actual.astype(np.float64)) & np.isnan(expected.astype(np.float64))
