"""Operators that are not left to a converter (`kernels`) -> TOSA, by the formulas of TensorFlow Lite's kernels."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..dialects.tosa.activation import Clamp
from ..flatbuffer.position import FilePosition
from ..graph.graph import BlockBuilder, Value
from ..graph.operator import Op
from ..graph.types import F16, F32
from .formulas import Formulas
from .records import OperatorRecord, SubgraphRecord, TensorRecord
from .schema import ELEMENTS


def quantized(write: Formulas, operands: Sequence[Value], result: TensorRecord) -> Value:
    assert result.scale is not None, "is_kernel_of_ours has seen it"
    return write.quantized(operands[0], result.scale, result.zero_point, ELEMENTS[result.type])


WRITE: dict[str, Callable[[Formulas, Sequence[Value], TensorRecord], Value]] = {
    "CAST": lambda write, operands, result: write.without_fraction(operands[0], ELEMENTS[result.type]),
    "QUANTIZE": quantized,
    "FLOOR_DIV": lambda write, operands, result: write.divided(*write.ranked(*operands))[0],
    "FLOOR_MOD": lambda write, operands, result: write.remainder(*write.ranked(*operands)),
    "MAXIMUM": lambda write, operands, result: write.greater(*write.ranked(*operands)),
    "MINIMUM": lambda write, operands, result: write.less(*write.ranked(*operands)),
    "GELU": lambda write, operands, result: write.gelu(operands[0]),
    "LOG_SOFTMAX": lambda write, operands, result: write.log_softmax(operands[0]),
}


def write_kernel(builder: BlockBuilder, graph: SubgraphRecord, operator: OperatorRecord, operands: Sequence[Value],
                 position: FilePosition) -> Value:
    """The result of an operator of the table."""
    return WRITE[operator.kind](Formulas(builder, position), operands, graph.tensors[operator.outputs[0]])


FARTHEST: dict[Any, float] = {F32: float(np.finfo(np.float32).max), F16: float(np.finfo(np.float16).max)}


def unbounded(op: Op, element: Any) -> Op:
    """CLAMP whose bound is the greatest finite number, with infinity instead: it stands for no bound."""
    if not isinstance(op, Clamp) or element not in FARTHEST:
        return op
    farthest = FARTHEST[element]
    low = -np.inf if op.min_val <= -farthest else op.min_val
    high = np.inf if op.max_val >= farthest else op.max_val
    return op if (low, high) == (op.min_val, op.max_val) else replace(op, min_val=float(low), max_val=float(high))
