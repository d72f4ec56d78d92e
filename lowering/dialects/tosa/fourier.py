"""FFT2D and RFFT2D: the discrete Fourier transform over the last two axes. TOSA 1.0, tensor operators, extension FFT.

A transform and its inverse differ in the sign of the angle; neither divides. They are compiled as products of matrices
(`rewrite/fourier.py`), so there is no `element` here.
"""
from __future__ import annotations

import numpy as np

from ....runtime.errors import require
from ...graph.operator import Op, Operand, attribute
from ...graph.types import F32, Array, TensorType
from .operands import Shape, one_of, ranked, same_shape, tensor

Parts = tuple[Array, Array]
"""The real and the imaginary part."""


class FFT2D(Op, name="tosa.fft2d"):
    """The transform of complex numbers, given and returned as real and imaginary parts [N, H, W]."""
    inverse: bool = attribute("bool")
    local_bound: bool = attribute("bool", default=False)

    def infer(self, input_real: Operand, input_imag: Operand) -> tuple[TensorType, TensorType]:
        real = transformed(input_real, "the real part")
        imaginary = transformed(input_imag, "the imaginary part")
        require(same_shape(real, imaginary), f"the real part is {input_real.type}, the imaginary part {input_imag.type}",
                kind="shape")
        both = TensorType(tuple(n if m is None else m for n, m in zip(real, imaginary)), F32)
        return both, both

    def reference(self, input_real: Array, input_imag: Array) -> Parts:
        sign = -1.0 if self.inverse else 1.0
        known = np.isfinite(input_real) & np.isfinite(input_imag)
        finite = np.zeros(input_real.shape, np.complex128)
        finite.real[known], finite.imag[known] = input_real[known], input_imag[known]
        result = np.fft.ifft2(finite, norm="forward") if self.inverse else np.fft.fft2(finite)
        parts = result.real.copy(), result.imag.copy()
        for place in np.argwhere(~known):
            add_term(parts, tuple(place), float(input_real[tuple(place)]), float(input_imag[tuple(place)]), sign)
        return rounded(parts, input_real.dtype)


class RFFT2D(Op, name="tosa.rfft2d"):
    """The transform of real numbers [N, H, W], of which the first W/2 + 1 columns are given; the others are their
    conjugates."""
    local_bound: bool = attribute("bool", default=False)

    def infer(self, input_real: Operand) -> tuple[TensorType, TensorType]:
        batch, height, width = transformed(input_real, "the input")
        half = TensorType((batch, height, None if width is None else width // 2 + 1), F32)
        return half, half

    def reference(self, input_real: Array) -> Parts:
        known = np.isfinite(input_real)
        result = np.fft.rfft2(np.where(known, input_real, 0).astype(np.float64))
        parts = result.real.copy(), result.imag.copy()
        for place in np.argwhere(~known):
            add_term(parts, tuple(place), float(input_real[tuple(place)]), None, 1.0, input_real.shape[2])
        corners = np.ix_(range(len(input_real)), halves(input_real.shape[1]), halves(input_real.shape[2]))
        parts[1][corners] = 0  # sums of sines of multiples of a half turn, which the specification omits
        return rounded(parts, input_real.dtype)


def transformed(operand: Operand, what: str) -> Shape:
    """Return the shape of an input: f32 [N, H, W], H and W powers of two."""
    shape = ranked(operand, 3, what)
    one_of(tensor(operand, what).element, (F32,), f"{what} of a Fourier transform")
    for extent, axis in zip(shape[1:], ("height", "width")):
        require(extent is None or (extent > 0 and extent & (extent - 1) == 0),
                f"the {axis} of {what} must be a power of two, it is {extent}", kind="shape")
    return shape


def halves(extent: int) -> tuple[int, ...]:
    """Return the frequencies whose angles are all multiples of a half turn."""
    return (0, extent // 2) if extent > 1 else (0,)


def add_term(parts: Parts, place: tuple[int, ...], real: float, imaginary: float | None, sign: float,
             width: int | None = None) -> None:
    """Add the contribution of the input at [n, y, x] by the specification's sum, where results are not NaN already. It is for
    infinities and NaN, which a fast transform would spread. `imaginary` is None for RFFT2D, whose input has `width` columns,
    and which omits the sines of multiples of a half turn."""
    n, y, x = place
    _, height, columns = parts[0].shape
    oy, ox = np.nonzero(~(np.isnan(parts[0][n]) & np.isnan(parts[1][n])))
    ay, ax = y * oy % height, x * ox % (width or columns)
    angle = sign * 2 * np.pi * (ay / height + ax / (width or columns))
    cosine, sine = np.cos(angle), np.sin(angle)
    with np.errstate(invalid="ignore"):
        if imaginary is None:
            turned = (2 * ay % height > 0) | (2 * ax % (width or columns) > 0)
            parts[0][n, oy, ox] += real * cosine
            parts[1][n, oy, ox] += np.where(turned, -real * sine, 0.0)
        else:
            parts[0][n, oy, ox] += real * cosine + imaginary * sine
            parts[1][n, oy, ox] += imaginary * cosine - real * sine


def rounded(parts: Parts, dtype: np.dtype[np.generic]) -> Parts:
    with np.errstate(over="ignore"):
        return parts[0].astype(dtype), parts[1].astype(dtype)
