"""The view of other dialects' operations that all code may use: their spelling, their properties and attributes by name, and
the functions that they name. This module is below the dialects: the graph's verifier uses it, too.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...runtime.errors import Problem
from .graph import Operation

CALLEES = ("then_branch", "else_branch", "true_branch", "false_branch", "cond", "body", "branches", "f", "callee")
"""Properties that name functions, or lists of them."""


CALLS = ("func.call", "tf.PartitionedCall", "tf.StatefulPartitionedCall", "tf.LegacyCall")
"""Operations that pass all their operands to the one function that they name, and return the function's results."""


def find(operation: Operation, name: str, default: Any = None) -> Any:
    """Return the property or attribute of that name; if there is none, the operator's default, or `default`."""
    properties: Mapping[str, Any] = getattr(operation.op, "properties", None) or {}
    found = properties.get(name, operation.attributes.get(name))
    found = operation.op.default_of(name) if found is None else found
    return default if found is None else found


def required(operation: Operation, name: str) -> Any:
    """Return the property or attribute of that name; raise a Problem if there is none."""
    value = find(operation, name)
    if value is None:
        raise Problem(f"{spelling(operation)} has no {name}", operation.position, kind="attribute")
    return value


def flag(operation: Operation, name: str) -> bool:
    """True if a unit or boolean property is set."""
    value = find(operation, name, False)
    return value if isinstance(value, bool) else True


def number(operation: Operation, name: str, default: float | None = None) -> int | float:
    """Return a number, `1 : i64`; if there is none, the default, if any."""
    if default is not None and find(operation, name) is None:
        return default
    value = getattr(required(operation, name), "value", None)
    if not isinstance(value, int | float):
        raise Problem(f"{name} of {spelling(operation)} must be a number", operation.position, kind="attribute")
    return value


def string(operation: Operation, name: str) -> str:
    value = required(operation, name)
    if not isinstance(value, str):
        raise Problem(f"{name} of {spelling(operation)} must be a string", operation.position, kind="attribute")
    return value


def callees(operation: Operation) -> dict[str, tuple[str, ...]]:
    """Return the functions that an operation names, by the property that names them: {"branches": ("a", "b")}."""
    found: dict[str, tuple[str, ...]] = {}
    for name in CALLEES:
        value = find(operation, name)
        symbols = value if isinstance(value, tuple) else (value,)
        paths = [s.path[-1] for s in symbols if hasattr(s, "path")]
        if paths:
            found[name] = tuple(paths)
    return found


def spelling(operation: Operation) -> str:
    """Return the operation's name as MLIR writes it."""
    return operation.op.name or str(getattr(operation.op, "spelling", ""))
