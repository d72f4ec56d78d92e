"""Resizes of TensorFlow Lite, at the coordinates that its kernels compute. RESIZE_NEAREST_NEIGHBOR takes the row before a
coordinate, with neither corners aligned nor centers at halves, where a converter rounds. RESIZE_BILINEAR of 16-bit integers
rounds coordinates to 1/1024 of a row, where TOSA's RESIZE has them exactly.
"""
from __future__ import annotations

import numpy as np

from ...runtime.records import dataclass
from ..formulas.term import Term, absolute, select
from ..formulas.tosa_builder import PlacedBuilder
from ..graph.file_position import FilePosition
from ..graph.graph import BlockBuilder, Value
from ..graph.types import F16, F32, I8, I16, I32, I64, Array
from .constants import integers
from .records import OperatorRecord, SubgraphRecord
from .schema import ELEMENTS

LARGEST_SCALE = 1 << 11
"""Maximum scale of RESIZE."""
RESIZED = (I8, I16, F16, F32)
"""Types that RESIZE takes; rows of other types are gathered."""
FRACTION_BITS = 10
"""Number of fraction bits of a coordinate between two rows, as the kernel rounds it."""


def is_resize_of_ours(graph: SubgraphRecord, operator: OperatorRecord) -> bool:
    """True for a resize that this module lowers: nearest-neighbour of known extents, or bilinear of 16-bit integers."""
    if operator.kind not in ("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR") or len(operator.inputs) != 2 \
            or min(operator.inputs) < 0:
        return False
    x, size = (graph.tensors[t] for t in operator.inputs)
    if operator.kind == "RESIZE_BILINEAR" and ELEMENTS.get(x.type) != I16:
        return False
    extents = integers(size)
    return None not in x.shape and len(x.shape) == 4 and extents is not None and len(extents) == 2 and min(extents) > 0


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: extents of operand and result, and the interpretation of coordinates."""
    old: int
    new: int
    aligned: bool
    halves: bool

    def rows(self) -> Array:
        """Return the rows, in float32 as the kernel computes them."""
        aligned = self.aligned and self.new > 1
        scale = np.float32(self.old - 1) / np.float32(self.new - 1) if aligned else np.float32(self.old) / np.float32(self.new)
        place = (np.arange(self.new, dtype=np.float32) + np.float32(0.5 if self.halves else 0)) * scale
        rows = np.floor(place + np.float32(0.5)) if self.aligned else np.floor(place)
        return rows.astype(np.int64).clip(0, self.old - 1)

    def between(self) -> tuple[Array, Array, Array]:
        """Return the rows on both sides of each coordinate, and its distance from the first in units of 1 / 1024."""
        one = 1 << FRACTION_BITS
        if self.aligned and self.new > 1:
            scale = (one * (self.old - 1) + (self.new - 1) // 2) // (self.new - 1)
        else:
            scale = (one * self.old + self.new // 2) // self.new
        coordinate = np.arange(self.new, dtype=np.int64) * scale + (scale // 2 - one // 2 if self.halves else 0)
        low, high = (row.clip(0, self.old - 1) for row in (coordinate // one, (coordinate + one - 1) // one))
        return low, high, coordinate - one * low

    def numbers(self) -> tuple[int, int, int, int] | None:
        """Return the numerator and denominator of the scale, the offset and the border with which RESIZE takes these rows; None
        if there are none."""
        aligned = self.aligned and self.new > 1 and self.old > 1
        n, d = (2 * (self.new - 1), 2 * (self.old - 1)) if aligned else (2 * self.new, 2 * self.old)
        offset = 0 if aligned else self.old - self.new if self.halves else -self.new
        divisor = int(np.gcd.reduce([n, d, offset]))
        n, d, offset = n // divisor, d // divisor, offset // divisor
        border = (self.new - 1) * d - (self.old - 1) * n + offset
        if not (n <= LARGEST_SCALE and d < 16 * n and -n <= offset < 16 * n and -16 * n <= border < n):
            return None
        place = np.arange(self.new, dtype=np.int64) * d + offset
        first = place // n
        rows = (first + (2 * (place - first * n) >= n)).clip(0, self.old - 1)
        return (n, d, offset, border) if (rows == self.rows()).all() else None


class ResizeWriter(PlacedBuilder):
    """Writer of the operations of one resize."""

    def resized(self, x: Value, axes: tuple[Axis, Axis]) -> Value:
        numbers = [axis.numbers() for axis in axes]
        if all(numbers) and x.tensor.element in RESIZED:
            (n, d, y, bottom), (m, e, z, right) = ((1, 1, 0, 0) if found is None else found for found in numbers)
            return self("resize", x, self.shape([n, d, m, e]), self.shape([y, z]),
                            self.shape([bottom, right]), mode="NEAREST_NEIGHBOR")
        for number, axis in enumerate(axes):
            x = self.taken(x, 1 + number, axis.rows())
        return x

    def interpolated(self, x: Value, axes: tuple[Axis, Axis]) -> Value:
        """Return the bilinear interpolation in integers, rounded once: to the nearest, halves away from zero."""
        result = Term(self, x)
        for number, axis, element in ((2, axes[1], I32), (1, axes[0], I64)):
            low, high, distance = axis.between()
            first, second = (Term(self, self.taken(result.value, number, rows)).cast(element) for rows in (low, high))
            weight = distance.astype(element.dtype).reshape([-1 if d == number else 1 for d in range(4)])
            result = (first << FRACTION_BITS) + (second - first) * result.of(self.constant(weight))
        size = (absolute(result) + (1 << 2 * FRACTION_BITS - 1)) >> 2 * FRACTION_BITS
        return select(result < 0, -size, size).cast(I16).value

    def taken(self, x: Value, axis: int, rows: Array) -> Value:
        """Return these rows of an axis."""
        shape = x.tensor.dims
        before, behind = int(np.prod(shape[:axis])), int(np.prod(shape[axis + 1:]))
        index = self.constant(rows.astype(np.int32).reshape(1, -1))
        index = self.tile(index, (before, 1))
        found = self("gather", self.reshape(x, (before, shape[axis], behind)), index)
        return self.reshape(found, (*shape[:axis], rows.size, *shape[axis + 1:]))


def write_resize(builder: BlockBuilder, graph: SubgraphRecord, operator: OperatorRecord, x: Value,
                 position: FilePosition) -> Value:
    """Return the result of a resize of `x`."""
    sizes = integers(graph.tensors[operator.inputs[1]])
    assert sizes is not None, "is_resize_of_ours has seen it"
    aligned, halves = (bool(operator.options[name]) for name in ("align_corners", "half_pixel_centers"))
    rows, columns = (Axis(old, new, aligned, halves) for old, new in zip(x.tensor.dims[1:3], sizes))
    writer = ResizeWriter(builder, position)
    return writer.interpolated(x, (rows, columns)) if operator.kind == "RESIZE_BILINEAR" else writer.resized(x, (rows, columns))
