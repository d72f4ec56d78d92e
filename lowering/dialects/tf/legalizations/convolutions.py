"""Convolutions: filters are height, width, input, output in TensorFlow, and output, height, width, input in TOSA."""
from __future__ import annotations

from .....runtime.errors import Problem
from ....formulas.windows import Window, reach
from ....graph.graph import Operation, Value
from ...convolutions import depthwise, dilated, grouped, is_native, transposed_convolution
from ...emitter import Emitter, integers
from ...tosa.product_types import CONVOLUTIONS
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
    """Convolve each channel with its own filters, as many as the last axis of `filter` has."""
    layout = AxisOrder.of(operation, x, 2)
    check_filter(filter, 2)
    image = layout.last(e, x)
    if image.tensor.dims[-1] != filter.tensor.dims[2]:
        raise Problem(f"the input has {image.tensor.dims[-1]} channels, the filter {filter.type} is for "
                      f"{filter.tensor.dims[2]}", kind="shape")
    return layout.as_written(e, depthwise(e, image, filter, convolution_window(layout, image, filter)))


def spatial_convolution(e: Emitter, operation: Operation, x: Value, filter: Value, spatial: int) -> Value:
    """Emit a convolution in groups; their number is the ratio of the input's channels to the filter's."""
    layout = AxisOrder.of(operation, x, spatial)
    check_filter(filter, spatial)
    image = layout.last(e, x)
    channels, (*kernel, inputs, outputs) = image.tensor.dims[-1], filter.tensor.dims
    groups = channels // inputs
    if channels % inputs or outputs % groups:
        raise Problem(f"the input has {channels} channels, the filter {filter.type} takes {inputs} and gives {outputs}: they "
                      "do not divide into groups", kind="shape")
    window = convolution_window(layout, image, filter)
    if inputs == 1 and groups > 1:
        found = depthwise(e, image, e.reshape(filter, (*kernel, groups, outputs // groups)), window)
    else:
        found = grouped(e, image, e.transpose(filter, (spatial + 1, *range(spatial + 1))), window, groups)
    return layout.as_written(e, found)


def check_filter(filter: Value, spatial: int) -> None:
    if filter.tensor.rank != spatial + 2:
        raise Problem(f"the filter is {filter.type}, a tensor of rank {spatial + 2} is needed", kind="shape",
                      help="[height, width, input channels, output channels]" if spatial == 2 else None)


def convolution_window(layout: AxisOrder, image: Value, filter: Value) -> Window:
    """Return the window of a filter over a channels-last image."""
    return layout.window(image.tensor.dims[1:-1], filter.tensor.dims[:layout.spatial], layout.numbers("dilations"))


@legalization("tf.Conv2DBackpropInput")
def transposed_convolution_2d(e: Emitter, operation: Operation, sizes: Value, filter: Value, x: Value) -> Value:
    """Emit a transposed convolution: each element of x adds its multiple of the kernel, the strides apart, to a result with the
    shape `sizes`."""
    layout = AxisOrder.of(operation, x, 2)
    check_filter(filter, 2)
    element, shape = x.tensor.element, integers(sizes, "the shape of the result")
    if not is_native(CONVOLUTIONS, element):
        raise Problem(f"a transposed convolution of {element} is not known", kind="unsupported")
    strides, dilations = layout.numbers("strides"), layout.numbers("dilations")
    reached = reach(filter.tensor.dims[:2], dilations)
    extents = transposed_extents(layout, reached, strides, shape, x, filter)
    before = tuple(pair[0] for pair in layout.pads(extents, reached, strides))
    weight = dilated(e, e.transpose(filter, (2, 0, 1, 3)), dilations)
    return layout.as_written(e, transposed_convolution(e, layout.last(e, x), weight, strides, before, extents))


def transposed_extents(layout: AxisOrder, reached: tuple[int, ...], strides: tuple[int, ...], shape: tuple[int, ...], x: Value,
                       filter: Value) -> tuple[int, ...]:
    """Return the rows and columns of the result; raise a Problem if a convolution of it would not give x's shape."""
    if len(shape) == 2:
        shape = (x.tensor.dims[0], filter.tensor.dims[2], *shape) if layout.channels_first else (
            x.tensor.dims[0], *shape, filter.tensor.dims[2])
    extents = layout.inner(shape)
    pads = layout.pads(extents, reached, strides)
    places = [(n + sum(p) - k) // s + 1 for n, p, k, s in zip(extents, pads, reached, strides)]
    axis = 1 if layout.channels_first else 3
    expected = [shape[0], filter.tensor.dims[3], *places] if axis == 1 else [shape[0], *places, filter.tensor.dims[3]]
    if len(shape) != 4 or shape[axis] != filter.tensor.dims[2] or tuple(expected) != x.tensor.dims:
        raise Problem(f"for a result of shape {list(shape)} and the filter {filter.type} the input must have the shape "
                      f"{expected}, it is {x.type}", kind="shape")
    return extents
