"""`tosaic.ops.fft`: NumPy's Fourier transforms of traced tensors, real or complex. They also run where `numpy.fft` is called.

TOSA's FFT2D transforms a length n that is a power of two. Other short lengths (and those of float64) are products with the
matrix of roots of unity. Other long lengths become a convolution, computed by three transforms of a power of two (L. I.
Bluestein, 1970, https://doi.org/10.1109/TAU.1970.1162132).
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...lowering.formulas import fourier
from ...lowering.formulas.fourier import Parts
from ...lowering.formulas.term import Term
from ...lowering.formulas.tosa_builder import TosaBuilder
from ...lowering.graph.graph import Value
from ...lowering.graph.types import F32, F64
from .arithmetic import astype, multiply
from .complex_tensor import ComplexTensor, complex_tensor, is_complex
from .conversion import axis_of, tensor
from .creation import asarray, zeros_like
from .layout import moveaxis
from .rearranging import roll
from .tensor import Tensor
from .trace import problem, recorded_all

LONGEST_PRODUCT, LONGEST_PRODUCT_IN_F64 = 256, 4096
"""Maximum number of elements of a transform that is a product with a matrix; for f64, which has no other way, that matrix has
256 MiB."""
NORMS = ("backward", "ortho", "forward", None)
Axes = Sequence[int] | None


# ---- one axis ----------------------------------------------------------------------------------------------------
def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> ComplexTensor:
    """The discrete Fourier transform along an axis, truncated or padded with zeros to `n` elements."""
    return along(complex_of(a), n, axis, -1, norm)


def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> ComplexTensor:
    """The inverse of `fft`."""
    return along(complex_of(a), n, axis, 1, norm)


def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> ComplexTensor:
    """The first n // 2 + 1 frequencies of real numbers; the other frequencies are their conjugates."""
    x = real_of(a, "rfft")
    length = length_of(x.shape, n, axis)
    if is_long(x, length):
        whole = along(ComplexTensor(x, zeros_like(x)), length, axis, -1, norm)
        kept = tuple(slice(length // 2 + 1) if i == axis_of(axis, x.ndim) else slice(None) for i in range(x.ndim))
        return whole[kept]
    found = last_axis(lambda e, v: half(e, v, length), [x], axis, length // 2 + 1)
    return scaled(ComplexTensor(*found), length, -1, norm)


def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `rfft`: `n` real numbers, or without `n` an even number of them."""
    z = complex_of(a)
    length = 2 * (z.shape[axis_of(axis, z.ndim)] - 1) if n is None else n
    length = length_of(z.shape, length, axis)
    whole = last_axis(lambda e, real, imag: mirrored(e, real, imag, length), [z.real, z.imag], axis, length)
    return along(ComplexTensor(*whole), length, axis, 1, norm).real


def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """The real transform of a Hermitian-symmetric signal, given its first half."""
    z = complex_of(a)
    return irfft(ComplexTensor(z.real, multiply(z.imag, -1.0)), n, axis, opposite(norm))


def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> ComplexTensor:
    """The inverse of `hfft`."""
    z = rfft(a, n, axis, opposite(norm))
    return ComplexTensor(z.real, multiply(z.imag, -1.0))


# ---- several axes ------------------------------------------------------------------------------------------------
def fftn(a: Any, s: Axes = None, axes: Axes = None, norm: str | None = None) -> ComplexTensor:
    """The transform along each of the given axes; without `axes` along all."""
    return each(complex_of(a), s, axes, -1, norm)


def ifftn(a: Any, s: Axes = None, axes: Axes = None, norm: str | None = None) -> ComplexTensor:
    """The inverse of `fftn`."""
    return each(complex_of(a), s, axes, 1, norm)


def rfftn(a: Any, s: Axes = None, axes: Axes = None, norm: str | None = None) -> ComplexTensor:
    """`rfft` along the last of the given axes, then `fft` along the others."""
    x = real_of(a, "rfftn")
    lengths, places = sizes_and_axes(x.shape, s, axes)
    found = rfft(x, lengths[-1], places[-1], norm)
    return each(found, lengths[:-1], places[:-1], -1, norm)


def irfftn(a: Any, s: Axes = None, axes: Axes = None, norm: str | None = None) -> Tensor:
    """The inverse of `rfftn`."""
    z = complex_of(a)
    lengths, places = sizes_and_axes(z.shape, s, axes)
    length = lengths[-1] if s is not None else 2 * (z.shape[places[-1]] - 1)
    return irfft(each(z, lengths[:-1], places[:-1], 1, norm), length, places[-1], norm)


def fft2(a: Any, s: Axes = None, axes: Axes = (-2, -1), norm: str | None = None) -> ComplexTensor:
    """`fftn` along the last two axes."""
    return fftn(a, s, axes, norm)


def ifft2(a: Any, s: Axes = None, axes: Axes = (-2, -1), norm: str | None = None) -> ComplexTensor:
    """The inverse of `fft2`."""
    return ifftn(a, s, axes, norm)


def rfft2(a: Any, s: Axes = None, axes: Axes = (-2, -1), norm: str | None = None) -> ComplexTensor:
    """`rfftn` along the last two axes."""
    return rfftn(a, s, axes, norm)


def irfft2(a: Any, s: Axes = None, axes: Axes = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of `rfft2`."""
    return irfftn(a, s, axes, norm)


def each(z: ComplexTensor, s: Axes, axes: Axes, sign: int, norm: str | None) -> ComplexTensor:
    """Transform along several axes, one after the other."""
    lengths, places = sizes_and_axes(z.shape, s, axes)
    for length, axis in zip(reversed(lengths), reversed(places)):
        z = along(z, length, axis, sign, norm)
    return z


def sizes_and_axes(shape: Sequence[int], s: Axes, axes: Axes) -> tuple[list[int], list[int]]:
    """Return the length and the index of each transformed axis; a length of -1 is the whole extent."""
    rank = len(shape)
    places = [axis_of(a, rank) for a in (range(rank)[-len(s):] if s is not None and axes is None else axes if axes is not None
                                         else range(rank))]
    given = [-1] * len(places) if s is None else list(s)
    if len(given) != len(places):
        raise problem(f"{len(given)} lengths for {len(places)} axes", "argument")
    return [shape[a] if n in (-1, None) else n for n, a in zip(given, places)], places


# ---- order of frequencies ----------------------------------------------------------------------------------------
def fftshift(x: Any, axes: int | Sequence[int] | None = None) -> Any:
    """Shift the frequency 0 to the middle."""
    return shifted(x, axes, lambda n: n // 2)


def ifftshift(x: Any, axes: int | Sequence[int] | None = None) -> Any:
    """The inverse of `fftshift`."""
    return shifted(x, axes, lambda n: -(n // 2))


def shifted(x: Any, axes: int | Sequence[int] | None, by: Callable[[int], int]) -> Any:
    parts = [x.real, x.imag] if isinstance(x, ComplexTensor) else [tensor(x)]
    rank = parts[0].ndim
    places = [axis_of(a, rank) for a in (range(rank) if axes is None else [axes] if isinstance(axes, int) else axes)]
    found = [roll(part, [by(part.shape[a]) for a in places], places) for part in parts]
    return ComplexTensor(*found) if len(found) == 2 else found[0]


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of `fft`, for samples with a spacing of `d`."""
    return asarray(np.fft.fftfreq(n, d), F32 if dtype is None else dtype)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of `rfft`, for samples with a spacing of `d`."""
    return asarray(np.fft.rfftfreq(n, d), F32 if dtype is None else dtype)


# ---- by formulas on images ---------------------------------------------------------------------------------------
def along(z: ComplexTensor, n: int | None, axis: int, sign: int, norm: str | None) -> ComplexTensor:
    """Transform along one axis; `sign` is that of the exponent."""
    length = length_of(z.shape, n, axis)
    if is_long(z, length):
        return scaled(by_convolution(z, length, axis, sign), length, sign, norm)

    def transformed(e: TosaBuilder, real: Value, imag: Value) -> Parts:
        return fourier.transformed(e, image(e, real, length), image(e, imag, length), sign)
    found = last_axis(transformed, [z.real, z.imag], axis, length)
    return scaled(ComplexTensor(*found), length, sign, norm)


def image(e: TosaBuilder, x: Value, length: int) -> Value:
    """Return the last axis as images of one row of that length each."""
    return fourier.planes(e, fourier.sized(e, x, (length,)), 1)


def half(e: TosaBuilder, x: Value, length: int) -> Parts:
    """Return the first half of the frequencies."""
    rows = image(e, x, length)
    if fourier.is_native(rows):
        return fourier.pair(e, "rfft2d", rows)
    return fourier.rows(e, rows, None, length, -1, length // 2 + 1)


def mirrored(e: TosaBuilder, real: Value, imag: Value, length: int) -> Parts:
    """Return all frequencies from the first half."""
    first, second = (image(e, part, length // 2 + 1) for part in (real, imag))
    return fourier.mirrored(e, first, length), fourier.mirrored(e, second, length, negated=True)


def is_long(x: Tensor | ComplexTensor, length: int) -> bool:
    """True if a product would be too large. Raise a Problem if there is no other way."""
    if length & (length - 1) == 0 and x.element == F32:
        return False
    if x.element == F64 and length > LONGEST_PRODUCT_IN_F64:
        raise problem(f"a transform of {length} elements of float64", "unsupported",
                      help=f"at most {LONGEST_PRODUCT_IN_F64}, or as complex64")
    return x.element == F32 and length > LONGEST_PRODUCT


def by_convolution(z: ComplexTensor, length: int, axis: int, sign: int) -> ComplexTensor:
    """Compute Bluestein's transform: as j k = (j^2 + k^2 - (k - j)^2) / 2, it is a convolution with a chirp between two
    products with the chirp."""
    from . import ops as functions
    ops: Any = functions
    size = 1 << (2 * length - 2).bit_length()
    place = axis_of(axis, z.ndim)
    squares = np.arange(length, dtype=np.int64) ** 2 % (2 * length)
    chirp = np.exp(sign * 1j * np.pi / length * squares)
    around = np.zeros(size, np.complex128)
    around[:length] = chirp.conj()
    around[size - length + 1:] = chirp[:0:-1].conj()
    kernel = np.fft.fft(around) / (length if sign > 0 else 1)
    rows = ComplexTensor(*last_axis(lambda e, real, imag: (image(e, real, length), image(e, imag, length)), [z.real, z.imag],
                                    axis, length))
    rows = ops.moveaxis(rows, place, -1)
    found = ifft(ops.multiply(fft(ops.multiply(rows, chirp), size), kernel))[..., :length]
    return ops.moveaxis(ops.multiply(found, chirp), -1, place)


def last_axis(formula: Callable[..., Parts], parts: Sequence[Tensor], axis: int, length: int) -> tuple[Tensor, ...]:
    """Apply a formula on one-row images along an axis, which is moved to the end and back."""
    place = axis_of(axis, parts[0].ndim)
    given = [moveaxis(part, place, -1) for part in parts]
    shape = (*given[0].shape[:-1], length)

    def of_terms(*terms: Term) -> tuple[Term, ...]:
        e = terms[0].builder
        return tuple(terms[0].of(e.reshape(part, shape)) for part in formula(e, *(t.value for t in terms)))

    return tuple(moveaxis(part, -1, place) for part in recorded_all(of_terms, *given))


def scaled(z: ComplexTensor, length: int, sign: int, norm: str | None) -> ComplexTensor:
    return ComplexTensor(*(scaled_part(part, length, sign, norm) for part in (z.real, z.imag)))


def scaled_part(x: Tensor, length: int, sign: int, norm: str | None) -> Tensor:
    """Scale one part by the norm; the formulas divide on the way back, as "backward" does."""
    if norm not in NORMS:
        raise problem(f"norm {norm!r} is none of backward, ortho and forward", "argument")
    factor = {"ortho": math.sqrt(length) if sign > 0 else 1 / math.sqrt(length),
              "forward": float(length) if sign > 0 else 1 / length}.get(norm or "backward", 1.0)
    return x if factor == 1 else multiply(x, factor)


def opposite(norm: str | None) -> str:
    return {"forward": "backward", "ortho": "ortho"}.get(norm or "backward", "forward" if norm in NORMS else str(norm))


def length_of(shape: Sequence[int], n: int | None, axis: int) -> int:
    """Return the number of elements to transform. Raise a Problem if there is no such axis, or no element."""
    if not shape:
        raise problem("a tensor of rank 0 has no axis to transform", "shape")
    found = shape[axis_of(axis, len(shape))] if n is None else n
    if found < 1:
        raise problem(f"{found} elements cannot be transformed", "argument")
    return found


def complex_of(a: Any) -> ComplexTensor:
    """Return the operand of a complex transform; numbers that are not floats become f32."""
    if is_complex(a):
        return complex_tensor(a)
    x = real_of(a, "fft")
    return ComplexTensor(x, zeros_like(x))


def real_of(a: Any, name: str) -> Tensor:
    if is_complex(a):
        raise problem(f"{name} takes real numbers", help="tosaic.ops.fft.fft takes complex ones")
    x = tensor(a)
    return x if x.element in (F32, F64) else astype(x, F32)


__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
           "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"]
