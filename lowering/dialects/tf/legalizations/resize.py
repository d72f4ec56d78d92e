"""Resizes of images.

TOSA's `resize` has its grid in whole numbers, output o at (o * d + offset) / n, and limits: no reduction to a sixteenth or
less, n of at most 2048, not every element type. Resizes beyond these limits gather the rows and columns that TensorFlow reads.
Nearest neighbours are computed in single precision as in TensorFlow, and `resize` is used if it reads the same inputs.
Coordinates between two inputs are exact in `resize`, while TensorFlow rounds them: for some hundred rows by a hundred
thousandth of one.
"""
from __future__ import annotations

import math

import numpy as np

from .....runtime.errors import Problem
from .....runtime.records import dataclass
from ....formulas.layout import taken
from ....formulas.tosa_builder import is_narrow
from ....graph.foreign import flag
from ....graph.graph import Operation, Value
from ....graph.types import F32, I32, Array
from ...emitter import Emitter, integers
from ...tosa.resize import LARGEST_EXTENT, LARGEST_SCALE, NEAREST
from .table import legalization

F = np.float32


@dataclass(frozen=True, slots=True)
class ResizedAxis:
    """Rows, or columns: `before` in the input, `after` in the result, and their alignment."""
    before: int
    after: int
    align_corners: bool
    half_pixel_centers: bool

    @property
    def step(self) -> F:
        """Distance from one output to the next in the input: single precision, as in TensorFlow."""
        if self.align_corners and self.after > 1:
            return F(self.before - 1) / F(self.after - 1)
        return F(self.before) / F(self.after)

    def nearest(self) -> Array:
        """Return the index of the input that each output equals."""
        at = np.arange(self.after, dtype=F)
        places = (at + F(0.5)) * self.step if self.half_pixel_centers else at * self.step
        whole = np.floor(places)
        return (whole + (places - whole >= 0.5) * self.align_corners).clip(0, self.before - 1).astype(np.int32)

    def between(self) -> tuple[Array, Array, Array]:
        """Return the two inputs around each output, and the distance from the first."""
        at = np.arange(self.after, dtype=F)
        places = (at + F(0.5)) * self.step - F(0.5) if self.half_pixel_centers else at * self.step
        low, last = np.floor(places), self.before - 1
        return (low.clip(0, last).astype(np.int32), np.ceil(places).clip(0, last).astype(np.int32), (places - low).astype(F))

    def grid(self, nearest: bool) -> tuple[int, int, int, int] | None:
        """Return n, d, offset and border of `resize`; None if it has none."""
        n, d, offset = self.spacing()
        if nearest and not self.align_corners:  # the input below, not the nearest: half an input earlier
            n, d, offset = 2 * n, 2 * d, 2 * offset - n if not self.half_pixel_centers else 2 * offset
        common = math.gcd(n, d, offset)
        n, d, offset = n // common, d // common, offset // common
        border = (self.after - 1) * d - (self.before - 1) * n + offset
        fits = (0 < n <= LARGEST_SCALE and 0 < d < 16 * n and -n <= offset < 16 * n and -16 * n <= border < n
                and max(self.before, self.after) <= LARGEST_EXTENT)
        return (n, d, offset, border) if fits else None

    def spacing(self) -> tuple[int, int, int]:
        """Return n, d and offset of the coordinates for interpolation."""
        if self.align_corners and self.after > 1:
            return self.after - 1, self.before - 1, 0
        if self.half_pixel_centers:
            return 2 * self.after, 2 * self.before, self.before - self.after
        return self.after, self.before, 0


@legalization("tf.ResizeNearestNeighbor")
def nearest_neighbor(e: Emitter, operation: Operation, x: Value, size: Value) -> Value:
    lines = lines_of(operation, x, size)
    grids = [line.grid(nearest=True) for line in lines]
    if x.tensor.element in NEAREST and all(g is not None and reads(g, line) for g, line in zip(grids, lines)):
        return resized(e, x, grids, "NEAREST_NEIGHBOR")
    own = x.tensor.element
    wide = e.cast(x, I32) if is_narrow(own) else x
    for axis, line in enumerate(lines, 1):
        wide = taken(e, wide, axis, line.nearest())
    return e.cast(wide, own)


@legalization("tf.ResizeBilinear")
def bilinear(e: Emitter, operation: Operation, x: Value, size: Value) -> Value:
    """Resize images of any type bilinearly, into f32."""
    lines, x = lines_of(operation, x, size), e.cast(x, F32)
    grids = [line.grid(nearest=False) for line in lines]
    if None not in grids:
        return resized(e, x, grids, "BILINEAR")
    for axis, line in enumerate(lines, 1):
        low, high, part = line.between()
        first, second = taken(e, x, axis, low), taken(e, x, axis, high)
        weight = e.constant(part.reshape([-1 if a == axis else 1 for a in range(4)]))
        x = e.sum(first, e.product(e.difference(second, first), weight)) if part.any() else first
    return x


def lines_of(operation: Operation, x: Value, size: Value) -> list[ResizedAxis]:
    """Return the resized axes for the rows and columns of [N, H, W, C]."""
    if x.tensor.rank != 4:
        raise Problem(f"the images are {x.type}, a tensor of rank 4 is needed", kind="shape")
    counts = integers(size, "the size of the result")
    aligned, half = flag(operation, "align_corners"), flag(operation, "half_pixel_centers")
    if len(counts) != 2 or min(counts) < 1:
        raise Problem(f"the size is {list(counts)}, a height and a width are needed", kind="shape")
    if aligned and half:
        raise Problem("align_corners and half_pixel_centers exclude each other", kind="attribute")
    return [ResizedAxis(n, m, aligned, half) for n, m in zip(x.tensor.dims[1:3], counts)]


def reads(grid: tuple[int, int, int, int], line: ResizedAxis) -> bool:
    """True if `resize` takes the same inputs as TensorFlow."""
    n, d, offset, _ = grid
    whole, rest = np.divmod(np.arange(line.after, dtype=np.int64) * d + offset, n)
    taken = np.where(2 * rest >= n, np.minimum(whole + 1, line.before - 1), np.maximum(whole, 0))
    return bool((taken == line.nearest()).all())


def resized(e: Emitter, x: Value, grids: list[tuple[int, int, int, int] | None], mode: str) -> Value:
    (yn, yd, *y), (xn, xd, *across) = (g or (1, 1, 0, 0) for g in grids)
    scale, offset, border = e.shape((yn, yd, xn, xd)), e.shape((y[0], across[0])), e.shape((y[1], across[1]))
    return e("resize", x, scale, offset, border, mode=mode)


