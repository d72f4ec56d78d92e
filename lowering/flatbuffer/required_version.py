"""The version of TOSA that a graph needs: 1.0, or the draft of 1.1."""
from __future__ import annotations

from ..graph.graph import Operation, Value
from ..graph.types import F32, I1, I64, BlockScaled, ElementType, TensorType
from .schema import BY_OPERATOR, FIRST_OF_1_1

FP8 = ("f8E4M3FN", "f8E5M2")
NEW_ELEMENTS = ("f8E8M0FNU", "f6E2M3FN", "f6E3M2FN", "f4E2M1FN", "!tosa.mxint8")


def element_of(value: Value) -> ElementType | None:
    return value.type.element if isinstance(value.type, TensorType) else None


def is_block_scaled(value: Value) -> bool:
    return isinstance(element_of(value), BlockScaled)


def has_new_type(value: Value) -> bool:
    """True if the type came with TOSA 1.1."""
    element = element_of(value)
    return element is not None and (element == I64 or isinstance(element, BlockScaled) or element.name in NEW_ELEMENTS)


def needs_1_1(operation: Operation) -> bool:
    """True if the operator, or the types that it combines, came with TOSA 1.1."""
    code = BY_OPERATOR.get(operation.op.name)
    if code is None or code.number >= FIRST_OF_1_1:
        return True
    elements = [element_of(v) for v in operation.operands]
    match code.name:
        case "GATHER" | "SCATTER":
            return elements[0] == I1
        case "MATMUL":
            results = [element_of(v) for v in operation.results]
            return elements[0] != elements[1] or (str(elements[0]) in FP8 and results[0] == F32)
        case _:
            return str(elements[0] if elements else None) in FP8 and getattr(operation.op, "acc_type", None) == F32
