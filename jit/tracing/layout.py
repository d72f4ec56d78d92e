"""Functions of traced tensors that move elements: reshape, transpose, broadcast, join, pad, take. NumPy's names."""
from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...lowering.graph.types import I32
from ...runtime.errors import IndexProblem, Problem, TypeProblem
from .arithmetic import astype
from .conversion import axis_of, broadcast, extents, in_range, operands, tensor
from .tensor import Tensor
from .trace import apply, constant, problem
from .trace import shape as shape_of


def reshape(x: Any, *shape: Any) -> Tensor:
    """The same elements in another shape; one extent may be -1."""
    x = tensor(x)
    dims = extents(shape[0] if len(shape) == 1 else shape, math.prod(x.shape))
    if math.prod(dims) != math.prod(x.shape):
        raise problem(f"{x.type} has {math.prod(x.shape)} elements, shape {list(dims)} has {math.prod(dims)}", "shape")
    return x if dims == x.shape else apply("reshape", x, shape_of(dims))


def ravel(x: Any) -> Tensor:
    return reshape(x, -1)


def transpose(x: Any, axes: Sequence[int] | None = None) -> Tensor:
    """Axis axes[i] of `x` becomes axis i; without `axes` their order is turned around."""
    x = tensor(x)
    order = tuple(reversed(range(x.ndim))) if axes is None else tuple(axis_of(a, x.ndim) for a in axes)
    if sorted(order) != list(range(x.ndim)):
        raise problem(f"{list(axes or ())} is no order of the {x.ndim} axes of {x.type}", "argument")
    return x if order == tuple(range(x.ndim)) else apply("transpose", x, perms=order)


def swapaxes(x: Any, first: int, second: int) -> Tensor:
    x = tensor(x)
    order = list(range(x.ndim))
    a, b = axis_of(first, x.ndim), axis_of(second, x.ndim)
    order[a], order[b] = order[b], order[a]
    return transpose(x, order)


def moveaxis(x: Any, source: int, destination: int) -> Tensor:
    x = tensor(x)
    order = [a for a in range(x.ndim) if a != axis_of(source, x.ndim)]
    order.insert(axis_of(destination, x.ndim), axis_of(source, x.ndim))
    return transpose(x, order)


def expand_dims(x: Any, axis: int) -> Tensor:
    x = tensor(x)
    place = axis_of(axis, x.ndim + 1)
    return reshape(x, (*x.shape[:place], 1, *x.shape[place:]))


def squeeze(x: Any, axis: int | Sequence[int] | None = None) -> Tensor:
    """Without the axes of extent 1, or the given ones, which must have it."""
    x = tensor(x)
    given = [axis] if isinstance(axis, int) else axis
    axes = {a for a, n in enumerate(x.shape) if n == 1} if given is None else {axis_of(a, x.ndim) for a in given}
    for a in sorted(axes):
        if x.shape[a] != 1:
            raise problem(f"axis {a} of {x.type} has extent {x.shape[a]}, only 1 can be squeezed", "shape")
    return reshape(x, tuple(n for a, n in enumerate(x.shape) if a not in axes))


