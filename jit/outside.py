"""The values that a jitted function reads from outside its arguments, so that later calls detect changes.

Tracing runs Python once: a global, a closure's variable, a default, an attribute of a captured object or a static argument
becomes a constant of the code. `Outside` holds these values, with their contents (`followed`) as far as the code names them,
and with the values that the user's functions and classes among them read in turn. Functions, classes and modules of Python, of
installed packages and of tosaic are assumed not to change. Names that code only writes to (`log.append(x)`, `count += 1`) are
not followed.
"""
from __future__ import annotations

import dis
import functools
import os
import pickle
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..runtime.errors import printable
from .followed import LARGEST, PLAIN, SEEING, Snapshot, is_ours, is_python_object, is_value
from .kept_values import MISSING, attributes, is_same, same

WRITING = frozenset({"append", "appendleft", "extend", "add", "update", "insert", "write", "debug", "info", "warning", "error"})
"""Methods that modify their object, and whose result is not used."""
MAKING = frozenset({"__init__", "__new__", "__post_init__"})
"""Methods that run when an object is created."""
SELDOM = MAKING | {"__repr__", "__str__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__del__", "__copy__",
                   "__deepcopy__", "__init_subclass__", "__class_getitem__"}
"""Methods that no operator of an expression calls."""
OPAQUE = frozenset({"logging", "threading", "_thread", "weakref", "re", "contextvars", "_io", "io", "pathlib", "_pytest"})
"""Modules whose objects are assumed not to change: no number of a graph is read from them."""
OWN = tuple(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), room, "")
            for room in ("jit", "lowering", "runtime"))
PACKAGE = __name__.split(".")[0]
STANDARD = os.path.join(os.path.dirname(os.__file__), "")
Read = Callable[[], Any]


class Outside(Snapshot):
    """The current values that a function reads from outside. `static` are the values of its static arguments."""

    def __init__(self, function: Callable[..., Any], static: Mapping[str, Any]) -> None:
        super().__init__(None, frozenset())
        self.name = printable(getattr(function, "__name__", type(function).__name__))
        self.reads: frozenset[str] = frozenset()
        """All names in the reachable code: values of attributes by other names do not count."""
        before = None
        while before != self.reads:  # values reached by these names add more names
            before, self.left, self.nbytes = self.reads, self.most, 0
            self.places: list[tuple[Read, Any]] = []
            self._seen: set[Any] = set()
            if isinstance(function, types.FunctionType):
                self._inside(function)
            else:
                self._follow(self.name, lambda: function)
            for name, value in static.items():
                self._follow(name, functools.partial(itself, value))

    def is_now(self) -> bool:
        """True if all values are the same now."""
        return all(is_same(kept, read(), set()) for read, kept in self.places)

    def place(self, path: str) -> str:
        return f"{path}, which {self.name} reads from outside,"

    def _follow(self, path: str, read: Read) -> None:
        """Follow a value, which is read again at each call."""
        value = read()
        if value is not MISSING and not is_fixed(value):
            self.places.append((read, self._taken(path, value, set())))

    def _taken(self, path: str, value: Any, around: set[int]) -> Any:
        match value:
            case _ if isinstance(value, PLAIN):
                return super()._taken(path, value, around)
            case _ if is_fixed(value) or type(value).__module__.split(".")[0] in OPAQUE:
                return same(value)
            case types.FunctionType():
                self._inside(value)
                return same(value)
            case type():
                self._class(value, MAKING)
                return same(value)
            case types.ModuleType():
                self._module(path, value)
                return same(value)
            case functools.partial():
                return Parts(self._taken(path, (value.func, value.args, value.keywords), around))
            case types.MethodType():
                self._taken(path, value.__func__, around)
            case _ if is_ours(value):
                self._jitted(path, value)
                return same(value)
            case _ if is_python_object(value) and not isinstance(value, list | tuple | dict | set | frozenset | np.ndarray):
                self._class(type(value))
                return self._held(path, value, around)
        return super()._taken(path, value, around)

    def _held(self, path: str, value: Any, around: set[int]) -> Any:
        """Return a record of an object by the attributes that the code names, or by all if the code reads some without naming
        them."""
        if id(value) in around:
            return same(value)
        names = None if self.reads & SEEING else self.reads
        inside = {*around, id(value)}
        return Named(type(value), names, {n: self._taken(f"{path}.{n}", v, inside) for n, v in named(value, names).items()})

    def _refused(self, path: str, value: Any) -> Any:
        """Return a record of an object of a class in C by its pickle; raise a Problem if it has none."""
        try:
            data = pickle.dumps(value)
        except Exception:
            return super()._refused(path, value)
        self.nbytes += len(data)
        return Pickled(type(value), data) if self.nbytes <= LARGEST else super()._refused(path, value)

    def _once(self, key: Any) -> bool:
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new

    def _inside(self, function: types.FunctionType) -> None:
        """Follow the values that a function reads: its globals, its closure, its defaults."""
        if not self._once(id(function)):
            return
        code, scope = function.__code__, function.__globals__
        read = names_read(code)
        self.reads |= read.all
        for name in sorted(read.globals & scope.keys()):
            if self._once((id(scope), name)):
                self._follow(name, functools.partial(scope.get, name, MISSING))
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            if name in read.cells:
                self._follow(name, functools.partial(contents, cell))
        for name in ("__defaults__", "__kwdefaults__"):
            if getattr(function, name):
                self._follow("a default", functools.partial(getattr, function, name))

    def _class(self, owner: type, called: frozenset[str] = frozenset()) -> None:
        """Follow the functions of a user's class that the code names, that operators call, or that are `called`, and the values
        of attributes that the code names."""
        for c in owner.__mro__:
            for name, value in list(c.__dict__.items()):
                is_reached = name in self.reads or name in called or (name.startswith("__") and name not in SELDOM)
                if is_fixed(c) or not is_reached or not self._once((id(c), name)):
                    continue
                for function in functions_of(value):
                    self._inside(function)
                if is_value(name, value):
                    self._follow(f"{c.__name__}.{name}", functools.partial(own_attribute, c, name))

    def _module(self, path: str, module: types.ModuleType) -> None:
        """Follow the attributes of a user's module that the code names."""
        for name in sorted(self.reads & module.__dict__.keys()):
            if self._once((id(module.__dict__), name)):
                self._follow(f"{path}.{name}", functools.partial(module.__dict__.get, name, MISSING))

    def _jitted(self, path: str, value: Any) -> None:
        """Follow a jitted function, which becomes a part of this one."""
        method = getattr(value, "__func__", None)
        inside = getattr(value if method is None else method, "function", None)
        if isinstance(inside, types.FunctionType):
            self._inside(inside)
        if method is not None:
            self._follow(path, functools.partial(getattr, value, "__self__"))


