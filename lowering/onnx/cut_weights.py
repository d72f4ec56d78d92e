"""Takes the weights out of an ONNX file before protobuf parses it: the weights stay in the mapped file.

A parsed message would hold a copy of each weight and hand out another copy. Here the bytes of large tensors (`raw_data`) are
replaced by a marker that gives their offset, so that the parsed message is small. Only the fields that lead to tensors are
followed: the rest of the file is copied unchanged, and protobuf validates it.
"""
from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from ...runtime.records import dataclass

LARGE_BYTES = 1 << 10
"""Bytes of `raw_data` above which it is cut out and stays in the mapped file: shorter fields cost less to parse."""
GRAPH, NODE, INITIALIZER, ATTRIBUTE, TENSOR, SUBGRAPH, TENSORS, SUBGRAPHS, RAW_DATA = 7, 1, 5, 5, 5, 6, 10, 11, 9
"""Field numbers from onnx.proto."""
PATHS = {"model": {GRAPH: "graph"}, "graph": {NODE: "node", INITIALIZER: "tensor"}, "node": {ATTRIBUTE: "attribute"},
         "attribute": {TENSOR: "tensor", SUBGRAPH: "graph", TENSORS: "tensor", SUBGRAPHS: "graph"}, "tensor": {}}
"""The fields of each message that lead to tensors, and the kinds of these fields."""
DEEPEST = 64
"""Maximum nesting depth of messages that is followed."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A message without its weights, and the token that marks each removed weight. A marker is `token`, then the offset and the
    number of bytes in the file."""
    message: bytes
    token: bytes

    def place(self, raw: bytes) -> tuple[int, int] | None:
        """Return the offset and length of the bytes that a marker stands for; None if `raw` is no marker."""
        if len(raw) != len(self.token) + 16 or not raw.startswith(self.token):
            return None
        offset, length = struct.unpack("<QQ", raw[len(self.token):])
        return int(offset), int(length)


def cut_weights(data: memoryview) -> Cut:
    """Return the message in `data` without its large tensors. Data that is no protobuf message is left for protobuf to
    refuse."""
    token = os.urandom(16)
    return Cut(without_weights(data, 0, len(data), "model", token, 0), token)


def without_weights(data: memoryview, start: int, end: int, kind: str, token: bytes, depth: int) -> bytes:
    """Return one message with the large tensors in it replaced by markers."""
    paths, parts, kept = PATHS[kind], [], start
    for number, begin, first, last in fields(data, start, end):
        if last - first <= LARGE_BYTES or depth > DEEPEST:
            continue
        if kind == "tensor" and number == RAW_DATA:
            found = token + struct.pack("<QQ", first, last - first)
        elif number in paths:
            found = without_weights(data, first, last, paths[number], token, depth + 1)
        else:
            continue
        parts += [bytes(data[kept:begin]), varint(number << 3 | 2), varint(len(found)), found]
        kept = last
    return b"".join([*parts, bytes(data[kept:end])])


def fields(data: memoryview, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the fields of a message that have a length: number, offset of the field, and start and end of its contents. Stop
    where the bytes are no message."""
    at = start
    while at < end:
        begin = at
        key, at = read_varint(data, at, end)
        match key & 7:
            case 0:
                _, at = read_varint(data, at, end)
            case 1:
                at += 8
            case 5:
                at += 4
            case 2:
                length, at = read_varint(data, at, end)
                if length > end - at:
                    return
                yield key >> 3, begin, at, at + length
                at += length
            case _:
                return


def read_varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """Return a varint and the offset after it; the end of the message if there is no varint."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, end + 1


def varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])
