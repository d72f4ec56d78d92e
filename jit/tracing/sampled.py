"""Functions known at sample points: interpolated, differentiated, integrated, unwrapped. NumPy's names. Integers become f32."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...lowering.graph.types import F16, F32
from .arithmetic import absolute, add, astype, divide, equal, greater, less, logical_and, multiply, remainder, subtract, where
from .contractions import factors
from .conversion import axis_of, converted, is_number, tensor
from .floats import isnan
from .functions import sin
from .layout import broadcast_to, concatenate, distinct, reshape, take
from .reduction import sum
from .running import cumsum, diff
from .sorting import argsort, searchsorted
from .tensor import Tensor
from .trace import problem


def floats(x: Tensor) -> Tensor:
    return x if x.element.is_float else converted(x, F32)


def between(x: Tensor, axis: int, start: int | None, stop: int | None) -> Tensor:
    """Return x[start:stop] along an axis."""
    return x[(slice(None),) * axis + (slice(start, stop),)]


# ---- between points ----------------------------------------------------------------------------------------------
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None) -> Tensor:
    """Piecewise linear interpolation of the points (xp, fp) at x. `xp` increases. Before its first point the result is `left`,
    by default the first of fp; after the last point it is `right`, by default the last of fp. With a `period` all x and xp are
    angles of that period, in any order."""
    at, known, found = (converted(floats(v), F32) if v.element == F16 else floats(v) for v in factors("interp", x, xp, fp))
    if known.ndim != 1 or known.shape != found.shape or not known.size:
        raise problem(f"interp has points {known.type} and values {found.type}: two vectors of one extent", "shape")
    if period is not None:
        at, known, found = of_period(at, known, found, period)
    count = known.size
    if count == 1:
        inside = broadcast_to(found, at.shape) if at.ndim else reshape(found, ())
    else:
        place = searchsorted(between(known, 0, 1, -1), at, "right") if count > 2 else astype(multiply(isnan(at), 0), "i32")
        start, end = take(known, place), take(known, add(place, 1))
        first, second = take(found, place), take(found, add(place, 1))
        slope = divide(subtract(second, first), subtract(end, start))
        inside = add(multiply(slope, subtract(at, start)), first)
        inside = where(isnan(inside), add(multiply(slope, subtract(at, end)), second), inside)
        inside = where(logical_and(isnan(inside), equal(first, second)), first, inside)
        inside = where(equal(at, start), first, where(equal(at, end), second, inside))
        inside = where(isnan(at), at, inside)
    inside = where(less(at, known[0]), found[0] if left is None else left, inside)
    return where(greater(at, known[-1]), found[-1] if right is None else right, inside)


def of_period(x: Tensor, points: Tensor, values: Tensor, period: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return angles within one period, and the points in order, with the last one also before them and the first one after
    them."""
    if not is_number(period) or not period:
        raise problem(f"the period of interp is a Python number other than 0, not {period!r}", "argument")
    period = abs(period)
    x, points = remainder(x, period), remainder(points, period)
    order = argsort(points)
    points, values = take(points, order), take(values, order)
    points = concatenate([subtract(points[-1:], period), points, add(points[:1], period)])
    return x, points, concatenate([values[-1:], values, values[:1]])


# ---- derivatives and integrals -----------------------------------------------------------------------------------
def gradient(f: Any, *varargs: Any, axis: int | Sequence[int] | None = None, edge_order: int = 1
             ) -> Tensor | tuple[Tensor, ...]:
    """The derivative along each axis, or the given ones, from the neighbours of each element; at both ends from those of one
    side (`edge_order` 1 or 2). After f come the distances of its elements or the vectors of their coordinates: one for all
    axes, or one for each. The result is one tensor for one axis, else a tuple."""
    x = floats(tensor(f))
    axes = tuple(range(x.ndim)) if axis is None else distinct(axis, x.ndim)
    spacings = list(varargs) or [1.0]
    if len(spacings) == 1 and np.ndim(known(spacings[0])) == 0:
        spacings *= len(axes)
    if len(spacings) != len(axes):
        raise problem(f"gradient has {len(varargs)} spacings for {len(axes)} axes", "argument")
    if edge_order not in (1, 2):
        raise problem(f"the edge_order of gradient is 1 or 2, not {edge_order!r}", "argument")
    found = tuple(derivative(x, a, h, edge_order) for a, h in zip(axes, spacings))
    return found[0] if len(found) == 1 else found


