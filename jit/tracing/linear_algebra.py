"""`tosaic.ops.linalg`: norms, determinants, inverses, and the other functions of `numpy.linalg` with a fixed number of steps.

Elimination and Cholesky's decomposition are loops over the columns, one step for all matrices of a batch. Masks select rows and
columns, so only the results depend on the values. Where NumPy raises LinAlgError (a matrix that is singular or not positive
definite) the results are infinities or NaN.
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ...lowering.graph.types import F32, F64, ElementType
from . import contractions, rearranging, reduction
from .arithmetic import absolute, divide, multiply, not_equal, power, subtract, where
from .complex_functions import magnitudes
from .contractions import cross, matmul, outer, tensordot, vecdot
from .control_flow import while_loop
from .conversion import broadcast, converted, tensor
from .creation import full, ones
from .floats import isnan
from .functions import log, sqrt
from .layout import broadcast_to, concatenate, distinct, expand_dims, moveaxis, reshape
from .orthogonal import qr
from .rearranging import matrix_transpose
from .tensor import Tensor
from .trace import problem

Axes = int | Sequence[int] | None


# ---- matrices ----------------------------------------------------------------------------------------------------
def square_matrices(x: Any, name: str) -> tuple[Tensor, ElementType]:
    """Return square matrices of f32 or f64, and the type of the result."""
    x = tensor(x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise problem(f"{name} takes square matrices, not {x.type}", "shape")
    result = x.element if x.element.is_float else F32
    return converted(x, result if result in (F32, F64) else F32), result


def chosen(mask: Tensor, x: Tensor, axis: int) -> Tensor:
    """Return the row or column that a mask selects along an axis."""
    return reduction.sum(where(mask, x, 0), axis)


def eliminated(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return matrices [..., n, m] with the first n columns reduced to the identity, by Gauss-Jordan elimination with the
    largest pivot of each column; and the pivots, with the signs of the row exchanges, [..., n]."""
    *batch, count, width = x.shape
    rows, columns = np.arange(count, dtype=np.int32), np.arange(width, dtype=np.int32)

    def step(k: Tensor, a: Tensor, pivots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        column = chosen(columns == k, a, -1)
        place = expand_dims(reduction.argmax(where(rows >= k, where(isnan(column), math.inf, absolute(column)), -1), -1), -1)
        is_pivot, is_here = expand_dims(rows == place, -1), (rows == k).reshape(count, 1)
        row, other = (expand_dims(chosen(mask, a, -2), -2) for mask in (is_pivot, is_here))
        a = where(is_here, row, where(is_pivot, other, a))
        column = chosen(columns == k, a, -1)
        pivot = chosen(rows == k, column, -1)
        row = divide(row, reshape(pivot, (*batch, 1, 1)))
        a = where(is_here, row, subtract(a, multiply(expand_dims(column, -1), row)))
        signed = where(reshape(not_equal(place, k), pivot.shape), -pivot, pivot)
        return k + 1, a, where(rows == k, expand_dims(signed, -1), pivots)

    _, found, pivots = while_loop(lambda k, a, p: k < count, step, 0, x, full((*batch, count), 1, x.element))
    return found, pivots


def det(x: Any) -> Tensor:
    """The determinant of square matrices."""
    x, result = square_matrices(x, "det")
    if not x.size:
        return ones(x.shape[:-2], result)
    return converted(reduction.prod(eliminated(x)[1], -1), result)


class SignAndLogarithm(NamedTuple):
    """Result of `slogdet`."""
    sign: Tensor
    logabsdet: Tensor


def slogdet(x: Any) -> SignAndLogarithm:
    """The sign of the determinant, and the logarithm of its magnitude, which overflows later than the determinant."""
    x, result = square_matrices(x, "slogdet")
    if not x.size:
        return SignAndLogarithm(ones(x.shape[:-2], result), full(x.shape[:-2], 0, result))
    pivots = eliminated(x)[1]
    sign = reduction.prod(where(pivots > 0, 1, where(pivots < 0, -1, pivots)), -1)
    return SignAndLogarithm(converted(sign, result), converted(reduction.sum(log(absolute(pivots)), -1), result))


def inv(x: Any) -> Tensor:
    """The inverse of square matrices."""
    x, result = square_matrices(x, "inv")
    if not x.size:
        return converted(x, result)
    identity = broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape)
    found, _ = eliminated(concatenate([x, converted(identity, x.element)], -1))
    return converted(found[..., x.shape[-1]:], result)


