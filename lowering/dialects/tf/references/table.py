"""The table of references, and its registration functions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....graph.graph import Operation
from ....graph.types import Array

Reference = Callable[..., Any]
"""(operation, *operands) -> the one result, or a tuple of results."""
REFERENCES: dict[str, Reference] = {}


def reference(*names: str) -> Callable[[Reference], Reference]:
    """Register the function as the reference of these operations."""
    def add(function: Reference) -> Reference:
        REFERENCES.update(dict.fromkeys(names, function))
        return function
    return add


def elementwise(function: Callable[..., Array], *names: str) -> None:
    """Register a function of arrays for these operations, with NumPy's broadcasting, which is TensorFlow's."""
    def apply(operation: Operation, *arrays: Array) -> Array:
        return function(*arrays)
    REFERENCES.update(dict.fromkeys(names, apply))
