"""Constants: `dense<...>`, `sparse<...>` and the blobs of resources -> NumPy arrays.

Arrays are read-only, in the dtype that stores the element (`ElementType.storage`). A blob is decoded at the speed of
memory; a large splat is a view of one element (strides 0), so that a short text cannot ask for much memory. Faults
count their offset from the first character of the text.
"""
from __future__ import annotations

import re

import numpy as np

from ...runtime import limits
from ..graph.types import (
    F4E2M1,
    F6E2M3,
    F6E3M2,
    F8E4M3,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E8M0,
    I1,
    I8,
    I64,
    MXINT8,
    Array,
    BlockScaled,
    ElementType,
    TensorType,
)
from .number_lists import decode_list
from .scalars import bits_of, from_bits
from .syntax import SyntaxFault

"""Bytes of one tensor (TOSA level 8K)."""
MAXIMUM_RANK = 32
QUOTED = (MXINT8, F8E4M3, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0, F6E2M3, F6E3M2, F4E2M1)
"""Types whose elements some tools write as strings of their bits: MLIR did before its dialects had constants of their own."""
BITS = re.compile(r'"(0x[0-9A-Fa-f]{1,2})"')
LARGE_SPLAT = 1 << 20
"""Bytes from which a splat is a view of one element."""


def decode(text: str, type: TensorType) -> Array:
    """The array of `dense<...>` or `sparse<...>`."""
    check_size(type)
    if isinstance(type.element, BlockScaled):
        raise SyntaxFault(
            f"a constant of {type.element} is written with its scales and the type in front",
            help="dense<tensor<32x!tosa.block_scaled<BLOCK_SHAPE_32:f8E8M0FNU:f4E2M1FN, {1.0}>> : 1.0 : f4E2M1FN>")
    quoted = type.element in QUOTED
    type = type.with_element(I8) if type.element == MXINT8 else type
    start, end = text.index("<") + 1, len(text) - 1
    start += len(text[start:start + 4096]) - len(text[start:start + 4096].lstrip())
    while start < end and text[end - 1].isspace():
        end -= 1
    if text.startswith("sparse"):
        array = decode_sparse(text, start, end, type)
    elif text.startswith('"', start):
        array = decode_hex(text, start, end, type)
    elif text.startswith("[", start):
        array = decode_list(unquoted(text[start:end]) if quoted else text[start:end], type, start)
    elif start < end:
        array = splat(from_bits(np.array([bits_of(text[start:end], type.element, start)]), type.element), type)
    elif type.size:
        raise SyntaxFault(f"dense<> has no elements, but {type} has {type.size}", start - 1, kind="shape")
    else:
        array = np.zeros(type.dims, type.element.dtype)
    return read_only(array)


def unquoted(text: str) -> str:
    """A list with its elements' bits, `["0x00", "0x7F"]`, as numbers at the same places."""
    return BITS.sub(r" \1 ", text)


def read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


def check_size(type: TensorType) -> None:
    if not type.is_static:
        raise SyntaxFault(f"a constant needs a static type, not {type}", kind="type")
    if type.rank > MAXIMUM_RANK:
        raise SyntaxFault(f"a constant of rank {type.rank} is not supported", kind="unsupported")
    if type.nbytes > limits.TENSOR_BYTES:
        raise SyntaxFault(f"{type} has {type.nbytes} bytes, more than the limit of 2^31 - 1", kind="shape")
    if type.nbytes > limits.most_bytes():
        raise SyntaxFault(f"{type} has {type.nbytes:,} bytes, the limit is {limits.most_bytes():,}", kind="limit")


def splat(one: Array, type: TensorType) -> Array:
    """The one element of `one`, everywhere."""
    if type.nbytes > LARGE_SPLAT:
        return np.broadcast_to(one.reshape(()), type.dims)
    return np.repeat(one, type.size).reshape(type.dims)


# Blobs

def decode_hex(text: str, start: int, end: int, type: TensorType) -> Array:
    if not text.startswith('"0x', start) or text[end - 1] != '"' or end - start < 4:
        raise SyntaxFault('expected a hexadecimal string "0x..."', start)
    data, one = hexadecimal(text[start + 3:end - 1], start + 3), stored_bytes(type.element)
    found = from_raw(data, type)
    if found is None:
        bits = f", or {bitmap_bytes(type)} of eight elements each" if type.element == I1 else ""
        raise SyntaxFault(f"{len(data)} bytes of data, but {type} takes {one * type.size} "
                          f"(or {one} for all elements alike{bits})", start, kind="shape")
    return found


def from_raw(data: bytes | memoryview, type: TensorType) -> Array | None:
    """The elements of a constant as MLIR keeps it: all of them, or one for all; None where the size is another.

    MLIR of 2026 and later has a boolean in a byte of its own, MLIR before that, TensorFlow's too, eight in a byte, the first in
    its lowest bit, and 0x00 or 0xFF for all alike. The size says which; of up to eight booleans in one byte a
    byte that is neither 0x00 nor 0xFF is taken for packed ones.
    """
    one = stored_bytes(type.element)
    if len(data) == one * type.size:
        return from_bytes(data, type.element).reshape(type.dims)
    alike = len(data) == one
    if type.element == I1 and len(data) == bitmap_bytes(type) and not (alike and data[0] in (0x00, 0xFF)):
        bits = np.unpackbits(np.frombuffer(data, np.uint8), count=type.size, bitorder="little")
        return bits.astype(bool).reshape(type.dims)
    return splat(from_bytes(data, type.element), type) if alike else None


