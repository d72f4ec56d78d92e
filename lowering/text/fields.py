"""Attributes of MLIR text <-> fields of operators, by each field's "mlir" metadata (see `graph/operator.py`).

`make_operator` takes the attributes that are fields and returns the rest, which stay discardable; `field_attributes` gives
the properties to print. There is no code here for single operators.
"""
from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ...runtime.errors import Problem
from ..graph.operator import Op
from ..graph.types import BY_STORAGE, F32, F64, I32, I64, INDEX, Array, ElementType, ShapeType, TensorType, Type
from .attributes import Attribute, Dense, Dictionary, Number, Numbers, Symbol, Text
from .scalars import limits

ENUMERATIONS = {"nan_mode": ("PROPAGATE", "IGNORE"), "resize_mode": ("NEAREST_NEIGHBOR", "BILINEAR"),
                "rounding_mode": ("SINGLE_ROUND", "INEXACT_ROUND", "DOUBLE_ROUND")}
"""Values of TOSA's enumerations; another enumeration takes any name."""
OLD_NAMES = {"values": ("value",), "symbol": ("sym_name", "name"), "initial": ("initial_value",)}
"""What a field may be called in text besides its own name."""
PRINTED_NAMES = {"symbol": "name", "initial": "initial_value"}
NUMBERS = {"i32": I32, "i64": I64, "index": INDEX, "f32": F32, "f64": F64}
KEYWORD = re.compile(r"(?:#[\w.]+<\s*)?(\w+)(?:\s*>)?(?:\s*:\s*i32)?")


@cache
def fields_of(operator: type[Op]) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(operator)  # type: ignore[arg-type]


def make_operator(operator: type[Op], given: Mapping[str, Attribute], operands: Sequence[Type],
                  results: Sequence[Type]) -> tuple[Op, Dictionary]:
    """The operator with its fields, and the attributes that are no fields; a Problem where one is missing or wrong."""
    rest, values = dict(given), {}
    for field in fields_of(operator):
        kind = field.metadata.get("mlir")
        if kind == "result":
            values[field.name] = element_of(results, field.metadata["result"])
            continue
        name = next((n for n in (field.name, *OLD_NAMES.get(field.name, ())) if n in rest), None)
        if name is not None:
            values[field.name] = convert(kind, rest.pop(name), name, operator.name, operands)
        elif field.default is dataclasses.MISSING:
            raise Problem(f"{operator.name} needs the attribute {field.name}", kind="attribute")
    return operator(**values), rest


def element_of(types: Sequence[Type], number: int) -> ElementType | None:
    """The element type of a declared result."""
    found = types[number] if number < len(types) else None
    return found.element if isinstance(found, TensorType) else None


def convert(kind: str | None, value: Attribute, name: str, operator: str, operands: Sequence[Type]) -> Any:
    """The field's value of an attribute."""
    match kind, value:
        case "i32", Number(int() as number) if fits(number, I32):
            return number
        case ("i64" | "index"), Number(int() as number):
            return number
        case ("f32" | "f64"), Number(float() as number):
            return number
        case "element", Number(number, element):
            check_element(element, operands, name, operator)
            return number
        case "bool", bool():
            return value
        case "bool", Number(number, element) if element.kind == "bool":
            return bool(number)
        case ("array<i64>" | "array<i32>"), Numbers(numbers, element) if element.is_integer:
            return numbers
        case ("array<i64>" | "array<i32>"), tuple() if all(isinstance(v, Number) for v in value):
            return tuple(v.value for v in value)  # type: ignore[union-attr]
        case "type", ElementType():
            return value
        case "tensor", TensorType():
            return value
        case "string", str():
            return value
        case "symbol", Symbol((symbol,)):
            return symbol
        case "symbol", str():
            return value
        case "dense", Dense(array=array):
            return array
        case _:
            if kind in EXPECTED or isinstance(value, Text | str):
                return keyword(kind, value, name, operator)
            raise unexpected(kind, name, operator)


