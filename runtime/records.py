"""`dataclass` as in the standard library, with its methods compiled on the first call: compiling all of them takes longer than
the rest of importing a module, and most are never called. For modules that every start needs, and for the compiler's.

It supports the library's options that are used here. Differences: `inspect.signature` of a class shows no fields, and a class
that inherits from such a class must be one, too.
"""
from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    def dataclass(**options: bool) -> Callable[[type], type]:
        """Make a class a dataclass; `frozen`, `slots`, `weakref_slot`, `eq` and `repr` are the library's."""
        return lambda cls: completed(cls, **options)


def completed(cls: type, frozen: bool = False, slots: bool = False, weakref_slot: bool = False, eq: bool = True,
              repr: bool = True) -> type:
    """Return the class with the attributes of a dataclass."""
    own = cls.__dict__
    has_hash = own.get("__hash__") is not None or ("__hash__" in own and "__eq__" not in own)
    names = ["__init__", *(["__repr__"] if repr else []), *(["__eq__"] if eq else []),
             *(["__hash__"] if eq and frozen and not has_hash else [])]
    wanted = [name for name in names if name == "__hash__" or name not in own]
    cls.__doc__ = cls.__doc__ or cls.__name__
    with thawed(cls, frozen):
        cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, weakref_slot=weakref_slot)(cls)
    for name in wanted:
        setattr(cls, name, later(cls, name, frozen))
    if eq and not frozen and not has_hash:
        cls.__hash__ = None  # type: ignore[assignment]
    if frozen:
        freeze(cls)
        cls.__dataclass_params__.frozen = True  # type: ignore[attr-defined]
    return cls


@contextmanager
def thawed(cls: type, frozen: bool) -> Iterator[None]:
    """Let the library treat the class as not frozen, so that it compiles nothing; its bases must be so, too."""
    bases = [b.__dict__["__dataclass_params__"] for b in cls.__mro__[1:] if "__dataclass_params__" in b.__dict__]
    if bases and frozen != any(b.frozen for b in bases):
        raise TypeError(f"{cls.__name__} and the dataclass that it inherits from are frozen, or neither is")
    for base in bases:
        base.frozen = False
    try:
        yield
    finally:
        for base in bases:
            base.frozen = frozen


def later(cls: type, name: str, frozen: bool) -> Callable[..., Any]:
    """Return a method that creates the method of that name, and is replaced by it."""
    def method(self: Any, *values: Any, **named: Any) -> Any:
        made = METHODS[name](cls, frozen)
        setattr(cls, name, made)
        return made(self, *values, **named)
    method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
    return method


