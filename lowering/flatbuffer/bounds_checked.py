"""Bounds-checked access to the bytes of a flatbuffer: tables, vectors, strings.

Nothing is trusted: each offset, vtable and length is checked against the size of the file before it is followed, and the total
of all reads is bounded by the contents that fit into the file, so that a small file whose parts overlap cannot make a reader
slow. An error is a Problem that names the byte; the caller knows the part of the model.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from struct import Struct
from typing import Any

import numpy as np

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from ..graph.types import Array

U8, U16, U32, I32, U64 = Struct("<B"), Struct("<H"), Struct("<I"), Struct("<i"), Struct("<Q")
SCALARS = {"bool": U8, "ubyte": U8, "int32": I32, "uint32": U32, "uint64": U64}
VECTORS: dict[str, np.dtype[Any]] = {"int32": np.dtype("<i4"), "ubyte": np.dtype("u1")}
LEAST_TABLE = 8
"""Minimum bytes of a table: itself, and the entry that refers to it."""


def broken(message: str) -> Problem:
    return Problem(message, kind="syntax", help="the file is damaged, or it is no flatbuffer of TOSA")


@dataclass(slots=True)
class Binary:
    """The bytes of a flatbuffer."""
    data: bytes
    vtables: dict[int, tuple[int, ...]] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)
    lists: dict[int, tuple[str, ...]] = field(default_factory=dict)
    vectors: dict[int, int] = field(default_factory=dict)
    visited: int = 0
    spent: int = 0

    @property
    def size(self) -> int:
        return len(self.data)

    def root(self) -> FlatbufferTable:
        if self.size < 8:
            raise broken(f"the file has {self.size} bytes, too few for a flatbuffer")
        return self.table(0)

    def table(self, place: int) -> FlatbufferTable:
        """Return the table that the offset at `place` refers to."""
        self.visited += 1
        if self.visited * LEAST_TABLE > self.size:
            raise broken(f"the file refers to more tables than its {self.size} bytes can hold")
        start = self.follow(place, 4, "a table")
        vtable = start - I32.unpack_from(self.data, start)[0]
        slots = self.vtables.get(vtable)
        if slots is None:
            slots = self.vtables[vtable] = self.vtable(vtable)
        if start + slots[1] > self.size:
            raise broken(f"the table at byte {start} has {slots[1]} bytes, the file ends at {self.size}")
        return FlatbufferTable(self, start, slots)

    def vtable(self, start: int) -> tuple[int, ...]:
        """Return a vtable: its own size, the size of the table, and the offsets of the fields in the table."""
        if not 0 <= start <= self.size - 4:
            raise broken(f"there is no vtable at byte {start}, the file has {self.size} bytes")
        nbytes = U16.unpack_from(self.data, start)[0]
        if nbytes < 4 or nbytes % 2 or start + nbytes > self.size:
            raise broken(f"the vtable at byte {start} has {nbytes} bytes, the file ends at {self.size}")
        slots = Struct(f"<{nbytes // 2}H").unpack_from(self.data, start)
        if slots[1] < 4 or any(0 < s < 4 or s >= slots[1] for s in slots[2:]):
            raise broken(f"the vtable at byte {start} has fields outside of its table of {slots[1]} bytes")
        return slots

    def follow(self, place: int, nbytes: int, what: str) -> int:
        """Return the target of the offset at `place`, which has at least `nbytes` bytes."""
        target: int = place + U32.unpack_from(self.data, place)[0]
        if target > self.size - nbytes or target == place:
            raise broken(f"byte {place} refers to {what} at byte {target}, the file has {self.size} bytes")
        return target

    def vector(self, place: int, itemsize: int, what: str) -> tuple[int, int]:
        """Return the start of a vector's items, and their number."""
        start = self.follow(place, 4, what)
        count = U32.unpack_from(self.data, start)[0]
        if count * itemsize > self.size - start - 4:
            raise broken(f"{what} at byte {start} has {count} entries, the file ends at byte {self.size}")
        self.spend(start + 4, count * itemsize, what)
        return start + 4, count

    def spend(self, start: int, nbytes: int, what: str) -> None:
        """Count a vector's bytes. Vectors may be shared but not overlap, so that together they are no longer than the file."""
        if nbytes > self.vectors.get(start, 0):
            self.spent += nbytes - self.vectors.get(start, 0)
            self.vectors[start] = nbytes
            if self.spent > self.size:
                raise broken(f"{what} at byte {start} overlaps other parts of the file")

    def outside(self, start: int, nbytes: int, what: str) -> Array:
        """Return the bytes that a tensor of a large file has after the flatbuffer."""
        if start > self.size or nbytes > self.size - start:
            raise broken(f"{what} are the {nbytes} bytes at byte {start}, the file has {self.size} bytes")
        self.spend(start, nbytes, what)
        return np.frombuffer(self.data, np.uint8, nbytes, start)

    def text(self, place: int, what: str) -> str:
        """Return a string; each is decoded once."""
        start, count = self.vector(place, 1, what)
        found = self.texts.get(start)
        if found is None:
            try:
                found = self.texts[start] = self.data[start:start + count].decode()
            except UnicodeDecodeError:
                raise broken(f"{what} at byte {start} is not UTF-8") from None
        return found

    def names(self, place: int, what: str) -> tuple[str, ...]:
        """Return a vector of strings; each is read once."""
        start, count = self.vector(place, 4, what)
        found = self.lists.get(start)
        if found is None:
            found = self.lists[start] = tuple(self.text(start + 4 * i, what) for i in range(count))
        return found


@dataclass(frozen=True, slots=True)
class FlatbufferTable:
    """A table. Fields are found by their slot (the number in the schema); `what` names them in problems."""
    binary: Binary
    start: int
    slots: tuple[int, ...]

    def place(self, slot: int, nbytes: int, what: str) -> int:
        """Return the offset of a field; 0 if it has its default."""
        offset = self.slots[slot + 2] if slot + 2 < len(self.slots) else 0
        if not offset:
            return 0
        if offset + nbytes > self.slots[1]:
            raise broken(f"{what} at byte {self.start + offset} reaches out of its table at byte {self.start}")
        return self.start + offset

    def scalar(self, slot: int, kind: str, what: str, default: int = 0) -> int:
        layout = SCALARS[kind]
        place = self.place(slot, layout.size, what)
        return layout.unpack_from(self.binary.data, place)[0] if place else default

    def text(self, slot: int, what: str) -> str:
        """Return a string, empty if there is none."""
        place = self.place(slot, 4, what)
        return self.binary.text(place, what) if place else ""

    def names(self, slot: int, what: str) -> tuple[str, ...]:
        place = self.place(slot, 4, what)
        return self.binary.names(place, what) if place else ()

    def array(self, slot: int, kind: str, what: str) -> Array | None:
        """Return the numbers of a vector, as a view of the file; None if there is none."""
        place = self.place(slot, 4, what)
        if not place:
            return None
        dtype = VECTORS[kind]
        start, count = self.binary.vector(place, dtype.itemsize, what)
        return np.frombuffer(self.binary.data, dtype, count, start)

    def table(self, slot: int, what: str) -> FlatbufferTable | None:
        place = self.place(slot, 4, what)
        return self.binary.table(place) if place else None

    def tables(self, slot: int, what: str, read: Callable[[int, FlatbufferTable], Any]) -> tuple[Any, ...]:
        """Return the result of `read` on the number and the table of each entry of a vector."""
        place = self.place(slot, 4, what)
        if not place:
            return ()
        start, count = self.binary.vector(place, 4, what)
        return tuple(read(i, self.binary.table(start + 4 * i)) for i in range(count))
