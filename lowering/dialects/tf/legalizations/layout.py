"""Operations that move elements and keep their values: reshape, transpose, reverse, roll, space, depth and batch.

TOSA's tensors have six axes at most. If moving axes would need more, `rearranged` first merges axes that stay together, and
moves one axis at a time if that is not enough.
"""
from __future__ import annotations

import math

import numpy as np

from .....runtime.errors import Problem
from ....formulas.layout import padded, part, rearranged, reversed_axis
from ....graph.foreign import find, number, spelling
from ....graph.graph import Operation, Value
from ....graph.types import TensorType
from ...emitter import Emitter, axes_of, integers
from .table import legalization


def numbers(operation: Operation, name: str) -> tuple[int, ...]:
    """Return a list of integers among the properties, empty if there is none."""
    return tuple(int(v.value) for v in find(operation, name) or ())


def require(condition: bool, message: str) -> None:
    if not condition:
        raise Problem(message, kind="shape")


def wrapped(axis: int, rank: int) -> int:
    """Return an axis, counted from the last one if it is negative."""
    require(-rank <= axis < rank, f"axis {axis} is not one of a tensor of rank {rank}")
    return axis % rank


# ---- shapes ----------------------------------------------------------------------------------------------------------
@legalization("tf.Reshape")
def reshape(e: Emitter, operation: Operation, x: Value, shape: Value) -> Value:
    declared = operation.results[0].type
    if shape.constant is None and isinstance(declared, TensorType) and declared.is_static:
        dims = list(declared.dims)
    else:
        dims = list(integers(shape, "the new shape"))
    if -1 in dims:
        rest = math.prod(n for n in dims if n != -1)
        require(dims.count(-1) == 1, f"{dims} leaves more than one extent to be found")
        require(rest > 0 and x.tensor.size % rest == 0, f"{x.type} cannot be reshaped to {dims}")
        dims[dims.index(-1)] = x.tensor.size // rest
    require(all(n >= 0 for n in dims) and math.prod(dims) == x.tensor.size, f"{x.type} cannot be reshaped to {dims}")
    return e.reshape(x, dims)


@legalization("tf.Squeeze")
def squeeze(e: Emitter, operation: Operation, x: Value) -> Value:
    given = numbers(operation, "squeeze_dims") or numbers(operation, "axis")
    axes = {wrapped(a, x.tensor.rank) for a in given} or {d for d, n in enumerate(x.tensor.dims) if n == 1}
    require(all(x.tensor.dims[a] == 1 for a in axes), f"axes {sorted(axes)} of {x.type} are not all 1")
    return e.reshape(x, [n for d, n in enumerate(x.tensor.dims) if d not in axes])


@legalization("tf.ExpandDims")
def expand_dims(e: Emitter, operation: Operation, x: Value, axis: Value) -> Value:
    at, = axes_of(axis, x.tensor.rank + 1, "the axis")
    return e.reshape(x, (*x.tensor.dims[:at], 1, *x.tensor.dims[at:]))


# ---- order -----------------------------------------------------------------------------------------------------------
@legalization("tf.Transpose")
def transpose(e: Emitter, operation: Operation, x: Value, order: Value) -> Value:
    perms = axes_of(order, x.tensor.rank, "the order of the axes")
    require(sorted(perms) == list(range(x.tensor.rank)), f"{list(perms)} is no order of the axes of {x.type}")
    return e.transpose(x, perms)


@legalization("tf.ReverseV2")
def reverse(e: Emitter, operation: Operation, x: Value, axes: Value) -> Value:
    for axis in axes_of(axes, x.tensor.rank):
        x = reversed_axis(e, x, axis)
    return x


@legalization("tf.Roll")
def roll(e: Emitter, operation: Operation, x: Value, shift: Value, axis: Value) -> Value:
    for by, a in zip(integers(shift, "the shift"), axes_of(axis, x.tensor.rank), strict=True):
        cut = -by % max(x.tensor.dims[a], 1)
        x = e.concat([part(e, x, a, cut, x.tensor.dims[a]), part(e, x, a, 0, cut)], a)
    return x


# ---- space, depth and batch ------------------------------------------------------------------------------------------
def channels_first(operation: Operation) -> bool:
    """True if the data format has channels before space."""
    layout = find(operation, "data_format", "NHWC") or "NHWC"
    if layout not in ("NHWC", "NCHW"):
        raise Problem(f"the data format {layout} cannot be compiled", kind="unsupported")
    return bool(layout == "NCHW")


def block_size(operation: Operation) -> int:
    return int(number(operation, "block_size"))


