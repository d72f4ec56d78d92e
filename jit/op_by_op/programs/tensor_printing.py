"""Tensors as kernel programs print them, and the truth of predicates.

    DenseHostTensor dtype = i32, shape = [1, 3], values = [1, 1, 1]
    ScalarHostTensor dtype = i32, shape = [2, 2], value = 1
    StringHostTensor shape = [2], values = ["a", "b"]

Floats print with six digits and an exponent, 16-bit ones as their bit patterns: `fp16(0)`, `bf16(16416)`.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....lowering.graph.types import BY_STORAGE, Array, ElementType
from ....runtime.errors import Problem, printable
from ....runtime.op_by_op.tensor_kinds import STRINGS, Scalars

MOST_PRINTED = 16
"""Maximum number of elements that are printed."""
PATTERNS = {"float16": "fp16", "bfloat16": "bf16"}

def tensor_text(array: Array, scalars: Scalars) -> str:
    """Return a tensor on one line."""
    shape = shape_text(array.shape)
    if array.dtype == STRINGS:
        return f"StringHostTensor {shape}, values = [{listed(array)}]"
    dtype = BY_STORAGE[array.dtype.name]
    if array in scalars and array.size:
        return f"ScalarHostTensor dtype = {dtype}, {shape}, value = {element_text(array.reshape(-1)[0])}"
    return f"DenseHostTensor dtype = {dtype}, {shape}, values = [{listed(array)}]"


def shape_text(shape: Sequence[int]) -> str:
    return f"shape = [{', '.join(map(str, shape))}]"


def listed(array: Array) -> str:
    items = ", ".join(element_text(e) for e in array.reshape(-1)[:MOST_PRINTED])
    return f"{items}, ... " if array.size > MOST_PRINTED else items


def element_text(element: Any) -> str:
    """Return one element as text."""
    if isinstance(element, bytes):
        return f'"{printable(element.decode("utf-8", "backslashreplace"))}"'
    name = element.dtype.name
    if name in PATTERNS:
        return f"{PATTERNS[name]}({int(np.array(element).view(np.uint16))})"
    return f"{float(element):e}" if element.dtype.kind == "f" else str(int(element))


def number_text(number: Any, type: ElementType) -> str:
    return f"{number:f}" if type.is_float else str(int(number))


def is_true(array: Array, scalars: Scalars) -> bool:
    """True if a tensor is a true predicate: one number that is not zero, or one string that is not empty."""
    if array in scalars:
        raise Problem("a predicate is a dense tensor or one of strings, not a scalar tensor", kind="kernel")
    if array.size != 1:
        raise Problem(f"a predicate has one element, this one has {shape_text(array.shape)}", kind="kernel")
    element = array.reshape(-1)[0]
    if not isinstance(element, bytes) and element.dtype.kind not in "biu":
        raise Problem(f"a predicate is a bool, an integer or a string, not {BY_STORAGE[array.dtype.name]}", kind="kernel")
    return bool(element)


def integer_of(array: Array) -> int:
    """Return the one element of a tensor of i32."""
    if array.size != 1 or array.dtype != np.int32:
        raise Problem(f"expected one element of type i32, found a tensor of {array.dtype.name} with {shape_text(array.shape)}",
                      kind="kernel")
    return int(array.reshape(-1)[0])
