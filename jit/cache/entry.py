"""The file of a cache's entry: a header that proves the rest, a JSON object, and arrays of bytes at multiples of 64.

    0    "tosaic cache" and the version of this format
    16   the key that the entry belongs to
    48   SHA-256 of everything but these 32 bytes
    80   bytes of the whole file, bytes of the JSON text (64 bits each, little endian)
    96   the JSON text: the fields, and offset and length of each array
"""
from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...runtime.arena import ALIGNMENT, Array

MAGIC = b"tosaic cache 1\n\0"
LENGTHS = struct.Struct("<QQ")
KEY, DIGEST, LENGTHS_AT, TEXT = 16, 48, 80, 96
Fields = Mapping[str, Any]


class Entry(NamedTuple):
    """What an entry holds; the arrays are read-only bytes."""
    fields: Fields
    arrays: tuple[Array, ...] = ()


def packed(key: bytes, fields: Fields, arrays: Sequence[Array] = ()) -> list[bytes | memoryview]:
    """The parts of an entry's file."""
    data = [np.ascontiguousarray(a).reshape(-1).view(np.uint8).data for a in arrays]
    places, end = [], 0
    for each in data:
        places.append([end, each.nbytes])
        end += padded(each.nbytes)
    text = json.dumps({"fields": fields, "arrays": places}, separators=(",", ":")).encode()
    parts: list[bytes | memoryview] = [text, padding(TEXT + len(text))]
    for each in data:
        parts += [each, padding(each.nbytes)]
    start = MAGIC + key
    lengths = LENGTHS.pack(TEXT + sum(len(p) for p in parts), len(text))
    whole = hashlib.sha256(start)
    for part in (lengths, *parts):
        whole.update(part)
    return [start, whole.digest(), lengths, *parts]


def unpacked(file: Any, key: bytes) -> Entry | None:
    """The entry in a file's bytes (an object with the buffer protocol, which the arrays keep); None where it is damaged, cut
    off, or another key's."""
    view = memoryview(file)
    if len(view) < TEXT or view[:DIGEST] != MAGIC + key:
        return None
    whole = hashlib.sha256(view[:DIGEST])
    whole.update(view[LENGTHS_AT:])
    if view[DIGEST:LENGTHS_AT] != whole.digest():
        return None
    nbytes, length = LENGTHS.unpack_from(view, LENGTHS_AT)
    if nbytes != len(view):
        return None
    found = json.loads(bytes(view[TEXT:TEXT + length]))
    everything = np.frombuffer(file, np.uint8)
    first = padded(TEXT + length)
    return Entry(found["fields"], tuple(everything[first + at:first + at + size] for at, size in found["arrays"]))


def padded(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def padding(nbytes: int) -> bytes:
    return bytes(padded(nbytes) - nbytes)
