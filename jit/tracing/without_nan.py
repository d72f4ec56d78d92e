"""Reductions that ignore NaN. NumPy's names."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...lowering.graph.types import F32, Array
from .arithmetic import add, divide, equal, multiply, subtract, where
from .conversion import converted, tensor
from .floats import isnan
from .functions import sqrt
from .layout import reshape, take
from .reduction import Axes, all, argmax, argmin, count_nonzero, max, min, prod, sum
from .running import cumprod, cumsum
from .sorting import sort, take_along_axis
from .statistics import checked_part, of_each_part, rows_along
from .tensor import Tensor
from .trace import problem


def floats(x: Any) -> Tensor:
    x = tensor(x)
    return x if x.element.is_float else converted(x, F32)


def nansum(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The sum of the elements that are not NaN."""
    return sum(where(isnan(x), 0, x), axis, keepdims)


def nanprod(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The product of the elements that are not NaN."""
    return prod(where(isnan(x), 1, x), axis, keepdims)


def nancumsum(x: Any, axis: int | None = None, *, dtype: Any = None) -> Tensor:
    """`cumsum` that treats NaN as 0."""
    return cumsum(where(isnan(x), 0, x), axis, dtype=dtype)


def nancumprod(x: Any, axis: int | None = None, *, dtype: Any = None) -> Tensor:
    """`cumprod` that treats NaN as 1."""
    return cumprod(where(isnan(x), 1, x), axis, dtype=dtype)


def number_of(x: Tensor, axis: Axes, keepdims: bool) -> Tensor:
    """Return the number of elements that are not NaN."""
    return converted(count_nonzero(equal(x, x), axis, keepdims), x.element)


def nanmean(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The mean of the elements that are not NaN; NaN if all are."""
    x = floats(x)
    return divide(nansum(x, axis, keepdims), number_of(x, axis, keepdims))


def nanvar(x: Any, axis: Axes = None, keepdims: bool = False, *, ddof: float | None = None, correction: float = 0) -> Tensor:
    """The variance of the elements that are not NaN; NaN unless there are more of them than are subtracted from their
    number."""
    x = floats(x)
    distance = subtract(x, nanmean(x, axis, True))
    count = subtract(number_of(x, axis, keepdims), float(correction if ddof is None else ddof))
    return divide(nansum(multiply(distance, distance), axis, keepdims), where(count > 0, count, math.nan))


def nanstd(x: Any, axis: Axes = None, keepdims: bool = False, *, ddof: float | None = None, correction: float = 0) -> Tensor:
    """The square root of `nanvar`."""
    return sqrt(nanvar(x, axis, keepdims, ddof=ddof, correction=correction))


# ---- extremes ----------------------------------------------------------------------------------------------------
def nanmax(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The greatest element that is not NaN; NaN if all are."""
    return without_nan(x, axis, keepdims, max, -math.inf)


def nanmin(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The least element that is not NaN; NaN if all are."""
    return without_nan(x, axis, keepdims, min, math.inf)


def without_nan(x: Any, axis: Axes, keepdims: bool, choice: Any, instead: float) -> Tensor:
    x = tensor(x)
    if not x.element.is_float:
        found: Tensor = choice(x, axis, keepdims)
        return found
    return where(all(isnan(x), axis, keepdims), math.nan, choice(where(isnan(x), instead, x), axis, keepdims))


def nanargmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the first greatest element that is not NaN; 0 if all are, where NumPy raises."""
    x = tensor(x)
    return argmax(where(isnan(x), -math.inf, x) if x.element.is_float else x, axis, keepdims)


def nanargmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the first least element that is not NaN; 0 if all are, where NumPy raises."""
    x = tensor(x)
    return argmin(where(isnan(x), math.inf, x) if x.element.is_float else x, axis, keepdims)


# ---- quantiles ---------------------------------------------------------------------------------------------------
def nanquantile(x: Any, q: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """`quantile` of the elements that are not NaN; NaN if all are."""
    x = floats(x)
    return of_each_part(q, lambda part: one_nanquantile(x, checked_part(part), axis, keepdims))


def one_nanquantile(x: Tensor, q: float, axis: Axes, keepdims: bool) -> Tensor:
    """Compute one quantile: NaN is last in a sorted row, so the quantile's index is known for each count of other elements."""
    rows, kept = rows_along(x, axis)
    extent = rows.shape[-1]
    if not extent:
        raise problem(f"nanquantile of {x.type}: there are no elements to choose from", "shape")
    place: Array = q * np.maximum(np.arange(extent + 1) - 1, 0)
    low = np.floor(place).astype(np.int32)
    high = np.minimum(low + (place > low), extent - 1).astype(np.int32)
    count, ordered = count_nonzero(equal(rows, rows), -1, True), sort(rows, -1)
    first, second = (take_along_axis(ordered, take(table, count), -1) for table in (low, high))
    part = take((place - low).astype(x.dtype), count)
    found = where(equal(first, second), first, add(first, multiply(subtract(second, first), part)))
    found = reshape(found, rows.shape[:-1])
    return reshape(found, kept) if keepdims else found


def nanpercentile(x: Any, q: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """`nanquantile` in percent."""
    return of_each_part(q, lambda part: nanquantile(x, part / 100, axis, keepdims))


def nanmedian(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The median of the elements that are not NaN; NaN if all are."""
    return nanquantile(x, 0.5, axis, keepdims)


__all__ = ["nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile",
           "nanprod", "nanquantile", "nanstd", "nansum", "nanvar"]
