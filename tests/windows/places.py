"""Where a window slides along one axis: extents of 1 and around the lengths of vectors, padding as far as the specification
allows it, strides and dilations, everything drawn from the random numbers of a draft.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..table.draft import Draft

EXTENTS = (1, 1, 1, 1, 2, 3, 4, 6, 7, 8, 9, 15, 16, 17)
NARROW = (1, 1, 1, 2, 3, 6)
"""Extents of a half of all images."""
CHANNELS = (*(1,) * 14, 2, 2, 2, 3, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33)
KERNELS = (1, 2, 2, 3, 3, 4, 5)
LITTLE = 2
"""Padding that leaves part of a small input in most places of the window."""
MOST_PLACES = 20
"""Of one axis, where its extent is not larger."""
BEYOND = 3
"""How far padding of a convolution may go beyond the window: the specification has no limit but the level's."""


@dataclass(frozen=True, slots=True)
class Line:
    """One axis: the input's extent, and the window's."""
    extent: int
    kernel: int
    stride: int = 1
    dilation: int = 1
    pads: tuple[int, int] = (0, 0)
    places: int = 1


Drawn = Callable[[Draft, int], Line]


def sliding(d: Draft, extent: int) -> Line:
    """A convolution's window over `extent` elements; some places of it may be padding alone."""
    kernel, dilation = d.choice(*KERNELS), d.choice(1, 1, 1, 2, 3)
    reach = (kernel - 1) * dilation + 1
    return padded(d, extent, kernel, dilation, reach + (d.integer(1, BEYOND) if d.chance(0.1) else 0))


def pooling(d: Draft, extent: int) -> Line:
    """A pool's: padding is less than the kernel."""
    kernel = d.choice(*KERNELS)
    return padded(d, extent, kernel, 1, kernel - 1)


def padded(d: Draft, extent: int, kernel: int, dilation: int, most: int) -> Line:
    """A window with padding that its stride ends exactly at; as little and as much as there may be, often."""
    stride = d.choice(1, 1, 2, 3, kernel, kernel + 1)
    reach = (kernel - 1) * dilation + 1
    for step in (stride, 1):
        places = range(0, step * max(MOST_PLACES, extent), step)
        found = [(before, after) for before in range(most + 1) for after in range(most + 1)
                 if extent + before + after - reach in places]
        if found:
            ends = [pads for pads in found if pads[0] in (0, most) or pads[1] in (0, most)]
            little = [pads for pads in found if max(pads) <= LITTLE]
            before, after = d.choice(*d.choice(little or found, little or found, ends or found, found))
            return Line(extent, kernel, step, dilation, (before, after), (extent + before + after - reach) // step + 1)
    raise AssertionError(f"no padding up to {most} lets a window of {reach} into {extent}")


def spreading(d: Draft, extent: int) -> Line:
    """A transposed convolution's: what is put beside the output may be so much less than nothing that one element is left."""
    while True:
        kernel, stride = d.choice(*KERNELS), d.choice(1, 1, 2, 3, 5)
        before, after = (d.integer(1 - kernel, kernel + 1) if d.chance(0.7) else 0 for _ in "ab")
        places = (extent - 1) * stride + before + after + kernel
        if 1 <= places <= max(2 * MOST_PLACES, extent):
            return Line(extent, kernel, stride, 1, (before, after), places)


def drawn(d: Draft, count: int, line: Drawn, extents: Sequence[int] = (), most: int = 600) -> list[Line]:
    """The axes of a window; not so large together that the interpreter takes long: `most` elements. For an input that is there
    already, `extents` are its own, with no more elements."""
    options = d.choice(NARROW, EXTENTS)
    while True:
        found = [line(d, extents[i] if extents else d.choice(*options)) for i in range(count)]
        sizes = math.prod(a.extent for a in found), math.prod(a.places for a in found)
        if max(sizes) * math.prod(a.kernel for a in found) <= most * 4 and max(sizes) <= most:
            return found


def flat(numbers: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    return tuple(n for pair in numbers for n in pair)


__all__ = ["CHANNELS", "NARROW", "Line", "drawn", "flat", "pooling", "sliding", "spreading"]
