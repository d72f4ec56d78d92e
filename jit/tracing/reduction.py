"""Reductions of tensors along axes: sums, products, extremes, means, indices of extremes, counts. NumPy's names and meaning,
except for the types of results: where NumPy widens to its default integer or float, types stay or become i32 and f32
(`promotion`)."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...lowering.formulas import reductions
from ...lowering.formulas import softmax as formulas
from ...lowering.formulas.integers import as_ordered
from ...lowering.formulas.ordering import order_key
from ...lowering.formulas.reductions import OneAxis
from ...lowering.formulas.tosa_builder import is_narrow
from ...lowering.formulas.working_types import working_type
from ...lowering.graph.types import F16, F32, F64, I1, I32, I64, UI32, ElementType
from .arithmetic import astype, divide, multiply, not_equal, subtract
from .conversion import axis_of, converted, element_type, tensor
from .functions import sqrt
from .layout import distinct, reshape, squeeze
from .tensor import Tensor
from .trace import problem, recorded

Axes = int | Sequence[int] | None


def reduced(x: Tensor, axis: Axes, keepdims: bool, one: OneAxis, empty: int | None, name: str) -> Tensor:
    """Reduce along some axes; without `axis` along all. `empty` is the result for no elements; None makes them a Problem."""
    axes = tuple(range(x.ndim)) if axis is None else distinct(axis, x.ndim)
    kept: tuple[int, ...] = tuple(1 if a in axes else n for a, n in enumerate(x.shape))
    if empty is None and not x.size and 0 not in kept:
        raise problem(f"{name} of {x.type}: there are no elements to choose from", "shape")
    found = recorded(lambda t: t.of(reductions.reduced(t.builder, t.value, axes, one, 0 if empty is None else empty)), x)
    return reshape(found, kept if keepdims else tuple(n for a, n in enumerate(kept) if a not in axes))


def type_of_sum(element: ElementType) -> ElementType:
    """Return the type of sums and products: bools and integers below 32 bits get 32."""
    if element == I1 or (is_narrow(element) and element.kind == "signed"):
        return I32
    return UI32 if is_narrow(element) else element


def summed(x: Any, axis: Axes, keepdims: bool, dtype: Any, one: OneAxis, empty: int, name: str) -> Tensor:
    """Reduce integers in the bits of a signed type, half floats in f32, and round once."""
    x = tensor(x)
    element = type_of_sum(x.element) if dtype is None else element_type(dtype)
    if element == I1:
        raise problem(f"{name} has numbers, not bools", help="tosaic.ops.any and all are of bools")
    working = I32 if element == UI32 else working_type(element, integers=True, floats=True)
    return converted(reduced(converted(converted(x, element), working), axis, keepdims, one, empty, name), element)


def sum(x: Any, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum; bools and narrow integers in i32 (unsigned ones in ui32)."""
    return summed(x, axis, keepdims, dtype, reductions.operator("reduce_sum"), 0, "sum")


