"""Counts of the elements that a comparison has compared, and of those about which it says nothing, by reason."""
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
    """Elements that were compared, and those that could not be, by reason."""
    compared: int = 0
    uncompared: tuple[tuple[str, int], ...] = ()

    @property
    def not_comparable(self) -> int:
        return sum(count for _, count in self.uncompared)

    @property
    def reasons(self) -> str:
        """How many could not be compared and why; nothing where all could."""
        if not self.uncompared:
            return ""
        listed = ", ".join(f"{reason} ({count:,})" for reason, count in self.uncompared)
        return f"{self.not_comparable:,} not comparable: {listed}"


@dataclass(slots=True)
class Tally:
    """Counts elements while they are compared."""
    compared: int = 0
    uncompared: Counter[str] = field(default_factory=Counter)

    def add(self, actual: Array, expected: Array, free: Array | bool, reason: str) -> int:
        """Count the elements of a result, of which those that are `free` say nothing for that reason, and NaN beside NaN says
        nothing either. Return the number of those that were compared."""
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
    """True where both elements are no number: a NaN says little about how it was computed."""
    if actual.dtype.kind in "iub" or expected.dtype.kind in "iub" or actual.shape != expected.shape:
        return np.zeros(expected.shape, bool)
    return np.isnan(actual.astype(np.float64)) & np.isnan(expected.astype(np.float64))
