"""DeformConv: a convolution whose sampling points are shifted by fractional offsets from an operand."""
from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from ....runtime.errors import require
from ...formulas.contractions import batched_product
from ...formulas.term import Term
from ...formulas.working_types import working_type
from ...graph.graph import Value
from ...graph.types import Array, ElementType, TensorType
from ..emitter import Emitter
from .convolutions import Grouped, channelwise, check_bias
from .interpolation import Image
from .operator import Ints, operator
from .windows import spatial_axes


@operator("DeformConv")
class DeformConv(Grouped):
    """A convolution of images [N, C, spatial ...] with filters [outputs, C / groups, kernel ...], offsets [N, offset groups *
    kernel * axes, outputs ...] and a factor for each kernel element, [N, offset groups * kernel, outputs ...]. Elements outside
    of the image are zeros."""
    offset_group: int = 1

    # ---- reference -------------------------------------------------------------------------------------------------------
    def reference(self, x: Array, w: Array, offset: Array, b: Array | None = None, mask: Array | None = None) -> Array:
        places = self.checked(x.shape, w.shape, offset.shape, None if mask is None else mask.shape)
        n, channels, *extents = x.shape
        kernel, groups = w.shape[2:], self.offset_group
        axes, count = len(kernel), math.prod(kernel)
        moved = offset.reshape(n, groups, count, axes, *places).astype(np.float64)
        factor = np.ones((n, groups, count, *places)) if mask is None else mask.reshape(n, groups, count, *places)
        seen = np.zeros((n, channels, count, *places))
        strides, pads, _ = self.placing(extents, kernel)
        dilations = self.numbers("dilations", axes, 1)
        for batch, channel, k, place in itertools.product(range(n), range(channels), range(count), np.ndindex(*places)):
            own = channel // (channels // groups)
            at = [p * s - before + t * d + float(moved[(batch, own, k, axis, *place)]) for axis, (p, s, (before, _), t, d) in
                  enumerate(zip(place, strides, pads, np.unravel_index(k, kernel), dilations))]
            seen[(batch, channel, k, *place)] = between(x[batch, channel], at) * float(factor[(batch, own, k, *place)])
        apart = seen.reshape(n, self.group, channels // self.group, count, *places)
        filters = w.reshape(self.group, len(w) // self.group, -1, count).astype(np.float64)
        found = np.einsum("ngck...,gock->ngo...", apart, filters).reshape(n, len(w), *places)
        return (found if b is None else found + channelwise(b.astype(np.float64), found)).astype(x.dtype)

    def checked(self, x: Sequence[int], w: Sequence[int], offset: Sequence[int], mask: Sequence[int] | None) -> Ints:
        """Return the number of window positions along each axis; raise a Problem if the shapes of the operands do not fit
        together."""
        axes, groups = spatial_axes(x), self.offset_group
        self.check_groups(x, w)
        require(groups > 0 and x[1] % groups == 0, f"{x[1]} channels are not {groups} offset groups", kind="shape")
        places = self.placing(x[2:], self.kernel(axes, w[2:]))[2]
        count = groups * math.prod(w[2:])
        for what, own, wanted in (("offsets", offset, axes * count), ("the mask", mask, count)):
            require(own is None or tuple(own) == (x[0], wanted, *places),
                    f"{what} of shape {list(own or ())} are not {[x[0], wanted, *places]}", kind="shape")
        return tuple(places)

    # ---- lowering --------------------------------------------------------------------------------------------------------
    def lower(self, e: Emitter, x: Value, w: Value, offset: Value, b: Value | None = None, mask: Value | None = None) -> Value:
        """Gather the elements in the windows as columns, which one product with the filters sums."""
        own, (n, channels, *_) = x.tensor.element, x.tensor.dims
        places = self.checked(x.tensor.dims, w.tensor.dims, offset.tensor.dims, None if mask is None else mask.tensor.dims)
        outputs, inputs, *kernel = w.tensor.dims
        check_bias(b, outputs)
        if 0 in (n, channels, outputs, *places):
            return e.zeros(TensorType((n, outputs, *places), own))
        working, points, count = working_type(own, False, True), math.prod(places), math.prod(kernel)
        seen = self.columns(e, x, offset, mask, working, kernel, places)
        # [N, offset groups, kernel, places, channels of a group] becomes [groups, N, places, channels of a group, kernel]
        each = channels // self.offset_group
        moved = e.transpose(e.reshape(seen.value, (n, self.offset_group, count, points, each)), (0, 3, 1, 4, 2))
        by_group = e.transpose(e.reshape(moved, (n * points, self.group, inputs * count)), (1, 0, 2))
        filters = e.reshape(e.cast(w, working), (self.group, outputs // self.group, inputs * count))
        found = Term(e, batched_product(e, by_group, e.transpose(filters, (0, 2, 1)), working))
        if b is not None:
            found = found + Term(e, e.reshape(e.cast(b, working), (self.group, 1, outputs // self.group)))
        whole = e.transpose(e.reshape(found.value, (self.group, n, points, outputs // self.group)), (1, 0, 3, 2))
        return e.cast(e.reshape(whole, (n, outputs, *places)), own)

    def columns(self, e: Emitter, x: Value, offset: Value, mask: Value | None, working: ElementType, kernel: Sequence[int],
                places: Ints) -> Term:
        """Return the elements in the windows, [N * offset groups, kernel * places, channels of an offset group]."""
        n, channels, *extents = x.tensor.dims
        groups, count, points, axes = n * self.offset_group, math.prod(kernel), math.prod(places), len(kernel)
        image = e.reshape(e.cast(x, working), (groups, channels // self.offset_group, math.prod(extents)))
        moved = e.reshape(e.cast(offset, working), (groups * count, axes, points))
        at = []
        for axis, start in enumerate(self.starts(extents, kernel, places)):
            far = Term(e, e.reshape(e.slice(moved, (0, axis, 0), (groups * count, 1, points)), (groups, count * points)))
            at.append(far + Term(e, e.constant(start.reshape(1, -1).astype(working.dtype), working)))
        found = Image(e, e.transpose(image, (0, 2, 1)), extents).weighed(at)
        if mask is None:
            return found
        return found * Term(e, e.reshape(e.cast(mask, working), (groups, count * points, 1)))

    def starts(self, extents: Sequence[int], kernel: Sequence[int], places: Ints) -> list[Array]:
        """Return the coordinates of the windows' elements without offsets: for each axis [kernel ..., places ...]."""
        strides, pads, _ = self.placing(extents, tuple(kernel))
        axes, found = len(kernel), []
        for axis, (stride, (before, _), dilation) in enumerate(zip(strides, pads, self.numbers("dilations", axes, 1))):
            line = np.arange(kernel[axis])[:, None] * dilation + np.arange(places[axis]) * stride - before
            dims = [1] * (2 * axes)
            dims[axis], dims[axes + axis] = line.shape
            found.append(np.broadcast_to(line.reshape(dims), (*kernel, *places)))
        return found


def between(x: Array, at: Sequence[float]) -> float:
    """Return an image at a fractional point: each pixel less than 1 away is weighted by its nearness."""
    total = 0.0
    for corner in itertools.product(*((math.floor(a), math.floor(a) + 1) for a in at)):
        if all(0 <= c < n for c, n in zip(corner, x.shape)):
            total += math.prod(1 - abs(a - c) for a, c in zip(at, corner)) * float(x[corner])
    return total
