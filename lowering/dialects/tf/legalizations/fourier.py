"""Fourier transforms, and the few operations on complex numbers that stand around them: their parts are two tensors.

Lengths that are powers of two are TOSA's `rfft2d` and `fft2d`, one axis being an image of one row; any others, and doubles,
are products with matrices of roots of unity.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .....runtime.errors import Problem
from ....formulas.contractions import batched_product
from ....graph.graph import Operation, Value
from ....graph.operator import OPERATORS
from ....graph.types import F32, Array
from ...data import ComplexTensor
from ...emitter import Emitter, integers
from .table import legalization

Parts = tuple[Value, Value]


@legalization("tf.Complex")
def complex_(e: Emitter, operation: Operation, real: Value, imaginary: Value) -> ComplexTensor:
    return ComplexTensor(real, imaginary)


@legalization("tf.Real")
def real(e: Emitter, operation: Operation, z: Value | ComplexTensor) -> Value:
    return parts_of(z)[0]


@legalization("tf.Imag")
def imaginary(e: Emitter, operation: Operation, z: Value | ComplexTensor) -> Value:
    return parts_of(z)[1]


@legalization("tf.Conj")
def conjugate(e: Emitter, operation: Operation, z: Value | ComplexTensor) -> Value | ComplexTensor:
    return z if isinstance(z, Value) else ComplexTensor(z.real, negative(e, z.imaginary))


@legalization("tf.ComplexAbs")
def absolute(e: Emitter, operation: Operation, z: Value | ComplexTensor) -> Value:
    """The greater part times the root of one and the quotient's square, so that squares do not overflow."""
    a, b = (e("abs", part) for part in parts_of(z))
    most, least = e.arithmetic("maximum", a, b), e.arithmetic("minimum", a, b)
    is_zero = e.arithmetic("equal", most, e.splat(0, most))
    part = e.quotient(least, e.select(is_zero, e.splat(1, most), most))
    return e.product(most, e.square_root(e.sum(e.product(part, part), e.splat(1, most))))


def parts_of(z: Value | ComplexTensor) -> Parts:
    if isinstance(z, Value):
        raise Problem(f"the operand is {z.type}, no complex numbers", kind="type")
    return z.real, z.imaginary


def negative(e: Emitter, x: Value) -> Value:
    return e.product(x, e.splat(-1, x))


