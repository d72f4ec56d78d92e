"""Classes whose objects are nests of tensors: dataclasses, and those registered with `tosaic.register_tree`.

A dataclass is flattened to its fields. A field with `metadata={"static": True}` stays a Python value and is part of the
signature: an option, a name. Objects are rebuilt without `__init__`, which may need values that do not exist when tracing.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from ...runtime.errors import Position, TypeProblem, ValueProblem, class_of
from ...runtime.public_names import public

Node = TypeVar("Node")


class Tree(NamedTuple):
    """Functions that flatten objects of a class to children and static data, and rebuild them."""
    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, Sequence[Any]], Any]
    names: tuple[str, ...]


_registered: dict[type, Tree] = {}


@public("tosaic.register_tree")
def register_tree(type: type[Node], flatten: Callable[[Node], tuple[Iterable[Any], Any]],
                  unflatten: Callable[[Any, Sequence[Any]], Node], names: Sequence[str] = ()) -> None:
    """Make objects of a class (not of those that inherit from it) nests that traced functions take and return.

    `flatten(value)` returns the children, any nests of arrays, and the static data: a hashable value that stays unchanged.
    `unflatten(static, children)` makes an object of them; the children may be traced tensors. `names` name the children in the
    names of inputs; without them they are numbered. Raises a Problem for an argument that is not a class, or for a class that
    has been registered in another way.

    tosaic.register_tree(Point, lambda p: ((p.x, p.y), p.unit), lambda unit, xy: Point(*xy, unit), ("x", "y"))
    """
    if not isinstance(type, _class):
        raise TypeProblem(f"register_tree takes a class, not {class_of(type)}", place(), kind="argument")
    if not callable(flatten) or not callable(unflatten):
        raise TypeProblem("register_tree takes two functions besides the class", place(), kind="argument",
                          help="flatten(value) gives (children, static), unflatten(static, children) an object")
    tree = Tree(flatten, unflatten, tuple(map(str, names)))
    if _registered.setdefault(type, tree) != tree:
        raise ValueProblem(f"{type.__name__} has been registered already, with other functions", place(), kind="argument")


_class = type


def place() -> Position | None:
    from .caller import caller  # which a start from the cache does not need
    return caller()


def tree_of(kind: Any) -> Tree | None:
    """Return how to flatten objects of a class; None for leaves."""
    found = _registered.get(kind)
    if found is None and hasattr(kind, "__dataclass_fields__") and not is_leaf(kind):
        found = _registered[kind] = of_dataclass(kind)
    return found


def is_leaf(kind: type) -> bool:
    """True if objects of a dataclass represent one array, as `TensorSpec` and array types of libraries do."""
    return hasattr(kind, "__array__") or hasattr(kind, "__dlpack__") or hasattr(kind, "is_tensor_spec")


def of_dataclass(kind: Any) -> Tree:
    fields = dataclasses.fields(kind)
    tensors = tuple(f.name for f in fields if not f.metadata.get("static"))
    static = tuple(f.name for f in fields if f.metadata.get("static"))

    def flatten(value: Any) -> tuple[Iterable[Any], Any]:
        return [getattr(value, name) for name in tensors], tuple(getattr(value, name) for name in static)

    def unflatten(kept: Any, children: Sequence[Any]) -> Any:
        made = object.__new__(kind)
        for name, value in (*zip(tensors, children), *zip(static, kept)):
            object.__setattr__(made, name, value)
        return made

    return Tree(flatten, unflatten, tensors)


def flattened(value: Any, tree: Tree) -> tuple[list[Any], Any]:
    """Return the children, and the static data, which must be hashable."""
    found = tree.flatten(value)
    if not isinstance(found, tuple) or len(found) != 2:
        raise TypeProblem(f"flatten of {type(value).__name__} gives {class_of(found)}, not (children, static)", place(),
                          kind="argument", help="tosaic.register_tree says what it gives")
    try:
        hash(found[1])
    except TypeError:
        raise TypeProblem(f"what is static in {class_of(value)} cannot be a key: {found[1]!r}", place(), kind="argument",
                          help="use a tuple for a list; arrays are not static") from None
    return list(found[0]), found[1]


class Static(NamedTuple):
    """A static value as a part of a signature: 1, 1.0 and True differ."""
    value: Any
    kind: Any

    @classmethod
    def of(cls, value: Any) -> Static:
        return cls(value, kinds(value))


def kinds(value: Any) -> Any:
    """Return a value that distinguishes static values that are equal: 1, 1.0 and True, 0.0 and -0.0."""
    if isinstance(value, tuple):
        return tuple(map(kinds, value))
    return repr(value) if isinstance(value, float) else type(value)
