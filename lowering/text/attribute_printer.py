"""Attribute values -> MLIR text that reads back to the same values; ASCII only, nothing that could drive a terminal."""
from __future__ import annotations

import re
from collections.abc import Mapping
from typing import assert_never

import numpy as np

from ..graph.types import ElementType, OpaqueType, ShapeType, TensorType
from .attributes import Attribute, Dense, FunctionType, Number, Numbers, Strings, Symbol, Text, Unit
from .element_printer import format_dense, format_element, format_float
from .typed_elements import format_typed, has_own_form

BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")
PLAIN = bytes(b for b in range(0x20, 0x7F) if b not in b'"\\')


def format_attribute(value: Attribute, elide: int | None = None) -> str:
    """The text of an attribute; constants of more than `elide` elements are shortened."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case Unit():
            return "unit"
        case Number(number, element):
            return f"{format_number(number, element)} : {element}"
        case Numbers(numbers, element):
            items = ", ".join(str(n).lower() if isinstance(n, bool) else format_number(n, element) for n in numbers)
            return f"array<{element}{': ' if items else ''}{items}>"
        case Symbol(path):
            return "::".join(map(symbol, path))
        case Text(text):
            return text
        case Dense(array, type) if has_own_form(type.element) and (elide is None or array.size <= elide):
            return format_typed(array, type, format_element)
        case Dense(array, type) if has_own_form(type.element):
            return f"dense_resource<__elided__> : {type}"
        case Dense():
            return f"{format_dense(value.array, value.type, elide)} : {value.type}"
        case Strings(values, type):
            return f"dense<{format_strings(values, type.shape or ())}> : {type}"
        case FunctionType(operands, results):
            return format_signature(operands, results)
        case TensorType() | ShapeType() | OpaqueType() | ElementType():
            return str(value)
        case tuple():
            return f"[{', '.join(format_attribute(v, elide) for v in value)}]"
        case Mapping():
            return format_dictionary(value, elide)
        case _:
            assert_never(value)


def format_number(number: int | float, element: ElementType) -> str:
    if not element.is_float:
        return str(int(number))
    with np.errstate(all="ignore"):
        return format_float(np.array([number], np.float64).astype(element.dtype), element)


def format_dictionary(attributes: Mapping[str, Attribute], elide: int | None = None) -> str:
    """`{name = value, unit}`"""
    return f"{{{', '.join(format_entry(k, v, elide) for k, v in attributes.items())}}}"


def format_entry(name: str, value: Attribute, elide: int | None) -> str:
    key = name if BARE_NAME.fullmatch(name) else quoted(name)
    return key if isinstance(value, Unit) else f"{key} = {format_attribute(value, elide)}"


def format_signature(operands: tuple[object, ...], results: tuple[object, ...]) -> str:
    """`(types) -> types`"""
    listed = ", ".join(map(str, results))
    return f"({', '.join(map(str, operands))}) -> " + (listed if len(results) == 1 else f"({listed})")


def symbol(name: str) -> str:
    """`@name`, quoted where it has to be."""
    return f"@{name}" if BARE_NAME.fullmatch(name) else f"@{quoted(name)}"


def format_strings(values: tuple[bytes, ...], shape: tuple[int | None, ...]) -> str:
    """Nested lists of strings; one string where all are equal."""
    if values and len(set(values)) == 1:
        return quoted_bytes(values[0])
    return nested_strings(values, shape) if values else ""


def nested_strings(values: tuple[bytes, ...], shape: tuple[int | None, ...]) -> str:
    if not shape:
        return quoted_bytes(values[0])
    step = len(values) // (shape[0] or 1)
    return f"[{', '.join(nested_strings(values[i:i + step], shape[1:]) for i in range(0, len(values), step))}]"


def quoted(text: str) -> str:
    """A string with everything but plain ASCII as hexadecimal escapes."""
    return quoted_bytes(text.encode("utf-8", "surrogateescape"))


def quoted_bytes(raw: bytes) -> str:
    text = raw.decode("latin-1")
    if raw.translate(None, PLAIN):  # names are plain, most of the time
        text = "".join(chr(b) if b in PLAIN else f"\\{b:02X}" for b in raw)
    return f'"{text}"'
