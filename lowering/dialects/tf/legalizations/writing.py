"""Tensors with a replaced slice, and gradients of slices: the other elements are kept, by CONCAT if the slice is a block and by
GATHER if it is not.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .....runtime.errors import Problem
from ....formulas.layout import part, reversed_axis
from ....graph.graph import Operation, Value
from ....graph.types import TensorType
from ...emitter import Emitter, integers
from .slicing import Part, low, specs, strided
from .table import legalization


@legalization("tf.TensorStridedSliceUpdate")
def strided_update(e: Emitter, operation: Operation, x: Value, begin: Value, end: Value, strides: Value, value: Value) -> Value:
    """Return x with a part of it replaced by `value`, which broadcasts."""
    parts, dims = strided(e, operation, specs(e, operation, begin, end, strides), x.tensor.dims)
    if not all(isinstance(p.start, int) for p in parts):
        raise Problem("what part is written must be known when compiling", kind="unsupported")
    inner = [p.count for p in parts]
    rows = e.reshape(e.broadcast_to(value, dims), inner)
    for axis, p in enumerate(parts):
        rows = reversed_axis(e, rows, axis) if p.step < 0 else rows
    if not all(inner):
        return x
    if all(abs(p.step) == 1 or p.count == 1 for p in parts):
        return replaced(e, x, [low(p) for p in parts], rows)
    return replaced_apart(e, x, parts, rows)


def replaced(e: Emitter, x: Value, start: Sequence[int], rows: Value) -> Value:
    """Return x with a block of it replaced, axis by axis: the elements before the block, the block, the elements after it."""
    axis = next((d for d in range(x.tensor.rank) if rows.tensor.dims[d] != x.tensor.dims[d]), None)
    if axis is None:
        return rows
    first, last = start[axis], start[axis] + rows.tensor.dims[axis]
    inside = replaced(e, part(e, x, axis, first, last), [*start[:axis], 0, *start[axis + 1:]], rows)
    return e.concat([part(e, x, axis, 0, first), inside, part(e, x, axis, last, x.tensor.dims[axis])], axis)


def replaced_apart(e: Emitter, x: Value, parts: Sequence[Part], rows: Value) -> Value:
    """Return x with non-adjacent elements replaced: each element of the result comes from x or from the rows appended to it."""
    places = np.arange(x.tensor.size, dtype=np.int32).reshape(x.tensor.dims)
    chosen = tuple(slice(low(p), low(p) + (p.count - 1) * abs(p.step) + 1, abs(p.step)) for p in parts)
    places[chosen] = x.tensor.size + np.arange(rows.tensor.size, dtype=np.int32).reshape(rows.tensor.dims)
    both = e.concat([e.reshape(x, (1, x.tensor.size, 1)), e.reshape(rows, (1, rows.tensor.size, 1))], 1)
    return e.reshape(e("gather", both, e.constant(places.reshape(1, -1))), x.tensor.dims)


@legalization("tf.StridedSliceGrad")
def strided_gradient(e: Emitter, operation: Operation, shape: Value, begin: Value, end: Value, strides: Value,
                     value: Value) -> Value:
    """Return zeros with the slice written into them."""
    zeros = e.zeros(TensorType(integers(shape, "the shape"), value.tensor.element))
    return strided_update(e, operation, zeros, begin, end, strides, value)
