"""The range of the outermost axis that a function computes, and plain loops."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Range
from ...loops.builder import Builder
from ...loops.ir import INDEX, Literal, Operand
from .loop_nest import At
from .reduction_loops import bounds
from .tile_axis import Tiles


@dataclass(frozen=True, slots=True)
class RowRange:
    """The values [low, high) of a nest's first axis."""
    low: Operand
    high: Operand

    @staticmethod
    def of(b: Builder, start: int, extent: int) -> RowRange | None:
        """Return the rows that the function is called for, limited to `extent` rows from `start` on, or None for all rows."""
        if b.rows is None:
            return None
        low, high = b.rows
        if start:
            low, high = (b.op("sub", x, Literal(start, INDEX)) for x in (low, high))
        return RowRange(b.op("max", low, Literal(0, INDEX)), b.op("min", high, Literal(extent, INDEX)))


def nested(b: Builder, axes: tuple[Axis, ...], at: At, run: Callable[[At], None], rows: RowRange | None = None,
           where: Sequence[Range] = ()) -> None:
    """Write a plain loop for each axis, over the points where the conditions hold; the first loop covers `rows` only."""
    if not axes:
        run(at)
        return
    axis, low, high = axes[0], rows.low if rows else None, rows.high if rows else None
    here = [w for w in where if w.index.coefficient(axis) and w.index.axes <= {axis, *at}]
    if here:
        low, high = bounds(b, axis, [w.substitute(at) for w in here])
    b.loop(axis, lambda: nested(b, axes[1:], {**at, axis: Affine.of(axis)}, run, None, where), (), low, high)


def over_tested(b: Builder, axis: Axis, tiles: Tiles, where: Sequence[Range], run: Callable[[Affine], None]) -> None:
    """Call `run` with the start of each tile of the positions where the conditions hold, at least one tile of them."""
    low, high = bounds(b, axis, where)
    last = b.op("sub", b.op("sub", high, low, hoist=True), Literal(tiles.size, INDEX), hoist=True)
    tile, place = Axis("tile", tiles.count), Axis("place", axis.extent - tiles.size + 1)

    def one() -> None:
        b.place(place, b.op("add", low, b.op("min", b.index(Affine.of(tile) * tiles.size), last)))
        run(Affine.of(place))

    b.loop(tile, one)
