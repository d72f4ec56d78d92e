"""The loops of a contraction, the sum over K of a[m, k] * b[n, k]: a tile of sums in registers, b in packed panels, one element
of a for a whole vector.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Range
from ...elements.expression import Expr, is_float
from ...loops.builder import Builder
from ...loops.ir import Literal, Operand, Type
from ...target.target import Target
from ..nest.padding_conditions import Conditions
from ..nest.row_range import Rows
from ..nest.tile_axis import Piece, Tiles, interior, pieces
from ..vectorize.epilogue import Block, Writer
from ..vectorize.reduction_loops import alike, reduce_loops, unsettled
from ..vectorize.vectorize import At, Vectorizer
from .border_tiles import heights, sums_beside, together
from .choose import ContractionChoice, code_of, machine, may_repeat
from .macro_loops import Loops, alike_in_each
from .pack_b import Cut, Panels, pack_at_run_time, packed, unpacked
from .prefetch import Ahead
from .recognise import Contraction
from .register_tile import panels

ENOUGH_SUMS = 6
"""With so many sums a step of K hides what its loop costs; more than one step would only be more code."""


class Step(Protocol):
    """How one step of K is done. `axes` and `conditions` are K and its conditions as the step sees them; `group` is
    how many elements of K it takes."""
    @property
    def axes(self) -> tuple[Axis, ...]: ...

    @property
    def conditions(self) -> Conditions: ...

    @property
    def group(self) -> int: ...

    @property
    def is_staged(self) -> bool:
        """Whether rows are prepared."""

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
    is_staged: bool = False

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
    from .bf16_split.amx_loops import lower as lower_parts
    from .bf16_split.choose import PRODUCTS
    from .blocked_loops import lower as lower_blocked
    from .int8.amx_macro_loops import lower as lower_tiles
    if choice.step == "tiles":
        lower_tiles(b, form, target, rows)
    elif choice.step in PRODUCTS:
        lower_parts(b, form, target, rows)
    elif choice.blocks:
        lower_blocked(b, form, choice, choice.blocks, target, rows)
    else:
        lower_plain(b, form, choice, target, rows)


def lower_plain(b: Builder, form: Contraction, choice: ContractionChoice, target: Target, rows: Rows | None) -> None:
    """Without blocks of K, by vectors."""
    if choice.step == "dot4" and rows:
        choice = replace(choice, columns_first=False, ahead=False, group=None)
    groups = Axis("group", form.rows // choice.group) if choice.group else None
    conditions, widths = Conditions.of(form.reduce, form.m, form.n), columns(form, choice, target)
    wide = widths if choice.columns_first or choice.tile.rows == 1 else together(widths)
    found = operands(b, form, choice, target, conditions, widths, groups)
    largest = max(count * sum(p.lanes for p in vectors) for count, cut in ((choice.tile.rows, widths), (1, wide))
                  for _, vectors in cut)
    ahead = Ahead.of(b, form, found.panels.buffer if choice.ahead else None, target, found.step.group)
    writer = Writer(b, target, form.nest, form.reduce, largest, known=found.known)
    lines = [Tiles(0, 1, 1)]
    if form.m:
        steps = form.depth * form.turns * math.prod(a.extent for a in form.outer)
        free = (0, choice.group) if choice.group else interior(form.m, (*conditions.rows, *form.tested))
        lines = heights(choice.group or form.rows, free, choice.tile, conditions.by_single_rows, wide, steps,
                        machine(form, choice.step, target), bool(form.tested), code_of(form, found.step.group),
                        may_repeat(form, choice.lanes), conditions.parts(form.m), found.test_cycles)
    loops = Loops(b, form, Product(b, form, found.step, found.panels, target, writer, ahead), choice.columns_first, lines,
                  alike_in_each(form, choice, conditions), widths, wide, groups)
    loops.write(found.fill, rows)


@dataclass(frozen=True, slots=True)
class Operands:
    """The step of K and the panels; `fill` packs these for the batch at a place, if that is not done while compiling. `known`
    is what the sums are in the value of the nest, `test_cycles` what a test costs where rows are staged."""
    step: Step
    panels: Panels
    fill: Callable[[At], None] | None
    known: Expr
    test_cycles: float | None = None


def operands(b: Builder, form: Contraction, choice: ContractionChoice, target: Target, conditions: Conditions, widths: Cut,
             groups: Axis | None) -> Operands:
    from .int8.vnni import Dot4
    if choice.step == "dot4":
        dot = Dot4.of(b, form, choice.tile.rows, target, widths, choice.columns_first, groups)
        return Operands(dot, dot.panels, dot.fill, dot.packed.known, dot.rows.test_cycles)
    step, name, dtype, axes = Multiply(b, target, form, conditions), form.nest.name, form.reduce.dtype, form.reduce.axes
    match choice.packing:
        case "compiling":
            return Operands(step, packed(b, name, form.b, form.n, axes, form.batch, widths, dtype), None, form.reduce)
        case "running":
            return Operands(step, *pack_at_run_time(b, name, form.b, form.n, axes, widths, dtype, target, form.inside),
                            form.reduce)
    return Operands(step, unpacked(form.b, form.n, axes, dtype), None, form.reduce)


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
