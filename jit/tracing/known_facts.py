"""Facts known of a tensor while tracing: its shape, extents, kind of numbers, and indices that follow from its shape. NumPy's
names. Results are Python or NumPy values, except those of `copy` and of the tests of each element."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...lowering.graph.types import Array
from .arithmetic import greater, less, logical_and
from .complex_tensor import is_complex
from .conversion import axis_of, tensor
from .floats import isinf
from .tensor import Tensor


def shape_of(a: Any) -> tuple[int, ...]:
    return tuple(a.shape) if hasattr(a, "shape") else np.shape(a)


def shape(a: Any) -> tuple[int, ...]:
    """The extents, a tuple of Python's ints."""
    return shape_of(a)


def ndim(a: Any) -> int:
    """The number of axes."""
    return len(shape_of(a))


def size(a: Any, axis: int | None = None) -> int:
    """The number of elements, or the extent of an axis."""
    dims = shape_of(a)
    return int(np.prod(dims)) if axis is None else dims[axis_of(axis, len(dims))]


def iscomplexobj(x: Any) -> bool:
    """True if the tensor holds complex numbers; a Python bool."""
    return is_complex(x) or (not isinstance(x, Tensor) and np.iscomplexobj(x))


def isrealobj(x: Any) -> bool:
    """True if the tensor holds real numbers; a Python bool."""
    return not iscomplexobj(x)


def copy(a: Any) -> Tensor:
    """The tensor itself, which is immutable."""
    return tensor(a)


def isposinf(x: Any) -> Tensor:
    """True if an element is positive infinity."""
    return logical_and(isinf(x), greater(x, 0))


def isneginf(x: Any) -> Tensor:
    """True if an element is negative infinity."""
    return logical_and(isinf(x), less(x, 0))


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, ...]:
    """Indices of the elements of a matrix on and below a diagonal, as arrays of rows and columns."""
    return np.tril_indices(shape_of(arr)[-2], k, shape_of(arr)[-1])


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, ...]:
    """Indices of the elements of a matrix on and above a diagonal, as arrays of rows and columns."""
    return np.triu_indices(shape_of(arr)[-2], k, shape_of(arr)[-1])


def diag_indices_from(arr: Any) -> tuple[Array, ...]:
    """Indices of the main diagonal, one array for each axis."""
    return np.diag_indices(shape_of(arr)[0], len(shape_of(arr)))


__all__ = ["copy", "diag_indices_from", "iscomplexobj", "isneginf", "isposinf", "isrealobj", "ndim", "shape", "size",
           "tril_indices_from", "triu_indices_from"]
