"""The constants of a file: each is unpacked once, however many tensors have the same bytes."""
from __future__ import annotations

from ..graph.types import Array, ShapeType, TensorType
from .records import ShapeRecord, TensorRecord
from .tensors import data_of

Key = tuple[object, ...]


class ConstantCache:
    """Data that have been unpacked, by where they are in the file and what they are unpacked to."""

    def __init__(self) -> None:
        self.known: dict[Key, Array] = {}
        self.equal: set[tuple[int, int]] = set()

    def data_of(self, record: TensorRecord | ShapeRecord, type: TensorType | ShapeType) -> Array:
        """The data of a constant; a Problem where there are none, or they do not fit the type."""
        scales = record.scale_data if isinstance(record, TensorRecord) else None
        key = (type, address(record.data), address(scales))
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = data_of(record, type)
        return found

    def same(self, a: Array | None, b: Array | None) -> bool:
        """True if two of the constants have the same bits; each pair is compared once."""
        if a is None or b is None or a is b:
            return a is b
        if (id(a), id(b)) not in self.equal:
            if a.tobytes() != b.tobytes():
                return False
            self.equal.add((id(a), id(b)))
        return True


def address(data: Array | None) -> tuple[int, int]:
    """Where bytes begin, and how many there are."""
    return (0, 0) if data is None else (data.__array_interface__["data"][0], data.size)
