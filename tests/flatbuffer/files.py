"""Files for the tests of flatbuffers: records with little to write, and their bytes."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tosaic.lowering.flatbuffer.encode import encode
from tosaic.lowering.flatbuffer.reader import read_module
from tosaic.lowering.flatbuffer.records import BlockRecord, FileRecord, OperatorRecord, RegionRecord, ShapeRecord, TensorRecord
from tosaic.lowering.flatbuffer.schema import BY_NAME, ELEMENT_CODES
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.verify import verify
from tosaic.runtime.errors import Problem

DEFAULTS: dict[str, Any] = {"int32s": (), "text": "", "bytes": b""}


def tensor(name: str, shape: Sequence[int] = (2,), element: str | int = "f32", data: bytes | None = None,
           **others: Any) -> TensorRecord:
    """A tensor; `element` is a type's name in MLIR, or its code in the file."""
    code = element if isinstance(element, int) else ELEMENT_CODES[element]
    return TensorRecord(name, tuple(shape), code, None if data is None else np.frombuffer(data, np.uint8), **others)


def shape(name: str, *extents: int, rank: int | None = None) -> ShapeRecord:
    """A constant shape."""
    data = np.array(extents, "<i8").view(np.uint8)
    return ShapeRecord(name, len(extents) if rank is None else rank, data)


def operator(name: str, inputs: str, outputs: str, attribute: str | None = None, location: str = "", **fields: Any
             ) -> OperatorRecord:
    """An operator; names of tensors are separated by spaces, fields that are not given have their defaults."""
    owner = BY_NAME[attribute or name]
    values = {f.name: fields.get(f.name, DEFAULTS.get(f.kind, 0)) for f in owner.fields}
    return OperatorRecord(BY_NAME[name], owner, values, tuple(inputs.split()), tuple(outputs.split()), location)


def region(name: str, inputs: str, outputs: str, *parts: OperatorRecord | TensorRecord | ShapeRecord) -> RegionRecord:
    """A region of one block."""
    block = BlockRecord(name, tuple(p for p in parts if isinstance(p, OperatorRecord)),
                        tuple(p for p in parts if isinstance(p, TensorRecord)),
                        tuple(p for p in parts if isinstance(p, ShapeRecord)), tuple(inputs.split()),
                        tuple(outputs.split()))
    return RegionRecord(name, (block,))


def file(*regions: RegionRecord, version: tuple[int, int, int] = (1, 0, 2), features: int = 0) -> bytes:
    return encode(FileRecord(version, regions, features))


def graph(inputs: str, outputs: str, *parts: OperatorRecord | TensorRecord | ShapeRecord) -> bytes:
    """A file with one region."""
    return file(region("main", inputs, outputs, *parts))


def read(data: bytes) -> Module:
    """The verified module of a file."""
    module = read_module(data, "test.tosa")
    verify(module)
    return module


def problem(data: bytes) -> Problem:
    """What is wrong with a file."""
    try:
        read(data)
    except Problem as found:
        return found
    raise AssertionError("nothing is wrong with the file")


ADD = (tensor("a"), tensor("b"), tensor("c"), operator("ADD", "a b", "c"))
"""The parts of c = a + b."""
