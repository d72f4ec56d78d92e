"""Sums of products: of matrices, of vectors, along named axes. NumPy's names.

Products of one-byte or two-byte integers are i32, as in TOSA's MATMUL; NumPy keeps the narrow type and wraps.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...lowering.formulas import einsum as named_axes
from ...lowering.formulas.term import Term
from ...lowering.graph.types import F16, F32, I1, I16, I32, I64, UI8, UI32, UI64, ElementType
from .arithmetic import multiply, subtract, where
from .conversion import axis_of, broadcast, common_element, converted, from_python, is_number, tensor
from .creation import zeros
from .layout import bordered, broadcast_to, concatenate, expand_dims, flip, moveaxis, reshape, squeeze, transpose
from .rearranging import diagonal, roll
from .reduction import sum
from .tensor import Tensor
from .trace import problem, recorded

Axes = int | Sequence[Any]


def factors(operator: str, *values: Any) -> list[Tensor]:
    """Return the operands in one element type, each with its own rank."""
    given = [v if isinstance(v, Tensor) or is_number(v) else from_python(v) for v in values]
    element = common_element(given, operator)
    return [converted(tensor(v, element), element) for v in given]


def working_types(element: ElementType) -> tuple[ElementType, ElementType]:
    """Return the type that products are computed in, and that of the result."""
    if element == I1:
        return I32, I1
    if element in (I16, UI8):
        return I32, I32
    if element.kind == "unsigned":
        return {UI32: (I64, UI32), UI64: (I64, UI64)}.get(element, (I32, UI32))
    return element, element


# ---- matrices ----------------------------------------------------------------------------------------------------
def matmul(a: Any, b: Any) -> Tensor:
    """Matrix products; batches broadcast. Products of narrow integers are i32; of bools, true if any product is true."""
    x, y = factors("matmul", a, b)
    if not x.ndim or not y.ndim:
        raise problem(f"matmul of {x.type} and {y.type}: it needs two tensors of rank 1 or more")
    working, element = working_types(x.element)
    left, right = converted(x, working), converted(y, working)
    result = product(expand_dims(left, 0) if x.ndim == 1 else left, expand_dims(right, 1) if y.ndim == 1 else right)
    if working != element:
        result = converted(result, element)
    if y.ndim == 1:
        result = squeeze(result, -1)
    return squeeze(result, -1 if y.ndim == 1 else -2) if x.ndim == 1 else result


def product(x: Tensor, y: Tensor) -> Tensor:
    """Multiply operands of rank 2 or more. A single matrix on the right takes all rows of the left at once."""
    rows, inner, width = x.shape[-2], x.shape[-1], y.shape[-1]
    if inner != y.shape[-2]:
        raise problem(f"matmul of {x.type} and {y.type}: inner extents {inner} and {y.shape[-2]} differ", "shape")
    batch = broadcast(x.shape[:-2], y.shape[:-2], operator="matmul")
    if not x.size or not y.size:
        return zeros((*batch, rows, width), x.element)
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


def matvec(a: Any, b: Any) -> Tensor:
    """Matrices times vectors; batches of both broadcast."""
    x, y = tensor(a), tensor(b)
    at_least(x, 2, "matvec")
    at_least(y, 1, "matvec")
    return squeeze(matmul(x, expand_dims(y, -1)), -1)


def vecmat(a: Any, b: Any) -> Tensor:
    """Vectors times matrices; batches of both broadcast."""
    x, y = tensor(a), tensor(b)
    at_least(x, 1, "vecmat")
    at_least(y, 2, "vecmat")
    return squeeze(matmul(expand_dims(x, -2), y), -2)


def at_least(x: Tensor, rank: int, name: str) -> None:
    if x.ndim < rank:
        raise problem(f"{name} takes a tensor of rank {rank} or more here, not {x.type}", "shape")


# ---- vectors -----------------------------------------------------------------------------------------------------
def vecdot(x1: Any, x2: Any, axis: int = -1) -> Tensor:
    """Inner products of vectors along an axis; the other axes broadcast."""
    x, y = factors("vecdot", x1, x2)
    at_least(x, 1, "vecdot")
    at_least(y, 1, "vecdot")
    if x.shape[axis_of(axis, x.ndim)] != y.shape[axis_of(axis, y.ndim)]:
        raise problem(f"vecdot of {x.type} and {y.type}: the extents of axis {axis} differ", "shape")
    if axis_of(axis, x.ndim) - x.ndim != axis_of(axis, y.ndim) - y.ndim:
        x, y, axis = moveaxis(x, axis, -1), moveaxis(y, axis, -1), -1
    elif axis >= 0:
        axis -= x.ndim
    working, element = working_types(x.element)
    working = F32 if working == F16 else I32 if working.is_integer and working.bits < 32 else working
    element = I32 if element.is_integer and element.bits < 32 else element
    return converted(sum(multiply(converted(x, working), converted(y, working)), axis), element)


def dot(a: Any, b: Any) -> Tensor:
    """Inner product of vectors; product of a number and a tensor; else the sum of products over the last axis of a and the last
    but one of b."""
    x, y = tensor(a), tensor(b)
    if not x.ndim or not y.ndim:
        return multiply(x, y)
    return matmul(x, y) if y.ndim <= 2 else tensordot(x, y, ((x.ndim - 1,), (y.ndim - 2,)))


def inner(a: Any, b: Any) -> Tensor:
    """Sum of products over the last axes of both operands."""
    x, y = tensor(a), tensor(b)
    return multiply(x, y) if not x.ndim or not y.ndim else tensordot(x, y, ((x.ndim - 1,), (y.ndim - 1,)))


def vdot(a: Any, b: Any) -> Tensor:
    """Inner product of all elements in their order."""
    return matmul(reshape(a, -1), reshape(b, -1))


def outer(a: Any, b: Any) -> Tensor:
    """Matrix of each element of a times each element of b."""
    return multiply(reshape(a, (-1, 1)), reshape(b, (1, -1)))


def kron(a: Any, b: Any) -> Tensor:
    """Block tensor of each element of a times the whole of b."""
    x, y = tensor(a), tensor(b)
    rank = max(x.ndim, y.ndim)
    x, y = tensor(x, rank=rank), tensor(y, rank=rank)
    places = [n for a in range(rank) for n in (x.shape[a], 1)], [n for a in range(rank) for n in (1, y.shape[a])]
    return reshape(multiply(reshape(x, places[0]), reshape(y, places[1])), tuple(n * m for n, m in zip(x.shape, y.shape)))


def cross(a: Any, b: Any, axis: int = -1) -> Tensor:
    """Vector product of three-element vectors along an axis."""
    x, y = factors("cross", a, b)
    for v in (x, y):
        if not v.ndim or v.shape[axis_of(axis, v.ndim)] != 3:
            raise problem(f"cross takes vectors of 3 elements along axis {axis}, not {v.type}", "shape")
    left, right = moveaxis(x, axis, -1), moveaxis(y, axis, -1)
    forward = multiply(roll(left, -1, -1), roll(right, -2, -1))
    found = subtract(forward, multiply(roll(left, -2, -1), roll(right, -1, -1)))
    return moveaxis(found, -1, axis)


# ---- any axes ----------------------------------------------------------------------------------------------------
def tensordot(a: Any, b: Any, axes: Axes = 2) -> Tensor:
    """Sum of products over the last `axes` axes of a and the first of b, or over two lists of axes."""
    x, y = factors("tensordot", a, b)
    if isinstance(axes, int | np.integer):
        first, second = list(range(x.ndim - int(axes), x.ndim)), list(range(int(axes)))
    else:
        first, second = ([axis_of(v, t.ndim) for v in ([each] if isinstance(each, int) else each)]
                         for each, t in zip(axes, (x, y)))
    if len(first) != len(second) or (first and min(first) < 0) or len(second) > y.ndim or any_differ(x, y, first, second):
        raise problem(f"tensordot of {x.type} and {y.type} over axes {first} and {second}: their extents differ", "shape")
    rows = [axis for axis in range(x.ndim) if axis not in first]
    columns = [axis for axis in range(y.ndim) if axis not in second]
    inner = math.prod(x.shape[axis] for axis in first)
    dims = (*(x.shape[axis] for axis in rows), *(y.shape[axis] for axis in columns))
    left = reshape(transpose(x, [*rows, *first]), (math.prod(x.shape[axis] for axis in rows), inner))
    right = reshape(transpose(y, [*second, *columns]), (inner, math.prod(y.shape[axis] for axis in columns)))
    return reshape(matmul(left, right), dims)


def any_differ(x: Tensor, y: Tensor, first: Sequence[int], second: Sequence[int]) -> bool:
    return [x.shape[axis] for axis in first] != [y.shape[axis] for axis in second]


def einsum(subscripts: str, *operands: Any) -> Tensor:
    """Sum of products along named axes: "ij,jk->ik". With more than two operands, the first two are contracted first."""
    if not isinstance(subscripts, str) or not operands:
        raise problem("einsum takes a string and tensors", "argument", help='einsum("ij,jk->ik", a, b)')
    given = factors("einsum", *operands)
    working, element = working_types(given[0].element)
    given = [converted(x, working) for x in given]
    left, result = spelled(subscripts.replace(" ", ""), [x.ndim for x in given])
    while len(given) > 2:
        kept = pair(left[:2], left[2:], result)
        given[:2] = [contracted(f"{left[0]},{left[1]}->{kept}", given[:2])]
        left[:2] = [kept]
    found = contracted(f"{','.join(left)}->{result}", given)
    return found if element == working else converted(found, element)


def contracted(equation: str, operands: Sequence[Tensor]) -> Tensor:
    def formula(*terms: Term) -> Term:
        return terms[0].of(named_axes.einsum(terms[0].builder, [t.value for t in terms], equation))
    return recorded(formula, *operands)


def spelled(text: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the axes of the operands and those of the result. Without a written result, it has the axes that occur once, in
    alphabetical order."""
    operands, arrow, result = text.partition("->")
    left = operands.split(",")
    if len(left) != len(ranks):
        raise problem(f"the equation {text!r} has {len(left)} operands, {len(ranks)} are given", "argument")
    if not arrow:
        letters = operands.replace("...", "").replace(",", "")
        result = ("..." if "..." in operands else "") + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    return left, result


