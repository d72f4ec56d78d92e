"""QUANTIZE, MAXIMUM and MINIMUM of floats -> TOSA, and bounds of CLAMP, as TensorFlow Lite's kernels have them.

Arm's converter lets QUANTIZE drop the bits of integers that are out of range, where the kernel saturates, and rounds a half to
even, where it rounds away from zero; it lets RELU stop at the greatest finite number; and its MAXIMUM gives every NaN on.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..dialects.tosa.activation import Clamp
from ..dialects.tosa.binary import Add, Mul, Sub
from ..dialects.tosa.comparison import Greater, GreaterEqual
from ..dialects.tosa.conversion import Cast
from ..dialects.tosa.rescale import Rescale
from ..dialects.tosa.ternary import Select
from ..dialects.tosa.unary import Abs, Floor, Negate
from ..flatbuffer.position import FilePosition
from ..graph.graph import BlockBuilder, Value
from ..graph.operator import Op
from ..graph.types import F16, F32, I8, I16, I32, UI8
from .records import OperatorRecord, SubgraphRecord
from .schema import ELEMENTS
from .writer import Writer

STORED = (I8, UI8, I16)


def is_elementwise_of_ours(graph: SubgraphRecord, operator: OperatorRecord) -> bool:
    """Whether an operator is one of these, on tensors of known shapes."""
    tensors = [graph.tensors[t] for t in (*operator.inputs, *operator.outputs) if t >= 0]
    if any(None in t.shape for t in tensors):
        return False
    elements = [ELEMENTS.get(t.type) for t in tensors]
    match operator.kind, elements:
        case "QUANTIZE", [element, stored]:
            return element == F32 and stored in STORED and tensors[1].scale is not None
        case ("MAXIMUM" | "MINIMUM"), [first, second, result]:
            return first == second == result and first in (F16, F32)
    return False


def write_elementwise(builder: BlockBuilder, graph: SubgraphRecord, operator: OperatorRecord, operands: list[Value],
                      position: FilePosition) -> Value:
    writer = ElementwiseWriter(builder, position)
    if operator.kind != "QUANTIZE":
        a, b = operands
        return writer.greatest(a, b, operator.kind == "MINIMUM")
    result = graph.tensors[operator.outputs[0]]
    assert result.scale is not None, "is_elementwise_of_ours has seen it"
    return writer.quantized(operands[0], result.scale, result.zero_point, ELEMENTS[result.type])


class ElementwiseWriter(Writer):
    """Appends the operations of one of these operators."""
    __slots__ = ()

    def number(self, value: float, like: Value) -> Value:
        """A constant that takes part in operations with `like`."""
        return self.constant(np.full((1,) * like.tensor.rank, value, like.tensor.element.dtype))

    def greatest(self, a: Value, b: Value, is_minimum: bool) -> Value:
        """a > b ? a : b, or a < b ? a : b: the second operand where one is NaN, or they are equal."""
        rank = max(a.tensor.rank, b.tensor.rank)
        a, b = (self.reshaped(x, (1,) * (rank - x.tensor.rank) + x.tensor.dims) for x in (a, b))
        return self.add(Select(), self.add(Greater(), *((b, a) if is_minimum else (a, b))), a, b)

    def quantized(self, x: Value, scale: np.float32, zero_point: int, element: Any) -> Value:
        """clamp(round(x / scale) + zero point): halves are rounded away from zero."""
        y = self.add(Mul(), x, self.number(float(np.float32(1) / scale), x), self.constant(np.zeros(1, np.int8)))
        size = self.add(Abs(), y)
        whole = self.add(Floor(), size)
        rest = self.add(Sub(), size, whole)
        signed_type, offset = (I8, 128) if element == UI8 else (element, 0)
        least, greatest = (float(bound - zero_point) for bound in (element.minimum, element.maximum))
        one, zero = self.number(1, x), self.number(0, x)
        up = self.add(Select(), self.add(GreaterEqual(), rest, self.number(0.5, x)), one, zero)
        rounded = self.add(Add(), whole, up)
        shift = self.constant(np.zeros(1, np.float32))
        signed = self.add(Select(), self.add(Greater(), zero, y), self.add(Negate(), rounded, shift, shift), rounded)
        integer = self.add(Cast(to=I32), self.add(Clamp(min_val=least, max_val=greatest), signed))
        stored = self.add(Cast(to=signed_type), self.add(Add(), integer, self.number(zero_point - offset, integer)))
        return self.unsigned(stored) if element == UI8 else stored

    def unsigned(self, x: Value) -> Value:
        """x + 128 as unsigned bytes."""
        op = Rescale(scale32=True, rounding_mode="SINGLE_ROUND", per_channel=False, input_unsigned=False, output_unsigned=True,
                     to=UI8)
        return self.add(op, x, self.constant(np.array([1 << 30], np.int32)), self.constant(np.array([30], np.int8)),
                        self.constant(np.array([-128], np.int8)), self.constant(np.zeros(1, np.uint8)))


FARTHEST: dict[Any, float] = {F32: float(np.finfo(np.float32).max), F16: float(np.finfo(np.float16).max)}


def unbounded(op: Op, element: Any) -> Op:
    """CLAMP whose bound is the greatest finite number, with infinity instead: it stands for no bound."""
    if not isinstance(op, Clamp) or element not in FARTHEST:
        return op
    farthest = FARTHEST[element]
    low = -np.inf if op.min_val <= -farthest else op.min_val
    high = np.inf if op.max_val >= farthest else op.max_val
    return op if (low, high) == (op.min_val, op.max_val) else replace(op, min_val=float(low), max_val=float(high))
