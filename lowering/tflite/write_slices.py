"""Slices of TensorFlow Lite (`slices`) -> TOSA: REVERSE for a negative step, SLICE, groups whose first element is taken for
longer steps; GATHER if the start is a tensor.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ...runtime.errors import Problem
from ..formulas.tosa_builder import PlacedBuilder
from ..graph.file_position import FilePosition
from ..graph.graph import BlockBuilder, Value
from ..graph.types import I32
from .records import OperatorRecord, SubgraphRecord
from .slices import Indices, axes_of, row_axes, spec_of


class SliceWriter(PlacedBuilder):
    """Writer of the operations of one slice."""

    def part(self, x: Value, start: Sequence[int], size: Sequence[int | None]) -> Value:
        """Return a slice; all of an axis if its size is None."""
        if not any(start) and x.tensor.shape == tuple(size):
            return x
        known = [n for n in size if n is not None]
        if len(known) == len(size):
            return self("slice", x, self.shape(start), self.shape(known))
        extents = [self("dim", x, axis=axis) if n is None else self.shape([n]) for axis, n in enumerate(size)]
        return self("slice", x, self.shape(start), self("concat_shape", *extents))

    def chosen(self, x: Value, axes: Sequence[tuple[Indices, bool]]) -> Value:
        """Return x with these indices of its axes."""
        old = [indices for indices, is_new in axes if not is_new]
        for axis, indices in enumerate(old):
            if indices.step < 0:
                last = (x.tensor.shape or ())[axis] or 0
                x = self("reverse", x, axis=axis)
                old[axis] = Indices(last - 1 - indices.start, -indices.step, indices.count)
        shape = [None if i.count is None else (i.count - 1) * i.step + 1 for i in old]
        x = self.part(x, [i.start for i in old], shape)
        for axis, indices in enumerate(old):
            if indices.count is not None and indices.step > 1:
                x = self.every(x, shape, axis, indices.step, indices.count)
                shape[axis] = indices.count
        return self.reshape(x, [indices.count for indices, _ in axes if indices.keep])

    def every(self, x: Value, shape: Sequence[int | None], axis: int, step: int, count: int) -> Value:
        """Return every `step`-th element of an axis of x, which has this shape: pad to whole groups and take the first of
        each."""
        missing = [0, 0] * len(shape)
        missing[2 * axis + 1] = count * step - (shape[axis] or 0)
        if any(missing):
            x = self("pad", x, self.shape(missing), self.constant(np.zeros(1, x.tensor.element.dtype)))
        before, behind = size(shape[:axis]), size(shape[axis + 1:])
        groups = self.reshape(x, (before, count, step, behind))
        first = self.part(groups, (0, 0, 0, 0), (before, count, 1, behind))
        return self.reshape(first, (*shape[:axis], count, *shape[axis + 1:]))

    # Indices from a tensor

    def rows(self, x: Value, begin: Value, axis: int, count: int, wraps: bool) -> Value:
        """Return `count` indices of an axis from begin[axis] on; a negative index counts from the end if `wraps`."""
        shape = x.tensor.dims
        index = self.part(begin, (axis,), (1,))
        index = self.cast(index, I32)
        if wraps:
            behind = self("add", index, self.constant(np.array([shape[axis]], np.int32)))
            index = self("select", self("greater", self.constant(np.zeros(1, np.int32)), index), behind, index)
        if count > 1:
            index = self("add", index, self.constant(np.arange(count, dtype=np.int32)))
        before, behind_axis = prod(shape[:axis]), prod(shape[axis + 1:])
        index = self.reshape(index, (1, count))
        index = self.tile(index, (before, 1))
        found = self("gather", self.reshape(x, (before, shape[axis], behind_axis)), index)
        return self.reshape(found, (*shape[:axis], count, *shape[axis + 1:]))


def size(extents: Sequence[int | None]) -> int | None:
    """Return the product of extents; None if one is not known."""
    known = [n for n in extents if n is not None]
    return prod(known) if len(known) == len(extents) else None


def write_slice(builder: BlockBuilder, graph: SubgraphRecord, operator: OperatorRecord, x: Value, begin: Value | None,
                position: FilePosition) -> Value:
    """Return the result of a slice of `x`; `begin` is the tensor with its start, if it is not constant."""
    writer = SliceWriter(builder, position)
    if x.tensor.shape is None or x.tensor.shape.count(None) > 1:
        raise Problem(f"a slice of {x.type}, of which more than one extent is not known, is not supported", kind="unsupported")
    if begin is None:
        spec = spec_of(graph, operator)
        assert spec is not None, "is_slice_of_ours has seen constants"
        return writer.chosen(x, axes_of(spec, x.tensor.shape))
    found = row_axes(graph, operator)
    assert found is not None, "is_slice_of_ours has seen that it can be written"
    for axis, count in enumerate(found.counts):
        if count is not None:
            x = writer.rows(x, begin, axis, count, found.wraps)
    return writer.reshape(x, [n for axis, n in enumerate(x.tensor.dims) if axis not in found.dropped])
