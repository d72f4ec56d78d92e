"""Operators that move elements and keep their values: Reshape, Flatten, Squeeze, Unsqueeze, Transpose, Expand, Tile, Trilu, the
moves between space and depth, ReverseSequence."""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....runtime.errors import Problem
from ....runtime.limits import check_tensor
from ...formulas.indexing import reversed_sequences
from ...formulas.layout import rearranged
from ...graph.graph import Value
from ...graph.types import Array
from ..emitter import Emitter, integers
from .along_axis import axis_of
from .operator import Ints, Operator, operator


@operator("Reshape")
class Reshape(Operator):
    """Reshape. 0 keeps an extent, unless `allowzero` makes it an extent; -1 is the inferred extent. The shape was an attribute
    before version 5."""
    shape: Ints | None = None
    allowzero: int = 0
    consumed_inputs: Ints = ()

    def dims(self, old: Sequence[int], given: Sequence[int]) -> tuple[int, ...]:
        dims = [old[d] if n == 0 and not self.allowzero and d < len(old) else int(n) for d, n in enumerate(given)]
        if dims.count(-1) > 1 or min(dims, default=0) < -1:
            raise ValueError(f"{list(given)} is no shape")
        if -1 in dims:
            rest, size = math.prod(n for n in dims if n != -1), math.prod(old)
            dims[dims.index(-1)] = size // rest if rest else 0
        if math.prod(dims) != math.prod(old):
            raise ValueError(f"{list(old)} cannot be reshaped to {list(given)}")
        return tuple(dims)

    def reference(self, x: Array, shape: Array | None = None) -> Array:
        return x.reshape(self.dims(x.shape, [int(n) for n in (self.shape or () if shape is None else shape)]))

    def lower(self, e: Emitter, x: Value, shape: Value | None = None) -> Value:
        given = self.shape or () if shape is None else integers(shape, "the new shape")
        return e.reshape(x, self.dims(x.tensor.dims, given))


@operator("Flatten")
class Flatten(Operator):
    axis: int = 1

    def dims(self, old: Sequence[int]) -> tuple[int, int]:
        at = self.axis + len(old) if self.axis < 0 else self.axis
        if not 0 <= at <= len(old):
            raise ValueError(f"axis {self.axis} is not one of a tensor of rank {len(old)}")
        return math.prod(old[:at]), math.prod(old[at:])

    def reference(self, x: Array) -> Array:
        return x.reshape(self.dims(x.shape))

    def lower(self, e: Emitter, x: Value) -> Value:
        return e.reshape(x, self.dims(x.tensor.dims))


@operator("Squeeze")
class Squeeze(Operator):
    """Removes axes of extent 1, all if none or an empty list are given; an attribute before version 13."""
    axes: Ints | None = None

    def dims(self, old: Sequence[int], given: Sequence[int] | None) -> list[int]:
        axes = {axis_of(a, len(old)) for a in given} if given else {a for a, n in enumerate(old) if n == 1}
        if any(old[a] != 1 for a in axes):
            raise ValueError(f"axes {sorted(axes)} of {list(old)} are not all 1")
        return [n for a, n in enumerate(old) if a not in axes]

    def reference(self, x: Array, axes: Array | None = None) -> Array:
        return x.reshape(self.dims(x.shape, self.axes if axes is None else [int(a) for a in axes]))

    def lower(self, e: Emitter, x: Value, axes: Value | None = None) -> Value:
        return e.reshape(x, self.dims(x.tensor.dims, self.axes if axes is None else integers(axes, "the axes")))


@operator("Unsqueeze")
class Unsqueeze(Operator):
    axes: Ints | None = None

    def dims(self, old: Sequence[int], given: Sequence[int] | None) -> list[int]:
        if given is None:
            raise ValueError("it needs axes")
        rank = len(old) + len(given)
        axes, rest = {axis_of(a, rank) for a in given}, iter(old)
        if len(axes) != len(given):
            raise ValueError(f"an axis stands twice in {list(given)}")
        return [1 if a in axes else next(rest) for a in range(rank)]

    def reference(self, x: Array, axes: Array | None = None) -> Array:
        return x.reshape(self.dims(x.shape, self.axes if axes is None else [int(a) for a in np.ravel(axes)]))

    def lower(self, e: Emitter, x: Value, axes: Value | None = None) -> Value:
        return e.reshape(x, self.dims(x.tensor.dims, self.axes if axes is None else integers(axes, "the axes")))


@operator("Transpose")
class Transpose(Operator):
    """Transpose; the axes in reverse order if no order is given."""
    perm: Ints | None = None

    def order(self, rank: int) -> tuple[int, ...]:
        found = tuple(reversed(range(rank))) if self.perm is None else tuple(axis_of(p, rank) for p in self.perm)
        if sorted(found) != list(range(rank)):
            raise ValueError(f"{list(found)} is no order of {rank} axes")
        return found

    def reference(self, x: Array) -> Array:
        return x.transpose(self.order(x.ndim))

    def lower(self, e: Emitter, x: Value) -> Value:
        order = self.order(x.tensor.rank)
        return rearranged(e, x, x.tensor.dims, order, [x.tensor.dims[a] for a in order])


