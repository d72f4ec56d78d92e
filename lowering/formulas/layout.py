"""Elements that keep their values and change their positions: parts, borders, reversal, axes in another order.

TOSA's tensors have six axes at most. If moving axes would need more, `rearranged` first merges those that stay together, and
moves one axis at a time if that is not enough.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...runtime.errors import require
from ..graph.graph import Value
from ..graph.types import Array
from ..graph.verify import MAXIMUM_RANK
from .tosa_builder import TosaBuilder


def rearranged(e: TosaBuilder, x: Value, dims: Sequence[int], order: Sequence[int], result: Sequence[int]) -> Value:
    """Return x viewed as `dims`, with axis order[i] of that view as axis i, viewed as `result`. Neither view needs to be a
    tensor that TOSA can have."""
    order = [d for d in order if dims[d] != 1]
    runs = together(order)
    if len(runs) > MAXIMUM_RANK:
        x = one_at_a_time(e, x, dims, order)
    elif runs and x.tensor.size:
        first = sorted(run[0] for run in runs)
        extents = {run[0]: math.prod(dims[d] for d in run) for run in runs}
        x = e.transpose(e.reshape(x, [extents[d] for d in first]), [first.index(run[0]) for run in runs])
    return e.reshape(x, result)


def together(order: Sequence[int]) -> list[list[int]]:
    """Return the axes in lists of those that are adjacent both before and after."""
    kept = sorted(order)
    runs: list[list[int]] = []
    for d in order:
        if runs and kept.index(d) == kept.index(runs[-1][-1]) + 1:
            runs[-1].append(d)
        else:
            runs.append([d])
    return runs


def one_at_a_time(e: TosaBuilder, x: Value, dims: Sequence[int], order: Sequence[int]) -> Value:
    """Return x with each axis in turn moved in front of those after it, as a transpose of four axes."""
    current = sorted(order)
    for place, d in enumerate(order):
        at = current.index(d)
        before, between, behind = (math.prod(dims[c] for c in part) for part in
                                   (current[:place], current[place:at], current[at + 1:]))
        x = e.transpose(e.reshape(x, (before, between, dims[d], behind)), (0, 2, 1, 3))
        current.insert(place, current.pop(at))
    return x


def reversed_axis(e: TosaBuilder, x: Value, axis: int) -> Value:
    return e("reverse", x, axis=axis) if x.tensor.dims[axis] > 1 and x.tensor.size else x


def part(e: TosaBuilder, x: Value, axis: int, start: int, stop: int) -> Value:
    """Return the elements from `start` to `stop` along an axis."""
    starts, sizes = [0] * x.tensor.rank, list(x.tensor.dims)
    starts[axis], sizes[axis] = start, stop - start
    return e.slice(x, starts, sizes)


def padded(e: TosaBuilder, x: Value, borders: Sequence[tuple[int, int]], value: Value | None = None) -> Value:
    """Return x with a border of a number (of rank 0; None: zero); (before, after) for each axis."""
    require(len(borders) == x.tensor.rank, f"{len(borders)} borders are given for {x.type}")
    if not any(a or b for a, b in borders):
        return x
    element = x.tensor.element
    border = e.constant(np.zeros(1, element.dtype), element) if value is None else e.reshape(value, (1,))
    if not x.tensor.size:
        return e.broadcast_to(border, [a + n + b for n, (a, b) in zip(x.tensor.dims, borders)])
    return e("pad", x, e.shape([n for pair in borders for n in pair]), border)


def taken(e: TosaBuilder, x: Value, axis: int, places: Array) -> Value:
    """Return rows, or columns, by their numbers: as slices, perhaps reversed or repeated, if these are few."""
    dims = x.tensor.dims
    if np.array_equal(places, np.arange(dims[axis])):
        return x
    found = runs(places)
    if found and len(found) <= FEW_RUNS:
        return e.concat([run(e, x, axis, *each) for each in found], axis)
    batch, inner = math.prod(dims[:axis]), math.prod(dims[axis + 1:])
    flat = e.reshape(x, (batch, dims[axis], inner))
    indices = e.constant(np.broadcast_to(places.astype(np.int32), (batch, len(places))))
    return e.reshape(e("gather", flat, indices), (*dims[:axis], len(places), *dims[axis + 1:]))


FEW_RUNS = 8
"""Maximum number of slices that are concatenated; more are gathered."""


def runs(places: Array) -> list[tuple[int, int, int]]:
    """Return indices as runs (first, count, step) that go up or down one by one, or stay."""
    found: list[tuple[int, int, int]] = []
    start, numbers = 0, places.tolist()
    while start < len(numbers) and len(found) <= FEW_RUNS:
        stop = start + 1
        step = numbers[stop] - numbers[start] if stop < len(numbers) else 1
        while abs(step) <= 1 and stop < len(numbers) and numbers[stop] - numbers[stop - 1] == step:
            stop += 1
        found.append((numbers[start], stop - start, step if stop - start > 1 else 1))
        start = stop
    return found


def run(e: TosaBuilder, x: Value, axis: int, first: int, count: int, step: int) -> Value:
    """Return the elements of one of `runs`."""
    if step == 1:
        return part(e, x, axis, first, first + count)
    if step == -1:
        return reversed_axis(e, part(e, x, axis, first - count + 1, first + 1), axis)
    return e.tile(part(e, x, axis, first, first + 1), [count if a == axis else 1 for a in range(x.tensor.rank)])


def every(e: TosaBuilder, x: Value, axis: int, start: int, count: int, step: int) -> Value:
    """Return `count` elements along an axis, `step` apart, from `start`."""
    dims = x.tensor.dims
    if step == 1 or count == 1:
        return part(e, x, axis, start, start + count)
    missing = max(start + count * step - dims[axis], 0)
    if missing:
        flat = [0] * (2 * len(dims))
        flat[2 * axis + 1] = missing
        x = e("pad", x, e.shape(flat), e.constant(np.zeros(1, x.tensor.element.dtype), x.tensor.element))
    cut = e.reshape(part(e, x, axis, start, start + count * step), (*dims[:axis], count, step, *dims[axis + 1:]))
    return e.reshape(part(e, cut, axis + 1, 0, 1), (*dims[:axis], count, *dims[axis + 1:]))
