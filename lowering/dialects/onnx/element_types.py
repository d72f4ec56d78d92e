"""Element types of ONNX by their numbers in onnx.proto, including those without TOSA arithmetic: integers of 2 and 4 bits are
bytes in a graph that compiles; floats of 8 bits or fewer that TOSA does not have are moved unchanged, and `narrow_floats`
converts them for computations."""
from __future__ import annotations

from ....runtime.errors import Problem
from ...graph.types import (
    BF16,
    F4E2M1,
    F6E2M3,
    F6E3M2,
    F8E4M3,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E8M0,
    F16,
    F32,
    F64,
    I1,
    I2,
    I4,
    I8,
    I16,
    I32,
    I64,
    UI2,
    UI4,
    UI8,
    UI16,
    UI32,
    UI64,
    ElementType,
)

BY_NUMBER: dict[int, ElementType] = {
    1: F32, 2: UI8, 3: I8, 4: UI16, 5: I16, 6: I32, 7: I64, 9: I1, 10: F16, 11: F64, 12: UI32, 13: UI64, 16: BF16, 17: F8E4M3,
    18: F8E4M3FNUZ, 19: F8E5M2, 20: F8E5M2FNUZ, 21: UI4, 22: I4, 23: F4E2M1, 24: F8E8M0, 25: UI2, 26: I2, 27: F6E2M3,
    28: F6E3M2}
NAMES = {8: "strings", 14: "complex64", 15: "complex128"}
"""Names of the types that are not supported here."""
IN_BYTES = {I4: I8, UI4: UI8, I2: I8, UI2: UI8}
"""Integers that are stored one per byte, and are bytes in TOSA: its own i4 has no -8."""
LIMITS = {I4: (-8, 7), UI4: (0, 15), I2: (-2, 1), UI2: (0, 3)}
EIGHT_BITS = (F8E4M3, F8E5M2)
"""Floats that TOSA has, and that saturate unless a node disables it."""


def element_of(number: int) -> ElementType:
    """Return the element type of a number; raise a Problem if there is none here."""
    if number not in BY_NUMBER:
        raise Problem(f"{NAMES.get(number, f'the type {number}')} have no place in TOSA", kind="unsupported")
    return BY_NUMBER[number]