def freeze(cls: Any) -> None:
    """Forbid setting and deleting fields; copies and pickles still set them."""
    fields = frozenset(f.name for f in dataclasses.fields(cls))

    def set_field(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in fields:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_field(self: Any, name: str) -> None:
        if type(self) is cls or name in fields:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__, cls.__getstate__ = set_field, delete_field, state
    if "__setstate__" not in cls.__dict__:
        cls.__setstate__ = set_state


class Repeated(NamedTuple):
    """The pickled form of an array whose elements repeat along an axis without separate storage (a splat): NumPy's own pickle
    would write each of them."""
    once: Any
    shape: tuple[int, ...]

    def array(self) -> Any:
        import numpy
        return numpy.broadcast_to(self.once, self.shape)


def state(self: Any) -> list[Any]:
    """Return the fields' values for a copy or a pickle."""
    return [portable(getattr(self, f.name)) for f in dataclasses.fields(self)]


def portable(value: Any) -> Any:
    if type(value).__name__ != "ndarray" or 0 not in value.strides or value.size <= 1:
        return value
    once = value[tuple(slice(0, 1) if step == 0 else slice(None) for step in value.strides)]
    return Repeated(once, value.shape)


def set_state(self: Any, values: list[Any]) -> None:
    for f, value in zip(dataclasses.fields(self), values):
        object.__setattr__(self, f.name, value.array() if isinstance(value, Repeated) else value)


def set_constant_state(self: Any, values: list[Any]) -> None:
    """Set the state of an object with arrays that must be read-only: those of a pickle could be written."""
    for value in values:
        if type(value).__name__ == "ndarray":
            value.flags.writeable = False
    set_state(self, values)


# ---- methods -------------------------------------------------------------------------------------------------------
def function(cls: type, name: str, parameters: list[str], lines: list[str], known: dict[str, Any]) -> Callable[..., Any]:
    """Return a function of these lines, in which the names `known` are defined."""
    made: dict[str, Any] = {}
    text = f"def {name}({', '.join(['self', *parameters])}):\n" + "\n".join(f" {line}" for line in lines or ["pass"])
    exec(text, {"__name__": cls.__module__, **known}, made)
    result: Callable[..., Any] = made[name]
    result.__qualname__ = f"{cls.__qualname__}.{name}"
    return result


def init(cls: Any, frozen: bool) -> Callable[..., Any]:
    """Return the method that sets the fields, in their order. The descriptors of a frozen class's own slots set them, which is
    faster."""
    parameters, lines = list[str](), list[str]()
    known: dict[str, Any] = {"_set": object.__setattr__, "_none": dataclasses.MISSING}
    for f in dataclasses.fields(cls):
        parameter, value = parameter_of(f, known)
        parameters += parameter
        slot: Any = getattr(cls, f.name, None)
        if frozen and type(slot).__name__ == "member_descriptor":
            known[f"_set_{f.name}"] = slot.__set__
            lines += [f"_set_{f.name}(self, {v})" for v in value]
        else:
            lines += [f"_set(self, {f.name!r}, {v})" if frozen else f"self.{f.name} = {v}" for v in value]
    lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    return function(cls, "__init__", parameters, lines, known)


def parameter_of(f: dataclasses.Field[Any], known: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the parameter of a field, and the expression of its value; names in them are added to `known`."""
    default = f"_default_{f.name}"
    if f.default_factory is not dataclasses.MISSING:
        known[default] = f.default_factory
        made = f"{default}()"
        return ([f"{f.name}=_none"], [f"{made} if {f.name} is _none else {f.name}"]) if f.init else ([], [made])
    if f.default is not dataclasses.MISSING:
        known[default] = f.default
        return ([f"{f.name}={default}"], [f.name]) if f.init else ([], [default])
    return ([f.name], [f.name]) if f.init else ([], [])


def equals(cls: Any, frozen: bool) -> Callable[..., Any]:
    names = [f.name for f in dataclasses.fields(cls) if f.compare]
    one, other = ("".join(f"{who}.{name}, " for name in names) for who in ("self", "other"))
    return function(cls, "__eq__", ["other"], ["if other.__class__ is self.__class__:", f" return ({one}) == ({other})",
                                               "return NotImplemented"], {})


def hashed(cls: Any, frozen: bool) -> Callable[..., Any]:
    names = [f.name for f in dataclasses.fields(cls) if (f.compare if f.hash is None else f.hash)]
    return function(cls, "__hash__", [], [f"return hash(({''.join(f'self.{name}, ' for name in names)}))"], {})


def shown(cls: Any, frozen: bool) -> Callable[..., Any]:
    names = [f.name for f in dataclasses.fields(cls) if f.repr]

    @reprlib.recursive_repr()
    def text(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"
    return text


def shown_changes(self: Any) -> str:
    """Return a `__repr__` that leaves out the fields with their default values."""
    def is_default(f: dataclasses.Field[Any]) -> bool:
        default = f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default
        value = getattr(self, f.name)
        return value is default or (type(value) is type(default) and bool(value == default))

    given = [f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr and not is_default(f)]
    return f"{type(self).__qualname__}({', '.join(given)})"


METHODS: dict[str, Callable[[Any, bool], Callable[..., Any]]] = {
    "__init__": init, "__eq__": equals, "__hash__": hashed, "__repr__": shown}
