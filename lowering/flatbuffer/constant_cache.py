"""The constants of a file: each is unpacked once, however many tensors have the same bytes."""
from __future__ import annotations

from ..graph.types import Array, ShapeType, TensorType
from .records import ShapeRecord, TensorRecord
from .tensors import data_of

Key = tuple[object, ...]


class ConstantCache:
    """Unpacked data, by their address in the file and the type that they are unpacked to."""

    def __init__(self) -> None:
        self.known: dict[Key, Array] = {}
        self.equal: set[tuple[int, int]] = set()

    def data_of(self, record: TensorRecord | ShapeRecord, type: TensorType | ShapeType) -> Array:
        """Return the data of a constant; raise a Problem if there are none, or if they do not fit the type."""
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
    """Return the address of bytes, and their number."""
    return (0, 0) if data is None else (data.__array_interface__["data"][0], data.size)
