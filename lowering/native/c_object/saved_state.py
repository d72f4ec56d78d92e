"""The layout of a saved state: a checksum of the variables' names and types, the CRC-32 of the bytes after it, the variables in
order of their names, then a byte for each that says whether it has been written. The layout does not depend on the owner of the
variables or their namespace. `state` writes the functions that save and load it.
"""
from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence

from ....runtime.c_symbols import symbol_part
from ....runtime.records import dataclass
from .variables import CVariable

HEAD = 8
"""Bytes of the two checksums at the start of a saved state."""


@dataclass(frozen=True, slots=True)
class SavedState:
    """The layout of a saved state: its `variables` in order, and the checksum of their names and types."""
    variables: tuple[CVariable, ...]
    checksum: int

    @property
    def nbytes(self) -> int:
        return HEAD + sum(v.buffer.nbytes + 1 for v in self.variables)

    @property
    def offsets(self) -> list[int]:
        """Offset in bytes of each variable, then of each flag."""
        sizes = [v.buffer.nbytes for v in self.variables] + [1] * (len(self.variables) - 1)
        return list(itertools.accumulate(sizes, initial=HEAD))


def saved_state(variables: Sequence[CVariable]) -> SavedState:
    """Return the layout of the state of these variables."""
    ordered = sorted(variables, key=lambda v: symbol_part(v.name))
    text = "\n".join(f"{symbol_part(v.name)} {v.use.element} {list(v.buffer.shape)}" for v in ordered)
    return SavedState(tuple(ordered), zlib.crc32(text.encode()))
