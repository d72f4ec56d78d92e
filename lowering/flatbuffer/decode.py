"""The bytes of a .tosa file -> records. Nothing here interprets the records; it only checks that they are there."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...runtime.errors import Problem
from ..graph.file_position import FilePosition
from ..graph.types import Array
from .bounds_checked import Binary, FlatbufferTable, broken
from .records import BlockRecord, FileRecord, OperatorRecord, RegionRecord, ShapeRecord, TensorRecord
from .schema import IDENTIFIER, KNOWN_FEATURES, OPERATOR_CODES, OperatorCode

VERSIONS = {(1, 0), (1, 1)}
"""Supported versions of TOSA (major, minor) of files."""


def decode(data: bytes, position: FilePosition) -> FileRecord:
    """Return the records of a file; raise a Problem at `position` or inside it for any error."""
    if data[4:8] != IDENTIFIER:
        raise Problem("this is no flatbuffer of TOSA: the bytes from 4 on are not TOSA", position, kind="file")
    try:
        root = Binary(data).root()
        version, features = read_version(root), read_features(root)
    except Problem as problem:
        raise problem.at(position) from None
    return FileRecord(version, entries(root, 1, "region", position, read_region), features)


def entries(table: FlatbufferTable, slot: int, what: str, position: FilePosition,
            read: Callable[[FlatbufferTable, FilePosition], Any]) -> tuple[Any, ...]:
    """Return the entries of a vector of tables, each read with its own position."""
    def entry(number: int, entry: FlatbufferTable) -> Any:
        here = position.inside(f"{what} {number}")
        try:
            return read(entry, here)
        except Problem as problem:
            raise problem.at(here) from None

    try:
        return table.tables(slot, f"the list of {what}s", entry)
    except Problem as problem:
        raise problem.at(position) from None


def read_version(root: FlatbufferTable) -> tuple[int, int, int]:
    table = root.table(0, "the version")
    if table is None:
        raise broken("the file says no version of TOSA")
    major, minor, patch = (table.scalar(slot, "int32", "the version", -1) for slot in range(3))
    if (major, minor) not in VERSIONS:
        raise Problem(f"the file is for TOSA {major}.{minor}.{patch}", kind="unsupported",
                      help="versions 1.0 and 1.1 are understood")
    return major, minor, patch


def read_features(root: FlatbufferTable) -> int:
    """Return the features that a reader must know to understand the file."""
    compatibility = root.table(3, "the compatibility")
    features = compatibility.scalar(1, "uint64", "the features") if compatibility else 0
    if features & ~KNOWN_FEATURES:
        raise Problem(f"the file needs features that are not known, {features & ~KNOWN_FEATURES:#x}", kind="unsupported",
                      help="it was written for a newer reader")
    return features


def read_region(table: FlatbufferTable, position: FilePosition) -> RegionRecord:
    name = table.text(0, "the name")
    return RegionRecord(name, entries(table, 1, "block", named(position, "region", name), read_block))


def named(position: FilePosition, what: str, name: str) -> FilePosition:
    """Return the same position with its name instead of its number."""
    return FilePosition(position.source, 0, 0, path=(*position.path[:-1], f"{what} {name}")) if name else position


def read_block(table: FlatbufferTable, position: FilePosition) -> BlockRecord:
    name = table.text(0, "the name")
    position = named(position, "block", name)
    try:
        inputs, outputs = table.names(3, "the list of inputs"), table.names(4, "the list of outputs")
    except Problem as problem:
        raise problem.at(position) from None
    part = partial(entries, table, position=position)
    return BlockRecord(name, part(1, "operator", read=read_operator), part(2, "tensor", read=read_tensor),
                       part(5, "shape", read=read_shape), inputs, outputs)


def read_operator(table: FlatbufferTable, position: FilePosition) -> OperatorRecord:
    found = code_of(table.scalar(0, "uint32", "the operator's code"), "operator")
    number = table.scalar(1, "ubyte", "the type of the attributes")
    attributes = table.table(2, "the attributes")
    if (attributes is None) != (number == 0):
        raise broken(f"{found.name} has attributes without their type, or a type without attributes")
    owner = code_of(number, "attribute table") if number else found
    fields = {f.name: read_field(attributes, f.slot, f.kind, f"{f.name} of {found.name}") for f in owner.fields
              } if attributes else {}
    location = table.table(5, "the location")
    return OperatorRecord(found, owner, fields, table.names(3, "the list of inputs"),
                          table.names(4, "the list of outputs"), location.text(0, "the location") if location else "")


def code_of(number: int, what: str) -> OperatorCode:
    if not 0 < number < len(OPERATOR_CODES):
        raise Problem(f"{what} {number} is not known", kind="attribute",
                      help=f"TOSA 1.1 has the numbers 1 to {len(OPERATOR_CODES) - 1}")
    return OPERATOR_CODES[number]


def read_field(table: FlatbufferTable, slot: int, kind: str, what: str) -> Any:
    """Return an attribute as the file stores it: a number, a tuple, a string, or bytes."""
    match kind:
        case "int32" | "bool":
            return table.scalar(slot, kind, what)
        case "int32s":
            return numbers(table.array(slot, "int32", what))
        case "text":
            return table.text(slot, what)
        case "bytes":
            found = table.array(slot, "ubyte", what)
            return b"" if found is None else found.tobytes()
        case _:
            return table.scalar(slot, "uint32", what)


def numbers(array: Array | None) -> tuple[int, ...]:
    return () if array is None else tuple(array.tolist())


def read_tensor(table: FlatbufferTable, position: FilePosition) -> TensorRecord:
    name = table.text(0, "the name")
    return TensorRecord(
        name, numbers(table.array(1, "int32", "the shape")), table.scalar(2, "uint32", "the type"),
        read_data(table, (3, 7, 8), "the data"), bool(table.scalar(4, "bool", "variable")),
        table.text(6, "the variable's name"), bool(table.scalar(5, "bool", "is_unranked")),
        table.scalar(9, "uint32", "the type of the scales"), read_data(table, (10, 12, 13), "the scales"),
        table.scalar(11, "uint32", "the block's shape"))


def read_data(table: FlatbufferTable, slots: tuple[int, int, int], what: str) -> Array | None:
    """Return the bytes of a constant, in the flatbuffer or after it; None if there are none."""
    data = table.array(slots[0], "ubyte", what)
    offset, size = (table.scalar(slot, "uint64", what) for slot in slots[1:])
    if offset > 1:
        if data is not None and data.size:
            raise broken(f"{what} are in the tensor and behind the flatbuffer")
        return table.binary.outside(offset, size, what)
    return data if data is not None and data.size else None


def read_shape(table: FlatbufferTable, position: FilePosition) -> ShapeRecord:
    return ShapeRecord(table.text(0, "the name"), table.scalar(1, "uint32", "the rank"), table.array(2, "ubyte", "the data"))
