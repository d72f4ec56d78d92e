"""Attributes of MLIR text <-> fields of operators, by each field's "mlir" metadata (see `graph/operator.py`).

`make_operator` takes the attributes that are fields and returns the rest, which stay discardable; `field_attributes`
gives the properties to print. There is no code here for single operators.
"""
from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...runtime.errors import Position, Problem
from ..graph.operator import Op
from ..graph.quantized import is_quantized, storage_of
from ..graph.types import BY_STORAGE, F32, F64, I32, I64, INDEX, Array, ElementType, ShapeType, TensorType, Type
from .attributes import Attribute, Dense, Dictionary, Number, Numbers, Symbol, Text

ENUMERATIONS = {"nan_mode": ("PROPAGATE", "IGNORE"), "resize_mode": ("NEAREST_NEIGHBOR", "BILINEAR"),
                "rounding_mode": ("SINGLE_ROUND", "INEXACT_ROUND", "DOUBLE_ROUND"),
                "block_size": ("BLOCK_SIZE_1", "BLOCK_SIZE_32")}
"""Values of TOSA's enumerations; another enumeration takes any name."""
EXPECTED = {"i32": "an integer, as in 1 : i32", "i64": "an integer, as in 1 : i64",
            "f32": "a number, as in 1.0 : f32", "f64": "a number, as in 1.0 : f64", "element": "a number with its type",
            "bool": "true or false", "array<i64>": "integers, as in array<i64: 1, 1>",
            "array<i32>": "integers, as in array<i32: 1, 0>", "type": "an element type", "tensor": "a tensor type",
            "string": "a string", "symbol": "a name, as in @state",
            "dense": "a constant, as in dense<0> : tensor<1xi8>"}
"""Expected attribute of a field of each kind, for messages; the other kinds are enumerations."""
OLD_NAMES = {"values": ("value",), "symbol": ("sym_name", "name"), "initial": ("initial_value",)}
"""Alternative names of a field in text."""
OLD_TEXT = "MLIR before TOSA 1.0 wrote some attributes otherwise: make the text again with newer tools"
PRINTED_NAMES = {"initial": "initial_value"}
NUMBERS = {"i32": I32, "i64": I64, "f32": F32, "f64": F64}
KEYWORD = re.compile(r"(?:#[\w.]+<\s*)?(\w+)(?:\s*>)?(?:\s*:\s*i32)?")


def make_operator(operator: type[Op], given: Mapping[str, Attribute], operands: Sequence[Type],
                  results: Sequence[Type], find: Callable[[str], Position | None]) -> tuple[Op, Dictionary]:
    """Return the operator with its fields, and the attributes that are not fields; raise a Problem if a field is missing or
    wrong.

    `find` returns the position of an attribute in the text.
    """
    rest = dict(given)
    values: dict[str, Any] = {}
    for field in fields_of(operator):
        kind = field.metadata.get("mlir", "")
        if kind == "result":
            values[field.name] = declared(results, field.metadata["result"])
            continue
        name = next((n for n in (field.name, *OLD_NAMES.get(field.name, ())) if n in rest), None)
        if name is not None:
            try:
                value = convert(kind, rest.pop(name), operands, f"{name} of {operator.name}")
                values[field.name] = as_stored(value, results) if kind == "dense" else value
            except Problem as problem:
                raise problem.at(find(name)) from None
        elif field.default is dataclasses.MISSING:
            raise Problem(f"{operator.name} needs the attribute {field.name}", kind="attribute",
                          help=None if operator.foreign else OLD_TEXT)
    return operator(**values), rest


def fields_of(operator: type[Op]) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(operator)  # type: ignore[arg-type]  # each subclass of Op is made a dataclass


def declared(results: Sequence[Type], number: int | None) -> ElementType | tuple[Type, ...] | None:
    """Return the value of a field that follows from the declared results: the element type of one, or the types of all."""
    return tuple(results) if number is None else element_of(results, number)


def element_of(types: Sequence[Type], number: int) -> ElementType | None:
    """Return the stored element type of a declared operand or result."""
    found = types[number] if number < len(types) else None
    return storage_of(found.element) if isinstance(found, TensorType) else None


def as_stored(array: Array, results: Sequence[Type]) -> Array:
    """Return a constant in the dtype of a quantized result: MLIR writes unsigned storage as signless integers."""
    if not results or not is_quantized(results[0]):
        return array
    dtype = results[0].element.dtype  # type: ignore[union-attr]
    return array.view(dtype) if array.dtype.kind in "iu" and array.dtype.itemsize == dtype.itemsize else array


