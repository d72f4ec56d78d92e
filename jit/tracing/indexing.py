"""`x[...]` of a traced tensor: NumPy's basic indexing in TOSA's operators, and indexing by integer arrays.

Ints, slices with any step, None and Ellipsis become REVERSE, SLICE and RESHAPE; arrays or tensors of integers become GATHER.
Everything else is a Problem.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...lowering.formulas import layout
from ...runtime.errors import IndexProblem, TypeProblem
from .arithmetic import add, multiply
from .layout import bordered, expand_dims, flip, moveaxis, places, reshape, take
from .tensor import Tensor
from .trace import problem, recorded


def index(x: Tensor, key: Any) -> Tensor:
    """`x[key]`."""
    keys = expanded(x, key if isinstance(key, tuple) else (key,))
    arrays = [k for k in keys if is_array(k)]
    if arrays and (len(arrays) > 1 or any(isinstance(k, int | np.integer) for k in keys)):
        return at_places(x, keys)
    axis, dropped = 0, []
    for k in keys:
        if k is None:
            x = expand_dims(x, axis)
        elif is_array(k):
            rank = np.ndim(k) if not isinstance(k, Tensor) else k.ndim
            x, axis = take(x, k, axis), axis + rank - 1
        elif isinstance(k, slice):
            x = sliced(x, k, axis)
        else:
            x = sliced(x, slice(place := position(x, k, axis), place + 1, 1), axis)
            dropped.append(axis)
        axis += 1
    return reshape(x, tuple(n for a, n in enumerate(x.shape) if a not in dropped)) if dropped else x


def at_places(x: Tensor, keys: list[Any]) -> Tensor:
    """Index by several arrays, or by arrays and ints, which broadcast: merge their axes into one and compute one flat index per
    element. As in NumPy, the new axis replaces the old axes if they are neighbours, else it is the first axis."""
    axes: list[int] = []
    found: list[Tensor] = []
    for axis, k in enumerate(keys):
        if k is None:
            x = expand_dims(x, axis)
        elif isinstance(k, slice):
            x = sliced(x, k, axis)
        else:
            axes.append(axis)
            found.append(places(k if isinstance(k, Tensor) else np.asarray(k), x, axis))
    first = axes[0] if axes == list(range(axes[0], axes[-1] + 1)) else 0
    extents = [x.shape[a] for a in axes]
    number = found[0]
    for place, extent in zip(found[1:], extents[1:]):
        number = add(multiply(number, extent), place)
    x = moveaxis(x, axes, range(first, first + len(axes)))
    return take(reshape(x, (*x.shape[:first], math.prod(extents), *x.shape[first + len(axes):])), number, first)


def is_array(key: Any) -> bool:
    return isinstance(key, Tensor | np.ndarray | list)


def expanded(x: Tensor, keys: tuple[Any, ...]) -> list[Any]:
    """Return one key for each axis, keeping each None at its position."""
    for key in keys:
        dtype = key.element.kind if isinstance(key, Tensor) else np.asarray(key).dtype.kind if is_array(key) else ""
        if dtype in ("bool", "b") or isinstance(key, bool):
            raise problem("a mask would give a shape that is not known when compiling", "unsupported",
                          help="tosaic.ops.where(mask, x, 0) keeps the shape")
        if not (key is None or key is Ellipsis or is_array(key) or isinstance(key, int | np.integer | slice)):
            raise problem(f"{key!r} is no index", "argument",
                          help="an int, a slice, None, ... or one array of integers", raised=IndexProblem)
    dots = [i for i, key in enumerate(keys) if key is Ellipsis]
    used = sum(key is not None and key is not Ellipsis for key in keys)
    if used > x.ndim or len(dots) > 1:
        raise problem(f"{used} indices and {len(dots)} ellipses for {x.type}", "argument", raised=IndexProblem)
    place = dots[0] if dots else len(keys)
    return [*keys[:place], *[slice(None)] * (x.ndim - used), *keys[place + 1:]]


def position(x: Tensor, key: int, axis: int) -> int:
    """Return an int index counted from the front."""
    extent = x.shape[axis]
    if not -extent <= key < extent:
        raise problem(f"index {key} is outside axis {axis} of {x.type}", "argument", raised=IndexProblem)
    return int(key) % extent


def sliced(x: Tensor, key: slice, axis: int) -> Tensor:
    """Return `x` from start to stop along one axis."""
    if not all(v is None or isinstance(v, int | np.integer) for v in (key.start, key.stop, key.step)):
        raise problem("the bounds of a slice are ints", "unsupported",
                      help="tosaic.ops.take reads at indices that are only known when running", raised=TypeProblem)
    if key.step == 0:
        raise problem("the step of a slice is not 0", "argument")
    extent = x.shape[axis]
    start, stop, step = key.indices(extent)
    count = len(range(start, stop, step))
    if not count:
        return part(x, axis, 0, 0)
    if step < 0:
        x = flip(x, axis)
        start, step = extent - 1 - start, -step
    if step == 1 or count == 1:
        return part(x, axis, start, count)
    return strided(x, axis, start, count, step)


def part(x: Tensor, axis: int, start: int, count: int) -> Tensor:
    """Return `count` elements, beginning at `start`."""
    if count == x.shape[axis]:
        return x
    return recorded(lambda t: t.of(layout.part(t.builder, t.value, axis, start, start + count)), x)


def strided(x: Tensor, axis: int, start: int, count: int, step: int) -> Tensor:
    """Return every `step`th element: reshape to rows of `step` elements and keep one column."""
    begin = min(start, x.shape[axis] - count * step)
    if begin < 0:
        missing = start + count * step - x.shape[axis]
        x, begin = bordered(x, [(0, missing if a == axis else 0) for a in range(x.ndim)]), start
    x = part(x, axis, begin, count * step)
    before, after = x.shape[:axis], x.shape[axis + 1:]
    rows = reshape(x, (math.prod(before), count, step, math.prod(after)))
    return reshape(part(rows, 2, start - begin, 1), (*before, count, *after))
