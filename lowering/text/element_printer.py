"""NumPy arrays -> `dense<...>` text that reads back to the same bits.

Few elements print as a list, many as a hexadecimal blob; booleans always as a list, because MLIR's versions differ in how they
pack those. A float prints as the shortest decimal number that is read
back exactly, or as its bits (NaN, infinities).
"""
from __future__ import annotations

import numpy as np

from ..graph.types import F32, I8, MXINT8, Array, ElementType, TensorType

LONGEST_LIST = 64
"""Elements up to which a constant prints as a list."""


def format_dense(array: Array, type: TensorType, elide: int | None = None) -> str:
    """`dense<...>` without its type; with more than `elide` elements only a name, which cannot be read back."""
    element = I8 if type.element == MXINT8 else type.element
    if not array.size:
        return "dense<>"
    if is_splat(array):
        return f"dense<{format_element(array.reshape(-1)[:1], element)}>"
    if elide is not None and array.size > elide:
        return "dense_resource<__elided__>"
    if array.size > LONGEST_LIST and element.kind != "bool":
        return f'dense<"0x{to_bytes(array, element).hex().upper()}">'
    return f"dense<{format_list(array, element)}>"


def is_splat(array: Array) -> bool:
    """True if all elements have the same bits."""
    if not any(array.strides):
        return True
    bits = np.ascontiguousarray(array).reshape(-1).view(f"uint{8 * array.itemsize}")
    return bool((bits == bits[0]).all())


def format_list(array: Array, element: ElementType) -> str:
    if not array.ndim:
        return format_element(array.reshape(1), element)
    return f"[{', '.join(format_list(a, element) for a in array)}]" if array.ndim > 1 else (
        f"[{', '.join(format_element(array[i:i + 1], element) for i in range(len(array)))}]")


def format_element(one: Array, element: ElementType) -> str:
    """The one element of `one`."""
    if element.kind == "bool":
        return "true" if one[0] else "false"
    return format_float(one, element) if element.is_float else str(int(one[0]))


def format_float(one: Array, element: ElementType) -> str:
    """The shortest decimal that reads back to the same bits, or the bits."""
    one = np.ascontiguousarray(one)
    value = float(one[0])
    size = element.itemsize
    text = str(np.float32(value)) if element == F32 else repr(value)
    mantissa, mark, exponent = text.partition("e")
    text = mantissa + ("" if "." in mantissa else ".0") + mark + exponent
    if np.isfinite(value):
        with np.errstate(all="ignore"):
            again = np.array([float(text)], np.float64).astype(element.dtype)
        if again.tobytes() == one.tobytes():
            return text
    bits = int(one.view(f"uint{8 * size}")[0])
    return f"0x{bits:0{2 * size}X}"


def to_bytes(array: Array, element: ElementType) -> bytes:
    """The elements as a blob: i1 and i4 in a byte each, i48 in six."""
    match element.name:
        case "i4":
            return (array.astype(np.int8) & 15).tobytes()
        case "i48":
            return np.ascontiguousarray(array).reshape(-1).astype("<i8").view(np.uint8).reshape(-1, 8)[:, :6].tobytes()
        case _:
            return array.tobytes()
