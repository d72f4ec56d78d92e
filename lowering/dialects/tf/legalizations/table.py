"""The table of legalizations, and how a module adds to it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

Legalization = Callable[..., Any]
"""(emitter, operation, *operands) -> the one result, or a tuple of results."""
LEGALIZATIONS: dict[str, Legalization] = {}


def legalization(*names: str) -> Callable[[Legalization], Legalization]:
    """The function is what these operations are in TOSA."""
    def add(function: Legalization) -> Legalization:
        for name in names:
            assert name not in LEGALIZATIONS, f"{name} has two legalizations"
            LEGALIZATIONS[name] = function
        return function
    return add
