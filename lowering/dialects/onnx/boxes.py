"""Boxes in images: RoiAlign, MaxRoiPool."""
from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from ....runtime.records import dataclass
from ...formulas.division import divided
from ...formulas.rounding import nearest_away
from ...formulas.term import Term, ceil, floor, maximum, minimum, select
from ...formulas.working_types import working_type
from ...graph.graph import Value
from ...graph.types import I32, Array
from ..control_flow import loop
from ..data import Datum
from ..emitter import Emitter
from .operator import Ints, Operator, operator


# ---- RoiAlign ------------------------------------------------------------------------------------------------------------
@operator("RoiAlign")
class RoiAlign(Operator):
    """Boxes [R, 4] of images, each cut into bins whose samples are reduced to their mean or to the greatest."""
    coordinate_transformation_mode: str | None = None
    mode: str = "avg"
    output_height: int = 1
    output_width: int = 1
    sampling_ratio: int = 0
    spatial_scale: float = 1.0

    @property
    def shift(self) -> float:
        mode = self.coordinate_transformation_mode or ("half_pixel" if self.version >= 16 else "output_half_pixel")
        return 0.5 if mode == "half_pixel" else 0.0

    def reference(self, x: Array, rois: Array, batches: Array) -> Array:
        channels = x.shape[1]
        found = np.zeros((len(rois), channels, self.output_height, self.output_width))
        for r, (roi, batch) in enumerate(zip(rois.astype(np.float64), batches)):
            left, top, right, bottom = roi * self.spatial_scale - self.shift
            w, h = (right - left, bottom - top) if self.shift else (max(right - left, 1), max(bottom - top, 1))
            step_h, step_w = h / self.output_height, w / self.output_width
            ny = self.sampling_ratio or math.ceil(h / self.output_height)
            nx = self.sampling_ratio or math.ceil(w / self.output_width)
            for i, j in np.ndindex(self.output_height, self.output_width):
                samples = [self.terms(x[int(batch)].astype(np.float64), top + (i + (a + 0.5) / ny) * step_h,
                                      left + (j + (b + 0.5) / nx) * step_w) for a in range(ny) for b in range(nx)]
                if self.mode == "max":
                    found[r, :, i, j] = np.max([t for s in samples for t in s], axis=0) if samples else 0
                else:
                    found[r, :, i, j] = sum(sum(s) for s in samples) / max(ny * nx, 1)
        return found.astype(x.dtype)

    def terms(self, x: Array, y: float, z: float) -> list[Array]:
        """Return the four weighted neighbours of a point; zeros outside of the image."""
        _, height, width = x.shape
        if y < -1 or y > height or z < -1 or z > width:
            return [np.zeros(x.shape[0])] * 4
        y, z = max(y, 0), max(z, 0)
        y0, z0 = min(int(y), height - 1), min(int(z), width - 1)
        y1, z1 = min(y0 + 1, height - 1), min(z0 + 1, width - 1)
        dy, dz = (0.0 if y0 == height - 1 else y - y0), (0.0 if z0 == width - 1 else z - z0)
        return [(1 - dy) * (1 - dz) * x[:, y0, z0], (1 - dy) * dz * x[:, y0, z1], dy * (1 - dz) * x[:, y1, z0],
                dy * dz * x[:, y1, z1]]

    def lower(self, e: Emitter, x: Value, rois: Value, batches: Value) -> Value:
        own, (n, channels, height, width) = x.tensor.element, x.tensor.dims
        count, working = rois.tensor.dims[0], working_type(own, False, True)
        boxes = Term(e, e.cast(rois, working)) * self.spatial_scale - self.shift
        left, top, right, bottom = (Term(e, e.slice(boxes.value, (0, k), (count, 1))) for k in range(4))
        sizes = [size if self.shift else maximum(size, 1) for size in (bottom - top, right - left)]
        lines = [Line(top, sizes[0], height, self.output_height), Line(left, sizes[1], width, self.output_width)]
        image = e.reshape(e.transpose(e.reshape(e.cast(x, working), (n, channels, height * width)), (0, 2, 1)),
                          (1, n * height * width, channels))
        base = Term(e, e.reshape(e.cast(batches, I32), (count, 1, 1))) * (height * width)
        seen = Samples(e, image, base, width, self.mode == "max")
        found = self.sampled(e, seen, lines) if self.sampling_ratio else self.sampled_as_needed(e, seen, lines)
        return e.cast(e.transpose(found.value, (0, 3, 1, 2)), own)

    def sampled(self, e: Emitter, seen: Samples, lines: list[Line]) -> Term:
        """Return all samples at once."""
        ratio, (rows, columns) = self.sampling_ratio, (line.bins for line in lines)
        axes = []
        for line in lines:
            samples = (np.arange(line.bins * ratio) + 0.5) / (line.bins * ratio)
            places = e.constant(samples[None].astype(line.first.element.dtype))
            axes.append(line.neighbours(line.first + line.size * Term(e, places)))
        whole = seen.at(axes).value
        count, _, _, channels = whole.tensor.dims
        name = "reduce_max" if seen.is_maximum else "reduce_sum"
        split = e.reshape(whole, (count * rows, ratio, columns, ratio * channels))
        by_rows = e.reshape(e(name, split, axis=1), (count * rows * columns, ratio, channels))
        found = Term(e, e.reshape(e(name, by_rows, axis=1), (count, rows, columns, channels)))
        return found if seen.is_maximum else found * (1 / (ratio * ratio))

    def sampled_as_needed(self, e: Emitter, seen: Samples, lines: list[Line]) -> Term:
        """Return as many samples as elements in a bin, by a loop with as many iterations as the greatest box needs."""
        counts = [ceil(divided(line.size, line.size.term(line.bins))) for line in lines]
        most = [maximum(c.reduced("reduce_max", 0), 1).cast(I32) for c in counts]
        turns = e.reshape((most[0] * most[1]).value, ())
        boxes, channels = lines[0].size.value.tensor.dims[0], seen.image.tensor.dims[2]
        neutral = -math.inf if seen.is_maximum else 0.0
        empty = e.constant(np.full((1, 1, 1, 1), neutral, seen.image.tensor.element.dtype), seen.image.tensor.element)

        def body(state: list[Datum]) -> Sequence[Datum]:
            turn, total = state
            assert isinstance(turn, Value) and isinstance(total, Value)
            k = Term(e, e.reshape(turn, (1, 1)))
            row = Term(e, e("intdiv", k.value, most[1].value))
            numbers = [v.cast(counts[0].element) for v in (row, k - row * most[1])]
            axes = [line.neighbours(line.place(number, c)) for line, number, c in zip(lines, numbers, counts)]
            is_one = (numbers[0] < counts[0]) & (numbers[1] < counts[1])
            own = select(Term(e, e.reshape(is_one.value, (boxes, 1, 1, 1))), seen.at(axes), Term(e, empty))
            whole = Term(e, total)
            return e.sum(turn, e.splat(1, turn)), (maximum(whole, own) if seen.is_maximum else whole + own).value

        def test(state: list[Datum]) -> Value:
            assert isinstance(state[0], Value)
            return e("greater", turns, state[0])
        start = e.broadcast_to(empty, (boxes, *(line.bins for line in lines), channels))
        _, found = loop(e, [e.constant(np.array(0, np.int32)), start], test, body)
        assert isinstance(found, Value)
        total = Term(e, found)
        samples = Term(e, e.reshape((counts[0] * counts[1]).value, (boxes, 1, 1, 1)))
        is_some = Term(e, e.reshape(((counts[0] > 0) & (counts[1] > 0)).value, (boxes, 1, 1, 1)))
        return select(is_some, total if seen.is_maximum else divided(total, maximum(samples, 1)), total.term(0))


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """The bins of boxes along one axis of an image: the starts of the boxes, [R, 1], and their sizes."""
    first: Term
    size: Term
    extent: int
    bins: int

    def place(self, number: Term, samples: Term) -> Term:
        """Return the coordinate of one sample of every bin, [R, bins]."""
        e = self.first.builder
        bins = Term(e, e.constant(np.arange(self.bins)[None].astype(self.first.element.dtype)))
        step = divided(self.size, self.size.term(self.bins))
        return self.first + bins * step + divided((number + 0.5) * step, maximum(samples, 1))

    def neighbours(self, at: Term) -> list[tuple[Term, Term]]:
        """Return the elements below and above coordinates [R, samples], and their weights, which are 0 outside of the image."""
        inside = (at >= -1) & (at <= self.extent)
        held = maximum(at, 0)
        low = minimum(floor(held), self.extent - 1)
        rest = select(low >= self.extent - 1, held.term(0), held - low)
        weights = [select(inside, w, w.term(0)) for w in (1 - rest, rest)]
        return [(low.cast(I32), weights[0]), (minimum(low + 1, self.extent - 1).cast(I32), weights[1])]


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Images as rows of channels, and the first row of each box's image."""
    e: Emitter
    image: Value
    base: Term
    width: int
    is_maximum: bool

    def at(self, axes: Sequence[list[tuple[Term, Term]]]) -> Term:
        """Return the weighted neighbours of points, [R, rows, columns, C]: their sum, or the greatest of them."""
        e, terms = self.e, []
        for (y, wy), (z, wz) in itertools.product(*axes):
            (count, rows), columns = y.value.tensor.dims, z.value.tensor.dims[1]
            place = self.base + Term(e, e.reshape(y.value, (count, rows, 1))) * self.width + Term(
                e, e.reshape(z.value, (count, 1, columns)))
            taken = e("gather", self.image, e.reshape(place.value, (1, place.value.tensor.size)))
            pixel = Term(e, e.reshape(taken, (count, rows, columns, self.image.tensor.dims[2])))
            weight = Term(e, e.reshape(wy.value, (count, rows, 1, 1))) * Term(e, e.reshape(wz.value, (count, 1, columns, 1)))
            terms.append(pixel * weight)
        return reduce(maximum if self.is_maximum else lambda a, b: a + b, terms)


