"""Transforms of signals: DFT, STFT, MelWeightMatrix. Complex numbers are pairs along the last axis."""
from __future__ import annotations

import math

import numpy as np

from ....runtime.errors import Problem
from ...formulas.fourier import mirrored, planes, rows, sized, transformed
from ...formulas.indexing import gathered
from ...formulas.working_types import working_type
from ...graph.graph import Value
from ...graph.types import Array
from ..emitter import Emitter, integers, known
from .along_axis import axis_of
from .element_types import element_of
from .operator import Operator, operator


def parts(e: Emitter, x: Value) -> tuple[Value, Value | None]:
    """Return real and imaginary parts, [...], of pairs [..., 2] or of real numbers [..., 1]."""
    *outer, last = x.tensor.dims
    if last not in (1, 2):
        raise Problem(f"{x.type} is neither real nor complex: its last axis has 1 or 2 numbers", kind="shape")
    found = [e.reshape(e.slice(x, (*[0] * len(outer), k), (*outer, 1)), outer) for k in range(last)]
    return found[0], found[1] if last == 2 else None


def pairs(e: Emitter, real: Value, imaginary: Value) -> Value:
    dims = (*real.tensor.dims, 1)
    return e.concat([e.reshape(real, dims), e.reshape(imaginary, dims)], len(dims) - 1)


def spectrum(e: Emitter, real: Value, imaginary: Value | None, sign: int) -> tuple[Value, Value]:
    """Return the transform along the last axis; the inverse is divided by the length."""
    dims = real.tensor.dims
    image = planes(e, real, 1)
    if imaginary is not None:
        first, second = transformed(e, image, planes(e, imaginary, 1), sign)
    else:
        first, second = rows(e, image, None, dims[-1], sign, dims[-1])
        if sign > 0:
            first, second = (e.product(v, e.splat(1 / dims[-1], v)) for v in (first, second))
    return e.reshape(first, dims), e.reshape(second, dims)


