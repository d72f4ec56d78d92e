"""Matrices and their diagonals, in the last two axes."""
from __future__ import annotations

import numpy as np

from .....runtime.errors import Problem
from ....graph.graph import Operation
from ....graph.types import Array
from .table import reference


def one(k: Array) -> int:
    """Return the number of the one diagonal that k selects; raise a Problem if it selects several."""
    if k.size > 1 and k.reshape(-1)[0] != k.reshape(-1)[-1]:
        raise Problem("several diagonals at once are not known", kind="unsupported")
    return int(k.reshape(-1)[0])


@reference("tf.MatrixDiagPart")
def matrix_diagonal(operation: Operation, x: Array) -> Array:
    return np.diagonal(x, 0, -2, -1)


@reference("tf.MatrixDiagPartV2", "tf.MatrixDiagPartV3")
def matrix_diagonal_of(operation: Operation, x: Array, k: Array, border: Array) -> Array:
    return np.diagonal(x, one(k), -2, -1)


@reference("tf.DiagPart")
def diagonal_of_tensor(operation: Operation, x: Array) -> Array:
    half = x.shape[:x.ndim // 2]
    size = int(np.prod(half))
    return np.diagonal(x.reshape(size, size)).reshape(half)


@reference("tf.Diag")
def tensor_of_diagonal(operation: Operation, x: Array) -> Array:
    return np.diag(x.reshape(-1)).reshape(*x.shape, *x.shape)


@reference("tf.MatrixDiag")
def matrix_of_diagonal(operation: Operation, x: Array) -> Array:
    return matrices(x, x.shape[-1], x.shape[-1], 0, np.zeros((), x.dtype))


@reference("tf.MatrixDiagV2", "tf.MatrixDiagV3")
def matrix_of_diagonal_at(operation: Operation, x: Array, k: Array, rows: Array, columns: Array, border: Array) -> Array:
    """Return matrices with a diagonal. An extent of -1 is the least that holds the diagonal; two of them are equal."""
    at, n = one(k), x.shape[-1]
    if int(rows) == -1 and int(columns) == -1:
        return matrices(x, n + abs(at), n + abs(at), at, border)
    height = n + max(-at, 0) if int(rows) == -1 else int(rows)
    width = n + max(at, 0) if int(columns) == -1 else int(columns)
    return matrices(x, height, width, at, border)


def matrices(x: Array, rows: int, columns: int, k: int, border: Array) -> Array:
    result = np.full((*x.shape[:-1], rows, columns), border, x.dtype)
    for i in range(x.shape[-1]):
        result[..., i + max(-k, 0), i + max(k, 0)] = x[..., i]
    return result


@reference("tf.MatrixSetDiag")
def matrix_set_diagonal(operation: Operation, x: Array, values: Array) -> Array:
    return matrix_set_diagonal_at(operation, x, values, np.zeros((), np.int32))


@reference("tf.MatrixSetDiagV2", "tf.MatrixSetDiagV3")
def matrix_set_diagonal_at(operation: Operation, x: Array, values: Array, k: Array) -> Array:
    result, at = x.copy(), one(k)
    for i in range(values.shape[-1]):
        result[..., i + max(-at, 0), i + max(at, 0)] = values[..., i]
    return result


@reference("tf.MatrixBandPart", "tf.BatchMatrixBandPart")
def band(operation: Operation, x: Array, lower: Array, upper: Array) -> Array:
    """Set elements more than `lower` below and `upper` above the main diagonal to zero; a negative bound keeps that side."""
    result = x if int(lower) < 0 else np.triu(x, -int(lower))
    return result if int(upper) < 0 else np.tril(result, int(upper))
