"""One number of a constant or attribute: from its text to the bit pattern of its element type.

MLIR's rules: a signless integer may be written as signed or as unsigned, a float has a point, and a hexadecimal number
for a float is its bits.
"""
from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..graph.types import Array, ElementType
from .syntax import SyntaxFault

SCALAR = re.compile(r"-?(?:0x[0-9A-Fa-f]+|[0-9]+(\.[0-9]*(?:[eE][-+]?[0-9]+)?)?)|true|false")
LONGEST_INTEGER = 40


def limits(element: ElementType) -> tuple[int, int]:
    """Least and greatest number that may be written."""
    if element.kind == "bool":
        return -1, 1
    if element.kind == "signed" and not element.name.startswith("s"):
        return -(1 << (element.bits - 1)), (1 << element.bits) - 1
    if element.kind in ("signed", "index"):
        return -(1 << (element.bits - 1)), (1 << (element.bits - 1)) - 1
    return 0, (1 << element.bits) - 1


def wrap(values: Any, element: ElementType) -> Any:
    """Numbers of a signed type that were written as unsigned, as signed."""
    if element.kind != "signed":
        return values
    half = 1 << (element.bits - 1)
    return ((values + half) & (2 * half - 1)) - half


def integer(text: str, element: ElementType, offset: int = 0) -> int:
    """The value of an integer's text."""
    match = SCALAR.fullmatch(text)
    if match is None or match.group(1) is not None or text in ("true", "false"):
        raise SyntaxFault(f"expected an integer of type {element}, found {text[:20]}", offset, len(text), "type")
    least, greatest = limits(element)
    value = int(text, 0 if "0x" in text else 10) if len(text) <= LONGEST_INTEGER else greatest + 1
    if not least <= value <= greatest:
        raise SyntaxFault(f"{text[:20]} does not fit {element} ({least} to {greatest})", offset, len(text), "type")
    return abs(value) if element.kind == "bool" else wrap(value, element)


def real(text: str, element: ElementType, offset: int = 0) -> float:
    """The value of a float's text, rounded to `element`."""
    return float(from_bits(np.array([float_bits(text, element, offset)]), element)[0])


def float_bits(text: str, element: ElementType, offset: int = 0) -> int:
    """The bit pattern of a float's text, as a signed number."""
    match, size = SCALAR.fullmatch(text), 8 * element.itemsize
    if text.startswith("0x"):
        value = int(text, 16)
        if value >> size:
            raise SyntaxFault(f"{text[:20]} has more than the {size} bits of {element}", offset, len(text), "type")
        return value - (1 << 64) if value >= 1 << 63 else value
    if match is None or match.group(1) is None:
        raise SyntaxFault(f"expected a number of type {element}, found {text[:20]}", offset, len(text), "type",
                          f"write {text[:20]}.0" if text.lstrip("-").isdigit() else None)
    with np.errstate(all="ignore"):
        one = np.array([float(text)], np.float64).astype(element.dtype)
    return int(one.view(f"int{size}")[0])


def bits_of(text: str, element: ElementType, offset: int = 0) -> int:
    """The bit pattern of one element, as a number that fits an int64."""
    if SCALAR.fullmatch(text) is None:
        what = "true or false" if element.kind == "bool" else "a number"
        raise SyntaxFault(f"expected {what}, found {text[:20]!r}", offset, min(len(text), 20))
    if element.is_float:
        return float_bits(text, element, offset)
    if element.kind == "bool" and text in ("true", "false"):
        return int(text == "true")
    value = integer(text, element, offset)
    return value - (1 << 64) if value >= 1 << 63 else value


def from_bits(bits: Array, element: ElementType) -> Array:
    """Stored elements from their bit patterns (integers of at most 64 bits)."""
    return bits.astype(f"uint{8 * element.itemsize}").view(element.dtype)
