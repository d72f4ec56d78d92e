"""Tensors sorted along an axis, and indices into sorted tensors. NumPy's names.

An element's index is the number of elements that come before it. Each is compared with each: one kernel without branches, whose
work is the square of the extent.
"""
from __future__ import annotations

import math
from typing import Any

from ...lowering.formulas.ordering import order_key, places_in_order
from ...lowering.formulas.term import Term
from ...lowering.graph.types import I32
from .arithmetic import equal, logical_not
from .conversion import axis_of, is_number, operands, tensor
from .layout import broadcast_to, moveaxis, places, reshape, take
from .reduction import any, sum
from .tensor import Tensor
from .trace import problem, recorded

KINDS = (None, "stable", "mergesort", "quicksort", "heapsort")


def order(x: Any, axis: int | None, descending: bool) -> tuple[Tensor, Tensor, int]:
    """Return the tensor, the indices that sort its rows, and the axis."""
    x = tensor(x)
    if axis is None:
        x, axis = reshape(x, -1), 0
    if not x.ndim:
        raise problem(f"{x.type} has no axis to sort along", "shape")
    place = axis_of(axis, x.ndim)
    rows = moveaxis(x, place, -1)

    def in_order(t: Term) -> Term:
        if not t.value.tensor.size:
            return t.cast(I32)
        key = order_key(t).value
        flat = t.builder.reshape(key, (math.prod(rows.shape[:-1]), rows.shape[-1]))
        return t.of(t.builder.reshape(places_in_order(t.builder, flat, descending), rows.shape))
    return x, moveaxis(recorded(in_order, rows), -1, place), place


def argsort(x: Any, axis: int | None = -1, kind: str | None = None, *, stable: bool = True, descending: bool = False) -> Tensor:
    """Indices that sort the elements along an axis, in i32. NaN comes last, equal elements keep their order; every `kind` is
    stable."""
    check_kind(kind)
    return order(x, axis, descending)[1]


def sort(x: Any, axis: int | None = -1, kind: str | None = None, *, stable: bool = True, descending: bool = False) -> Tensor:
    """The elements along an axis from the least to the greatest, or `descending`. NaN comes last."""
    check_kind(kind)
    x, places, axis = order(x, axis, descending)
    return take_along_axis(x, places, axis)


def check_kind(kind: str | None) -> None:
    if kind not in KINDS:
        raise problem(f"a sort is no {kind!r}", "argument", help=f"one of {', '.join(map(repr, KINDS[1:]))}; all are stable")


def partition(a: Any, kth: Any, axis: int | None = -1) -> Tensor:
    """The elements along an axis with those at the indices `kth` in their sorted positions; this implementation sorts all."""
    return take_along_axis(*partitioned(a, kth, axis))


def argpartition(a: Any, kth: Any, axis: int | None = -1) -> Tensor:
    """Indices of the elements in the order of `partition`, in i32."""
    return partitioned(a, kth, axis)[1]


def partitioned(a: Any, kth: Any, axis: int | None) -> tuple[Tensor, Tensor, int]:
    x, found, place = order(a, axis, False)
    if not isinstance(kth, Tensor):
        places(kth, x, place)
    return x, found, place


def lexsort(keys: Any, axis: int = -1) -> Tensor:
    """Indices that sort by the last of several keys, then by the key before it, and so on; in i32."""
    given = [tensor(key) for key in keys]
    if not given:
        raise problem("lexsort has one key or more", "argument")
    found = argsort(given[0], axis)
    for key in given[1:]:
        if key.shape != given[0].shape:
            raise problem(f"lexsort of {given[0].type} and {key.type}: their shapes differ", "shape")
        found = take_along_axis(found, argsort(take_along_axis(key, found, axis), axis), axis)
    return found


def take_along_axis(x: Any, indices: Any, axis: int | None = -1) -> Tensor:
    """Elements along an axis by indices, with indices of its own for each row. Known indices are checked, negative ones count
    from the end; all others must be within the extent."""
    x = tensor(x)
    if axis is None:
        x, axis = reshape(x, -1), 0
    place = axis_of(axis, x.ndim)
    index = places(indices, x, place)
    if index.ndim != x.ndim:
        raise problem(f"take_along_axis of {x.type} by {index.type}: their ranks differ", "shape")
    dims = [max(n, m) if 0 not in (n, m) else 0 for n, m in zip(x.shape, index.shape)]
    x = broadcast_to(x, [x.shape[place] if a == place else n for a, n in enumerate(dims)])
    index = broadcast_to(index, [index.shape[place] if a == place else n for a, n in enumerate(dims)])
    rows, columns = moveaxis(x, place, -1), moveaxis(index, place, -1)

    def taken(t: Term, i: Term) -> Term:
        e, count = t.builder, math.prod(rows.shape[:-1])
        if not i.value.tensor.size:
            return t.of(e.zeros(t.value.tensor.with_shape(i.value.tensor.dims)))
        values = e.reshape(t.value, (count, rows.shape[-1], 1))
        found = e("gather", values, e.reshape(i.value, (count, columns.shape[-1])))
        return t.of(e.reshape(found, columns.shape))
    return moveaxis(recorded(taken, rows, columns), -1, place)


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    """Indices at which to insert the elements of v into a sorted vector so that it stays sorted, in i32: before equal elements,
    or with `side` "right" after them. The search compares with all elements of the vector."""
    if side not in ("left", "right"):
        raise problem(f"the side of searchsorted is 'left' or 'right', not {side!r}", "argument")
    vector = tensor(a)
    if vector.ndim != 1:
        raise problem(f"searchsorted looks into a vector, not {vector.type}", "shape")
    if sorter is not None:
        vector = take(vector, sorter, 0)
    wanted = tensor(v, vector.element if is_number(v) else None)
    x, y = operands(vector, reshape(wanted, (*wanted.shape, 1)), operator="searchsorted")

    def is_before(t: Term, u: Term) -> Term:
        one, other = order_key(t), order_key(u)
        return one < other if side == "left" else one <= other
    return sum(recorded(is_before, x, y), -1)


def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """True for each element that is in `test_elements`."""
    x, among = tensor(element), tensor(test_elements)
    found = any(equal(reshape(x, (*x.shape, 1)), reshape(among, -1)), -1)
    return logical_not(found) if invert else found


__all__ = ["argpartition", "argsort", "isin", "lexsort", "partition", "searchsorted", "sort", "take_along_axis"]
