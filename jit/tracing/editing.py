"""Insertion, deletion and assembly of elements at known indices: insert, delete, append, block, resize, the splits. NumPy's
names. NumPy itself computes each element's new index, by running on arrays of indices."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...lowering.graph.types import Array
from ...runtime.errors import IndexProblem
from .conversion import axis_of, converted, extents, tensor
from .creation import zeros
from .layout import broadcast_to, concatenate, joinable, moveaxis, ravel, reshape
from .rearranging import array_split, by_places
from .tensor import Tensor
from .trace import problem


def along(x: Any, axis: int | None) -> tuple[Tensor, int]:
    """Return a tensor and the axis; without an axis, all elements as a vector."""
    found = tensor(x)
    return (ravel(found), 0) if axis is None else (found, axis_of(axis, found.ndim))


def known_places(places: Any, name: str) -> Any:
    if isinstance(places, Tensor):
        raise problem(f"the places of {name} must be known: the shape of its result depends on them", "unsupported",
                      help="a Python number, a slice, a list or a NumPy array; tosaic.ops.where keeps the shape")
    return places if isinstance(places, slice | int) else np.asarray(places)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Tensor:
    """Insert `values`, converted to the type of `arr`, before the indices `obj` along an axis; without one, among all
    elements."""
    x, place = along(arr, axis)
    at = known_places(obj, "insert")
    new = converted(tensor(values, x.element, x.ndim), x.element)
    if np.ndim(at) == 0 and not isinstance(at, slice):
        new = moveaxis(new, 0, place) if tensor(values, x.element).ndim <= x.ndim and axis is not None else new
        count = new.shape[place]
    else:
        count = len(range(*at.indices(x.shape[place]))) if isinstance(at, slice) else int(np.count_nonzero(at)) if (
            at.dtype == bool) else at.size
        count = new.shape[place] if count == 1 else count
    new = broadcast_to(new, [count if a == place else n for a, n in enumerate(x.shape)])
    extent = x.shape[place]
    order = numpy_places(lambda: np.insert(np.arange(extent), at, extent + np.arange(count)), f"insert into {x.type}")
    return by_places(concatenate([x, new], place), place, order)


def delete(arr: Any, obj: Any, axis: int | None = None) -> Tensor:
    """Remove the elements at the indices `obj` along an axis; without one, from all elements."""
    x, place = along(arr, axis)
    at = known_places(obj, "delete")
    return by_places(x, place, numpy_places(lambda: np.delete(np.arange(x.shape[place]), at), f"delete from {x.type}"))


def numpy_places(function: Any, what: str) -> Array:
    try:
        found: Array = function()
    except (IndexError, ValueError) as error:
        raise problem(f"{what}: {error}", "argument", raised=IndexProblem if isinstance(error, IndexError) else None) from None
    return found


def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    """Concatenate both along an axis; without one, all elements of both."""
    return concatenate([arr, values], axis)


def block(arrays: Any) -> Tensor:
    """Assemble blocks: the innermost lists along the last axis, the lists of these along the axis before it, and so on."""
    leaves: list[Any] = []
    depth = depth_of(arrays, leaves)
    given = joinable(leaves, "block")
    rank = max(depth, *(x.ndim for x in given))
    rest = iter([tensor(x, rank=rank) for x in given])

    def joined(part: Any, level: int) -> Tensor:
        return concatenate([joined(p, level - 1) for p in part], -level) if isinstance(part, list) else next(rest)
    return joined(arrays, depth)


def depth_of(part: Any, leaves: list[Any]) -> int:
    """Return the nesting depth of the lists, which must be uniform; append their elements to `leaves`."""
    if not isinstance(part, list):
        leaves.append(part)
        return 0
    depths = {depth_of(p, leaves) for p in part}
    if len(depths) != 1:
        raise problem("the lists of block are nested alike, and none is empty", "argument")
    return depths.pop() + 1


def resize(a: Any, new_shape: int | Sequence[int]) -> Tensor:
    """The elements in another shape: repeated from the beginning if they are too few, truncated if they are too many."""
    x, dims = ravel(a), extents(new_shape)
    count = int(np.prod(dims))
    if not x.size:
        return zeros(dims, x.element)
    return reshape(by_places(x, 0, np.arange(count) % x.size), dims)


# ---- splits ------------------------------------------------------------------------------------------------------
def split_of(x: Any, sections: int | Sequence[int], axis: int, name: str) -> list[Tensor]:
    found = tensor(x)
    if found.ndim <= axis:
        raise problem(f"{name} takes a tensor of rank {axis + 1} or more, not {found.type}", "shape")
    if isinstance(sections, int) and found.shape[axis] % sections:
        raise problem(f"axis {axis} of {found.type} does not split into {sections} equal parts", "shape",
                      help="tosaic.ops.array_split")
    return array_split(found, sections, axis)


def hsplit(ary: Any, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Parts of the columns; for a vector, of its elements."""
    return split_of(ary, indices_or_sections, 0 if tensor(ary).ndim == 1 else 1, "hsplit")


def vsplit(ary: Any, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Parts of the rows of a tensor of rank 2 or more."""
    if tensor(ary).ndim < 2:
        raise problem(f"vsplit takes a tensor of rank 2 or more, not {tensor(ary).type}", "shape")
    return split_of(ary, indices_or_sections, 0, "vsplit")


def dsplit(ary: Any, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Parts along the third axis."""
    return split_of(ary, indices_or_sections, 2, "dsplit")


__all__ = ["append", "block", "delete", "dsplit", "hsplit", "insert", "resize", "vsplit"]
