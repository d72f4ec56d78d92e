"""C's spelling of the loop IR's types and numbers. A value of a small float (float16, bfloat16, float8_*) is the integer of its
bits; only conversions decode it. A vector is a structure with an array of its lanes, so that it can be assigned.
"""
from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...elements.expression import is_float
from ...loops.ir import Type
from ..llvm.llvm_text import HALVES, KINDS, half_bits

SCALARS = {"bool": "bool", "float32": "float", "float64": "double", "float16": "uint16_t", "bfloat16": "uint16_t",
           **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
           **{name: "uint8_t" for name in HALVES if name.startswith(("float8", "float6", "float4"))}}
"""C types of values; an element in memory has the same type, except bool, which is a byte."""

SHORT = {"bool": "bool", "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16",
         **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)}, **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
         **{name: name.replace("float", "f").replace("_", "") for name in HALVES if name.startswith(("float8", "float6",
                                                                                                     "float4"))}}
"""Abbreviation of each dtype in names of functions and vector types."""

BITS = {"int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64, "uint64": 64}
WRAPPING = {8: "unsigned", 16: "unsigned", 32: "uint32_t", 64: "uint64_t"}
"""Type in which an operation of each bit width may overflow: `unsigned` has at least 16 bits; a uint16_t would become an
int."""

COLUMNS = 120


def memory_type(dtype: str) -> str:
    """Return the C type of an element in memory."""
    return "uint8_t" if dtype == "bool" else SCALARS[dtype]


def c_type(type: Type) -> str:
    return SCALARS[type.dtype] if type.lanes == 1 else vector(type)


def vector(type: Type) -> str:
    return f"{SHORT[type.dtype]}x{type.lanes}"


def vector_definition(type: Type) -> str:
    return f"typedef struct {{ {SCALARS[type.dtype]} at[{type.lanes}]; }} {vector(type)};"


@functools.lru_cache(maxsize=4096)
def number(value: float | int, dtype: str) -> str:
    """Return a constant. (0.0 and -0.0 are equal and would share a cache entry: zeros are not passed here.)"""
    match KINDS[dtype]:
        case "bool":
            return "true" if value else "false"
        case "half":
            return f"0x{half_bits(value, dtype):x}u"
        case "float":
            return float_text(value, dtype)
        case "unsigned":
            return f"{int(value) & (1 << BITS[dtype]) - 1}u"
    if value == -1 << BITS[dtype] - 1:
        return f"INT{BITS[dtype]}_MIN"
    return str(int(value))


def float_text(value: float | int, dtype: str) -> str:
    """Return a float literal that reads back as the same float."""
    with np.errstate(over="ignore"):
        exact: np.floating[Any] = np.float32(value) if dtype == "float32" else np.float64(value)
    single = "f" if dtype == "float32" else ""
    if np.isnan(exact):
        return "NOT_A_NUMBER"
    if np.isinf(exact):
        return "INFINITE" if exact > 0 else "-INFINITE"
    text = np.format_float_positional(exact, trim="0") if 1e-4 <= abs(float(exact)) < 1e9 or exact == 0 else (
        np.format_float_scientific(exact, trim="0"))
    return text + single


def literal(value: float | int, dtype: str) -> str:
    """Return a Literal of the loop IR as an operand, a negative one in parentheses."""
    text = float_text(value, dtype) if is_float(dtype) and KINDS[dtype] == "float" else number(value, dtype)
    return f"({text})" if text.startswith("-") else text