def solve(a: Any, b: Any) -> Tensor:
    """Solution x of a @ x = b, for square matrices a; b is a vector, or matrices."""
    left, right = contractions.factors("solve", a, b)
    x, result = square_matrices(left, "solve")
    y = converted(right, x.element)
    is_vector = y.ndim == 1
    y = expand_dims(y, -1) if is_vector else y
    if y.ndim < 2 or y.shape[-2] != x.shape[-1]:
        raise problem(f"solve of {left.type} and {right.type}: the rows of both differ", "shape")
    batch = broadcast(x.shape[:-2], y.shape[:-2], operator="solve")
    x, y = broadcast_to(x, (*batch, *x.shape[-2:])), broadcast_to(y, (*batch, *y.shape[-2:]))
    if x.size and y.size:
        y = eliminated(concatenate([x, y], -1))[0][..., x.shape[-1]:]
    return converted(reshape(y, y.shape[:-1]) if is_vector else y, result)


def cholesky(x: Any, *, upper: bool = False) -> Tensor:
    """The lower triangular matrix whose product with its transpose is x, or the upper one. x is symmetric, and only its lower
    triangle is read."""
    x, result = square_matrices(x, "cholesky")
    count = x.shape[-1]
    if not x.size:
        return converted(x, result)
    rows = np.arange(count, dtype=np.int32)
    whole = converted(rearranging.tril(x), x.element)

    def step(k: Tensor, found: Tensor) -> tuple[Tensor, Tensor]:
        is_column, is_row = rows == k, (rows == k).reshape(count, 1)
        before = chosen(is_row, found, -2)
        column = subtract(chosen(is_column, whole, -1), reduction.sum(multiply(found, expand_dims(before, -2)), -1))
        root = sqrt(expand_dims(chosen(is_column, column, -1), -1))
        column = where(is_column, root, where(rows > k, divide(column, root), 0))
        return k + 1, where(is_column, expand_dims(column, -1), found)

    _, found = while_loop(lambda k, f: k < count, step, 0, full(x.shape, 0, x.element))
    found = converted(found, result)
    return matrix_transpose(found) if upper else found


def pinv(x: Any) -> Tensor:
    """The pseudo-inverse of matrices whose rows or columns, whichever are fewer, are independent. Other matrices give
    infinities or NaN, where NumPy omits the least singular values."""
    x = rearranging.matrices(x, "pinv")
    if not x.size:
        return matrix_transpose(x if x.element.is_float else converted(x, F32))
    is_wide = x.shape[-1] > x.shape[-2]
    q, r = qr(matrix_transpose(x) if is_wide else x)
    found = solve(r, matrix_transpose(q))
    return matrix_transpose(found) if is_wide else found


