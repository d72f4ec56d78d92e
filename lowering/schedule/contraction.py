"""Sum over K of a[m, k] * b[n, k]: a tile of sums in registers, b in packed panels, one element of a for a whole
vector."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..elements.affine import Affine, Axis, Range
from ..elements.expression import Apply, Expr, Reduce, is_float
from ..elements.traverse import loads, nodes
from ..graph.types import ITEM_SIZES
from ..loops.builder import Builder
from ..loops.ir import Literal, Operand, Type
from ..native.target import Target
from .ahead import Ahead, is_worthwhile
from .blocking import Blocks, choose_blocks
from .borders import heights, together
from .conditions import Conditions, kept_in_range
from .nest import Nest, free_axes
from .panels import Cut, Panels, is_constant, pack_at_run_time, packed, unpacked
from .reduce_loops import alike, reduce_loops, unsettled
from .register_tile import BLOCK_PRICES, Tile, choose_tile, panels
from .rows import Rows, nested
from .tiles import Piece, Tiles, interior, over, pieces
from .vectorize import At, Vectorizer
from .window import main_reduction
from .write import Block, Writer

MOST_PLACES = 512
"""Kernels with more places, of which padding leaves some out, take no products of four bytes."""
ENOUGH_SUMS = 8
"""With so many sums a step of K hides what its loop costs; more than one step would only be more code."""


@dataclass(frozen=True, slots=True, eq=False)
class Contraction:
    """The form: which factor and which axis plays which part."""
    nest: Nest
    reduce: Reduce
    a: Expr
    """Read as it lies in memory, one scalar for each row of the tile."""
    b: Expr
    m: Axis | None
    """Tiled; not in b."""
    n: Axis
    """The vectors' axis; not in a, contiguous in the output."""
    outer: tuple[Axis, ...]

    @property
    def depth(self) -> int:
        return math.prod(k.extent for k in self.reduce.axes)

    @property
    def rows(self) -> int:
        return self.m.extent if self.m else 1

    @property
    def batch(self) -> tuple[Axis, ...]:
        """Outer axes in b: each has panels of its own."""
        free = free_axes(self.b)
        return tuple(a for a in self.outer if a in free)

    @property
    def inside(self) -> tuple[Range, ...]:
        """The conditions on b alone: with them its index stays in range."""
        known = {*self.batch, *self.reduce.axes}
        return tuple(w for w in self.reduce.where if w.index.axes <= known and not w.index.hidden)

    @property
    def passes(self) -> int:
        """How many rows read the same panels."""
        return self.rows * math.prod(a.extent for a in self.outer if a not in self.batch)


@dataclass(frozen=True, slots=True)
class ContractionChoice:
    """`step` is how one step of K is done: "fma", "multiply", "dot4" or "tiles". `packing` is when b is packed: "compiling",
    "running" or "never". With `columns_first` each panel stays in the cache while all rows pass; `ahead` says whether panels
    are asked for before they are read."""
    tile: Tile
    lanes: int
    step: str
    packing: str
    columns_first: bool
    blocks: Blocks | None = None
    ahead: bool = False

    def __str__(self) -> str:
        when = {"compiling": "packed while compiling", "running": "packed while running", "never": "not packed"}
        order = str(self.blocks) if self.blocks else ("columns" if self.columns_first else "rows") + " outermost"
        tile = f"tiles of {self.tile.rows} rows by {self.tile.vectors} vectors of {self.lanes}"
        ahead = ", panels asked for ahead" if self.ahead else ""
        return f"contraction: {self.step}, {tile}, {when[self.packing]}, {order}{ahead}"


def recognise(nest: Nest, rows: bool) -> Contraction | None:
    inner = nest.axes[1:] if rows else nest.axes
    n = inner[-1] if inner else None
    reduction = main_reduction(nest, n) if n else None
    match reduction:
        case Reduce("add", _, Apply("mul", factors)) if n and nest.index.coefficient(n) == 1:
            for a, b in (factors, factors[::-1]):
                m = inner[-2] if len(inner) > 1 else None
                form = Contraction(nest, reduction, a, b, m, n, nest.axes[:-2] if m else nest.axes[:-1])
                if fits(form):
                    return form
    return None


