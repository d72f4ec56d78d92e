"""Tensors without tensor operands: of one number, of numbers in steps, of diagonals. NumPy's names and defaults, except that
floats are f32 and integers i32 by default."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...lowering.graph.types import F32, I1, I32, Array, ElementType
from .conversion import converted, element_type, extents, from_python, in_range, is_number, tensor
from .tensor import Tensor
from .trace import constant, problem, recorded

Shape = int | Sequence[int]


def filled(dims: tuple[int, ...], value: Tensor) -> Tensor:
    """Return a tensor of this shape that repeats one number."""
    one = tensor(value, rank=len(dims))
    return recorded(lambda t: t.broadcast_to(dims), one)


def default_of(value: Any) -> ElementType:
    """Return the element type of a Python number."""
    return I1 if isinstance(value, bool | np.bool_) else I32 if isinstance(value, int | np.integer) else F32


def full(shape: Shape, fill_value: Any, dtype: Any = None) -> Tensor:
    """Tensor of one number, or of a value that broadcasts to the shape."""
    dims = extents(shape)
    value = number(fill_value, dtype) if is_number(fill_value) else tensor(fill_value)
    if dtype is not None:
        value = converted(value, element_type(dtype))
    return filled(dims, value)


def number(value: Any, dtype: Any) -> Tensor:
    """Return a Python number in the given type, or in its own."""
    element = default_of(value) if dtype is None else element_type(dtype)
    if element.is_integer and isinstance(value, int):
        in_range(int(value), int(value), element)
    return constant(np.array(value).astype(element.dtype), element)


def zeros(shape: Shape, dtype: Any = F32) -> Tensor:
    return full(shape, 0, F32 if dtype is None else dtype)


def ones(shape: Shape, dtype: Any = F32) -> Tensor:
    return full(shape, 1, F32 if dtype is None else dtype)


def empty(shape: Shape, dtype: Any = F32) -> Tensor:
    """Zeros: a graph has no uninitialized memory."""
    return zeros(shape, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    x = tensor(x)
    return full(x.shape, fill_value, x.element if dtype is None else dtype)


def zeros_like(x: Any, dtype: Any = None) -> Tensor:
    return full_like(x, 0, dtype)


def ones_like(x: Any, dtype: Any = None) -> Tensor:
    return full_like(x, 1, dtype)


def empty_like(x: Any, dtype: Any = None) -> Tensor:
    return zeros_like(x, dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Numbers from start up to but not including stop, in steps; all arguments are Python numbers."""
    first, last = (0, start) if stop is None else (start, stop)
    for value in (first, last, step):
        if not is_number(value):
            raise problem(f"arange takes Python numbers, not {value!r}", "argument",
                          help="the shape of its result depends on them")
    if step == 0:
        raise problem("the step of arange is not 0", "argument")
    values = np.arange(first, last, step)
    own = default_of(values.reshape(-1)[0] if values.size else first + step)
    return listed(values, own if dtype is None else element_type(dtype))


def listed(values: Array, element: ElementType) -> Tensor:
    """Return known numbers in a type that holds them."""
    if element.is_integer and values.size:
        in_range(int(values.min()), int(values.max()), element)
    return constant(values.astype(element.dtype), element)


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None) -> Tensor:
    """`num` numbers from start to stop, which is the last of them unless `endpoint` is False; both are Python numbers."""
    return listed(np.linspace(start, stop, num, endpoint=endpoint), F32 if dtype is None else element_type(dtype))


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = F32) -> Tensor:
    """Ones on a diagonal, `k` above the main diagonal."""
    return listed(np.eye(N, M, k), F32 if dtype is None else element_type(dtype))


def identity(n: int, dtype: Any = F32) -> Tensor:
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = F32) -> Tensor:
    """Ones on and below a diagonal."""
    return listed(np.tri(N, M, k), F32 if dtype is None else element_type(dtype))


def meshgrid(*values: Any, indexing: str = "xy") -> list[Tensor]:
    """Coordinate tensors of one shape, each vector along its own axis; with `indexing` "xy" the first two axes are
    exchanged."""
    if indexing not in ("xy", "ij"):
        raise problem(f"the indexing of meshgrid is 'xy' or 'ij', not {indexing!r}", "argument")
    given = [tensor(v) for v in values]
    count = len(given)
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[0], order[1] = 1, 0
    dims = [0] * count
    for i, x in enumerate(given):
        dims[order[i]] = x.size
    return [recorded(lambda t, i=i: t.of(t.builder.broadcast_to(t.builder.reshape(
        t.value, [t.value.tensor.size if a == order[i] else 1 for a in range(count)]), dims)), x) for i, x in enumerate(given)]


def asarray(x: Any, dtype: Any = None, copy: bool | None = None) -> Tensor:
    """`x`, an array, a number, or nested lists of numbers, as a tensor. An array keeps its element type, also float64 and
    int64."""
    if isinstance(x, Tensor):
        return tensor(x) if dtype is None else converted(tensor(x), element_type(dtype))
    if is_number(x):
        return number(x, dtype)
    if dtype is None:
        return constant(x) if isinstance(x, np.ndarray) else tensor(x)
    element = element_type(dtype)
    return constant(from_python(x).astype(element.dtype), element)




__all__ = ["arange", "asarray", "empty", "empty_like", "eye", "full", "full_like", "identity", "linspace", "meshgrid", "ones",
           "ones_like", "tri", "zeros", "zeros_like"]
