"""The macro-kernel of a contraction, the loops around its micro-kernel: over rows and columns of register tiles, either of them
outermost, over the places of outer axes, and over batches, for each of which panels may be packed. `micro_kernel` computes one
register tile.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Range
from ...elements.expression import Expr
from ...loops.builder import Builder
from ...target.target import Target
from ..nest.loop_nest import At
from ..nest.padding_conditions import PaddingConditions
from ..nest.row_range import RowRange, nested, over_tested
from ..nest.tile_axis import Cut, Piece, Tiles, balanced, interior, over
from ..vectorize.epilogue import EpilogueWriter
from .border_tiles import MAX_ROW_VECTORS, grouped_panels, heights, over_both_ends
from .choose import ContractionChoice, code_of, machine, may_repeat
from .int8 import widening
from .int8.dual_multiply import DualMultiply
from .int8.vnni import Dot4
from .micro_kernel import MicroKernel, Multiply, Step, columns
from .pack_b import Panels, depth_of_panels, pack_at_run_time, packed, unpacked
from .pattern import Contraction
from .prefetch import Prefetching

MAX_COUNTED_PLACES = 128
"""Of outer axes, for which rows of outputs are not counted."""


def alike_in_each(pattern: Contraction, choice: ContractionChoice, conditions: PaddingConditions) -> Tiles | None:
    """Tiles of one size for the rows of outputs that there are at each place of the outer axes, more here and fewer there; the
    last computes rows again."""
    if pattern.m is None or not pattern.tested or conditions.rows or not may_repeat(pattern, choice.lanes):
        return None
    counts = counts_of_rows(pattern.m, pattern.tested)
    most, fewest = max(counts, default=0), min(counts, default=0)
    size = min(balanced(most, choice.tile.rows)[0].size, fewest) if most else 0
    return Tiles(0, size, -(-most // size)) if size > 1 else None


def counts_of_rows(m: Axis, tested: Sequence[Range]) -> set[int]:
    """How many rows there are, at each place of the other axes; nothing where these places are many."""
    others = sorted({a for w in tested for a in w.index.axes} - {m}, key=lambda a: a.name)
    if math.prod(a.extent for a in others) > MAX_COUNTED_PLACES or any(w.index.hidden for w in tested):
        return set()
    places = ({a: Affine.of(i) for a, i in zip(others, at)} for at in itertools.product(*(range(a.extent) for a in others)))
    found = (interior(m, [w.substitute(at) for w in tested]) for at in places)
    return {high - low for low, high in found}


@dataclass(frozen=True, slots=True)
class Loops:
    """With `columns_first` a panel passes all rows before the next one comes, and if rows are packed, all are packed before;
    with `groups`, those of one group. `lines` are the tiles of rows, but where there are others (`alike`); `widths`
    those of columns, `wide` those beside a single row."""
    b: Builder
    pattern: Contraction
    product: MicroKernel
    columns_first: bool
    lines: Sequence[Tiles]
    alike: Tiles | None
    widths: Cut
    wide: Cut
    groups: Axis | None

    def write(self, fill: Callable[[At], None] | None, rows: RowRange | None) -> None:
        """All of it; `fill` packs the panels of the batch at a place."""
        pattern = self.pattern
        if fill is None and not (self.columns_first and pattern.batch):
            self.inner(pattern.outer, {}, rows)
            return
        first = tuple(a for d, a in enumerate(pattern.outer) if a in pattern.batch or (rows and d == 0 and pattern.batch))
        rest = tuple(a for a in pattern.outer if a not in first)

        def batch(at: At) -> None:
            if fill:
                self.b.outside(depth_of_panels(self.b, pattern), lambda: fill(at))
            self.inner(rest, at, None if first else rows)

        nested(self.b, first, {}, batch, rows if first else None, pattern.nest.where)

    def inner(self, axes: tuple[Axis, ...], at: At, rows: RowRange | None) -> None:
        if not self.columns_first:
            nested(self.b, axes, at, self.row_major, rows, self.pattern.nest.where)
        elif self.groups:
            self.b.loop(self.groups, lambda: self.column_major(axes, at, rows))
        else:
            self.column_major(axes, at, rows)

    def row_major(self, at: At) -> None:
        def line(at: At, m: Tiles) -> None:
            self.product.step.pack(at, m.size)
            self.over_columns(at, lambda at, vectors, panel: self.product.tile(at, m, vectors, panel),
                              self.wide if m.size == 1 else self.widths)
        self.over_rows(at, line)

    def column_major(self, axes: tuple[Axis, ...], at: At, rows: RowRange | None) -> None:
        step, where = self.product.step, self.pattern.nest.where
        if step.packs_rows:
            nested(self.b, axes, at, lambda at: self.over_rows(at, lambda at, m: step.pack(at, m.size)))
        self.over_columns(at, lambda at, vectors, panel: nested(self.b, axes, at, lambda at: self.over_rows(
            at, lambda at, m: self.product.tile(at, m, vectors, panel)), rows, where), self.widths)

    def over_rows(self, at: At, run: Callable[[At, Tiles], None]) -> None:
        b, pattern, alike = self.b, self.pattern, self.alike
        if alike and (m := pattern.m):
            over_tested(b, m, alike, [w.substitute(at) for w in pattern.tested], lambda start: run({**at, m: start}, alike))
            return
        groups = self.groups
        first = Affine.of(groups) * (pattern.rows // groups.extent) if groups else Affine()

        def rows(start: Affine, t: Tiles) -> None:
            place = {**at, pattern.m: first + start} if pattern.m else at
            found = [r.substitute(place) for r in pattern.tested]
            if any(w.known is False for w in found):
                return
            if tests := [w for w in found if w.known is None]:
                b.when(b.holds(tests), lambda: run(place, t))
            else:
                run(place, t)
        over_both_ends(b, self.lines, rows)

    def over_columns(self, at: At, run: Callable[[At, tuple[Piece, ...], int], None], cut: Cut) -> None:
        for (t, vectors), (panel, _) in zip(cut, self.widths):
            over(self.b, [t], lambda start, _: run({**at, self.pattern.n: start}, vectors, panel.size))


def lower(b: Builder, pattern: Contraction, choice: ContractionChoice, target: Target, rows: RowRange | None) -> None:
    """Without blocks of K, by vectors."""
    if choice.step == "dot4" and rows:
        choice = replace(choice, columns_first=False, prefetching=False, group=None)
    groups = Axis("group", pattern.rows // choice.group) if choice.group else None
    conditions, widths = PaddingConditions.of(pattern.reduce, pattern.m, pattern.n), columns(pattern, choice, target)
    wide = widths if choice.columns_first or choice.tile.rows == 1 else grouped_panels(widths, most_of_a_row(choice, target))
    found = operands(b, pattern, choice, target, conditions, widths, groups)
    largest = max(count * sum(p.lanes for p in vectors) for count, cut in ((choice.tile.rows, widths), (1, wide))
                  for _, vectors in cut)
    prefetching = Prefetching.of(b, pattern, found.panels.buffer if choice.prefetching else None, target, found.step.group)
    writer = EpilogueWriter(b, target, pattern.nest, pattern.reduce, largest, known=found.known)
    lines = [Tiles(0, 1, 1)]
    if pattern.m:
        steps = pattern.depth * pattern.iterations * math.prod(a.extent for a in pattern.outer)
        free = (0, choice.group) if choice.group else interior(pattern.m, (*conditions.rows, *pattern.tested))
        lines = heights(choice.group or pattern.rows, free, choice.tile, conditions.by_single_rows, wide, steps,
                        machine(pattern, choice.step, target), bool(pattern.tested), code_of(pattern, found.step.group),
                        may_repeat(pattern, choice.lanes), conditions.fractions(pattern.m), found.test_cycles)
    loops = Loops(
        b,
        pattern,
        MicroKernel(b, pattern, found.step, found.panels, target, writer, prefetching),
        choice.columns_first,
        lines,
        alike_in_each(pattern, choice, conditions),
        widths,
        wide,
        groups,
    )
    loops.write(found.fill, rows)


def most_of_a_row(choice: ContractionChoice, target: Target) -> int:
    """Vectors of columns beside a single row, at most."""
    match choice.step:
        case "dual":
            return target.costs.dual_row_columns
        case "widen":
            return widening.MAX_ROW_VECTORS
    return MAX_ROW_VECTORS


@dataclass(frozen=True, slots=True)
class Operands:
    """The step of K and the panels; `fill` packs these for the batch at a place, if that is not done while compiling. `known`
    is what the sums are in the value of the nest, `test_cycles` what a test costs where rows are packed."""
    step: Step
    panels: Panels
    fill: Callable[[At], None] | None
    known: Expr
    test_cycles: float | None = None


def operands(b: Builder, pattern: Contraction, choice: ContractionChoice, target: Target, conditions: PaddingConditions,
             widths: Cut,
             groups: Axis | None) -> Operands:
    if choice.step == "dot4":
        dot = Dot4.of(b, pattern, choice.tile.rows, target, widths, choice.columns_first, groups)
        return Operands(dot, dot.panels, dot.fill, dot.packed.known, dot.test_cycles)
    if choice.step == "dual":
        dual = DualMultiply.of(b, pattern, target, widths, conditions)
        return Operands(dual, dual.panels, None, dual.packed.known)
    if choice.step == "widen":
        wide = widening.WideningMultiply.of(b, pattern, choice.tile.rows, target, widths)
        return Operands(wide, wide.panels, None, wide.packed.known, wide.test_cycles)
    step = Multiply(b, target, pattern, conditions)
    match choice.packing:
        case "compiling":
            return Operands(step, packed(b, pattern, widths, target), None, pattern.reduce)
        case "running":
            return Operands(step, *pack_at_run_time(b, pattern, widths, target), pattern.reduce)
    return Operands(step, unpacked(pattern), None, pattern.reduce)
