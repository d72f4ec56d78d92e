"""Products of matrices, sums of products by names of axes."""
from __future__ import annotations

import numpy as np

from ....graph.foreign import flag, string
from ....graph.graph import Operation
from ....graph.types import Array
from .layout import result_dtype
from .table import reference


def wide(x: Array) -> Array:
    """Return x in 64 bits, so that the order of sums does not matter, and integers wrap at the end."""
    return x.astype(np.int64 if x.dtype.kind in "iu" else np.float64)


@reference("tf.MatMul")
def matmul(operation: Operation, a: Array, b: Array) -> Array:
    a, b = (x.T if flag(operation, t) else x for x, t in ((a, "transpose_a"), (b, "transpose_b")))
    return (wide(a) @ wide(b)).astype(a.dtype)


@reference("tf.BatchMatMul", "tf.BatchMatMulV2", "tf.BatchMatMulV3")
def batch_matmul(operation: Operation, a: Array, b: Array) -> Array:
    """Return the batched product; the result of V3 may be wider than its operands."""
    a, b = (np.swapaxes(x, -1, -2) if flag(operation, t) else x for x, t in ((a, "adj_x"), (b, "adj_y")))
    return (wide(a) @ wide(b)).astype(result_dtype(operation))


@reference("tf.Einsum")
def einsum(operation: Operation, *arrays: Array) -> Array:
    found = np.einsum(string(operation, "equation"), *map(wide, arrays))
    return np.asarray(found).astype(arrays[0].dtype)


@reference("tf.BiasAdd", "tf.BiasAddV1")
def bias_add(operation: Operation, x: Array, bias: Array) -> Array:
    from ....graph.foreign import find
    if str(find(operation, "data_format", "NHWC")).startswith("NC"):
        bias = bias.reshape(-1, *[1] * (x.ndim - 2))
    return x + bias
