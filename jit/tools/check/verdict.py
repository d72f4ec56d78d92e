"""The verdict of a comparison: `Agrees` or `Differs`. `Agrees` exists only where at least one element was compared, so that
nothing can say yes to nothing; elements about which a comparison says nothing are counted by their reason.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ....runtime.errors import Problem
from .differences import Difference
from .tally import Elements


@dataclass(frozen=True, slots=True)
class Agrees:
    """All elements that could be compared agree. Raises a Problem where none was compared."""
    elements: Elements

    def __post_init__(self) -> None:
        if self.elements.compared < 1:
            raise nothing_compared(self.elements.reasons or "there are no elements to compare")

    @property
    def difference(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Differs:
    """An element, or how a call ends, is not the reference's."""
    elements: Elements
    difference: Difference


Verdict: TypeAlias = Agrees | Differs


def verdict(elements: Elements, difference: Difference | None) -> Verdict:
    """The verdict over what was compared; a Problem where nothing was."""
    return Agrees(elements) if difference is None else Differs(elements, difference)


def nothing_compared(reason: str) -> Problem:
    """The Problem of a check without a comparison."""
    return Problem(f"nothing was compared: {reason}", kind="argument", help="give inputs for which the function returns "
                   "numbers, or keeps them in variables")
