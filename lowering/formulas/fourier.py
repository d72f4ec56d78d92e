"""Fourier transforms of real and complex numbers, whose parts are two tensors.

Lengths that are powers of two use TOSA's `rfft2d` and `fft2d`, with one axis as an image of one row; all others, and doubles,
are products with matrices of roots of unity.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..graph.graph import Value
from ..graph.operator import OPERATORS
from ..graph.types import F32, Array
from .contractions import batched_product
from .tosa_builder import TosaBuilder

Parts = tuple[Value, Value]


def negative(e: TosaBuilder, x: Value) -> Value:
    return e.product(x, e.splat(-1, x))


def transformed(e: TosaBuilder, real: Value, imaginary: Value, sign: int) -> Parts:
    """Return the transform of [N, H, W] over rows and columns; the inverse is divided by the number of its elements, H * W."""
    *_, height, width = real.tensor.dims
    if is_native(real):
        found = pair(e, "fft2d", real, imaginary, inverse=sign > 0)
    else:
        found = rows(e, real, imaginary, width, sign, width)
        found = columns(e, *found, height, sign) if height > 1 else found
    if sign < 0:
        return found
    first, second = (e.product(part, e.splat(1 / (height * width), part)) for part in found)
    return first, second


def pair(e: TosaBuilder, name: str, *operands: Value, **attributes: bool) -> Parts:
    first, second = e.add(OPERATORS[f"tosa.{name}"](**attributes), *operands)
    return first, second


def is_native(x: Value) -> bool:
    """True if TOSA has this transform of [N, H, W]."""
    return x.tensor.element == F32 and all(n & (n - 1) == 0 for n in x.tensor.dims[1:])


def sized(e: TosaBuilder, x: Value, lengths: Sequence[int]) -> Value:
    """Return x with its last axes cut, or padded with zeros at the end, to these lengths."""
    dims = x.tensor.dims
    before = len(dims) - len(lengths)
    cut = e.slice(x, [0] * len(dims), (*dims[:before], *map(min, dims[before:], lengths)))
    missing = [max(n - m, 0) for n, m in zip(lengths, dims[before:])]
    if not any(missing):
        return cut
    zero = e.constant(np.zeros(1, x.tensor.element.dtype), x.tensor.element)
    return e("pad", cut, e.shape([0] * (2 * before) + [n for m in missing for n in (0, m)]), zero)


def planes(e: TosaBuilder, x: Value, axes: int) -> Value:
    """Return x as [N, H, W]; H is 1 for a transform of one axis."""
    *batch, height, width = (1, *x.tensor.dims) if axes == 2 else (*x.tensor.dims[:-1], 1, x.tensor.dims[-1])
    return e.reshape(x, (math.prod(batch), height, width))


def mirrored(e: TosaBuilder, x: Value, width: int, negated: bool = False) -> Value:
    """Return the half x of the frequencies, and the others, which are those at the opposite index of both axes."""
    count, height, half = x.tensor.dims
    if half == width:
        return x
    others = e("reverse", e.slice(x, (0, 0, 1), (count, height, width - half)), axis=2)
    if height > 1:
        first = e.slice(others, (0, 0, 0), (count, 1, width - half))
        rest = e.slice(others, (0, 1, 0), (count, height - 1, width - half))
        others = e.concat([first, e("reverse", rest, axis=1)], 1)
    return e.concat([x, negative(e, others) if negated else others], 2)


def rows(e: TosaBuilder, real: Value, imaginary: Value | None, width: int, sign: int, count: int) -> Parts:
    """Return the first `count` frequencies of each row of [..., W]; a missing imaginary part is zero."""
    element = real.tensor.element
    cosine, sine = (e.constant(m.astype(element.dtype), element) for m in roots(width, sign, count))

    def times(x: Value, matrix: Value) -> Value:
        return batched_product(e, x, matrix, element)

    if imaginary is None:
        return times(real, cosine), times(real, sine)
    return (e.difference(times(real, cosine), times(imaginary, sine)), e.sum(times(real, sine), times(imaginary, cosine)))


def columns(e: TosaBuilder, real: Value, imaginary: Value, height: int, sign: int) -> Parts:
    first, second = rows(e, e.transpose(real, (0, 2, 1)), e.transpose(imaginary, (0, 2, 1)), height, sign, height)
    return e.transpose(first, (0, 2, 1)), e.transpose(second, (0, 2, 1))


def roots(length: int, sign: int, count: int) -> tuple[Array, Array]:
    """Return cos and sin of sign * 2 pi k n / length, [n, k]."""
    turns = np.outer(np.arange(length), np.arange(count)) % length * (2 * np.pi / length)
    return np.cos(turns), sign * np.sin(turns)