@operator("DFT")
class DFT(Operator):
    """A transform along an axis, an attribute before version 20; a length crops or pads with zeros. One-sided: the first half
    of the frequencies, from which the inverse computes real numbers."""
    axis: int = 1
    inverse: int = 0
    onesided: int = 0

    def along(self, given: int | None, rank: int) -> int:
        axis = (self.axis if self.version < 20 else -2) if given is None else given
        found = axis_of(axis, rank)
        if found == rank - 1:
            raise ValueError("the last axis holds the parts of numbers")
        return found

    def reference(self, x: Array, length: Array | None = None, axis: Array | None = None) -> Array:
        at = self.along(None if axis is None else int(np.reshape(axis, ())), x.ndim)
        wide = x.astype(np.float64)
        z = wide[..., 0] + (1j * wide[..., 1] if x.shape[-1] == 2 else 0)
        n = None if length is None else int(np.reshape(length, ()))
        if self.inverse and self.onesided:
            n = 2 * (z.shape[at] - 1) if n is None else n
            return np.asarray(np.fft.irfft(z, n, at)[..., None], x.dtype)
        n = z.shape[at] if n is None else n
        found = (np.fft.ifft if self.inverse else np.fft.fft)(z, n, at)
        if self.onesided:
            found = np.take(found, range(n // 2 + 1), at)
        return np.asarray(np.stack([found.real, found.imag], -1), x.dtype)

    def lower(self, e: Emitter, x: Value, length: Value | None = None, axis: Value | None = None) -> Value:
        own, rank = x.tensor.element, x.tensor.rank
        at = self.along(None if axis is None else integers(axis, "the axis")[0], rank)
        order = [*(a for a in range(rank - 1) if a != at), at]
        back = [order.index(a) for a in range(rank - 1)]
        real, imaginary = parts(e, e.cast(x, working_type(own, False, True)))
        real = e.transpose(real, order)
        imaginary = None if imaginary is None else e.transpose(imaginary, order)
        n = real.tensor.dims[-1] if length is None else integers(length, "the length of the transform")[0]
        if self.inverse and self.onesided:
            n = 2 * (real.tensor.dims[-1] - 1) if length is None else n
            return e.cast(self.real_again(e, real, imaginary, n, back), own)
        real = sized(e, real, (n,))
        imaginary = None if imaginary is None else sized(e, imaginary, (n,))
        first, second = spectrum(e, real, imaginary, 1 if self.inverse else -1)
        if self.onesided:
            first, second = (sized(e, v, (n // 2 + 1,)) for v in (first, second))
        return e.cast(pairs(e, e.transpose(first, back), e.transpose(second, back)), own)

    def real_again(self, e: Emitter, real: Value, imaginary: Value | None, n: int, back: list[int]) -> Value:
        half = n // 2 + 1
        imaginary = e.product(real, e.splat(0, real)) if imaginary is None else imaginary
        first, second = (planes(e, sized(e, v, (half,)), 1) for v in (real, imaginary))
        whole, _ = transformed(e, mirrored(e, first, n), mirrored(e, second, n, negated=True), 1)
        dims = (*real.tensor.dims[:-1], n)
        found = e.transpose(e.reshape(whole, dims), back)
        return e.reshape(found, (*found.tensor.dims, 1))


@operator("STFT")
class STFT(Operator):
    """Short-time Fourier transform: spectra [batch, windows, frequencies, 2] of a signal [batch, length, 1 or 2], or a real
    signal [batch, length], with a stride of `step` samples between windows."""
    onesided: int = 1

    def length(self, window: int | None, frame: int | None, signal: int) -> int:
        found = window if frame is None else frame
        if found is None:
            raise ValueError("it needs a window or a frame length")
        if not 0 < found <= signal:
            raise ValueError(f"windows of {found} do not fit a signal of {signal}")
        return found

    def reference(self, x: Array, step: Array, window: Array | None = None, frame: Array | None = None) -> Array:
        x = x[..., None] if x.ndim == 2 else x
        hop = int(np.reshape(step, ()))
        own = None if frame is None else int(np.reshape(frame, ()))
        n = self.length(None if window is None else len(window), own, x.shape[1])
        wide = x.astype(np.float64)
        z = wide[..., 0] + (1j * wide[..., 1] if x.shape[-1] == 2 else 0)
        factor = np.ones(n) if window is None else window.astype(np.float64)
        starts = range(0, x.shape[1] - n + 1, hop)
        found = np.stack([np.fft.fft(z[:, s:s + n] * factor, axis=-1) for s in starts], 1)
        found = found[..., :n // 2 + 1] if self.onesided else found
        return np.asarray(np.stack([found.real, found.imag], -1), x.dtype)

    def lower(self, e: Emitter, x: Value, step: Value, window: Value | None = None, frame: Value | None = None) -> Value:
        x = e.reshape(x, (*x.tensor.dims, 1)) if x.tensor.rank == 2 else x
        own, hop = x.tensor.element, integers(step, "the step")[0]
        length = None if frame is None else integers(frame, "the frame length")[0]
        n = self.length(None if window is None else window.tensor.size, length, x.tensor.dims[1])
        if hop < 1:
            raise Problem(f"the step is {hop}", kind="argument")
        places = np.arange(0, x.tensor.dims[1] - n + 1, hop, dtype=np.int32)[:, None] + np.arange(n, dtype=np.int32)[None]
        real, imaginary = parts(e, e.cast(x, working_type(own, False, True)))

        def framed(v: Value) -> Value:
            found = gathered(e, v, e.constant(places), 1)
            return found if window is None else e.product(found, e.cast(window, v.tensor.element))
        first, second = spectrum(e, framed(real), None if imaginary is None else framed(imaginary), -1)
        if self.onesided:
            first, second = (sized(e, v, (n // 2 + 1,)) for v in (first, second))
        return e.cast(pairs(e, first, second), own)


@operator("MelWeightMatrix")
class MelWeightMatrix(Operator):
    """Triangles over the frequencies of a transform, evenly spaced on the mel scale: [length // 2 + 1, bins]."""
    output_datatype: int = 1

    def reference(self, bins: Array, length: Array, rate: Array, low: Array, high: Array) -> Array:
        count, n, hertz = (int(np.reshape(v, ())) for v in (bins, length, rate))
        ends = [2595 * math.log10(1 + float(np.reshape(v, ())) / 700) for v in (low, high)]
        step = (ends[1] - ends[0]) / (count + 2)
        places = [int((700 * (10**((ends[0] + k * step) / 2595) - 1)) * (n + 1) // hertz) for k in range(count + 2)]
        found = np.zeros((n // 2 + 1, count))
        for k in range(count):
            first, middle, last = places[k:k + 3]
            if middle == first:
                found[middle, k] = 1
            for at in range(first, middle + 1):
                if middle > first:
                    found[at, k] = (at - first) / (middle - first)
            for at in range(middle, last):
                if last > middle:
                    found[at, k] = (last - at) / (last - middle)
        return found.astype(element_of(self.output_datatype).dtype)

    def lower(self, e: Emitter, *numbers: Value) -> Value:
        given = [known(v, "a number of a mel matrix") for v in numbers]
        return e.constant(self.reference(*given), element_of(self.output_datatype))
