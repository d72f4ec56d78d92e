"""Operators of TensorFlow Lite that are written as TOSA here, with the results of its kernels: a converter's are others.

Arm's converter rounds where CAST drops the fraction; lets QUANTIZE drop the bits of integers that are out of range and round a
half to even; forgets the divisor in FLOOR_MOD, and makes no TOSA of it for integers; may be one off in FLOOR_DIV; lets
LOG_SOFTMAX overflow; has GELU to three digits; gives every NaN of MAXIMUM on; and stops RELU at the greatest finite number.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ..dialects.tosa.activation import Clamp
from ..flatbuffer.position import FilePosition
from ..graph.graph import BlockBuilder, Value
from ..graph.operator import Op
from ..graph.types import F16, F32, I8, I16, I32, I64, UI8, ElementType
from .formulas import Formulas
from .records import OperatorRecord, SubgraphRecord, TensorRecord
from .schema import ELEMENTS

Elements: TypeAlias = Sequence[ElementType | None]
"""Element types of an operator's operands and result."""
FLOATS = (F16, F32)


@dataclass(frozen=True, slots=True)
class Kernel:
    """When an operator is written here, by its element types and its record, and how."""
    takes: Callable[[Elements, OperatorRecord], bool]
    write: Callable[[Formulas, Sequence[Value], TensorRecord], Value]


def all_in(*types: ElementType) -> Callable[[Elements, OperatorRecord], bool]:
    """Operands and result of one of these types."""
    return lambda elements, operator: len(set(elements)) == 1 and elements[0] in types


def quantizes(elements: Elements, operator: OperatorRecord) -> bool:
    return elements[0] == F32 and elements[-1] in (I8, UI8, I16)


def drops_fractions(elements: Elements, operator: OperatorRecord) -> bool:
    return elements[0] in FLOATS and elements[-1] in (I8, I16, I32, I64)


def is_exact(elements: Elements, operator: OperatorRecord) -> bool:
    return set(elements) == {F32} and not operator.options["approximate"]


def quantized(write: Formulas, operands: Sequence[Value], result: TensorRecord) -> Value:
    assert result.scale is not None, "is_kernel_of_ours has seen it"
    return write.quantized(operands[0], result.scale, result.zero_point, ELEMENTS[result.type])


KERNELS: dict[str, Kernel] = {
    "CAST": Kernel(drops_fractions, lambda w, v, r: w.without_fraction(v[0], ELEMENTS[r.type])),
    "QUANTIZE": Kernel(quantizes, quantized),
    "FLOOR_DIV": Kernel(all_in(*FLOATS), lambda w, v, r: w.divided(*w.ranked(*v))[0]),
    "FLOOR_MOD": Kernel(all_in(*FLOATS, I32), lambda w, v, r: w.remainder(*w.ranked(*v))),
    "MAXIMUM": Kernel(all_in(*FLOATS), lambda w, v, r: w.greater(*w.ranked(*v))),
    "MINIMUM": Kernel(all_in(*FLOATS), lambda w, v, r: w.less(*w.ranked(*v))),
    "GELU": Kernel(is_exact, lambda w, v, r: w.gelu(v[0])),
    "LOG_SOFTMAX": Kernel(all_in(F32), lambda w, v, r: w.log_softmax(v[0])),
}
COUNTS = {"FLOOR_DIV": 2, "FLOOR_MOD": 2, "MAXIMUM": 2, "MINIMUM": 2}
"""Operands, where it is not one."""


def is_kernel_of_ours(graph: SubgraphRecord, operator: OperatorRecord) -> bool:
    """Whether an operator is written here: one of the table, on tensors of one rank or of known shapes."""
    kernel = KERNELS.get(operator.kind)
    numbers = (*operator.inputs, *operator.outputs)
    if kernel is None or min(numbers) < 0 or len(operator.outputs) != 1:
        return False
    tensors = [graph.tensors[t] for t in numbers]
    is_open = any(None in t.shape for t in tensors)
    if len(operator.inputs) != COUNTS.get(operator.kind, 1) or (is_open and len({len(t.shape) for t in tensors}) > 1):
        return False
    if (operator.kind == "QUANTIZE" and tensors[-1].scale is None) or (operator.kind == "LOG_SOFTMAX" and not tensors[0].shape):
        return False
    return kernel.takes([ELEMENTS.get(t.type) for t in tensors], operator)


def write_kernel(builder: BlockBuilder, graph: SubgraphRecord, operator: OperatorRecord, operands: Sequence[Value],
                 position: FilePosition) -> Value:
    """The result of an operator of the table."""
    return KERNELS[operator.kind].write(Formulas(builder, position), operands, graph.tensors[operator.outputs[0]])


FARTHEST: dict[Any, float] = {F32: float(np.finfo(np.float32).max), F16: float(np.finfo(np.float16).max)}


def unbounded(op: Op, element: Any) -> Op:
    """CLAMP whose bound is the greatest finite number, with infinity instead: it stands for no bound."""
    if not isinstance(op, Clamp) or element not in FARTHEST:
        return op
    farthest = FARTHEST[element]
    low = -np.inf if op.min_val <= -farthest else op.min_val
    high = np.inf if op.max_val >= farthest else op.max_val
    return op if (low, high) == (op.min_val, op.max_val) else replace(op, min_val=float(low), max_val=float(high))
