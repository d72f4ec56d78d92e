"""The part of its outermost axis that a function computes, and plain loops."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..elements.affine import Affine, Axis, Range
from ..loops.builder import Builder
from ..loops.ir import INDEX, Literal, Operand
from .reduce_loops import bounds
from .vectorize import At


@dataclass(frozen=True, slots=True)
class Rows:
    """The values [low, high) of a nest's first axis."""
    low: Operand
    high: Operand

    @staticmethod
    def of(b: Builder, start: int, extent: int) -> Rows | None:
        """The rows that the function is called for, as far as they are among `extent` ones from `start` on."""
        if b.rows is None:
            return None
        low, high = b.rows
        if start:
            low, high = (b.op("sub", x, Literal(start, INDEX)) for x in (low, high))
        return Rows(b.op("max", low, Literal(0, INDEX)), b.op("min", high, Literal(extent, INDEX)))


def nested(b: Builder, axes: tuple[Axis, ...], at: At, run: Callable[[At], None], rows: Rows | None = None,
           where: Sequence[Range] = ()) -> None:
    """A plain loop for each axis, for the places where the conditions hold; the first over `rows` only."""
    if not axes:
        run(at)
        return
    axis, low, high = axes[0], rows.low if rows else None, rows.high if rows else None
    here = [w for w in where if w.index.coefficient(axis) and w.index.axes <= {axis, *at}]
    if here:
        low, high = bounds(b, axis, [w.substitute(at) for w in here])
    b.loop(axis, lambda: nested(b, axes[1:], {**at, axis: Affine.of(axis)}, run, None, where), (), low, high)
