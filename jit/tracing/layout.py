"""Functions of traced tensors that move elements: reshape, transpose, broadcast, join, pad, take. NumPy's names."""
from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...lowering.formulas.indexing import gathered
from ...lowering.formulas.layout import padded, reversed_axis
from ...lowering.formulas.term import select
from ...lowering.graph.types import I32
from ...runtime.errors import IndexProblem, Problem, TypeProblem
from .arithmetic import astype
from .conversion import (
    axis_of,
    broadcast,
    common_element,
    converted,
    extents,
    from_python,
    in_range,
    is_number,
    tensor,
)
from .creation import zeros
from .tensor import Tensor
from .trace import constant, problem, recorded


def reshape(x: Any, *shape: Any) -> Tensor:
    """The same elements in another shape; one extent may be -1."""
    x = tensor(x)
    dims = extents(shape[0] if len(shape) == 1 else shape, math.prod(x.shape))
    if math.prod(dims) != math.prod(x.shape):
        raise problem(f"{x.type} has {math.prod(x.shape)} elements, shape {list(dims)} has {math.prod(dims)}", "shape")
    return x if dims == x.shape else recorded(lambda t: t.of(t.builder.reshape(t.value, dims)), x)


def ravel(x: Any) -> Tensor:
    return reshape(x, -1)


def transpose(x: Any, axes: Sequence[int] | None = None) -> Tensor:
    """Axis axes[i] of `x` becomes axis i; without `axes` their order is reversed."""
    x = tensor(x)
    order = tuple(reversed(range(x.ndim))) if axes is None else tuple(axis_of(a, x.ndim) for a in axes)
    if sorted(order) != list(range(x.ndim)):
        raise problem(f"{list(axes or ())} is no order of the {x.ndim} axes of {x.type}", "argument")
    return recorded(lambda t: t.of(t.builder.transpose(t.value, order)), x)


def swapaxes(x: Any, first: int, second: int) -> Tensor:
    x = tensor(x)
    order = list(range(x.ndim))
    a, b = axis_of(first, x.ndim), axis_of(second, x.ndim)
    order[a], order[b] = order[b], order[a]
    return transpose(x, order)


def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Move the axes `source` to the positions `destination`; the others keep their order."""
    x = tensor(x)
    sources, places = (distinct(v, x.ndim) for v in (source, destination))
    if len(sources) != len(places):
        raise problem(f"moveaxis of {len(sources)} axes to {len(places)} places", "argument")
    rest = iter([a for a in range(x.ndim) if a not in sources])
    chosen = dict(zip(places, sources))
    return transpose(x, [chosen[a] if a in chosen else next(rest) for a in range(x.ndim)])


def distinct(axes: int | Sequence[int], rank: int) -> tuple[int, ...]:
    """Return axes counted from the front. Raise a Problem for an axis that occurs twice."""
    found = tuple(axis_of(a, rank) for a in ([axes] if isinstance(axes, int | np.integer) else axes))
    if len(set(found)) != len(found):
        raise problem(f"axes {list(found)}: one is there twice", "argument")
    return found


def expand_dims(x: Any, axis: int | Sequence[int]) -> Tensor:
    """Insert axes of extent 1 at these positions of the result."""
    x = tensor(x)
    count = 1 if isinstance(axis, int | np.integer) else len(axis)
    places = distinct(axis, x.ndim + count)
    rest = iter(x.shape)
    return reshape(x, tuple(1 if a in places else next(rest) for a in range(x.ndim + count)))


def squeeze(x: Any, axis: int | Sequence[int] | None = None) -> Tensor:
    """Remove the axes of extent 1, or the given axes, which must have extent 1."""
    x = tensor(x)
    axes = {a for a, n in enumerate(x.shape) if n == 1} if axis is None else set(distinct(axis, x.ndim))
    for a in sorted(axes):
        if x.shape[a] != 1:
            raise problem(f"axis {a} of {x.type} has extent {x.shape[a]}, only 1 can be squeezed", "shape")
    return reshape(x, tuple(n for a, n in enumerate(x.shape) if a not in axes))


def broadcast_to(x: Any, shape: Sequence[int]) -> Tensor:
    dims = extents(shape)
    x = tensor(x, rank=len(dims))
    if broadcast(x.shape, dims, operator="broadcast_to") != dims:
        raise problem(f"{x.type} does not broadcast to {list(dims)}", "shape")
    return recorded(lambda t: t.broadcast_to(dims), x)


def tile(x: Any, repeats: int | Sequence[int]) -> Tensor:
    """`x` repeated along each axis."""
    times = extents(repeats)
    x = tensor(x, rank=len(times))
    times = (1,) * (x.ndim - len(times)) + times
    if 0 in times:
        return zeros(tuple(n * m for n, m in zip(x.shape, times)), x.element)
    return recorded(lambda t: t.of(t.builder.tile(t.value, times)), x)


def concatenate(parts: Sequence[Any], axis: int | None = 0) -> Tensor:
    """Concatenate tensors along an axis; without one, all of their elements. The tensors are promoted."""
    given = joinable(parts, "concatenate")
    if axis is None:
        given, axis = [reshape(part, -1) for part in given], 0
    if not given[0].ndim:
        raise problem(f"{given[0].type} has no axis to join along", "shape", help="tosaic.ops.stack makes one")
    for part in given:
        if part.ndim != given[0].ndim:
            raise problem(f"concatenate of {given[0].type} and {part.type}: their ranks differ", "shape")
    place = axis_of(axis, given[0].ndim)
    for part in given:
        if any(n != m for a, (n, m) in enumerate(zip(part.shape, given[0].shape)) if a != place):
            raise problem(f"concatenate of {given[0].type} and {part.type}: their extents differ", "shape",
                          help=f"along axes other than {place} they must be equal")
    return recorded(lambda *terms: terms[0].of(terms[0].builder.concat([t.value for t in terms], place)), *given)


def stack(parts: Sequence[Any], axis: int = 0) -> Tensor:
    """Join tensors of one shape along a new axis."""
    given = joinable(parts, "stack")
    for part in given:
        if part.shape != given[0].shape:
            raise problem(f"stack of {given[0].type} and {part.type}: their shapes differ", "shape")
    return concatenate([expand_dims(part, axis) for part in given], axis_of(axis, given[0].ndim + 1))


def joinable(parts: Sequence[Any], operator: str) -> list[Tensor]:
    """Return the tensors in one element type, by NumPy's promotion; a tensor is the list of its parts."""
    parts = list(parts) if isinstance(parts, Tensor) else parts
    if not isinstance(parts, list | tuple) or not parts:
        raise problem(f"{operator} takes a list of tensors", "argument", raised=TypeProblem)
    given = [p if isinstance(p, Tensor) or is_number(p) else from_python(p) for p in parts]
    element = common_element(given, operator)
    return [converted(tensor(p, element), element) for p in given]


