"""Bytes that every schedule of a model's kernels needs, whatever rows are tiled, in whatever order, with or without overlap.

A kernel stores its result by steps, of one row at least: when the step ends, that row is there. A step that computes a row
finds all rows of its operands that the row reads: the steps that wrote them have ended. So the workspace holds, at some time,

* the largest row of a value between two kernels;
* the rows of all such values that one row of one kernel reads, for each row of each kernel;
* with the inputs and outputs in the workspace, all inputs (when a run begins), and all outputs (when it ends).

The greatest of these is a bound. Rows are counted where it is certain that they are read: at the middle of the other axes,
where all conditions hold.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ..elements.affine import Affine, Axis, Range
from ..elements.expression import Buffer, Expr, Guard, Load, Reduce
from ..elements.traverse import children
from ..kernels.kernel import Kernel, Kernels
from ..row_tiling.row_access import row_dimension

Integers = npt.NDArray[np.int64]
MAX_ROWS, MAX_POINTS = 32, 1 << 14
"""Rows of a kernel that are looked at, and points of the axes that a load goes along."""


def model_bound(kernels: Kernels, workspace_io: bool) -> int:
    """Return the bytes of the workspace that no plan undercuts."""
    outputs = {k.out for k in kernels.kernels}
    between = {b for b in outputs if b.role == "temporary" or (workspace_io and b.role == "result")}
    found = [row_bytes(b) for b in between] + [bytes_read(k, between) for k in kernels.kernels]
    if workspace_io:
        found += [sum(b.nbytes for b in kernels.inputs), sum(b.nbytes for b in kernels.outputs)]
    return max(found, default=0)


def row_bytes(buffer: Buffer) -> int:
    return buffer.nbytes // row_dimension(buffer)[1]


def bytes_read(kernel: Kernel, between: set[Buffer]) -> int:
    """The most bytes of some buffers that a row of a kernel surely reads."""
    certain = [(load, where) for load, where in loads_surely(kernel.value, ()) if load.buffer in between]
    row = next((a for a in kernel.axes if a.extent > 1), None)
    count = row.extent if row else 1
    most = 0
    for number in dict.fromkeys(np.linspace(0, count - 1, min(count, MAX_ROWS), dtype=np.int64).tolist()) if certain else ():
        rows: dict[Buffer, set[int]] = {}
        for load, where in certain:
            rows.setdefault(load.buffer, set()).update(rows_at(load, where, {row: number} if row else {}))
        most = max(most, sum(len(some) * row_bytes(b) for b, some in rows.items()))
    return most


def loads_surely(e: Expr, where: tuple[Range, ...]) -> Iterator[tuple[Load, tuple[Range, ...]]]:
    """The loads of an expression, each with conditions under which it is made."""
    waiting, seen = [(e, where)], set[tuple[Expr, tuple[Range, ...]]]()
    while waiting:
        part, under = waiting.pop()
        if (part, under) in seen:
            continue
        seen.add((part, under))
        match part:
            case Load():
                yield part, under
            case Guard(conditions, inside):
                waiting.append((inside, under + conditions))
            case Reduce(body=body, where=conditions):
                waiting.append((body, under + conditions))
            case _:
                waiting += [(child, under) for child in children(part)]


def rows_at(load: Load, where: tuple[Range, ...], fixed: dict[Axis, int]) -> set[int]:
    """The rows of a buffer that a load reads: some axes are fixed, the axes along its rows free, the others in the middle."""
    buffer, (dimension, rows) = load.buffer, row_dimension(load.buffer)
    flat = load.is_flat and len(buffer.shape) > 1
    index = load.index[0 if flat else dimension] if load.index else Affine()
    used = {axis for i in (index, *(r.index for r in where)) for axis in i.axes}
    free = [axis for axis in used if axis in index.axes and axis not in fixed]
    if not all(is_linear(i) for i in (index, *(r.index for r in where))):
        return set()
    points = np.array(list(itertools.islice(itertools.product(*(range(a.extent) for a in free)), MAX_POINTS)), np.int64)
    points = points.reshape(-1, len(free)) if free else np.zeros((1, 0), np.int64)
    at = {axis: np.full(len(points), fixed.get(axis, axis.extent // 2)) for axis in used} | dict(zip(free, points.T))
    is_made = np.ones(len(points), np.bool_)
    for r in where:
        i = value(r.index, at)
        is_made &= (r.low <= i) & (i < r.high)
    place = value(index, at)[is_made] // (buffer.strides[dimension] if flat else 1)
    return {row for row in np.unique(place).tolist() if 0 <= row < rows}


def is_linear(index: Affine) -> bool:
    return all(isinstance(term, Axis) for term, _ in index.terms)


def value(index: Affine, at: dict[Axis, Integers]) -> Integers:
    return sum((at[axis] * c for axis, c in index.terms if isinstance(axis, Axis)), np.asarray(index.const, np.int64)) + (
        np.zeros_like(next(iter(at.values()))) if at else np.zeros(1, np.int64))
