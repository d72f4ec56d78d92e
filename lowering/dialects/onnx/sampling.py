"""Grids, images sampled at the points of a grid, and columns put back into images: AffineGrid, GridSample, Col2Im."""
from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....runtime.errors import Problem, require
from ...formulas.contractions import batched_product
from ...formulas.layout import padded, part
from ...formulas.rounding import nearest_even
from ...formulas.term import Term, maximum, minimum, select
from ...formulas.working_types import working_type
from ...graph.graph import Value
from ...graph.types import Array
from ..emitter import Emitter, integers
from .interpolation import Image, mirrored_place
from .operator import Ints, Operator, operator


# ---- AffineGrid ----------------------------------------------------------------------------------------------------------
@operator("AffineGrid")
class AffineGrid(Operator):
    """Coordinates between -1 and 1, the last axis first, transformed by a matrix for each image: [N, ..., axes]. The function
    body in the specification drops every axis of extent 1, that of a batch of one, too."""
    align_corners: int = 0

    def places(self, theta: Sequence[int], size: Sequence[int]) -> Array:
        """Return the homogeneous coordinates of all pixels, in order, with a 1 last: [pixels, axes + 1]."""
        axes = len(size) - 2
        require(axes in (2, 3) and tuple(theta) == (size[0], axes, axes + 1),
                f"matrices of {list(theta)} are none for images of {list(size)}", kind="shape")
        lines = [np.linspace(-1, 1, n) if self.align_corners and n > 1 else np.ones(1) if self.align_corners
                 else (2 * np.arange(n) + 1) / n - 1 for n in size[2:]]
        found = np.meshgrid(*lines, indexing="ij")
        return np.stack([*(a.reshape(-1) for a in found[::-1]), np.ones(math.prod(size[2:]))], -1)

    def reference(self, theta: Array, size: Array) -> Array:
        """Compute pixel by pixel: the coordinates of its middle, or of corners that are at -1 and 1 (one pixel is at 1), times
        the matrix."""
        images, _, *extents = size.tolist()
        require(theta.shape == (images, len(extents), len(extents) + 1), "the matrices are of other images", kind="shape")
        found = np.empty((images, *extents, len(extents)))
        for pixel in np.ndindex(*extents):
            place = [(1.0 if n == 1 else 2 * i / (n - 1) - 1) if self.align_corners else (2 * i + 1 - n) / n
                     for i, n in zip(pixel, extents)]
            found[(slice(None), *pixel)] = theta.astype(np.float64) @ np.array([*place[::-1], 1.0])
        return found.astype(theta.dtype)

    def lower(self, e: Emitter, theta: Value, size: Value) -> Value:
        extents = integers(size, "the size of the images")
        n, axes, _ = theta.tensor.dims
        working = working_type(theta.tensor.element, False, True)
        places = e.constant(self.places(theta.tensor.dims, extents).astype(working.dtype)[None], working)
        found = batched_product(e, places, e.transpose(e.cast(theta, working), (0, 2, 1)), working)
        return e.cast(e.reshape(found, (n, *extents[2:], axes)), theta.tensor.element)


# ---- GridSample ----------------------------------------------------------------------------------------------------------
def reflected(x: float, low: float, high: float) -> float:
    """Return a coordinate reflected into the range between two mirrors."""
    width = high - low
    if width <= 0:
        return low
    t = (x - low) % (2 * width)
    return low + (t if t <= width else 2 * width - t)


def cubic(distance: float) -> float:
    """Return the cubic weight of an input at this distance, with a = -0.75."""
    a = -0.75
    if distance <= 1:
        return ((a + 2) * distance - (a + 3)) * distance**2 + 1
    return a * (((distance - 5) * distance + 8) * distance - 4) if distance < 2 else 0.0


@operator("GridSample")
class GridSample(Operator):
    """x [N, C, ...] at the points of a grid [N, ..., axes], the last axis first, between -1 and 1."""
    mode: str = "linear"
    padding_mode: str = "zeros"
    align_corners: int = 0

    @property
    def is_cubic(self) -> bool:
        """True if the 4 inputs along an axis are looked up beyond the border, one by one."""
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
        seen = Image(e, image, extents, self.padding_mode, [self.bounds(extent) for extent in extents])
        found = seen.at([nearest_even(a) for a in at]) if self.mode == "nearest" else seen.weighed(at, self.is_cubic)
        return e.cast(e.reshape(e.transpose(found.value, (0, 2, 1)), (n, channels, *outer[1:])), own)

    def placed(self, g: Term, extent: int) -> Term:
        """Return the coordinate in the image of a number of the grid."""
        at = (g + 1) * ((extent - 1) / 2) if self.align_corners else ((g + 1) * extent - 1) * 0.5
        at = nearest_even(at) if self.mode == "nearest" else at
        low, high = self.bounds(extent)
        if self.padding_mode == "border" and not self.is_cubic:
            inside = (at >= low) & (at <= high)
            return select(inside, at, minimum(maximum(at, 0), extent - 1))
        return mirrored_place(at, low, high) if self.padding_mode == "reflection" else at


# ---- Col2Im --------------------------------------------------------------------------------------------------------------
@operator("Col2Im")
class Col2Im(Operator):
    """Blocks [N, C * block, positions] added up at their positions in an image."""
    dilations: Ints = ()
    pads: Ints = ()
    strides: Ints = ()

    def geometry(self, image: Sequence[int], block: Sequence[int]) -> tuple[list[int], list[int], list[int], list[int]]:
        """Return strides, dilations, padded extents and positions along each axis."""
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
    """Return x with zeros between the elements of an axis, so that these are `step` apart."""
    if step == 1 or x.tensor.dims[axis] == 1:
        return x
    dims = x.tensor.dims
    apart = e.reshape(x, (math.prod(dims[:axis + 1]), 1, math.prod(dims[axis + 1:])))
    wide = padded(e, apart, [(0, 0), (0, step - 1), (0, 0)])
    whole = e.reshape(wide, (*dims[:axis], dims[axis] * step, *dims[axis + 1:]))
    return part(e, whole, axis, 0, (dims[axis] - 1) * step + 1)
