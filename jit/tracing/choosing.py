"""Choices among several tensors, comparisons of whole tensors, functions called for parts of one tensor. NumPy's names."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ...lowering.graph.types import I1
from ...runtime.errors import Problem
from .arithmetic import astype, equal, logical_and, logical_not, logical_or, where
from .conversion import axis_of, broadcast, converted, operands, tensor
from .creation import full
from .floats import isnan
from .layout import broadcast_to, expand_dims, moveaxis, reshape, stack
from .rearranging import unstack
from .reduction import all
from .statistics import isclose
from .tensor import Tensor
from .trace import problem

MOST_CALLS = 256
"""Maximum number of calls that `apply_along_axis` writes into a graph. Chosen: each is compiled as if written out."""


# ---- choices -----------------------------------------------------------------------------------------------------
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """Return the choice of the first condition that is true, else `default`."""
    if len(condlist) != len(choicelist) or not len(condlist):
        raise problem(f"select has {len(condlist)} conditions and {len(choicelist)} choices", "argument")
    *choices, found = operands(*choicelist, default, operator="select")
    for condition, choice in reversed(list(zip(condlist, choices))):
        found = where(condition, choice, found)
    return broadcast_to(found, broadcast(*(c.shape for c in choices), *(tensor(c).shape for c in condlist), operator="select"))


def choose(a: Any, choices: Any, mode: str = "raise") -> Tensor:
    """Return for each number the element of `choices` at that index. Numbers out of range select the last choice; `mode` "clip"
    maps numbers below 0 to the first choice, "wrap" takes numbers modulo the number of choices."""
    given = operands(*choices, operator="choose")
    number = tensor(a)
    if not number.element.is_integer:
        raise problem(f"choose takes integers, not {number.type}")
    number = number % len(given) if mode == "wrap" else number
    found = given[-1]
    for i in reversed(range(len(given) - 1)):
        found = where(number <= i if i == 0 and mode == "clip" else equal(number, i), given[i], found)
    return broadcast_to(found, broadcast(number.shape, *(c.shape for c in given), operator="choose"))


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Tensor:
    """Return the function of x, or the number, of the last condition that is true. A function beyond those of the conditions
    applies to all other elements; without it they are 0. Each function is called with all of x."""
    at = tensor(x)
    if isinstance(condlist, Tensor | np.ndarray):
        condlist = [condlist] if np.ndim(condlist) <= at.ndim else list(unstack(condlist))
    elif not isinstance(condlist, list | tuple):
        condlist = [condlist]
    conditions = [astype(tensor(c, I1), I1) for c in condlist]
    if len(funclist) == len(conditions) + 1:
        conditions.append(logical_not(reduce(logical_or, conditions)))
    if len(funclist) != len(conditions):
        raise problem(f"piecewise has {len(conditions)} conditions and {len(funclist)} functions", "argument",
                      help="one function for each condition, and one more for all others")
    found = full(at.shape, 0, at.element)
    for condition, function in zip(conditions, funclist):
        piece = tensor(function(at, *args, **kw) if callable(function) else function, at.element)
        found = where(condition, converted(piece, at.element), found)
    return found


# ---- whole tensors -----------------------------------------------------------------------------------------------
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Tensor:
    """True if both have one shape and equal elements; a bool of rank 0."""
    x, y = tensor(a1), tensor(a2)
    if x.shape != y.shape:
        return full((), False)
    same = equal(a1, a2)
    return all(logical_or(same, logical_and(isnan(x), isnan(y))) if equal_nan else same)


def array_equiv(a1: Any, a2: Any) -> Tensor:
    """True if both broadcast to equal elements; a bool of rank 0."""
    try:
        broadcast(tensor(a1).shape, tensor(a2).shape)
    except Problem:
        return full((), False)
    return all(equal(a1, a2))


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """True if all elements of a are within atol + rtol |b| of b; a bool of rank 0."""
    return all(isclose(a, b, rtol, atol, equal_nan))


# ---- functions of parts ------------------------------------------------------------------------------------------
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Apply the function to each vector along an axis; the axes of its result replace that axis. The function is called, and
    compiled, for each vector, of which there may be at most 256."""
    x = tensor(arr)
    place = axis_of(axis, x.ndim)
    others = tuple(n for a, n in enumerate(x.shape) if a != place)
    rows = reshape(moveaxis(x, place, -1), (int(np.prod(others)), x.shape[place]))
    if not 0 < len(rows) <= MOST_CALLS:
        raise problem(f"apply_along_axis along axis {place} of {x.type} calls its function {len(rows)} times, not 1 to "
                      f"{MOST_CALLS}", "limit", help="write it for all vectors at once: functions of tosaic.ops have an axis")
    results = [tensor(func1d(row, *args, **kwargs)) for row in rows]
    found = reshape(stack(results), (*others, *results[0].shape))
    rank = results[0].ndim
    return moveaxis(found, range(len(others), len(others) + rank), range(place, place + rank)) if rank else found


def apply_over_axes(func: Callable[..., Any], a: Any, axes: int | Sequence[int]) -> Tensor:
    """Apply `func(x, axis)` for one axis after the other; restore an axis that the function drops, with extent 1."""
    x = tensor(a)
    rank = x.ndim
    for axis in [axes] if isinstance(axes, int | np.integer) else axes:
        place = axis_of(axis, rank)
        found = tensor(func(x, place))
        x = found if found.ndim == rank else expand_dims(found, place)
    return x


__all__ = ["allclose", "apply_along_axis", "apply_over_axes", "array_equal", "array_equiv", "choose", "piecewise", "select"]
