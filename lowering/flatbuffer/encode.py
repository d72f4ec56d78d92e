"""Records -> the bytes of a .tosa file.

Empty vectors and strings are written too: other readers require them. A flatbuffer ends below 2 GB. If constants make it
longer, they follow it, and tensors hold their offsets.
"""
from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from ..graph.types import Array
from .records import BlockRecord, FileRecord, OperatorRecord, RegionRecord, ShapeRecord, TensorRecord
from .schema import IDENTIFIER
from .table_builder import EMPTY, MAXIMUM_SIZE, Data, FlatbufferBuilder, Node, Scalar, TableNode

ALIGNMENT = 8


def encode(file: FileRecord, limit: int = MAXIMUM_SIZE) -> bytes:
    """Return the bytes of a file, with the constants after the flatbuffer if it would have more than `limit` bytes
    otherwise."""
    inside, size = flatbuffer(file, None)
    if size <= limit:
        return b"".join(inside)
    _, size = flatbuffer(file, Behind(ALIGNMENT))  # numbers have a fixed width: the size does not depend on them
    if size > limit:
        raise Problem(f"the file without its constants would have {size} bytes, a flatbuffer has {limit} at most",
                      kind="unsupported")
    behind = Behind(size)
    chunks, _ = flatbuffer(file, behind)
    return b"".join([*chunks, *behind.chunks])


@dataclass(slots=True)
class Behind:
    """Data after the flatbuffer. `end` is the offset of the next data."""
    end: int
    chunks: list[bytes | memoryview] = field(default_factory=list)

    def add(self, array: Array) -> tuple[Scalar, Scalar]:
        """Offset and size of some data."""
        place = self.end
        self.chunks += [array.data, bytes(-array.size % ALIGNMENT)]
        self.end += array.size + -array.size % ALIGNMENT
        return Scalar("Q", place), Scalar("Q", array.size)


def flatbuffer(file: FileRecord, behind: Behind | None) -> tuple[list[bytearray | bytes | memoryview], int]:
    """Return the chunks of the flatbuffer and their size; data that are not `behind` it are in it."""
    regions = tuple(region_table(region, behind) for region in file.regions)
    root = TableNode((version_table(file), regions, None, compatibility_table(file.features) if file.features else None))
    builder = FlatbufferBuilder()
    try:
        return builder.file(root, IDENTIFIER), builder.size
    except UnicodeEncodeError as error:
        raise Problem(f"the name {error.object!r} is not UTF-8", kind="symbol") from None


def version_table(file: FileRecord) -> TableNode:
    numbers = tuple(Scalar("i", n) for n in file.version)
    return TableNode((*numbers, None if file.draft else Scalar("B", 0)))


def compatibility_table(features: int) -> TableNode:
    return TableNode((None, Scalar("Q", features)))


def region_table(region: RegionRecord, behind: Behind | None) -> TableNode:
    return TableNode((region.name, tuple(block_table(block, behind) for block in region.blocks)))


def block_table(block: BlockRecord, behind: Behind | None) -> TableNode:
    tensors = tuple(tensor_table(tensor, behind) for tensor in block.tensors)
    return TableNode((block.name, tuple(map(operator_table, block.operators)), tensors, block.inputs, block.outputs,
                      tuple(map(shape_table, block.shapes))))


def operator_table(operator: OperatorRecord) -> TableNode:
    fields = tuple(field_node(f.kind, operator.fields[f.name]) for f in operator.attribute.fields)
    return TableNode((Scalar("I", operator.code.number), Scalar("B", operator.attribute.number), TableNode(fields),
                      operator.inputs, operator.outputs, TableNode((operator.location,))))


def field_node(kind: str, value: Any) -> Scalar | Node | None:
    match kind:
        case "bool":
            return flag(value)
        case "int32":
            return Scalar("i", value) if value else None
        case "int32s":
            return Data(np.array(value, "<i4"))
        case "text":
            return str(value)
        case "bytes":
            return Data(np.frombuffer(value, np.uint8), True)
        case _:
            return number(value)


def tensor_table(tensor: TensorRecord, behind: Behind | None) -> TableNode:
    data, scales = placed(tensor.data, behind), placed(tensor.scale_data, behind)
    return TableNode((
        tensor.name, Data(np.array(tensor.shape, "<i4")), Scalar("I", tensor.element), data[0], flag(tensor.variable),
        flag(tensor.is_unranked), tensor.variable_name, *data[1:], number(tensor.scale), scales[0], number(tensor.block),
        *scales[1:]))


def placed(array: Array | None, behind: Behind | None) -> tuple[Data, Scalar | None, Scalar | None]:
    """Return data as a vector, and their offset and size after the flatbuffer."""
    if array is None or not array.size:
        return EMPTY, None, None
    return (Data(array, True), None, None) if behind is None else (EMPTY, *behind.add(array))


def shape_table(shape: ShapeRecord) -> TableNode:
    return TableNode((shape.name, number(shape.rank), EMPTY if shape.data is None else Data(shape.data, True)))


def number(value: int) -> Scalar | None:
    """A number whose default is 0."""
    return Scalar("I", value) if value else None


def flag(value: bool) -> Scalar | None:
    return Scalar("B", 1) if value else None
