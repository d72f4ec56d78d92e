"""Products of matrices.

TOSA's `matmul` takes two batches of one extent. Here batches broadcast: a right operand that all of the batch share makes the
batch part of the rows, so that there is one product; otherwise the operands are repeated, which costs no copy. Transpositions
are operators that the kernels read through, and that a constant takes at once.
"""
from __future__ import annotations

import math

import numpy as np

from ...runtime.errors import Problem
from ..graph.graph import Value
from ..graph.types import I8, I32, ElementType
from .tosa_builder import TosaBuilder, is_narrow

Zeros = tuple[Value, Value]
"""Zero points of both operands, of one element each."""


def swapped(e: TosaBuilder, x: Value) -> Value:
    """The last two axes exchanged."""
    rank = x.tensor.rank
    return e.transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def batched_product(e: TosaBuilder, a: Value, b: Value, element: ElementType, zeros: Zeros | None = None) -> Value:
    """[..., H, C] times [..., C, W], the leading axes broadcast, as elements of that type."""
    (*_, height, inner), (*_, rows, width) = a.tensor.dims, b.tensor.dims
    if inner != rows:
        raise Problem(f"the inner extents differ: {a.type} gives {inner}, {b.type} {rows}", kind="shape")
    batch = broadcast_batch(a, b)
    if math.prod(b.tensor.dims[:-2]) == 1:
        flat = e.reshape(a, (1, math.prod(batch) * height, inner))
        return e.reshape(matrix_product(e, flat, e.reshape(b, (1, inner, width)), element, zeros), (*batch, height, width))
    a, b = (e.broadcast_to(x, (*batch, *x.tensor.dims[-2:])) for x in (a, b))
    count = math.prod(batch)
    found = matrix_product(e, e.reshape(a, (count, height, inner)), e.reshape(b, (count, inner, width)), element, zeros)
    return e.reshape(found, (*batch, height, width))


def broadcast_batch(a: Value, b: Value) -> tuple[int, ...]:
    """The leading axes of a product of a and b."""
    try:
        return np.broadcast_shapes(a.tensor.dims[:-2], b.tensor.dims[:-2])
    except ValueError:
        raise Problem(f"the batches of {a.type} and {b.type} do not broadcast", kind="shape") from None


def matrix_product(e: TosaBuilder, a: Value, b: Value, element: ElementType, zeros: Zeros | None = None) -> Value:
    """[N, H, C] times [N, C, W]."""
    own = a.tensor.element
    if own != b.tensor.element:
        raise Problem(f"a product of {own} and {b.tensor.element} is not known", kind="unsupported")
    if own.is_float or (own == I8 and element == I32):
        return e.cast(e("matmul", a, b, *(zeros or (e.zero_point(own), e.zero_point(own)))), element)
    return e.cast(product_of_integers(e, a, b), element)


def product_of_integers(e: TosaBuilder, a: Value, b: Value) -> Value:
    """Sums of products that wrap, in 32 bits at least: `matmul` has no such types."""
    a, b = (e.cast(x, I32) if is_narrow(x.tensor.element) else x for x in (a, b))
    (count, height, inner), width = a.tensor.dims, b.tensor.dims[2]
    terms = e.product(e.reshape(a, (count, height, inner, 1)), e.reshape(b, (count, 1, inner, width)))
    return e.reshape(e("reduce_sum", terms, axis=2), (count, height, width))
