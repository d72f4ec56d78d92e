"""Live ranges of rows: the steps of the first write and the last read of each row of a buffer. They are finer than the live
range of the whole buffer, since kernels that are tiled by rows write and read it row by row. Row tiling counts memory with them
(`row_groups`), and the memory planner places buffers with them (`memory.sharing.occupancy`).
"""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...runtime.records import dataclass
from ..elements.expression import Buffer
from .row_access import Rows

RowsRead = Mapping[Buffer, tuple[Rows, Rows]]
"""Map from each buffer that a kernel reads to the first row and the end of the rows that each row of its output reads."""
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class RowLifetimes:
    """The live range of each row: the step that writes it first (NEVER), and the step that reads or writes it last (-1)."""
    written: Rows
    read: Rows

    @staticmethod
    def of(rows: int, born: int | None = None, kept: int | None = None) -> RowLifetimes:
        """Return live ranges of rows that all exist from step `born` on and are needed until step `kept`, where given."""
        return RowLifetimes(np.full(rows, NEVER if born is None else born), np.full(rows, -1 if kept is None else kept))

    def use(self, step: int, rows: tuple[int, int], writes: bool) -> None:
        """Record that a step writes rows, or reads them. Step numbers must not decrease."""
        first, end = rows
        if writes:
            np.minimum(self.written[first:end], step, out=self.written[first:end])
        np.maximum(self.read[first:end], step, out=self.read[first:end])


def rows_used(buffer: Buffer, out: Buffer, rows: tuple[int, int] | None, reads: RowsRead | None, count: int) -> tuple[int, int]:
    """Return the rows of a buffer, of `count`, that a kernel uses for some rows of its output, or for all of them: the rows
    that it writes, or those that it reads."""
    if count == 1 or rows is None or reads is None:
        return 0, count
    if buffer is out:
        return rows
    if buffer not in reads:
        return 0, count
    first, end = reads[buffer]
    return int(first[rows[0]:rows[1]].min()), int(end[rows[0]:rows[1]].max())
