"""The values that a jitted method has read from its object, so that later calls detect changes.

Tracing runs Python once: an attribute that it reads becomes a constant of the code. A `Snapshot` holds the values of those
attributes, and a call compares them. Followed are the attributes that the method's code names, and those named by the methods
and properties of the object that it uses; all attributes if the object is passed elsewhere (`helper(self)`, `getattr`, a
closure). The contents of an attribute are followed too: containers, objects of Python classes, arrays with their contents.
Writable arrays are compared with a copy or, beyond `LARGEST` bytes in total, by their SHA-256. Read-only ones, functions,
classes and variables are compared by identity. Nothing here keeps the object alive.
"""
from __future__ import annotations

import dis
import enum
import functools
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..runtime.deprecation import caller_level
from ..runtime.errors import TypeProblem, ValueProblem, class_of, printable
from ..runtime.foreign_arrays import Unreadable, borrowed, has_memory
from .kept_values import (
    MISSING,
    Bound,
    Contents,
    Hashed,
    Held,
    Keyed,
    Members,
    Nest,
    Plain,
    Same,
    attributes,
    is_same,
    same,
    weakref_or_none,
)

LARGEST = 1 << 22
"""Maximum number of bytes of writable arrays that a snapshot copies: a comparison takes some 0.4 ms, at 10 GB/s. Arrays beyond
that are hashed at each call, which takes longer, and a warning says how to avoid that."""
MOST = 10_000
"""Maximum number of values in a snapshot."""
PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), range, np.generic, np.dtype, enum.Enum)
KNOWN_DESCRIPTORS = (types.FunctionType, types.BuiltinFunctionType, property, staticmethod, classmethod)
BY_IDENTITY = (type, types.ModuleType, *KNOWN_DESCRIPTORS)
"""Types whose objects are compared by identity only: their globals and closures are not followed."""
SEEING = frozenset({"getattr", "vars", "super", "__dict__", "locals", "eval", "exec", "dir"})
"""Names that may read attributes without naming them."""

Names = frozenset[str] | None
"""Names of attributes; None means all."""


# ---- which attributes ------------------------------------------------------------------------------------------------
def names_read(function: Callable[..., Any], owner: type) -> Names:
    """Return the attributes of its first parameter that a function may read, directly or through its methods and properties."""
    found: set[str] = set()
    waiting, seen = [function], set()
    while waiting:
        code = getattr(waiting.pop(), "__code__", None)
        if code is None:
            return None
        if code in seen:
            continue
        seen.add(code)
        own = attributes_in(code)
        if own is None:
            return None
        for name in own - found:
            found.add(name)
            waiting += codes_behind(class_attribute(owner, name))
    return frozenset(found)


def attributes_in(code: types.CodeType) -> Names:
    """Return the attributes of the first parameter that the code names; None if the code uses the parameter in another way."""
    if not code.co_argcount or SEEING & set(code.co_names):
        return None
    first, found = code.co_varnames[0], set()
    if first in code.co_cellvars:
        return None
    instructions = list(dis.get_instructions(code))
    for instruction, behind in zip(instructions, [*instructions[1:], None]):
        if instruction.argval != first and not (isinstance(instruction.argval, tuple) and first in instruction.argval):
            continue
        if not instruction.opname.startswith("LOAD_FAST") or isinstance(instruction.argval, tuple) or behind is None:
            return None
        if behind.opname not in ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR"):
            return None
        found.add(str(behind.argval))
    return frozenset(found)


def class_attribute(owner: type, name: str) -> Any:
    return next((c.__dict__[name] for c in owner.__mro__ if name in c.__dict__), None)


def codes_behind(value: Any) -> list[Any]:
    """Return the functions that run, with the object, when an attribute of its class is read."""
    match value:
        case types.FunctionType():
            return [value]
        case property(fget=function) | functools.cached_property(func=function) | classmethod(__func__=function):
            return [function]
        case _ if is_ours(value) and callable(getattr(value, "function", None)):  # jitted
            return [value.function]
        case _:
            return []


