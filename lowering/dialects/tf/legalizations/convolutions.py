"""Convolutions: filters are height, width, input, output in TensorFlow, and output, height, width, input in TOSA.

Element types that TOSA has no convolution for (integers) are products of matrices: what each window sees, by the filter.
"""
from __future__ import annotations

import itertools
import math

import numpy as np

from .....runtime.errors import Problem
from ....formulas.contractions import batched_product
from ....formulas.layout import every, part
from ....formulas.windows import Pads, fitted, reach, window_padded
from ....graph.graph import Operation, Value
from ....graph.types import ElementType
from ...emitter import Emitter, integers
from ...tosa.product_types import CONVOLUTIONS, PLAIN_CONVOLUTIONS, Table
from .table import legalization
from .windows import AxisOrder


@legalization("tf.Conv2D")
def convolution(e: Emitter, operation: Operation, x: Value, filter: Value) -> Value:
    return spatial_convolution(e, operation, x, filter, 2)


@legalization("tf.Conv3D")
def convolution_3d(e: Emitter, operation: Operation, x: Value, filter: Value) -> Value:
    return spatial_convolution(e, operation, x, filter, 3)


@legalization("tf.DepthwiseConv2dNative")
def depthwise_convolution(e: Emitter, operation: Operation, x: Value, filter: Value) -> Value:
    """Each channel by its own filters, as many as the last axis of `filter` has."""
    layout = AxisOrder.of(operation, x, 2)
    check_filter(filter, 2)
    image = layout.last(e, x)
    if image.tensor.dims[-1] != filter.tensor.dims[2]:
        raise Problem(f"the input has {image.tensor.dims[-1]} channels, the filter {filter.type} is for "
                      f"{filter.tensor.dims[2]}", kind="shape")
    return layout.as_written(e, ConvolutionWindow.of(layout, filter).depthwise(e, image, filter))


