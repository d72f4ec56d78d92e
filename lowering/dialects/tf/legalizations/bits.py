"""Bits of integers: TensorFlow's BitwiseAnd, BitwiseOr, BitwiseXor, Invert, LeftShift, RightShift; and Bitcast of any
numbers."""
from __future__ import annotations

from collections.abc import Callable
from operator import and_, invert, lshift, or_, rshift, xor

from .....runtime.errors import require
from ....formulas.bit_patterns import bitcast
from ....formulas.term import Term, maximum, minimum
from ....graph.graph import Operation, Value
from ...emitter import Emitter
from .constants import result_element
from .table import legalization


def bits(function: Callable[..., Term], name: str) -> None:
    """Register this function of integers for the operation."""
    @legalization(name)
    def emit(e: Emitter, operation: Operation, *operands: Value) -> Value:
        terms = [Term(e, x) for x in operands]
        for x in terms:
            require(x.element.is_integer, f"it takes integers, not {x.element}")
        return function(*terms).value


def amount(x: Term, y: Term) -> Term:
    """Return the shift distance, clamped to [0, width) as in TensorFlow."""
    most, known = x.element.bits - 1, y.value.constant
    is_inside = known is not None and known.size and known.min() >= 0 and known.max() <= most
    return y if is_inside else minimum(maximum(y, 0), most)


bits(and_, "tf.BitwiseAnd")
bits(or_, "tf.BitwiseOr")
bits(xor, "tf.BitwiseXor")
bits(invert, "tf.Invert")
bits(lambda x, y: lshift(x, amount(x, y)), "tf.LeftShift")
bits(lambda x, y: rshift(x, amount(x, y)), "tf.RightShift")


@legalization("tf.Bitcast")
def seen_as_bits(e: Emitter, operation: Operation, x: Value) -> Value:
    return bitcast(e, x, result_element(operation, x.tensor.element))
