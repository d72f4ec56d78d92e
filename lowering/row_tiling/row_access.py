"""The rows of other buffers that each row of a kernel's output needs, from its index expressions. They decide in which order
rows can run (`row_order`), and which rows must be kept (`ring_buffers`).
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
    """A kernel that can run by rows: the number of its rows and, for each buffer that it reads, the rows [first, end) that each
    of its rows needs. The range is never empty, even if all that a row reads is padding: the loops of a kernel may read only
    elements that have been written."""
    kernel: Kernel
    rows: int
    reads: Mapping[Buffer, tuple[Rows, Rows]]


def rows_read(kernel: Kernel) -> dict[Buffer, tuple[Rows, Rows]]:
    """Map each buffer that a kernel reads to the first row and the end of the rows that each row of its output reads."""
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
    """Return the first dimension with more than one row, and the number of rows; (0, 1) if there is none."""
    return next(((d, n) for d, n in enumerate(buffer.shape) if n > 1), (0, 1))


def rows_of(kernel: Kernel, sums_alone: bool = True) -> RowAccess | None:
    """Return the row access of a kernel; None if it cannot run by rows. The kernel must have rows, columns and channels that
    strategies can split. Its buffer must be no variable, which others could read before or after, and it must not read its
    own output. With `sums_alone` it must have a reduction: other kernels are so quick that rows do not pay for the cache."""
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
    """Return, for each row of the reader, the first row of `out` that this row or a later one reads."""
    first, _ = reader.reads[out]
    needed: list[int] = np.minimum.accumulate(first[::-1])[::-1].tolist()
    return needed


def begins_early(reader: RowAccess, producer: RowAccess) -> bool:
    """True if the reader's first row needs only some rows of the producer: otherwise tiling by rows gains nothing."""
    ends = reader.reads.get(producer.kernel.out)
    return ends is not None and (producer.rows == 1 or int(ends[1][0]) < producer.rows)
