"""Types and data of values <-> tensors and shapes of a .tosa file."""
from __future__ import annotations

import numpy as np

from ...runtime.errors import Problem, require
from ..graph.file_position import shown
from ..graph.types import Array, BlockScaled, ElementType, ShapeType, TensorType, Type, block_scaled
from ..graph.verify import MOST_EXTENTS
from .element_encoding import decode, decode_scaled, encode, encode_scaled
from .records import ShapeRecord, TensorRecord
from .schema import BLOCK_SHAPE, ELEMENT_CODES, ELEMENTS, SIGNLESS

EXTENT_BYTES = 8
"""Bytes of one extent of a constant shape."""
UNKNOWN_EXTENT = -1
"""The extent that tosa-opt writes for `?`. It is not in the specification: only the inputs of a graph show that it is meant
so."""


# ---- file -> graph -----------------------------------------------------------------------------------------------
def element_type(number: int, what: str) -> ElementType:
    """Return the element type with that code."""
    found = ELEMENTS[number] if number < len(ELEMENTS) else None
    if found is None:
        known = "UNKNOWN" if number == 0 else "SHAPE" if number < len(ELEMENTS) else str(number)
        raise Problem(f"{what} is {known}, which is no element type", kind="type")
    return found


def type_of(record: TensorRecord | ShapeRecord, is_dynamic: bool = False) -> TensorType | ShapeType:
    """Return the type of a tensor or shape; raise a Problem for an invalid type. Extents stay as written, because `verify` of
    the graph checks them: if an operator's result has a wrong one, the rule that the operator breaks says more. Only if the
    file `is_dynamic`, -1 is an unknown extent."""
    if isinstance(record, ShapeRecord):
        require(record.rank <= MOST_EXTENTS, f"the shape has {record.rank} extents", kind="level")
        return ShapeType(record.rank)
    require(len(record.shape) <= MOST_EXTENTS, f"the tensor has rank {len(record.shape)}", kind="level")
    element = element_type(record.element, "the type")
    if record.is_unranked:
        return TensorType(None, element)
    is_plain = not record.scale and not record.block
    shape = tuple(None if n == UNKNOWN_EXTENT and is_dynamic else n for n in record.shape)
    return TensorType(shape, element if is_plain else composite(element, record))


def composite(value: ElementType, record: TensorRecord) -> BlockScaled:
    """Return the element type of a tensor with scales."""
    scale, found = element_type(record.scale, "the type of the scales"), block_scaled(value)
    require(scale == found.scale, f"the scales are {scale}, they must be {found.scale}")
    require(record.block == BLOCK_SHAPE, f"{record.block} is no shape of a block", help=f"{BLOCK_SHAPE} is")
    require(bool(record.shape) and record.shape[-1] % BLOCK_SHAPE == 0,
            f"{BLOCK_SHAPE} elements share a scale, but the shape is {list(record.shape)}", kind="shape")
    return found


def data_of(record: TensorRecord | ShapeRecord, type: TensorType | ShapeType) -> Array:
    """Return the data of a constant; read-only, a view of the file where possible."""
    if isinstance(record, ShapeRecord):
        return extents(record)
    assert isinstance(type, TensorType)
    if record.data is None or not type.is_static:
        raise Problem(f"{shown(record.name)} has no data", kind="shape")
    require(all(n > 0 for n in type.dims), f"{shown(record.name)} has an extent below 1: {list(type.dims)}", kind="shape")
    if not isinstance(type.element, BlockScaled):
        return decode(record.data, type.element, type.dims)
    if record.scale_data is None:
        raise Problem(f"{shown(record.name)} has no scales", kind="shape")
    return decode_scaled(record.data, record.scale_data, type.element, type.dims)


def extents(record: ShapeRecord) -> Array:
    """Return the data of a shape; rank 0 may have room for one number, which is ignored."""
    data = np.empty(0, np.uint8) if record.data is None else record.data
    if record.rank == 0 and data.size == EXTENT_BYTES:
        data = data[:0]
    expected = EXTENT_BYTES * record.rank
    require(data.size == expected, f"the shape's data are {data.size} bytes, {record.rank} extents take {expected}",
            kind="shape")
    found = data.view("<i8").copy()
    found.flags.writeable = False
    return found


# ---- graph -> file -----------------------------------------------------------------------------------------------
def element_code(element: ElementType) -> int:
    """Return the number of an element type. In files integers have no sign of their own; their operators have."""
    found = ELEMENT_CODES.get(SIGNLESS.get(element.name, element.name))
    if found is None:
        raise Problem(f"a .tosa file has no elements of {element}", kind="unsupported")
    return found


def record_of(name: str, type: Type, data: Array | None = None) -> TensorRecord | ShapeRecord:
    """Return a tensor or shape, with its data if it is a constant; raise a Problem for a type that files do not have."""
    match type:
        case ShapeType(rank):
            return ShapeRecord(name, rank, None if data is None else np.ascontiguousarray(data, "<i8").view(np.uint8))
        case TensorType():
            return tensor_record(name, type, data)
        case _:
            raise Problem(f"{name} is {type}, a .tosa file has tensors and shapes only", kind="unsupported")


def tensor_record(name: str, type: TensorType, data: Array | None = None) -> TensorRecord:
    if type.shape is None:
        raise Problem(f"{name} is {type}, a .tosa file needs the rank", kind="unsupported")
    shape = tuple(UNKNOWN_EXTENT if n is None else n for n in type.shape)
    require(max(shape, default=1) < 1 << 31, f"{name} is {type}, a .tosa file has 32 bits for an extent", kind="unsupported")
    element = type.element
    if isinstance(element, BlockScaled):
        values, scales = (None, None) if data is None else encode_scaled(data, element)
        return TensorRecord(name, shape, element_code(element.value), values, scale=element_code(element.scale),
                            scale_data=scales, block=BLOCK_SHAPE)
    return TensorRecord(name, shape, element_code(element), None if data is None else encode(data, element))
