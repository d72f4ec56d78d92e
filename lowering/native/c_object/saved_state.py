"""How a saved state is laid out: a checksum of the variables' names and types, the CRC-32 of what follows, the variables one
behind the other, by the order of their names, then a byte for each that says whether it has been written. Who holds the
variables, and in which namespace, makes no difference. `state` writes the functions that save and load it.
"""
from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence

from ....runtime.c_symbols import symbol_part
from ....runtime.records import dataclass
from .variables import CVariable

HEAD = 8
"""Bytes of the two checksums that a saved state begins with."""


@dataclass(frozen=True, slots=True)
class SavedState:
    """`variables` in their order, and the checksum of what they are."""
    variables: tuple[CVariable, ...]
    checksum: int

    @property
    def nbytes(self) -> int:
        return HEAD + sum(v.buffer.nbytes + 1 for v in self.variables)

    @property
    def offsets(self) -> list[int]:
        """Of each variable, then of each flag."""
        sizes = [v.buffer.nbytes for v in self.variables] + [1] * (len(self.variables) - 1)
        return list(itertools.accumulate(sizes, initial=HEAD))


def saved_state(variables: Sequence[CVariable]) -> SavedState:
    """The layout of the state of these variables."""
    ordered = sorted(variables, key=lambda v: symbol_part(v.name))
    text = "\n".join(f"{symbol_part(v.name)} {v.use.element} {list(v.buffer.shape)}" for v in ordered)
    return SavedState(tuple(ordered), zlib.crc32(text.encode()))
