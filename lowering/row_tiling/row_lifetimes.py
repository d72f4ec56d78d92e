"""When each row of a buffer is written for the first time and read for the last time, in steps: finer than the lifetime of the
whole buffer, since kernels that are tiled by rows write and read it row by row. What row tiling counts memory with
(`row_groups`), and the planner of memory places buffers with (`memory.sharing.occupancy`).
"""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...runtime.records import dataclass
from ..elements.expression import Buffer
from .row_access import Rows

RowsRead = Mapping[Buffer, tuple[Rows, Rows]]
"""Of each buffer that a kernel reads: for each row of its output the first row that it reads, and the end."""
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class RowLifetimes:
    """Of each row: the step that writes it first (NEVER), and the one that reads or writes it last (-1)."""
    written: Rows
    read: Rows

    @staticmethod
    def of(rows: int, born: int | None = None, kept: int | None = None) -> RowLifetimes:
        """All rows are there from the step `born` on, and are still wanted at the step `kept`, where these are given."""
        return RowLifetimes(np.full(rows, NEVER if born is None else born), np.full(rows, -1 if kept is None else kept))

    def use(self, step: int, rows: tuple[int, int], writes: bool) -> None:
        """A step writes rows, or reads them; steps only rise."""
        first, end = rows
        if writes:
            np.minimum(self.written[first:end], step, out=self.written[first:end])
        np.maximum(self.read[first:end], step, out=self.read[first:end])


def rows_used(buffer: Buffer, out: Buffer, rows: tuple[int, int] | None, reads: RowsRead | None, count: int) -> tuple[int, int]:
    """The rows of a buffer, of `count`, that a kernel uses for some rows of its output, or for all of them: it writes these
    rows, or reads what they need."""
    if count == 1 or rows is None or reads is None:
        return 0, count
    if buffer is out:
        return rows
    if buffer not in reads:
        return 0, count
    first, end = reads[buffer]
    return int(first[rows[0]:rows[1]].min()), int(end[rows[0]:rows[1]].max())
