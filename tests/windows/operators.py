"""Every operator that slides a window, drawn with the places of `places.py`; each draws its own input, or takes one."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.types import F32, ElementType

from ..table.block_scaled import SIZE, pair
from ..table.combinations import SETS, Types
from ..table.contractions import small, whole
from ..table.draft import NAN_MODES, Draft
from .places import CHANNELS, NARROW, Drawn, Line, drawn, flat, pooling, sliding, spreading

Operator = Callable[[Draft, Types], Value]
FILTERS = (2, 3, 4, 7, 8, 9, 17)
"""Of a thin image."""
MOST_HALO = 3
"""What windows read of a thin image and its padding, at most this many times the image: then it is copied in most cases."""
PRODUCTS = 25_000
"""Multiplications of one convolution, at most."""


def channels_and_filters(d: Draft, axes: Sequence[Line], types: Sequence[ElementType]) -> tuple[int, int]:
    """Of a convolution, few enough for its window."""
    each = math.prod(a.kernel for a in axes) * max(math.prod(a.places for a in axes), math.prod(a.extent for a in axes))
    channels, filters = d.shrunk((d.choice(*CHANNELS), d.choice(*CHANNELS)), max(1, PRODUCTS // each))
    return whole(d, channels, tuple(types)), filters


def weights_and_bias(d: Draft, types: Types, dims: Sequence[int], filters: int, known: float) -> list[Value]:
    """With zero points; weights are mostly known when compiling."""
    weights = d.tensor(types[1], dims, constant=known)
    bias = d.tensor(types[2], (d.choice(1, filters, filters),), small(types[2]), 0.6)
    return [weights, bias, d.zero_point(types[0]), d.zero_point(types[1])]


def image(d: Draft, element: ElementType, axes: Sequence[Line], channels: int) -> Value:
    return d.tensor(element, (d.choice(1, 1, 2), *(a.extent for a in axes), channels), constant=0.05)


def convolution(name: str, spatial: int) -> Operator:
    def draw(d: Draft, types: Types) -> Value:
        axes = drawn(d, spatial, sliding)
        channels, filters = channels_and_filters(d, axes, types[:2])
        return convolved(d, name, types, image(d, types[0], axes, channels), axes, filters)

    return draw


def convolved(d: Draft, name: str, types: Types, x: Value, axes: Sequence[Line], filters: int, known: float = 0.7) -> Value:
    """A convolution of `x` with `filters` filters, for each channel if it is depthwise."""
    kernel, channels = tuple(a.kernel for a in axes), x.tensor.dims[-1]
    if name == "depthwise_conv2d":
        filters = filters % 4 + 1
        dims, outputs = (*kernel, channels, filters), channels * filters
    else:
        dims, outputs = (filters, *kernel, channels), filters
    return d.op(name, x, *weights_and_bias(d, types, dims, outputs, known), **sizes(axes), acc_type=types[3],
                dilation=tuple(a.dilation for a in axes), local_bound=d.chance(0.5))


def sizes(axes: Sequence[Line]) -> dict[str, Any]:
    return {"stride": tuple(a.stride for a in axes), "pad": flat([a.pads for a in axes])}


def transposed(d: Draft, types: Types) -> Value:
    axes = drawn(d, 2, spreading)
    channels, filters = channels_and_filters(d, axes, types[:2])
    return spread(d, types, image(d, types[0], axes, channels), axes, filters)


def spread(d: Draft, types: Types, x: Value, axes: Sequence[Line], filters: int, known: float = 0.7) -> Value:
    """A transposed convolution of `x`."""
    dims = (filters, *(a.kernel for a in axes), x.tensor.dims[-1])
    return d.op("transpose_conv2d", x, *weights_and_bias(d, types, dims, filters, known), out_pad=flat([a.pads for a in axes]),
                stride=tuple(a.stride for a in axes), acc_type=types[3], local_bound=d.chance(0.5))


def thin(name: str, spatial: int) -> Operator:
    """A convolution of an image with one channel that is mostly one pixel wide, with padding: of known weights, it reads a copy
    with a halo, in which nothing of the image has a neighbour."""
    line = spreading if name == "transpose_conv2d" else sliding

    def draw(d: Draft, types: Types) -> Value:
        d.known, d.mood = None, "whole"
        while True:
            axes = drawn(d, spatial, line, (*(d.choice(*NARROW) for _ in range(spatial - 1)), d.choice(1, 1, 1, 2)))
            if axes[-1].places > 1 and math.prod(reach(a, line) / a.extent for a in axes) <= MOST_HALO:
                break
        x = d.tensor(types[0], (d.choice(1, 1, 2), *(a.extent for a in axes), 1), constant=0.0)
        filters = d.choice(*FILTERS)
        if name == "transpose_conv2d":
            return spread(d, types, x, axes, filters, known=1.0)
        return convolved(d, name, types, x, axes, filters, known=1.0)

    return draw


def reach(a: Line, line: Drawn) -> int:
    """Elements of an axis, and places of its padding, that windows read together."""
    if line is spreading:
        return (a.places - 1) // a.stride + -(-a.kernel // a.stride)
    return a.extent + sum(a.pads)


def block_scaled(d: Draft, types: Types) -> Value:
    axes = drawn(d, 2, sliding)
    channels, filters = channels_and_filters(d, axes, SETS["MX"][:1])
    shapes = (flat([a.pads for a in axes]), tuple(a.stride for a in axes), tuple(a.dilation for a in axes))
    bias = d.tensor(F32, (d.choice(1, filters),), small(F32), 0.6)
    return d.op("conv2d_block_scaled", *pair(d, types[0], (d.choice(1, 2), *(a.extent for a in axes), channels)),
                *pair(d, types[0], (filters, *(a.kernel for a in axes), channels), 0.7), bias, *(d.shape(*s) for s in shapes),
                block_size=SIZE)


def pool(name: str) -> Operator:
    def draw(d: Draft, types: Types) -> Value:
        axes = drawn(d, 2, pooling)
        channels, = d.shrunk((d.choice(*CHANNELS),), max(1, PRODUCTS // (50 * math.prod(a.extent for a in axes))))
        return pooled(d, name, types, image(d, types[0], axes, channels), axes)

    return draw


def pooled(d: Draft, name: str, types: Types, x: Value, axes: Sequence[Line]) -> Value:
    """A pool of `x`."""
    window: dict[str, Any] = {"kernel": tuple(a.kernel for a in axes), **sizes(axes)}
    operands = [x] if name.startswith("max") else [x, d.zero_point(types[0]), d.zero_point(types[0])]
    if name.endswith("adaptive"):
        operands += [d.shape(*numbers) for numbers in window.values()]
        window = {}
    mode: dict[str, Any] = {"nan_mode": d.choice(*NAN_MODES)} if name.startswith("max") else {"acc_type": types[1]}
    return d.op(name, *operands, **window, **mode)


OPERATORS: dict[str, Operator] = {
    "conv2d": convolution("conv2d", 2), "conv3d": convolution("conv3d", 3),
    "depthwise_conv2d": convolution("depthwise_conv2d", 2), "transpose_conv2d": transposed,
    "conv2d_block_scaled": block_scaled,
    **{name: pool(name) for name in ("avg_pool2d", "max_pool2d", "avg_pool2d_adaptive", "max_pool2d_adaptive")}}
THIN: dict[str, Operator] = {f"thin {name}": thin(name, spatial)
                             for name, spatial in (("conv2d", 2), ("conv3d", 3), ("transpose_conv2d", 2))}
