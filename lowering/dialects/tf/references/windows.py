"""Convolutions, pools, batch normalisation, resizing: operations that read a window of the input for each element."""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from .....runtime.errors import Problem
from ....graph.foreign import find, flag, number, string
from ....graph.graph import Operation
from ....graph.types import Array
from .layout import as_written, channels_last, integers
from .table import reference


def spatial(operation: Operation, name: str, rank: int) -> list[int]:
    """Return the entries of the spatial axes from a list with one entry for each axis; ones if there is no list."""
    found = integers(operation, name) or [1] * (rank + 2)
    return found[2:] if str(find(operation, "data_format", "NHWC")).startswith("NC") else found[1:-1]


def paddings(operation: Operation, sizes: Sequence[int], window: Sequence[int], strides: Sequence[int]
             ) -> list[tuple[int, int]]:
    """Return the padding before and after each spatial axis. SAME: as many outputs as steps, with the odd element after."""
    match string(operation, "padding"):
        case "VALID":
            return [(0, 0)] * len(sizes)
        case "SAME":
            totals = [max((math.ceil(n / s) - 1) * s + k - n, 0) for n, k, s in zip(sizes, window, strides)]
            return [(t // 2, t - t // 2) for t in totals]
        case "EXPLICIT":
            found = integers(operation, "explicit_paddings")
            pairs = list(zip(found[::2], found[1::2]))
            return pairs[2:] if str(find(operation, "data_format", "NHWC")).startswith("NC") else pairs[1:-1]
        case other:
            raise Problem(f"the padding {other} is not known", kind="unsupported")


def taps(x: Array, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
         ) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Yield each offset in the window with the elements that all outputs read there."""
    counts = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(x.shape[1:-1], window, strides, dilations)]
    for place in itertools.product(*map(range, window)):
        yield place, x[(slice(None), *(slice(p * d, p * d + (c - 1) * s + 1, s)
                                       for p, d, c, s in zip(place, dilations, counts, strides)))]


@reference("tf.Conv2D", "tf.Conv3D", "tf.DepthwiseConv2dNative")
def convolution(operation: Operation, x: Array, filter: Array) -> Array:
    rank, depthwise = x.ndim - 2, operation.op.spelling.startswith("tf.Depthwise")  # type: ignore[attr-defined]
    image = channels_last(operation, x).astype(np.float64)
    strides, dilations = spatial(operation, "strides", rank), spatial(operation, "dilations", rank)
    reach = [(k - 1) * d + 1 for k, d in zip(filter.shape, dilations)]
    image = np.pad(image, [(0, 0), *paddings(operation, image.shape[1:-1], reach, strides), (0, 0)])
    weights, total = filter.astype(np.float64), None
    for place, seen in taps(image, filter.shape[:rank], strides, dilations):
        if depthwise:
            term = (seen[..., None] * weights[place]).reshape(*seen.shape[:-1], -1)
        elif seen.shape[-1] != weights.shape[-2]:
            groups = seen.shape[-1] // weights.shape[-2]
            cut = seen.reshape(*seen.shape[:-1], groups, -1)
            own = weights[place].reshape(weights.shape[-2], groups, -1)
            term = np.einsum("...gi,igo->...go", cut, own).reshape(*seen.shape[:-1], -1)
        else:
            term = seen @ weights[place]
        total = term if total is None else total + term
    assert total is not None
    return as_written(operation, total.astype(x.dtype))


@reference("tf.Conv2DBackpropInput")
def convolution_transposed(operation: Operation, sizes: Array, filter: Array, x: Array) -> Array:
    """Return the gradient of a convolution with these strides, with respect to an input of shape `sizes`."""
    image = channels_last(operation, x).astype(np.float64)
    strides, dilations = spatial(operation, "strides", 2), spatial(operation, "dilations", 2)
    shape = channels_last(operation, np.empty(tuple(int(n) for n in sizes), np.bool_)).shape
    reach = [(k - 1) * d + 1 for k, d in zip(filter.shape, dilations)]
    around = paddings(operation, shape[1:-1], reach, strides)
    total = np.zeros((shape[0], *(n + a + b for n, (a, b) in zip(shape[1:-1], around)), shape[-1]))
    for place in itertools.product(*map(range, filter.shape[:2])):
        index = tuple(slice(p * d, p * d + (n - 1) * s + 1, s)
                      for p, d, n, s in zip(place, dilations, image.shape[1:-1], strides))
        total[(slice(None), *index)] += image @ filter[place].astype(np.float64).T
    inner = tuple(slice(a, a + n) for n, (a, _) in zip(shape[1:-1], around))
    return as_written(operation, total[(slice(None), *inner)].astype(x.dtype))


@reference("tf.MaxPool", "tf.MaxPool3D")
def max_pool(operation: Operation, x: Array) -> Array:
    image, rank = channels_last(operation, x), x.ndim - 2
    window, strides = spatial(operation, "ksize", rank), spatial(operation, "strides", rank)
    around = [(0, 0), *paddings(operation, image.shape[1:-1], window, strides), (0, 0)]
    low = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
    padded = np.pad(image, around, constant_values=low)
    found = [seen for _, seen in taps(padded, window, strides, [1] * rank)]
    return as_written(operation, np.maximum.reduce(found))


@reference("tf.AvgPool", "tf.AvgPool3D")
def avg_pool(operation: Operation, x: Array) -> Array:
    """Return the mean of the elements in each window; padding does not count."""
    image, rank = channels_last(operation, x).astype(np.float64), x.ndim - 2
    window, strides = spatial(operation, "ksize", rank), spatial(operation, "strides", rank)
    around = [(0, 0), *paddings(operation, image.shape[1:-1], window, strides), (0, 0)]
    counts = np.pad(np.ones_like(image), around)
    total = sum(seen for _, seen in taps(np.pad(image, around), window, strides, [1] * rank))
    count = sum(seen for _, seen in taps(counts, window, strides, [1] * rank))
    return as_written(operation, np.asarray(total / count).astype(x.dtype))


@reference("tf.FusedBatchNorm", "tf.FusedBatchNormV2", "tf.FusedBatchNormV3")
def batch_norm(operation: Operation, x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> tuple[Array, ...]:
    """Normalise with the given statistics, or in training with those of the batch."""
    image = channels_last(operation, x).astype(np.float64)
    over, running, saved = tuple(range(image.ndim - 1)), (mean, variance), (mean, variance)
    if flag(operation, "is_training"):
        batch_mean, batch_variance = image.mean(axis=over), image.var(axis=over)
        count = image.size // image.shape[-1]
        unbiased = batch_variance * count / max(count - 1, 1)
        part = number(operation, "exponential_avg_factor", 1.0)
        new = (batch_mean, unbiased) if part == 1 else [
            (1 - part) * old + part * own for old, own in ((mean, batch_mean), (variance, unbiased))]
        running = new[0].astype(scale.dtype), new[1].astype(scale.dtype)
        saved = batch_mean.astype(scale.dtype), batch_variance.astype(scale.dtype)
    else:
        batch_mean, batch_variance = mean.astype(np.float64), variance.astype(np.float64)
    factor = scale / np.sqrt(batch_variance + number(operation, "epsilon"))
    y = as_written(operation, ((image - batch_mean) * factor + offset).astype(x.dtype))
    return (y, *running, *saved, np.empty(0, scale.dtype))[:len(operation.results)]


@reference("tf.LRN")
def local_response(operation: Operation, x: Array) -> Array:
    """Divide by a power of the sum of squares of the channels at most `depth_radius` away."""
    radius, bias, alpha, beta = (number(operation, *given) for given in
                                 (("depth_radius", 5), ("bias", 1.0), ("alpha", 1.0), ("beta", 0.5)))
    squares = x.astype(np.float64) ** 2
    near = np.stack([squares[..., max(c - int(radius), 0):c + int(radius) + 1].sum(-1) for c in range(x.shape[-1])], -1)
    return np.asarray(x / (bias + alpha * near) ** beta).astype(x.dtype)


@reference("tf.ResizeNearestNeighbor", "tf.ResizeBilinear")
def resize(operation: Operation, x: Array, size: Array) -> Array:
    """Resize [N, H, W, C] to another height and width."""
    nearest = operation.op.spelling == "tf.ResizeNearestNeighbor"  # type: ignore[attr-defined]
    result = x if nearest else x.astype(np.float32)
    for axis, count in ((1, int(size[0])), (2, int(size[1]))):
        places = sampled(operation, x.shape[axis], count, nearest)
        if nearest:
            result = np.take(result, places.astype(np.int64), axis)
            continue
        low = np.clip(np.floor(places), 0, x.shape[axis] - 1).astype(np.int64)
        high = np.minimum(low + 1, x.shape[axis] - 1)
        part = (np.clip(places, 0, None) - low).astype(np.float32).reshape([-1 if a == axis else 1 for a in range(4)])
        result = np.take(result, low, axis) * (1 - part) + np.take(result, high, axis) * part
    return result


def sampled(operation: Operation, extent: int, count: int, nearest: bool) -> Array:
    """Return the coordinate along an axis that each output reads."""
    aligned, half = flag(operation, "align_corners"), flag(operation, "half_pixel_centers")
    single = np.float32  # as TensorFlow computes it: elements on an edge round the same way
    step = single(extent - 1) / single(count - 1) if aligned and count > 1 else single(extent) / single(count)
    at = np.arange(count, dtype=single)
    found = (at + single(0.5)) * step - single(0 if nearest else 0.5) if half else at * step
    if not nearest:
        return found
    up = (found - np.floor(found) >= 0.5) if aligned else 0
    return np.clip(np.floor(found) + up, 0, extent - 1)
