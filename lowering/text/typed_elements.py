"""Constants whose element type is a dialect's own: `dense<tensor<2x!tosa.mxint8> : [127 : i8, -128 : i8]>`.

The type comes first, each number has its own. A block-scaled type names the scales of its values, all in a row:
`dense<tensor<32x!tosa.block_scaled<BLOCK_SHAPE_32:f8E8M0FNU:f4E2M1FN, {5.0e-01}>> : 1.5 : f4E2M1FN>`.
"""
from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np

from ..graph.block_scaled_arrays import joined, split
from ..graph.types import I8, MXINT8, Array, BlockScaled, ElementType, TensorType
from .elements import check_size, decode, read_only
from .number_lists import decode_list
from .syntax import SyntaxFault

SCALES = re.compile(r",\s*\{([^{}]*)\}")
ANNOTATION = re.compile(r"\s*:\s*([\w!.]+)")
IS_TYPED = re.compile(r"dense<\s*tensor<")

Scan = Callable[[str, int], tuple[object, int]]
"""Function that reads the type at an offset of a text; it returns the type, and the offset after it."""


def decode_typed(text: str, scan: Scan) -> tuple[Array, TensorType]:
    """Return the array and the type of a constant with typed elements."""
    start = text.index("tensor<")
    scales = SCALES.search(text, start)
    plain = text if scales is None else text[:scales.start()] + " " * len(scales.group()) + text[scales.end():]
    type, end = scan(plain, start)
    colon = re.compile(r"\s*:\s*").match(text, end)
    if not isinstance(type, TensorType) or colon is None:
        raise SyntaxFault("expected the constant's type, ':' and its numbers, as in dense<tensor<1x!tosa.mxint8> : [1 : i8]>",
                          end)
    check_size(type)
    element = type.element
    values = numbers(text, colon.end(), TensorType(type.shape, element.value if isinstance(element, BlockScaled) else element))
    if not isinstance(element, BlockScaled):
        return values, type
    if scales is None:
        raise SyntaxFault("a block-scaled constant needs its scales, as in {1.0, 0.5}, behind the type of its values", start)
    check_blocks(type, element, start)
    shape = (*type.dims[:-1], type.dims[-1] // element.block)
    factors = decode_list(f"[{scales.group(1)}]", TensorType((math.prod(shape),), element.scale), scales.start(1) - 1)
    return read_only(joined(values, factors.reshape(shape), element)), type


def numbers(text: str, start: int, type: TensorType) -> Array:
    """Return the elements after the type, each of which may have its own type."""
    body = text[start:-1]
    expected = written(type.element)
    for match in ANNOTATION.finditer(body):
        if match.group(1) != str(expected):
            raise SyntaxFault(f"expected a number of type {expected}, found one of {match.group(1)}", start + match.start(1),
                              len(match.group(1)), "type")
    blank = ANNOTATION.sub(lambda m: " " * len(m.group()), body)
    found = decode(f"dense<{blank}>", type.with_element(expected))
    return found.view(type.element.dtype) if type.element == MXINT8 else found


def has_own_form(element: ElementType) -> bool:
    """True if constants of this type are written so; bytes may be a hexadecimal string as well."""
    return element == MXINT8 or isinstance(element, BlockScaled)


def written(element: ElementType) -> ElementType:
    """The type that the numbers are written with."""
    return I8 if element == MXINT8 else element


def check_blocks(type: TensorType, element: BlockScaled, at: int) -> None:
    if not type.rank or type.dims[-1] % element.block:
        raise SyntaxFault(f"the last extent of {type} must be a multiple of {element.block}", at, kind="shape")


def format_typed(array: Array, type: TensorType, format_element: Callable[[Array, ElementType], str]) -> str:
    """The text of a constant of `!tosa.mxint8` or a block-scaled type; reads back to the same bits."""
    element = type.element
    if not isinstance(element, BlockScaled):
        return f"dense<{type} : {numbered(array, element, format_element)}>"
    values, factors = split(array, element)
    flat = factors.reshape(-1)
    scales = ", ".join(format_element(flat[i:i + 1], element.scale) for i in range(flat.size))
    spelled = str(type).removesuffix(">>") + f", {{{scales}}}>>"
    return f"dense<{spelled} : {numbered(values, element.value, format_element)}>"


def numbered(array: Array, element: ElementType, format_element: Callable[[Array, ElementType], str]) -> str:
    """The numbers with their types: nested lists, or one for all that are alike."""
    shown, codes = written(element), array.view(np.uint8).reshape(-1)

    def nested(part: Array) -> str:
        if part.ndim:
            return f"[{', '.join(map(nested, part))}]"
        return f"{format_element(part.reshape(1), shown)} : {shown}"

    return nested(array.reshape(-1)[:1].reshape(()) if (codes == codes[0]).all() else array)
