"""Records of values, each of which compares a later value with the one from which it was made. A snapshot (`followed`,
`outside`) keeps a record for each path that it reads. A record keeps no object alive that can be referenced weakly.
"""
from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..runtime.errors import Problem
from ..runtime.foreign_arrays import Unreadable, borrowed
from .cache.sha256 import sha256


def attributes(value: object) -> dict[str, Any]:
    """Return the attributes of an object itself: those in its dict, and in the slots of its classes."""
    found = {name: slot for c in type(value).__mro__ for slots in [c.__dict__.get("__slots__", ())]
             for name in ((slots,) if isinstance(slots, str) else slots) if name not in ("__dict__", "__weakref__")
             for slot in [getattr(value, mangled(c, name), MISSING)] if slot is not MISSING}
    return found | dict(getattr(value, "__dict__", {}))


def mangled(owner: type, name: str) -> str:
    return f"_{owner.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name


MISSING = object()


def weakref_or_none(value: object) -> Callable[[], Any] | None:
    try:
        return weakref.ref(value)
    except TypeError:
        return None


class Plain:
    """A value that does not change in place. 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def is_now(self, value: Any, around: set[int]) -> bool:
        if type(value) is not type(self.value):
            return False
        in_bits = isinstance(value, float | complex | np.inexact)
        return value is self.value or (repr(value) == repr(self.value) if in_bits else bool(value == self.value))


class Members:
    """A set of values that do not change in place."""
    __slots__ = ("of", "type")

    def __init__(self, value: Any) -> None:
        self.type: Any = type(value)
        self.of = frozenset((type(v), repr(v)) for v in value)

    def is_now(self, value: Any, around: set[int]) -> bool:
        return isinstance(value, set | frozenset) and type(value) is self.type and frozenset(
            (type(v), repr(v)) for v in value) == self.of


class Same:
    """An object that counts as unchanged as long as it is the same object; with None, an object that encloses the value."""
    __slots__ = ("found",)

    def __init__(self, found: Callable[[], Any] | None) -> None:
        self.found = found

    def is_now(self, value: Any, around: set[int]) -> bool:
        return id(value) in around if self.found is None else self.found() is value


def same(value: Any) -> Same:
    return Same(weakref_or_none(value) or (lambda: value))


class Bound:
    """A method of an object."""
    __slots__ = ("function", "owner")

    def __init__(self, function: Any, owner: Any) -> None:
        self.function, self.owner = function, owner

    def is_now(self, value: Any, around: set[int]) -> bool:
        return isinstance(value, types.MethodType) and value.__func__ is self.function and is_same(
            self.owner, value.__self__, around)


class Nest:
    __slots__ = ("items", "type")

    def __init__(self, kind: type, items: tuple[Any, ...]) -> None:
        self.type: Any = kind
        self.items = items

    def is_now(self, value: Any, around: set[int]) -> bool:
        if type(value) is not self.type:
            return False
        return len(value) == len(self.items) and all(
            is_same(kept, v, {*around, id(value)}) for kept, v in zip(self.items, value))


class Keyed:
    """A dict: its keys, in their order, and their values."""
    __slots__ = ("items", "type")

    def __init__(self, kind: type, items: Mapping[Any, Any]) -> None:
        self.type: Any = kind
        self.items = items

    def is_now(self, value: Any, around: set[int]) -> bool:
        if type(value) is not self.type:
            return False
        return list(value) == list(self.items) and all(
            is_same(kept, value[key], {*around, id(value)}) for key, kept in self.items.items())


class Contents:
    """An array, compared with a copy."""
    __slots__ = ("copy", "memory", "type")

    def __init__(self, kind: type, copy: np.ndarray[Any, Any]) -> None:
        self.type: Any = kind
        self.copy, self.memory = copy, memory(copy)

    def is_now(self, value: Any, around: set[int]) -> bool:
        if type(value) is not self.type:
            return False
        array = value if isinstance(value, np.ndarray) else borrowed(value)
        if array.dtype != self.copy.dtype or array.shape != self.copy.shape:
            return False
        return memory(np.ascontiguousarray(array)) == self.memory


class Hashed:
    """A large array, compared by the hash of its bytes."""
    __slots__ = ("digest", "dtype", "shape", "type")

    def __init__(self, kind: type, array: np.ndarray[Any, Any]) -> None:
        self.type: Any = kind
        self.dtype, self.shape, self.digest = array.dtype, array.shape, digest(array)

    def is_now(self, value: Any, around: set[int]) -> bool:
        if type(value) is not self.type:
            return False
        array = value if isinstance(value, np.ndarray) else borrowed(value)
        return array.dtype == self.dtype and array.shape == self.shape and digest(array) == self.digest


def digest(array: np.ndarray[Any, Any]) -> bytes:
    return sha256(memory(np.ascontiguousarray(array))).digest()


def memory(array: np.ndarray[Any, Any]) -> memoryview:
    """Return an array's bytes, to be compared bitwise: a NaN is equal to itself, and -0.0 is not 0.0."""
    return memoryview(array.reshape(-1).view(np.uint8).data)


class Held:
    """An object of a Python class, with its attributes."""
    __slots__ = ("found", "items", "type")

    def __init__(self, found: Callable[[], Any] | None, kind: type, items: Mapping[str, Any]) -> None:
        self.found, self.items = found, items
        self.type: Any = kind

    def is_now(self, value: Any, around: set[int]) -> bool:
        if type(value) is not self.type:
            return False
        held = attributes(value)
        return held.keys() == self.items.keys() and all(
            is_same(kept, held[name], {*around, id(value)}) for name, kept in self.items.items())


def is_same(kept: Any, value: Any, around: set[int]) -> bool:
    try:
        return bool(kept.is_now(value, around))
    except (Problem, Unreadable):
        return False
