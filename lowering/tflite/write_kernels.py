"""Lowering to TOSA of the operators that are not left to a converter (`kernels`), by the formulas of TensorFlow Lite's
kernels."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..dialects.tosa.activation import Clamp
from ..formulas.rounding import clamp
from ..formulas.softmax import log_softmax, softmax
from ..formulas.term import Function, Term
from ..formulas.tosa_builder import PlacedBuilder, TosaBuilder
from ..graph.file_position import FilePosition
from ..graph.graph import BlockBuilder, Value
from ..graph.operator import Op
from ..graph.types import F16, F32, UI8
from .kernel_formulas import floored_division, gelu, greater, less, quantized, remainder
from .records import OperatorRecord, Options, SubgraphRecord, TensorRecord
from .schema import ELEMENTS


def operand_terms(builder: TosaBuilder, operands: Sequence[Value]) -> list[Term]:
    return [Term(builder, x) for x in builder.same_rank(*operands)]


def quantize(x: Term, result: TensorRecord, options: Options) -> Term:
    assert result.scale is not None, "is_kernel_of_ours has seen it"
    return quantized(x, result.scale, result.zero_point, ELEMENTS[result.type])


def cast(x: Term, result: TensorRecord, options: Options) -> Term:
    """Drop the fraction; an unsigned byte saturates."""
    element = ELEMENTS[result.type]
    return (clamp(x, 0, element.maximum) if element == UI8 and x.element.is_float else x).cast(element)


def softmax_with_factor(x: Term, result: TensorRecord, options: Options) -> Term:
    return softmax(x * float(options["beta"]), x.value.tensor.rank - 1)


def of_operands(function: Function) -> Callable[..., Term]:
    """Return a formula that ignores the result's record and the options."""
    return lambda *terms: function(*terms[:-2])


WRITE: dict[str, Callable[..., Term]] = {
    "CAST": cast, "QUANTIZE": quantize, "SOFTMAX": softmax_with_factor, "FLOOR_DIV": of_operands(floored_division),
    "FLOOR_MOD": of_operands(remainder), "MAXIMUM": of_operands(greater), "MINIMUM": of_operands(less),
    "GELU": of_operands(gelu), "LOG_SOFTMAX": of_operands(lambda x: log_softmax(x, x.value.tensor.rank - 1))}
"""Formulas of terms: the operands, the record of the result, and the options."""


def write_kernel(block: BlockBuilder, graph: SubgraphRecord, operator: OperatorRecord, operands: Sequence[Value],
                 position: FilePosition) -> Value:
    """Return the result of an operator of the table."""
    terms = operand_terms(PlacedBuilder(block, position), operands)
    return WRITE[operator.kind](*terms, graph.tensors[operator.outputs[0]], operator.options).value


FARTHEST: dict[Any, float] = {F32: float(np.finfo(np.float32).max), F16: float(np.finfo(np.float16).max)}


def unbounded(op: Op, element: Any) -> Op:
    """Return CLAMP with an infinite bound in place of the greatest finite number, which means no bound."""
    if not isinstance(op, Clamp) or element not in FARTHEST:
        return op
    farthest = FARTHEST[element]
    low = -np.inf if op.min_val <= -farthest else op.min_val
    high = np.inf if op.max_val >= farthest else op.max_val
    return op if (low, high) == (op.min_val, op.max_val) else replace(op, min_val=float(low), max_val=float(high))
