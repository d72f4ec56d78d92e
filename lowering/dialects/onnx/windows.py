"""The common base of ONNX's convolutions and pools: attributes that place a window, and channels after the batch.

TOSA has channels last; an axis of extent 1 turns a tensor with one spatial axis into an image. References use NumPy's sliding
windows over a padded input.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....runtime.errors import Problem, require
from ...formulas.windows import Window, reach
from ...graph.graph import Value
from ...graph.types import Array
from ..emitter import Emitter
from .operator import Ints, Operator

MOST_SPATIAL = 3


class Windowed(Operator):
    """An operator with a window that the usual attributes place."""
    auto_pad: str = "NOTSET"
    kernel_shape: Ints = ()
    pads: Ints = ()
    strides: Ints = ()
    dilations: Ints = ()
    ceil_mode: int = 0

    def numbers(self, name: str, count: int, default: int) -> Ints:
        """Return an attribute of that many numbers, none below the default."""
        found: Ints = getattr(self, name) or (default,) * count
        require(len(found) == count, f"{name} has {len(found)} numbers, {count} are needed", kind="attribute")
        require(min(found, default=default) >= default, f"{name} is {list(found)}, none may be below {default}",
                kind="attribute")
        return found

    def kernel(self, spatial: int, own: Sequence[int] | None = None) -> Ints:
        """Return the extents of the window: those of the filter, if there is one."""
        if own is None:
            require(bool(self.kernel_shape), "it needs the attribute kernel_shape", kind="attribute")
            return self.numbers("kernel_shape", spatial, 1)
        require(self.kernel_shape in ((), tuple(own)),
                f"kernel_shape is {list(self.kernel_shape)}, the filter's is {list(own)}",
                kind="attribute")
        return tuple(own)

    def placing(self, extents: Sequence[int], kernel: Ints) -> tuple[Ints, list[tuple[int, int]], list[int]]:
        """Return strides, padding and the number of window positions for each spatial axis. Positions that end beyond the
        trailing padding (`ceil_mode`) count if they begin before it."""
        count = len(kernel)
        strides, dilations = self.numbers("strides", count, 1), self.numbers("dilations", count, 1)
        reached = reach(kernel, dilations)
        flat = self.numbers("pads", 2 * count, 0)
        match self.auto_pad:
            case "NOTSET" | "":
                pads = list(zip(flat[:count], flat[count:]))
            case "VALID":
                pads = [(0, 0)] * count
            case "SAME_UPPER" | "SAME_LOWER":
                total = [max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in zip(extents, reached, strides)]
                pads = [(t // 2, t - t // 2) if self.auto_pad == "SAME_UPPER" else (t - t // 2, t // 2) for t in total]
            case other:
                raise Problem(f"auto_pad {other} is not known", kind="attribute",
                              help="NOTSET, SAME_UPPER, SAME_LOWER or VALID")
        places = []
        for n, (before, after), k, s in zip(extents, pads, reached, strides):
            room = n + before + after - k
            require(room >= 0, f"the window reaches over {k} elements, the input has {n} and a padding of {before} and {after}",
                    kind="shape")
            more = self.ceil_mode and room % s and (room // s + 1) * s < n + before
            places.append(room // s + 1 + bool(more))
        return strides, pads, places

    def window(self, extents: Sequence[int], kernel: Ints) -> tuple[Window, list[tuple[int, int]]]:
        """Return the window, whose padding reaches to the end of its last position, and the padding that the node asks for."""
        strides, pads, places = self.placing(extents, kernel)
        dilations = self.numbers("dilations", len(kernel), 1)
        whole = [(before, max(after, (count - 1) * s + k - n - before)) for n, (before, after), count, s, k in
                 zip(extents, pads, places, strides, reach(kernel, dilations))]
        return Window(kernel, strides, dilations, whole), pads

    def seen(self, x: Array, kernel: Ints, border: Any, beyond: Any = None) -> Array:
        """Return the windows of an array [N, C, spatial ...]: [N, C, places ..., kernel ...]. `border` fills the padding,
        `beyond` (if it differs) the elements after it."""
        strides, pads, places = self.placing(x.shape[2:], kernel)
        dilations = self.numbers("dilations", len(kernel), 1)
        beyond = border if beyond is None else beyond
        x = np.pad(x, [(0, 0), (0, 0), *pads], constant_values=border)
        reached = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
        more = [max((count - 1) * s + k - n, 0) for count, s, k, n in zip(places, strides, reached, x.shape[2:])]
        x = np.pad(x, [(0, 0), (0, 0), *((0, m) for m in more)], constant_values=beyond)
        axes = tuple(range(2, x.ndim))
        found = np.lib.stride_tricks.sliding_window_view(x, reached, axes)
        cut = (*(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilations))
        found = found[:, :, *cut]
        return found[:, :, *(slice(0, count) for count in places)]


def spatial_axes(shape: Sequence[int]) -> int:
    """Return the number of spatial axes of an input [N, C, spatial ...]; raise a Problem unless there is at least one, and at
    most three."""
    count = len(shape) - 2
    require(1 <= count <= MOST_SPATIAL, f"the input has {len(shape)} axes, batch, channels and one to three others are known",
            kind="shape")
    return count


def channels_last(e: Emitter, x: Value) -> Value:
    """Return [N, C, spatial ...] as [N, spatial ..., C], one spatial axis as two."""
    n, c, *extents = x.tensor.dims
    x = e.transpose(x, (0, *range(2, x.tensor.rank), 1))
    return e.reshape(x, (n, 1, *extents, c)) if len(extents) == 1 else x


def channels_first(e: Emitter, x: Value, spatial: int) -> Value:
    """Undo `channels_last`: return [N, C, spatial ...]."""
    if spatial == 1:
        n, _, extent, c = x.tensor.dims
        x = e.reshape(x, (n, extent, c))
    return e.transpose(x, (0, x.tensor.rank - 1, *range(1, x.tensor.rank - 1)))


def filter_last(e: Emitter, filter: Value) -> Value:
    """Return [outputs, inputs, kernel ...] as [outputs, kernel ..., inputs], one spatial axis as two."""
    outputs, inputs, *kernel = filter.tensor.dims
    filter = e.transpose(filter, (0, *range(2, filter.tensor.rank), 1))
    return e.reshape(filter, (outputs, 1, *kernel, inputs)) if len(kernel) == 1 else filter