@operator("Expand")
class Expand(Operator):
    def reference(self, x: Array, shape: Array) -> Array:
        found = np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(int(n) for n in shape)))
        check_tensor(found.nbytes)
        return np.array(found)

    def lower(self, e: Emitter, x: Value, shape: Value) -> Value:
        return e.broadcast_to(x, np.broadcast_shapes(x.tensor.dims, integers(shape, "the shape")))


@operator("Tile")
class Tile(Operator):
    """Tile; before version 6 along one axis, with the number of times and the axis as operands."""

    def reference(self, x: Array, repeats: Array, axis: Array | None = None) -> Array:
        times = self.times(x.ndim, [int(n) for n in np.ravel(repeats)], None if axis is None else int(axis))
        check_tensor(x.nbytes * math.prod(times))
        return np.tile(x, times)

    def lower(self, e: Emitter, x: Value, repeats: Value, axis: Value | None = None) -> Value:
        at = None if axis is None else integers(axis, "the axis")[0]
        times = self.times(x.tensor.rank, integers(repeats, "the number of times"), at)
        if 0 in times or not x.tensor.size:
            return e.reshape(e.slice(x, [0] * x.tensor.rank, [0] * x.tensor.rank) if x.tensor.size else x,
                             [n * m for n, m in zip(x.tensor.dims, times)])
        return e.tile(x, times)

    def times(self, rank: int, given: Sequence[int], axis: int | None) -> list[int]:
        found = list(given) if axis is None else [given[0] if a == axis else 1 for a in range(rank)]
        if len(found) != rank or min(found, default=0) < 0:
            raise ValueError(f"{found} does not say how many times each of {rank} axes is repeated")
        return found


@operator("Trilu")
class Trilu(Operator):
    """The upper or lower triangle of the last two axes, from the k-th diagonal on."""
    upper: int = 1

    def mask(self, rows: int, columns: int, k: int) -> Array:
        distance = np.arange(columns)[None, :] - np.arange(rows)[:, None]
        return distance >= k if self.upper else distance <= k

    def reference(self, x: Array, k: Array | None = None) -> Array:
        diagonal = 0 if k is None else int(np.asarray(k).reshape(()))
        return np.asarray(np.where(self.mask(x.shape[-2], x.shape[-1], diagonal), x, np.zeros((), x.dtype)), x.dtype)

    def lower(self, e: Emitter, x: Value, k: Value | None = None) -> Value:
        if not x.tensor.size:
            return x
        diagonal = 0 if k is None else integers(k, "the diagonal")[0]
        mask = e.constant(self.mask(x.tensor.dims[-2], x.tensor.dims[-1], diagonal))
        return e.select(mask, x, e.splat(0, x))


# ---- space and depth -----------------------------------------------------------------------------------------------------
@operator("DepthToSpace")
class DepthToSpace(Operator):
    """[N, C, H, W]: the block's rows and columns come first in the channels (DCR), or last (CRD)."""
    blocksize: int
    mode: str = "DCR"

    def parts(self, dims: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        n, c, h, w = dims
        b = self.blocksize
        if b < 1 or c % (b * b):
            raise ValueError(f"{c} channels are no whole blocks of {b} by {b}")
        d = c // (b * b)
        if self.mode == "CRD":
            return (n, d, b, b, h, w), (0, 1, 4, 2, 5, 3), (n, d, h * b, w * b)
        return (n, b, b, d, h, w), (0, 3, 4, 1, 5, 2), (n, d, h * b, w * b)

    def reference(self, x: Array) -> Array:
        seen, order, result = self.parts(x.shape)
        return x.reshape(seen).transpose(order).reshape(result)

    def lower(self, e: Emitter, x: Value) -> Value:
        return rearranged(e, x, *self.parts(x.tensor.dims))


@operator("SpaceToDepth")
class SpaceToDepth(Operator):
    """The rows and columns of the block come first in the channels, or with the mode CRD last."""
    blocksize: int
    mode: str = "DCR"

    def parts(self, dims: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        n, c, h, w = dims
        b = self.blocksize
        if b < 1 or h % b or w % b:
            raise ValueError(f"{h} by {w} are no whole blocks of {b} by {b}")
        order = (0, 1, 3, 5, 2, 4) if self.mode == "CRD" else (0, 3, 5, 1, 2, 4)
        return (n, c, h // b, b, w // b, b), order, (n, c * b * b, h // b, w // b)

    def reference(self, x: Array) -> Array:
        seen, order, result = self.parts(x.shape)
        return x.reshape(seen).transpose(order).reshape(result)

    def lower(self, e: Emitter, x: Value) -> Value:
        return rearranged(e, x, *self.parts(x.tensor.dims))


@operator("ReverseSequence")
class ReverseSequence(Operator):
    """Reverses the first `lengths[i]` elements along one axis, for each index i of another axis."""
    batch_axis: int = 1
    time_axis: int = 0

    def reference(self, x: Array, lengths: Array) -> Array:
        found = np.array(x)
        seen, source = (np.moveaxis(a, (self.batch_axis, self.time_axis), (0, 1)) for a in (found, x))
        for row, length in enumerate(lengths):
            seen[row, :length] = source[row, :length][::-1]
        return found

    def lower(self, e: Emitter, x: Value, lengths: Value) -> Value:
        rank = x.tensor.rank
        batch, at = axis_of(self.batch_axis, rank), axis_of(self.time_axis, rank)
        if batch == at:
            raise Problem("the axes of batch and time are one", kind="attribute")
        return reversed_sequences(e, x, lengths, batch, at)