# ---- what they are ---------------------------------------------------------------------------------------------------
class Snapshot:
    """The values of an object's attributes at one time. `names` are the attributes that count; None means all."""
    most = MOST

    def __init__(self, owner: object, names: Names) -> None:
        self.names = names
        self.left, self.nbytes = self.most, 0
        self.kept = {path: self._taken(path, value, {id(owner)}) for path, value in self._values(owner).items()}

    def place(self, path: str) -> str:
        """Return the name of a value's path, for messages."""
        return f"attribute {path} of the object"

    def take_cached(self, owner: object) -> None:
        """Add the cached properties that have been computed since."""
        classes = owner if isinstance(owner, type) else type(owner)
        for name, value in self._values(owner).items():
            if value is not MISSING and isinstance(class_attribute(classes, name), functools.cached_property) and (
                    is_same(self.kept.get(name), MISSING, set())):
                self.kept[name] = self._taken(name, value, {id(owner)})

    def matches(self, owner: object) -> bool:
        """True if the attributes have the same values now."""
        values = self._values(owner)
        return values.keys() == self.kept.keys() and all(
            is_same(self.kept[name], value, {id(owner)}) for name, value in values.items())

    def _values(self, owner: object) -> dict[str, Any]:
        """Return the attributes by name, with those of the class that the object does not have itself."""
        classes = owner if isinstance(owner, type) else type(owner)
        if self.names is None:
            own = attributes(owner)
            shared = {n: v for c in reversed(classes.__mro__[:-1]) for n, v in c.__dict__.items() if is_value(n, v)}
            return shared | ({} if classes is owner else {n: v for n, v in own.items() if is_value(n, v)})
        held = {} if classes is owner else getattr(owner, "__dict__", {})
        return {n: held[n] if n in held else inherited(owner, classes, n) for n in self.names}

    def _taken(self, path: str, value: Any, around: set[int]) -> Any:
        self.left -= 1
        if self.left < 0:
            raise ValueProblem(f"{self.place(path)} is one of more than {MOST:,} values that are read", kind="argument",
                               help="pass what changes as arguments, or keep it in arrays")
        match value:
            case _ if id(value) in around:
                return Same(None)
            case _ if isinstance(value, PLAIN):
                return Plain(value)
            case _ if isinstance(value, BY_IDENTITY) or is_ours(value):
                return same(value)
            case types.MethodType():
                return Bound(value.__func__, self._taken(f"{path}.__self__", value.__self__, around))
            case list() | tuple() | dict() if is_more_than_its_items(value):
                return self._refused(path, value)
            case list() | tuple():
                inside = {*around, id(value)}
                return Nest(type(value), tuple(self._taken(f"{path}[{i}]", v, inside) for i, v in enumerate(value)))
            case dict():
                inside = {*around, id(value)}
                return Keyed(type(value), {k: self._taken(f"{path}[{k!r}]", v, inside) for k, v in value.items()})
            case set() | frozenset():
                return Members(value) if all(isinstance(v, PLAIN) for v in value) else self._refused(path, value)
            case _ if has_memory(value) or hasattr(value, "__array__"):
                return self._array(path, value)
            case _ if is_python_object(value):
                held = attributes(value)
                return Held(weakref_or_none(value), type(value),
                            {n: self._taken(f"{path}.{n}", v, {*around, id(value)}) for n, v in held.items()})
            case _:
                return self._refused(path, value)

    def _array(self, path: str, value: Any) -> Any:
        try:
            array = borrowed(value) if not isinstance(value, np.ndarray) else value
        except Unreadable as error:
            raise TypeProblem(f"{self.place(path)} is {class_of(value)} that cannot be read: {error}",
                              kind="argument", help=error.help) from error
        if isinstance(value, np.ndarray) and is_read_only(value):
            return same(value)
        self.nbytes += array.nbytes
        if self.nbytes <= LARGEST:
            return Contents(type(value), np.array(array, order="C"))
        warnings.warn(f"{self.place(path)} is an array of {array.nbytes:,} bytes that may be written, so that each call reads "
                      "all of it: make it read-only, array.setflags(write=False), or pass it as an argument", RuntimeWarning,
                      stacklevel=caller_level())
        return Hashed(type(value), array)

    def _refused(self, path: str, value: Any) -> Any:
        raise TypeProblem(printable(f"{self.place(path)} is {class_of(value)}, and whether that changes "
                                    "between calls cannot be seen"), kind="argument",
                          help="pass it as an argument, or read what the method needs of it into numbers, arrays, tuples or "
                               "objects of Python classes")


def is_ours(value: object) -> bool:
    """True for objects that tosaic makes: variables, jitted functions, models, contexts."""
    return type(value).__module__.split(".")[0] == __name__.split(".")[0]


def is_read_only(array: np.ndarray[Any, Any]) -> bool:
    """True if nobody can write to the array's memory, as far as NumPy knows."""
    while not array.flags.writeable:
        if not isinstance(array.base, np.ndarray):
            return array.base is None
        array = array.base
    return False


def is_value(name: str, value: object) -> bool:
    """True if an attribute is no part of the class's own machinery."""
    return not (name.startswith("__") and name.endswith("__")) and not hasattr(type(value), "__get__")


def inherited(owner: object, classes: type, name: str) -> Any:
    """Return an attribute that an object has from its class: the class's value, or the result of an unknown descriptor or
    `__getattr__`."""
    found = class_attribute(classes, name)
    if isinstance(found, functools.cached_property):  # not computed yet
        return MISSING
    if found is not None and (isinstance(found, KNOWN_DESCRIPTORS) or is_ours(found) or not hasattr(type(found), "__get__")):
        return found
    return getattr(owner, name, MISSING)


def is_more_than_its_items(value: Any) -> bool:
    """True if a container's class has attributes of its own."""
    return type(value) not in (list, tuple, dict) and bool(attributes(value))


def is_python_object(value: object) -> bool:
    """True if the value's class is written in Python, down to `object`, so that its attributes are all that it holds. An object
    of a class in C is larger than its attributes."""
    if type(value) is types.SimpleNamespace:
        return True
    classes = type(value).__mro__[:-1]
    slots = sum(len(names) if isinstance(names := c.__dict__.get("__slots__", ()), tuple | list) else 1 for c in classes)
    return all(c.__flags__ & HEAP_TYPE for c in classes) and (
        type(value).__basicsize__ <= object.__basicsize__ + np.dtype(np.intp).itemsize * (slots + 2))


HEAP_TYPE = 1 << 9
"""CPython's flag of classes that are created at run time."""
