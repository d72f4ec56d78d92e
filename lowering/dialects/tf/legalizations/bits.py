"""Bits of integers: TensorFlow's BitwiseAnd, BitwiseOr, BitwiseXor, Invert, LeftShift, RightShift."""
from __future__ import annotations

from .....runtime.errors import require
from ....graph.graph import Operation, Value
from ....graph.types import I32, ElementType
from .emitter import Emitter
from .table import legalization


def of_bits(e: Emitter, name: str, *operands: Value, **attributes: bool) -> Value:
    """An operator on bits; unsigned bytes go through i32, where zeros stand above them."""
    element = operands[0].tensor.element
    require(element.is_integer, f"it takes integers, not {element}")
    if element.kind != "unsigned":
        return e(name, *e.same_rank(*operands), **attributes)
    return e.cast(e(name, *e.same_rank(*(e.cast(x, I32) for x in operands)), **attributes), element)


def binary(operator: str, name: str) -> None:
    @legalization(name)
    def emit(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
        return of_bits(e, operator, x, y)


binary("bitwise_and", "tf.BitwiseAnd")
binary("bitwise_or", "tf.BitwiseOr")
binary("bitwise_xor", "tf.BitwiseXor")


@legalization("tf.Invert")
def invert(e: Emitter, operation: Operation, x: Value) -> Value:
    return of_bits(e, "bitwise_not", x)


@legalization("tf.LeftShift")
def left_shift(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    return of_bits(e, "logical_left_shift", x, amount(e, y))


@legalization("tf.RightShift")
def right_shift(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    """The sign comes in from above, for unsigned integers zeros."""
    return of_bits(e, "arithmetic_right_shift", x, amount(e, y), round=False)


def amount(e: Emitter, y: Value) -> Value:
    """How far to shift, brought into [0, width) as TensorFlow does it."""
    element: ElementType = y.tensor.element
    require(element.is_integer, f"it takes integers, not {element}")
    most = element.bits - 1
    if y.constant is not None and y.constant.size and y.constant.min() >= 0 and y.constant.max() <= most:
        return y
    return e.arithmetic("minimum", e.arithmetic("maximum", y, e.splat(0, y)), e.splat(most, y))
