"""Images, and any tensors, on another grid: Resize and Upsample.

Along each axis an output is a weighted sum of some inputs; inputs and weights are known at compile time, because they follow
from the extents. Coordinates are computed in single precision, as in ONNX Runtime.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ....runtime.errors import Problem
from ....runtime.records import dataclass
from ...formulas.contractions import batched_product
from ...formulas.layout import taken
from ...formulas.rounding import clamp, nearest_even
from ...formulas.term import Term
from ...formulas.working_types import working_type
from ...graph.graph import Value
from ...graph.types import F32, I32, Array, ElementType
from ..emitter import Emitter, known
from .along_axis import axis_of
from .operator import Floats, Ints, Operator, operator

F = np.float32
COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
               "tf_half_pixel_for_nn", "tf_crop_and_resize")
NEAREST_MODES = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
"""Modes from version 11 on. Before, there was one, here `simple`: the input below if a grid becomes finer, that above if
coarser."""
MOST_TAPS = 4
"""Maximum number of inputs of an output that are taken one by one; more become a product with a matrix."""


@dataclass(frozen=True, slots=True)
class ResizedAxis:
    """One axis: its extents before and after, the scale, and the part of it that is resized."""
    axis: int
    before: int
    after: int
    scale: float
    start: float = 0.0
    end: float = 1.0


class Resizing(Operator):
    """The common base of Resize and Upsample."""
    mode: str = "nearest"
    coordinate_transformation_mode: str = "half_pixel"
    nearest_mode: str = "round_prefer_floor"
    cubic_coeff_a: float = -0.75
    exclude_outside: int = 0
    extrapolation_value: float = 0.0
    antialias: int = 0

    def check(self) -> None:
        for name, value, allowed in (("mode", self.mode, ("nearest", "linear", "cubic", "bilinear")),
                                     ("coordinate_transformation_mode", self.coordinate_transformation_mode, COORDINATES),
                                     ("nearest_mode", self.nearest_mode, NEAREST_MODES)):
            if value not in allowed:
                raise Problem(f"the {name} {value} is not known", kind="attribute", help=", ".join(allowed))

    # ---- reference -------------------------------------------------------------------------------------------------------
    def resized(self, x: Array, axes: Sequence[ResizedAxis]) -> Array:
        """Resize axis by axis, each output by itself."""
        found, outside = x.astype(np.float64) if self.mode != "nearest" else x, np.zeros((1,) * x.ndim, bool)
        for line in axes:
            rows = np.moveaxis(found, line.axis, 0)
            new = np.stack([self.interpolated(rows, line, i) for i in range(line.after)]) if line.after else \
                np.zeros((0, *rows.shape[1:]), rows.dtype)
            found = np.moveaxis(new, 0, line.axis)
            if self.coordinate_transformation_mode == "tf_crop_and_resize":
                places = [self.place(line, i) for i in range(line.after)]
                beyond = np.array([not 0 <= p <= line.before - 1 for p in places])
                outside = outside | beyond.reshape([-1 if d == line.axis else 1 for d in range(x.ndim)])
        if self.coordinate_transformation_mode == "tf_crop_and_resize":
            found = np.where(np.broadcast_to(outside, found.shape), self.extrapolation_value, found)
        if x.dtype.kind in "iu" and self.mode != "nearest":
            whole = np.rint(found) if self.antialias else np.trunc(found)
            found = np.clip(whole, np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
        return np.asarray(found, x.dtype)

    def place(self, line: ResizedAxis, i: int) -> float:
        """Return the coordinate of output i in the input."""
        n, m, scale, at = F(line.before), F(line.after), F(line.scale), F(i)
        match self.coordinate_transformation_mode:
            case "half_pixel":
                return float((at + F(0.5)) / scale - F(0.5))
            case "half_pixel_symmetric":
                adjustment = m / (scale * n)
                return float(n / F(2) * (F(1) - adjustment) + (at + F(0.5)) / scale - F(0.5))
            case "pytorch_half_pixel":
                return float((at + F(0.5)) / scale - F(0.5)) if line.after > 1 else 0.0
            case "align_corners":
                width = scale * n
                return float(at * (n - F(1)) / (width - F(1))) if width != 1 else 0.0
            case "tf_half_pixel_for_nn":
                return float((at + F(0.5)) / scale)
            case "tf_crop_and_resize":
                first, last = F(line.start) * (n - F(1)), F(line.end) * (n - F(1))
                return float(first + at * (last - first) / (m - F(1))) if line.after > 1 else float((first + last) / F(2))
            case _:
                return float(at / scale)

    def interpolated(self, rows: Array, line: ResizedAxis, i: int) -> Array:
        """Return output i: the nearest row, or the sum of the nearest rows with their weights."""
        n, at = line.before, self.place(line, i)
        if self.mode == "nearest":
            nearest = {"round_prefer_floor": math.ceil(at - 0.5), "round_prefer_ceil": math.floor(at + 0.5),
                       "floor": math.floor(at), "ceil": math.ceil(at),
                       "simple": math.ceil(at) if line.scale < 1 else math.floor(at)}[self.nearest_mode]
            return np.asarray(rows[min(max(nearest, 0), n - 1)])
        narrowed = min(line.scale, 1.0) if self.antialias else 1.0
        reach = math.ceil((2 if self.mode == "cubic" else 1) / narrowed)
        weights = {k: self.weight(abs(at - k) * narrowed) for k in range(math.floor(at) - reach, math.floor(at) + reach + 2)}
        if self.exclude_outside:
            weights = {k: w for k, w in weights.items() if 0 <= k < n}
        total = (sum(weights.values()) or 1.0) if self.antialias or self.exclude_outside else 1.0
        terms = (w / total * rows[min(max(k, 0), n - 1)] for k, w in weights.items() if w)
        return np.asarray(sum(terms, np.zeros_like(rows[0])))

    def weight(self, distance: float) -> float:
        if self.mode != "cubic":
            return max(1 - distance, 0.0)
        a = self.cubic_coeff_a
        if distance <= 1:
            return ((a + 2) * distance - (a + 3)) * distance * distance + 1
        return a * (((distance - 5) * distance + 8) * distance - 4) if distance < 2 else 0.0

    # ---- lowering --------------------------------------------------------------------------------------------------------
    def lowered(self, e: Emitter, x: Value, axes: Sequence[ResizedAxis]) -> Value:
        own = x.tensor.element
        if not x.tensor.size:
            raise Problem(f"{x.type} has no elements to resize", kind="shape")
        if self.mode == "nearest":
            wide = e.cast(x, I32) if own.is_integer and own.bits < 32 else x
            for line in axes:
                wide = repeated(e, wide, line.axis, self.nearest(line))
            return self.extrapolated(e, e.cast(wide, own), axes)
        found = e.cast(x, working_type(own, True, True)) if own.is_float else e.cast(x, F32)
        for line in axes:
            if line.after != line.before or self.moves(line):
                found = self.summed(e, found, line)
        found = self.extrapolated(e, found, axes)
        return e.cast(found, own) if own.is_float else self.whole(e, found, own)

    def whole(self, e: Emitter, x: Value, element: ElementType) -> Value:
        """Return floats as integers within their range: without the fraction, or with `antialias` the nearest."""
        rounded = nearest_even(Term(e, x)) if self.antialias else Term(e, e.truncated(x))
        return e.cast(clamp(rounded, element.minimum, element.maximum).value, element)

    def places(self, line: ResizedAxis) -> Array:
        """Return the coordinate of each output in the input."""
        at, n, scale = np.arange(line.after, dtype=F), F(line.before), F(line.scale)
        centred = (at + F(0.5)) / scale - F(0.5)
        modes: dict[str, Callable[[], Array]] = {
            "half_pixel": lambda: centred,
            "half_pixel_symmetric": lambda: n / F(2) * (F(1) - F(line.after) / (scale * n)) + centred,
            "pytorch_half_pixel": lambda: centred if line.after > 1 else np.zeros_like(at),
            "align_corners": lambda: at * (n - F(1)) / (scale * n - F(1)) if scale * n != 1 else np.zeros_like(at),
            "asymmetric": lambda: at / scale,
            "tf_half_pixel_for_nn": lambda: (at + F(0.5)) / scale,
            "tf_crop_and_resize": lambda: self.cropped(line, at)}
        return np.asarray(modes[self.coordinate_transformation_mode](), F)

    def cropped(self, line: ResizedAxis, at: Array) -> Array:
        first, last = F(line.start) * F(line.before - 1), F(line.end) * F(line.before - 1)
        if line.after == 1:
            return np.array([(first + last) / F(2)], F)
        return np.asarray(first + at * (last - first) / F(line.after - 1), F)

    def moves(self, line: ResizedAxis) -> bool:
        """True if an output differs from the input at the same index."""
        return not np.array_equal(self.places(line), np.arange(line.before, dtype=F)) or bool(self.antialias)

    def nearest(self, line: ResizedAxis) -> Array:
        """Return the index of the input that each output equals."""
        at = self.places(line).astype(np.float64)
        whole = {"round_prefer_floor": lambda: np.ceil(at - 0.5), "round_prefer_ceil": lambda: np.floor(at + 0.5),
                 "floor": lambda: np.floor(at), "ceil": lambda: np.ceil(at),
                 "simple": lambda: np.ceil(at) if line.scale < 1 else np.floor(at)}[self.nearest_mode]()
        return np.asarray(whole.clip(0, line.before - 1).astype(np.int32))

    def taps(self, line: ResizedAxis) -> tuple[Array, Array]:
        """Return inputs [taps, outputs] and their weights."""
        at = self.places(line).astype(np.float64)
        low = np.floor(at)
        narrowed = min(float(line.scale), 1.0) if self.antialias else 1.0
        reach = 2 if self.mode == "cubic" else 1
        first = math.floor(-reach / narrowed) + 1
        inputs = low[None] + np.arange(first, 2 - first)[:, None]
        distance = np.abs(inputs - at[None]) * narrowed
        if self.mode == "cubic":
            a = float(F(self.cubic_coeff_a))
            weights = np.where(distance <= 1, ((a + 2) * distance - (a + 3)) * distance**2 + 1, np.where(
                distance < 2, ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a, 0))
        else:
            weights = np.clip(1 - distance, 0, None)
        if self.exclude_outside:
            weights = np.where((inputs >= 0) & (inputs < line.before), weights, 0)
        if self.exclude_outside or self.antialias:
            total = weights.sum(0, keepdims=True)
            weights = weights / np.where(total == 0, 1, total)
        return inputs.clip(0, line.before - 1).astype(np.int32), weights

    def summed(self, e: Emitter, x: Value, line: ResizedAxis) -> Value:
        """Return x resized along one axis."""
        inputs, weights = self.taps(line)
        element = x.tensor.element
        if len(inputs) > MOST_TAPS:
            matrix = np.zeros((line.before, line.after))
            for places, parts in zip(inputs, weights):
                np.add.at(matrix, (places, np.arange(line.after)), parts)
            order = [*(a for a in range(x.tensor.rank) if a != line.axis), line.axis]
            found = batched_product(e, e.transpose(x, order), e.constant(matrix.astype(element.dtype)), element)
            return e.transpose(found, [order.index(a) for a in range(x.tensor.rank)])
        total = None
        for places, parts in zip(inputs, weights):
            if not parts.any():
                continue
            dims = [-1 if a == line.axis else 1 for a in range(x.tensor.rank)]
            factor = e.constant(parts.astype(element.dtype).reshape(dims))
            term = taken(e, x, line.axis, places)
            term = term if (parts == 1).all() else e.product(term, factor)
            total = term if total is None else e.sum(total, term)
        assert total is not None
        return total

    def extrapolated(self, e: Emitter, x: Value, axes: Sequence[ResizedAxis]) -> Value:
        """Replace the elements outside of the input by the extrapolation value, if the resized part extends beyond the
        input."""
        if self.coordinate_transformation_mode != "tf_crop_and_resize":
            return x
        outside = np.zeros((1,) * x.tensor.rank, bool)
        for line in axes:
            at = self.places(line)
            beyond = (at < 0) | (at > line.before - 1)
            outside = outside | beyond.reshape([-1 if a == line.axis else 1 for a in range(x.tensor.rank)])
        if not outside.any():
            return x
        return e.select(e.constant(outside), e.splat(self.extrapolation_value, x), x)


def repeated(e: Emitter, x: Value, axis: int, places: Array) -> Value:
    """Return rows by their indices: each row repeated, if the indices repeat each row equally often."""
    dims = x.tensor.dims
    times, rest = divmod(len(places), dims[axis])
    if times > 1 and not rest and np.array_equal(places, np.repeat(np.arange(dims[axis]), times)):
        before, after = math.prod(dims[:axis]), math.prod(dims[axis + 1:])
        spread = e.tile(e.reshape(x, (before * dims[axis], 1, after)), (1, times, 1))
        return e.reshape(spread, (*dims[:axis], len(places), *dims[axis + 1:]))
    return taken(e, x, axis, places)


@operator("Resize")
class Resize(Resizing):
    """Resize. Operands: x, the part of it that is resized (`roi`), scales, sizes; before version 11 x and scales."""
    axes: Ints | None = None
    keep_aspect_ratio_policy: str = "stretch"

    def lines(self, dims: Sequence[int], roi: Array | None, scales: Array | None, sizes: Array | None) -> list[ResizedAxis]:
        self.check()
        if self.version < 11:
            self.coordinate_transformation_mode, self.nearest_mode = "asymmetric", "simple"
        axes = list(range(len(dims))) if self.axes is None else [axis_of(a, len(dims)) for a in self.axes]
        by_scale = scales is not None and scales.size > 0
        given = scales if by_scale else sizes
        if given is None or given.size != len(axes):
            raise ValueError(f"scales or sizes of {len(axes)} axes are needed")
        if by_scale:
            after = [math.floor(F(dims[a]) * F(s)) for a, s in zip(axes, given)]
            factors = [float(F(s)) for s in given]
        else:
            after, factors = self.by_sizes([dims[a] for a in axes], [int(n) for n in given])
        parts = np.reshape(roi, (2, -1)) if roi is not None and roi.size == 2 * len(axes) else np.array([[0.0], [1.0]])
        starts, ends = (np.broadcast_to(p, len(axes)) for p in parts)
        return [ResizedAxis(a, dims[a], m, s, float(b), float(c)) for a, m, s, b, c in zip(axes, after, factors, starts, ends)
                if m != dims[a] or self.coordinate_transformation_mode == "tf_crop_and_resize" or s != 1]

    def by_sizes(self, before: Sequence[int], sizes: Sequence[int]) -> tuple[list[int], list[float]]:
        """Return extents and scales, which the policy may make equal for all axes."""
        factors = [float(F(m) / F(n)) for n, m in zip(before, sizes)]
        if self.keep_aspect_ratio_policy == "stretch":
            return list(sizes), factors
        one = min(factors) if self.keep_aspect_ratio_policy == "not_larger" else max(factors)
        return [math.floor(one * n + 0.5) for n in before], [one] * len(before)

    def operands(self, given: Sequence[Array | None]) -> tuple[Array | None, Array | None, Array | None]:
        """Return roi, scales and sizes."""
        if self.version < 11:
            return None, given[0], None
        padded = (*given, None, None, None)
        return padded[0], padded[1], padded[2]

    def reference(self, x: Array, first: Array | None = None, second: Array | None = None, third: Array | None = None) -> Array:
        return self.resized(x, self.lines(x.shape, *self.operands((first, second, third))))

    def lower(self, e: Emitter, x: Value, first: Value | None = None, second: Value | None = None,
              third: Value | None = None) -> Value:
        names = ("the scales",) if self.version < 11 else ("the part that is looked at", "the scales", "the sizes")
        uses_roi = self.coordinate_transformation_mode == "tf_crop_and_resize"
        given = [None if v is None or (n == names[0] and len(names) > 1 and not uses_roi) else known(v, n)
                 for v, n in zip((first, second, third), (*names, *names))]
        return self.lowered(e, x, self.lines(x.tensor.dims, *self.operands(given)))


@operator("Upsample")
class Upsample(Resizing):
    """Upsample, before version 10: each coordinate is x / scale, and the nearest input is the one below."""
    scales: Floats | None = None
    coordinate_transformation_mode = "asymmetric"
    nearest_mode = "floor"

    def lines(self, dims: Sequence[int], given: Array | None) -> list[ResizedAxis]:
        self.check()
        factors = self.scales if given is None else [float(s) for s in given]
        if factors is None or len(factors) != len(dims):
            raise ValueError(f"scales of {len(dims)} axes are needed")
        return [ResizedAxis(a, n, math.floor(F(n) * F(s)), float(F(s)))
                for a, (n, s) in enumerate(zip(dims, factors)) if s != 1]

    def reference(self, x: Array, scales: Array | None = None) -> Array:
        return self.resized(x, self.lines(x.shape, scales))

    def lower(self, e: Emitter, x: Value, scales: Value | None = None) -> Value:
        return self.lowered(e, x, self.lines(x.tensor.dims, None if scales is None else known(scales, "the scales")))