def spatial_convolution(e: Emitter, operation: Operation, x: Value, filter: Value, spatial: int) -> Value:
    """With as many groups of channels as the input has times the channels of the filter."""
    layout = AxisOrder.of(operation, x, spatial)
    check_filter(filter, spatial)
    image, window = layout.last(e, x), ConvolutionWindow.of(layout, filter)
    channels, (*kernel, inputs, outputs) = image.tensor.dims[-1], filter.tensor.dims
    groups = channels // inputs
    if channels % inputs or outputs % groups:
        raise Problem(f"the input has {channels} channels, the filter {filter.type} takes {inputs} and gives {outputs}: they "
                      "do not divide into groups", kind="shape")
    if groups == 1:
        found = window.convolution(e, image, filter)
    elif inputs == 1 and spatial == 2:
        found = window.depthwise(e, image, e.reshape(filter, (*kernel, groups, outputs // groups)))
    else:
        last, each = spatial + 1, outputs // groups
        def group(g: int) -> Value:
            return window.convolution(e, part(e, image, last, g * inputs, (g + 1) * inputs),
                                      part(e, filter, last, g * each, (g + 1) * each))
        found = e.concat([group(g) for g in range(groups)], last)
    return layout.as_written(e, found)


def check_filter(filter: Value, spatial: int) -> None:
    if filter.tensor.rank != spatial + 2:
        raise Problem(f"the filter is {filter.type}, a tensor of rank {spatial + 2} is needed", kind="shape",
                      help="[height, width, input channels, output channels]" if spatial == 2 else None)


class ConvolutionWindow:
    """The window of a convolution: its kernel, strides, dilations and how the input is padded."""

    def __init__(self, layout: AxisOrder, kernel: tuple[int, ...]) -> None:
        self.layout, self.kernel = layout, kernel
        self.strides, self.dilations = layout.numbers("strides"), layout.numbers("dilations")
        self.reach = reach(kernel, self.dilations)

    @staticmethod
    def of(layout: AxisOrder, filter: Value) -> ConvolutionWindow:
        return ConvolutionWindow(layout, filter.tensor.dims[:layout.spatial])

    def placed(self, e: Emitter, x: Value) -> tuple[Value, Pads]:
        """The input, channels last, and its padding, so that the last window ends where they end."""
        return fitted(e, x, self.layout.pads(x.tensor.dims[1:-1], self.reach, self.strides), self.reach, self.strides)

    def convolution(self, e: Emitter, x: Value, filter: Value) -> Value:
        x, pads = self.placed(e, x)
        element, spatial = x.tensor.element, self.layout.spatial
        if not is_native(CONVOLUTIONS, element):
            return self.product(e, window_padded(e, x, pads, 0), filter)
        weight = e.transpose(filter, (spatial + 1, *range(spatial + 1)))
        return self.emitted(e, f"conv{spatial}d", x, weight, pads, CONVOLUTIONS)

    def depthwise(self, e: Emitter, x: Value, filter: Value) -> Value:
        """With a filter [height, width, channels, multiplier]."""
        x, pads = self.placed(e, x)
        if not is_native(PLAIN_CONVOLUTIONS, x.tensor.element):
            return self.weighed(e, window_padded(e, x, pads, 0), filter)
        return self.emitted(e, "depthwise_conv2d", x, filter, pads, PLAIN_CONVOLUTIONS)

    def emitted(self, e: Emitter, name: str, x: Value, weight: Value, pads: Pads, table: Table) -> Value:
        zero = e.constant(np.zeros(1, x.tensor.element.dtype), x.tensor.element)
        return e(name, x, weight, zero, zero, zero, pad=tuple(n for pair in pads for n in pair), stride=self.strides,
                 dilation=self.dilations, acc_type=accumulator(table, x.tensor.element))

    # ---- types that TOSA has no convolution for -------------------------------------------------------------------
    def taps(self, e: Emitter, x: Value) -> list[tuple[tuple[int, ...], Value]]:
        """Each place in the kernel, and what all windows see there, of an input that is padded."""
        counts = [(n - k) // s + 1 for n, k, s in zip(x.tensor.dims[1:], self.reach, self.strides)]
        found = []
        for place in itertools.product(*map(range, self.kernel)):
            seen = x
            for axis, (p, d, count, s) in enumerate(zip(place, self.dilations, counts, self.strides), 1):
                seen = every(e, seen, axis, p * d, count, s)
            found.append((place, seen))
        return found

    def product(self, e: Emitter, x: Value, filter: Value) -> Value:
        *_, inputs, outputs = filter.tensor.dims
        seen = e.concat([tap for _, tap in self.taps(e, x)], self.layout.spatial + 1)
        matrix = e.reshape(filter, (math.prod(self.kernel) * inputs, outputs))
        return batched_product(e, seen, matrix, x.tensor.element)

    def weighed(self, e: Emitter, x: Value, filter: Value) -> Value:
        *_, channels, multiplier = filter.tensor.dims
        total = None
        for place, seen in self.taps(e, x):
            weights = e.reshape(e.slice(filter, (*place, 0, 0), (1, 1, channels, multiplier)), (1, 1, 1, channels, multiplier))
            term = e.product(e.reshape(seen, (*seen.tensor.dims, 1)), weights)
            total = term if total is None else e.sum(total, term)
        assert total is not None
        return e.reshape(total, (*total.tensor.dims[:3], channels * multiplier))


def is_native(table: Table, element: ElementType) -> bool:
    """Whether TOSA has a convolution from this type to itself."""
    return (element, element, element) in table


def accumulator(table: Table, element: ElementType) -> ElementType:
    """The widest that there may be."""
    return table[element, element, element][-1]


@legalization("tf.Conv2DBackpropInput")
def transposed_convolution(e: Emitter, operation: Operation, sizes: Value, filter: Value, x: Value) -> Value:
    """Each element of x gives its multiple of the kernel, the strides apart, to a result whose shape `sizes` says."""
    layout = AxisOrder.of(operation, x, 2)
    check_filter(filter, 2)
    element, shape = x.tensor.element, integers(sizes, "the shape of the result")
    if not is_native(CONVOLUTIONS, element):
        raise Problem(f"a transposed convolution of {element} is not known", kind="unsupported")
    window = ConvolutionWindow.of(layout, filter)
    extents = transposed_extents(layout, window, shape, x, filter)
    weight = e.transpose(dilated(e, filter, window.dilations), (2, 0, 1, 3))
    image, out_pad = layout.last(e, x), list[int]()
    for d, (before, _) in enumerate(layout.pads(extents, window.reach, window.strides)):
        image, pair = landing(e, image, d + 1, before, extents[d], window.reach[d], window.strides[d])
        out_pad += pair
    zero = e.constant(np.zeros(1, element.dtype), element)
    return layout.as_written(e, e("transpose_conv2d", image, weight, zero, zero, zero, out_pad=tuple(out_pad),
                                  stride=window.strides, acc_type=accumulator(CONVOLUTIONS, element)))


def landing(e: Emitter, x: Value, axis: int, before: int, extent: int, reach: int, stride: int
            ) -> tuple[Value, tuple[int, int]]:
    """The part of x along an axis whose multiples of the kernel reach the result, and how the result is wider than they are
    (narrower where negative). What lands in the padding alone is left out: TOSA does not narrow by a whole kernel."""
    first = max((before - reach) // stride + 1, 0)
    last = min((extent - 1 + before) // stride + 1, x.tensor.dims[axis])
    if first >= last:
        raise Problem(f"a padding of {before} leaves nothing of what a kernel of {reach} gives", kind="unsupported")
    top = first * stride - before
    return part(e, x, axis, first, last), (top, extent - top - (last - first - 1) * stride - reach)


def transposed_extents(layout: AxisOrder, window: ConvolutionWindow, shape: tuple[int, ...], x: Value,
                       filter: Value) -> tuple[int, ...]:
    """The rows and columns of the result; a Problem where a convolution of it would not give x's shape."""
    if len(shape) == 2:
        shape = (x.tensor.dims[0], filter.tensor.dims[2], *shape) if layout.channels_first else (
            x.tensor.dims[0], *shape, filter.tensor.dims[2])
    extents = layout.inner(shape)
    pads = layout.pads(extents, window.reach, window.strides)
    places = [(n + sum(p) - k) // s + 1 for n, p, k, s in zip(extents, pads, window.reach, window.strides)]
    axis = 1 if layout.channels_first else 3
    expected = [shape[0], filter.tensor.dims[3], *places] if axis == 1 else [shape[0], *places, filter.tensor.dims[3]]
    if len(shape) != 4 or shape[axis] != filter.tensor.dims[2] or tuple(expected) != x.tensor.dims:
        raise Problem(f"for a result of shape {list(shape)} and the filter {filter.type} the input must have the shape "
                      f"{expected}, it is {x.type}", kind="shape")
    return extents


def dilated(e: Emitter, filter: Value, dilations: tuple[int, ...]) -> Value:
    """A filter with zeros between its rows and columns."""
    for axis, d in enumerate(dilations):
        dims = filter.tensor.dims
        if d == 1 or dims[axis] == 1:
            continue
        apart = e.reshape(filter, (*dims[:axis + 1], 1, *dims[axis + 1:]))
        pads = [0] * (2 * len(dims) + 2)
        pads[2 * axis + 3] = d - 1
        zero = e.constant(np.zeros(1, filter.tensor.element.dtype), filter.tensor.element)
        wide = e.reshape(e("pad", apart, e.shape(pads), zero), (*dims[:axis], dims[axis] * d, *dims[axis + 1:]))
        filter = part(e, wide, axis, 0, (dims[axis] - 1) * d + 1)
    return filter
