"""The macro-kernel of a contraction: the loops around its micro-kernel, as in BLIS, each written once. Each kind of product
lists its loops, with the packing of operands between them, in its own order; `run` writes the list. Outermost first:

    batches, pack b, places, rows, pack a, panels               register tiles: the rows of a tile pass all panels
    batches, pack b, pack a, panels, places, rows               register tiles: a panel passes all rows
    places, blocks of columns, blocks of K, pack b, groups of tiles, pack a, rows, panels      register tiles in cache blocks
    places, rows, pack a, groups of columns, panels             sums in scalar registers, an epilogue after each group
    batches, groups of columns, pack b, places, rows, pack a, panels                           bytes on a matrix unit
    batches, groups of columns, pack b, places, groups of rows, blocks of K, pack a, panels, rows     limbs on a matrix unit
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Range
from ...loops.builder import Builder
from ..nest.loop_nest import At
from ..nest.row_range import RowRange, nested, over_tested
from ..nest.tile_axis import Cut, Piece, Tiles, over
from .border_tiles import over_both_ends
from .pattern import Contraction

START = Affine()


@dataclass(frozen=True, slots=True)
class Place:
    """The current position of the loops. A tile begins at the point `at` and has `rows` rows for each of `lines` positions of
    an outer axis; its columns are the `vectors` of panels that are `panel` columns wide, the first of which is packed as column
    `column`. The tile is in a group of `columns` columns from `first` on, cut into panels by `cut`. `term` is a step of a block
    of K, or the number of the block; `tile` is the number of the tile among those whose rows are packed together; `number` is
    the number of the panel among those that are computed together."""
    at: At
    rows: int = 1
    lines: int = 1
    vectors: tuple[Piece, ...] = ()
    panel: int = 0
    column: Affine = START
    first: Affine = START
    columns: int = 0
    cut: Cut | None = None
    term: Affine = START
    tile: Affine = START
    number: Affine = START

    def moved(self, at: At) -> Place:
        """Return the same place with these axes changed."""
        return replace(self, at={**self.at, **at})


Run = Callable[[Place], None]
Loop = Callable[[Place, Run], None]
"""A loop that calls a body for each place inside a given place."""


def run(loops: Sequence[Loop], body: Run, place: Place | None = None) -> None:
    """Write the loops, the first outermost, around a body."""
    here = place or Place({})
    if loops:
        loops[0](here, lambda inner: run(loops[1:], body, inner))
    else:
        body(here)


def packing(fill: Run) -> Loop:
    """Return a loop that packs an operand before its body."""
    def before(place: Place, body: Run) -> None:
        fill(place)
        body(place)
    return before


def finishing(finish: Run) -> Loop:
    """Return a loop that turns sums into outputs after its body."""
    def after(place: Place, body: Run) -> None:
        body(place)
        finish(place)
    return after


@dataclass(frozen=True, slots=True)
class MacroKernel:
    """The loops of a pattern."""
    b: Builder
    pattern: Contraction

    def places(self, axes: tuple[Axis, ...], rows: RowRange | None = None, where: Sequence[Range] | None = None) -> Loop:
        """Return a loop for each of these outer axes, the first over `rows` only."""
        conditions = self.pattern.nest.where if where is None else where
        return lambda place, body: nested(self.b, axes, place.at, lambda at: body(replace(place, at=at)), rows, conditions)

    def outer(self, separate: bool, rows: RowRange | None, without: Axis | None = None) -> tuple[Loop, Loop]:
        """Return the loops over the batches, if these are `separate`, and over the other outer axes except `without`."""
        batch, outer = self.pattern.batch, self.pattern.outer
        first = tuple(a for d, a in enumerate(outer) if a in batch or (rows and d == 0 and batch)) if separate else ()
        rest = tuple(a for a in outer if a not in first and a is not without)
        return self.places(first, rows if first else None), self.places(rest, None if first else rows)

    def columns(self, groups: Sequence[tuple[Tiles, Cut]]) -> Loop:
        """Return the loop over groups of columns, each with its panels."""
        def each(place: Place, body: Run) -> None:
            for t, cut in groups:
                over(self.b, [t], lambda start, t: body(
                    replace(place, first=start, columns=t.size, cut=cut)))
        return each

    def panels(self, cut: Cut | None = None, single: Cut | None = None, is_packed: bool = False) -> Loop:
        """Return the loop over the panels of a cut, or of a group of columns; with `is_packed`, only the panels of the group
        are packed at a time. A single row takes the panels of `single`, which join several."""
        def each(place: Place, body: Run) -> None:
            panels = cut or place.cut or []
            for (t, vectors), (panel, _) in zip(single if single and place.rows == 1 else panels, panels):
                over(self.b, [t], lambda start, _: body(self.panel(place, start, panel.size, vectors, is_packed)))
        return each

    def panel(self, place: Place, start: Affine, size: int, vectors: tuple[Piece, ...], is_packed: bool) -> Place:
        """Return the place of a panel, `start` columns after the first column of its group."""
        n = self.pattern.n
        return replace(place, at={**place.at, n: place.first + start}, column=start if is_packed else place.first + start,
                       vectors=vectors, panel=size)

    def rows(self, tiles: Sequence[Tiles], both_ends: bool = False, first: Affine = START) -> Loop:
        """Return the loop over tiles of rows, from `first` on, without tiles that fail a condition. With `both_ends`, equally
        many single rows at both ends share their code."""
        def each(place: Place, body: Run) -> None:
            (over_both_ends if both_ends else over)(self.b, tiles, lambda start, t: tested(place, start, t, body))

        def tested(place: Place, start: Affine, t: Tiles, body: Run) -> None:
            at = {**place.at, self.pattern.m: first + start} if self.pattern.m else place.at
            here = replace(place, at=at, rows=t.size)
            conditions = [w.substitute(at) for w in self.pattern.tested]
            if any(w.known is False for w in conditions):
                return
            if tests := [w for w in conditions if w.known is None]:
                self.b.when(self.b.holds(tests), lambda: body(here))
            else:
                body(here)

        return each

    def along(self, axis: Axis, tiles: Sequence[Tiles]) -> Loop:
        """Return the loop over tiles of an axis (the rows, or an outer axis), without conditions."""
        return lambda place, body: over(self.b, tiles, lambda start, t: body(
            replace(place, at={**place.at, axis: start}, rows=t.size)))

    def equal_rows(self, tiles: Tiles) -> Loop:
        """Return the loop over tiles of one size for the existing rows, whose number varies between points."""
        def each(place: Place, body: Run) -> None:
            m, conditions = self.pattern.m, [w.substitute(place.at) for w in self.pattern.tested]
            assert m
            over_tested(self.b, m, tiles, conditions, lambda start: body(
                replace(place, at={**place.at, m: start}, rows=tiles.size)))
        return each
