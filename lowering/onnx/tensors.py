"""Tensors of ONNX files as arrays: from the mapped file if their bytes are there, from files beside the model, or from the
message's own fields."""
from __future__ import annotations

import math
import os
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from ..dialects.onnx.element_types import element_of
from ..dialects.tf.types import tensorflow_tensor, tensorflow_type
from ..graph.types import Array, ElementType, TensorType
from ..text.attributes import Dense, Strings
from .cut_weights import Cut

STRING = 8
IN_INT32 = {"bool", "int8", "uint8", "int16", "uint16", "int32"}
"""Dtypes whose elements are stored in int32_data, one element per entry."""
MOST_ELEMENTS = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Sources of the bytes of tensors: the file itself, the weights cut out of it, and the folder of files beside it. `mapped`
    holds the files that are open."""
    data: memoryview
    cut: Cut
    folder: Path | None
    mapped: dict[str, Array] = field(default_factory=dict)

    def constant(self, tensor: Any) -> Dense | Strings:
        """Return a tensor message as an attribute."""
        dims = tuple(int(n) for n in tensor.dims)
        if any(n < 0 for n in dims) or math.prod(dims) > MOST_ELEMENTS:
            raise Problem(f"the tensor {tensor.name} has the shape {list(dims)}", kind="shape")
        if tensor.data_type == STRING:
            if len(tensor.string_data) != math.prod(dims):
                raise Problem(f"the tensor {tensor.name} has {len(tensor.string_data)} strings for {list(dims)}", kind="shape")
            return Strings(tuple(tensor.string_data), tensorflow_tensor(dims, tensorflow_type("string")))
        element = element_of(tensor.data_type)
        array = self.array(tensor, element, math.prod(dims))
        if array.size != math.prod(dims):
            raise Problem(f"the tensor {tensor.name} has {array.size} elements, its shape {list(dims)} needs {math.prod(dims)}",
                          kind="shape")
        array = array.reshape(dims)
        array.setflags(write=False)
        return Dense(array, TensorType(dims, element))

    def array(self, tensor: Any, element: ElementType, count: int) -> Array:
        """Return the tensor's elements in order."""
        if tensor.data_location == 1:
            return elements_of(self.external(tensor, nbytes(element, count)), element, count, tensor.name)
        if tensor.HasField("raw_data"):
            raw = tensor.raw_data
            place = self.cut.place(raw)
            found = self.data[place[0]:place[0] + place[1]] if place else raw
            return elements_of(np.frombuffer(found, np.uint8), element, count, tensor.name)
        return in_fields(tensor, element, count)

    def external(self, tensor: Any, length: int) -> Array:
        """Return the bytes of a tensor in a file beside the model, mapped."""
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


def is_packed(element: ElementType) -> bool:
    """True if several elements share a byte."""
    return 1 < element.bits < 8


def nbytes(element: ElementType, count: int) -> int:
    return -(-count * element.bits // 8) if is_packed(element) else count * element.itemsize


def elements_of(raw: Array, element: ElementType, count: int, name: str) -> Array:
    """Return stored bytes as elements."""
    if raw.nbytes != nbytes(element, count):
        raise Problem(f"the tensor {name} has {raw.nbytes} bytes, {count} elements of {element} need {nbytes(element, count)}",
                      kind="shape")
    return unpacked(raw, element, count) if is_packed(element) else raw.view(element.dtype)


def unpacked(raw: Array, element: ElementType, count: int) -> Array:
    """Unpack consecutive elements of 2, 4 or 6 bits, the first in the lowest bits; four elements of 6 bits are in three
    bytes."""
    words = raw
    if element.bits == 6:
        groups = np.pad(raw, (0, -len(raw) % 3)).reshape(-1, 3).astype(np.uint32)
        words = groups[:, 0] | groups[:, 1] << 8 | groups[:, 2] << 16
    mask, each = (1 << element.bits) - 1, (24 if element.bits == 6 else 8) // element.bits
    codes = np.stack([words >> element.bits * i & mask for i in range(each)], -1).reshape(-1)[:count].astype(np.uint8)
    if element.kind == "signed":
        half = 1 << (element.bits - 1)
        return ((codes ^ half).astype(np.int8) - half).astype(np.int8)
    return codes.view(element.dtype)


def in_fields(tensor: Any, element: ElementType, count: int) -> Array:
    """Return the elements in the fields of the message."""
    dtype = element.dtype
    if element.bits in (2, 4):
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
        case _:  # floats of fewer bits, stored as their bit patterns
            width = f"uint{8 * dtype.itemsize}"
            return np.array(tensor.int32_data, np.int64).astype(width).view(dtype)
