"""Shapes, and elements moved: reshape, transpose, concat, split, pad, space and depth."""
from __future__ import annotations

import numpy as np

from .....runtime.errors import Problem
from ....graph.foreign import find, number, string
from ....graph.graph import Operation
from ....graph.types import Array, TensorType
from .table import reference


def integers(operation: Operation, name: str) -> list[int]:
    """Return a list of integers, empty if there is none."""
    return [int(v.value) for v in find(operation, name) or ()]


@reference("tf.Reshape")
def reshape(operation: Operation, x: Array, shape: Array) -> Array:
    return x.reshape(tuple(int(n) for n in shape))


@reference("tf.Squeeze")
def squeeze(operation: Operation, x: Array) -> Array:
    dims = integers(operation, "squeeze_dims") or integers(operation, "axis")
    return np.squeeze(x, tuple(d % x.ndim for d in dims) if dims else None)


@reference("tf.ExpandDims")
def expand_dims(operation: Operation, x: Array, axis: Array) -> Array:
    return np.expand_dims(x, int(axis.reshape(())))


@reference("tf.Transpose")
def transpose(operation: Operation, x: Array, order: Array) -> Array:
    return np.transpose(x, tuple(int(a) for a in order))


@reference("tf.InvertPermutation")
def invert_permutation(operation: Operation, order: Array) -> Array:
    return np.argsort(order).astype(order.dtype)


@reference("tf.Shape")
def shape_of(operation: Operation, x: Array) -> Array:
    return np.array(x.shape, result_dtype(operation))


@reference("tf.ShapeN")
def shapes_of(operation: Operation, *arrays: Array) -> tuple[Array, ...]:
    return tuple(np.array(x.shape, result_dtype(operation)) for x in arrays)


@reference("tf.Rank")
def rank(operation: Operation, x: Array) -> Array:
    return np.array(x.ndim, np.int32)


@reference("tf.Size")
def size(operation: Operation, x: Array) -> Array:
    return np.array(x.size, result_dtype(operation))


def result_dtype(operation: Operation) -> np.dtype[np.generic]:
    type = operation.results[0].type
    return type.element.dtype if isinstance(type, TensorType) else np.dtype(np.int32)


@reference("tf.Fill")
def fill(operation: Operation, dims: Array, value: Array) -> Array:
    return np.full(tuple(int(n) for n in dims), value, value.dtype)


@reference("tf.ZerosLike")
def zeros_like(operation: Operation, x: Array) -> Array:
    return np.zeros_like(x)


@reference("tf.OnesLike")
def ones_like(operation: Operation, x: Array) -> Array:
    return np.ones_like(x)


@reference("tf.Range")
def range_of(operation: Operation, start: Array, limit: Array, delta: Array) -> Array:
    """Return start + i * delta as element i, rounded in the type."""
    count = len(np.arange(start.item(), limit.item(), delta.item()))
    return np.asarray(start + np.arange(count).astype(start.dtype) * delta).astype(start.dtype)


@reference("tf.BroadcastTo")
def broadcast_to(operation: Operation, x: Array, shape: Array) -> Array:
    return np.broadcast_to(x, tuple(int(n) for n in shape))


@reference("tf.BroadcastArgs")
def broadcast_args(operation: Operation, a: Array, b: Array) -> Array:
    return np.array(np.broadcast_shapes(tuple(a.tolist()), tuple(b.tolist())), a.dtype)


@reference("tf.Tile")
def tile(operation: Operation, x: Array, multiples: Array) -> Array:
    return np.tile(x, tuple(int(n) for n in multiples))


@reference("tf.ConcatV2")
def concat(operation: Operation, *operands: Array) -> Array:
    *arrays, axis = operands
    return np.concatenate(arrays, int(axis))


@reference("tf.Pack")
def pack(operation: Operation, *arrays: Array) -> Array:
    return np.stack(arrays, int(number(operation, "axis")))


@reference("tf.Unpack")
def unpack(operation: Operation, x: Array) -> tuple[Array, ...]:
    axis = int(number(operation, "axis"))
    return tuple(np.take(x, i, axis) for i in range(x.shape[axis]))


@reference("tf.Split")
def split(operation: Operation, axis: Array, x: Array) -> tuple[Array, ...]:
    return tuple(np.split(x, len(operation.results), int(axis)))


@reference("tf.SplitV")
def split_v(operation: Operation, x: Array, sizes: Array, axis: Array) -> tuple[Array, ...]:
    """Split by sizes, one of which may be -1: the remainder."""
    found = [int(n) for n in sizes]
    if -1 in found:
        found[found.index(-1)] = x.shape[int(axis)] - sum(n for n in found if n >= 0)
    return tuple(np.split(x, np.cumsum(found)[:-1], int(axis)))


