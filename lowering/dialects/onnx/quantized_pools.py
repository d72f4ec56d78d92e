"""Means of quantized images, Microsoft's QLinearAveragePool and QLinearGlobalAveragePool: sums in 32 bits, times one factor.

ONNX Runtime computes the first in floats and rounds its sums: a mean half way between two steps may round to the other side.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....runtime.errors import require
from ...formulas.quantization import as_signed, centred, factor_of, requantized
from ...formulas.reductions import operator as one_operator
from ...formulas.reductions import reduced
from ...formulas.windows import Window
from ...graph.graph import Value
from ...graph.types import F32, I8, Array
from ..convolutions import depthwise
from ..emitter import Emitter
from ..pools import counts
from .operator import Operator, operator
from .quantize import check_bytes, nearest
from .windows import Windowed, channels_first, channels_last, spatial_axes


@operator("com.microsoft.QLinearAveragePool")
class QLinearAveragePool(Windowed):
    channels_last: int = 0
    count_include_pad: int = 0

    def reference(self, x: Array, x_scale: Array, x_zero: Array | None, y_scale: Array, y_zero: Array | None = None) -> Array:
        image = np.moveaxis(x, -1, 1) if self.channels_last else x
        kernel = self.kernel(image.ndim - 2)
        axes = tuple(range(-len(kernel), 0))
        total = self.seen(image.astype(np.int32) - (0 if x_zero is None else x_zero.astype(np.int32)), kernel, 0).sum(axes)
        inside = self.seen(np.ones_like(image, np.float32), kernel, 0.0).sum(axes)
        counts = np.float32(np.prod(kernel)) if self.count_include_pad else inside
        factor = np.asarray(x_scale / (y_scale * counts), np.float32)
        found = nearest(total.astype(np.float32) * factor, y_zero, x.dtype if y_zero is None else y_zero.dtype)
        return np.moveaxis(found, 1, -1) if self.channels_last else found

    def lower(self, e: Emitter, x: Value, x_scale: Value, x_zero: Value | None, y_scale: Value, y_zero: Value | None = None
              ) -> Value:
        check_bytes(x)
        require(x_zero is None or (x_zero.tensor.element == x.tensor.element and x_zero.tensor.size == 1),
                "the zero point is not one number of the image's type", kind="type")
        parameters = [v for v in (x_scale, y_scale, y_zero) if v is not None]
        require(all(v.tensor.size == 1 for v in parameters), "there is more than one scale on a side", kind="shape")
        rank = x.tensor.rank
        order = (0, rank - 1, *range(1, rank - 1))
        image = e.transpose(x, order) if self.channels_last else x
        spatial, extents = spatial_axes(image.tensor.dims), image.tensor.dims[2:]
        window, _ = self.window(extents, self.kernel(spatial))
        factor = factor_of(e, (x_scale,), e.product(e.cast(y_scale, F32), e.constant(self.counts(extents, window))))
        total = self.sums(e, channels_last(e, image), x_zero, window.of_plane())
        found = requantized(e, total, factor, y_zero, (x if y_zero is None else y_zero).tensor.element)
        found = channels_first(e, found, spatial)
        return e.transpose(found, (0, *range(2, rank), 1)) if self.channels_last else found

    def counts(self, extents: Sequence[int], window: Window) -> Array:
        """Return the number of elements that each window counts, [1, places ..., 1], one spatial axis as two: with the padding
        all of the window, even the part beyond the last position that `ceil_mode` adds."""
        if self.count_include_pad:
            return np.asarray(np.prod(window.kernel), np.float32)
        found = counts(tuple(extents), window, np.dtype(np.float32))
        return found[:, None] if len(extents) == 1 else found

    def sums(self, e: Emitter, image: Value, zero: Value | None, window: Window) -> Value:
        """Return sums without the zero point, in 32 bits: a convolution of each channel with ones."""
        known = e.constant(np.zeros(1, image.tensor.element.dtype)) if zero is None else e.reshape(zero, (1,))
        ones = e.constant(np.ones((*window.kernel, image.tensor.dims[-1], 1), np.int8))
        return depthwise(e, as_signed(e, image), ones, window, None, (as_signed(e, known), e.zero_point(I8)))


@operator("com.microsoft.QLinearGlobalAveragePool")
class QLinearGlobalAveragePool(Operator):
    """The sum in 32 bits times one factor."""
    channels_last: int = 0

    def axes(self, rank: int) -> tuple[int, ...]:
        return tuple(range(1, rank - 1)) if self.channels_last else tuple(range(2, rank))

    def reference(self, x: Array, x_scale: Array, x_zero: Array, y_scale: Array, y_zero: Array) -> Array:
        axes = self.axes(x.ndim)
        total = (x.astype(np.int32) - x_zero.astype(np.int32)).sum(axes, keepdims=True, dtype=np.int32)
        count = np.float32(np.prod([x.shape[a] for a in axes]))
        return nearest(total.astype(np.float32) * (x_scale / (y_scale * count)), y_zero, y_zero.dtype)

    def lower(self, e: Emitter, x: Value, x_scale: Value, x_zero: Value, y_scale: Value, y_zero: Value) -> Value:
        check_bytes(x, y_zero)
        axes = self.axes(x.tensor.rank)
        count = int(np.prod([x.tensor.dims[a] for a in axes]))
        total = reduced(e, centred(e, x, x_zero), axes, one_operator("reduce_sum"), 0)
        factor = factor_of(e, (x_scale,), factor_of(e, (y_scale,), None, count))
        return requantized(e, total, factor, y_zero, y_zero.tensor.element)