def matrix_power(x: Any, n: int) -> Tensor:
    """The n-th power of a square matrix; for a negative n, that of its inverse."""
    x = tensor(x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise problem(f"matrix_power takes square matrices, not {x.type}", "shape")
    if n < 0:
        x, n = inv(x), -n
    if not n:
        return broadcast_to(converted(tensor(np.eye(x.shape[-1], dtype=np.int8)), x.element), x.shape)
    factors, digits = [x], n.bit_length()
    for _ in range(digits - 1):
        factors.append(matmul(factors[-1], factors[-1]))
    return reduce(matmul, [f for i, f in enumerate(factors) if n >> i & 1])


def multi_dot(arrays: Sequence[Any]) -> Tensor:
    """Matrix product in the order with the fewest multiplications, as in NumPy: of two equal orders, the one that begins at the
    right. The first and the last operand may be vectors, a row and a column."""
    factors = [tensor(a) for a in arrays]
    if len(factors) < 2:
        raise problem(f"multi_dot takes two matrices at least, not {len(factors)}", "argument")
    extents = [1 if factors[0].ndim == 1 else factors[0].shape[0], *(f.shape[0] for f in factors[1:]),
               1 if factors[-1].ndim == 1 else factors[-1].shape[-1]]
    return product_of(factors, cheapest_splits(extents), 0, len(factors) - 1)


def cheapest_splits(extents: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return, for each run of factors, the factor after which to split it (Cormen et al., matrix-chain order)."""
    count = len(extents) - 1
    costs, splits = {(i, i): 0 for i in range(count)}, {}
    for first, last in ((i, i + n) for n in range(1, count) for i in range(count - n)):
        options = [(costs[first, k] + costs[k + 1, last] + extents[first] * extents[k + 1] * extents[last + 1], k)
                   for k in range(first, last)]
        costs[first, last], splits[first, last] = min(options)
    return splits


def product_of(factors: Sequence[Tensor], splits: Mapping[tuple[int, int], int], first: int, last: int) -> Tensor:
    if first == last:
        return factors[first]
    split = splits[first, last]
    return contractions.dot(product_of(factors, splits, first, split),
                            product_of(factors, splits, split + 1, last))


# ---- norms -------------------------------------------------------------------------------------------------------
def cond(x: Any, p: Any = None) -> Tensor:
    """Condition number: the norm of square matrices times that of their inverses, for the norms "fro", 1, -1, inf and -inf."""
    if p in (None, 2, -2, "nuc"):
        raise problem(f"the condition of matrices by the norm {p!r} needs singular values", "unsupported",
                      help="p='fro', 1, -1, inf or -inf")
    return multiply(matrix_norm(x, ord=p), matrix_norm(inv(x), ord=p))


def vector_norm(x: Any, *, axis: Axes = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """The norm of vectors along axes, or of all elements: (sum |x|^ord)^(1/ord); for infinite orders the greatest or least
    magnitude, for 0 the number of elements that are not 0."""
    x, result = reduction.in_float(magnitudes(x))
    size = absolute(x)
    axes = tuple(range(x.ndim)) if axis is None else distinct(axis, x.ndim)
    if ord in (math.inf, -math.inf):
        if not x.size:
            return converted(reduction.sum(size, axes, keepdims), result)
        found = (reduction.max if ord > 0 else reduction.min)(size, axes, keepdims)
    elif ord == 0:
        found = reduction.sum(not_equal(size, 0), axes, keepdims, dtype=x.element)
    elif ord == 1:
        found = reduction.sum(size, axes, keepdims)
    elif ord == 2:
        found = sqrt(reduction.sum(multiply(x, x), axes, keepdims))
    else:
        found = power(reduction.sum(power(size, ord), axes, keepdims), 1 / ord)
    return converted(found, result)


def matrix_norm(x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norm of matrices: "fro", or the greatest or least sum of magnitudes of a column (1, -1) or of a row (inf, -inf)."""
    x = tensor(magnitudes(x))
    if x.ndim < 2:
        raise problem(f"matrix_norm takes matrices, not {x.type}", "shape")
    if ord in ("fro", None):
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord not in (1, -1, math.inf, -math.inf):
        raise problem(f"the norm {ord!r} of matrices needs singular values", "unsupported", help="'fro', 1, -1, inf or -inf")
    along, other = (-2, -1) if abs(ord) == 1 else (-1, -2)
    sums = vector_norm(x, axis=along, keepdims=True, ord=1)
    found = (reduction.max if ord > 0 else reduction.min)(sums, other, True)
    return found if keepdims else reshape(found, x.shape[:-2])


def norm(x: Any, ord: Any = None, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The norm of a vector, or of matrices if `axis` names two axes (or x is a matrix and `ord` is given)."""
    x = tensor(magnitudes(x))
    if axis is None and ord is None:
        return vector_norm(x, keepdims=keepdims)
    axes = tuple(range(x.ndim)) if axis is None else distinct(axis, x.ndim)
    if len(axes) == 1:
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise problem(f"a norm has one axis or two, not {len(axes)}", "argument")
    found = matrix_norm(moveaxis(x, axes, (-2, -1)), ord=ord)
    return reshape(found, tuple(1 if a in axes else n for a, n in enumerate(x.shape))) if keepdims else found


# ---- the last two axes -------------------------------------------------------------------------------------------
def diagonal(x: Any, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices."""
    return rearranging.diagonal(x, offset, -2, -1)


def trace(x: Any, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums of the diagonals of matrices."""
    return contractions.trace(x, offset, -2, -1, dtype=dtype)


__all__ = ["cholesky", "cond", "cross", "det", "diagonal", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_transpose",
           "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "tensordot", "trace", "vecdot", "vector_norm"]