def bitmap_bytes(type: TensorType) -> int:
    """Bytes of booleans of which eight are in a byte."""
    return -(-type.size // 8)


def decode_blob(digits: str, type: TensorType) -> Array:
    """The array of a resource `0x...`, whose first four bytes are its alignment."""
    check_size(type)
    if not digits.startswith("0x") or len(digits) < 10:
        raise SyntaxFault("expected a hexadecimal string 0x... that begins with four bytes of alignment")
    hexadecimal(digits[2:10], 2)
    data, one = hexadecimal(digits[10:], 10), stored_bytes(type.element)
    if type.element.name == "i48" and len(data) == 8 * type.size:
        return read_only(np.frombuffer(data, np.int64).reshape(type.dims))
    if len(data) != one * type.size:
        raise SyntaxFault(f"{len(data)} bytes of data, but {type} takes {one * type.size}", kind="shape")
    return read_only(from_bytes(data, type.element).reshape(type.dims))


def hexadecimal(digits: str, offset: int) -> bytes:
    """The bytes of hexadecimal digits."""
    try:
        data = bytes.fromhex(digits)
    except ValueError:
        data = b""
    if 2 * len(data) != len(digits):
        wrong = re.search(r"[^0-9A-Fa-f]", digits)
        if wrong:
            raise SyntaxFault(f"{wrong.group()!r} is no hexadecimal digit", offset + wrong.start())
        raise SyntaxFault("a hexadecimal string needs an even number of digits", offset)
    return data


def stored_bytes(element: ElementType) -> int:
    """Bytes of one element in a blob."""
    return 6 if element.name == "i48" else element.itemsize


def from_bytes(data: bytes | memoryview, element: ElementType) -> Array:
    """The elements that a blob holds, in one dimension: i1 and i4 in a byte each, i48 in six."""
    match element.name:
        case "i1":
            return np.frombuffer(data, np.uint8) != 0
        case "i4":
            return (((np.frombuffer(data, np.int8) & 15) ^ 8) - 8).astype(np.int8)
        case "i48":
            wide = np.zeros((len(data) // 6, 8), np.uint8)
            wide[:, 2:] = np.frombuffer(data, np.uint8).reshape(-1, 6)
            return wide.view("<i8").reshape(-1).astype(np.int64) >> 16
        case _:
            return np.frombuffer(data, element.dtype)


# Sparse

def decode_sparse(text: str, start: int, end: int, type: TensorType) -> Array:
    """`sparse<[[0, 1], [2, 0]], [1.0, 2.0]>`: the elements that are not zero, by their indices."""
    comma = top_level_comma(text, start, end)
    values_at = comma + 1 + len(text[comma + 1:end]) - len(text[comma + 1:end].lstrip())
    indices = sparse_list(text, start, comma, I64)
    values = sparse_list(text, values_at, end, type.element)
    if indices.ndim < 2:
        indices = np.broadcast_to(indices.reshape(-1, 1), (max(indices.size, 1), type.rank))
    if indices.shape[1] != type.rank:
        raise SyntaxFault(f"expected indices of {type.rank} numbers each", start, kind="shape")
    if values.ndim > 1 or values.size not in (1, len(indices)):
        raise SyntaxFault(f"{len(indices)} indices, but {values.size} values", values_at, kind="shape")
    if (indices < 0).any() or (indices >= np.array(type.dims)).any():
        raise SyntaxFault(f"an index is outside {type}", start, kind="shape")
    if type.nbytes > LARGE_SPLAT + 64 * len(text):
        raise SyntaxFault(f"a sparse constant of {type.nbytes} bytes is not supported", start, kind="unsupported")
    array = np.zeros(type.dims, type.element.dtype)
    array[tuple(indices.T)] = values
    return array


def sparse_list(text: str, start: int, end: int, element: ElementType) -> Array:
    """A list, or a list of lists, or one number; its shape is not declared, so it is counted."""
    body = text[start:end].rstrip()
    if not body.startswith("["):
        return from_bits(np.array([bits_of(body, element, start)]), element).reshape(())
    columns = body.count(",") + 1
    dims: tuple[int, ...] = (columns,)
    if body[1:].lstrip().startswith("["):
        rows = body.count("[") - 1
        dims = (rows, columns // rows)
    return decode_list(body, TensorType(dims, element), start)


def top_level_comma(text: str, start: int, end: int) -> int:
    depth = 0
    for match in re.compile(r"[\[\],]").finditer(text, start, end):
        depth += {"[": 1, "]": -1}.get(match.group(), 0)
        if match.group() == "," and not depth:
            return match.start()
    raise SyntaxFault("expected indices and values, as in sparse<[[0, 1]], [1.0]>", start)
