"""Reductions along several axes. TOSA reduces one axis, which stays with extent 1. Adjacent axes are merged first, which costs
nothing.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..graph.graph import Value
from ..graph.types import I32, I64, ElementType
from .layout import part
from .tosa_builder import TosaBuilder

OneAxis = Callable[[TosaBuilder, Value, int], Value]
"""(emitter, tensor, axis) -> the tensor with extent 1 there."""


def reduced(e: TosaBuilder, x: Value, axes: Sequence[int], one: OneAxis, empty: float) -> Value:
    """Return x reduced along each of the axes, which stay with extent 1; `empty` is the result if there is no element."""
    dims = tuple(1 if axis in axes else n for axis, n in enumerate(x.tensor.dims))
    if not x.tensor.size:
        return e.constant(np.full(dims, empty, x.tensor.element.dtype), x.tensor.element)
    groups = neighbours(x.tensor.dims, axes)
    x = e.reshape(x, [n for n, _ in groups])
    for axis, (extent, is_reduced) in enumerate(groups):
        if is_reduced and extent != 1:
            x = one(e, x, axis)
    return e.reshape(x, dims)


def neighbours(dims: Sequence[int], axes: Sequence[int]) -> list[tuple[int, bool]]:
    """Return the axes of a tensor, adjacent ones merged if all or none are reduced: (extent, whether it is reduced)."""
    found: list[tuple[int, bool]] = []
    for axis, extent in enumerate(dims):
        if found and found[-1][1] == (axis in axes):
            extent *= found.pop()[0]
        found.append((extent, axis in axes))
    return found


def operator(name: str) -> OneAxis:
    """Return the reduction by one operator of TOSA."""
    return lambda e, x, axis: e(name, x, axis=axis)


def reduced_product(e: TosaBuilder, x: Value, axis: int) -> Value:
    """Return the product along an axis. TOSA has no operator for integers: multiply halves until one is left."""
    if x.tensor.element.is_float:
        return e("reduce_product", x, axis=axis)
    while (extent := x.tensor.dims[axis]) > 1:
        half = extent // 2
        found = e.product(part(e, x, axis, 0, half), part(e, x, axis, half, 2 * half))
        x = e.concat([found, part(e, x, axis, 2 * half, extent)], axis) if extent % 2 else found
    return x


def least(x: Value) -> float:
    return -math.inf if x.tensor.element.is_float else x.tensor.element.minimum


def greatest(x: Value) -> float:
    return math.inf if x.tensor.element.is_float else x.tensor.element.maximum


def type_of_sum(element: ElementType, count: int) -> ElementType:
    """Return the narrowest type in which TOSA adds that holds the sum of `count` integers of type `element`."""
    return I32 if element.bits < 32 and count << element.bits <= 1 << 31 else I64