@reference("tf.Slice")
def slice_of(operation: Operation, x: Array, begin: Array, size: Array) -> Array:
    """Slice; a size of -1 reaches to the end."""
    return x[tuple(slice(int(b), None if n == -1 else int(b + n)) for b, n in zip(begin, size))]


@reference("tf.Pad", "tf.PadV2")
def pad(operation: Operation, x: Array, paddings: Array, *value: Array) -> Array:
    constant = value[0] if value else np.zeros((), x.dtype)
    return np.pad(x, [(int(a), int(b)) for a, b in paddings], constant_values=constant)


@reference("tf.MirrorPad")
def mirror_pad(operation: Operation, x: Array, paddings: Array) -> Array:
    mode = {"REFLECT": "reflect", "SYMMETRIC": "symmetric"}[string(operation, "mode")]
    return np.pad(x, [(int(a), int(b)) for a, b in paddings], mode=mode)  # type: ignore[call-overload]


@reference("tf.ReverseV2")
def reverse(operation: Operation, x: Array, axes: Array) -> Array:
    return np.flip(x, tuple(int(a) for a in axes)) if axes.size else x


@reference("tf.SpaceToDepth")
def space_to_depth(operation: Operation, x: Array) -> Array:
    block = int(number(operation, "block_size"))
    n, h, w, c = channels_last(operation, x).shape
    cut = channels_last(operation, x).reshape(n, h // block, block, w // block, block, c)
    return as_written(operation, cut.transpose(0, 1, 3, 2, 4, 5).reshape(n, h // block, w // block, block * block * c))


@reference("tf.DepthToSpace")
def depth_to_space(operation: Operation, x: Array) -> Array:
    block = int(number(operation, "block_size"))
    n, h, w, c = channels_last(operation, x).shape
    cut = channels_last(operation, x).reshape(n, h, w, block, block, c // (block * block))
    return as_written(operation, cut.transpose(0, 1, 3, 2, 4, 5).reshape(n, h * block, w * block, c // (block * block)))


def channels_last(operation: Operation, x: Array) -> Array:
    match find(operation, "data_format", "NHWC"):
        case "NHWC" | "NDHWC" | "":
            return x
        case "NCHW" | "NCDHW":
            return np.moveaxis(x, 1, -1)
        case other:
            raise Problem(f"the data format {other} is not known", kind="unsupported")


def as_written(operation: Operation, x: Array) -> Array:
    """Return x in the operation's own order of axes."""
    return x if find(operation, "data_format", "NHWC") in ("NHWC", "NDHWC", "") else np.moveaxis(x, -1, 1)


@reference("tf.SpaceToBatchND")
def space_to_batch(operation: Operation, x: Array, block: Array, paddings: Array) -> Array:
    blocks, count = [int(b) for b in block], len(block)
    padded = np.pad(x, [(0, 0), *((int(a), int(b)) for a, b in paddings), *[(0, 0)] * (x.ndim - 1 - count)])
    shape = [padded.shape[0]]
    for n, b in zip(padded.shape[1:], blocks):
        shape += [n // b, b]
    rest = padded.shape[1 + count:]
    cut = padded.reshape(*shape, *rest)
    inner, outer = [2 + 2 * i for i in range(count)], [1 + 2 * i for i in range(count)]
    moved = cut.transpose(*inner, 0, *outer, *range(1 + 2 * count, cut.ndim))
    outputs = [padded.shape[1 + i] // b for i, b in enumerate(blocks)]
    return moved.reshape(padded.shape[0] * int(np.prod(blocks)), *outputs, *rest)


@reference("tf.BatchToSpaceND")
def batch_to_space(operation: Operation, x: Array, block: Array, crops: Array) -> Array:
    blocks, count = [int(b) for b in block], len(block)
    batch = x.shape[0] // int(np.prod(blocks))
    cut = x.reshape(*blocks, batch, *x.shape[1:])
    order = [count]
    for i in range(count):
        order += [count + 1 + i, i]
    moved = cut.transpose(*order, *range(2 * count + 1, cut.ndim))
    whole = moved.reshape(batch, *[x.shape[1 + i] * b for i, b in enumerate(blocks)], *x.shape[1 + count:])
    inner = tuple(slice(int(a), whole.shape[1 + i] - int(b)) for i, (a, b) in enumerate(crops))
    return whole[(slice(None), *inner)]


@reference("tf.Bitcast")
def bitcast(operation: Operation, x: Array) -> Array:
    """Return narrower numbers along a new last axis, or wider ones in place of the last axis."""
    own, dtype = np.ascontiguousarray(x), result_dtype(operation)
    if dtype.itemsize < x.dtype.itemsize:
        return own.reshape(*x.shape, 1).view(dtype)
    return own.view(dtype).reshape(x.shape[:-1] if dtype.itemsize > x.dtype.itemsize else x.shape)
