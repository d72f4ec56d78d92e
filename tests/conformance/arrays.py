"""Arrays between Arm's .npy files and tosaic: what the files hold of types that NumPy does not have.

    type                      in the file                                     in tosaic
    bf16, fp8e4m3, fp8ue8m0   plain bytes (V2, V1) when loaded, `ml_dtypes`    `ml_dtypes`
                              arrays when saved
    fp8e5m2, mxint8           uint8                                           `ml_dtypes`, int8
    fp4, fp6                  codes side by side, no bit between them, along   a byte an element
                              the last axis, lowest bits first
    unsigned integers         uint8, uint16                                   signed: an attribute says how to take them
    block-scaled              X.npy with the numbers, X_scale.npy with        a record (value, scale) an element
                              a factor for each block
"""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def read_input(path: Path, element: Any) -> Array:
    """A test's input file as an array of the graph's element type (None: a shape)."""
    array = np.load(path)
    if element is None:
        return array
    if element.kind == "block_scaled":
        from tosaic.lowering.graph.block_scaled_arrays import joined
        return joined(typed(array, element.value), typed(np.load(scale_file(path)), element.scale), element)
    return typed(array, element)


def typed(array: Array, element: Any) -> Array:
    """An array as NumPy loaded it, in the element's dtype where the file's bits stand for it."""
    dtype = element.dtype
    if array.dtype == dtype:
        return array
    if element.is_float and element.bits < 8:
        return unpacked(array, element.bits).view(dtype)
    if array.dtype.itemsize == dtype.itemsize and (array.dtype.kind in "Vu" or element.bits == 8):
        return np.ascontiguousarray(array).view(dtype).reshape(array.shape)
    return array


def written(file: str, array: Array, element: Any) -> dict[str, Array]:
    """A result as the arrays that the verifier reads, by file name."""
    if element is not None and element.kind == "block_scaled":
        from tosaic.lowering.graph.block_scaled_arrays import split
        values, scales = split(array, element)
        return {file: coded(values, element.value), scale_file(Path(file)).name: coded(scales, element.scale)}
    return {file: array if element is None else coded(array, element)}


def coded(array: Array, element: Any) -> Array:
    """An array of one element type as the verifier reads it."""
    match element.name:
        case "f8E5M2" | "!tosa.mxint8":
            return np.ascontiguousarray(array).view(np.uint8).reshape(array.shape)
        case "f4E2M1FN" | "f6E2M3FN" | "f6E3M2FN":
            return packed(np.ascontiguousarray(array).view(np.uint8), element.bits)
        case "f8E4M3FN" | "f8E8M0FNU":
            return np.ascontiguousarray(array).view(element.dtype).reshape(array.shape)
        case _:
            return array


def scale_file(path: Path) -> Path:
    """The name of the second file of a block-scaled tensor."""
    return path.with_stem(f"{path.stem}_scale")


def packed(codes: Array, bits: int) -> Array:
    """Codes of fewer than 8 bits, one in a byte, put side by side along the last axis; lowest bits first."""
    spread = np.unpackbits(codes[..., np.newaxis], axis=-1, count=bits, bitorder="little")
    return np.packbits(spread.reshape(*codes.shape[:-1], -1), axis=-1, bitorder="little")


def unpacked(array: Array, bits: int) -> Array:
    """The codes that lie side by side along the last axis, one in a byte; 8 of the file's bits may end in a part of one."""
    spread = np.unpackbits(array, axis=-1, bitorder="little")
    count = spread.shape[-1] // bits
    grouped = spread[..., :count * bits].reshape(*array.shape[:-1], count, bits)
    return np.packbits(grouped, axis=-1, bitorder="little")[..., 0]
