"""NumPy's other ways to join and split tensors: rolled, repeated, rotated, cut along diagonals, joined by rows and columns."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...lowering.formulas.layout import taken
from .arithmetic import where
from .conversion import axis_of, tensor
from .creation import zeros
from .layout import concatenate, flip, moveaxis, reshape, split, swapaxes, transpose
from .tensor import Tensor
from .trace import problem, recorded

Axes = int | Sequence[int] | None


def by_places(x: Tensor, axis: int, places: Any) -> Tensor:
    """Return elements along an axis by known indices."""
    known = np.asarray(places, np.int64)
    if not known.size:
        return x[(slice(None),) * axis + (slice(0, 0),)]
    return recorded(lambda t: t.of(taken(t.builder, t.value, axis, known)) if t.value.tensor.size else t.of(
        t.builder.reshape(t.value, [known.size if a == axis else n for a, n in enumerate(x.shape)])), x)


def roll(x: Any, shift: int | Sequence[int], axis: Axes = None) -> Tensor:
    """Elements shifted by `shift` along an axis; those that pass its end reappear at its beginning. Without an axis, of all
    elements in their order."""
    x = tensor(x)
    if axis is None:
        return reshape(roll(reshape(x, -1), int(np.sum(shift)), 0), x.shape)
    axes = [axis] if isinstance(axis, int) else list(axis)
    shifts = [shift] * len(axes) if isinstance(shift, int) else list(shift)
    if len(shifts) not in (1, len(axes)):
        raise problem(f"{len(shifts)} shifts for {len(axes)} axes", "argument")
    for distance, a in zip(shifts * len(axes) if len(shifts) == 1 else shifts, axes):
        place = axis_of(a, x.ndim)
        extent = x.shape[place]
        if extent and distance % extent:
            x = by_places(x, place, np.roll(np.arange(extent), distance))
    return x


def repeat(x: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Each element repeated, with one count for all or one for each; the counts are known. Without an axis, of all elements."""
    x = tensor(x)
    if isinstance(repeats, Tensor):
        raise problem("the repeats of a repeat must be known: the shape of its result depends on them", "unsupported",
                      help="a Python number, a list or a NumPy array")
    if axis is None:
        x, axis = reshape(x, -1), 0
    place = axis_of(axis, x.ndim)
    times = np.asarray(repeats)
    if times.dtype.kind not in "iu" or times.ndim > 1 or times.size not in (1, x.shape[place]) or (times < 0).any():
        raise problem(f"{repeats!r} does not say how often each of {x.shape[place]} elements comes", "argument")
    return by_places(x, place, np.repeat(np.arange(x.shape[place]), times.reshape(-1)))


def rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """The tensor rotated by right angles, from the first axis towards the second."""
    x = tensor(m)
    a, b = (axis_of(axis, x.ndim) for axis in axes)
    for _ in range(k % 4):
        x = flip(swapaxes(x, a, b), a)
    return x


def fliplr(m: Any) -> Tensor:
    return flip(m, 1)


def flipud(m: Any) -> Tensor:
    return flip(m, 0)


# ---- triangles and diagonals -------------------------------------------------------------------------------------
def tril(x: Any, k: int = 0) -> Tensor:
    """Elements on and below a diagonal, `k` above the main diagonal; zeros above."""
    x = matrices(x, "tril")
    return where(np.tri(x.shape[-2], x.shape[-1], k, dtype=bool), x, tensor(0, x.element))


def triu(x: Any, k: int = 0) -> Tensor:
    """Elements on and above a diagonal, `k` above the main diagonal; zeros below."""
    x = matrices(x, "triu")
    return where(~np.tri(x.shape[-2], x.shape[-1], k - 1, dtype=bool), x, tensor(0, x.element))