EXPECTED = {"i32": "an integer, as in 1 : i32", "i64": "an integer, as in 1 : i64", "f32": "a number, as in 1.0 : f32",
            "element": "a number with its type", "bool": "true or false", "array<i64>": "integers, as in array<i64: 1, 1>",
            "array<i32>": "integers, as in array<i32: 1, 0>", "type": "an element type", "string": "a string",
            "symbol": "a name, as in @state", "dense": "a constant, as in dense<0> : tensor<1xi8>",
            "tensor": "a tensor type"}


def unexpected(kind: str | None, name: str, operator: str) -> Problem:
    what = EXPECTED.get(kind or "", "one of TOSA's names")
    return Problem(f"{name} of {operator} must be {what}", kind="attribute")


def keyword(kind: str | None, value: Attribute, name: str, operator: str) -> str:
    """A value of an enumeration: `IGNORE`, `#tosa.nan_mode<IGNORE>` or "IGNORE"."""
    if kind in EXPECTED:
        raise unexpected(kind, name, operator)
    text = value.text if isinstance(value, Text) else str(value)
    match = KEYWORD.fullmatch(text)
    allowed = ENUMERATIONS.get(kind or "")
    if match is None or (allowed and match.group(1) not in allowed):
        raise Problem(f"{name} of {operator} must be {' or '.join(allowed) if allowed else 'a name'}, it is {text[:40]}",
                      kind="attribute")
    return match.group(1)


def fits(number: int, element: ElementType) -> bool:
    least, _ = limits(element)
    return least <= number < -least


def check_element(element: ElementType, operands: Sequence[Type], name: str, operator: str) -> None:
    """A bound must have the operand's element type; a signless integer also stands for one with a sign."""
    expected = element_of(operands, 0)
    if expected is None or element == expected:
        return
    if not element.is_float and not expected.is_float and element.bits == expected.bits:
        return
    raise Problem(f"{name} of {operator} is of type {element}, but operand 0 holds {expected}", kind="type")


# Fields -> attributes

def field_attributes(op: Op, operands: Sequence[Type], results: Sequence[Type]) -> Dictionary:
    """The properties of an operator, by their names in MLIR."""
    attributes: Dictionary = {}
    for field in fields_of(type(op)):
        value, kind = getattr(op, field.name), field.metadata.get("mlir")
        if kind not in ("result", "none", "tensor") and value is not None:
            name = PRINTED_NAMES.get(field.name, field.name)
            attributes[name] = attribute_of(str(kind), value, operands, results)
    return attributes


def attribute_of(kind: str, value: Any, operands: Sequence[Type], results: Sequence[Type]) -> Attribute:
    match kind:
        case "i32" | "i64" | "f32" | "f64" | "index":
            return Number(value, NUMBERS[kind])
        case "element":
            return number_like(value, element_of(operands, 0))
        case "array<i64>" | "array<i32>":
            return Numbers(tuple(value), I64 if "64" in kind else I32)
        case "dense":
            return dense_like(value, results)
        case "bool" | "type" | "string" | "symbol":
            return value  # type: ignore[no-any-return]
        case _:
            return Text(f"#tosa.{kind}<{value}>")


def number_like(value: int | float, element: ElementType | None) -> Number:
    """A bound in the element type of the operand."""
    if element is None:
        element = F32 if isinstance(value, float) else I32
    return Number(float(value) if element.is_float else int(value), element)


def dense_like(array: Array, results: Sequence[Type]) -> Dense:
    """A constant whose element type is the result's: a dtype does not tell i4 or i48."""
    element = INDEX if results and isinstance(results[0], ShapeType) else element_of(results, 0)
    if element is None or element.storage != array.dtype.name:
        element = BY_STORAGE[array.dtype.name]
    return Dense(array, TensorType(array.shape, element))
