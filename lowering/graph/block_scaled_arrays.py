"""Arrays of composite types (TOSA 1.1): as records, one value with its scale for each element, the form of the reference and
of a graph's constants; and as two arrays, values and scales, the form that compiled code takes and returns.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...runtime.errors import require
from .types import Array, BlockScaled, TensorType


def joined(data: Array, scale: Array, element: BlockScaled) -> Array:
    """Return records of `element.dtype` from values [..., n] and scales [..., n / block], in their storage dtypes or as codes
    in bytes; raise a Problem unless the shapes fit."""
    fits = data.ndim > 0 and (*scale.shape[:-1], scale.shape[-1] * element.block if scale.ndim else 0) == data.shape
    require(fits, f"scales of shape {list(scale.shape)} do not fit values of shape {list(data.shape)}", kind="shape")
    records = np.empty(data.shape, element.dtype)
    records["value"] = stored(data, element.value.dtype)
    records["scale"] = np.repeat(stored(scale, element.scale.dtype), element.block, axis=-1)
    return records


def split(records: Array, element: BlockScaled) -> tuple[Array, Array]:
    """Return (values [..., n], scales [..., n / block]) of records."""
    return np.ascontiguousarray(records["value"]), np.ascontiguousarray(records["scale"][..., ::element.block])


def stored(array: Array, dtype: np.dtype[Any]) -> Array:
    """Return the codes of `array`, bytes of any dtype, as elements of `dtype`."""
    array = np.ascontiguousarray(array)
    require(array.dtype.itemsize == 1, f"an array of {array.dtype} holds no codes of {dtype}", kind="argument")
    return array.view(dtype)


def joined_all(arrays: Sequence[Array], types: Sequence[Any]) -> list[Array]:
    """Return one array for each type, from the arrays of compiled code: two for a composite type, one for any other."""
    rest: Iterator[Array] = iter(arrays)
    result = []
    for type in types:
        first = next(rest)
        composite = isinstance(type, TensorType) and isinstance(type.element, BlockScaled)
        result.append(joined(first, next(rest), type.element) if composite else first)
    return result


def split_all(arrays: Sequence[Array], types: Sequence[Any]) -> list[Array]:
    """Return the arrays of compiled code for arrays of these types: two for a composite type, one for any other."""
    result: list[Array] = []
    for array, type in zip(arrays, types, strict=True):
        composite = isinstance(type, TensorType) and isinstance(type.element, BlockScaled)
        result += split(array, type.element) if composite else (array,)
    return result
