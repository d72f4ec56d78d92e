"""Sum over K of a[m, k] * b[n, k]: a tile of sums in registers, b in packed panels, one element of a for a whole
vector."""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from ...runtime.records import dataclass
from ..elements.affine import Affine, Axis, Range
from ..elements.expression import Apply, Expr, Load, Reduce, is_float
from ..elements.traverse import loads, loads_beside, nodes
from ..graph.types import ITEM_SIZES
from ..loops.builder import Builder
from ..loops.ir import Literal, Operand, Type
from ..native.target import Target
from .ahead import Ahead, is_worthwhile
from .blocking import Blocks, choose_blocks
from .borders import heights, over_both_ends, sums_beside, together
from .code_size import Code, price_of, share_of
from .conditions import Conditions, kept_in_range
from .nest import Nest, free_axes
from .panels import Cut, Panels, depth_of_panels, is_constant, pack_at_run_time, packed, unpacked
from .reduce_loops import alike, reduce_loops, unsettled
from .register_tile import BLOCK_PRICES, MULTIPLIED_PRICES, PRICES, Tile, choose_tile, of_sums, panels, ranked_tiles, steps
from .rows import Rows, nested, over_tested
from .tiles import Piece, Tiles, balanced, interior, over, pieces
from .vectorize import At, Vectorizer
from .window import main_reduction
from .write import Block, Writer, operations

MOST_PLACES = 512
"""Kernels with more places, of which padding leaves some out, take no products of four bytes."""
TRIED = 5
"""Tiles that a measured search tries."""
NEAR, PLAIN_ROWS, PLAIN_VECTORS, BORDER_LINES = 8, 12, 4, 150
"""A tensor of that part of the second-level cache may be read by rows that lie apart. Tiles to compare them by have about so
many sums, and at most so many vectors; and lines that tiles of rows at a border have at least."""
MANY_PLACES = 128
"""Of outer axes, for which rows of outputs are not counted."""
LONG = 4
"""Of an axis that is not the innermost, and is worth the tiles of rows that lie apart."""
MANY_TURNS, LITTLE = 16, 30_000
"""So many turns of the outer loops are enough for threads; and so many cycles, two of `divide`'s grains, are not divided."""
MUCH = 1 << 23
"""Terms of a product in blocks that has the fastest tile, whatever its code."""
ENOUGH_SUMS = 6
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
    turns: int = 1
    """How often all of it is done, by loops around it."""

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
    def tested(self) -> tuple[Range, ...]:
        """The conditions on rows of outputs: those for which one fails are none."""
        return tuple(w for w in self.nest.where if self.m in w.index.axes)

    @property
    def passes(self) -> int:
        """How many rows read the same panels."""
        return self.rows * math.prod(a.extent for a in self.outer if a not in self.batch)


@dataclass(frozen=True, slots=True)
class ContractionChoice:
    """`step` is how one step of K is done: "fma", "multiply", "dot4", "tiles", "bf16x6" or "bf16x3". `packing` is when b is
    packed: "compiling", "running" or "never". With `columns_first` each panel stays in the cache while all rows pass; `ahead`
    says whether panels are asked for before they are read."""
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


def recognise(nest: Nest, rows: bool, target: Target | None = None) -> Contraction | None:
    """The form of a nest, if it is one. Rows are neighbours in memory; with a target it is asked whether other rows, that meet
    no condition, are less code."""
    found = forms(nest, rows)
    first = next(found, None)
    if first is None or target is None or not (first.tested or Conditions.of(first.reduce, first.m, first.n).rows):
        return first
    return next((form for form in found if are_plain_rows(form, first, target)), first)


