"""Places that data name in images: GridSample, RoiAlign, MaxRoiPool, Col2Im, NonMaxSuppression."""
from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....runtime.errors import Problem
from ...formulas.division import divided
from ...formulas.layout import padded, part
from ...formulas.rounding import nearest_away, nearest_even
from ...formulas.term import Term, ceil, floor, maximum, minimum, select
from ...formulas.working_types import working_type
from ...graph.graph import Value
from ...graph.types import I32, Array
from ..emitter import Emitter, integers
from .gathering import depends
from .operator import Ints, Operator, operator


# ---- GridSample ----------------------------------------------------------------------------------------------------------
def reflected(x: float, low: float, high: float) -> float:
    """A place brought between two mirrors."""
    width = high - low
    if width <= 0:
        return low
    t = (x - low) % (2 * width)
    return low + (t if t <= width else 2 * width - t)


def cubic(distance: float) -> float:
    """The weight of an input so far away, with a = -0.75."""
    a = -0.75
    if distance <= 1:
        return ((a + 2) * distance - (a + 3)) * distance**2 + 1
    return a * (((distance - 5) * distance + 8) * distance - 4) if distance < 2 else 0.0


@operator("GridSample")
class GridSample(Operator):
    """x [N, C, ...] at the places of a grid [N, ..., axes], the last axis first, between -1 and 1."""
    mode: str = "linear"
    padding_mode: str = "zeros"
    align_corners: int = 0

    @property
    def is_cubic(self) -> bool:
        """Whether its 4 inputs along an axis are looked up beyond the border, place by place."""
        return self.mode in ("cubic", "bicubic")

    def bounds(self, extent: int) -> tuple[float, float]:
        return (0.0, extent - 1.0) if self.align_corners else (-0.5, extent - 0.5)

    # ---- reference -------------------------------------------------------------------------------------------------------
    def reference(self, x: Array, grid: Array) -> Array:
        n, channels, *extents = x.shape
        found = np.zeros((n, channels, *grid.shape[1:-1]))
        for batch in range(n):
            for place in np.ndindex(grid.shape[1:-1]):
                at = [self.place(float(g), extent) for g, extent in zip(grid[(batch, *place)][::-1], extents)]
                found[(batch, slice(None), *place)] = self.sample(x[batch].astype(np.float64), at)
        return found.astype(x.dtype)

    def place(self, g: float, extent: int) -> float:
        at = (g + 1) / 2 * (extent - 1) if self.align_corners else ((g + 1) * extent - 1) / 2
        at = float(np.rint(at)) if self.mode == "nearest" else at
        low, high = self.bounds(extent)
        if low <= at <= high:
            return at
        if self.padding_mode == "border" and not self.is_cubic:
            return min(max(at, 0), extent - 1)
        return reflected(at, low, high) if self.padding_mode == "reflection" else at

    def sample(self, x: Array, at: Sequence[float]) -> Array:
        if self.mode == "nearest":
            return self.pixel(x, [int(np.rint(a)) for a in at])
        reach = 2 if self.is_cubic else 1
        total = np.zeros(x.shape[0])
        for steps in itertools.product(range(1 - reach, reach + 1), repeat=len(at)):
            places = [math.floor(a) + s for a, s in zip(at, steps)]
            far = [abs(a - p) for a, p in zip(at, places)]
            weight = math.prod(cubic(d) if reach == 2 else max(1 - d, 0) for d in far)
            total = total + weight * self.pixel(x, places)
        return total

    def pixel(self, x: Array, places: Sequence[int]) -> Array:
        held: list[Any] = [slice(None)]
        for place, extent in zip(places, x.shape[1:]):
            if 0 <= place < extent:
                held.append(place)
            elif self.padding_mode == "zeros":
                return np.zeros(x.shape[0])
            elif self.padding_mode == "border":
                held.append(min(max(place, 0), extent - 1))
            else:
                held.append(int(reflected(place, *self.bounds(extent))))
        return np.asarray(x[tuple(held)])

    # ---- lowering --------------------------------------------------------------------------------------------------------
    def lower(self, e: Emitter, x: Value, grid: Value) -> Value:
        own, (n, channels, *extents) = x.tensor.element, x.tensor.dims
        *outer, axes = grid.tensor.dims
        if axes != len(extents) or outer[0] != n:
            raise Problem(f"{grid.type} is no grid for {x.type}", kind="shape")
        count = math.prod(outer[1:])
        wide = e.cast(x, working_type(own, True, True))
        image = e.transpose(e.reshape(wide, (n, channels, math.prod(extents))), (0, 2, 1))
        flat = e.cast(e.reshape(grid, (n, count, axes)), working_type(grid.tensor.element, False, True))
        at = [self.placed(Term(e, e.reshape(part(e, flat, 2, axes - 1 - a, axes - a), (n, count))), extent)
              for a, extent in enumerate(extents)]
        if self.mode == "nearest":
            found = self.pixels(e, image, [nearest_even(a) for a in at], extents)
        else:
            found = self.weighed(e, image, at, extents)
        return e.cast(e.reshape(e.transpose(found.value, (0, 2, 1)), (n, channels, *outer[1:])), own)

    def placed(self, g: Term, extent: int) -> Term:
        """Where a number of the grid lies in the image."""
        at = (g + 1) * ((extent - 1) / 2) if self.align_corners else ((g + 1) * extent - 1) * 0.5
        at = nearest_even(at) if self.mode == "nearest" else at
        low, high = self.bounds(extent)
        if self.padding_mode == "border" and not self.is_cubic:
            inside = (at >= low) & (at <= high)
            return select(inside, at, minimum(maximum(at, 0), extent - 1))
        return mirrored_place(at, low, high) if self.padding_mode == "reflection" else at

    def weighed(self, e: Emitter, image: Value, at: list[Term], extents: Sequence[int]) -> Term:
        """The sum of what lies around each place."""
        reach = 2 if self.is_cubic else 1
        lows, total = [floor(a) for a in at], None
        rests = [a - low for a, low in zip(at, lows)]
        for steps in itertools.product(range(1 - reach, reach + 1), repeat=len(at)):
            weight = None
            for rest, step in zip(rests, steps):
                own = cubic_weight(rest, step) if reach == 2 else rest if step else 1 - rest
                weight = own if weight is None else weight * own
            assert weight is not None
            pixel = self.pixels(e, image, [low + step if step else low for low, step in zip(lows, steps)], extents)
            term = pixel * Term(e, e.reshape(e.cast(weight.value, pixel.element), (*weight.value.tensor.dims, 1)))
            total = term if total is None else total + term
        assert total is not None
        return total

    def pixels(self, e: Emitter, image: Value, places: list[Term], extents: Sequence[int]) -> Term:
        """The pixels [N, W, C] at whole places [N, W]; what is outside as the node says."""
        outside, number = None, None
        for place, extent in zip(places, extents):
            if self.padding_mode == "reflection":
                place = floor(mirrored_place(place, *self.bounds(extent)))
            beyond = (place < 0) | (place > extent - 1)
            outside = beyond if outside is None else outside | beyond
            held = minimum(maximum(place, 0), extent - 1).cast(I32)
            number = held if number is None else number * extent + held
        assert number is not None and outside is not None
        found = Term(e, e("gather", image, number.value))
        if self.padding_mode != "zeros":
            return found
        mask = Term(e, e.reshape(outside.value, (*outside.value.tensor.dims, 1)))
        return select(mask, found.term(0), found)


