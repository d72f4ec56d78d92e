"""Reductions along axes that are known at compile time: Sum, Mean, Max, Min, Prod, All, Any, EuclideanNorm, L2Loss.

TOSA reduces one axis, which stays with extent 1. Adjacent axes are merged first, which costs nothing.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .....runtime.errors import require
from ....formulas.division import divided, square_root
from ....formulas.reductions import OneAxis, greatest, least, operator, reduced, reduced_product, type_of_sum
from ....formulas.term import Term
from ....formulas.working_types import working_type
from ....graph.foreign import flag
from ....graph.graph import Operation, Value
from ....graph.types import I1
from ...emitter import Emitter, axes_of
from .table import legalization


def distinct_axes(axis: Value, x: Value) -> tuple[int, ...]:
    found = axes_of(axis, x.tensor.rank, "the axes of a reduction")
    require(len(set(found)) == len(found), f"axes {list(found)} of a tensor of rank {x.tensor.rank}: one is there twice",
            kind="shape")
    return found


def result_dims(operation: Operation, dims: Sequence[int], axes: Sequence[int]) -> list[int]:
    """Return the extents of the result of the whole operation, which keeps the axes only with `keep_dims`."""
    keep = flag(operation, "keep_dims")
    return [1 if axis in axes else n for axis, n in enumerate(dims) if keep or axis not in axes]


# ---- operations --------------------------------------------------------------------------------------------------
def reduction(name: str, one: OneAxis, empty: Callable[[Value], float], native: int = 32) -> None:
    """Register a reduction. Half floats are reduced in f32, integers of fewer than `native` bits in i32; bools are refused."""
    @legalization(name)
    def emit(e: Emitter, operation: Operation, x: Value, axis: Value) -> Value:
        element = x.tensor.element
        working = working_type(element, True, True)
        working = element if element.kind == "signed" and element.bits >= native else working
        axes = distinct_axes(axis, x)
        found = reduced(e, e.cast(x, working), axes, one, empty(x))
        return e.reshape(e.cast(found, element), result_dims(operation, x.tensor.dims, axes))


reduction("tf.Sum", operator("reduce_sum"), lambda x: 0)
reduction("tf.Prod", reduced_product, lambda x: 1)
reduction("tf.Max", operator("reduce_max"), least, native=8)
reduction("tf.Min", operator("reduce_min"), greatest, native=8)


def logical(name: str, one: OneAxis, empty: bool) -> None:
    @legalization(name)
    def emit(e: Emitter, operation: Operation, x: Value, axis: Value) -> Value:
        require(x.tensor.element == I1, f"it takes bools, not {x.tensor.element}")
        axes = distinct_axes(axis, x)
        return e.reshape(reduced(e, x, axes, one, empty), result_dims(operation, x.tensor.dims, axes))


logical("tf.All", operator("reduce_all"), True)
logical("tf.Any", operator("reduce_any"), False)


@legalization("tf.Mean")
def mean(e: Emitter, operation: Operation, x: Value, axis: Value) -> Value:
    """Return the sum divided by the number of elements. A sum of integers has 64 bits, and the quotient truncates."""
    element, axes = x.tensor.element, distinct_axes(axis, x)
    count = math.prod(x.tensor.dims[a] for a in axes)
    if element.is_integer:
        total = reduced(e, e.cast(x, type_of_sum(element, count)), axes, operator("reduce_sum"), 0)
        found = e("intdiv", total, e.splat(max(count, 1), total))
    else:
        total = reduced(e, e.cast(x, working_type(element, True, True)), axes, operator("reduce_sum"), math.nan)
        found = divided(Term(e, total), Term(e, e.splat(count, total))).value
    return e.reshape(e.cast(found, element), result_dims(operation, x.tensor.dims, axes))


@legalization("tf.EuclideanNorm")
def euclidean_norm(e: Emitter, operation: Operation, x: Value, axis: Value) -> Value:
    element, axes = x.tensor.element, distinct_axes(axis, x)
    wide = e.cast(x, working_type(element, False, True))
    squares = reduced(e, e.product(wide, wide), axes, operator("reduce_sum"), 0)
    return e.reshape(e.cast(square_root(Term(e, squares)).value, element), result_dims(operation, x.tensor.dims, axes))


@legalization("tf.L2Loss")
def l2_loss(e: Emitter, operation: Operation, x: Value) -> Value:
    """Return half the sum of all squares."""
    wide = e.cast(x, working_type(x.tensor.element, False, True))
    found = reduced(e, e.product(wide, wide), range(x.tensor.rank), operator("reduce_sum"), 0)
    return e.cast(e.reshape(e.product(found, e.splat(0.5, found)), ()), x.tensor.element)
