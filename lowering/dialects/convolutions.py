"""Convolutions of channels-last images, of any element type and in groups, as front ends emit them.

Filters are [outputs, kernel ..., inputs], as in TOSA. Element types for which TOSA has no convolution (integers) become
products of matrices: the elements in each window, by the filter. With zero points (`zeros`) operands are i8, results i32.
"""
from __future__ import annotations

import math

from ...runtime.errors import Problem
from ..formulas.contractions import Zeros, batched_product
from ..formulas.layout import part, rearranged
from ..formulas.quantization import centred
from ..formulas.windows import Ints, Window, window_padded
from ..graph.graph import Value
from ..graph.types import I32, ElementType
from .emitter import Emitter
from .tosa.product_types import CONVOLUTIONS, PLAIN_CONVOLUTIONS, Table


def is_native(table: Table, element: ElementType) -> bool:
    """True if TOSA has a convolution from this type to itself."""
    return (element, element, element) in table


def accumulator(table: Table, element: ElementType) -> ElementType:
    """Return the widest accumulator type for an element type."""
    return table[element, element, element][-1]


def convolution(e: Emitter, x: Value, filter: Value, window: Window, bias: Value | None = None, zeros: Zeros | None = None
                ) -> Value:
    """Return a convolution of every output channel over all input channels, in two or three dimensions."""
    x, window = window.placed(e, x)
    if zeros is not None or is_native(CONVOLUTIONS, x.tensor.element):
        return emitted(e, f"conv{window.spatial}d", x, filter, window, CONVOLUTIONS, bias, zeros)
    padded = window_padded(e, x, window.pads, 0)
    seen = e.concat([tap for _, tap in window.taps(e, padded)], window.spatial + 1)
    outputs, *kernel, inputs = filter.tensor.dims
    matrix = e.reshape(e.transpose(filter, (*range(1, len(kernel) + 2), 0)), (math.prod(kernel) * inputs, outputs))
    return biased(e, batched_product(e, seen, matrix, x.tensor.element), bias)


def depthwise(e: Emitter, x: Value, filter: Value, window: Window, bias: Value | None = None, zeros: Zeros | None = None
              ) -> Value:
    """Return a depthwise convolution: each channel by its own filters, with a filter [kernel ..., channels, multiplier]."""
    x, window = window.placed(e, x)
    if window.spatial == 2 and (zeros is not None or is_native(PLAIN_CONVOLUTIONS, x.tensor.element)):
        return emitted(e, "depthwise_conv2d", x, filter, window, PLAIN_CONVOLUTIONS, bias, zeros)
    if zeros is not None:
        x, filter = (centred(e, v, zero) for v, zero in zip((x, filter), zeros))
    return biased(e, weighed(e, window_padded(e, x, window.pads, 0), filter, window), bias)


def emitted(e: Emitter, name: str, x: Value, filter: Value, window: Window, table: Table, bias: Value | None,
            zeros: Zeros | None = None) -> Value:
    element = x.tensor.element
    result = element if zeros is None else I32
    bias = e.zero_point(result) if bias is None else bias
    return e(name, x, filter, bias, *(zeros or (e.zero_point(element), e.zero_point(element))), pad=window.flat_pads,
             stride=window.strides, dilation=window.dilations,
             acc_type=accumulator(table, element) if zeros is None else I32)


def biased(e: Emitter, x: Value, bias: Value | None) -> Value:
    return x if bias is None else e.sum(x, bias)


def weighed(e: Emitter, x: Value, filter: Value, window: Window) -> Value:
    """Return the sum over the kernel offsets of the elements in the windows, multiplied by the filter's numbers."""
    *_, channels, multiplier = filter.tensor.dims
    total = None
    for place, seen in window.taps(e, x):
        weights = e.slice(filter, (*place, 0, 0), (*(1,) * window.spatial, channels, multiplier))
        term = e.product(e.reshape(seen, (*seen.tensor.dims, 1)), e.reshape(weights, (channels, multiplier)))
        total = term if total is None else e.sum(total, term)
    assert total is not None
    return e.reshape(total, (*total.tensor.dims[:-2], channels * multiplier))


# ---- groups ------------------------------------------------------------------------------------------------------
def grouped(e: Emitter, x: Value, filter: Value, window: Window, groups: int, bias: Value | None = None,
            zeros: Zeros | None = None) -> Value:
    """Return a convolution in groups of channels, each of which computes its part of the outputs."""
    outputs, *kernel, inputs = filter.tensor.dims
    if groups == 1:
        return convolution(e, x, filter, window, bias, zeros)
    each = outputs // groups
    if inputs == 1:
        spatial = len(kernel)
        own = e.transpose(e.reshape(filter, (groups, each, *kernel)), (*range(2, spatial + 2), 0, 1))
        return depthwise(e, x, own, window, bias, zeros)
    last = x.tensor.rank - 1

    def group(g: int) -> Value:
        own = None if bias is None else part(e, bias, 0, g * each, (g + 1) * each)
        return convolution(e, part(e, x, last, g * inputs, (g + 1) * inputs),
                           part(e, filter, 0, g * each, (g + 1) * each), window, own, zeros)
    return e.concat([group(g) for g in range(groups)], last)


