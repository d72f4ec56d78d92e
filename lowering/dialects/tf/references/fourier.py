"""Fourier transforms and complex numbers, by NumPy's own."""
from __future__ import annotations

import numpy as np

from ....graph.graph import Operation
from ....graph.types import Array
from .table import elementwise, reference

COMPLEX = {"float32": np.complex64, "float64": np.complex128}

elementwise(np.real, "tf.Real")
elementwise(np.imag, "tf.Imag")
elementwise(np.conj, "tf.Conj")
elementwise(np.abs, "tf.ComplexAbs")


@reference("tf.Complex")
def complex_(operation: Operation, real: Array, imaginary: Array) -> Array:
    return np.asarray(real + 1j * imaginary).astype(COMPLEX[real.dtype.name])


def axes_of(operation: Operation) -> tuple[int, ...]:
    return (-2, -1) if operation.op.spelling.endswith("2D") else (-1,)  # type: ignore[attr-defined]


@reference("tf.RFFT", "tf.RFFT2D")
def of_real(operation: Operation, x: Array, length: Array) -> Array:
    """Return the transform of real numbers. NumPy crops, or pads with zeros, to the lengths as TensorFlow does."""
    found = np.fft.rfftn(x.astype(np.float64), [int(n) for n in length], axes_of(operation))
    return np.asarray(found).astype(COMPLEX[x.dtype.name])


@reference("tf.IRFFT", "tf.IRFFT2D")
def back_to_real(operation: Operation, z: Array, length: Array) -> Array:
    found = np.fft.irfftn(z.astype(np.complex128), [int(n) for n in length], axes_of(operation))
    return np.asarray(found).astype(z.real.dtype)


@reference("tf.FFT", "tf.FFT2D")
def of_complex(operation: Operation, z: Array) -> Array:
    return np.asarray(np.fft.fftn(z.astype(np.complex128), axes=axes_of(operation))).astype(z.dtype)


@reference("tf.IFFT", "tf.IFFT2D")
def back_to_complex(operation: Operation, z: Array) -> Array:
    return np.asarray(np.fft.ifftn(z.astype(np.complex128), axes=axes_of(operation))).astype(z.dtype)
