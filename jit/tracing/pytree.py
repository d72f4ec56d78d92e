"""Nested arguments and results of a Python function: tuples, lists and dicts of tensors, taken apart and put together.

A `Structure` is the nest without its leaves; it is hashable, so it is part of a signature.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

Form = Literal["leaf", "none", "empty", "tuple", "list", "dict", "named"]


class Structure(NamedTuple):
    """What a value is without its leaves. `names` are a dict's keys, `type` the class of a named tuple. A leaf of a result
    that is "empty" is an array without elements, whose shape and dtype are the `names`."""
    form: Form
    children: tuple[Structure, ...] = ()
    names: tuple[Any, ...] = ()
    type: type | None = None

    def __str__(self) -> str:
        inner = [str(child) for child in self.children]
        match self.form:
            case "leaf":
                return "*"
            case "none":
                return "None"
            case "list":
                return f"[{', '.join(inner)}]"
            case "dict":
                return "{" + ", ".join(f"{name!r}: {text}" for name, text in zip(self.names, inner)) + "}"
            case _:
                return f"({', '.join(inner)}{',' * (len(inner) == 1)})"


LEAF = Structure("leaf")


def flatten(value: Any, leaves: list[Any]) -> Structure:
    """The structure of `value`; its leaves are appended to `leaves` in order."""
    match value:
        case None:
            return Structure("none")
        case dict():
            names = tuple(value)
            return Structure("dict", tuple(flatten(value[name], leaves) for name in names), names)
        case tuple() if hasattr(value, "_fields"):
            return Structure("named", tuple(flatten(v, leaves) for v in value), type=type(value))
        case tuple():
            return Structure("tuple", tuple(flatten(v, leaves) for v in value))
        case list():
            return Structure("list", tuple(flatten(v, leaves) for v in value))
        case _:
            leaves.append(value)
            return LEAF


def unflatten(structure: Structure, leaves: Iterator[Any]) -> Any:
    """The value that has this structure and these leaves."""
    if structure.form == "leaf":
        return next(leaves)
    if structure.form == "none":
        return None
    if structure.form == "empty":
        return np.empty(*structure.names)
    children = [unflatten(child, leaves) for child in structure.children]
    match structure.form:
        case "dict":
            return dict(zip(structure.names, children))
        case "list":
            return children
        case "named":
            assert structure.type is not None
            return structure.type(*children)
        case _:
            return tuple(children)


def with_empty(structure: Structure, empty: Iterator[tuple[Any, ...]]) -> Structure:
    """The structure with "empty" in the place of each leaf for which there is a shape and a dtype; () stands for a leaf that
    stays."""
    if structure.form == "leaf":
        names = next(empty)
        return Structure("empty", names=names) if names else structure
    return structure._replace(children=tuple(with_empty(child, empty) for child in structure.children))


def rebuild(structure: Structure) -> Callable[[Sequence[Any]], Any]:
    """`unflatten` for this structure, made quick for the common ones."""
    if structure.form == "leaf":
        return lambda leaves: leaves[0]
    if structure.form == "tuple" and all(child.form == "leaf" for child in structure.children):
        return tuple
    return lambda leaves: unflatten(structure, iter(leaves))


def leaf_names(structure: Structure, name: str) -> list[str]:
    """A name for each leaf of an argument called `name`: `state_0`, `weights_bias`."""
    match structure.form:
        case "leaf":
            return [name]
        case "dict":
            keys: Sequence[Any] = structure.names
        case "named":
            keys = getattr(structure.type, "_fields", ())
        case _:
            keys = range(len(structure.children))
    return [leaf for key, child in zip(keys, structure.children) for leaf in leaf_names(child, f"{name}_{key}")]
