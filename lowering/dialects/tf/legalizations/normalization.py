"""Batch normalisation and local response normalisation.

With constant statistics batch normalisation is one product and one sum per channel, whose constants are folded, unless a mean
is so far from the scale that subtracting it first is more exact. Other statistics are always subtracted first.
"""
from __future__ import annotations

import numpy as np

from .....runtime.errors import Problem
from ....graph.foreign import flag, number
from ....graph.graph import Operation, Value
from ....graph.types import F32
from ...convolutions import accumulator
from ...data import Datum, Text
from ...emitter import Emitter
from ...tosa.product_types import CONVOLUTIONS
from .table import legalization
from .windows import channels_first

FAR = 16.0
"""Maximum ratio of a mean to the scale of the result for products with folded constants: their rounding is a part in 2**24 of
it."""


@legalization("tf.FusedBatchNorm", "tf.FusedBatchNormV2", "tf.FusedBatchNormV3")
def batch_norm(e: Emitter, operation: Operation, x: Value, scale: Value, offset: Value, mean: Value, variance: Value
               ) -> tuple[Datum, ...]:
    """Return y, then mean and variance for the caller's running statistics and for the gradient; a sixth result is internal to
    TensorFlow."""
    channel = channel_axis(operation, x)
    wide = e.cast(x, scale.tensor.element)
    if flag(operation, "is_training"):
        own_mean, own_variance = statistics(e, wide, channel)
        running = running_statistics(e, operation, wide, channel, (mean, variance), (own_mean, own_variance))
        saved = own_mean, own_variance
    else:
        own_mean, own_variance = running = saved = mean, variance
    y = normalized(e, wide, channel, scale, offset, own_mean, own_variance, number(operation, "epsilon"))
    return (e.cast(y, x.tensor.element), *running, *saved, Text("a reserved result"))[:len(operation.results)]


def channel_axis(operation: Operation, x: Value) -> int:
    if x.tensor.rank not in (4, 5):
        raise Problem(f"the input is {x.type}, a tensor of rank 4 is needed", kind="shape")
    return 1 if channels_first(operation, x.tensor.rank - 2) else x.tensor.rank - 1


def along(e: Emitter, vector: Value, x: Value, axis: int) -> Value:
    """Return a vector of one number per channel, reshaped so that it broadcasts to x."""
    if vector.tensor.dims != (x.tensor.dims[axis],):
        raise Problem(f"the input has {x.tensor.dims[axis]} channels, {vector.type} is not one number for each", kind="shape")
    return e.reshape(vector, [n if a == axis else 1 for a, n in enumerate(x.tensor.dims)])


def normalized(e: Emitter, x: Value, axis: int, scale: Value, offset: Value, mean: Value, variance: Value, epsilon: float
               ) -> Value:
    """Return (x - mean) * scale / sqrt(variance + epsilon) + offset."""
    scale, offset, mean, variance = (along(e, v, x, axis) for v in (scale, offset, mean, variance))
    factor = e.product(scale, e("rsqrt", e.sum(variance, e.splat(epsilon, variance))))
    shift = e.difference(offset, e.product(mean, factor))
    if shift.constant is not None and is_near(factor, mean, scale, offset):
        return e.sum(e.product(x, factor), shift)
    return e.sum(e.product(e.difference(x, mean), factor), offset)


def is_near(factor: Value, mean: Value, scale: Value, offset: Value) -> bool:
    """True if the mean has the magnitude of the result."""
    f, m, s, o = (np.abs(np.asarray(v.constant, np.float64)) for v in (factor, mean, scale, offset))
    return bool((f * m <= FAR * (s + o)).all())


# ---- training ----------------------------------------------------------------------------------------------------
def statistics(e: Emitter, x: Value, axis: int) -> tuple[Value, Value]:
    """Return mean and variance of each channel, one axis [C] each."""
    mean = average(e, x, axis)
    centred = e.difference(x, mean)
    variance = average(e, e.product(centred, centred), axis)
    channels = (x.tensor.dims[axis],)
    return e.reshape(mean, channels), e.reshape(variance, channels)


def average(e: Emitter, x: Value, axis: int) -> Value:
    """Return the mean over all axes but one."""
    count = x.tensor.size // x.tensor.dims[axis]
    for other in range(x.tensor.rank):
        x = x if other == axis else e("reduce_sum", x, axis=other)
    return e.product(x, e.splat(1 / count, x))


def running_statistics(e: Emitter, operation: Operation, x: Value, axis: int, old: tuple[Value, Value],
                       own: tuple[Value, Value]) -> tuple[Value, Value]:
    """Return the batch's mean and its unbiased variance, mixed with the old ones by `exponential_avg_factor`."""
    count = x.tensor.size // x.tensor.dims[axis]
    unbiased = e.product(own[1], e.splat(count / max(count - 1, 1), own[1]))
    factor = number(operation, "exponential_avg_factor", 1.0)
    if factor == 1:
        return own[0], unbiased
    mean, variance = (e.sum(e.product(a, e.splat(1 - factor, a)), e.product(b, e.splat(factor, b)))
                      for a, b in zip(old, (own[0], unbiased)))
    return mean, variance


# ---- local response ----------------------------------------------------------------------------------------------
@legalization("tf.LRN")
def local_response(e: Emitter, operation: Operation, x: Value) -> Value:
    """Return x / (bias + alpha * s) ** beta, s the sum of squares of the channels at most `depth_radius` away."""
    radius, bias, alpha, beta = (number(operation, *given) for given in
                                 (("depth_radius", 5), ("bias", 1), ("alpha", 1), ("beta", 0.5)))
    if x.tensor.rank != 4:
        raise Problem(f"the input is {x.type}, a tensor of rank 4 is needed", kind="shape")
    wide = e.cast(x, F32) if x.tensor.element.bits < 32 else x
    squares = neighbours_sum(e, e.product(wide, wide), int(radius))
    base = e.sum(e.product(squares, e.splat(alpha, wide)), e.splat(bias, wide))
    return e.cast(e.product(wide, e("pow", base, e.splat(-beta, wide))), x.tensor.element)


def neighbours_sum(e: Emitter, x: Value, radius: int) -> Value:
    """Return the sum of the channels at most `radius` away: a convolution along them, as if they were the columns of an
    image."""
    n, height, width, channels = x.tensor.dims
    radius, element = min(radius, channels - 1), x.tensor.element
    rows = e.reshape(x, (n, height * width, channels, 1))
    ones = e.constant(np.ones((1, 1, 2 * radius + 1, 1), element.dtype), element)
    zero = e.constant(np.zeros(1, element.dtype), element)
    found = e("conv2d", rows, ones, zero, zero, zero, pad=(0, 0, radius, radius), stride=(1, 1), dilation=(1, 1),
              acc_type=accumulator(CONVOLUTIONS, element))
    return e.reshape(found, x.tensor.dims)
