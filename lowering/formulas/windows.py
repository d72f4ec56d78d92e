"""Positions of the windows of convolutions and pools, channels last.

TOSA requires the last position of a window to end where its input ends: the remainder of a stride is taken off the padding at
the end, and the input is cropped if that is not enough.
"""
from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from ..graph.graph import Value
from .layout import every
from .tosa_builder import TosaBuilder

Pads = Sequence[tuple[int, int]]
"""Padding before and after each spatial axis."""
Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """A window: one number for each spatial axis, with `pads` before and after it."""
    kernel: Ints
    strides: Ints
    dilations: Ints
    pads: Pads

    @property
    def spatial(self) -> int:
        return len(self.kernel)

    @property
    def reach(self) -> Ints:
        return reach(self.kernel, self.dilations)

    @property
    def flat_pads(self) -> Ints:
        """Padding in the order of TOSA's operators."""
        return tuple(n for pair in self.pads for n in pair)

    def along(self, axis: int) -> Window:
        """Return a window that is this one along one of its axes, and a single element along the others."""
        def one(numbers: Ints) -> Ints:
            return tuple(n if d == axis else 1 for d, n in enumerate(numbers))
        pads = [pair if d == axis else (0, 0) for d, pair in enumerate(self.pads)]
        return Window(one(self.kernel), one(self.strides), one(self.dilations), pads)

    def with_pads(self, pads: Pads) -> Window:
        return Window(self.kernel, self.strides, self.dilations, pads)

    def of_plane(self) -> Window:
        """Return a window along one axis as a window of an image that has one row."""
        if self.spatial != 1:
            return self
        return Window((1, *self.kernel), (1, *self.strides), (1, *self.dilations), ((0, 0), *self.pads))

    def places(self, extents: Sequence[int]) -> Ints:
        """Return the number of positions of the window in an input of these spatial extents."""
        return tuple((n + sum(pair) - k) // s + 1 for n, pair, k, s in zip(extents, self.pads, self.reach, self.strides))

    def placed(self, e: TosaBuilder, x: Value) -> tuple[Value, Window]:
        """Return the input and the window, fitted so that the last position ends where the padded input ends."""
        x, pads = fitted(e, x, self.pads, self.reach, self.strides)
        return x, self.with_pads(pads)

    def taps(self, e: TosaBuilder, x: Value) -> list[tuple[Ints, Value]]:
        """Return each position in the kernel, with the elements that all windows read there, of a padded input."""
        counts = [(n - k) // s + 1 for n, k, s in zip(x.tensor.dims[1:], self.reach, self.strides)]
        found = []
        for place in itertools.product(*map(range, self.kernel)):
            seen = x
            for axis, (p, d, count, s) in enumerate(zip(place, self.dilations, counts, self.strides), 1):
                seen = every(e, seen, axis, p * d, count, s)
            found.append((place, seen))
        return found


def reach(kernel: Sequence[int], dilations: Sequence[int]) -> tuple[int, ...]:
    """Return the number of elements from the first that a window reads to the last, both included."""
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations))


def fitted(e: TosaBuilder, x: Value, pads: Pads, reach: Sequence[int], strides: Sequence[int]) -> tuple[Value, Pads]:
    """Return x and its padding, less the elements that the last position of a window leaves over."""
    dims, result = list(x.tensor.dims), []
    for axis, ((before, after), k, s) in enumerate(zip(pads, reach, strides), 1):
        room = dims[axis] + before + after - k
        if room < 0:
            raise Problem(f"the window reaches over {k} elements, the input has {dims[axis]} and a padding of {before} and "
                          f"{after}", kind="shape")
        rest = room % s
        crop = max(rest - after, 0)
        dims[axis] -= crop
        result.append((before, after - (rest - crop)))
    return e.slice(x, [0] * len(dims), dims), result


def window_padded(e: TosaBuilder, x: Value, pads: Pads, value: float) -> Value:
    """Return x with `pads` elements of `value` before and after each of its spatial axes."""
    if not any(map(sum, pads)):
        return x
    element = x.tensor.element
    flat = [0, 0, *(n for pair in pads for n in pair), 0, 0]
    return e("pad", x, e.shape(flat), e.constant(np.full(1, value, element.dtype), element))


def same_pads(extent: int, reach: int, stride: int) -> tuple[int, int]:
    """Return the padding with which a window has a position for each step; an odd element goes to the end."""
    total = max((-(-extent // stride) - 1) * stride + reach - extent, 0)
    return total // 2, total - total // 2
