"""Names that a caller gives: a function's parameters, and the name that was probably meant if the function has no such
parameter. Python's own TypeError would name internal functions instead.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from .errors import Problem, TypeProblem

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Class = TypeVar("Class")
OPTIONS = ("out", "context", "num_threads")
"""Options of every call of a compiled function besides its inputs."""


def unknown_name(function: str, kind: str, name: str, groups: Mapping[str, Sequence[str]],
                 raised: type[Problem] = TypeProblem) -> Problem:
    """Return the Problem for a name that a function does not take; `groups` are the names that it takes, by kind, `raised` is
    the problem's class."""
    every = [n for names in groups.values() for n in names]
    meant = closest(name, every)
    takes = "; ".join(f"its {what}: {', '.join(names) or 'none'}" for what, names in groups.items())
    return raised(f"{function} has no {kind} named {name}", kind="argument",
                  help=f"did you mean {meant}? {takes}" if meant else takes)


def closest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that was probably meant."""
    from difflib import get_close_matches
    found = get_close_matches(name, list(names), 1, 0.6)
    return found[0] if found else None


def missing_input(function: str, name: str, names: Sequence[str]) -> Problem:
    """Return the Problem for a call that leaves an input out."""
    return TypeProblem(f"input {name} of {function} is missing", kind="argument", help=f"its inputs: {', '.join(names)}")


def with_named(function: str, names: Sequence[str], inputs: Sequence[Any], named: Mapping[str, Any], partial: bool = False
               ) -> dict[str, Any]:
    """Return all inputs of a call by name: those in order (or one mapping), and those that are named. Unless they may be
    `partial`, raise a Problem if one is missing."""
    if len(inputs) == 1 and isinstance(inputs[0], Mapping):
        given = dict(inputs[0])
    elif len(inputs) <= len(names):
        given = dict(zip(names, inputs))
    else:
        got = " and ".join([str(len(inputs)), *([", ".join(named)] if named else [])])
        raise TypeProblem(f"{function} takes {len(names)} input{'s' * (len(names) != 1)}, got {got}", kind="argument",
                          help=f"its inputs: {', '.join(names) or 'none'}")
    for name, value in named.items():
        if name not in names:
            raise unknown_name(function, "input or option", name, {"inputs": names, "options": OPTIONS})
        if name in given:
            raise TypeProblem(f"{function} gets input {name} twice", kind="argument", help="name it, or pass it in its place")
        given[name] = value
    if len(given) < len(names) and not partial:
        raise missing_input(function, next(n for n in names if n not in given), names)
    return given


def public(name: str) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Make a function public under `name`: arguments that Python does not accept for it are a Problem."""
    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        @functools.wraps(function)
        def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
            try:
                return function(*arguments, **named)
            except TypeError as error:
                if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                    raise  # raised inside the function
                raise refused_arguments(name, function, named, str(error)) from None

        return call

    return decorate


def refused_arguments(name: str, function: Callable[..., Any], named: Iterable[str], message: str) -> Problem:
    """Return the Problem of a call that Python refuses with a message: an argument is unknown, missing, or one too many."""
    code = function.__code__  # inspect takes milliseconds, at each start
    takes = [n for n in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount] if n != "self"]
    unknown = next((n for n in named if n not in takes), None)
    if unknown is not None:
        return unknown_name(name, "option", unknown, {"options": takes})
    _, _, what = message.partition("() ")
    return TypeProblem(f"{name} is {what}" if what.startswith("missing") else f"{name} {what or message}", kind="argument",
                       help=f"its arguments: {', '.join(takes) or 'none'}")


def public_class(cls: type[Class]) -> type[Class]:
    """Make the methods and the constructor of a class public functions (`public`)."""
    for name, member in list(vars(cls).items()):
        if isinstance(member, FunctionType) and (name == "__init__" or not name.startswith("_")):
            setattr(cls, name, public(cls.__name__ if name == "__init__" else f"{cls.__name__}.{name}")(member))
    return cls


def checked_fields(name: str, cls: Any, values: Sequence[Any], named: Iterable[str], hidden: Collection[str] = ()) -> None:
    """Raise a Problem if a public dataclass called `name` is given an unknown field, more values than fields, or a field twice.
    No message shows `hidden` fields."""
    fields = [f for f in cls.__dataclass_fields__.values() if f.init]
    known = [f.name for f in fields if f.name not in hidden]
    in_order = [f.name for f in fields if not f.kw_only]
    for each in named:
        if each not in cls.__dataclass_fields__:
            raise unknown_name(name, "option", each, {"options": known})
        if each in in_order[:len(values)]:
            raise TypeProblem(f"{name} gets option {each} twice", kind="argument", help="name it, or pass it in its place")
    if len(values) > len(in_order):
        raise TypeProblem(f"{name} takes {len(in_order)} values without a name, got {len(values)}", kind="argument",
                          help=f"its options: {', '.join(known)}")
