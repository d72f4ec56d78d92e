"""`qr` by Householder reflections: one for each column, in a loop, all matrices of a batch at once.

Signs are those of LAPACK, whose results NumPy returns: a reflection gives the diagonal element of r the sign opposite to the
column's. A column that is 0 below the diagonal needs no reflection.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...lowering.graph.types import F32, F64, ElementType
from . import reduction
from .arithmetic import divide, logical_and, multiply, negative, not_equal, subtract, where
from .control_flow import while_loop
from .conversion import converted, tensor
from .creation import full
from .functions import sqrt
from .layout import broadcast_to, expand_dims
from .tensor import Tensor
from .trace import problem


class OrthogonalAndTriangular(NamedTuple):
    """Result of `qr`."""
    Q: Tensor
    R: Tensor


def matrices(x: Any, name: str) -> tuple[Tensor, ElementType]:
    """Return matrices of f32 or f64, and the type of the result."""
    found = tensor(x)
    if found.ndim < 2 or not found.size:
        raise problem(f"{name} takes matrices with elements, not {found.type}", "shape")
    result = found.element if found.element.is_float else F32
    return converted(found, result if result in (F32, F64) else F32), result


def reflections(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the upper triangular matrix after all reflections, their vectors as columns with 1 on the diagonal, and their
    factors."""
    *batch, height, width = x.shape
    count = min(height, width)
    rows, columns = np.arange(height, dtype=np.int32), np.arange(width, dtype=np.int32)
    numbers = np.arange(count, dtype=np.int32)

    def step(k: Tensor, a: Tensor, vectors: Tensor, factors: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        column = reduction.sum(where(columns == k, a, 0), -1)
        below = where(rows > k, column, 0)
        first = reduction.sum(where(rows == k, column, 0), -1, True)
        rest = reduction.sum(multiply(below, below), -1, True)
        length = sqrt(first * first + rest)
        diagonal = where(first < 0, length, negative(length))
        is_needed = not_equal(rest, 0)
        vector = where(rows == k, 1, where(is_needed, divide(below, subtract(first, diagonal)), 0))
        factor = where(is_needed, divide(subtract(diagonal, first), diagonal), 0)
        a = reflected(a, vector, factor)
        a = where(logical_and((rows > k).reshape(height, 1), columns == k), 0, a)
        is_here = numbers == k
        return k + 1, a, where(is_here, expand_dims(vector, -1), vectors), where(is_here, factor, factors)

    none = full((*batch, height, count), 0, x.element), full((*batch, count), 0, x.element)
    _, a, vectors, factors = while_loop(lambda k, a, v, f: k < count, step, 0, x, *none)
    return a, vectors, factors


def reflected(a: Tensor, vector: Tensor, factor: Tensor) -> Tensor:
    """Return a - factor v (v a), with one vector for each matrix."""
    v = expand_dims(vector, -1)
    along = reduction.sum(multiply(v, a), -2, True)
    return subtract(a, multiply(multiply(expand_dims(factor, -1), v), along))


def qr(x: Any, mode: str = "reduced") -> OrthogonalAndTriangular | Tensor:
    """Factor matrices into an orthogonal and an upper triangular matrix, Q and R. `mode` is "reduced", "complete" (Q is
    square), or "r" (R alone)."""
    if mode not in ("reduced", "complete", "r"):
        raise problem(f"the mode of qr is 'reduced', 'complete' or 'r', not {mode!r}", "argument")
    x, result = matrices(x, "qr")
    a, vectors, factors = reflections(x)
    *batch, height, count = vectors.shape
    kept = height if mode == "complete" else count
    r = converted(a[..., :kept, :], result)
    if mode == "r":
        return r
    numbers = np.arange(count, dtype=np.int32)

    def step(k: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        is_here = numbers == k
        return k - 1, reflected(q, reduction.sum(where(is_here, vectors, 0), -1), reduction.sum(
            where(is_here, factors, 0), -1, True))

    identity = broadcast_to(np.eye(height, kept, dtype=x.dtype), (*batch, height, kept))
    _, q = while_loop(lambda k, q: k >= 0, step, count - 1, converted(identity, x.element))
    return OrthogonalAndTriangular(converted(q, result), r)


__all__ = ["qr"]
