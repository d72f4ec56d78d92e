"""Roundings to decimals, comparisons within a tolerance, medians and quantiles. NumPy's names."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...lowering.graph.types import F32
from .arithmetic import absolute, add, divide, less_equal, logical_and, logical_or, multiply, subtract, where
from .arithmetic import equal as equals
from .conversion import converted, tensor
from .floats import isfinite, isnan, rint, trunc
from .layout import distinct, moveaxis, reshape, stack
from .reduction import Axes, any
from .sorting import sort
from .tensor import Tensor
from .trace import problem


def round(x: Any, decimals: int = 0) -> Tensor:
    """The nearest multiple of 10**-decimals, ties to the even one."""
    x = tensor(x)
    if not x.element.is_float:
        if decimals < 0:
            raise problem(f"round of {x.type} to {decimals} decimals", "unsupported", help="convert it first: x.astype('f32')")
        return x
    if decimals == 0:
        return rint(x)
    scale = 10.0 ** abs(decimals)
    return divide(rint(multiply(x, scale)), scale) if decimals > 0 else multiply(rint(divide(x, scale)), scale)


def around(x: Any, decimals: int = 0) -> Tensor:
    """The same as `round`."""
    return round(x, decimals)


def fix(x: Any) -> Tensor:
    """x rounded toward zero."""
    return trunc(x)


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """True if a is within atol + rtol |b| of b."""
    near = less_equal(absolute(subtract(a, b)), add(multiply(absolute(b), rtol), atol))
    found = logical_or(logical_and(near, isfinite(b)), equals(a, b))
    return logical_or(found, logical_and(isnan(a), isnan(b))) if equal_nan else found


def nan_to_num(x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """x with NaN replaced by 0, and infinities by the greatest and least numbers, unless other replacements are given."""
    x = tensor(x)
    if not x.element.is_float:
        return x
    most = float(np.finfo(x.dtype).max)
    found = where(equals(x, math.inf), most if posinf is None else posinf, x)
    found = where(equals(x, -math.inf), -most if neginf is None else neginf, found)
    return where(isnan(x), nan, found)


# ---- quantiles ---------------------------------------------------------------------------------------------------
def quantile(x: Any, q: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The quantile q of the elements, interpolated linearly between two elements; NaN where one is NaN. q is a Python number,
    or a list of numbers, which adds a first axis to the result."""
    return of_each_part(q, lambda part: one_quantile(tensor(x), checked_part(part), axis, keepdims))


def of_each_part(q: Any, function: Callable[[Any], Tensor]) -> Tensor:
    """Apply a function to a number; for a list, stack the results along a new first axis, for nested lists along several."""
    if isinstance(q, list | tuple) or (isinstance(q, np.ndarray) and q.ndim):
        return stack([of_each_part(part, function) for part in q])
    return function(q)


def checked_part(q: Any) -> float:
    """Return a quantile's fraction as a float. Raise a Problem unless it is a Python number from 0 to 1."""
    if not isinstance(q, int | float | np.floating | np.integer) or not 0 <= q <= 1:
        raise problem(f"a quantile is a Python number from 0 to 1, not {q!r}", "argument")
    return float(q)


def rows_along(x: Tensor, axis: Axes) -> tuple[Tensor, tuple[int, ...]]:
    """Return the elements along some axes, or along all, as rows; and the shape of a result that keeps the axes."""
    axes = tuple(range(x.ndim)) if axis is None else distinct(axis, x.ndim)
    last = moveaxis(x, axes, range(x.ndim - len(axes), x.ndim))
    others = last.shape[:x.ndim - len(axes)]
    extent = math.prod(x.shape[a] for a in axes)
    return reshape(last, (*others, extent)), tuple(1 if a in axes else n for a, n in enumerate(x.shape))


def between(first: Tensor, second: Tensor, part: float) -> Tensor:
    """Interpolate between two numbers, as NumPy does: from the nearer one."""
    difference = subtract(second, first)
    if part >= 0.5:
        return subtract(second, multiply(difference, 1 - part))
    return add(first, multiply(difference, part))


def middle(first: Tensor, second: Tensor, part: float) -> Tensor:
    """Return the first number, or the mean of both if `part` lies between them."""
    return multiply(add(first, second), 0.5) if part else first


def one_quantile(x: Tensor, q: float, axis: Axes, keepdims: bool,
                 join: Callable[[Tensor, Tensor, float], Tensor] = between) -> Tensor:
    rows, kept = rows_along(x, axis)
    if not rows.shape[-1]:
        raise problem(f"quantile of {x.type}: there are no elements to choose from", "shape")
    rows = rows if rows.element.is_float else converted(rows, F32)
    ordered = sort(rows, -1)
    place = q * (rows.shape[-1] - 1)
    low = math.floor(place)
    found = join(ordered[..., low], ordered[..., min(low + 1, rows.shape[-1] - 1)], place - low)
    found = where(any(isnan(rows), -1), math.nan, found)
    return reshape(found, kept) if keepdims else found


def percentile(x: Any, q: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """`quantile` in percent."""
    return of_each_part(q, lambda part: quantile(x, part / 100, axis, keepdims))


def median(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The middle element, or the mean of both middle elements."""
    return one_quantile(tensor(x), 0.5, axis, keepdims, middle)


__all__ = ["around", "fix", "isclose", "median", "nan_to_num", "percentile", "quantile", "round"]
