"""The part of its outermost axis that a function computes, and plain loops."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..elements.affine import Affine, Axis
from ..loops.builder import Builder
from ..loops.ir import INDEX, Literal, Operand
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


def nested(b: Builder, axes: tuple[Axis, ...], at: At, run: Callable[[At], None], rows: Rows | None = None) -> None:
    """A plain loop for each axis; the first over `rows` only."""
    if not axes:
        run(at)
        return
    axis, low, high = axes[0], rows.low if rows else None, rows.high if rows else None
    b.loop(axis, lambda: nested(b, axes[1:], {**at, axis: Affine.of(axis)}, run), (), low, high)
