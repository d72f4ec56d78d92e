"""Borders around tensors: of one value, or of the elements themselves. NumPy's `pad`.

Modes that repeat elements are one gather along each axis, with the indices that NumPy's own `pad` computes.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...lowering.graph.types import F32
from ...runtime.errors import Problem
from . import reduction
from .arithmetic import add, divide, multiply, subtract
from .conversion import converted, tensor
from .creation import full
from .floats import floor, rint
from .layout import bordered, concatenate, flip
from .rearranging import by_places, repeat
from .statistics import median
from .tensor import Tensor
from .trace import problem

REPEATING = ("edge", "reflect", "symmetric", "wrap")
STATISTICS: Mapping[str, Callable[..., Tensor]] = {
    "maximum": reduction.max, "minimum": reduction.min, "mean": reduction.mean, "median": median}
MODES = ("constant", "empty", *REPEATING, *STATISTICS, "linear_ramp")


def pad(x: Any, width: Any, value: Any = 0, *, mode: str = "constant", constant_values: Any = None, end_values: Any = 0,
        stat_length: Any = None, reflect_type: str = "even") -> Tensor:
    """Add a border of `value`: `width` is a number, (before, after), or one such pair for each axis. `mode` is one of NumPy's:
    "constant" (or `constant_values`, in the form of `width`), "edge", "reflect", "symmetric", "wrap", "linear_ramp" to
    `end_values`, or "maximum", "minimum", "mean" or "median" of `stat_length` elements, or of all."""
    x = tensor(x)
    widths = for_each_axis(width, x.ndim)
    if min((n for pair in widths for n in pair), default=0) < 0:
        raise problem(f"pad by {[list(pair) for pair in widths]}: a border is not negative", "argument")
    if mode not in MODES or isinstance(value, str):
        raise problem(f"pad has no mode {value if isinstance(value, str) else mode!r}", "argument",
                      help=f"mode= one of {', '.join(map(repr, MODES))}")
    if mode in REPEATING:
        return repeating(x, widths, mode, reflect_type)
    if mode in STATISTICS:
        return of_statistics(x, widths, mode, stat_length)
    if mode == "linear_ramp":
        return of_ramps(x, widths, for_each_axis(end_values, x.ndim, np.float64))
    return of_constants(x, widths, value if constant_values is None or mode == "empty" else constant_values)


def for_each_axis(value: Any, rank: int, dtype: Any = np.int64) -> list[tuple[Any, Any]]:
    """Return one (before, after) for each axis from a number, a pair, or pairs, as in NumPy."""
    try:
        if isinstance(value, dict):
            found = np.zeros((rank, 2), dtype)
            for axis, pair in value.items():
                found[axis] = pair
        else:
            found = np.broadcast_to(np.asarray(value, dtype), (rank, 2))
    except Problem:
        raise
    except (ValueError, TypeError, IndexError):
        raise problem(f"pad needs a (before, after) pair for each of {rank} axes, not {value!r}", "argument") from None
    return [(before, after) for before, after in found.tolist()]


def of_constants(x: Tensor, widths: list[tuple[int, int]], value: Any) -> Tensor:
    """Pad with one value everywhere, or with one for each side."""
    if isinstance(value, list | tuple | np.ndarray) and np.size(value) > 1:
        for axis, (width, sides) in enumerate(zip(widths, for_each_axis(value, x.ndim, None))):
            borders = [full(with_extent(x, axis, n), tensor(side, x.element), x.element) for n, side in zip(width, sides)]
            x = concatenate([borders[0], x, borders[1]], axis)
        return x
    return bordered(x, widths, value) if widths else x


def with_extent(x: Tensor, axis: int, extent: int) -> tuple[int, ...]:
    return tuple(extent if a == axis else n for a, n in enumerate(x.shape))


def repeating(x: Tensor, widths: list[tuple[int, int]], mode: str, reflect_type: str) -> Tensor:
    if reflect_type != "even":
        raise problem(f"pad reflects evenly, not {reflect_type!r}", "unsupported", help="2 * x[:1] - the reflected part")
    options: Any = {"reflect_type": "even"} if mode in ("reflect", "symmetric") else {}
    for axis, width in enumerate(widths):
        if not any(width):
            continue
        if not x.shape[axis]:
            raise problem(f"pad of {x.type} along axis {axis} in mode {mode!r}: there are no elements to repeat", "shape")
        places: Any = np.pad(np.arange(x.shape[axis]), width, mode, **options)  # type: ignore[call-overload]
        x = by_places(x, axis, places)
    return x


def side(x: Tensor, axis: int, start: int | None, stop: int | None) -> Tensor:
    return x[(slice(None),) * axis + (slice(start, stop),)]


def of_statistics(x: Tensor, widths: list[tuple[int, int]], mode: str, stat_length: Any) -> Tensor:
    """Pad with a statistic of the elements at each end; integers are rounded to nearest."""
    lengths = for_each_axis(stat_length, x.ndim) if stat_length is not None else [(None, None)] * x.ndim
    for axis, (width, (first, last)) in enumerate(zip(widths, lengths)):
        if any(n is not None and n < 1 for n in (first, last)):
            raise problem(f"pad makes the {mode} of one element or more, not of {stat_length!r}", "argument")
        ends = side(x, axis, None, first), side(x, axis, None if last is None else -min(last, x.shape[axis]), None)
        found = [STATISTICS[mode](end, axis, True) for end in ends]
        borders = [converted(v if v.element == x.element or x.element.is_float else rint(v), x.element) for v in found]
        x = concatenate([repeat(borders[0], width[0], axis), x, repeat(borders[1], width[1], axis)], axis)
    return x


def of_ramps(x: Tensor, widths: list[tuple[int, int]], ends: list[tuple[Any, Any]]) -> Tensor:
    """Pad with equal steps from the end value to the element at each end; integers are rounded down."""
    for axis, (width, values) in enumerate(zip(widths, ends)):
        edges = side(x, axis, None, 1), side(x, axis, -1, None)
        borders = [ramp(edge, axis, n, value) for edge, n, value in zip(edges, width, values)]
        x = concatenate([borders[0], x, flip(borders[1], axis) if width[1] else borders[1]], axis)
    return x


def ramp(edge: Tensor, axis: int, count: int, value: float) -> Tensor:
    """Return equal steps from a value towards the edge, excluding the edge."""
    if not count:
        return side(edge, axis, 0, 0)
    steps = np.arange(count).reshape([-1 if a == axis else 1 for a in range(edge.ndim)])
    start = edge if edge.element.is_float else converted(edge, F32)
    found = add(multiply(divide(subtract(start, value), float(count)), steps), value)
    return converted(found if edge.element.is_float else floor(found), edge.element)


__all__ = ["pad"]
