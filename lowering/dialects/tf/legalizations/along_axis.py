"""Operations along one axis that is known at compile time: indices of extremes, running sums and products, the k greatest."""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .....runtime.errors import require
from ....formulas.ordering import moved, ranks
from ....formulas.term import Term
from ....formulas.working_types import working_type
from ....graph.foreign import flag
from ....graph.graph import Operation, Value
from ....graph.types import I1, I32, I64
from ...emitter import Emitter, axes_of, integers
from .constants import result_element
from .table import legalization


def one_axis(axis: Value, rank: int) -> int:
    found = axes_of(axis, rank, "the axis")
    require(len(found) == 1, f"it takes one axis, not {len(found)}", kind="shape")
    return found[0]


# ---- indices of extremes -----------------------------------------------------------------------------------------
@legalization("tf.ArgMax")
def arg_max(e: Emitter, operation: Operation, x: Value, axis: Value) -> Value:
    return place(e, operation, ordered(e, x, -math.inf), axis)


@legalization("tf.ArgMin")
def arg_min(e: Emitter, operation: Operation, x: Value, axis: Value) -> Value:
    """Return the index of the greatest element in the reversed order."""
    numbers = ordered(e, x, math.inf)
    is_float = numbers.tensor.element.is_float
    return place(e, operation, (-Term(e, numbers)).value if is_float else e("bitwise_not", numbers), axis)


def ordered(e: Emitter, x: Value, instead: float) -> Value:
    """Return x in a form that TOSA's argmax takes; a NaN is chosen only if all elements are NaN."""
    element = x.tensor.element
    if element.is_float:
        return e.select(e.arithmetic("equal", x, x), x, e.splat(instead, x))
    return e.cast(x, I32) if element == I1 or element.kind == "unsigned" else x


def place(e: Emitter, operation: Operation, x: Value, axis: Value) -> Value:
    """Return the first index of the greatest number."""
    wanted = result_element(operation, I64)
    along = one_axis(axis, x.tensor.rank)
    require(x.tensor.dims[along] > 0, f"axis {along} of {x.type} has no element", kind="shape")
    return e.cast(e("argmax", x, axis=along, to=wanted if wanted in (I32, I64) else I32), wanted)


# ---- running sums ------------------------------------------------------------------------------------------------
def running(name: str, combine: Callable[[Emitter, Value, Value], Value], neutral: int) -> None:
    @legalization(name)
    def emit(e: Emitter, operation: Operation, x: Value, axis: Value) -> Value:
        element, along = x.tensor.element, one_axis(axis, x.tensor.rank)
        extent, reverse = x.tensor.dims[along], flag(operation, "reverse")
        found = e.cast(x, working_type(element, True, True))
        if flag(operation, "exclusive"):
            found = moved(e, found, along, 1, neutral, reverse)
        distance = 1
        while distance < extent:
            found = combine(e, found, moved(e, found, along, distance, neutral, reverse))
            distance *= 2
        return e.cast(found, element)


running("tf.Cumsum", Emitter.sum, 0)
running("tf.Cumprod", Emitter.product, 1)


# ---- the k greatest ----------------------------------------------------------------------------------------------
@legalization("tf.TopKV2")
def top_k(e: Emitter, operation: Operation, x: Value, k: Value) -> tuple[Value, Value]:
    """Compute the rank of each element: the number of greater elements, and of equal ones with a lower index. The element of
    rank r goes to index r. All pairs are compared, so that the work is the square of the extent."""
    type, (count,) = x.tensor, integers(k, "the number of elements")
    require(type.rank > 0 and 0 < count <= type.dims[-1], f"{type} has no {count} elements along its last axis", kind="shape")
    rows, extent = math.prod(type.dims[:-1]), type.dims[-1]
    flat = e.cast(e.reshape(x, (rows, extent)), working_type(type.element, True, True))
    rank = ranks(e, flat)
    place = e.constant(np.arange(extent, dtype=np.int32).reshape(1, 1, extent))
    wanted = e.constant(np.arange(count, dtype=np.int32).reshape(1, count, 1))
    here = e("equal", e.reshape(rank, (rows, 1, extent)), wanted)
    places = e.reshape(e("reduce_max", e.select(here, place, e.splat(0, place)), axis=2), (rows, count))
    values = e("gather", e.reshape(flat, (rows, extent, 1)), places)
    dims = (*type.dims[:-1], count)
    return e.cast(e.reshape(values, dims), type.element), e.cast(e.reshape(places, dims), result_element(operation, I32, 1))


