"""Which rows of other buffers each row of a kernel's output needs, from its index expressions: what decides in which order rows
can run (`row_order`), and which of them must be kept (`ring_buffers`).
"""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ...runtime.records import dataclass
from ..elements.affine import Affine
from ..elements.expression import Buffer, Load, Reduce
from ..elements.roots import Roots
from ..elements.traverse import loads, nodes
from ..kernels.kernel import Kernel

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RowAccess:
    """A kernel that can run by rows: how many it has, and of each buffer that it reads, for each of its rows, the rows
    [first, end) that this needs; never none, even where all that it reads is padding: the loops of a kernel may read only
    what something has written."""
    kernel: Kernel
    rows: int
    reads: Mapping[Buffer, tuple[Rows, Rows]]


def rows_read(kernel: Kernel) -> dict[Buffer, tuple[Rows, Rows]]:
    """Of each buffer that a kernel reads: for each row of its output the first row that it reads, and the end."""
    axis = next((a for a in kernel.axes if a.extent > 1), kernel.axes[0])
    number = np.arange(axis.extent)
    found: dict[Buffer, tuple[Rows, Rows]] = {}
    for load in loads(kernel.value):
        d, rows = row_dimension(load.buffer)
        flat = load.is_flat and len(load.buffer.shape) > 1
        index = load.index[0 if flat else d] if load.index else Affine()
        if axis in index.hidden:
            first, end = np.zeros_like(number), np.full_like(number, rows)
        else:
            (low, high), step = index.without(axis).bounds, number * index.coefficient(axis)
            by = load.buffer.strides[d] if flat else 1
            first = np.clip((step + low) // by, 0, rows - 1)
            end = np.clip((step + high) // by + 1, 1, rows)
        before = found.get(load.buffer, (first, end))
        found[load.buffer] = np.minimum(before[0], first), np.maximum(before[1], end)
    return found


def row_dimension(buffer: Buffer) -> tuple[int, int]:
    """The first dimension with more than one row, and how many; the first one if there is none."""
    return next(((d, n) for d, n in enumerate(buffer.shape) if n > 1), (0, 1))


def rows_of(kernel: Kernel, sums_alone: bool = True) -> RowAccess | None:
    """How a kernel runs by rows, where it has the rows, columns and channels that strategies can split: its buffer
    is no variable, which others could read before or after, and what it reads of itself is nothing. With `sums_alone` it has a
    reduction: others are so quick that rows do not pay for the cache's sake."""
    axes = [a for a in kernel.axes if a.extent > 1]
    if len(axes) < 3 or kernel.out.role not in ("temporary", "result"):
        return None
    read = [e.buffer for e in nodes(kernel.value) if isinstance(e, Load)]
    if kernel.out in read or any(isinstance(b, Roots) for b in read):  # a Fourier transform is quick as a whole
        return None
    if sums_alone and not any(isinstance(e, Reduce) for e in nodes(kernel.value)):
        return None
    return RowAccess(kernel, axes[0].extent, rows_read(kernel))


def first_needed(reader: RowAccess, out: Buffer) -> list[int]:
    """For each row of the reader, the first row of `out` that it or a later one reads."""
    first, _ = reader.reads[out]
    needed: list[int] = np.minimum.accumulate(first[::-1])[::-1].tolist()
    return needed


def begins_early(reader: RowAccess, producer: RowAccess) -> bool:
    """True if the reader's first row needs only some rows of the producer's: else tiling by rows wins nothing."""
    ends = reader.reads.get(producer.kernel.out)
    return ends is not None and (producer.rows == 1 or int(ends[1][0]) < producer.rows)