# ---- transposed --------------------------------------------------------------------------------------------------
def transposed_convolution(e: Emitter, x: Value, filter: Value, strides: Ints, before: Ints, extents: Ints,
                           groups: int = 1, bias: Value | None = None) -> Value:
    """Return a transposed convolution: each element of x adds its multiple of the kernel, the strides apart, to a result of
    these extents, the first `before` of which are cut off. TOSA has it in two dimensions, without groups."""
    spatial = len(strides)
    if spatial != 2 or groups > 1 or not is_native(CONVOLUTIONS, x.tensor.element):
        return by_phases(e, x, filter, strides, before, extents, groups, bias)
    out_pad = list[int]()
    for d in range(2):
        x, pair = landing(e, x, d + 1, before[d], extents[d], filter.tensor.dims[d + 1], strides[d])
        out_pad += pair
    zero = e.zero_point(x.tensor.element)
    return e("transpose_conv2d", x, filter, zero if bias is None else bias, zero, zero, out_pad=tuple(out_pad), stride=strides,
             acc_type=accumulator(CONVOLUTIONS, x.tensor.element))


def landing(e: Emitter, x: Value, axis: int, before: int, extent: int, reach: int, stride: int
            ) -> tuple[Value, tuple[int, int]]:
    """Return the part of x along an axis whose multiples of the kernel reach the result, and how much wider the result is than
    these multiples (negative: narrower). Elements that reach only the padding are left out: TOSA does not narrow by a whole
    kernel."""
    first = max((before - reach) // stride + 1, 0)
    last = min((extent - 1 + before) // stride + 1, x.tensor.dims[axis])
    if first >= last:
        raise Problem(f"a padding of {before} leaves nothing of what a kernel of {reach} gives", kind="unsupported")
    top = first * stride - before
    return part(e, x, axis, first, last), (top, extent - top - (last - first - 1) * stride - reach)


def by_phases(e: Emitter, x: Value, filter: Value, strides: Ints, before: Ints, extents: Ints, groups: int,
              bias: Value | None) -> Value:
    """Compute the elements of the result at the same offset between the strides by one convolution of x. The offsets together
    are one convolution with as many times the outputs, whose results are interleaved."""
    outputs, *kernel, inputs = filter.tensor.dims
    spatial, each, phases = len(strides), outputs // groups, math.prod(strides)
    taps = tuple(-(-k // s) for k, s in zip(kernel, strides))
    for d, (k, t, s) in enumerate(zip(kernel, taps, strides), 1):
        filter = widened(e, filter, d, 0, t * s - k)
    apart = [n for t, s in zip(taps, strides) for n in (t, s)]
    order = (0, *(2 + 2 * d + 1 for d in range(spatial)), 1, *(2 + 2 * d for d in range(spatial)), 2 + 2 * spatial)
    filter = rearranged(e, filter, (groups, each, *apart, inputs), order, (groups * phases * each, *taps, inputs))
    for d, t in enumerate(taps, 1):
        filter = e("reverse", filter, axis=d) if t > 1 else filter
    window = Window(taps, (1,) * spatial, (1,) * spatial, [(t - 1, t - 1) for t in taps])
    found = grouped(e, x, filter, window, groups)
    n, *places, _ = found.tensor.dims
    order = (0, *(a for d in range(spatial) for a in (1 + d, 2 + spatial + d)), 1 + spatial, 2 + 2 * spatial)
    wide = [p * s for p, s in zip(places, strides)]
    found = rearranged(e, found, (n, *places, groups, *strides, each), order, (n, *wide, outputs))
    for d, (start, extent, whole) in enumerate(zip(before, extents, wide), 1):
        found = part(e, widened(e, found, d, 0, max(start + extent - whole, 0)), d, start, start + extent)
    return biased(e, found, bias)


def widened(e: Emitter, x: Value, axis: int, before: int, after: int) -> Value:
    """Return x with zeros before and after it along an axis."""
    if not before and not after:
        return x
    flat = [0] * (2 * x.tensor.rank)
    flat[2 * axis:2 * axis + 2] = before, after
    return e("pad", x, e.shape(flat), e.zero_point(x.tensor.element))


def dilated(e: Emitter, filter: Value, dilations: Ints) -> Value:
    """Return a filter with zeros between the elements along its spatial axes."""
    for axis, d in enumerate(dilations, 1):
        dims = filter.tensor.dims
        if d == 1 or dims[axis] == 1:
            continue
        apart = widened(e, e.reshape(filter, (*dims[:axis + 1], 1, *dims[axis + 1:])), axis + 1, 0, d - 1)
        wide = e.reshape(apart, (*dims[:axis], dims[axis] * d, *dims[axis + 1:]))
        filter = part(e, wide, axis, 0, (dims[axis] - 1) * d + 1)
    return filter
