"""Concatenation and splitting of tensors along an axis: concat, pack, split; repetition and borders."""
from __future__ import annotations

import math
from collections.abc import Sequence

from .....runtime.errors import Problem
from ....formulas.layout import padded, part, reversed_axis
from ....graph.foreign import number, string
from ....graph.graph import Operation, Value
from ...emitter import Emitter, axes_of, integers
from .layout import pairs, require, wrapped
from .table import legalization


def check_joined(parts: Sequence[Value], axis: int) -> None:
    """Check that tensors have equal extents along the other axes."""
    first = parts[0].tensor
    for x in parts:
        others = all(n == m for d, (n, m) in enumerate(zip(x.tensor.dims, first.dims)) if d != axis)
        require(x.tensor.rank == first.rank and others and x.tensor.element == first.element,
                f"{first} and {x.type} cannot be joined along axis {axis}")


# ---- concatenation ---------------------------------------------------------------------------------------------------
@legalization("tf.ConcatV2")
def concat(e: Emitter, operation: Operation, *operands: Value) -> Value:
    *parts, axis = operands
    at, = axes_of(axis, parts[0].tensor.rank, "the axis")
    check_joined(parts, at)
    return e.concat(parts, at)


@legalization("tf.Concat")
def concat_first(e: Emitter, operation: Operation, axis: Value, *parts: Value) -> Value:
    return concat(e, operation, *parts, axis)


@legalization("tf.Pack")
def pack(e: Emitter, operation: Operation, *parts: Value) -> Value:
    return packed(e, parts, wrapped(int(number(operation, "axis")), parts[0].tensor.rank + 1))


@legalization("tf.ParallelConcat")
def parallel_concat(e: Emitter, operation: Operation, *parts: Value) -> Value:
    check_joined(parts, 0)
    return e.concat(parts, 0)


def packed(e: Emitter, parts: Sequence[Value], axis: int) -> Value:
    """Return tensors of one type stacked along a new axis."""
    check_joined(parts, -1)
    dims = parts[0].tensor.dims
    return e.concat([e.reshape(x, (*dims[:axis], 1, *dims[axis:])) for x in parts], axis)


# ---- splitting -------------------------------------------------------------------------------------------------------
def apart(e: Emitter, x: Value, sizes: Sequence[int], axis: int) -> tuple[Value, ...]:
    """Return consecutive parts of these extents."""
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(part(e, x, axis, start, start + size) for start, size in zip(starts, sizes))


@legalization("tf.Unpack")
def unpack(e: Emitter, operation: Operation, x: Value) -> tuple[Value, ...]:
    axis = wrapped(int(number(operation, "axis")), x.tensor.rank)
    count, dims = x.tensor.dims[axis], x.tensor.dims
    require(count == len(operation.results), f"axis {axis} of {x.type} has {count} elements, not {len(operation.results)}")
    return tuple(e.reshape(row, (*dims[:axis], *dims[axis + 1:])) for row in apart(e, x, [1] * count, axis))


@legalization("tf.Split")
def split(e: Emitter, operation: Operation, axis: Value, x: Value) -> tuple[Value, ...]:
    at, = axes_of(axis, x.tensor.rank, "the axis")
    count, extent = len(operation.results), x.tensor.dims[at]
    require(extent % count == 0, f"axis {at} of {x.type} cannot be split into {count} equal parts")
    return apart(e, x, [extent // count] * count, at)


@legalization("tf.SplitV")
def split_v(e: Emitter, operation: Operation, x: Value, sizes: Value, axis: Value) -> tuple[Value, ...]:
    at, = axes_of(axis, x.tensor.rank, "the axis")
    given, extent = list(integers(sizes, "the sizes of the parts")), x.tensor.dims[at]
    if given.count(-1) == 1:
        given[given.index(-1)] = extent - sum(n for n in given if n != -1)
    require(sum(given) == extent and min(given) >= 0, f"axis {at} of {x.type} cannot be split into parts of {given}")
    return apart(e, x, given, at)


# ---- repetition and borders ------------------------------------------------------------------------------------------
@legalization("tf.Tile")
def tile(e: Emitter, operation: Operation, x: Value, multiples: Value) -> Value:
    times = integers(multiples, "the multiples")
    require(len(times) == x.tensor.rank and min(times, default=0) >= 0, f"{x.type} cannot be repeated {list(times)} times")
    dims = [n * t for n, t in zip(x.tensor.dims, times)]
    if not math.prod(dims):
        return e.reshape(x, dims)
    return x if set(times) <= {1} else e("tile", x, e.shape(times))


@legalization("tf.Pad", "tf.PadV2")
def pad(e: Emitter, operation: Operation, x: Value, paddings: Value, *value: Value) -> Value:
    return padded(e, x, pairs(paddings, "the paddings"), *value)


@legalization("tf.MirrorPad")
def mirror_pad(e: Emitter, operation: Operation, x: Value, paddings: Value) -> Value:
    """Pad with mirrored elements: REFLECT repeats the elements next to the edge, SYMMETRIC the edge as well."""
    mode = string(operation, "mode")
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise Problem(f"the mode {mode} is neither REFLECT nor SYMMETRIC", kind="attribute")
    skip = int(mode == "REFLECT")
    borders = pairs(paddings, "the paddings")
    require(len(borders) == x.tensor.rank, f"{len(borders)} borders are given for {x.type}")
    for axis, (before, after) in enumerate(borders):
        n = x.tensor.dims[axis]
        require(max(before, after) <= n - skip, f"a border of {max(before, after)} is wider than axis {axis} of {x.type}")
        first = reversed_axis(e, part(e, x, axis, skip, skip + before), axis)
        last = reversed_axis(e, part(e, x, axis, n - skip - after, n - skip), axis)
        x = e.concat([first, x, last], axis)
    return x
