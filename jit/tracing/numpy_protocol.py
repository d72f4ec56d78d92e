"""NumPy's own functions called on traced tensors: `np.add(x, y)`, `np.add.reduce(x)`, `np.concatenate([x, y])`,
`np.linalg.norm(x)` dispatch to the functions of `tosaic.ops` by name, and SciPy's to those of `tosaic.ops.special`. Other
functions are refused with the reason."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...runtime.errors import Problem, TypeProblem
from .refusals import IN_PLACE, refusal
from .trace import problem


# ---- universal functions -----------------------------------------------------------------------------------------
def of_ufunc(function: np.ufunc, method: str, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Implement `__array_ufunc__`: a call, or one of the methods of a ufunc."""
    given = dict(options)
    refuse_options(f"numpy.{function.__name__}", given)
    if method in ("reduce", "accumulate", "outer"):
        from . import ufunc_methods
        return getattr(ufunc_methods, method)(named(function.__name__), function, *inputs, **given)
    if method != "__call__":
        raise problem(f"numpy.{function.__name__}.{method} cannot be traced", "unsupported",
                      help=IN_PLACE if method == "at" else "tosaic.ops.split and reductions of the parts")
    dtype = given.pop("dtype", None)
    if given:
        raise problem(f"numpy.{function.__name__} of a traced tensor takes no {', '.join(given)}", "unsupported")
    if dtype is not None:
        from .conversion import converted, element_type, tensor
        inputs = [converted(tensor(x), element_type(dtype)) for x in inputs]
    return named(function.__name__)(*inputs)


def refuse_options(name: str, given: dict[str, Any]) -> None:
    """Raise a Problem for options that would write into an array or leave elements unwritten; drop those that have no effect
    here."""
    if given.pop("out", None) is not None:
        raise problem(f"{name} with out=: a traced tensor cannot be changed", "unsupported", help="use what it returns")
    if given.pop("where", True) is not True:
        raise problem(f"{name} with where=: a traced result has all of its elements", "unsupported",
                      help="tosaic.ops.where(mask, result, x) chooses between the result and another tensor")
    for harmless in ("casting", "order", "subok", "axes"):
        if harmless != "axes":
            given.pop(harmless, None)


# ---- functions ---------------------------------------------------------------------------------------------------
def of_function(function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Implement `__array_function__`."""
    name = qualified(function)
    found = named(name)
    given = dict(options)
    if "out" in given or "where" in given:
        refuse_options(f"numpy.{name}", given)
    try:
        positional, keywords = arguments(function, found, tuple(args), given)
        return found(*positional, **keywords)
    except Problem:
        raise
    except TypeError as error:
        raise problem(f"numpy.{name} of a traced tensor: {error}", "argument",
                      f"tosaic.ops.{name}{signature(found)} has fewer options", TypeProblem) from None


def qualified(function: Callable[..., Any]) -> str:
    """Return the name of a function in `numpy`: `sum`, `linalg.norm`."""
    module = getattr(function, "__module__", "") or ""
    for part in ("linalg", "fft"):
        if module.startswith(f"numpy.{part}"):
            return f"{part}.{function.__name__}"
    return function.__name__


def named(name: str) -> Callable[..., Any]:
    """Return the function of `tosaic.ops` with that name. Raise a Problem with the reason if there is none."""
    from . import ops
    place, _, last = name.rpartition(".")
    for namespace in (getattr(ops, place, None),) if place else (ops, ops.special):
        if namespace is not None and last in namespace.__all__:
            found: Callable[..., Any] = getattr(namespace, last)
            return found
    raise refusal(name)


@cache
def signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


def arguments(function: Callable[..., Any], found: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
              ) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of NumPy's function in the form that ours takes: by name if both functions have the name, in order
    otherwise. Omit arguments that equal NumPy's defaults."""
    theirs, own = signature(function), signature(found)
    if theirs is None or own is None or any(p.kind is p.VAR_POSITIONAL for p in theirs.parameters.values()):
        return list(args), options
    bound = theirs.bind(*args, **options)
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        parameter = theirs.parameters[name]
        if parameter.kind is parameter.VAR_KEYWORD:
            keywords |= value
        elif name in own.parameters and own.parameters[name].kind is not inspect.Parameter.POSITIONAL_ONLY and (
                keywords or own.parameters[name].kind is inspect.Parameter.KEYWORD_ONLY or list(own.parameters)[
                    len(positional):len(positional) + 1] != [name]):
            keywords[name] = value
        elif parameter.default is not parameter.empty and is_default(value, parameter.default):
            continue
        elif keywords:
            keywords[name] = value
        else:
            positional.append(value)
    return positional, keywords


def is_default(value: Any, default: Any) -> bool:
    is_plain = isinstance(value, bool | int | str | None) and type(value) is type(default)
    return value is default or (is_plain and value == default)