def broadcast_to(x: Any, shape: Sequence[int]) -> Tensor:
    dims = extents(shape)
    x = tensor(x, rank=len(dims))
    if broadcast(x.shape, dims, operator="broadcast_to") != dims:
        raise problem(f"{x.type} does not broadcast to {list(dims)}", "shape")
    return tile(x, tuple(n // m for n, m in zip(dims, x.shape)))


def tile(x: Any, repeats: int | Sequence[int]) -> Tensor:
    """`x` repeated along each axis."""
    times = extents(repeats)
    x = tensor(x, rank=len(times))
    times = (1,) * (x.ndim - len(times)) + times
    return x if set(times) <= {1} else apply("tile", x, shape_of(times))


def concatenate(parts: Sequence[Any], axis: int = 0) -> Tensor:
    """Tensors one after the other along an axis."""
    given = joinable(parts, "concatenate")
    if not given[0].ndim:
        raise problem(f"{given[0].type} has no axis to join along", "shape", help="tosaic.ops.stack makes one")
    for part in given:
        if part.ndim != given[0].ndim:
            raise problem(f"concatenate of {given[0].type} and {part.type}: their ranks differ", "shape")
    place = axis_of(axis, given[0].ndim)
    return given[0] if len(given) == 1 else apply("concat", *given, axis=place)


def stack(parts: Sequence[Any], axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis."""
    given = joinable(parts, "stack")
    for part in given:
        if part.shape != given[0].shape:
            raise problem(f"stack of {given[0].type} and {part.type}: their shapes differ", "shape")
    return concatenate([expand_dims(part, axis) for part in given], axis_of(axis, given[0].ndim + 1))


def joinable(parts: Sequence[Any], operator: str) -> list[Tensor]:
    """Tensors of one element type; numbers among them take it."""
    if isinstance(parts, Tensor) or not isinstance(parts, list | tuple) or not parts:
        raise problem(f"{operator} takes a list of tensors", "argument", raised=TypeProblem)
    element = next((p.element for p in parts if isinstance(p, Tensor)), None)
    given = [tensor(p, element) for p in parts]
    for part in given:
        if part.element != given[0].element:
            raise problem(f"{operator} of {given[0].type} and {part.type}: their element types differ")
    return given


def split(x: Any, sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Equal parts along an axis, or the parts between the given places."""
    x = tensor(x)
    place = axis_of(axis, x.ndim)
    if isinstance(sections, int):
        if sections < 1 or x.shape[place] % sections:
            raise problem(f"axis {place} of {x.type} does not split into {sections} equal parts", "shape")
        step = x.shape[place] // sections
        sections = list(range(step, x.shape[place], step))
    ends = [0, *sections, x.shape[place]]
    return [x[(slice(None),) * place + (slice(a, b),)] for a, b in pairwise(ends)]


def pad(x: Any, width: Any, value: Any = 0) -> Tensor:
    """A border of `value`: `width` is a number, (before, after), or one such pair for each axis."""
    x = tensor(x)
    try:
        pairs = np.broadcast_to(np.asarray(width, np.int64), (x.ndim, 2))
    except Problem:
        raise
    except (ValueError, TypeError):
        raise problem(f"pad needs a (before, after) pair for each of {x.ndim} axes, not {width!r}",
                      "argument") from None
    if pairs.min(initial=0) < 0:
        raise problem(f"pad by {pairs.tolist()}: a border is not negative", "argument")
    border = tensor(value, x.element)
    if border.element != x.element or math.prod(border.shape) != 1:
        raise problem(f"the border of {x.type} is one {x.element}, not a {border.type}")
    return x if not pairs.any() else apply("pad", x, shape_of(pairs.reshape(-1).tolist()), reshape(border, 1))


def flip(x: Any, axis: int | Sequence[int] | None = None) -> Tensor:
    x = tensor(x)
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    for a in axes:
        x = apply("reverse", x, axis=axis_of(a, x.ndim))
    return x


def take(x: Any, indices: Any, axis: int = 0) -> Tensor:
    """Elements at `indices` along an axis. Indices that are known are checked; others must be from 0 to extent - 1."""
    x = tensor(x)
    if not x.ndim:
        raise problem(f"{x.type} has no axis to take from", "shape")
    place = axis_of(axis, x.ndim)
    index = places(indices, x, place)
    outer, inner = x.shape[:place], x.shape[place + 1:]
    count, batches = math.prod(index.shape), math.prod(outer)
    flat = broadcast_to(reshape(index, (1, count)), (batches, count))
    packed = astype(x, "i8") if x.element.kind == "bool" else x
    result = apply("gather", reshape(packed, (batches, x.shape[place], math.prod(inner))), flat)
    return astype(reshape(result, (*outer, *index.shape, *inner)), x.element)


def places(indices: Any, x: Tensor, axis: int) -> Tensor:
    """Indices of an axis as a tensor of i32, negative ones counted from the end where they are known."""
    extent = x.shape[axis]
    if isinstance(indices, Tensor):
        if not indices.element.is_integer:
            raise problem(f"indices are integers, not {indices.type}")
        return indices if indices.element == I32 else astype(indices, I32)
    known = np.asarray(indices)
    if known.dtype.kind not in "iu" or not known.size:
        raise problem(f"indices are integers, not {indices!r}")
    if known.min() < -extent or known.max() >= extent:
        wrong = known.min() if known.min() < -extent else known.max()
        raise problem(f"index {wrong} is outside axis {axis} of {x.type}", "argument", raised=IndexProblem)
    in_range(int(known.min()), int(known.max()), I32)
    return constant(np.where(known < 0, known + extent, known).astype(np.int32))


def full_like(x: Any, value: Any) -> Tensor:
    x = tensor(x)
    return broadcast_to(tensor(value, x.element), x.shape)


def zeros_like(x: Any) -> Tensor:
    x = tensor(x)
    return constant(np.zeros(x.shape, x.element.dtype), x.element)


def ones_like(x: Any) -> Tensor:
    x = tensor(x)
    return constant(np.ones(x.shape, x.element.dtype), x.element)


def broadcast_arrays(*values: Any) -> list[Tensor]:
    given = operands(*values, operator="broadcast_arrays")
    dims = broadcast(*(x.shape for x in given), operator="broadcast_arrays")
    return [broadcast_to(x, dims) for x in given]


__all__ = ["broadcast_arrays", "broadcast_to", "concatenate", "expand_dims", "flip", "full_like", "moveaxis",
           "ones_like", "pad", "ravel", "reshape", "split", "squeeze", "stack", "swapaxes", "take", "tile",
           "transpose", "zeros_like"]