def matrices(x: Any, name: str) -> Tensor:
    x = tensor(x)
    if x.ndim < 2:
        raise problem(f"{name} takes a tensor of rank 2 or more, not {x.type}", "shape")
    return x


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The elements of a diagonal of two axes, along a last axis."""
    x = matrices(x, "diagonal")
    a, b = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    if a == b:
        raise problem("a diagonal has two different axes", "argument")
    x = moveaxis(x, (a, b), (-2, -1))
    rows, columns = x.shape[-2:]
    first = -offset * columns if offset < 0 else offset
    count = min(rows + min(offset, 0), columns - max(offset, 0))
    flat = reshape(x, (*x.shape[:-2], rows * columns))
    if count <= 0:
        return flat[..., :0]
    return flat[..., first:first + (count - 1) * (columns + 1) + 1:columns + 1]


def diag(v: Any, k: int = 0) -> Tensor:
    """A diagonal of a matrix, or the matrix with a vector as that diagonal."""
    x = tensor(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise problem(f"diag takes a vector or a matrix, not {x.type}", "shape", help="tosaic.ops.diagonal")
    return diagflat(x, k)


def diagflat(v: Any, k: int = 0) -> Tensor:
    """The matrix with these elements as a diagonal."""
    x = reshape(v, -1)
    extent = x.size + abs(k)
    rows = np.eye(extent, extent, k, dtype=bool)
    place = np.clip(np.arange(extent) + min(k, 0), 0, max(x.size - 1, 0))
    if not x.size:
        return zeros((extent, extent), x.element)
    return where(rows, reshape(by_places(x, 0, place), (-1, 1)), tensor(0, x.element))


# ---- joined and split --------------------------------------------------------------------------------------------
def unstack(x: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts along an axis, which is removed."""
    x = tensor(x)
    place = axis_of(axis, x.ndim)
    return tuple(x[(slice(None),) * place + (i,)] for i in range(x.shape[place]))


def atleast_1d(x: Any) -> Tensor:
    return tensor(x, rank=1)


def atleast_2d(x: Any) -> Tensor:
    return tensor(x, rank=2)


def atleast_3d(x: Any) -> Tensor:
    """The tensor with rank 3 or more: a vector becomes one row of one matrix, a matrix gets a last axis."""
    found = atleast_2d(x)
    return found if found.ndim > 2 else reshape(found, (*found.shape, 1))


def vstack(tup: Sequence[Any]) -> Tensor:
    """Tensors joined by rows, one below the other."""
    return concatenate([atleast_2d(part) for part in tup], 0)


def hstack(tup: Sequence[Any]) -> Tensor:
    """Tensors joined by columns, side by side; vectors one after the other."""
    parts = [atleast_1d(part) for part in tup]
    return concatenate(parts, 0 if parts and parts[0].ndim == 1 else 1)


def dstack(tup: Sequence[Any]) -> Tensor:
    """Tensors joined along the third axis."""
    return concatenate([atleast_3d(part) for part in tup], 2)


def column_stack(tup: Sequence[Any]) -> Tensor:
    """Vectors as columns."""
    parts = [tensor(part) for part in tup]
    return concatenate([reshape(part, (-1, 1)) if part.ndim < 2 else part for part in parts], 1)


def array_split(ary: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Parts along an axis, as equal as possible."""
    x = tensor(ary)
    if not isinstance(indices_or_sections, int):
        return split(x, indices_or_sections, axis)
    extent = x.shape[axis_of(axis, x.ndim)]
    ends = np.cumsum([len(part) for part in np.array_split(np.empty(extent), indices_or_sections)])[:-1]
    return split(x, ends.tolist(), axis)


def rollaxis(a: Any, axis: int, start: int = 0) -> Tensor:
    """Move an axis before axis `start`."""
    x = tensor(a)
    place = axis_of(axis, x.ndim)
    return moveaxis(x, place, start - 1 if place < start else start)


def permute_dims(x: Any, axes: Sequence[int]) -> Tensor:
    """`transpose` under the name of the array API standard."""
    return transpose(x, axes)


def matrix_transpose(x: Any) -> Tensor:
    """The last two axes exchanged."""
    return swapaxes(matrices(x, "matrix_transpose"), -1, -2)


__all__ = ["array_split", "atleast_1d", "atleast_2d", "atleast_3d", "column_stack", "diag", "diagflat", "diagonal", "dstack",
           "fliplr", "flipud", "hstack", "matrix_transpose", "permute_dims", "repeat", "roll", "rollaxis", "rot90", "tril",
           "triu", "unstack", "vstack"]