def fits(form: Contraction) -> bool:
    """Whether the parts are what the tile needs: b does not change from row to row, nor a from column to column."""
    in_a, in_b = free_axes(form.a), free_axes(form.b)
    if form.n in in_a or form.n not in in_b or form.m in in_b or not set(form.reduce.axes) <= in_a | in_b:
        return False
    if any(isinstance(e, Reduce) for e in nodes(form.reduce.body)) or Conditions.of(form.reduce, form.m, form.n).tests:
        return False
    if is_constant(form.b):
        return True
    return in_range(form) and (form.passes >= 4 or contiguous(form))


def runs_by_turns(nest: Nest, target: Target) -> bool:
    """Whether the nest is a contraction that can run over the places of its outer axes where its conditions hold, and over
    just the values of K that these leave."""
    from .dot import bytes_of, prefixes
    form = recognise(nest, False)
    if form is None or not all(w.index.axes <= {*form.outer} for w in nest.where):
        return False
    return not (target.has_dot4 and bytes_of(form)) or prefixes(form, Axis("k", form.depth)) is not None


def in_range(form: Contraction) -> bool:
    """Whether b can be read at all values of K for which the conditions on b alone hold."""
    return all(kept_in_range(x, form.inside) for x in loads(form.b))


def contiguous(form: Contraction) -> bool:
    """Whether b can be read as it lies: whole vectors, no index that comes from data."""
    return all(x.index[0].coefficient(form.n) in (0, 1) and form.n not in x.index[0].hidden for x in loads(form.b))


def choose(form: Contraction, target: Target) -> ContractionChoice:
    from .dot import bytes_of
    from .tile_shape import choose_tiles
    lanes = target.lanes(ITEM_SIZES[form.reduce.dtype])
    tile = choose_tile(form.rows, form.n.extent, lanes, target, aliased(form))
    step = "fma" if is_float(form.reduce.dtype) else "multiply"
    if target.has_dot4 and bytes_of(form) and lanes >= 4 and places_with_conditions(form) <= MOST_PLACES:
        step = "dot4"
    packing = "compiling" if is_constant(form.b) else "running"
    if step == "dot4" and (tiles := choose_tiles(form, target)):
        return ContractionChoice(tiles, lanes, "tiles", packing, False)
    if packing == "running" and step != "dot4" and contiguous(form) and form.passes < 4 * tile.rows:
        packing = "never"
    whole = choose_tile(form.rows, form.n.extent, lanes, target, False, BLOCK_PRICES)
    soon = packing == "compiling" and is_worthwhile(form, tile.rows, target)
    blocks = choose_blocks(form, whole, lanes, packing == "compiling", target) if step != "dot4" else None
    if blocks and (blocks.copied or not soon):  # panels that are asked for ahead need no blocks
        when = packing if packing == "compiling" else "running" if blocks.filled else "never"
        return ContractionChoice(whole, lanes, step, when, False, blocks)
    size = ITEM_SIZES["int8" if step == "dot4" else form.reduce.dtype]
    large = step != "dot4" and form.n.extent * form.depth * size > target.l2_bytes // 3
    return ContractionChoice(tile, lanes, step, packing, large and form.passes > tile.rows, None, large and soon)


def places_with_conditions(form: Contraction) -> int:
    """How many places of K "dot4" tells apart at most, each with code of its own."""
    return math.prod(a.extent for a in form.reduce.axes if any(w.index.coefficient(a) for w in form.reduce.where))


def aliased(form: Contraction) -> bool:
    """Whether all rows of a tile fall into the same few sets of the first-level cache."""
    return form.m is not None and any(x.index[0].coefficient(form.m) * ITEM_SIZES[x.dtype] % 4096 == 0
                                      for x in loads(form.a))


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


