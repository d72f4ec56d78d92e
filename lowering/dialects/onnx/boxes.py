"""Boxes in images: RoiAlign, MaxRoiPool."""
from __future__ import annotations

import itertools
import math

import numpy as np

from ...formulas.division import divided
from ...formulas.rounding import nearest_away
from ...formulas.term import Term, ceil, floor, maximum, minimum, select
from ...formulas.working_types import working_type
from ...graph.graph import Value
from ...graph.types import I32, Array
from ..emitter import Emitter
from .gathering import depends
from .operator import Ints, Operator, operator


# ---- RoiAlign ------------------------------------------------------------------------------------------------------------
@operator("RoiAlign")
class RoiAlign(Operator):
    """Boxes [R, 4] of images, each cut into bins whose samples are averaged, or of which the greatest counts."""
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
        """The four weighed neighbours of a place; zeros outside of the image."""
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
        if not self.sampling_ratio:
            raise depends("how many samples a bin has", "export it with a sampling_ratio")
        own, (n, channels, height, width) = x.tensor.element, x.tensor.dims
        count, ratio, bins = rois.tensor.dims[0], self.sampling_ratio, (self.output_height, self.output_width)
        working = working_type(own, False, True)
        boxes = Term(e, e.cast(rois, working)) * self.spatial_scale - self.shift
        left, top, right, bottom = (Term(e, e.slice(boxes.value, (0, k), (count, 1))) for k in range(4))
        axes = []
        for first, last, extent, number in ((top, bottom, height, bins[0]), (left, right, width, bins[1])):
            size = last - first if self.shift else maximum(last - first, 1)
            samples = (np.arange(number * ratio) + 0.5) / (number * ratio)
            axes.append(self.neighbours(e, first + size * Term(e, e.constant(samples[None].astype(working.dtype))), extent))
        image = e.reshape(e.transpose(e.reshape(e.cast(x, working), (n, channels, height * width)), (0, 2, 1)),
                          (1, n * height * width, channels))
        base = Term(e, e.reshape(e.cast(batches, I32), (count, 1, 1))) * (height * width)
        terms = []
        for (y, wy), (z, wz) in itertools.product(*axes):
            rows_count, columns_count = y.value.tensor.dims[1], z.value.tensor.dims[1]
            place = base + Term(e, e.reshape(y.value, (count, rows_count, 1))) * width + Term(
                e, e.reshape(z.value, (count, 1, columns_count)))
            pixel = Term(e, e.reshape(e("gather", image, e.reshape(place.value, (1, place.value.tensor.size))),
                                      (count, rows_count, columns_count, channels)))
            terms.append(pixel * Term(e, e.reshape(wy.value, (count, rows_count, 1, 1))) * Term(
                e, e.reshape(wz.value, (count, 1, columns_count, 1))))
        whole = terms[0]
        for term in terms[1:]:
            whole = maximum(whole, term) if self.mode == "max" else whole + term
        split = e.reshape(whole.value, (count * bins[0], ratio, bins[1], ratio * channels))
        name = "reduce_max" if self.mode == "max" else "reduce_sum"
        by_rows = e.reshape(e(name, split, axis=1), (count * bins[0] * bins[1], ratio, channels))
        found = Term(e, e.reshape(e(name, by_rows, axis=1), (count, *bins, channels)))
        found = found if self.mode == "max" else found * (1 / (ratio * ratio))
        return e.cast(e.transpose(found.value, (0, 3, 1, 2)), own)

    def neighbours(self, e: Emitter, at: Term, extent: int) -> list[tuple[Term, Term]]:
        """The places below and above, [R, samples], and their weights, which are 0 outside of the image."""
        inside = (at >= -1) & (at <= extent)
        held = maximum(at, 0)
        low = minimum(floor(held), extent - 1)
        rest = select(low >= extent - 1, held.term(0), held - low)
        weights = [select(inside, w, w.term(0)) for w in (1 - rest, rest)]
        return [(low.cast(I32), weights[0]), (minimum(low + 1, extent - 1).cast(I32), weights[1])]


# ---- MaxRoiPool ----------------------------------------------------------------------------------------------------------
@operator("MaxRoiPool")
class MaxRoiPool(Operator):
    """The greatest of each bin of a box; a box [R, 5] is the number of its image, then its corners, both of which are in it."""
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
        """Of each box's image the greatest along rows of each bin, then along columns; what is outside of it is masked."""
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
        """Which elements of an axis are in each bin, [R, bins, extent]."""
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
