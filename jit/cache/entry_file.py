"""The file of a cache's entry: a header that validates the rest, a JSON object, and arrays of bytes at multiples of 64.

    0    "tosaic cache" and the version of this format
    16   the key that the entry belongs to
    48   SHA-256 of everything up to the first array's end except these 32 bytes
    80   bytes of the whole file, bytes of the JSON text (64 bits each, little endian)
    96   the JSON text: the fields, offset and length of each array, SHA-256 of all bytes after the first array

The first array of code is the machine code: it is always checked against its digest. The others are constants, perhaps many
bytes, which `folder` knows to be unchanged.
"""
from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...runtime.arena import ALIGNMENT, Array
from .sha256 import sha256

MAGIC = b"tosaic cache 2\n\0"
LENGTHS = struct.Struct("<QQ")
KEY, DIGEST, LENGTHS_AT, TEXT = 16, 48, 80, 96
Fields = Mapping[str, Any]


class CacheEntry(NamedTuple):
    """The contents of an entry; the arrays are read-only bytes."""
    fields: Fields
    arrays: tuple[Array, ...] = ()


def serialised(key: bytes, fields: Fields, arrays: Sequence[Array] = ()) -> list[bytes | memoryview]:
    """Return the parts of an entry's file."""
    data: list[memoryview] = [np.ascontiguousarray(a).reshape(-1).view(np.uint8).data for a in arrays]
    places, end = [], 0
    for each in data:
        places.append([end, each.nbytes])
        end += padded(each.nbytes)
    filled = [part for each in data for part in (each, padding(each.nbytes))]
    head, tail = filled[:2], filled[2:]
    text = json.dumps({"fields": fields, "arrays": places, "rest": digest_of(tail).hex()}, separators=(",", ":")).encode()
    head = [text, padding(TEXT + len(text)), *head]
    start = MAGIC + key
    lengths = LENGTHS.pack(TEXT + sum(len(p) for p in (*head, *tail)), len(text))
    return [start, digest_of([start, lengths, *head]), lengths, *head, *tail]


def digest_of(parts: Sequence[bytes | memoryview]) -> bytes:
    """Return the SHA-256 of several byte strings, one after the other."""
    found = sha256(nbytes=sum(map(len, parts)))
    for part in parts:
        found.update(part)
    return found.digest()


def deserialised(file: Any, key: bytes, is_known: bool = False) -> CacheEntry | None:
    """Return the entry in a file's bytes (an object with the buffer protocol, which the arrays keep); None if it is damaged,
    truncated, or another key's. For an entry that `is_known` to be as written, only check the machine code again."""
    view = memoryview(file)
    if len(view) < TEXT or view[:DIGEST] != MAGIC + key:
        return None
    nbytes, length = LENGTHS.unpack_from(view, LENGTHS_AT)
    first = padded(TEXT + length)
    if nbytes != len(view) or first > nbytes:
        return None
    end = first
    try:
        found = json.loads(bytes(view[TEXT:TEXT + length]))
        if found["arrays"]:
            end += padded(found["arrays"][0][1])
        rest = bytes.fromhex(found["rest"])
    except (ValueError, LookupError, TypeError):
        return None
    if view[DIGEST:LENGTHS_AT] != digest_of([view[:DIGEST], view[LENGTHS_AT:end]]):
        return None
    if not is_known and rest != digest_of([view[end:]]):
        return None
    everything = np.frombuffer(file, np.uint8)
    return CacheEntry(found["fields"], tuple(everything[first + at:first + at + size] for at, size in found["arrays"]))


def padded(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def padding(nbytes: int) -> bytes:
    return bytes(padded(nbytes) - nbytes)