# ---- the loops ---------------------------------------------------------------------------------------------------
def lower(b: Builder, form: Contraction, choice: ContractionChoice, target: Target, rows: Rows | None) -> None:
    from .blocked import lower as lower_blocked
    from .dot import Dot4
    from .tile_products import lower as lower_tiles
    if choice.step == "tiles":
        lower_tiles(b, form, target, rows)
        return
    if choice.blocks:
        lower_blocked(b, form, choice, choice.blocks, target, rows)
        return
    conditions, widths = Conditions.of(form.reduce, form.m, form.n), columns(form, choice, target)
    wide = widths if choice.columns_first or choice.tile.rows == 1 else together(widths)
    name, dtype, fill = form.nest.name, form.reduce.dtype, None
    known: Expr = form.reduce
    step: Step = Multiply(b, target, form, conditions)
    if choice.step == "dot4":
        step = dot = Dot4.of(b, form, choice.tile.rows, target, widths)
        panels, fill, known = dot.panels, dot.fill, dot.packed.known
    elif choice.packing == "compiling":
        panels, _ = packed(name, form.b, form.n, form.reduce.axes, form.batch, widths, dtype)
    elif choice.packing == "running":
        panels, fill = pack_at_run_time(b, name, form.b, form.n, form.reduce.axes, widths, dtype, target,
                                        form.inside)
    else:
        panels = unpacked(form.b, form.n, form.reduce.axes, dtype)
    largest = max(count * sum(p.lanes for p in vectors) for count, cut in ((choice.tile.rows, widths), (1, wide))
                  for _, vectors in cut)
    ahead = Ahead.of(b, form, panels.buffer if choice.ahead else None, target)
    product = Product(b, form, step, panels, target, Writer(b, target, form.nest, form.reduce, largest, known=known), ahead)
    outer, lines = form.outer, [Tiles(0, 1, 1)]
    if form.m:
        lines = heights(form.rows, interior(form.m, conditions.rows), choice.tile, conditions.by_single_rows, wide,
                        form.depth * math.prod(a.extent for a in outer), target)

    def over_rows(at: At, run: Callable[[At, Tiles], None]) -> None:
        over(b, lines, lambda start, t: run({**at, form.m: start} if form.m else at, t))

    def over_columns(at: At, run: Callable[[At, tuple[Piece, ...], int], None], cut: Cut) -> None:
        for (t, vectors), (panel, _) in zip(cut, widths):
            over(b, [t], lambda start, _: run({**at, form.n: start}, vectors, panel.size))

    def row_major(at: At) -> None:
        def line(at: At, m: Tiles) -> None:
            step.stage(at, m.size)
            over_columns(at, lambda at, vectors, panel: product.tile(at, m, vectors, panel), wide if m.size == 1 else widths)
        over_rows(at, line)

    def inner(axes: tuple[Axis, ...], at: At, rows: Rows | None) -> None:
        if choice.columns_first:
            over_columns(at, lambda at, vectors, panel: nested(b, axes, at, lambda at: over_rows(
                at, lambda at, m: product.tile(at, m, vectors, panel)), rows, form.nest.where), widths)
        else:
            nested(b, axes, at, row_major, rows, form.nest.where)

    if fill is None and not (choice.columns_first and form.batch):
        inner(outer, {}, rows)
        return
    first = tuple(a for d, a in enumerate(outer) if a in form.batch or (rows and d == 0 and form.batch))
    rest = tuple(a for a in outer if a not in first)

    def batch(at: At) -> None:
        if fill:
            fill(at)
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
        self.ahead.epilogue(block)
        sums = reduce_loops(self.b, self.step.axes, bounds, at, inits, lambda at, acc: self.products(
            at, acc, () if single else failing, line.size, vectors, panel), apart, 1 if many else 2, self.step.group)
        self.writer.write(block, sums)

    def products(self, at: At, sums: Sequence[Operand], failing: Sequence[Range], rows: int, vectors: tuple[Piece, ...],
                 panel: int) -> list[Operand]:
        """One step of K for all sums of the tile."""
        result, k = list(sums), Affine()
        for axis in self.step.axes:
            k = k * axis.extent + at[axis]
        columns = self.panels.load(self.b, self.target, at, vectors, panel, k)
        self.ahead.panel(at, k, rows, vectors)
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
