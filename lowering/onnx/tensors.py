"""Tensors of ONNX files as arrays: from the mapped file where their bytes lie there, from files beside the model, or from the
message's own fields."""
from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from ..dialects.tf.types import tensorflow_tensor, tensorflow_type
from ..graph.types import (
    BF16,
    F8E4M3,
    F8E5M2,
    F16,
    F32,
    F64,
    I1,
    I4,
    I8,
    I16,
    I32,
    I64,
    UI4,
    UI8,
    UI16,
    UI32,
    UI64,
    Array,
    ElementType,
    TensorType,
)
from ..text.attributes import Dense, Strings
from .cut_weights import Cut

ELEMENTS: Mapping[int, ElementType] = {
    1: F32, 2: UI8, 3: I8, 4: UI16, 5: I16, 6: I32, 7: I64, 9: I1, 10: F16, 11: F64, 12: UI32, 13: UI64, 16: BF16, 17: F8E4M3,
    19: F8E5M2, 21: UI4, 22: I4}
"""Element types by their numbers in onnx.proto."""
STRING = 8
NAMES = {14: "complex64", 15: "complex128", 18: "float8e4m3fnuz", 20: "float8e5m2fnuz", 23: "float4e2m1", 24: "float8e8m0",
         25: "uint2", 26: "int2"}
"""Those that have no place here."""
IN_INT32 = {"bool", "int8", "uint8", "int16", "uint16", "int32"}
"""Dtypes whose elements stand in int32_data, one each."""
MOST_ELEMENTS = 1 << 40


def element_type(number: int) -> ElementType:
    """The element type of that number; a Problem where there is none."""
    found = ELEMENTS.get(number)
    if found is None:
        raise Problem(f"tensors of {NAMES.get(number, f'the type {number}')} have no place in TOSA", kind="unsupported")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Where the bytes of tensors are: the file's own, what was cut out of it, and the folder of files beside it. `mapped` holds
    those that are open."""
    data: memoryview
    cut: Cut
    folder: Path | None
    mapped: dict[str, Array] = field(default_factory=dict)

    def constant(self, tensor: Any) -> Dense | Strings:
        """A message of a tensor as an attribute."""
        dims = tuple(int(n) for n in tensor.dims)
        if any(n < 0 for n in dims) or math.prod(dims) > MOST_ELEMENTS:
            raise Problem(f"the tensor {tensor.name} has the shape {list(dims)}", kind="shape")
        if tensor.data_type == STRING:
            if len(tensor.string_data) != math.prod(dims):
                raise Problem(f"the tensor {tensor.name} has {len(tensor.string_data)} strings for {list(dims)}", kind="shape")
            return Strings(tuple(tensor.string_data), tensorflow_tensor(dims, tensorflow_type("string")))
        element = element_type(tensor.data_type)
        array = self.array(tensor, element, math.prod(dims))
        if array.size != math.prod(dims):
            raise Problem(f"the tensor {tensor.name} has {array.size} elements, its shape {list(dims)} needs {math.prod(dims)}",
                          kind="shape")
        array = array.reshape(dims)
        array.setflags(write=False)
        return Dense(array, TensorType(dims, element))

    def array(self, tensor: Any, element: ElementType, count: int) -> Array:
        """Its elements in order."""
        if tensor.data_location == 1:
            return elements_of(self.external(tensor, nbytes(element, count)), element, count, tensor.name)
        if tensor.HasField("raw_data"):
            raw = tensor.raw_data
            place = self.cut.place(raw)
            found = self.data[place[0]:place[0] + place[1]] if place else raw
            return elements_of(np.frombuffer(found, np.uint8), element, count, tensor.name)
        return in_fields(tensor, element, count)

    def external(self, tensor: Any, length: int) -> Array:
        """The bytes of a tensor in a file beside the model, mapped."""
        entries = {e.key: e.value for e in tensor.external_data}
        location = entries.get("location", "")
        if self.folder is None:
            raise Problem(f"the tensor {tensor.name} is in {location!r}, a file beside the model", kind="file",
                          help="pass the path of the model")
        path = os.path.normpath(self.folder / location)
        inside = os.path.realpath(path).startswith(os.path.realpath(self.folder) + os.sep)
        if not location or os.path.isabs(location) or ".." in Path(location).parts or not inside:
            raise Problem(f"the tensor {tensor.name} is in {location!r}, which is not beside the model", kind="file")
        offset, size = whole(entries.get("offset", "0")), whole(entries.get("length", str(length)))
        if path not in self.mapped:
            try:
                self.mapped[path] = np.memmap(path, np.uint8, "r")
            except (OSError, ValueError) as error:
                raise Problem(f"{path}, the file of the tensor {tensor.name}, cannot be read: {error}", kind="file") from None
        return self.mapped[path][offset:offset + size]


def whole(text: str) -> int:
    try:
        return max(int(text), 0)
    except ValueError:
        raise Problem(f"{text!r} is no number of bytes", kind="file") from None


def nbytes(element: ElementType, count: int) -> int:
    return -(-count // 2) if element.bits == 4 else count * element.itemsize


def elements_of(raw: Array, element: ElementType, count: int, name: str) -> Array:
    """Stored bytes as elements; two of four bits in a byte, the first in its lower half."""
    if raw.nbytes != nbytes(element, count):
        raise Problem(f"the tensor {name} has {raw.nbytes} bytes, {count} elements of {element} need {nbytes(element, count)}",
                      kind="shape")
    if element.bits == 4:
        return unpacked(raw, element, count)
    return raw.view(element.dtype)


def unpacked(raw: Array, element: ElementType, count: int) -> Array:
    halves = np.stack([raw & 15, raw >> 4], -1).reshape(-1)[:count]
    return ((halves ^ 8).astype(np.int8) - 8).astype(np.int8) if element.kind == "signed" else halves.astype(np.uint8)


def in_fields(tensor: Any, element: ElementType, count: int) -> Array:
    """Elements in the fields of the message."""
    dtype = element.dtype
    if element.bits == 4:
        return unpacked(np.array(tensor.int32_data, np.int64).astype(np.uint8), element, count)
    match dtype.name:
        case "float32":
            return np.array(tensor.float_data, np.float32)
        case "float64":
            return np.array(tensor.double_data, np.float64)
        case "int64":
            return np.array(tensor.int64_data, np.int64)
        case "uint32" | "uint64":
            return np.array(tensor.uint64_data, np.uint64).astype(dtype)
        case name if name in IN_INT32:
            return np.array(tensor.int32_data, np.int64).astype(dtype)
        case _:  # floats of fewer bits, as the bits that they have
            width = f"uint{8 * dtype.itemsize}"
            return np.array(tensor.int32_data, np.int64).astype(width).view(dtype)