# ---- MaxRoiPool ----------------------------------------------------------------------------------------------------------
@operator("MaxRoiPool")
class MaxRoiPool(Operator):
    """The greatest element of each bin of a box; a box [R, 5] is the number of its image, then its corners, both inclusive."""
    pooled_shape: Ints
    spatial_scale: float = 1.0

    def reference(self, x: Array, rois: Array) -> Array:
        found = np.zeros((len(rois), x.shape[1], *self.pooled_shape), x.dtype)
        for r, (batch, *corners) in enumerate(rois.astype(np.float32)):
            left, top, right, bottom = (int(math.copysign(math.floor(abs(c) + 0.5), c)) for c in
                                        (float(v * np.float32(self.spatial_scale)) for v in corners))
            lines = [self.bin_edges(a, b, n, m) for a, b, n, m in
                     zip((top, left), (bottom, right), self.pooled_shape, x.shape[2:])]
            for i, j in np.ndindex(*self.pooled_shape):
                (y0, y1), (x0, x1) = lines[0][i], lines[1][j]
                if y0 < y1 and x0 < x1:
                    found[r, :, i, j] = x[int(batch), :, y0:y1, x0:x1].max((1, 2))
        return found

    def bin_edges(self, first: int, last: int, count: int, extent: int) -> list[tuple[int, int]]:
        size = np.float32(max(last - first + 1, 1)) / np.float32(count)
        edges = [(math.floor(np.float32(k) * size), math.ceil(np.float32(k + 1) * size)) for k in range(count)]
        return [(min(max(a + first, 0), extent), min(max(b + first, 0), extent)) for a, b in edges]

    def lower(self, e: Emitter, x: Value, rois: Value) -> Value:
        """Return, for each box's image, the greatest elements along the rows of each bin, then along columns; elements outside
        of a bin are masked."""
        own, (_, channels, height, width) = x.tensor.element, x.tensor.dims
        count, working = rois.tensor.dims[0], working_type(own, False, True)
        boxes = Term(e, e.cast(rois, working))
        batch, left, top, right, bottom = (Term(e, e.slice(boxes.value, (0, k), (count, 1))) for k in range(5))
        left, top, right, bottom = (nearest_away(v * self.spatial_scale) for v in (left, top, right, bottom))
        rows, columns = (self.bins(e, a, b, n, m) for a, b, n, m in
                         zip((top, left), (bottom, right), self.pooled_shape, (height, width)))
        images = e.transpose(e.cast(x, working), (0, 2, 3, 1))
        flat = e.reshape(images, (1, x.tensor.dims[0], height * width * channels))
        number = e.reshape(e.cast(batch.value, I32), (1, count))
        seen = e.reshape(e("gather", flat, number), (count, 1, height, width, channels))
        vertical, across = self.pooled_shape
        by_row = self.greatest(e, seen, e.reshape(columns.value, (count, across, 1, width, 1)), 3)
        found = self.greatest(e, e.reshape(by_row, (count, 1, across, height, channels)),
                              e.reshape(rows.value, (count, vertical, 1, height, 1)), 3)
        pooled = Term(e, e.reshape(found, (count, vertical, across, channels)))
        return e.cast(e.transpose(select(pooled.equals(-math.inf), pooled.term(0), pooled).value, (0, 3, 1, 2)), own)

    def bins(self, e: Emitter, first: Term, last: Term, count: int, extent: int) -> Term:
        """Return a mask of the elements of an axis that are in each bin, [R, bins, extent]."""
        size = divided(maximum(last - first + 1, 1), first.term(count))
        numbers, place = (Term(e, e.constant(np.arange(n)[None].astype(first.element.dtype))) for n in (count, extent))
        low, high = floor(numbers * size) + first, ceil((numbers + 1) * size) + first
        boxes = first.value.tensor.dims[0]
        place = Term(e, e.reshape(place.value, (1, 1, extent)))
        low, high = (Term(e, e.reshape(v.value, (boxes, count, 1))) for v in (low, high))
        return (place >= low) & (place < high)

    def greatest(self, e: Emitter, x: Value, mask: Value, axis: int) -> Value:
        least = e.splat(-math.inf, x)
        return e("reduce_max", e.select(mask, x, least), axis=axis)
