"""Sums, extremes, means and products of matrices of traced tensors, with NumPy's names and NumPy's meaning."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...lowering.formulas import softmax as formulas
from ...lowering.formulas.term import Term
from ...lowering.graph.types import F32, I16, I32, UI8
from .arithmetic import astype, bitwise_xor, multiply, negative, subtract
from .conversion import axis_of, broadcast, tensor
from .layout import broadcast_to, expand_dims, reshape, squeeze
from .tensor import Tensor
from .trace import apply, problem, recorded

Axes = int | Sequence[int] | None


def reduced(name: str, x: Tensor, axis: Axes, keepdims: bool, **attributes: Any) -> Tensor:
    """A reduction along some axes; without `axis` along all."""
    given = range(x.ndim) if axis is None else axis if isinstance(axis, Sequence) else [axis]
    axes = {axis_of(a, x.ndim) for a in given}
    kept = tuple(1 if a in axes else n for a, n in enumerate(x.shape))
    if len(axes) == x.ndim > 1:
        x = apply(name, reshape(x, -1), axis=0, **attributes)
    else:
        for a in sorted(axes, reverse=True):
            x = apply(name, x, axis=a, **attributes)
    return reshape(x, kept if keepdims else tuple(n for a, n in enumerate(kept) if a not in axes))


def sum(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Sum; of narrow integers and bools in i32."""
    x = tensor(x)
    return reduced("reduce_sum", x if x.element.is_float else astype(x, I32), axis, keepdims)


def prod(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Product, of floats."""
    return reduced("reduce_product", tensor(x), axis, keepdims)


def max(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    return reduced("reduce_max", tensor(x), axis, keepdims)


def min(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    return reduced("reduce_min", tensor(x), axis, keepdims)


def any(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    return reduced("reduce_any", astype(x, "i1"), axis, keepdims)


def all(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    return reduced("reduce_all", astype(x, "i1"), axis, keepdims)


def mean(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The sum over the number of elements; integers in f32."""
    x = tensor(x)
    total = sum(x if x.element.is_float else astype(x, F32), axis, keepdims)
    return multiply(total, math.prod(total.shape) / math.prod(x.shape))


def var(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    x = tensor(x)
    centred = subtract(x if x.element.is_float else astype(x, F32), mean(x, axis, True))
    return mean(multiply(centred, centred), axis, keepdims)


def argmax(x: Any, axis: int | None = None) -> Tensor:
    """The place of the first greatest element, an i32."""
    x = tensor(x)
    if x.element == I32:
        raise problem(f"argmax of {x.type}: TOSA has it for i8, i16 and floats", "unsupported", help="convert it first")
    if axis is None:
        x, axis = reshape(x, -1), 0
    return apply("argmax", x, axis=axis_of(axis, x.ndim))


def argmin(x: Any, axis: int | None = None) -> Tensor:
    x = tensor(x)
    return argmax(negative(x) if x.element.is_float else bitwise_xor(x, -1), axis)


def softmax(x: Any, axis: int = -1) -> Tensor:
    x = tensor(x)
    place = axis_of(axis, x.ndim)
    return recorded(lambda t: formulas.softmax(t, place), x)


def logsumexp(x: Any, axis: int = -1, keepdims: bool = False) -> Tensor:
    x = tensor(x)
    place = axis_of(axis, x.ndim)
    result = recorded(lambda t: formulas.log_sum_exp(t, place), x)
    return result if keepdims else squeeze(result, axis)


def matmul(a: Any, b: Any) -> Tensor:
    """Products of matrices, batches broadcast. Of integers they are i32."""
    element = next((v.element for v in (a, b) if isinstance(v, Tensor)), None)
    x, y = tensor(a, element), tensor(b, element)
    if x.element == y.element and x.element in (I16, UI8):
        x, y = astype(x, I32), astype(y, I32)
    if not x.ndim or not y.ndim or x.element != y.element:
        raise problem(f"matmul of {x.type} and {y.type}: it needs two tensors of one element type, of rank 1 or more")
    result = product(expand_dims(x, 0) if x.ndim == 1 else x, expand_dims(y, 1) if y.ndim == 1 else y)
    if y.ndim == 1:
        result = squeeze(result, -1)
    return squeeze(result, -1 if y.ndim == 1 else -2) if x.ndim == 1 else result


def product(x: Tensor, y: Tensor) -> Tensor:
    """Of rank 2 or more. One matrix on the right takes all rows of the left at once."""
    rows, inner, width = x.shape[-2], x.shape[-1], y.shape[-1]
    if inner != y.shape[-2]:
        raise problem(f"matmul of {x.type} and {y.type}: inner extents {inner} and {y.shape[-2]} differ", "shape")
    batch = broadcast(x.shape[:-2], y.shape[:-2], operator="matmul")
    if x.element == I32:  # TOSA's MATMUL takes floats, i8 and i16
        return sum(multiply(expand_dims(x, -1), expand_dims(y, -3)), -2)
    count = math.prod(batch)
    if math.prod(y.shape[:-2]) == 1:
        left = reshape(x, (1, math.prod(x.shape[:-1]), inner))
        right = reshape(y, (1, inner, width))
    else:
        left = reshape(broadcast_to(x, (*batch, rows, inner)), (count, rows, inner))
        right = reshape(broadcast_to(y, (*batch, inner, width)), (count, inner, width))
    return reshape(recorded(matrix_product, left, right), (*batch, rows, width))


def matrix_product(x: Term, y: Term) -> Term:
    zero = x.builder.zero_point(x.element)
    return x.of(x.builder("matmul", x.value, y.value, zero, zero))


def dot(a: Any, b: Any) -> Tensor:
    """Of vectors their inner product; otherwise like matmul, for ranks up to 2."""
    x, y = tensor(a), tensor(b)
    if x.ndim > 2 or y.ndim > 2:
        raise problem(f"dot of {x.type} and {y.type}: ranks above 2 are matmul's", "unsupported",
                      help="tosaic.ops.matmul")
    return matmul(x, y) if x.ndim and y.ndim else multiply(x, y)


def outer(a: Any, b: Any) -> Tensor:
    return multiply(reshape(a, (-1, 1)), reshape(b, (1, -1)))


__all__ = ["all", "any", "argmax", "argmin", "dot", "logsumexp", "matmul", "max", "mean", "min", "outer", "prod",
           "softmax", "sum", "var"]
