"""Detection of protobuf messages without a magic number: ONNX, TensorFlow, Core ML and Caffe all begin with small numbers, and
differ in the contents of their first fields."""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

VARINT, BYTES = 0, 2
"""Wire types of fields."""
OPERATOR = re.compile(rb"[A-Za-z_][\w>.]*")
FIRST_FIELDS = 4
"""Number of fields to look at."""


class Field(NamedTuple):
    """A field's number, and its value: an integer, or bytes, which may be truncated."""
    number: int
    value: int | bytes


def fields(data: bytes) -> Iterator[Field]:
    """Yield the first fields of a message, as long as they are integers and bytes."""
    at = 0
    for _ in range(FIRST_FIELDS):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if at < 0 or key & 7 not in (VARINT, BYTES) or not key >> 3:
            return
        if key & 7 == BYTES:
            yield Field(key >> 3, data[at:at + value])
            at += value
        else:
            yield Field(key >> 3, value)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and the offset after it; a negative offset if there is no number."""
    value = 0
    for shift in range(0, 70, 7):
        if not 0 <= at < len(data):
            return 0, -1
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    return 0, -1


def is_versioned_message(head: bytes) -> bool:
    """True if bytes begin with a version and then a message whose own first field is bytes: where ONNX has its producer's name,
    Core ML has a description, and a SavedModel's file a graph with its data."""
    found = list(fields(head))
    match found:
        case [Field(1, int()), Field(2, bytes() as inner), *_]:
            return inner[:1] == b"\n" and next(fields(inner), Field(0, 0)).number == 1
    return False


def is_saved_model(head: bytes) -> bool:
    """True if bytes begin like a SavedModel's file, whose version has always been 1."""
    return head[:2] == b"\x08\x01" and is_versioned_message(head)


def is_graph_def(head: bytes) -> bool:
    """True if bytes begin with a TensorFlow node: a name, and an operator."""
    match list(fields(head)):
        case [Field(1, bytes() as node), *_]:
            match list(fields(node)):
                case [Field(1, bytes() as name), Field(2, bytes() as operator), *_]:
                    return bool(name) and OPERATOR.fullmatch(operator) is not None
    return False


def is_caffe_model(head: bytes) -> bool:
    """True if bytes begin with a network's name and a layer, which has fields of its own."""
    match list(fields(head)):
        case [Field(1, bytes() as name), Field(2 | 100, bytes() as layer), *_]:
            return name.isascii() and bool(list(fields(layer)))
    return False
