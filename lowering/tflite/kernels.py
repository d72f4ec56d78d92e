"""TensorFlow Lite operators that this package lowers to TOSA itself because a converter's results differ from those of its
kernels.

Arm's converter rounds where CAST drops the fraction, and is 128 off for unsigned bytes; lets QUANTIZE drop the bits of integers
that are out of range and round a half to even; omits the divisor in FLOOR_MOD, and does not lower it for integers; may be one
off in FLOOR_DIV; lets LOG_SOFTMAX overflow, and leaves SOFTMAX with a factor; has GELU to three digits; propagates every NaN of
MAXIMUM; and stops RELU at the greatest finite number.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..graph.types import F16, F32, I1, I8, I16, I32, I64, UI8, ElementType
from .records import OperatorRecord, SubgraphRecord
from .schema import ELEMENTS

Elements: TypeAlias = Sequence[ElementType | None]
"""Element types of an operator's operands and result."""
Condition: TypeAlias = Callable[[Elements, OperatorRecord], bool]
FLOATS = (F16, F32)


def all_in(*types: ElementType) -> Condition:
    """Return the condition that operands and result all have the same one of these types."""
    return lambda elements, operator: len(set(elements)) == 1 and elements[0] in types


def quantizes(elements: Elements, operator: OperatorRecord) -> bool:
    return elements[0] == F32 and elements[-1] in (I8, UI8, I16)


def drops_fractions(elements: Elements, operator: OperatorRecord) -> bool:
    return elements[0] in FLOATS and elements[-1] in (I8, I16, I32, I64)


def makes_bytes(elements: Elements, operator: OperatorRecord) -> bool:
    return elements[-1] == UI8 and elements[0] in (*FLOATS, I1, I8, UI8, I16, I32, I64)


def either(*conditions: Condition) -> Condition:
    return lambda elements, operator: any(c(elements, operator) for c in conditions)


def has_factor(elements: Elements, operator: OperatorRecord) -> bool:
    return set(elements) <= {*FLOATS} and operator.options["beta"] != 1


def is_exact(elements: Elements, operator: OperatorRecord) -> bool:
    return set(elements) == {F32} and not operator.options["approximate"]


OURS: dict[str, tuple[int, Condition]] = {
    "CAST": (1, either(drops_fractions, makes_bytes)), "QUANTIZE": (1, quantizes), "FLOOR_DIV": (2, all_in(*FLOATS)),
    "FLOOR_MOD": (2, all_in(*FLOATS, I32)), "MAXIMUM": (2, all_in(*FLOATS)), "MINIMUM": (2, all_in(*FLOATS)),
    "GELU": (1, is_exact), "LOG_SOFTMAX": (1, all_in(F32)), "SOFTMAX": (1, has_factor)}
"""The operators, with the number of their operands and the condition for lowering them here."""


def is_kernel_of_ours(graph: SubgraphRecord, operator: OperatorRecord) -> bool:
    """True if this package lowers an operator: it is in the table, on tensors of one rank or of known shapes."""
    count, condition = OURS.get(operator.kind, (0, None))
    numbers = (*operator.inputs, *operator.outputs)
    if condition is None or min(numbers, default=-1) < 0 or (len(operator.inputs), len(operator.outputs)) != (count, 1):
        return False
    tensors = [graph.tensors[t] for t in numbers]
    if any(None in t.shape for t in tensors) and len({len(t.shape) for t in tensors}) > 1:
        return False
    if operator.kind == "QUANTIZE" and tensors[-1].scale is None:
        return False
    if operator.kind in ("LOG_SOFTMAX", "SOFTMAX") and not tensors[0].shape:
        return False
    return condition([ELEMENTS.get(t.type) for t in tensors], operator)