def are_plain_rows(form: Contraction, first: Contraction, target: Target) -> bool:
    """Whether rows that lie apart meet no condition, and take hardly more cycles than those of the first form."""
    from .dot import bytes_of
    if form.tested or Conditions.of(form.reduce, form.m, form.n).rows or (target.has_dot4 and bytes_of(form)):
        return False
    if any(x.buffer.nbytes > target.l2_bytes // NEAR for x in loads(form.a)):
        return False
    lanes = target.lanes(ITEM_SIZES[form.reduce.dtype])
    vectors, most = min(-(-form.n.extent // lanes), PLAIN_VECTORS), PLAIN_ROWS // min(-(-form.n.extent // lanes), PLAIN_VECTORS)
    each = [steps(rows, vectors, target) / rows for rows in (min(f.rows, most) for f in (form, first))]
    turns = form.depth * form.turns * math.prod(a.extent for a in form.outer) * form.rows * form.n.extent / (lanes * vectors)
    return turns * (each[0] - each[1]) <= price_of(share_of(form.nest.value)) * BORDER_LINES


def forms(nest: Nest, rows: bool) -> Iterator[Contraction]:
    """The ways to see a nest so."""
    inner = nest.axes[1:] if rows else nest.axes
    n = inner[-1] if inner else None
    reduction = main_reduction(nest, n) if n else None
    match reduction:
        case Reduce("add", _, Apply("mul", factors)) if n and nest.index.coefficient(n) == 1:
            for m in tiled(inner[:-1]):
                for a, b in (factors, factors[::-1]):
                    form = Contraction(nest, reduction, a, b, m, n, tuple(x for x in nest.axes[:-1] if x is not m))
                    if fits(form):
                        yield form
                        break


def tiled(axes: tuple[Axis, ...]) -> Sequence[Axis | None]:
    """Axes that tiles may run along: the innermost, else a long one around it."""
    return (axes[-1], *sorted((a for a in axes[:-1] if a.extent > LONG), key=lambda a: -a.extent)) if axes else (None,)


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


def run_by_turns(nests: Sequence[Nest], target: Target) -> bool:
    """Whether the parts of a nest are contractions that can run over the places where conditions on their outer axes and their
    rows hold, and over just the values of K that these leave; others may be without sums."""
    sums = [nest for nest in nests if any(isinstance(e, Reduce) for e in nodes(nest.value))]
    return all(runs_by_turns(nest, target) for nest in sums)


def runs_by_turns(nest: Nest, target: Target) -> bool:
    from .dot import bytes_of, prefixes
    form = recognise(nest, False)
    if form is None or not all(w.index.axes <= {*form.outer, form.m} for w in nest.where):
        return False
    if form.tested and choose(form, target).step == "tiles":
        return False
    return not (target.has_dot4 and bytes_of(form)) or prefixes(form, Axis("k", form.depth)) is not None


def in_range(form: Contraction) -> bool:
    """Whether b can be read at all values of K for which the conditions on b alone hold."""
    return all(kept_in_range(x, form.inside) for x in loads(form.b))


def contiguous(form: Contraction) -> bool:
    """Whether b can be read as it lies: whole vectors, no index that comes from data."""
    return all(x.index[0].coefficient(form.n) in (0, 1) and form.n not in x.index[0].hidden for x in loads(form.b))


def choose(form: Contraction, target: Target) -> ContractionChoice:
    from .dot import bytes_of, can_stage_all
    from .float_parts import choose_parts
    from .tile_shape import choose_tiles
    lanes = target.lanes(ITEM_SIZES[form.reduce.dtype])
    step = "fma" if is_float(form.reduce.dtype) else "multiply"
    if target.has_dot4 and bytes_of(form) and lanes >= 4 and places_with_conditions(form) <= MOST_PLACES:
        step = "dot4"
    prices = MULTIPLIED_PRICES if step == "multiply" else PRICES
    tile = choose_tile(form.rows, form.n.extent, lanes, machine(form, step, target), aliased(form, target), prices,
                       code_of(form), may_repeat(form, lanes))
    packing = "compiling" if is_constant(form.b) else "running"
    if step == "fma" and (tiles := choose_parts(form, target)):
        return ContractionChoice(tiles, lanes, target.precision, packing, False)
    if step == "dot4" and (tiles := choose_tiles(form, target)):
        return ContractionChoice(tiles, lanes, "tiles", packing, False)
    if packing == "running" and step != "dot4" and contiguous(form) and form.passes < 4 * tile.rows:
        packing = "never"
    soon = packing == "compiling" and is_worthwhile(form, tile.rows, target)
    found = in_blocks(form, lanes, packing == "compiling", target) if step != "dot4" else None
    if found and not (soon and (is_near(form, target) or not found[1].copied)):  # panels asked for ahead need no blocks
        whole, blocks = found
        when = packing if packing == "compiling" else "running" if blocks.filled else "never"
        return ContractionChoice(whole, lanes, step, when, False, blocks)
    size = ITEM_SIZES["int8" if step == "dot4" else form.reduce.dtype]
    large = form.n.extent * form.depth * size > target.l2_bytes // 3 and (step != "dot4" or can_stage_all(form, target))
    return ContractionChoice(tile, lanes, step, packing, large and form.passes > tile.rows, None, large and soon)


def machine(form: Contraction, step: str, target: Target) -> Target:
    """The machine as products see it that are done so."""
    return of_sums(form.reduce.dtype, target) if step == "multiply" else target


def others(form: Contraction, choice: ContractionChoice, target: Target) -> Iterator[ContractionChoice]:
    """The same with the other tiles that the cost model thinks most of, with the other order of loops, and without blocks."""
    if choice.step not in ("fma", "multiply", "dot4"):
        return
    if choice.blocks is None:
        few, seen = aliased(form, target), machine(form, choice.step, target)
        for tile in ranked_tiles(form.rows, form.n.extent, choice.lanes, seen, few)[:TRIED]:
            yield replace(choice, tile=tile)
        if choice.step != "dot4" and form.rows > choice.tile.rows:
            yield replace(choice, columns_first=not choice.columns_first)
    elif choice.packing == "compiling":
        plain = choose_tile(form.rows, form.n.extent, choice.lanes, target, aliased(form, target))
        yield from (replace(choice, tile=plain, columns_first=first, blocks=None) for first in (True, False))


def in_blocks(form: Contraction, lanes: int, constant: bool, target: Target) -> tuple[Tile, Blocks] | None:
    """The tile and the blocks of a product for which blocks are better; a smaller tile for less work, if its blocks are
    alike."""
    whole, less = (choose_tile(form.rows, form.n.extent, lanes, target, False, BLOCK_PRICES, code)
                   for code in (None, code_of(form)))
    blocks = choose_blocks(form, whole, lanes, constant, target)
    if blocks is None:
        return None
    if form.rows * form.n.extent * form.depth > MUCH:
        return whole, blocks
    others = choose_blocks(form, less, lanes, constant, target)
    alike = others and (others.filled, others.copied) == (blocks.filled, blocks.copied)
    return (less, others) if others and alike else (whole, blocks)


def code_of(form: Contraction, group: int = 1) -> Code:
    """What the code of a tile costs, beside its work."""
    steps = form.depth * form.turns * math.prod(a.extent for a in form.outer)
    taps = math.prod(a.extent for a in Conditions.of(form.reduce, form.m, form.n).tapped)
    last = form.reduce.axes[-1].extent if group == 1 else -(-form.depth // group)
    return Code(steps, operations(form.a), operations(form.nest.value, form.reduce), taps, last,
                share_of(form.nest.value))


def places_with_conditions(form: Contraction) -> int:
    """How many places of K "dot4" tells apart at most, each with code of its own."""
    return math.prod(a.extent for a in form.reduce.axes if any(w.index.coefficient(a) for w in form.reduce.where))


def may_repeat(form: Contraction, lanes: int) -> bool:
    """Whether rows may be computed twice: their outputs could not lie where something is that is read with the sums, and
    the turns of a loop may do so."""
    read = [x for x in loads_beside(form.nest.value, form.reduce) if x.buffer.data is None]
    return has_turns(form, lanes) and not any(form.m in x.index[0].axes for x in read)


def has_turns(form: Contraction, lanes: int) -> bool:
    """Whether other loops than that over rows are there to be divided among threads, or there is little to divide."""
    turns = form.turns * math.prod(a.extent for a in form.outer)
    return turns >= MANY_TURNS or turns * form.rows * form.n.extent * form.depth <= LITTLE * lanes


def aliased(form: Contraction, target: Target) -> bool:
    """Whether all rows of a tile fall into the same few sets of the first-level cache, and do not lie in the second."""
    return form.m is not None and any(x.index[0].coefficient(form.m) * ITEM_SIZES[x.dtype] % 4096 == 0
                                      and bytes_read(form, x) > target.l2_bytes for x in loads(form.a))


def is_near(form: Contraction, target: Target) -> bool:
    """Whether rows are in the second-level cache as tiles read them: no copy of them is better."""
    return isinstance(form.a, Load) and bytes_read(form, form.a) <= target.l2_bytes and all(
        form.a.index[0].coefficient(k) in (0, 1) for k in form.reduce.axes)


def bytes_read(form: Contraction, x: Load) -> int:
    """Bytes of a buffer that all rows read, at most."""
    return min(x.buffer.nbytes, form.passes * form.depth * ITEM_SIZES[x.dtype])


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


# ---- the loops ---------------------------------------------------------------------------------------------------
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
    if choice.step == "dot4":
        if rows:
            choice = replace(choice, columns_first=False, ahead=False)
        step = dot = Dot4.of(b, form, choice.tile.rows, target, widths, choice.columns_first)
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
        lines = heights(form.rows, interior(form.m, (*conditions.rows, *form.tested)), choice.tile,
                        conditions.by_single_rows, wide, form.depth * form.turns * math.prod(a.extent for a in outer),
                        machine(form, choice.step, target), bool(form.tested), code_of(form, step.group),
                        may_repeat(form, choice.lanes), conditions.parts(form.m), staged)

    alike = alike_in_each(form, choice, conditions)

    def over_rows(at: At, run: Callable[[At, Tiles], None]) -> None:
        if alike and (m := form.m):
            over_tested(b, m, alike, [w.substitute(at) for w in form.tested], lambda start: run({**at, m: start}, alike))
            return

        def rows(start: Affine, t: Tiles) -> None:
            place = {**at, form.m: start} if form.m else at
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
        if choice.columns_first:
            over_columns(at, lambda at, vectors, panel: nested(b, axes, at, lambda at: over_rows(
                at, lambda at, m: product.tile(at, m, vectors, panel)), rows, form.nest.where), widths)
        else:
            nested(b, axes, at, row_major, rows, form.nest.where)

    if choice.step == "dot4" and choice.columns_first:
        nested(b, outer, {}, lambda at: over_rows(at, lambda at, m: step.stage(at, m.size)))
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
