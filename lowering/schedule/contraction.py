"""The loops of a contraction, the sum over K of a[m, k] * b[n, k]: a tile of sums in registers, b in packed panels, one element
of a for a whole vector.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from ...runtime.records import dataclass
from ..elements.affine import Affine, Axis, Range
from ..elements.expression import Expr, is_float
from ..loops.builder import Builder
from ..loops.ir import Literal, Operand, Type
from ..native.target import Target
from .ahead import Ahead
from .borders import heights, over_both_ends, sums_beside, together
from .conditions import Conditions
from .contraction_choice import ContractionChoice, code_of, machine, may_repeat
from .contraction_form import Contraction
from .panels import Cut, Panels, depth_of_panels, pack_at_run_time, packed, unpacked
from .reduce_loops import alike, reduce_loops, unsettled
from .register_tile import panels
from .rows import Rows, nested, over_tested
from .tiles import Piece, Tiles, balanced, interior, over, pieces
from .vectorize import At, Vectorizer
from .write import Block, Writer

MANY_PLACES = 128
"""Of outer axes, for which rows of outputs are not counted."""
ENOUGH_SUMS = 6
"""With so many sums a step of K hides what its loop costs; more than one step would only be more code."""


def alike_in_each(form: Contraction, choice: ContractionChoice, conditions: Conditions) -> Tiles | None:
    """Tiles of one size for the rows of outputs that there are at each place of the outer axes, more here and fewer there; the
    last computes rows again."""
    if form.m is None or not form.tested or conditions.rows or not may_repeat(form, choice.lanes):
        return None
    counts = counts_of_rows(form.m, form.tested)
    most, fewest = max(counts, default=0), min(counts, default=0)
    size = min(balanced(most, choice.tile.rows)[0].size, fewest) if most else 0
    return Tiles(0, size, -(-most // size)) if size > 1 else None


def counts_of_rows(m: Axis, tested: Sequence[Range]) -> set[int]:
    """How many rows there are, at each place of the other axes; nothing where these places are many."""
    others = sorted({a for w in tested for a in w.index.axes} - {m}, key=lambda a: a.name)
    if math.prod(a.extent for a in others) > MANY_PLACES or any(w.index.hidden for w in tested):
        return set()
    places = ({a: Affine.of(i) for a, i in zip(others, at)} for at in itertools.product(*(range(a.extent) for a in others)))
    found = (interior(m, [w.substitute(at) for w in tested]) for at in places)
    return {high - low for low, high in found}


class Step(Protocol):
    """How one step of K is done. `axes` and `conditions` are K and its conditions as the step sees them; `group` is
    how many elements of K it takes."""
    @property
    def axes(self) -> tuple[Axis, ...]: ...

    @property
    def conditions(self) -> Conditions: ...

    @property
    def group(self) -> int: ...

    def stage(self, at: At, rows: int) -> None:
        """Prepare a tile of rows."""

    def initial(self, at: At, row: int, piece: Piece) -> Operand:
        """What the sums of a vector, in a row of the tile, start from."""

    def row(self, at: At, row: int) -> Callable[[int], Operand]:
        """The element of a (or a group of them) in so many lanes."""

    def accumulate(self, total: Operand, row: Operand, column: Operand) -> Operand: ...


@dataclass(frozen=True, slots=True)
class Multiply:
    """One element at a time: total + a * b."""
    b: Builder
    target: Target
    form: Contraction
    conditions: Conditions
    group: int = 1

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self.form.reduce.axes

    def stage(self, at: At, rows: int) -> None:
        pass

    def initial(self, at: At, row: int, piece: Piece) -> Operand:
        return Literal(0, Type(self.form.reduce.dtype, piece.lanes))

    def row(self, at: At, row: int) -> Callable[[int], Operand]:
        place = at if self.form.m is None else {**at, self.form.m: at[self.form.m] + row}
        value = Vectorizer(self.b, self.target, place).value(self.form.a)
        return lambda lanes: self.b.splat(value, lanes)

    def accumulate(self, total: Operand, row: Operand, column: Operand) -> Operand:
        if is_float(total.type.dtype):
            return self.b.op("fma", row, column, total)
        return self.b.op("add", total, self.b.op("mul", row, column))


def lower(b: Builder, form: Contraction, choice: ContractionChoice, target: Target, rows: Rows | None) -> None:
    from .blocked import lower as lower_blocked
    from .dot import Dot4
    from .float_parts import PRODUCTS
    from .part_products import lower as lower_parts
    from .tile_products import lower as lower_tiles
    if choice.step == "tiles":
        lower_tiles(b, form, target, rows)
        return
    if choice.step in PRODUCTS:
        lower_parts(b, form, target, rows)
        return
    if choice.blocks:
        lower_blocked(b, form, choice, choice.blocks, target, rows)
        return
    conditions, widths = Conditions.of(form.reduce, form.m, form.n), columns(form, choice, target)
    wide = widths if choice.columns_first or choice.tile.rows == 1 else together(widths)
    name, dtype, fill = form.nest.name, form.reduce.dtype, None
    known: Expr = form.reduce
    step: Step = Multiply(b, target, form, conditions)
    staged: float | None = None
    groups: Axis | None = None
    if choice.step == "dot4":
        if rows:
            choice = replace(choice, columns_first=False, ahead=False, group=None)
        groups = Axis("group", form.rows // choice.group) if choice.group else None
        step = dot = Dot4.of(b, form, choice.tile.rows, target, widths, choice.columns_first, groups)
        panels, fill, known, staged = dot.panels, dot.fill, dot.packed.known, dot.rows.test_cycles
    elif choice.packing == "compiling":
        panels = packed(b, name, form.b, form.n, form.reduce.axes, form.batch, widths, dtype)
    elif choice.packing == "running":
        panels, fill = pack_at_run_time(b, name, form.b, form.n, form.reduce.axes, widths, dtype, target,
                                        form.inside)
    else:
        panels = unpacked(form.b, form.n, form.reduce.axes, dtype)
    largest = max(count * sum(p.lanes for p in vectors) for count, cut in ((choice.tile.rows, widths), (1, wide))
                  for _, vectors in cut)
    ahead = Ahead.of(b, form, panels.buffer if choice.ahead else None, target, step.group)
    product = Product(b, form, step, panels, target, Writer(b, target, form.nest, form.reduce, largest, known=known), ahead)
    outer, lines = form.outer, [Tiles(0, 1, 1)]
    if form.m:
        free = (0, choice.group) if choice.group else interior(form.m, (*conditions.rows, *form.tested))
        lines = heights(choice.group or form.rows, free, choice.tile,
                        conditions.by_single_rows, wide, form.depth * form.turns * math.prod(a.extent for a in outer),
                        machine(form, choice.step, target), bool(form.tested), code_of(form, step.group),
                        may_repeat(form, choice.lanes), conditions.parts(form.m), staged)

    alike = alike_in_each(form, choice, conditions)
    origin = Affine.of(groups) * (choice.group or 0) if groups else Affine()

    def over_rows(at: At, run: Callable[[At, Tiles], None]) -> None:
        if alike and (m := form.m):
            over_tested(b, m, alike, [w.substitute(at) for w in form.tested], lambda start: run({**at, m: start}, alike))
            return

        def rows(start: Affine, t: Tiles) -> None:
            place = {**at, form.m: origin + start} if form.m else at
            found = [r.substitute(place) for r in form.tested]
            if any(w.known is False for w in found):
                return
            if tests := [w for w in found if w.known is None]:
                b.when(b.holds(tests), lambda: run(place, t))
            else:
                run(place, t)
        over_both_ends(b, lines, rows)

    def over_columns(at: At, run: Callable[[At, tuple[Piece, ...], int], None], cut: Cut) -> None:
        for (t, vectors), (panel, _) in zip(cut, widths):
            over(b, [t], lambda start, _: run({**at, form.n: start}, vectors, panel.size))

    def row_major(at: At) -> None:
        def line(at: At, m: Tiles) -> None:
            step.stage(at, m.size)
            over_columns(at, lambda at, vectors, panel: product.tile(at, m, vectors, panel), wide if m.size == 1 else widths)
        over_rows(at, line)

    def inner(axes: tuple[Axis, ...], at: At, rows: Rows | None) -> None:
        if not choice.columns_first:
            nested(b, axes, at, row_major, rows, form.nest.where)
        elif groups:
            b.loop(groups, lambda: column_major(axes, at, rows))
        else:
            column_major(axes, at, rows)

    def column_major(axes: tuple[Axis, ...], at: At, rows: Rows | None) -> None:
        if choice.step == "dot4":
            nested(b, axes, at, lambda at: over_rows(at, lambda at, m: step.stage(at, m.size)))
        over_columns(at, lambda at, vectors, panel: nested(b, axes, at, lambda at: over_rows(
            at, lambda at, m: product.tile(at, m, vectors, panel)), rows, form.nest.where), widths)

    if fill is None and not (choice.columns_first and form.batch):
        inner(outer, {}, rows)
        return
    first = tuple(a for d, a in enumerate(outer) if a in form.batch or (rows and d == 0 and form.batch))
    rest = tuple(a for a in outer if a not in first)

    def batch(at: At) -> None:
        if fill:
            b.outside(depth_of_panels(b, form), lambda: fill(at))
        inner(rest, at, None if first else rows)

    nested(b, first, {}, batch, rows if first else None, form.nest.where)


def columns(form: Contraction, choice: ContractionChoice, target: Target) -> Cut:
    least = min(4, choice.lanes) if choice.step == "dot4" else 1
    return [(t, pieces(t.size, choice.lanes, target.has_masked, least))
            for t in panels(form.n.extent, choice.lanes, choice.tile)]


@dataclass(frozen=True, slots=True)
class Product:
    """The body: the loops over K, and what is done with the sums of one tile."""
    b: Builder
    form: Contraction
    step: Step
    panels: Panels
    target: Target
    writer: Writer
    ahead: Ahead

    def tile(self, at: At, line: Tiles, vectors: tuple[Piece, ...], panel: int) -> None:
        """One tile of rows, for vectors of panels that are `panel` columns each."""
        block = Block(at, self.form.m, line.size, self.form.n, vectors)
        conditions = self.step.conditions
        places = [block.place(row, 0) for row in range(line.size)]
        failing = unsettled(conditions.rows, (places[0], places[-1]))
        single = line.size == 1  # then the loops' bounds hold them
        bounds = (*conditions.bounds, *failing) if single else conditions.bounds
        apart = alike(conditions.tapped, failing, places) if failing and not single else {}
        inits = [self.step.initial(block.place(row, piece.start), row, piece) for row, piece in block.vectors]
        many = len(inits) >= ENOUGH_SUMS
        last, group = self.step.axes[-1], self.step.group
        whole = single and not any(w.index.coefficient(last) for w in bounds)
        beside, tested, n = sums_beside(len(inits), last.extent // group) if whole else 1, () if single else failing, len(inits)

        def products(at: At, acc: Sequence[Operand]) -> list[Operand]:
            """A step for each of the sums that run beside each other."""
            return [total for i in range(beside) for total in self.products(
                {**at, last: at[last] + i * group}, acc[i * n:(i + 1) * n], tested, line.size, vectors, panel)]

        zeros = [Literal(0, x.type) for x in inits] * (beside - 1)
        sums = reduce_loops(
            self.b, self.step.axes, bounds, at, [*inits, *zeros], products, apart, 1 if many else 2, group * beside)
        self.writer.write(block, [self.added(sums[i::n]) for i in range(n)])

    def added(self, sums: Sequence[Operand]) -> Operand:
        """The sum of some."""
        total = sums[0]
        for x in sums[1:]:
            total = self.b.op("add", total, x)
        return total

    def products(self, at: At, sums: Sequence[Operand], failing: Sequence[Range], rows: int, vectors: tuple[Piece, ...],
                 panel: int) -> list[Operand]:
        """One step of K for all sums of the tile."""
        result, k = list(sums), Affine()
        for axis in self.step.axes:
            k = k * axis.extent + at[axis]
        columns = self.panels.load(self.b, self.target, at, vectors, panel, k)
        self.ahead.panel(at, k, rows, vectors)
        self.ahead.epilogue(at, k, rows, vectors)
        for r in range(rows):
            if failing and self.form.m:
                place = {**at, self.form.m: at[self.form.m] + r}
                if any(w.substitute(place).known is False for w in failing):
                    continue
            row = self.step.row(at, r)
            for v, piece in enumerate(vectors):
                position = r * len(vectors) + v
                result[position] = self.step.accumulate(result[position], row(piece.lanes), columns[v])
        return result
