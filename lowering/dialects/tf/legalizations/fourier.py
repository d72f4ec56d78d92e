"""TensorFlow's Fourier transforms, and the few operations on complex numbers that occur around them: the parts of complex
numbers are two tensors."""
from __future__ import annotations

from .....runtime.errors import Problem
from ....formulas.fourier import Parts, columns, is_native, mirrored, negative, pair, planes, rows, sized, transformed
from ....graph.graph import Operation, Value
from ...data import ComplexTensor
from ...emitter import Emitter, integers
from .table import legalization


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
    """Compute the greater part times the root of one plus the quotient's square, so that squares do not overflow."""
    a, b = (e("abs", part) for part in parts_of(z))
    most, least = e.arithmetic("maximum", a, b), e.arithmetic("minimum", a, b)
    is_zero = e.arithmetic("equal", most, e.splat(0, most))
    part = e.quotient(least, e.select(is_zero, e.splat(1, most), most))
    return e.product(most, e.square_root(e.sum(e.product(part, part), e.splat(1, most))))


def parts_of(z: Value | ComplexTensor) -> Parts:
    if isinstance(z, Value):
        raise Problem(f"the operand is {z.type}, no complex numbers", kind="type")
    return z.real, z.imaginary


# ---- transforms --------------------------------------------------------------------------------------------------
@legalization("tf.RFFT", "tf.RFFT2D")
def of_real(e: Emitter, operation: Operation, x: Value, length: Value) -> ComplexTensor:
    """Compute the first half of the frequencies of real numbers, and the middle one."""
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
    """Compute real numbers from the first half of the frequencies; the others are the conjugates."""
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


# ---- layout ------------------------------------------------------------------------------------------------------
# ---- products with matrices --------------------------------------------------------------------------------------
