"""Matrices and their diagonals, in the last two axes, by constants, masks and slices."""
from __future__ import annotations

import math

import numpy as np

from .....runtime.errors import Problem
from ....formulas.layout import padded
from ....graph.graph import Operation, Value
from ...emitter import Emitter, integers
from .layout import require
from .slicing import Part, fixed_parts
from .table import legalization


def one_diagonal(value: Value) -> int:
    found = set(integers(value, "which diagonal it is"))
    if len(found) != 1:
        raise Problem("several diagonals at once cannot be compiled", kind="unsupported")
    return found.pop()


def length(rows: int, columns: int, k: int) -> int:
    """Return the length of diagonal k: k above the main one if it is positive, below if it is negative."""
    return max(0, min(rows + min(k, 0), columns - max(k, 0)))


def diagonal(e: Emitter, x: Value, k: int = 0) -> Value:
    """Return the diagonal of each matrix: every (columns + 1)-th element."""
    *outer, rows, columns = x.tensor.dims
    count = length(rows, columns, k)
    require(count > 0, f"{x.type} has no diagonal {k}")
    flat = e.reshape(x, (math.prod(outer), rows * columns))
    first = k if k >= 0 else -k * columns
    return e.reshape(fixed_parts(e, flat, [Part(0, math.prod(outer)), Part(first, count, columns + 1)]), (*outer, count))


@legalization("tf.MatrixDiagPart")
def matrix_diagonal(e: Emitter, operation: Operation, x: Value) -> Value:
    return diagonal(e, x)


@legalization("tf.MatrixDiagPartV2", "tf.MatrixDiagPartV3")
def matrix_diagonal_of(e: Emitter, operation: Operation, x: Value, k: Value, border: Value) -> Value:
    return diagonal(e, x, one_diagonal(k))


@legalization("tf.DiagPart")
def diagonal_of_tensor(e: Emitter, operation: Operation, x: Value) -> Value:
    """Return the diagonal of a tensor [A, A], where A may be several axes."""
    half, size = x.tensor.dims[:x.tensor.rank // 2], math.isqrt(x.tensor.size)
    require((*half, *half) == x.tensor.dims, f"{x.type} has no diagonal")
    return e.reshape(diagonal(e, e.reshape(x, (size, size))), half)


# ---- matrices with a diagonal ----------------------------------------------------------------------------------------
def with_diagonal(e: Emitter, x: Value, rows: int, columns: int, k: int, border: Value | None) -> Value:
    """Return matrices that hold one number except on diagonal k: each of its elements, followed by a row of that number."""
    *outer, count = x.tensor.dims
    require(count == length(rows, columns, k), f"diagonal {k} of {rows} by {columns} is no {x.type}")
    first, groups = (k if k >= 0 else -k * columns), math.prod(outer)
    spread = padded(e, e.reshape(x, (groups, count, 1)), [(0, 0), (0, 0), (0, columns)], border)
    flat = e.reshape(spread, (groups, count * (columns + 1)))
    missing = rows * columns - first - count * (columns + 1)
    if missing < 0:
        flat = e.slice(flat, (0, 0), (groups, rows * columns - first))
    return e.reshape(padded(e, flat, [(0, 0), (first, max(missing, 0))], border), (*outer, rows, columns))


@legalization("tf.MatrixDiag")
def matrix_of_diagonal(e: Emitter, operation: Operation, x: Value) -> Value:
    n = x.tensor.dims[-1]
    return with_diagonal(e, x, n, n, 0, None)


@legalization("tf.Diag")
def tensor_of_diagonal(e: Emitter, operation: Operation, x: Value) -> Value:
    n = x.tensor.size
    return e.reshape(with_diagonal(e, e.reshape(x, (n,)), n, n, 0, None), (*x.tensor.dims, *x.tensor.dims))


@legalization("tf.MatrixDiagV2", "tf.MatrixDiagV3")
def matrix_of_diagonal_at(e: Emitter, operation: Operation, x: Value, k: Value, rows: Value, columns: Value,
                          border: Value) -> Value:
    """Emit matrices with a diagonal. An extent of -1 is the least that holds the diagonal; with two of them the matrices are
    square."""
    at, count = one_diagonal(k), x.tensor.dims[-1]
    (height,), (width,) = integers(rows, "the number of rows"), integers(columns, "the number of columns")
    least = (count + abs(at), count + abs(at)) if height == width == -1 else (count + max(-at, 0), count + max(at, 0))
    return with_diagonal(e, x, least[0] if height == -1 else height, least[1] if width == -1 else width, at,
                         e.reshape(border, ()))


@legalization("tf.MatrixSetDiag")
def matrix_set_diagonal(e: Emitter, operation: Operation, x: Value, values: Value) -> Value:
    return set_diagonal(e, x, values, 0)


@legalization("tf.MatrixSetDiagV2", "tf.MatrixSetDiagV3")
def matrix_set_diagonal_at(e: Emitter, operation: Operation, x: Value, values: Value, k: Value) -> Value:
    return set_diagonal(e, x, values, one_diagonal(k))


def set_diagonal(e: Emitter, x: Value, values: Value, k: int) -> Value:
    *_, rows, columns = x.tensor.dims
    here = np.eye(rows, columns, k, dtype=bool).reshape((1,) * (x.tensor.rank - 2) + (rows, columns))
    return masked(e, here, with_diagonal(e, values, rows, columns, k, None), x)


@legalization("tf.MatrixBandPart", "tf.BatchMatrixBandPart")
def band(e: Emitter, operation: Operation, x: Value, lower: Value, upper: Value) -> Value:
    """Set elements more than `lower` below and `upper` above the main diagonal to zero; a negative bound keeps that side."""
    *_, rows, columns = x.tensor.dims
    (below,), (above,) = integers(lower, "how many are kept below"), integers(upper, "how many are kept above")
    i, j = np.indices((rows, columns))
    inside = ((below < 0) | (i - j <= below)) & ((above < 0) | (j - i <= above))
    return masked(e, inside.reshape((1,) * (x.tensor.rank - 2) + (rows, columns)), x, e.zeros(x.tensor))


def masked(e: Emitter, mask: np.ndarray, a: Value, b: Value) -> Value:
    """Return a where the mask is set, else b; for types that SELECT does not take, gather rows of both."""
    element = a.tensor.element
    if (element.is_float and element.name == "f64") or element.kind == "unsigned":
        size = a.tensor.size
        places = np.where(np.broadcast_to(mask, a.tensor.dims).reshape(-1), 0, size) + np.arange(size)
        both = e.concat([e.reshape(v, (1, size, 1)) for v in (a, b)], 1)
        return e.reshape(e("gather", both, e.constant(places.astype(np.int32)[None])), a.tensor.dims)
    return e.select(e.constant(mask), a, b)

