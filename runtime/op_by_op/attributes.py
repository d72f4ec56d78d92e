"""Attributes of an operation: names with typed values. The caller fills `OpAttrs`; `freeze` makes an immutable copy that may
outlive the call, is hashed once, and is part of the key of a kernel.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import index
from typing import Any, NamedTuple

import numpy as np

from ..arguments import dtype_of
from ..errors import KeyProblem, Problem, TypeProblem, ValueProblem, class_of
from ..public_names import public_class

INTEGERS = {name: (-(1 << bits - 1), (1 << bits - 1) - 1) for name, bits in
            (("i8", 8), ("i16", 16), ("i32", 32), ("i64", 64))} | {
            name: (0, (1 << bits) - 1) for name, bits in (("ui8", 8), ("ui16", 16), ("ui32", 32), ("ui64", 64))}
FLOATS = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
TYPES = ("bool", "string", *INTEGERS, *FLOATS, "dtype", "shape", "dense", "aggregate", "function")
"""Types of an attribute; all but the last three may also be the type of an array's elements."""

OF_NUMPY = {"int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "ui8", "uint16": "ui16",
            "uint32": "ui32", "uint64": "ui64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
            "bool": "bool"}


class Attribute(NamedTuple):
    """A value, its type, and whether it is an array (a tuple) of such values."""
    type: str
    value: Any
    is_array: bool = False

    @property
    def kind(self) -> str:
        return f"array of {self.type}" if self.is_array else self.type

    def text(self) -> str:
        """Return the attribute as text for a log."""
        if self.is_array:
            return f"type={self.type.upper()} value=[{', '.join(map(str, self.value))}]"
        return f"type={self.type.upper()} value={self.value}"


class Attributes:
    """The common interface of both kinds of attributes: reading."""
    __slots__ = ("_entries",)
    _entries: dict[str, Attribute]

    def get(self, name: str, type: str | None = None) -> Any:
        """Return the value; raise a Problem if there is none of that name and type."""
        return self._find(name, type, False).value

    def get_array(self, name: str, type: str | None = None) -> tuple[Any, ...]:
        """Return the values of an array; raise a Problem if there is none of that name and type."""
        value: tuple[Any, ...] = self._find(name, type, True).value
        return value

    def _find(self, name: str, type: str | None, is_array: bool) -> Attribute:
        found = self._entries.get(name)
        if found is None:
            raise KeyProblem(f"missing '{name}' attribute", kind="attribute",
                             help=f"there are: {', '.join(self.names()) or 'none'}")
        if found.is_array != is_array and type is None and not is_array:
            return found
        if found.is_array != is_array or type not in (None, found.type):
            wanted = f"array of {type or 'something'}" if is_array else type
            raise TypeProblem(f"attribute '{name}' is {found.kind}, not {wanted}", kind="attribute",
                              help="ask for the type that was set")
        return found

    def names(self) -> tuple[str, ...]:
        """Return all names, sorted."""
        return tuple(sorted(self._entries))

    def items(self) -> Iterator[tuple[str, Attribute]]:
        """Yield names with their attributes, sorted."""
        return iter(sorted(self._entries.items()))

    def values(self) -> dict[str, Any]:
        """Return the values by name, without their types."""
        return {name: entry.value for name, entry in self._entries.items()}

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        from .metadata import on_one_line
        return f"{type(self).__name__}({', '.join(f'{n}: {e.kind} = {on_one_line(e.value)}' for n, e in self.items())})"


class FrozenOpAttrs(Attributes):
    """Immutable attributes that compare by value; the hash is computed on creation."""
    __slots__ = ("_hash", "_key")

    def __init__(self, entries: Mapping[str, Attribute]) -> None:
        self._entries = dict(entries)
        self._key = tuple((name, comparable(e)) for name, e in sorted(entries.items()))
        self._hash = hash(self._key)

    def freeze(self) -> FrozenOpAttrs:
        """Itself."""
        return self

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, FrozenOpAttrs) and self._hash == other._hash and self._key == other._key)