# ---- transforms --------------------------------------------------------------------------------------------------
@legalization("tf.RFFT", "tf.RFFT2D")
def of_real(e: Emitter, operation: Operation, x: Value, length: Value) -> ComplexTensor:
    """The first half of the frequencies of real numbers, and the middle one."""
    lengths = lengths_of(operation, x, length)
    image = planes(e, sized(e, x, lengths), len(lengths))
    *_, height, width = image.tensor.dims
    if is_native(image):
        found = pair(e, "rfft2d", image)
    else:
        found = rows(e, image, None, width, -1, width // 2 + 1)
        found = columns(e, *found, height, -1) if height > 1 else found
    return ComplexTensor(*(e.reshape(part, (*x.tensor.dims[:-len(lengths)], *lengths[:-1], width // 2 + 1)) for part in found))


@legalization("tf.FFT", "tf.FFT2D", "tf.IFFT", "tf.IFFT2D")
def of_complex(e: Emitter, operation: Operation, z: Value | ComplexTensor) -> ComplexTensor:
    name = operation.op.spelling  # type: ignore[attr-defined]
    axes, sign = 2 if name.endswith("2D") else 1, 1 if name.startswith("tf.I") else -1
    given = parts_of(z)
    check_rank(given[0], axes)
    found = transformed(e, planes(e, given[0], axes), planes(e, given[1], axes), sign)
    return ComplexTensor(*(e.reshape(part, given[0].tensor.dims) for part in found))


@legalization("tf.IRFFT", "tf.IRFFT2D")
def back_to_real(e: Emitter, operation: Operation, z: Value | ComplexTensor, length: Value) -> Value:
    """From the first half of the frequencies, of which the others are the conjugates."""
    given = parts_of(z)
    lengths = lengths_of(operation, given[0], length)
    half = lengths[-1] // 2 + 1
    real, imaginary = (planes(e, sized(e, part, (*lengths[:-1], half)), len(lengths)) for part in given)
    whole = transformed(e, mirrored(e, real, lengths[-1]), mirrored(e, imaginary, lengths[-1], negated=True), 1)
    return e.reshape(whole[0], (*given[0].tensor.dims[:-len(lengths)], *lengths))


def lengths_of(operation: Operation, x: Value, length: Value) -> tuple[int, ...]:
    axes = 2 if operation.op.spelling.endswith("2D") else 1  # type: ignore[attr-defined]
    lengths = integers(length, "the length of the transform")
    if len(lengths) != axes or min(lengths) < 1:
        raise Problem(f"the length is {list(lengths)}, {axes} positive numbers are needed", kind="shape")
    check_rank(x, axes)
    return lengths


def check_rank(x: Value, axes: int) -> None:
    if x.tensor.rank < axes:
        raise Problem(f"the input is {x.type}, a transform over {axes} axes needs as many", kind="shape")


def transformed(e: Emitter, real: Value, imaginary: Value, sign: int) -> Parts:
    """Of [N, H, W], over rows and columns; divided by their number on the way back."""
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


def pair(e: Emitter, name: str, *operands: Value, **attributes: bool) -> Parts:
    first, second = e.add(OPERATORS[f"tosa.{name}"](**attributes), *operands)
    return first, second


def is_native(x: Value) -> bool:
    """Whether TOSA has this transform of [N, H, W]."""
    return x.tensor.element == F32 and all(n & (n - 1) == 0 for n in x.tensor.dims[1:])


# ---- layout ------------------------------------------------------------------------------------------------------
def sized(e: Emitter, x: Value, lengths: Sequence[int]) -> Value:
    """x with its last axes cut, or with zeros behind, to these lengths."""
    dims = x.tensor.dims
    before = len(dims) - len(lengths)
    cut = e.slice(x, [0] * len(dims), (*dims[:before], *map(min, dims[before:], lengths)))
    missing = [max(n - m, 0) for n, m in zip(lengths, dims[before:])]
    if not any(missing):
        return cut
    zero = e.constant(np.zeros(1, x.tensor.element.dtype), x.tensor.element)
    return e("pad", cut, e.shape([0] * (2 * before) + [n for m in missing for n in (0, m)]), zero)


def planes(e: Emitter, x: Value, axes: int) -> Value:
    """x as [N, H, W]; H is 1 for a transform of one axis."""
    *batch, height, width = (1, *x.tensor.dims) if axes == 2 else (*x.tensor.dims[:-1], 1, x.tensor.dims[-1])
    return e.reshape(x, (math.prod(batch), height, width))


def mirrored(e: Emitter, x: Value, width: int, negated: bool = False) -> Value:
    """Half of the frequencies, and the others, which are those at the opposite place of both axes."""
    count, height, half = x.tensor.dims
    if half == width:
        return x
    others = e("reverse", e.slice(x, (0, 0, 1), (count, height, width - half)), axis=2)
    if height > 1:
        first = e.slice(others, (0, 0, 0), (count, 1, width - half))
        rest = e.slice(others, (0, 1, 0), (count, height - 1, width - half))
        others = e.concat([first, e("reverse", rest, axis=1)], 1)
    return e.concat([x, negative(e, others) if negated else others], 2)


# ---- products with matrices --------------------------------------------------------------------------------------
def rows(e: Emitter, real: Value, imaginary: Value | None, width: int, sign: int, count: int) -> Parts:
    """The first `count` frequencies of each row of [..., W]; without an imaginary part it is zero."""
    element = real.tensor.element
    cosine, sine = (e.constant(m.astype(element.dtype), element) for m in roots(width, sign, count))

    def times(x: Value, matrix: Value) -> Value:
        return batched_product(e, x, matrix, element)

    if imaginary is None:
        return times(real, cosine), times(real, sine)
    return (e.difference(times(real, cosine), times(imaginary, sine)), e.sum(times(real, sine), times(imaginary, cosine)))


def columns(e: Emitter, real: Value, imaginary: Value, height: int, sign: int) -> Parts:
    first, second = rows(e, e.transpose(real, (0, 2, 1)), e.transpose(imaginary, (0, 2, 1)), height, sign, height)
    return e.transpose(first, (0, 2, 1)), e.transpose(second, (0, 2, 1))


def roots(length: int, sign: int, count: int) -> tuple[Array, Array]:
    """cos and sin of sign * 2 pi k n / length, [n, k]."""
    turns = np.outer(np.arange(length), np.arange(count)) % length * (2 * np.pi / length)
    return np.cos(turns), sign * np.sin(turns)
