"""Functions of neighbours along an axis: running sums and products, differences. NumPy's names."""
from __future__ import annotations

from typing import Any

from .arithmetic import add, multiply, not_equal, subtract
from .conversion import axis_of, converted, element_type, tensor
from .creation import full
from .layout import concatenate, reshape
from .reduction import type_of_sum
from .tensor import Tensor
from .trace import problem
from .ufunc_methods import running


def accumulated(function: Any, neutral: int, x: Any, axis: int | None, dtype: Any, include_initial: bool) -> Tensor:
    """Accumulate along an axis, in the type of a sum."""
    x = tensor(x)
    if axis is None:
        x, axis = reshape(x, -1), 0
    place = axis_of(axis, x.ndim)
    x = converted(x, type_of_sum(x.element) if dtype is None else element_type(dtype))
    found = running(function, x, place)
    if include_initial:
        first = full((*x.shape[:place], 1, *x.shape[place + 1:]), neutral, x.element)
        found = concatenate([first, found], place)
    return found


def cumsum(x: Any, axis: int | None = None, *, dtype: Any = None) -> Tensor:
    """The running sum of each element and all before it; without an axis, of all elements. It takes as many steps as the extent
    has binary digits."""
    return accumulated(add, 0, x, axis, dtype, False)


def cumprod(x: Any, axis: int | None = None, *, dtype: Any = None) -> Tensor:
    """The running product of each element and all before it; without an axis, of all elements."""
    return accumulated(multiply, 1, x, axis, dtype, False)


def cumulative_sum(x: Any, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """`cumsum`, with a 0 before the first element if `include_initial`; a tensor of several axes needs an axis."""
    return accumulated(add, 0, x, only_axis(x, axis), dtype, include_initial)


def cumulative_prod(x: Any, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """`cumprod`, with a 1 before the first element if `include_initial`; a tensor of several axes needs an axis."""
    return accumulated(multiply, 1, x, only_axis(x, axis), dtype, include_initial)


def only_axis(x: Any, axis: int | None) -> int:
    x = tensor(x)
    if axis is None and x.ndim != 1:
        raise problem(f"{x.type} has {x.ndim} axes: say which", "argument", help="axis=0")
    return 0 if axis is None else axis


def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Each element minus the one before it, `n` times; for bools, whether they differ. `prepend` and `append` are first joined
    to the ends."""
    x = tensor(x)
    if not isinstance(n, int) or n < 0:
        raise problem(f"diff is taken a whole number of times, not {n!r}", "argument")
    place = axis_of(axis, x.ndim)
    x = with_ends(x, place, prepend, append)
    for _ in range(n):
        later, earlier = (x[(slice(None),) * place + (key,)] for key in (slice(1, None), slice(None, -1)))
        x = not_equal(later, earlier) if x.element.kind == "bool" else subtract(later, earlier)
    return x


def with_ends(x: Tensor, axis: int, before: Any, behind: Any) -> Tensor:
    ends: list[Tensor | None] = []
    for end in (before, behind):
        if end is not None:
            end = tensor(end, x.element)
            end = full((*x.shape[:axis], 1, *x.shape[axis + 1:]), end, x.element) if not end.ndim else end
        ends.append(end)
    parts = [part for part in (ends[0], x, ends[1]) if part is not None]
    return concatenate(parts, axis) if len(parts) > 1 else x


def ediff1d(x: Any) -> Tensor:
    """The differences of all elements in their order."""
    return diff(reshape(x, -1))


__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "diff", "ediff1d"]
