"""Tensors computed from a shape or from constants: fill, range, broadcasts, permutations; and operations without a static
shape, which are refused with the reason.
"""
from __future__ import annotations

import math

import numpy as np

from .....runtime.errors import Problem
from .....runtime.limits import check_tensor
from ....graph.foreign import spelling
from ....graph.graph import Operation, Value
from ...emitter import Emitter, integers, known
from .constants import result_element
from .layout import require, wrapped
from .table import legalization

DATA_DEPENDENT = (
    "Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2", "NonMaxSuppression", "NonMaxSuppressionV2", "SetDiff1D",
    "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5", "DynamicPartition", "BooleanMask", "ListDiff",
    "CombinedNonMaxSuppression", "RaggedRange", "SparseToDense")
"""Operations whose number of results' elements depends on data."""


def data_dependent(e: Emitter, operation: Operation, *operands: object) -> None:
    raise Problem(f"how many elements {spelling(operation)} gives depends on the data, not on the shapes", kind="shape",
                  help="compiled code has shapes that are known when compiling: keep all elements and a mask instead")


for name in DATA_DEPENDENT:
    legalization(f"tf.{name}")(data_dependent)


@legalization("tf.Where")
def where(e: Emitter, operation: Operation, x: Value) -> Value:
    """Return the indices of the elements of a constant that are not zero."""
    if x.constant is None:
        data_dependent(e, operation)
    return e.constant(np.argwhere(known(x, "the condition")).astype(np.int64))


# ---- broadcasts ------------------------------------------------------------------------------------------------------
@legalization("tf.BroadcastTo")
def broadcast_to(e: Emitter, operation: Operation, x: Value, shape: Value) -> Value:
    dims = integers(shape, "the shape")
    own = (1,) * (len(dims) - x.tensor.rank) + x.tensor.dims
    fits = len(own) == len(dims) and all(n in (1, m) for n, m in zip(own, dims))
    require(fits, f"{x.type} does not broadcast to {list(dims)}")
    return e.broadcast_to(x, dims)


@legalization("tf.BroadcastArgs")
def broadcast_args(e: Emitter, operation: Operation, a: Value, b: Value) -> Value:
    try:
        dims = np.broadcast_shapes(integers(a, "a shape"), integers(b, "a shape"))
    except ValueError:
        raise Problem("the shapes do not broadcast together", kind="shape") from None
    return e.constant(np.array(dims, a.tensor.element.dtype))


@legalization("tf.BroadcastGradientArgs")
def broadcast_gradient_args(e: Emitter, operation: Operation, a: Value, b: Value) -> tuple[Value, ...]:
    """Return the axes along which each of two shapes was broadcast: a gradient is summed over them. Axes of extent 1 in both
    count."""
    require(a.tensor.rank == b.tensor.rank == 1, f"shapes are lists, not {a.type} and {b.type}")
    shapes = [integers(v, "a shape") for v in (a, b)]
    rank = max(map(len, shapes))
    full = [(1,) * (rank - len(s)) + s for s in shapes]
    own, other = ([d for d in range(rank) if x[d] == 1] for x in full)
    if shapes[0] == shapes[1]:
        own = other = []
    return tuple(e.constant(np.array(axes, a.tensor.element.dtype)) for axes in (own, other))


@legalization("tf.Fill")
def fill(e: Emitter, operation: Operation, dims: Value, value: Value) -> Value:
    require(value.tensor.rank == 0, f"a tensor is filled with one number, not with {value.type}")
    return e.broadcast_to(value, integers(dims, "the shape"))


def filled_like(e: Emitter, x: Value, number: int) -> Value:
    element = x.tensor.element
    return e.broadcast_to(e.constant(np.array(number, element.dtype), element), x.tensor.dims)


@legalization("tf.ZerosLike")
def zeros_like(e: Emitter, operation: Operation, x: Value) -> Value:
    return filled_like(e, x, 0)


@legalization("tf.OnesLike")
def ones_like(e: Emitter, operation: Operation, x: Value) -> Value:
    return filled_like(e, x, 1)


# ---- sequences -------------------------------------------------------------------------------------------------------
@legalization("tf.Range")
def range_of(e: Emitter, operation: Operation, start: Value, limit: Value, delta: Value) -> Value:
    """Return start + i * delta, rounded to the type as in TensorFlow."""
    first, last, step = (known(v, f"the {what} of a range").reshape(()) for v, what in
                         ((start, "start"), (limit, "limit"), (delta, "step")))
    if not step:
        raise Problem("the step of a range is 0", kind="argument")
    count = max(0, math.ceil((last.item() - first.item()) / step.item()))
    if step.dtype.kind in "iu":
        count = max(0, -((first.item() - last.item()) // step.item()))
    check_tensor(count * step.dtype.itemsize)
    return e.constant((first + np.arange(count).astype(step.dtype) * step).astype(step.dtype), start.tensor.element)


@legalization("tf.LinSpace")
def linear_space(e: Emitter, operation: Operation, start: Value, stop: Value, num: Value) -> Value:
    count, = integers(num, "how many numbers there are")
    require(count > 0, f"{count} numbers are asked for")
    first, last = known(start, "the first number").reshape(()), known(stop, "the last number").reshape(())
    step = (last - first) / np.asarray(count - 1, first.dtype) if count > 1 else np.zeros((), first.dtype)
    check_tensor(count * first.dtype.itemsize)
    found = (first + np.arange(count).astype(first.dtype) * step).astype(first.dtype)
    if count > 1:
        found[-1] = last
    return e.constant(found, start.tensor.element)


@legalization("tf.InvertPermutation")
def invert_permutation(e: Emitter, operation: Operation, order: Value) -> Value:
    found = known(order, "the permutation")
    require(sorted(found.tolist()) == list(range(found.size)), f"{found.tolist()} is no permutation")
    return e.constant(np.argsort(found).astype(found.dtype), order.tensor.element)


@legalization("tf.ConcatOffset")
def concat_offset(e: Emitter, operation: Operation, axis: Value, *shapes: Value) -> tuple[Value, ...]:
    """Return the offset of each of several tensors in their concatenation."""
    dims = [integers(shape, "a shape") for shape in shapes]
    at, start, found = wrapped(integers(axis, "the axis")[0], len(dims[0])), 0, []
    for extents in dims:
        offset = np.zeros(len(extents), result_element(operation).dtype)
        offset[at] = start
        found.append(e.constant(offset))
        start += extents[at]
    return tuple(found)
