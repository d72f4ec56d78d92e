"""Operators of the graph -> the attribute tables of a .tosa file, the inverse of `operators`."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.errors import Problem
from ..graph.graph import Operation
from ..graph.operator import UnknownOp
from ..graph.types import TensorType
from ..text.fields import fields_of
from .element_encoding import ALIGNMENT, encode
from .schema import BY_OPERATOR, ENUMERATIONS, SIGN_AGNOSTIC, AttributeField, OperatorCode
from .tensors import element_code

DATA_FIELDS = ("values", "symbol", "type", "initial")
"""Fields that the file has in tensors."""


def code_of(operation: Operation) -> OperatorCode:
    """Return the operator's entry in the schema; raise a Problem if it has none."""
    op = operation.op
    name = op.spelling if isinstance(op, UnknownOp) else op.name
    found = BY_OPERATOR.get(name)
    if found is None or isinstance(op, UnknownOp):
        raise Problem(f"{name} cannot be written to a .tosa file", operation.position, kind="unsupported",
                      help="the file format has TOSA's own operators only" if found is None else None)
    return found


def attribute_fields(operation: Operation, code: OperatorCode) -> dict[str, Any]:
    """The fields of the attribute table as the file has them."""
    op = operation.op
    given = {f.name: getattr(op, f.name) for f in fields_of(type(op)) if f.metadata.get("mlir") != "result"}
    wanted = {f.name for f in code.fields}
    for field in fields_of(type(op)):
        if field.name in given and field.name not in (*wanted, *DATA_FIELDS) and given[field.name] != field.default:
            raise Problem(f"{field.name} of {op.name} cannot be written to a .tosa file", operation.position,
                          kind="unsupported")
    try:
        return {f.name: field_value(f, given[f.name], operation, code) for f in code.fields}
    except Problem as problem:
        raise problem.at(operation.position) from None


def field_value(field: AttributeField, value: Any, operation: Operation, code: OperatorCode) -> Any:
    match field.kind:
        case "bool":
            return int(value)
        case "int32":
            return checked(int(value), f"{field.name} of {code.name}")
        case "int32s":
            return tuple(checked(int(n), f"{field.name} of {code.name}") for n in value)
        case "bytes" if code.name == "CLAMP":
            return bound_bytes(value, operation)
        case "bytes":
            return value.encode("utf-8", "surrogateescape")
        case "text":
            return value
        case "element":
            return element_code(value)
        case kind:
            found = [number for number, name in ENUMERATIONS[kind].items() if name in (value, OTHER_NAMES.get(value))]
            if not found:
                raise Problem(f"{field.name} of {code.name} is {value}, which is not one of "
                              f"{', '.join(ENUMERATIONS[kind].values())}", kind="attribute")
            return found[0]


OTHER_NAMES = {"NEAREST": "NEAREST_NEIGHBOR"}


def checked(number: int, what: str) -> int:
    if not -(1 << 31) <= number < 1 << 31:
        raise Problem(f"{what} is {number}, a .tosa file has 32 bits for it", kind="unsupported")
    return number


def bound_bytes(value: float, operation: Operation) -> bytes:
    """A bound as one element of the operand, filled up to eight bytes."""
    type = operation.operands[0].type
    assert isinstance(type, TensorType)
    with np.errstate(all="ignore"):
        one = np.array([value]).astype(type.element.dtype)
    return encode(one, type.element).tobytes().ljust(ALIGNMENT, b"\0")


def check_signs(operation: Operation, code: OperatorCode) -> None:
    """Unsigned integers become signless ones, which only some operators do not mind."""
    for value in (*operation.operands, *operation.results):
        unsigned = isinstance(value.type, TensorType) and value.type.element.kind == "unsigned"
        if unsigned and code.name not in SIGN_AGNOSTIC:
            raise Problem(f"{operation.op.name} of {value.type} cannot be written to a .tosa file: integers have no sign there",
                          kind="unsupported")