def prod(x: Any, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """Product; bools and narrow integers in i32 (unsigned ones in ui32)."""
    return summed(x, axis, keepdims, dtype, reductions.operator("reduce_product"), 1, "prod")


# ---- extremes ----------------------------------------------------------------------------------------------------
def extreme(name: str, x: Any, axis: Axes, keepdims: bool) -> Tensor:
    """Compute the greatest or least element, by TOSA's operator."""
    x = tensor(x)
    element, one = x.element, reductions.operator(f"reduce_{name}")
    if element == I1:
        return reduced(x, axis, keepdims, reductions.operator("reduce_any" if name == "max" else "reduce_all"), None, name)
    if element.kind != "unsigned":
        return reduced(x, axis, keepdims, one, None, name)
    wide = converted(x, working_type(element, integers=True, floats=False))
    if element.bits < I64.bits:
        return converted(reduced(wide, axis, keepdims, one, None, name), element)
    return recorded(lambda t: as_ordered(t).cast(element), reduced(recorded(as_ordered, wide), axis, keepdims, one, None, name))


def max(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The greatest element; NaN if any is NaN."""
    return extreme("max", x, axis, keepdims)


def min(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The least element; NaN if any is NaN."""
    return extreme("min", x, axis, keepdims)


def any(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """True if at least one element is not 0, or true."""
    return reduced(astype(x, I1), axis, keepdims, reductions.operator("reduce_any"), False, "any")


def all(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """True if no element is 0, or false."""
    return reduced(astype(x, I1), axis, keepdims, reductions.operator("reduce_all"), True, "all")


def count_nonzero(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Number of elements that are not 0, an i32."""
    return sum(astype(x, I1), axis, keepdims)


def ptp(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The greatest element minus the least."""
    return subtract(max(x, axis, keepdims), min(x, axis, keepdims))


# ---- means -------------------------------------------------------------------------------------------------------
def in_float(x: Any, dtype: Any = None) -> tuple[Tensor, ElementType]:
    """Return the operand of a mean, with integers and half floats as f32, and the type of the result."""
    x = tensor(x)
    result = element_type(dtype) if dtype is not None else x.element if x.element.is_float else F32
    return converted(x, result if result in (F32, F64) else F32), result


def count_of(x: Tensor, axis: Axes) -> int:
    """Return the number of elements that are reduced to one."""
    axes = range(x.ndim) if axis is None else distinct(axis, x.ndim)
    return math.prod(x.shape[a] for a in axes)


def mean(x: Any, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum divided by the number of elements; in f32 for integers. NaN without elements."""
    x, result = in_float(x, dtype)
    total = sum(x, axis, keepdims)
    return converted(divide(total, float(count_of(x, axis)) or math.nan), result)


def average(x: Any, axis: Axes = None, weights: Any = None, keepdims: bool = False) -> Tensor:
    """The weighted mean; weights have the shape of `x`, or are a vector along one axis."""
    if weights is None:
        return mean(x, axis, keepdims)
    x, w = tensor(x), tensor(weights)
    if w.ndim == 1 < x.ndim and isinstance(axis, int):
        w = reshape(w, tuple(w.size if a == axis_of(axis, x.ndim) else 1 for a in range(x.ndim)))
    whole = multiply(w, astype(not_equal(multiply(x, 0), 1), w.element))  # the weights in the shape of x
    return divide(sum(multiply(x, w), axis, keepdims), sum(whole, axis, keepdims))


def var(x: Any, axis: Axes = None, keepdims: bool = False, *, ddof: float | None = None, correction: float = 0) -> Tensor:
    """The mean of the squared distances from the mean; `ddof` or `correction` is subtracted from the number of elements."""
    x, result = in_float(x)
    centred = subtract(x, mean(x, axis, True))
    count = count_of(x, axis) - (correction if ddof is None else ddof)
    total = sum(multiply(centred, centred), axis, keepdims)
    return converted(divide(total, float(count) if count > 0 else 0.0), result)


def std(x: Any, axis: Axes = None, keepdims: bool = False, *, ddof: float | None = None, correction: float = 0) -> Tensor:
    """The square root of `var`."""
    return sqrt(var(x, axis, keepdims, ddof=ddof, correction=correction))


# ---- indices -----------------------------------------------------------------------------------------------------
def place_of(x: Any, axis: int | None, keepdims: bool, least: bool, name: str) -> Tensor:
    x = tensor(x)
    shape = tuple(1 for _ in x.shape) if axis is None else tuple(
        1 if a == axis_of(axis, x.ndim) else n for a, n in enumerate(x.shape))
    if axis is None:
        x, axis = reshape(x, -1), 0
    place = axis_of(axis, x.ndim)
    if not x.shape[place]:
        raise problem(f"{name} of {x.type}: there are no elements to choose from", "shape")
    is_direct = x.element in (F16, F32, F64) or x.element.kind == "signed"
    if not is_direct or (least and not x.element.is_float):
        x = recorded(lambda t: ~order_key(t) if least else order_key(t), x)
    elif least:
        x = recorded(lambda t: -t, x)
    found = recorded(lambda t: t.of(t.builder("argmax", t.value, axis=place)) if t.value.tensor.size else t.of(
        t.builder.reshape(t.cast(I32).value, [n for a, n in enumerate(t.value.tensor.dims) if a != place])), x)
    return reshape(found, shape) if keepdims else found


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the first greatest element, an i32; a NaN counts as greatest."""
    return place_of(x, axis, keepdims, False, "argmax")


def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the first least element, an i32; a NaN counts as least."""
    return place_of(x, axis, keepdims, True, "argmin")


# ---- for networks ------------------------------------------------------------------------------------------------
def softmax(x: Any, axis: int = -1) -> Tensor:
    x = tensor(x)
    place = axis_of(axis, x.ndim)
    return recorded(lambda t: formulas.softmax(t, place), x)


def logsumexp(x: Any, axis: int = -1, keepdims: bool = False) -> Tensor:
    x = tensor(x)
    place = axis_of(axis, x.ndim)
    result = recorded(lambda t: formulas.log_sum_exp(t, place), x)
    return result if keepdims else squeeze(result, axis)


__all__ = ["all", "any", "argmax", "argmin", "average", "count_nonzero", "logsumexp", "max", "mean", "min", "prod", "ptp",
           "softmax", "std", "sum", "var"]