def split(x: Any, sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Equal parts along an axis, or the parts between the given indices."""
    x = tensor(x)
    place = axis_of(axis, x.ndim)
    if isinstance(sections, int | np.integer):
        if sections < 1 or x.shape[place] % sections:
            raise problem(f"axis {place} of {x.type} does not split into {sections} equal parts", "shape")
        step = x.shape[place] // sections
        sections = list(range(step, x.shape[place], step))
    ends = [0, *sections, x.shape[place]]
    return [x[(slice(None),) * place + (slice(a, b),)] for a, b in pairwise(ends)]


def bordered(x: Any, width: Any, value: Any = 0) -> Tensor:
    """Add a border of `value`: `width` is a number, (before, after), or one such pair for each axis."""
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
    borders = [(int(a), int(b)) for a, b in pairs]
    return recorded(lambda t, u: t.of(padded(t.builder, t.value, borders, u.value)), x, reshape(border, ()))


def flip(x: Any, axis: int | Sequence[int] | None = None) -> Tensor:
    x = tensor(x)
    axes = range(x.ndim) if axis is None else distinct(axis, x.ndim)
    for a in axes:
        x = recorded(lambda t, a=a: t.of(reversed_axis(t.builder, t.value, a)), x)
    return x


def take(x: Any, indices: Any, axis: int | None = None) -> Tensor:
    """Elements at `indices` along an axis; without an axis, of all elements in their order. Known indices are checked; all
    others must be within the extent. Negative ones count from the end."""
    x = tensor(x)
    if axis is None:
        x, axis = reshape(x, -1), 0
    if not x.ndim:
        raise problem(f"{x.type} has no axis to take from", "shape")
    place = axis_of(axis, x.ndim)
    index = places(indices, x, place)
    return recorded(lambda t, i: t.of(gathered(t.builder, t.value, i.value, place)), x, index)


def places(indices: Any, x: Tensor, axis: int) -> Tensor:
    """Return indices of an axis as a tensor of i32, negative ones counted from the end."""
    extent = x.shape[axis]
    if isinstance(indices, Tensor):
        if not indices.element.is_integer:
            raise problem(f"indices are integers, not {indices.type}")
        index = indices if indices.element == I32 else astype(indices, I32)
        if indices.element.kind == "unsigned":
            return index
        return recorded(lambda t: select(t < 0, t + extent, t), index)
    known = np.asarray(indices)
    if not known.size:
        return constant(known.astype(np.int32))
    if known.dtype.kind not in "iu":
        raise problem(f"indices are integers, not {indices!r}")
    if known.min() < -extent or known.max() >= extent:
        wrong = known.min() if known.min() < -extent else known.max()
        raise problem(f"index {wrong} is outside axis {axis} of {x.type}", "argument", raised=IndexProblem)
    in_range(int(known.min()), int(known.max()), I32)
    return constant(np.where(known < 0, known + extent, known).astype(np.int32))


def broadcast_arrays(*values: Any) -> list[Tensor]:
    """The values in the shape that they all broadcast to, each in its own element type."""
    given = [tensor(v) for v in values]
    dims = broadcast(*(x.shape for x in given), operator="broadcast_arrays")
    return [broadcast_to(x, dims) for x in given]


__all__ = ["broadcast_arrays", "broadcast_to", "concatenate", "expand_dims", "flip", "moveaxis", "ravel", "reshape",
           "split", "squeeze", "stack", "swapaxes", "take", "tile", "transpose"]
