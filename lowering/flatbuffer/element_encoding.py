"""Elements of tensors as the bytes that .tosa files have, and back: little-endian, types of less than a byte packed with the
first element in the lowest bits.
"""
from __future__ import annotations

import math

import numpy as np

from ...runtime.errors import Problem
from ..graph.block_scaled_arrays import joined, split
from ..graph.types import Array, BlockScaled, ElementType

ALIGNMENT = 8


def encoded_size(element: ElementType, count: int) -> int:
    """Bytes of `count` elements: a bool takes one, others their bits."""
    return count if element.kind == "bool" else -(-count * element.bits // 8)


def decode(data: Array, element: ElementType, shape: tuple[int, ...]) -> Array:
    """Return an array of `element.dtype` from packed bytes; read-only, a view if memory holds the same bytes.

    Some writers pad the bytes with zeros to a multiple of eight.
    """
    count = math.prod(shape)
    expected = encoded_size(element, count)
    if not expected <= data.size <= -(-expected // ALIGNMENT) * ALIGNMENT or data[expected:].any():
        raise Problem(f"the data are {data.size} bytes, {count} elements of {element} take {expected}", kind="shape")
    result = elements(data[:expected], element, count).reshape(shape)
    result.flags.writeable = False
    return result


def elements(data: Array, element: ElementType, count: int) -> Array:
    match element:
        case ElementType(kind="bool"):
            return data.view(np.bool_) if bool((data <= 1).all()) else data != 0
        case ElementType(name="i48"):
            wide = np.zeros((count, 8), np.uint8)
            wide[:, :6] = data.reshape(count, 6)
            return wide.reshape(-1).view("<i8") << 16 >> 16
        case ElementType(name="i4"):
            return ((nibbles(data, count) ^ 8) - 8).view(np.int8)
        case ElementType(bits=4):
            return nibbles(data, count).view(element.dtype)
        case ElementType(bits=6):
            return sixes(data, count).view(element.dtype)
        case _:
            found = data.view(element.dtype)
            return found if found.flags.aligned else found.copy()


def nibbles(data: Array, count: int) -> Array:
    """Numbers of 4 bits, each in a byte."""
    return np.stack((data & 15, data >> 4), axis=-1).reshape(-1)[:count]


def sixes(data: Array, count: int) -> Array:
    """Numbers of 6 bits, each in a byte; four of them take three bytes."""
    bits = np.unpackbits(data, bitorder="little")[:count * 6].reshape(count, 6)
    return np.packbits(bits, axis=-1, bitorder="little").reshape(-1)


def encode(array: Array, element: ElementType) -> Array:
    """The bytes of an array, as `decode` takes them; a view where nothing has to be moved."""
    flat = np.ascontiguousarray(array).reshape(-1)
    match element:
        case ElementType(name="i48"):
            return flat.astype("<i8", copy=False).view(np.uint8).reshape(-1, 8)[:, :6].reshape(-1)
        case ElementType(bits=4):
            codes = flat.view(np.uint8) & 15
            even = np.append(codes, np.uint8(0)) if len(codes) % 2 else codes
            return even[::2] | even[1::2] << 4
        case ElementType(bits=6):
            bits = np.unpackbits(flat.view(np.uint8)[:, None], axis=-1, bitorder="little")[:, :6]
            return np.packbits(bits.reshape(-1), bitorder="little")
        case _:
            return flat.view(np.uint8)


def decode_scaled(data: Array, scales: Array, element: BlockScaled, shape: tuple[int, ...]) -> Array:
    """A block-scaled array: a record of value and scale for each element."""
    if not shape or shape[-1] % element.block:
        raise Problem(f"{element.block} elements share a scale, but the shape is {list(shape)}", kind="shape")
    factors = decode(scales, element.scale, (*shape[:-1], shape[-1] // element.block))
    result = joined(decode(data, element.value, shape), factors, element)
    result.flags.writeable = False
    return result


def encode_scaled(array: Array, element: BlockScaled) -> tuple[Array, Array]:
    """The bytes of the values and of the scales of a block-scaled array."""
    values, scales = split(array, element)
    return encode(values, element.value), encode(scales, element.scale)