@legalization("tf.SpaceToDepth")
def space_to_depth(e: Emitter, operation: Operation, x: Value) -> Value:
    require(x.tensor.rank == 4, f"{spelling(operation)} takes 4 axes, {x.type} has {x.tensor.rank}")
    b, (n, *rest) = block_size(operation), x.tensor.dims
    c, h, w = rest if channels_first(operation) else (rest[2], *rest[:2])
    require(b > 0 and h % b == 0 and w % b == 0, f"{x.type} has no whole blocks of {b} by {b}")
    if channels_first(operation):
        return rearranged(e, x, (n, c, h // b, b, w // b, b), (0, 3, 5, 1, 2, 4), (n, b * b * c, h // b, w // b))
    return rearranged(e, x, (n, h // b, b, w // b, b, c), (0, 1, 3, 2, 4, 5), (n, h // b, w // b, b * b * c))


@legalization("tf.DepthToSpace")
def depth_to_space(e: Emitter, operation: Operation, x: Value) -> Value:
    require(x.tensor.rank == 4, f"{spelling(operation)} takes 4 axes, {x.type} has {x.tensor.rank}")
    b, (n, *rest) = block_size(operation), x.tensor.dims
    c, h, w = rest if channels_first(operation) else (rest[2], *rest[:2])
    require(b > 0 and c % (b * b) == 0, f"the {c} channels of {x.type} are no whole blocks of {b} by {b}")
    d = c // (b * b)
    if channels_first(operation):
        return rearranged(e, x, (n, b, b, d, h, w), (0, 3, 4, 1, 5, 2), (n, d, h * b, w * b))
    return rearranged(e, x, (n, h, w, b, b, d), (0, 1, 3, 2, 4, 5), (n, h * b, w * b, d))


@legalization("tf.SpaceToBatchND")
def space_to_batch(e: Emitter, operation: Operation, x: Value, block: Value, paddings: Value) -> Value:
    blocks, borders = integers(block, "the block"), pairs(paddings, "the paddings")
    count = len(blocks)
    x = padded(e, x, [(0, 0), *borders, *[(0, 0)] * (x.tensor.rank - 1 - count)])
    n, *space = x.tensor.dims[:1 + count]
    rest = x.tensor.dims[1 + count:]
    require(all(b > 0 and m % b == 0 for m, b in zip(space, blocks)), f"{x.type} has no whole blocks of {list(blocks)}")
    cut = [m for s, b in zip(space, blocks) for m in (s // b, b)]
    order = [*range(2, 1 + len(cut), 2), 0, *range(1, 1 + len(cut), 2), *range(1 + len(cut), 1 + len(cut) + len(rest))]
    return rearranged(e, x, (n, *cut, *rest), order, (n * math.prod(blocks), *(s // b for s, b in zip(space, blocks)), *rest))


@legalization("tf.SpaceToBatch")
def space_to_batch_of_squares(e: Emitter, operation: Operation, x: Value, paddings: Value) -> Value:
    return space_to_batch(e, operation, x, e.constant(np.full(2, block_size(operation), np.int32)), paddings)


@legalization("tf.BatchToSpaceND")
def batch_to_space(e: Emitter, operation: Operation, x: Value, block: Value, crops: Value) -> Value:
    blocks, cuts = integers(block, "the block"), pairs(crops, "the crops")
    count, (batch, *space) = len(blocks), x.tensor.dims[:1 + len(blocks)]
    rest, product = x.tensor.dims[1 + count:], math.prod(blocks)
    require(product > 0 and batch % product == 0, f"{x.type} is no batch of blocks of {list(blocks)}")
    order = [count, *(d for i in range(count) for d in (count + 1 + i, i)), *range(2 * count + 1, 2 * count + 1 + len(rest))]
    large = [batch // product, *(s * b for s, b in zip(space, blocks)), *rest]
    x = rearranged(e, x, (*blocks, batch // product, *space, *rest), order, large)
    sizes = [n - a - b for n, (a, b) in zip(large[1:], cuts)]
    require(all(n >= 0 for n in sizes), f"{cuts} is cropped off {large}")
    starts = [0, *(a for a, _ in cuts), *[0] * len(rest)]
    return e.slice(x, starts, [large[0], *sizes, *rest])


@legalization("tf.BatchToSpace")
def batch_to_space_of_squares(e: Emitter, operation: Operation, x: Value, crops: Value) -> Value:
    return batch_to_space(e, operation, x, e.constant(np.full(2, block_size(operation), np.int32)), crops)


# ---- borders ---------------------------------------------------------------------------------------------------------
def pairs(value: Value, what: str) -> list[tuple[int, int]]:
    """Return a list of pairs that is known at compile time."""
    found = integers(value, what)
    require(all(n >= 0 for n in found), f"{what} must not be negative, they are {list(found)}")
    return list(zip(found[::2], found[1::2]))


