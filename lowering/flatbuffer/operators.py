"""Operators of a .tosa file -> operators of the graph, by the fields of their classes. No code for single operators but
constants and variables, whose data are in their tensors.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...runtime.errors import Problem
from ..graph.operator import OPERATORS, Op, UnknownOp
from ..graph.types import F32, I32, Array, ElementType, Type
from ..text.attributes import Attribute, Number, Numbers
from ..text.fields import declared, element_of, fields_of
from .element_encoding import decode
from .records import OperatorRecord
from .schema import ENUMERATIONS, REGIONS, AttributeField
from .tensors import element_type


def make_operator(record: OperatorRecord, operands: Sequence[Type], results: Sequence[Type], constant: Array | None) -> Op:
    """The operator of the graph. `constant` is the data of the result of a CONST or CONST_SHAPE."""
    name = record.code.operator
    given = {} if record.code.name in REGIONS else {
        f.name: value_of(f, record, operands) for f in record.code.fields if record.fields}
    found = OPERATORS.get(name)
    if found is None:
        return UnknownOp(spelling=name, properties={k: as_text(v) for k, v in given.items()})
    if constant is not None:
        given["values"] = constant
    return found(**chosen(found, given, results))


def chosen(operator: type[Op], given: dict[str, Any], results: Sequence[Type]) -> dict[str, Any]:
    """The values of the operator's fields."""
    values: dict[str, Any] = {}
    for field in fields_of(operator):
        if field.metadata.get("mlir") == "result":
            values[field.name] = declared(results, field.metadata["result"])
        elif field.name in given:
            values[field.name] = given[field.name]
        elif field.default is dataclasses.MISSING:
            raise Problem(f"{operator.name} needs the attribute {field.name}", kind="attribute")
    return values


def value_of(field: AttributeField, record: OperatorRecord, operands: Sequence[Type]) -> Any:
    """An attribute as the graph has it."""
    value, what = record.fields[field.name], f"{field.name} of {record.code.operator}"
    match field.kind:
        case "bool":
            return bool(value)
        case "bytes" if record.code.name == "CLAMP":
            return bound(value, operands, what)
        case "bytes":
            return value.decode("utf-8", "surrogateescape")
        case "element":
            return element_type(value, what)
        case "int32" | "int32s" | "text":
            return value
        case kind:
            names = ENUMERATIONS[kind]
            if value not in names:
                raise Problem(f"{what} is {value or 'UNKNOWN'}", kind="attribute",
                              help=f"it may be {' or '.join(names.values())}")
            return names[value]


def bound(data: bytes, operands: Sequence[Type], what: str) -> Any:
    """A number that is written as the bytes of one element of the first operand."""
    found = element_of(operands, 0)
    if found is None:
        raise Problem(f"{what} is a number, but there is no tensor to bound", kind="type")
    try:
        one = decode(np.frombuffer(data, np.uint8), found, (1,))[0]
    except Problem as problem:
        raise Problem(f"{what}: {problem.message}", kind="attribute") from None
    return float(one) if found.is_float else int(one)


def as_text(value: Any) -> Attribute:
    """An attribute of an operator that is not known, to print."""
    match value:
        case bool() | ElementType():
            return value
        case int():
            return Number(value, I32)
        case tuple():
            return Numbers(value, I32)
        case float():
            return Number(value, F32)
        case _:
            return str(value)
