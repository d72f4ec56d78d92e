"""TensorFlow's operations on complex numbers, which are two tensors: operations that move elements are applied to each part,
and arithmetic is computed on the parts. Audio features need them: cosine transforms, and spectra with the operations around
them."""
from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....formulas.complex_numbers import Complex, exponential, product, quotient
from ....formulas.term import Term
from ....graph.graph import Operation, Value
from ...data import ComplexTensor, Datum

if TYPE_CHECKING:
    from ...emitter import Emitter

MOVING = frozenset({
    "tf.StridedSlice", "tf.Slice", "tf.Reshape", "tf.ExpandDims", "tf.Squeeze", "tf.Transpose", "tf.ConcatV2", "tf.Pack",
    "tf.Pad", "tf.GatherV2", "tf.ReverseV2", "tf.Tile", "tf.BroadcastTo", "tf.Sum", "tf.Split", "tf.SplitV", "tf.Unpack"})
"""Operations that treat each part like real numbers; other operands are indices and extents."""

ARITHMETIC: dict[str, Callable[..., Complex]] = {
    "tf.Add": lambda x, y: Complex(x.real + y.real, x.imag + y.imag), "tf.Mul": product, "tf.RealDiv": quotient,
    "tf.Sub": lambda x, y: Complex(x.real - y.real, x.imag - y.imag), "tf.Neg": Complex.negated,
    "tf.Square": lambda x: product(x, x), "tf.Exp": exponential}
ARITHMETIC["tf.AddV2"] = ARITHMETIC["tf.Add"]
ARITHMETIC["tf.Div"] = quotient


CONSTANT = re.compile(r"dense<(.*)>\s*:\s*tensor<((?:\d+x)*)complex<f32>>", re.DOTALL)
PAIR = re.compile(r"\(\s*([^,()]+?)\s*,\s*([^,()]+?)\s*\)")


def complex_constant(e: Emitter, written: str) -> ComplexTensor | None:
    """Return a constant of complex numbers as the text has it; None for any other text."""
    found = CONSTANT.fullmatch(written.strip())
    if found is None:
        return None
    body, dims = found[1].strip(), tuple(int(n) for n in found[2].split("x")[:-1])
    if body.startswith('"0x'):
        numbers = np.frombuffer(bytes.fromhex(body[3:-1]), "<c8")
    else:
        numbers = np.array([complex(part(a), part(b)) for a, b in PAIR.findall(body)], np.complex64)
    if numbers.size not in (1, math.prod(dims)) or not numbers.size:
        return None
    whole = np.broadcast_to(numbers.reshape(dims if numbers.size == math.prod(dims) else ()), dims)
    return ComplexTensor(*(e.constant(np.ascontiguousarray(half, np.float32)) for half in (whole.real, whole.imag)))


def part(written: str) -> float:
    """Return a float as MLIR writes it: by its bits if it is infinite or NaN."""
    return float(np.uint32(int(written, 16)).view(np.float32)) if written.startswith("0x") else float(written)


def takes_complex(name: str, operands: Sequence[Datum]) -> bool:
    """True if this module lowers an operation: it is in one of the tables, with a complex operand."""
    return any(isinstance(o, ComplexTensor) for o in operands) and (name in MOVING or name in ARITHMETIC)


def of_complex_numbers(name: str, plain: Callable[..., Any], e: Emitter, operation: Operation, operands: Sequence[Datum]
                       ) -> Any:
    """Return the results of such an operation; `plain` is the legalization for real numbers."""
    if name in ARITHMETIC:
        found = ARITHMETIC[name](*(number(e, o) for o in operands))
        return ComplexTensor(found.real.value, found.imag.value)
    real = plain(e, operation, *(o.real if isinstance(o, ComplexTensor) else o for o in operands))
    imaginary = plain(e, operation, *(o.imaginary if isinstance(o, ComplexTensor) else o for o in operands))
    if not isinstance(real, tuple):
        return ComplexTensor(real, imaginary)
    return tuple(ComplexTensor(a, b) for a, b in zip(real, imaginary, strict=True))


def number(e: Emitter, operand: Datum) -> Complex:
    """Return the two parts of a number. The second part of a real operand is 0; TensorFlow never mixes real and complex
    operands."""
    if isinstance(operand, ComplexTensor):
        return Complex(Term(e, operand.real), Term(e, operand.imaginary))
    assert isinstance(operand, Value), "takes_complex has seen that operands are tensors"
    return Complex(Term(e, operand), Term(e, operand) * 0)
