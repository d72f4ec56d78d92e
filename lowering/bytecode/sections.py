"""The outer form of MLIR bytecode: numbers of variable length, sections, and the table of strings.

    "ML\\xefR", version, producer, then sections: a number, its length, perhaps an alignment, the bytes

Numbers follow MLIR's documentation of the format (https://mlir.llvm.org/docs/BytecodeFormat). Whatever is not as it is known
here raises `Unreadable`: the caller takes MLIR's text instead, whose reader has positions for its messages.
"""
from __future__ import annotations

from ...runtime.records import dataclass

MAGIC = b"ML\xefR"
VERSION = 6
STRING, DIALECT, ATTRIBUTES, OFFSETS, IR, RESOURCES, RESOURCE_OFFSETS, DIALECT_VERSIONS, PROPERTIES = range(9)
BLOB = 0
"""The kind of a resource that is bytes; others are a boolean and a string."""
ALIGNED = 0x80
"""Set in a section's number where an alignment follows its length."""


class Unreadable(Exception):
    """The bytes are not supported MLIR bytecode."""


@dataclass(slots=True)
class Cursor:
    """Reads on from `at`. Reading past the end raises IndexError or gives less, as slices do; `finished` tells."""
    data: memoryview
    at: int = 0

    def byte(self) -> int:
        value = self.data[self.at]
        self.at += 1
        return value

    def number(self) -> int:
        """Return a number of one to nine bytes: the trailing zeros of the first byte are the number of further bytes."""
        first = self.data[self.at]
        if first & 1:
            self.at += 1
            return first >> 1
        count = (first & -first).bit_length() if first else 9
        value = int.from_bytes(self.data[self.at:self.at + count], "little")
        self.at += count
        return value >> (count if first else 8)

    def signed(self) -> int:
        """A number whose lowest bit is its sign."""
        value = self.number()
        return -(value >> 1) - 1 if value & 1 else value >> 1

    def flagged(self) -> tuple[int, bool]:
        """A number with a flag in its lowest bit."""
        value = self.number()
        return value >> 1, bool(value & 1)

    def taken(self, count: int) -> memoryview:
        """The next `count` bytes."""
        start = self.at
        self.at += count
        if self.at > len(self.data):
            raise Unreadable("the bytes are cut off")
        return self.data[start:self.at]

    def blob(self) -> memoryview:
        return self.taken(self.number())

    @property
    def is_at_end(self) -> bool:
        return self.at >= len(self.data)


def sections(data: memoryview) -> dict[int, memoryview]:
    """The sections of a file, by number."""
    if data[:4] != MAGIC:
        raise Unreadable("this is no MLIR bytecode")
    cursor = Cursor(data, 4)
    if cursor.number() != VERSION:
        raise Unreadable("another version of the format")
    while cursor.byte():
        pass  # the producer's name
    found: dict[int, memoryview] = {}
    while not cursor.is_at_end:
        number, section = read_section(cursor)
        found[number] = section
    return found


def read_section(cursor: Cursor) -> tuple[int, memoryview]:
    """A section's number and bytes."""
    number, length = cursor.byte(), cursor.number()
    if number & ALIGNED:
        cursor.at += -cursor.at % max(1, cursor.number())
    return number & ~ALIGNED, cursor.taken(length)


def resources(offsets: memoryview, data: memoryview) -> list[memoryview]:
    """The blobs that the dialects' resources are, in the order of their numbers: of each the length of its entry is in
    `offsets`, and its entry in `data`: alignment, length, padding, bytes."""
    cursor, entries, found = Cursor(offsets), Cursor(data), list[memoryview]()
    if not cursor.is_at_end and cursor.number():
        raise Unreadable("resources of no dialect")
    while not cursor.is_at_end:
        cursor.number()  # the dialect
        for _ in range(cursor.number()):
            cursor.number()  # the resource's name
            entry = Cursor(entries.taken(cursor.number()))
            if cursor.byte() != BLOB:
                raise Unreadable("a resource that is no blob")
            entry.number()  # its alignment
            length = entry.number()
            if length > len(entry.data) - entry.at:
                raise Unreadable("a resource is cut off")
            found.append(entry.data[len(entry.data) - length:])
    return found


def strings(section: memoryview) -> list[bytes]:
    """Return the strings of a file: their number, the length of each with its zero (the last one's first), then the strings."""
    cursor = Cursor(section)
    lengths = [cursor.number() for _ in range(cursor.number())]
    return [bytes(cursor.taken(length)[:-1]) for length in reversed(lengths)]