def pair(first: Sequence[str], others: Sequence[str], result: str) -> str:
    """Return the axes of two operands' product that are still needed."""
    needed = set("".join(others).replace("...", "") + result.replace("...", ""))
    letters = dict.fromkeys("".join(first).replace("...", ""))
    return ("..." if any("..." in part for part in first) else "") + "".join(c for c in letters if c in needed)


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, *, dtype: Any = None) -> Tensor:
    """Sum of a diagonal of two axes."""
    return sum(diagonal(x, offset, axis1, axis2), -1, dtype=dtype)


def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """Sums of products of one vector and the reversed other one, at each offset."""
    x, y = factors("convolve", a, v)
    if x.ndim != 1 or y.ndim != 1 or not x.size or not y.size:
        raise problem(f"convolve takes two vectors, not {x.type} and {y.type}", "shape")
    x, y = (x, y) if x.size >= y.size else (y, x)
    count = {"full": x.size + y.size - 1, "same": x.size, "valid": x.size - y.size + 1}.get(mode)
    if count is None:
        raise problem(f"the mode of convolve is 'full', 'same' or 'valid', not {mode!r}", "argument")
    first = {"full": 0, "same": (y.size - 1) // 2, "valid": y.size - 1}[mode]
    wide, weights, border = bordered(x, (y.size - 1, y.size - 1)), flip(y), y.size - 1
    places = np.arange(count)[:, None] + first + np.arange(y.size)
    if not x.element.is_float:
        return matmul(wide[places], weights)
    inside = (places >= border) & (places < border + x.size)
    before, behind = (int(np.argmax(side)) if side.any() else count for side in (
        inside.all(1), ~inside.all(1) & (np.arange(count) > np.argmax(inside.all(1)))))
    parts = [overlapping(wide[places[:before]], weights, inside[:before])] if before else []
    parts += [matmul(wide[places[before:behind]], weights)] if behind > before else []
    parts += [overlapping(wide[places[behind:]], weights, inside[behind:])] if behind < count else []
    return parts[0] if len(parts) == 1 else concatenate(parts)


def overlapping(windows: Tensor, weights: Tensor, inside: np.ndarray[Any, Any]) -> Tensor:
    """Return the sums of products of windows that reach over a border, for the elements inside. An infinite or NaN weight has
    no product with the zeros of the border."""
    own = where(inside, weights, 0)
    return reshape(matmul(expand_dims(windows, 1), expand_dims(own, 2)), (windows.shape[0],))


__all__ = ["convolve", "cross", "dot", "einsum", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "trace", "vdot",
           "vecdot", "vecmat"]
