"""What looks at all elements along an axis: ranks, and elements moved along it."""
from __future__ import annotations

import numpy as np

from ..graph.graph import Value
from ..graph.types import I32
from .layout import part
from .term import Term
from .tosa_builder import TosaBuilder


def moved(e: TosaBuilder, x: Value, axis: int, distance: int, neutral: int, reverse: bool) -> Value:
    """x with each element `distance` places further along an axis (back if `reverse`) and `neutral` where none came."""
    extent = x.tensor.dims[axis]
    distance = min(distance, extent)
    if distance == extent:
        return e.broadcast_to(e.splat(neutral, x), x.tensor.dims)
    kept = part(e, x, axis, distance, extent) if reverse else part(e, x, axis, 0, extent - distance)
    padding = np.zeros((x.tensor.rank, 2), np.int64)
    padding[axis, 1 if reverse else 0] = distance
    border = e.constant(np.full(1, neutral, x.tensor.element.dtype), x.tensor.element)
    return e("pad", kept, e.shape(padding.reshape(-1).tolist()), border)


def ranks(e: TosaBuilder, x: Value) -> Value:
    """How many elements of its row are before each one, in i32; x has rows and columns."""
    rows, extent = x.tensor.dims
    one, other = Term(e, e.reshape(x, (rows, extent, 1))), Term(e, e.reshape(x, (rows, 1, extent)))
    is_earlier = one.of(e.constant(np.tri(extent, k=-1, dtype=bool).reshape(1, extent, extent)))
    before = (other > one) | (other.equals(one) & is_earlier)
    return e.reshape(e("reduce_sum", e.cast(before.value, I32), axis=2), (rows, extent))