def convert(kind: str, value: Attribute, operands: Sequence[Type], what: str) -> Any:
    """Return the value of a field from its attribute; `what` names the field in messages."""
    if kind not in EXPECTED:
        return keyword(kind, value, what)
    match kind, value:
        case "i32", Number(int() as number) if -(1 << 31) <= number < 1 << 31:
            return number
        case "i64", Number(int() as number):
            return number
        case ("f32" | "f64"), Number(float() as number):
            return number
        case "element", Number(number, element):
            check_element(element, operands, what)
            return number
        case "bool", bool():
            return value
        case "bool", Number(number, element) if element.kind == "bool":
            return bool(number)
        case ("array<i64>" | "array<i32>"), Numbers(numbers, element) if element.is_integer:
            return numbers
        case ("array<i64>" | "array<i32>"), tuple():
            return integers(kind, value, what)
        case ("type", ElementType()) | ("tensor", TensorType()) | ("string" | "symbol", str()):
            return value
        case "symbol", Symbol((symbol,)):
            return symbol
        case "dense", Dense(array=array):
            return array
        case _:
            raise unexpected(kind, what)


def integers(kind: str, items: tuple[Attribute, ...], what: str) -> tuple[int, ...]:
    """Return the integers of a list `[1, 1]`, the strict form of an array."""
    found = tuple(i.value for i in items if isinstance(i, Number) and isinstance(i.value, int))
    if len(found) != len(items):
        raise unexpected(kind, what)
    return found


def unexpected(kind: str, what: str) -> Problem:
    return Problem(f"{what} must be {EXPECTED[kind]}", kind="attribute")


def keyword(kind: str, value: Attribute, what: str) -> str:
    """Return a value of an enumeration: `IGNORE`, `#tosa.nan_mode<IGNORE>` or "IGNORE"."""
    text = value.text if isinstance(value, Text) else value if isinstance(value, str) else ""
    match, allowed = KEYWORD.fullmatch(text), ENUMERATIONS.get(kind)
    if match is None or (allowed and match.group(1) not in allowed):
        found = f", it is {text[:40]}" if text else ""
        raise Problem(f"{what} must be {' or '.join(allowed or ('a keyword',))}{found}", kind="attribute")
    return match.group(1)


def check_element(element: ElementType, operands: Sequence[Type], what: str) -> None:
    """Check that a bound has the operand's element type; a signless integer also fits one with a sign."""
    expected = element_of(operands, 0)
    if expected is None or element == expected:
        return
    if element.is_float or expected.is_float or element.bits != expected.bits:
        raise Problem(f"{what} is of type {element}, but operand 0 holds {expected}", kind="type")


# Fields -> attributes

def field_attributes(op: Op, operands: Sequence[Type], results: Sequence[Type]) -> Dictionary:
    """Return the properties of an operator, by their names in MLIR."""
    attributes: Dictionary = {}
    for field in fields_of(type(op)):
        value, kind = getattr(op, field.name), field.metadata.get("mlir")
        if kind == "tensor" and op.variable_effect == "declare":
            attributes |= {"type": value.element, "var_shape": extents(value)}
        elif kind == "symbol":
            attributes["sym_name" if op.variable_effect == "declare" else "name"] = value
        elif field.metadata.get("elided") and value == field.default:
            continue
        elif kind not in ("result", "none", "tensor") and value is not None:
            own = getattr(op, "type", None)
            types = (own,) if isinstance(own, TensorType) else results
            attributes[PRINTED_NAMES.get(field.name, field.name)] = attribute_of(str(kind), value, operands, types)
    return attributes


def extents(type: TensorType) -> Dense:
    """Return the shape of a variable as a constant; -1 for an unknown extent."""
    shape = np.array([-1 if n is None else n for n in type.shape or ()], np.int64)
    return Dense(shape, TensorType(shape.shape, INDEX))


def attribute_of(kind: str, value: Any, operands: Sequence[Type], results: Sequence[Type]) -> Attribute:
    match kind:
        case "i32" | "i64" | "f32" | "f64":
            return Number(value, NUMBERS[kind])
        case "element":
            return number_like(value, element_of(operands, 0))
        case "array<i64>" | "array<i32>":
            return Numbers(tuple(value), I64 if "64" in kind else I32)
        case "dense":
            return dense_like(value, results)
        case "bool" | "type" | "string":
            return value
        case _:
            return Text(f"#tosa.{kind}<{value}>")


def number_like(value: int | float, element: ElementType | None) -> Number:
    """Return a bound in the element type of the operand."""
    if element is None:
        element = F32 if isinstance(value, float) else I32
    return Number(float(value) if element.is_float else int(value), element)


def dense_like(array: Array, results: Sequence[Type]) -> Dense:
    """Return a constant with the result's element type: a dtype does not determine i4 or i48."""
    element = INDEX if results and isinstance(results[0], ShapeType) else element_of(results, 0)
    if element is None or element.dtype != array.dtype:
        element = BY_STORAGE[array.dtype.name]
    return Dense(array, TensorType(array.shape, element))
