"""Where windows of convolutions and pools stand, channels last.

TOSA wants the last place of a window to end where its input ends: what a stride leaves over is taken off the padding behind,
and the input cropped where that is not enough.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...runtime.errors import Problem
from ..graph.graph import Value
from .tosa_builder import TosaBuilder

Pads = list[tuple[int, int]]
"""Before and behind each spatial axis."""


def reach(kernel: Sequence[int], dilations: Sequence[int]) -> tuple[int, ...]:
    """From the first element that a window reads to the last, both counted."""
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations))


def fitted(e: TosaBuilder, x: Value, pads: Pads, reach: Sequence[int], strides: Sequence[int]) -> tuple[Value, Pads]:
    """x and its padding less what the last place of a window leaves over."""
    dims, result = list(x.tensor.dims), []
    for axis, ((before, after), k, s) in enumerate(zip(pads, reach, strides), 1):
        room = dims[axis] + before + after - k
        if room < 0:
            raise Problem(f"the window reaches over {k} elements, the input has {dims[axis]} and a padding of {before} and "
                          f"{after}", kind="shape")
        rest = room % s
        crop = max(rest - after, 0)
        dims[axis] -= crop
        result.append((before, after - (rest - crop)))
    return e.slice(x, [0] * len(dims), dims), result


def window_padded(e: TosaBuilder, x: Value, pads: Pads, value: float) -> Value:
    """x with `pads` elements of `value` before and behind each of its spatial axes."""
    if not any(map(sum, pads)):
        return x
    element = x.tensor.element
    flat = [0, 0, *(n for pair in pads for n in pair), 0, 0]
    return e("pad", x, e.shape(flat), e.constant(np.full(1, value, element.dtype), element))