class Pickled:
    """An object, compared by its pickle."""
    __slots__ = ("data", "type")

    def __init__(self, kind: type, data: bytes) -> None:
        self.type: Any = kind
        self.data = data

    def is_now(self, value: Any, around: set[int]) -> bool:
        return type(value) is self.type and pickle.dumps(value) == self.data


class Parts:
    """A partial: its function and its arguments."""
    __slots__ = ("parts",)

    def __init__(self, parts: Any) -> None:
        self.parts = parts

    def is_now(self, value: Any, around: set[int]) -> bool:
        return isinstance(value, functools.partial) and is_same(self.parts, (value.func, value.args, value.keywords), around)


class Named:
    """An object of a Python class: its class, and the attributes of these names."""
    __slots__ = ("items", "names", "type")

    def __init__(self, kind: type, names: frozenset[str] | None, items: Mapping[str, Any]) -> None:
        self.names, self.items = names, items
        self.type: Any = kind

    def is_now(self, value: Any, around: set[int]) -> bool:
        if type(value) is not self.type:
            return False
        held, inside = named(value, self.names), {*around, id(value)}
        return held.keys() == self.items.keys() and all(is_same(kept, held[n], inside) for n, kept in self.items.items())


def named(value: Any, names: frozenset[str] | None) -> dict[str, Any]:
    """Return the attributes of an object itself that have one of these names."""
    held = attributes(value)
    return held if names is None else {n: v for n, v in held.items() if n in names}


def itself(value: Any) -> Any:
    return value


def contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return MISSING


def own_attribute(owner: type, name: str) -> Any:
    return owner.__dict__.get(name, MISSING)


def functions_of(value: Any) -> Iterator[types.FunctionType]:
    """Yield the functions that implement an attribute of a class."""
    inside = [value, *(getattr(value, n, None) for n in ("fget", "func", "__func__", "function", "__wrapped__"))]
    return (f for f in inside if isinstance(f, types.FunctionType) and not is_fixed(f))


# ---- code ------------------------------------------------------------------------------------------------------------------
class NamesRead:
    """The globals and the closure's variables that code reads, and all names in it."""

    def __init__(self, code: types.CodeType) -> None:
        self.globals, self.cells, self.all = set[str](), set[str](), frozenset(code.co_names)
        steps = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "PRECALL", "PUSH_NULL")]
        for number, step in enumerate(steps):
            kind = (self.globals if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") else
                    self.cells if step.opname in ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF") else None)
            if kind is not None and not is_written(steps[number:number + 4]):
                kind.add(step.argval)
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType):
                found = names_read(inner)
                self.globals |= found.globals
                self.cells |= found.cells
                self.all |= found.all


@functools.lru_cache(4096)
def names_read(code: types.CodeType) -> NamesRead:
    return NamesRead(code)


def is_written(steps: list[dis.Instruction]) -> bool:
    """True if the value that the first step loads is only modified: `x.append(...)`, `x += 1`, `x[i] = ...`."""
    load, *rest = steps
    match [step.opname for step in rest]:
        case ["LOAD_METHOD" | "LOAD_ATTR", *_]:
            return rest[0].argval in WRITING
        case [_, "BINARY_OP", "STORE_GLOBAL" | "STORE_DEREF" | "STORE_NAME"]:
            return rest[2].argval == load.argval and rest[0].opname.startswith("LOAD_")
        case [_, "STORE_SUBSCR", *_]:
            return rest[0].opname.startswith("LOAD_")
        case _:
            return False


# ---- what is taken for unchanged -------------------------------------------------------------------------------------------
def is_fixed(value: Any) -> bool:
    """True for functions, classes and modules that no user has written, and for functions in C."""
    match value:
        case types.FunctionType():
            return is_installed(value.__code__.co_filename)
        case types.BuiltinFunctionType():
            return value.__self__ is None or isinstance(value.__self__, types.ModuleType | type)
        case type():
            return is_installed_module(value.__module__)
        case types.ModuleType():
            return is_installed_module(value.__name__)
        case np.ufunc() | types.MethodDescriptorType() | types.WrapperDescriptorType() | types.GenericAlias():
            return True
        case _:
            return False


def is_installed_module(name: str) -> bool:
    first, file = name.split(".")[0], getattr(sys.modules.get(name), "__file__", None)
    return name == PACKAGE or first in sys.stdlib_module_names - {"__main__"} or (file is not None and is_installed(file))


@functools.lru_cache(4096)
def is_installed(file: str) -> bool:
    parts = os.path.abspath(file).split(os.sep)
    return file.startswith("<frozen") or not {"site-packages", "dist-packages"}.isdisjoint(parts) or os.path.abspath(
        file).startswith((STANDARD, *OWN))
