"""Nested arguments and results of a Python function: tuples, lists, dicts, dataclasses and registered classes (`trees`) of
tensors, flattened to leaves and rebuilt.

A `Structure` is the nest without its leaves; it is hashable, so it is part of a signature.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from .trees import Static, flattened, tree_of

Form = Literal["leaf", "complex", "none", "empty", "tuple", "list", "dict", "named", "tree"]


class Structure(NamedTuple):
    """The form of a value without its leaves. `names` are a dict's keys, `type` the class of a named tuple or a tree, `static`
    the data of a tree besides its children. An "empty" leaf of a result is an array without elements, with its shape and dtype
    as `names`."""
    form: Form
    children: tuple[Structure, ...] = ()
    names: tuple[Any, ...] = ()
    type: type | None = None
    static: Static | None = None

    def __str__(self) -> str:
        inner = [str(child) for child in self.children]
        match self.form:
            case "leaf" | "complex":
                return "*"
            case "none":
                return "None"
            case "list":
                return f"[{', '.join(inner)}]"
            case "dict":
                return "{" + ", ".join(f"{name!r}: {text}" for name, text in zip(self.names, inner)) + "}"
            case "tree":
                return f"{self.type.__name__ if self.type else ''}({', '.join(inner)})"
            case _:
                return f"({', '.join(inner)}{',' * (len(inner) == 1)})"


LEAF = Structure("leaf")
COMPLEX = Structure("complex")
"""A leaf of complex numbers, which graphs and compiled code have as pairs of real ones."""


def flatten(value: Any, leaves: list[Any]) -> Structure:
    """Return the structure of `value`; append its leaves to `leaves` in order."""
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
        case _ if (tree := tree_of(type(value))) is not None:
            children, static = flattened(value, tree)
            return Structure("tree", tuple(flatten(v, leaves) for v in children), type=type(value), static=Static.of(static))
        case _:
            is_pair = is_complex(value)
            leaves.append(value.pairs() if hasattr(value, "pairs") and is_pair else value)
            return COMPLEX if is_pair else LEAF


def is_complex(value: Any) -> bool:
    """True if an array, a tensor or a number, also of another library, is complex, by the name of its dtype."""
    dtype = getattr(value, "dtype", None)
    if isinstance(dtype, np.dtype):
        return dtype.kind == "c"
    if isinstance(value, memoryview):
        return "Z" in value.format
    return isinstance(value, complex) or (dtype is not None and "complex" in str(dtype))


def from_pairs(pairs: Any) -> Any:
    """Convert pairs back to a complex tensor, or to a complex array over the same memory."""
    if isinstance(pairs, np.ndarray):
        return pairs if pairs.dtype.kind == "c" else pairs.view(np.result_type(pairs.dtype, np.complex64))[..., 0]
    return pairs.of_pairs() if hasattr(pairs, "of_pairs") else pairs


def unflatten(structure: Structure, leaves: Iterator[Any]) -> Any:
    """Return the value with this structure and these leaves."""
    if structure.form == "leaf":
        return next(leaves)
    if structure.form == "complex":
        return from_pairs(next(leaves))
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
        case "tree":
            tree = tree_of(structure.type)
            assert tree is not None and structure.static is not None
            return tree.unflatten(structure.static.value, children)
        case _:
            return tuple(children)


def with_empty(structure: Structure, empty: Iterator[tuple[Any, ...]]) -> Structure:
    """Return the structure with "empty" for each leaf that has a shape and a dtype; () keeps the leaf."""
    if structure.form in ("leaf", "complex"):
        names = next(empty)
        if names and structure.form == "complex":
            names = names[0][:-1], np.result_type(names[1], np.complex64)
        return Structure("empty", names=names) if names else structure
    return structure._replace(children=tuple(with_empty(child, empty) for child in structure.children))


def rebuild(structure: Structure) -> Callable[[Sequence[Any]], Any]:
    """Return `unflatten` for this structure, specialized for the common structures."""
    if structure.form == "leaf":
        return lambda leaves: leaves[0]
    if structure.form == "tuple" and all(child.form == "leaf" for child in structure.children):
        return tuple
    return lambda leaves: unflatten(structure, iter(leaves))


def leaf_names(structure: Structure, name: str) -> list[str]:
    """Return a name for each leaf of an argument called `name`: `state_0`, `weights_bias`."""
    match structure.form:
        case "leaf" | "complex":
            return [name]
        case "dict":
            keys: Sequence[Any] = structure.names
        case "named":
            keys = getattr(structure.type, "_fields", ())
        case "tree" if (tree := tree_of(structure.type)) is not None and tree.names:
            keys = tree.names
        case _:
            keys = range(len(structure.children))
    return [leaf for key, child in zip(keys, structure.children) for leaf in leaf_names(child, f"{name}_{key}")]