@public_class
class OpAttrs(Attributes):
    """Attributes under construction. A name is set once."""
    __slots__ = ()

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._entries = {}
        if not isinstance(values, Mapping | None):
            raise TypeProblem(f"attributes are {class_of(values)}", kind="argument",
                              help="give them by name: OpAttrs({\"axis\": 1})")
        for name, value in (values or {}).items():
            self.set(name, value)

    def set(self, name: str, value: Any, type: str | None = None) -> bool:
        """Set a value, of the named type or the one that fits it (an int is i64, a float f64). Lists and tuples are arrays,
        unless the type is `shape`. Return False without a change if the name is set already; raise a Problem if the value is
        not of the type."""
        if isinstance(value, list | tuple) and type != "shape":
            return self.set_array(name, value, type)
        kind = type or type_of(name, value)
        return self._put(name, Attribute(kind, checked(name, value, kind)))

    def set_array(self, name: str, values: Sequence[Any], type: str | None = None) -> bool:
        """Set an array of values of one type."""
        kinds = {type} if type else {type_of(name, v) for v in values} or {"i64"}
        kind = "f64" if kinds == {"i64", "f64"} else next(iter(kinds))
        if len(kinds) > 1 and kind != "f64":
            raise Problem(f"array attribute '{name}' has values of {' and '.join(sorted(map(str, kinds)))}", kind="attribute")
        if kind in ("dense", "function"):
            raise Problem(f"attribute '{name}' cannot be an array of {kind}", kind="attribute", help="use an aggregate")
        return self._put(name, Attribute(kind, tuple(checked(name, v, kind) for v in values), True))

    def freeze(self) -> FrozenOpAttrs:
        """Return an immutable copy."""
        return FrozenOpAttrs(self._entries) if self._entries else EMPTY

    def _put(self, name: str, entry: Attribute) -> bool:
        return self._entries.setdefault(name, entry) is entry


def type_of(name: str, value: Any) -> str:
    """Return the default type of a value."""
    match value:
        case bool(): return "bool"
        case int(): return "i64"
        case float() if not isinstance(value, np.generic): return "f64"
        case str(): return "string"
        case np.generic() if value.dtype.name in OF_NUMPY: return OF_NUMPY[value.dtype.name]
        case np.ndarray(): return "dense"
        case np.dtype() | type(): return "dtype"
        case Attributes() | dict(): return "aggregate"
        case list() | tuple(): return "shape"
    if callable(value):
        return "function"
    raise TypeProblem(f"attribute '{name}' cannot be {class_of(value)}", kind="attribute",
                      help=f"it is one of {', '.join(TYPES)}")


def checked(name: str, value: Any, type: str) -> Any:
    """Return the value in its stored, immutable form; raise a Problem if it is not of the type."""
    if type not in TYPES:
        raise TypeProblem(f"attribute '{name}' has the type {type}, which there is not", kind="attribute",
                          help=f"one of {', '.join(TYPES)}")
    try:
        kept = KEPT.get(type, integer)(value)
    except (TypeError, ValueError):
        raise TypeProblem(f"attribute '{name}' is {type}, not {value!r}", kind="attribute") from None
    low, high = INTEGERS.get(type, (None, None))
    if low is not None and not low <= kept <= high:
        raise ValueProblem(f"attribute '{name}' is {type}, which {kept} does not fit", kind="attribute",
                           help=f"values are {low} to {high}")
    return kept


def integer(value: Any) -> int:
    if isinstance(value, bool | np.bool_):
        raise TypeError
    return index(value)


def boolean(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError
    return bool(value)


def string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def number(value: Any) -> float:
    if isinstance(value, str | bool):
        raise TypeError
    return float(value)


def rounded_to(dtype: str) -> Callable[[Any], float]:
    """Return a function that rounds a number to a floating-point type."""
    def rounded(value: Any) -> float:
        with np.errstate(over="ignore"):
            return float(np.asarray(number(value)).astype(dtype_of(dtype)))
    return rounded


def shape(value: Any) -> tuple[int | None, ...] | None:
    """Return extents, None for an unknown one; None if the rank is not known."""
    return None if value is None else tuple(None if n is None else integer(n) for n in value)


def dense(value: Any) -> np.ndarray[Any, Any]:
    kept = np.array(value, order="C")
    kept.flags.writeable = False
    return kept


def aggregate(value: Any) -> FrozenOpAttrs:
    if not isinstance(value, Attributes | dict):
        raise TypeError
    return (value if isinstance(value, OpAttrs | FrozenOpAttrs) else OpAttrs(value)).freeze()  # type: ignore[arg-type]


def function(value: Any) -> Any:
    if not callable(value) and not isinstance(value, str):
        raise TypeError
    return value


KEPT: dict[str, Callable[[Any], Any]] = {
    "bool": boolean, "string": string, **{name: rounded_to(dtype) for name, dtype in FLOATS.items()},
    "dtype": lambda v: dtype_of(v) if isinstance(v, str) else np.dtype(v),
    "shape": shape, "dense": dense, "aggregate": aggregate,
    "function": function}
"""Converters to the stored form, by type; the default is `integer`."""


def comparable(entry: Attribute) -> Any:
    """Return a hashable key that two attributes share exactly if they are equal."""
    value = entry.value
    if isinstance(value, np.ndarray):
        value = value.dtype.str, value.shape, value.tobytes()
    # 0.0 and -0.0 are equal to Python, and so are 1 and True, but not to a kernel
    return entry.type, entry.is_array, repr(value) if entry.type in FLOATS else value


EMPTY = FrozenOpAttrs({})
"""No attributes."""
