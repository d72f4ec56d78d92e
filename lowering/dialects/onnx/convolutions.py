"""Convolutions: Conv, ConvTranspose, and Microsoft's FusedConv and NhwcConv.

A filter of Conv is [outputs, inputs of a group, kernel ...], a filter of ConvTranspose [inputs, outputs of a group, kernel
...].
"""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....runtime.errors import require
from ...formulas.layout import reversed_axis
from ...formulas.windows import Window
from ...graph.graph import Value
from ...graph.types import Array, TensorType
from ..convolutions import dilated, grouped, transposed_convolution
from ..emitter import Emitter
from .operator import Ints, operator
from .windows import Windowed, channels_first, channels_last, filter_last, spatial_axes


class Grouped(Windowed):
    """A convolution of images [N, C, spatial ...] in the node's number of groups of channels."""
    group: int = 1

    def sums(self, x: Array, w: Array) -> Array:
        """Return the products of windows and filters, in float64, with zeros in the padding."""
        n = len(x)
        outputs, inputs, *kernel = w.shape
        self.check_groups(x.shape, w.shape)
        seen = self.seen(x, self.kernel(spatial_axes(x.shape), kernel), 0)
        places, group = seen.shape[2:-len(kernel)], self.group
        seen = seen.reshape(n, group, inputs, *places, *kernel).astype(np.float64)
        filters = w.reshape(group, outputs // group, inputs, *kernel).astype(np.float64)
        spatial = len(kernel)
        inner = [1, *range(2 + spatial, 2 + 2 * spatial)]
        found = np.stack([np.tensordot(seen[:, g], filters[g], (inner, range(1, spatial + 2))) for g in range(group)], 1)
        return np.moveaxis(found, -1, 2).reshape(n, outputs, *places)

    def check_groups(self, x: Sequence[int], w: Sequence[int]) -> None:
        require(len(x) == len(w) and len(x) > 2 and min(w) > 0 and self.group > 0 and x[1] == w[1] * self.group
                and w[0] % self.group == 0,
                f"an input of shape {list(x)} and a filter of shape {list(w)} do not fit together in {self.group} groups",
                kind="shape")


@operator("Conv")
class Conv(Grouped):
    def reference(self, x: Array, w: Array, b: Array | None = None) -> Array:
        found = self.sums(x, w)
        return (found if b is None else found + channelwise(b.astype(np.float64), found)).astype(x.dtype)

    def lower(self, e: Emitter, x: Value, w: Value, b: Value | None = None) -> Value:
        spatial = spatial_axes(x.tensor.dims)
        self.check_groups(x.tensor.dims, w.tensor.dims)
        window, _ = self.window(x.tensor.dims[2:], self.kernel(spatial, w.tensor.dims[2:]))
        dims = x.tensor.dims[0], w.tensor.dims[0], *window.places(x.tensor.dims[2:])
        if 0 in dims:
            return e.zeros(TensorType(dims, x.tensor.element))
        check_bias(b, dims[1])
        found = grouped(e, channels_last(e, x), filter_last(e, w), window.of_plane(), self.group, b)
        return channels_first(e, found, spatial)


def check_bias(b: Value | None, outputs: int) -> None:
    require(b is None or b.tensor.dims == (outputs,), f"the bias is not one number for each of {outputs} channels",
            kind="shape")


def channelwise(vector: Array, x: Array) -> Array:
    """Return a vector of one number per channel, reshaped so that it broadcasts to [N, C, ...]."""
    return vector.reshape(-1, *(1,) * (x.ndim - 2))


@operator("ConvTranspose")
class ConvTranspose(Windowed):
    group: int = 1
    output_padding: Ints = ()
    output_shape: Ints = ()

    def cut(self, extents: Sequence[int], kernel: Ints) -> tuple[Ints, Ints]:
        """Return the number of elements that are cut off at the start of each spatial axis, and the extents of the result."""
        count = len(kernel)
        more = self.numbers("output_padding", count, 0)
        flat = self.numbers("pads", 2 * count, 0)
        full = [(n - 1) * s + p + (k - 1) * d + 1 for n, s, p, k, d in zip(
            extents, self.numbers("strides", count, 1), more, kernel, self.numbers("dilations", count, 1))]
        if self.auto_pad in ("NOTSET", "", "VALID") and not self.output_shape:
            flat = (0,) * (2 * count) if self.auto_pad == "VALID" else flat
            return flat[:count], tuple(n - a - b for n, a, b in zip(full, flat[:count], flat[count:]))
        require(self.auto_pad in ("NOTSET", "", "VALID", "SAME_UPPER", "SAME_LOWER"), f"auto_pad {self.auto_pad} is not known",
                kind="attribute")
        wanted = self.output_shape[-count:] or tuple(n * s for n, s in zip(extents, self.numbers("strides", count, 1)))
        require(len(wanted) == count, f"output_shape has {len(wanted)} numbers, {count} are needed", kind="attribute")
        total = [max(n - w, 0) for n, w in zip(full, wanted)]
        return tuple(t // 2 if self.auto_pad == "SAME_UPPER" else t - t // 2 for t in total), wanted

    def reference(self, x: Array, w: Array, b: Array | None = None) -> Array:
        n, channels, *extents = x.shape
        _, each, *kernel = w.shape
        spatial = spatial_axes(x.shape)
        self.check_groups(x.shape, w.shape)
        strides, dilations = self.numbers("strides", spatial, 1), self.numbers("dilations", spatial, 1)
        before, wanted = self.cut(extents, self.kernel(spatial, kernel))
        full = [(m - 1) * s + (k - 1) * d + 1 for m, s, k, d in zip(extents, strides, kernel, dilations)]
        whole = np.zeros((n, self.group, each, *(max(f, c + m) for f, c, m in zip(full, before, wanted))))
        pixels = x.reshape(n, self.group, channels // self.group, *extents).astype(np.float64)
        filters = w.reshape(self.group, channels // self.group, each, *kernel).astype(np.float64)
        for place in np.ndindex(*kernel):
            at = [slice(k * d, k * d + (m - 1) * s + 1, s) for k, d, m, s in zip(place, dilations, extents, strides)]
            whole[:, :, :, *at] += np.einsum("ngc...,gco->ngo...", pixels, filters[:, :, :, *place])
        found = whole[:, :, :, *(slice(c, c + m) for c, m in zip(before, wanted))].reshape(n, self.group * each, *wanted)
        return (found if b is None else found + channelwise(b.astype(np.float64), found)).astype(x.dtype)

    def lower(self, e: Emitter, x: Value, w: Value, b: Value | None = None) -> Value:
        spatial, extents = spatial_axes(x.tensor.dims), x.tensor.dims[2:]
        self.check_groups(x.tensor.dims, w.tensor.dims)
        inputs, each, *kernel = w.tensor.dims
        before, wanted = self.cut(extents, self.kernel(spatial, kernel))
        require(min(wanted) >= 0, f"a result of {list(wanted)} elements is not known", kind="shape")
        dims = x.tensor.dims[0], self.group * each, *wanted
        if 0 in dims:
            return e.zeros(TensorType(dims, x.tensor.element))
        check_bias(b, dims[1])
        strides, dilations = self.numbers("strides", spatial, 1), self.numbers("dilations", spatial, 1)
        # [C, M / groups, kernel ...] becomes [M, C / groups, kernel ...]
        apart = e.reshape(w, (self.group, inputs // self.group, each, math.prod(kernel)))
        filter = filter_last(e, e.reshape(e.transpose(apart, (0, 2, 1, 3)), (dims[1], inputs // self.group, *kernel)))
        image = channels_last(e, x)
        mirrored = mirrored_window(tuple(kernel), strides, dilations, extents, before, wanted)
        if mirrored is not None:
            for axis in range(1, filter.tensor.rank - 1):
                filter = reversed_axis(e, filter, axis)
            return channels_first(e, grouped(e, image, filter, mirrored.of_plane(), self.group, b), spatial)
        ones, none = (1,) * (2 - spatial), (0,) * (2 - spatial)
        found = transposed_convolution(e, image, dilated(e, filter, (*ones, *dilations)), (*ones, *strides), (*none, *before),
                                       (*ones, *wanted), self.group, b)
        return channels_first(e, found, spatial)

    def check_groups(self, x: Sequence[int], w: Sequence[int]) -> None:
        require(len(x) == len(w) and len(x) > 2 and min(w) > 0 and self.group > 0 and x[1] == w[0]
                and w[0] % self.group == 0,
                f"an input of shape {list(x)} and a filter of shape {list(w)} do not fit together in {self.group} groups",
                kind="shape")


def mirrored_window(kernel: Ints, strides: Ints, dilations: Ints, extents: Ints, before: Ints, wanted: Ints) -> Window | None:
    """Return the window of a reversed filter whose convolution is the same; None if strides are longer than 1."""
    front = [(k - 1) * d - cut for k, d, cut in zip(kernel, dilations, before)]
    behind = [m + (k - 1) * d - n - f for m, k, d, n, f in zip(wanted, kernel, dilations, extents, front)]
    if set(strides) != {1} or min(*front, *behind) < 0:
        return None
    return Window(kernel, strides, dilations, list(zip(front, behind)))