def mirrored_place(x: Term, low: float, high: float) -> Term:
    """A place brought between two mirrors."""
    width = high - low
    if width <= 0:
        return x * 0 + low
    t = x - low
    t = t - floor(t * (1 / (2 * width))) * (2 * width)
    return select(t > width, 2 * width - t, t) + low


def cubic_weight(rest: Term, step: int) -> Term:
    """The weight of the input `step` away from the one below a place, `rest` behind it."""
    a = -0.75
    distance = rest - step if step <= 0 else step - rest
    if step in (0, 1):
        return (distance * (a + 2) - (a + 3)) * distance * distance + 1
    return ((distance * a - 5 * a) * distance + 8 * a) * distance - 4 * a


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
        seen = e.reshape(e("gather", flat, e.reshape(e.cast(batch.value, I32), (1, count))), (count, 1, height, width, channels))
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


# ---- Col2Im --------------------------------------------------------------------------------------------------------------
@operator("Col2Im")
class Col2Im(Operator):
    """Blocks [N, C * block, positions] added up where they lie in an image."""
    dilations: Ints = ()
    pads: Ints = ()
    strides: Ints = ()

    def geometry(self, image: Sequence[int], block: Sequence[int]) -> tuple[list[int], list[int], list[int], list[int]]:
        """Strides, dilations, padded extents and positions along each axis."""
        d = len(image)
        strides, dilations = (list(v) or [1] * d for v in (self.strides, self.dilations))
        pads = list(self.pads) or [0] * (2 * d)
        extents = [n + pads[a] + pads[a + d] for a, n in enumerate(image)]
        counts = [(n - (k - 1) * q - 1) // s + 1 for n, k, q, s in zip(extents, block, dilations, strides)]
        return strides, dilations, extents, counts

    def reference(self, x: Array, image: Array, block: Array) -> Array:
        shape, kernel = [int(n) for n in image], [int(n) for n in block]
        strides, dilations, extents, counts = self.geometry(shape, kernel)
        n, channels = x.shape[0], x.shape[1] // math.prod(kernel)
        seen = x.reshape(n, channels, *kernel, *counts)
        found = np.zeros((n, channels, *extents), np.float64 if x.dtype.kind not in "iu" else x.dtype)
        for offset in np.ndindex(*kernel):
            for position in np.ndindex(*counts):
                place = [p * s + o * q for p, s, o, q in zip(position, strides, offset, dilations)]
                found[(slice(None), slice(None), *place)] += seen[(slice(None), slice(None), *offset, *position)]
        pads = list(self.pads) or [0] * (2 * len(shape))
        crop = tuple(slice(pads[a], pads[a] + m) for a, m in enumerate(shape))
        return np.asarray(found[(slice(None), slice(None), *crop)], x.dtype)

    def lower(self, e: Emitter, x: Value, image: Value, block: Value) -> Value:
        shape, kernel = integers(image, "the shape of the image"), integers(block, "the shape of the block")
        strides, dilations, extents, counts = self.geometry(shape, kernel)
        n, channels, d = x.tensor.dims[0], x.tensor.dims[1] // math.prod(kernel), len(shape)
        seen = e.reshape(x, (n * channels, math.prod(kernel), *counts))
        total = None
        for number, offset in enumerate(np.ndindex(*kernel)):
            tap = e.reshape(part(e, seen, 1, number, number + 1), (n * channels, *counts))
            for axis in range(d):
                tap = spread(e, tap, axis + 1, strides[axis])
            borders = [(0, 0)] + [(o * q, m - o * q - tap.tensor.dims[a + 1])
                                  for a, (o, q, m) in enumerate(zip(offset, dilations, extents))]
            tap = padded(e, tap, borders)
            total = tap if total is None else e.sum(total, tap)
        assert total is not None
        pads = list(self.pads) or [0] * (2 * d)
        found = e.slice(total, (0, *pads[:d]), (n * channels, *shape))
        return e.reshape(found, (n, channels, *shape))


def spread(e: Emitter, x: Value, axis: int, step: int) -> Value:
    """x with zeros between the places of an axis, so that they are `step` apart."""
    if step == 1 or x.tensor.dims[axis] == 1:
        return x
    dims = x.tensor.dims
    apart = e.reshape(x, (math.prod(dims[:axis + 1]), 1, math.prod(dims[axis + 1:])))
    wide = padded(e, apart, [(0, 0), (0, step - 1), (0, 0)])
    whole = e.reshape(wide, (*dims[:axis], dims[axis] * step, *dims[axis + 1:]))
    return part(e, whole, axis, 0, (dims[axis] - 1) * step + 1)


# ---- NonMaxSuppression ---------------------------------------------------------------------------------------------------
@operator("NonMaxSuppression")
class NonMaxSuppression(Operator):
    """Which boxes stay: of those that overlap much the one of the highest score, [kept, 3] of batch, class and box. How many
    stay depends on data."""
    center_point_box: int = 0

    def reference(self, boxes: Array, scores: Array, most: Array | None = None, overlap: Array | None = None,
                  least: Array | None = None) -> Array:
        limit = 0 if most is None else int(np.reshape(most, ()))
        allowed = 0.0 if overlap is None else float(np.reshape(overlap, ()))
        rows = []
        for batch, kind in np.ndindex(*scores.shape[:2]):
            own = scores[batch, kind]
            order = [k for k in np.argsort(-own, kind="stable") if least is None or own[k] > float(np.reshape(least, ()))]
            kept: list[int] = []
            for k in order:
                if len(kept) < limit and all(self.overlap(boxes[batch, k], boxes[batch, j]) <= allowed for j in kept):
                    kept.append(int(k))
            rows += [[batch, kind, k] for k in kept]
        return np.array(rows, np.int64).reshape(-1, 3)

    def corners(self, box: Array) -> tuple[float, float, float, float]:
        a, b, c, d = map(float, box)
        if self.center_point_box:
            return b - d / 2, a - c / 2, b + d / 2, a + c / 2
        return min(a, c), min(b, d), max(a, c), max(b, d)

    def overlap(self, first: Array, second: Array) -> float:
        a, b = self.corners(first), self.corners(second)
        height = min(a[2], b[2]) - max(a[0], b[0])
        width = min(a[3], b[3]) - max(a[1], b[1])
        if height <= 0 or width <= 0:
            return 0.0
        both = height * width
        areas = [(q[2] - q[0]) * (q[3] - q[1]) for q in (a, b)]
        return both / (sum(areas) - both) if sum(areas) > both else 0.0

    def lower(self, e: Emitter, boxes: Value, scores: Value, *limits: Value | None) -> Value:
        arrays = [None if v is None else v.constant for v in limits]
        if boxes.constant is not None and scores.constant is not None and all(
                v is None or v.constant is not None for v in limits):
            return e.constant(self.reference(boxes.constant, scores.constant, *arrays))
        raise depends("how many boxes stay", "export the model without NonMaxSuppression, and choose boxes behind it")
