"""The bytes of a flatbuffer, from a description of its tables. All tables come first, then strings, then data, each text and
each array of bytes once; so large constants are copied once, into the file.

Everything is aligned as flatbuffers require; the same description always gives the same bytes.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import cache
from struct import Struct, pack_into
from typing import TypeAlias, Union

import numpy as np

from ...runtime.records import dataclass
from ..graph.types import Array

MAXIMUM_SIZE = (1 << 31) - 1
"""Maximum bytes of a flatbuffer; its offsets cannot reach further."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number; `layout` is its type's code in `struct`."""
    layout: str
    value: int


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """A vector of bytes, or of numbers of a dtype; aligned to eight bytes if `wide`."""
    array: Array
    wide: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class TableNode:
    """A table: the content of each slot, None for the default."""
    slots: tuple[Scalar | Node | None, ...]


Node: TypeAlias = Union[str, Data, TableNode, tuple[str, ...], "tuple[TableNode, ...]"]
"""Node that a slot or the entry of a vector refers to."""
SIZES = {"B": 1, "i": 4, "I": 4, "Q": 8}


@dataclass(slots=True)
class FlatbufferBuilder:
    """The chunks of a file under construction; references to strings and data are filled in at the end."""
    chunks: list[bytearray | bytes | memoryview] = field(default_factory=list)
    size: int = 0
    vtables: dict[bytes, int] = field(default_factory=dict)
    texts: dict[str, list[TableReference]] = field(default_factory=dict)
    data: dict[tuple[str, bool, bytes], list[TableReference]] = field(default_factory=dict)

    def put(self, chunk: bytearray | bytes | memoryview, alignment: int = 4, header: int = 0) -> int:
        """Append bytes so that the byte at `header` from their start is aligned; return their offset."""
        gap = -(self.size + header) % alignment
        if gap:
            self.chunks.append(bytes(gap))
        self.chunks.append(chunk)
        start = self.size + gap
        self.size = start + len(chunk)
        return start

    def file(self, root: TableNode, identifier: bytes) -> list[bytearray | bytes | memoryview]:
        """Return the chunks of the whole file, in order."""
        head = bytearray(4) + identifier
        self.put(head)
        TableReference(head, 0, 0).to(self.table(root))
        for text, references in self.texts.items():
            encoded = text.encode()
            refer(references, self.put(Struct("<I").pack(len(encoded)) + encoded + b"\0"))
        for (_, wide, content), references in self.data.items():
            count = len(content) // references[0].itemsize
            start = self.put(Struct("<I").pack(count), 8 if wide else 4, 4)
            self.put(content, 1)
            refer(references, start)
        self.put(b"", 8)
        return self.chunks

    def table(self, node: TableNode) -> int:
        """Append a table and all that it refers to; return its offset."""
        layout = layout_of(tuple(0 if s is None else SIZES[s.layout] if isinstance(s, Scalar) else 4 for s in node.slots))
        place = self.vtables.get(layout.vtable)
        if place is None:
            place = self.vtables[layout.vtable] = self.put(layout.vtable)
        chunk = bytearray(layout.size)
        start = self.put(chunk, layout.alignment)
        pack_into("<i", chunk, 0, start - place)
        for offset, slot in zip(layout.offsets, node.slots):
            if isinstance(slot, Scalar):
                pack_into(f"<{slot.layout}", chunk, offset, slot.value)
            elif slot is not None:
                self.refer(TableReference(chunk, offset, start + offset), slot)
        return start

    def refer(self, reference: TableReference, node: Node) -> None:
        """Append the node that a slot refers to, or defer it to the end."""
        match node:
            case str():
                self.texts.setdefault(node, []).append(reference)
            case Data(array, wide):
                reference.itemsize = array.itemsize
                key = (array.dtype.str, wide, array.tobytes())
                self.data.setdefault(key, []).append(reference)
            case TableNode():
                reference.to(self.table(node))
            case _:
                self.vector(reference, node)

    def vector(self, reference: TableReference, nodes: tuple[str, ...] | tuple[TableNode, ...]) -> None:
        """Append a vector of references."""
        chunk = bytearray(4 + 4 * len(nodes))
        pack_into("<I", chunk, 0, len(nodes))
        start = self.put(chunk)
        reference.to(start)
        for number in range(len(nodes)):
            place = 4 + 4 * number
            self.refer(TableReference(chunk, place, start + place), nodes[number])


@dataclass(slots=True)
class TableReference:
    """Four bytes of a chunk, at `place` in the file, that hold the distance to their target."""
    chunk: bytearray
    offset: int
    place: int
    itemsize: int = 1

    def to(self, target: int) -> None:
        pack_into("<I", self.chunk, self.offset, target - self.place)


def refer(references: Sequence[TableReference], target: int) -> None:
    for reference in references:
        reference.to(target)


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The layout of a table: the offset of each slot in it (0: default), and the vtable that stores these offsets."""
    offsets: tuple[int, ...]
    size: int
    alignment: int
    vtable: bytes


@cache
def layout_of(widths: tuple[int, ...]) -> TableLayout:
    """Return the layout of slots of these `widths` in bytes, 0 for a default; wide slots precede narrow ones."""
    offsets, size = [0] * len(widths), 4
    for number in sorted(range(len(widths)), key=lambda i: -widths[i]):
        if widths[number]:
            size += -size % widths[number]
            offsets[number] = size
            size += widths[number]
    size += -size % 4
    last = max((i + 1 for i, offset in enumerate(offsets) if offset), default=0)
    vtable = Struct(f"<{2 + last}H").pack(4 + 2 * last, size, *offsets[:last])
    return TableLayout(tuple(offsets), size, 8 if 8 in widths else 4, vtable)


EMPTY = Data(np.empty(0, np.uint8), True)
