"""Constants of a .tflite file as arrays, and the types of its tensors."""
from __future__ import annotations

from math import prod

from ...runtime.errors import Problem
from ..flatbuffer.element_encoding import decode, encoded_size
from ..graph.file_position import shown
from ..graph.types import I32, I64, Array, ElementType, TensorType
from .records import TensorRecord
from .schema import ELEMENTS, TYPE_NAMES

LONGEST_LIST = 16
"""Maximum number of integers in operands that hold indices or extents."""


def element_of(tensor: TensorRecord) -> ElementType:
    found = ELEMENTS.get(tensor.type)
    if found is None:
        name = TYPE_NAMES[tensor.type] if tensor.type < len(TYPE_NAMES) else str(tensor.type)
        raise Problem(f"tensor {shown(tensor.name)} is of type {name}, which is not supported", kind="unsupported")
    return found


def type_of(tensor: TensorRecord) -> TensorType:
    return TensorType(tensor.shape, element_of(tensor))


def array_of(tensor: TensorRecord) -> Array:
    """Return a constant's data."""
    assert tensor.data is not None
    element, shape = element_of(tensor), tuple(n or 0 for n in tensor.shape)
    expected = encoded_size(element, prod(shape))
    if tensor.data.size != expected:
        raise Problem(f"the constant {shown(tensor.name)} has {tensor.data.size} bytes, {TensorType(shape, element)} takes "
                      f"{expected}", kind="shape")
    return decode(tensor.data, element, shape)


def integers(tensor: TensorRecord | None) -> tuple[int, ...] | None:
    """Return the numbers of a constant that is a short list of integers; None for anything else."""
    if tensor is None or tensor.data is None or len(tensor.shape) != 1 or (tensor.shape[0] or 0) > LONGEST_LIST:
        return None
    if ELEMENTS.get(tensor.type) not in (I32, I64):
        return None
    return tuple(int(n) for n in array_of(tensor))
