"""Operations on all elements along an axis: ranks, and elements moved along it."""
from __future__ import annotations

import numpy as np

from ..graph.graph import Value
from ..graph.types import F32, F64, I1, I32, I64
from .float_bits import bits
from .integers import as_ordered
from .layout import part
from .term import Term, select
from .tosa_builder import TosaBuilder, is_narrow


def order_key(x: Term) -> Term:
    """Return an i32 or i64 that has the order of x: for floats the bits, reversed for a minus sign; both zeros are equal, and a
    NaN is above all others."""
    element = x.element
    if element.is_float:
        wide = x if element in (F32, F64) else x.cast(F32)
        code = bits(wide)
        return select(wide.equals(wide), select(code < 0, code.term(code.element.minimum) - code, code), code.element.maximum)
    if element == I1 or is_narrow(element):
        return x.cast(I32)
    if element.kind != "unsigned":
        return x
    return as_ordered(x.cast(I64)) if element.bits == I64.bits else x.cast(I64)


def moved(e: TosaBuilder, x: Value, axis: int, distance: int, neutral: int, reverse: bool) -> Value:
    """Return x with each element moved by `distance` along an axis (back if `reverse`), and `neutral` in the vacated
    positions."""
    extent = x.tensor.dims[axis]
    distance = min(distance, extent)
    if distance == extent:
        return e.broadcast_to(e.splat(neutral, x), x.tensor.dims)
    kept = part(e, x, axis, distance, extent) if reverse else part(e, x, axis, 0, extent - distance)
    padding = np.zeros((x.tensor.rank, 2), np.int64)
    padding[axis, 1 if reverse else 0] = distance
    border = e.constant(np.full(1, neutral, x.tensor.element.dtype), x.tensor.element)
    return e("pad", kept, e.shape(padding.reshape(-1).tolist()), border)


def places_in_order(e: TosaBuilder, key: Value, descending: bool) -> Value:
    """Return the indices of each row's elements in sorted order, in i32; equal elements stay in their order. Each element is
    compared with each, so that the work is the square of the extent."""
    rows, extent = key.tensor.dims
    rank = ranks(e, key if descending else e("bitwise_not", key))
    place = e.constant(np.arange(extent, dtype=np.int32).reshape(1, 1, extent))
    wanted = e.constant(np.arange(extent, dtype=np.int32).reshape(1, extent, 1))
    here = e("equal", e.reshape(rank, (rows, 1, extent)), wanted)
    return e.reshape(e("reduce_max", e.select(here, place, e.splat(0, place)), axis=2), (rows, extent))


def ranks(e: TosaBuilder, x: Value) -> Value:
    """Return the number of elements before each one in its row, in sorted order, in i32; x has rows and columns."""
    rows, extent = x.tensor.dims
    one, other = Term(e, e.reshape(x, (rows, extent, 1))), Term(e, e.reshape(x, (rows, 1, extent)))
    is_earlier = one.of(e.constant(np.tri(extent, k=-1, dtype=bool).reshape(1, extent, extent)))
    before = (other > one) | (other.equals(one) & is_earlier)
    return e.reshape(e("reduce_sum", e.cast(before.value, I32), axis=2), (rows, extent))
