"""The verdict of a comparison: `Agrees` or `Differs`. `Agrees` requires that at least one element was compared, so an empty
comparison cannot succeed; elements that a comparison could not decide are counted by their reason.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ....runtime.errors import Problem
from .differences import Difference
from .tally import Elements


@dataclass(frozen=True, slots=True)
class Agrees:
    """All elements that could be compared agree. Raises a Problem if none was compared."""
    elements: Elements

    def __post_init__(self) -> None:
        if self.elements.compared < 1:
            raise nothing_compared(self.elements.reasons or "there are no elements to compare")

    @property
    def difference(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Differs:
    """An element, or the end of a call, differs from the reference."""
    elements: Elements
    difference: Difference


Verdict: TypeAlias = Agrees | Differs


def verdict(elements: Elements, difference: Difference | None) -> Verdict:
    """Return the verdict over the compared elements. Raise a Problem if nothing was compared."""
    return Agrees(elements) if difference is None else Differs(elements, difference)


def nothing_compared(reason: str) -> Problem:
    """Return the Problem of a check without a comparison."""
    return Problem(f"nothing was compared: {reason}", kind="argument", help="give inputs for which the function returns "
                   "numbers, or keeps them in variables")