def known(value: Any) -> Any:
    """Return a value whose rank NumPy can compute: for a traced tensor an array of its shape."""
    return np.empty(value.shape) if isinstance(value, Tensor) else value


def derivative(x: Tensor, axis: int, spacing: Any, edge_order: int) -> Tensor:
    extent = x.shape[axis]
    if extent < edge_order + 1:
        raise problem(f"gradient along axis {axis} of {x.type} needs {edge_order + 1} elements or more", "shape")
    is_even = np.ndim(known(spacing)) == 0
    if is_even:
        step: Any = spacing
    else:
        places = tensor(spacing)
        if places.shape != (extent,):
            raise problem(f"gradient has coordinates {places.type} along an axis of {extent} elements", "shape")
        step = reshape(floats(diff(places)), [-1 if a == axis else 1 for a in range(x.ndim)])
    slope = divide(diff(x, axis=axis), step)
    first, last = between(slope, axis, None, 1), between(slope, axis, -1, None)
    if edge_order == 2:
        first = subtract(first, multiply(subtract(between(slope, axis, 1, 2), first), share(step, axis, is_even, 0, 1)))
        last = add(last, multiply(subtract(last, between(slope, axis, -2, -1)), share(step, axis, is_even, -1, -2)))
    if extent == 2:
        return concatenate([first, last], axis)
    before, behind = between(slope, axis, None, -1), between(slope, axis, 1, None)
    if is_even:
        middle = divide(subtract(between(x, axis, 2, None), between(x, axis, None, -2)), multiply(tensor(step, x.element), 2))
    else:
        left, right = between(step, axis, None, -1), between(step, axis, 1, None)
        middle = divide(add(multiply(before, right), multiply(behind, left)), add(left, right))
    return concatenate([first, middle, last], axis)


def share(step: Any, axis: int, is_even: bool, one: int, other: int) -> Any:
    """Return the share of a step in the sum of two neighbouring steps."""
    if is_even:
        return 0.5
    first, second = (between(step, axis, i, i + 1 or None) for i in (one, other))
    return divide(first, add(first, second))


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """The integral along an axis by the trapezoidal rule: over the coordinates x, or steps of dx."""
    values = floats(tensor(y))
    place = axis_of(axis, values.ndim)
    if x is None:
        step = dx
    else:
        step = diff(x, axis=axis if tensor(x).ndim > 1 else -1)
        if step.ndim == 1:
            step = reshape(step, [-1 if a == place else 1 for a in range(values.ndim)])
    heights = add(between(values, place, 1, None), between(values, place, None, -1))
    return sum(divide(multiply(heights, step), 2.0), place)


# ---- angles ------------------------------------------------------------------------------------------------------
def unwrap(p: Any, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi) -> Tensor:
    """Angles without jumps: where two neighbours differ by more than `discont` (half a period or more), periods are added to
    all that follow."""
    x = tensor(p)
    place = axis_of(axis, x.ndim)
    whole = isinstance(period, int) and x.element.is_integer
    x = x if whole else floats(x)
    high = period // 2 if whole else period / 2
    low, is_half = -high, not (whole and period % 2)
    step = diff(x, axis=place)
    wrapped = add(remainder(subtract(step, low), period), low)
    if is_half:
        wrapped = where(logical_and(equal(wrapped, low), greater(step, 0)), high, wrapped)
    turns = where(less(absolute(step), period / 2 if discont is None else discont), 0, subtract(wrapped, step))
    rest = add(between(x, place, 1, None), cumsum(turns, place, dtype=x.element))
    return concatenate([between(x, place, None, 1), rest], place)


def sinc(x: Any) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0."""
    angle = multiply(floats(tensor(x)), math.pi)
    return where(equal(angle, 0), 1, divide(sin(angle), angle))


__all__ = ["gradient", "interp", "sinc", "trapezoid", "unwrap"]
