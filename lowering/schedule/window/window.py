"""Reductions whose lanes are neighbouring outputs: depthwise convolution, pools, sums over outer axes. A tile of outputs keeps
its sums in registers, and loads that its rows share are made once.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ....runtime.records import dataclass
from ...elements.affine import Axis
from ...elements.expression import Load, Reduce, is_float
from ...elements.traverse import loads, loads_beside, nodes
from ...graph.types import ITEM_SIZES
from ...loops.builder import Builder
from ...loops.ir import Literal, Operand, Type
from ...target.costs import Costs
from ...target.target import Target
from ..code_size_model import LOOP_LINES, SUM_LINES, cheapest, price_of, share_of, tolerated
from ..contraction.border_tiles import MAX_BORDER_SLOWDOWN_CYCLES, at_ends, mean, over_both_ends, single_at_ends
from ..contraction.macro_kernel import Place
from ..contraction.micro_kernel import Finish, epilogue, in_vectors
from ..contraction.register_tile import Tile
from ..elementwise.elementwise import lanes_of
from ..nest.loop_nest import At, Nest, is_dense, main_reduction
from ..nest.padding_conditions import PaddingConditions
from ..nest.quotient_axes import shared_by
from ..nest.reduction_loops import MAX_UNROLLED_EXTENT, MAX_UNROLLED_SUMS, alike, reduce_loops, unsettled
from ..nest.row_range import RowRange, nested
from ..nest.tile_axis import Piece, Tiles, balanced, chunks, even, interior, over, peel, pieces, repeating
from ..strategy import Constraints, Strategy
from ..vectorize.epilogue import EpilogueWriter, OutputBlock, operations
from ..vectorize.lane_groups import Repeats, group_of, repeats, whole_groups
from ..vectorize.vector_reduction import add
from ..vectorize.vectorize import Vectorizer
from .widening_products import lanes_of_products, widening

ROWS_OF_TWO_VECTORS = 8
"""Rows of a tile of two vectors: their sums fill half of 32 registers, and an iteration of the loops has enough work."""
MAX_TERM_OPERATIONS = 8
"""Maximum operations of a term for tiles of the full size."""
MIN_SHARED_COLUMNS = 256
"""Minimum number of columns that are enough to divide among threads."""
SMALL_DIVISOR = 8
"""Divisor of the outputs' memory: sharing the memory of a tensor of at most 1/8 of it is not worth much."""
MAX_ROW_VECTORS = 3
"""Maximum vectors of a tile of one row: with this number, sums hardly wait for their own last addition."""
LESS_CODE = 2.5
"""Factor of code size: tiles of one row are used if they save at least 1/2.5 of the code."""
FLOAT8_LOAD_INSTRUCTIONS, WIDE_LOAD_INSTRUCTIONS = 7, 2
"""Number of instructions that load an 8-bit float as float32, and that load a wider float. Counted."""
MAX_UNROLLED_STEPS = 8
"""Maximum number of unrolled steps if rows share loads."""
MAX_UNROLLED_OPERATIONS = 60
"""Number of operations above which they hide the cost of a loop over the steps, even of a short one."""
UNROLLED_STEPS = 2
"""Number of unrolled steps of a window that is not unrolled completely."""
MAX_TESTED_STEPS = 5
"""Maximum steps of a window's last axis in tiles that are alike inside and at the border: the steps are unrolled, so that only
those that can be outside are tested."""


@dataclass(frozen=True, slots=True)
class WindowChoice:
    """Tiles of `rows` outputs along the last but one axis by `vectors` of `lanes` along the last, rounded to whole groups of
    `group` outputs."""
    rows: int
    vectors: int
    lanes: int
    alone: bool = False
    """True if every row is a tile, inside and at the border alike."""
    group: int = 1

    @property
    def columns(self) -> int:
        """Number of outputs in a row of a tile."""
        return whole_groups(self.vectors * self.lanes, self.group)

    @property
    def largest(self) -> int:
        """Number of elements of a whole tile, in whole vectors."""
        return self.rows * -(-self.columns // self.lanes) * self.lanes

    def __str__(self) -> str:
        groups = f", in groups of {self.group}" if self.group > 1 else ""
        alike = ", all alike" * self.alone
        return f"window: tiles of {self.rows} rows by {self.vectors} vectors of {self.lanes}{groups}{alike}"


@dataclass(frozen=True, slots=True)
class Window(Strategy):
    """The strategy for reductions whose lanes are neighbouring outputs."""
    nest: Nest
    target: Target
    choice: WindowChoice

    @staticmethod
    def recognise(nest: Nest, constraints: Constraints) -> Window | None:
        choice = recognise(nest, constraints.target, constraints.by_rows) if is_dense(nest) else None
        return Window(nest, constraints.target, choice) if choice else None

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        lower(b, self.nest, self.choice, self.target, rows)

    def alternatives(self) -> Iterator[Window]:
        free, heights = self.target.vector_registers // 2, (1, 2, 4, 6, 8, 12) if self.choice.rows > 1 else (1,)
        yield from (replace(self, choice=replace(self.choice, rows=rows, vectors=vectors)) for rows in heights
                    for vectors in (1, 2, 4) if rows * vectors <= free)

    def __str__(self) -> str:
        return str(self.choice)


def recognise(nest: Nest, target: Target, rows: bool) -> WindowChoice | None:
    inner = nest.axes[1:] if rows else nest.axes
    r = main_reduction(nest, inner[-1]) if inner else None
    if r is None or any(isinstance(e, Reduce) for e in nodes(r.body)):
        return None
    for x in nodes(r.body):
        if isinstance(x, Load) and not are_near(x, inner[-1]):
            return None
    most, lanes = 8 if operations(r.body) <= MAX_TERM_OPERATIONS else 4, lanes_of(nest, target)
    widens = widening(r, target)  # rows share widened values: counted, single rows take twice as many instructions
    if widens and lanes > 1:
        lanes = lanes_of_products(lanes, target)
    most = min(most, target.vector_registers // 2)
    group = group_of(repeats(nest.value, inner[-1])) if lanes > 1 else 1
    if len(inner) == 1:
        return WindowChoice(1, most // 2, lanes, group=group)
    height = rows_of(nest, r, target, most, lanes, group)
    if not widens and (single := row_by_row(nest, r, target, height, lanes)) is not None:
        return replace(single, group=group)
    two = height == ROWS_OF_TWO_VECTORS <= target.vector_registers // 4 and group == 1 and fits(inner[-1], 2 * lanes)
    vectors = 2 if two and not widens else 1
    wider = -(-whole_groups(vectors * lanes, group) // (vectors * lanes))
    return WindowChoice(max(height // wider, 1), vectors, lanes, group=group)


def fits(n: Axis, size: int) -> bool:
    """True if tiles of `size` columns leave no remainder, which needs code of its own, or one that is small beside the rest."""
    return n.extent >= 2 * size or n.extent % size == 0


def are_near(x: Load, axis: Axis) -> bool:
    """True if neighbours along an axis read neighbouring elements, or the same element, possibly in groups."""
    index = x.index[0]
    if axis in index.hidden:
        return shared_by(index, axis) is not None
    return abs(index.coefficient(axis)) <= 1


def rows_of(nest: Nest, r: Reduce, target: Target, most: int, lanes: int, group: int) -> int:
    """Return the number of rows of a tile with the least cost of code and cycles."""
    work = WindowCost.of(nest, r, lanes, target, group)

    def lines(rows: int) -> int:
        return work.lines_of(balanced(nest.axes[-2].extent, rows))

    return cheapest(range(most, 0, -1), lambda rows: work.cycles * (1 + work.waiting * (most / rows - 1)), lines,
                    share=share_of(nest.value), dear=target.costs.window_line_fraction)


def row_by_row(nest: Nest, r: Reduce, target: Target, rows: int, lanes: int) -> WindowChoice | None:
    """Return tiles of one row and several vectors, whose windows have loop bounds both at the border and inside; None unless
    they pay by saving code compared with tiles of `rows`, whose border tiles have code of their own."""
    m, n = nest.axes[-2:]
    conditions, columns = PaddingConditions.of(r, m, n), -(-n.extent // lanes)
    low, high = interior(m, conditions.rows)
    if conditions.tests or high - low == m.extent or not target.has_masked or not may_repeat(nest, r, n):
        return None
    work, share = WindowCost.of(nest, r, lanes, target), share_of(nest.value)
    vectors = max(v for v in range(1, MAX_ROW_VECTORS + 1) if columns % v == 0)
    whole = heights(nest, r, target, (low, high), WindowChoice(rows, 1, lanes), conditions, True)
    taps = math.prod(a.extent for a in conditions.tapped)
    inner = min(MAX_UNROLLED_STEPS if shares(r, m) else UNROLLED_STEPS, r.axes[-1].extent)
    many = work.shapes * sum(work.lines(t.size, 1 if t.size == 1 else inner if low <= t.start and t.end <= high else taps)
                             for t in whole)
    less = many - work.lines(vectors, 1)
    fast = work.vectors * work.by_tiles(r, m, rows)
    slower = work.vectors * work.by_rows(r, vectors) - fast
    allowed = tolerated(fast, share, MAX_BORDER_SLOWDOWN_CYCLES)
    return WindowChoice(1, vectors, lanes, alone=True) if LESS_CODE * less >= many and slower <= min(
        price_of(share) * target.costs.window_line_fraction * less, allowed) else None


def has_outer_iterations(nest: Nest) -> bool:
    """True if threads can divide other work than the tiles of rows."""
    return len(nest.axes) > 2 or nest.axes[-1].extent >= MIN_SHARED_COLUMNS


def may_repeat(nest: Nest, r: Reduce, axis: Axis) -> bool:
    """True if outputs along an axis may be computed twice: they cannot overlay a large tensor that is read with the sums."""
    return not any(x.buffer.data is None and axis in x.index[0].axes and x.buffer.nbytes > nest.out.nbytes // SMALL_DIVISOR
                   for x in loads_beside(nest.value, r))


@dataclass(frozen=True, slots=True)
class WindowCost:
    """The cost of a window: cycles of one output vector and of all, and code, with `shapes` different sizes of column tiles."""
    steps: int
    term: int
    result: int
    vectors: int
    shapes: int
    waiting: float
    costs: Costs

    @staticmethod
    def of(nest: Nest, r: Reduce, lanes: int, target: Target, group: int = 1) -> WindowCost:
        rows, costs = math.prod(a.extent for a in nest.axes[:-1]), target.costs
        columns = columns_of(nest, r, whole_groups(lanes, group), group)
        steps, vectors = math.prod(a.extent for a in r.axes), rows * sum(-(-t.size // lanes) * t.count for t in columns)
        return WindowCost(steps, 1 + operations(r.body), operations(nest.value, r), vectors, len(columns),
                    costs.waiting_float_sums_fraction if is_float(r.dtype) or shares(r, nest.axes[-2]) else (
                        costs.waiting_sums_fraction), costs)

    @property
    def each(self) -> float:
        return (self.steps * self.term + self.result) / 2

    @property
    def cycles(self) -> float:
        return self.vectors * self.each

    def by_tiles(self, r: Reduce, m: Axis, rows: int) -> float:
        """Return the cycles of a vector in a tile of `rows` rows, which share loads."""
        return self.steps * self.step(r, m, rows) + self.result / 2

    def step(self, r: Reduce, m: Axis, rows: int) -> float:
        """Return the cycles of one term of a vector in a tile of `rows` rows."""
        loading = loading_of(r)
        alone = distinct(r, m, rows)
        if loading > WIDE_LOAD_INSTRUCTIONS:  # converted values take registers until their last use
            alone = (1 + alone) / 2
        return max((loading * alone + 1) / 2, self.costs.addition_latency_cycles / rows)

    def by_rows(self, r: Reduce, vectors: int) -> float:
        """Return the cycles of a vector in a tile of one row and `vectors` vectors."""
        costs = self.costs
        return self.steps * max((loading_of(r) + 1) / 2 + costs.short_loop_iteration_cycles / vectors,
                                costs.addition_latency_cycles / vectors) + self.result / 2

    def lines(self, rows: int, steps: int) -> int:
        """Return the lines of code of a tile that takes `steps` steps at a time."""
        return LOOP_LINES + rows * (SUM_LINES + 2 * self.result + steps * 2 * self.term)

    def lines_of(self, tiles: Sequence[Tiles]) -> int:
        """Return the lines of code of all shapes of tiles."""
        return self.shapes * sum(self.lines(t.size, UNROLLED_STEPS) for t in tiles)


def columns_of(nest: Nest, r: Reduce, size: int, group: int = 1) -> list[Tiles]:
    """Return the tiles of columns: all of one size, if possible."""
    n, extent = nest.axes[-1], nest.axes[-1].extent
    count = -(-extent // size)
    if extent % size == 0 and extent // count % group == 0:
        return [Tiles(0, extent // count, count)]
    overlap = extent > size and extent % group == 0 and len(nest.axes) > 1 and may_repeat(nest, r, n) and (
        not PaddingConditions.of(r, None, n).tests)
    if overlap:
        return repeating(extent, size)
    if extent % count == 0 and extent // count % group == 0:
        return [Tiles(0, extent // count, count)]
    return chunks(extent, size)


def loading_of(r: Reduce) -> int:
    """Return the instructions of a term without its addition."""
    narrowest = min((ITEM_SIZES[x.dtype] for x in loads(r.body) if is_float(x.dtype)), default=4)
    return FLOAT8_LOAD_INSTRUCTIONS if narrowest == 1 else max(1 + (narrowest == 2), operations(r.body) if narrowest > 2 else 2)


def distinct(r: Reduce, m: Axis, rows: int) -> float:
    """Return the fraction of the elements of `rows` windows that are distinct."""
    last, k = r.axes[-1], r.axes[-1].extent
    step = next((abs(x.index[0].coefficient(m)) // c for x in loads(r.body) if (c := abs(x.index[0].coefficient(last)))), k)
    return ((rows - 1) * min(step, k) + k) / (rows * k)


def lower(b: Builder, nest: Nest, choice: WindowChoice, target: Target, rows: RowRange | None) -> None:
    outer = nest.axes[:1] if rows else ()
    *more, n = nest.axes[len(outer):]
    m = more.pop() if more else None
    r = main_reduction(nest, n)
    assert r is not None
    conditions = PaddingConditions.of(r, m, n)
    shared = repeats(nest.value, n)
    writer = EpilogueWriter(b, target, nest, r, choice.largest, repeats=shared)
    finish = epilogue(writer)
    if target.has_lane_products:
        finish = in_vectors(b, target.lanes(ITEM_SIZES[r.dtype]), finish)
    window = WindowTile(b, target, widening(r, target) or r, conditions, m, n, finish, shared)
    lines = [Tiles(0, 1, 1)]
    if m:
        lines = heights(nest, r, target, interior(m, conditions.rows), choice, conditions, b.keeps > 0)
    alike, size = (target.has_masked and choice.vectors == 1) or choice.alone, choice.columns
    columns = columns_of(nest, r, size, choice.group) if alike else chunks(n.extent, size)
    if not any(t.again for t in columns):
        columns = peel(columns, *interior(n, conditions.tests))

    def cut(size: int) -> tuple[Piece, ...]:
        return even(size, choice.lanes) if choice.alone else pieces(size, choice.lanes, target.has_masked)

    def tile(at: At) -> None:
        over_both_ends(b, lines, lambda y, line: over(b, columns, lambda x, column: window.tile(
            {**at, **({m: y} if m else {}), n: x}, line, cut(column.size)), choice.group))

    nested(b, (*outer, *more), {}, tile, rows)


def tests_tiles(target: Target) -> bool:
    """True if border tiles use the code of inner tiles, with tests. Counted: with tests RISC-V's vectors made 4.8 products of a
    depthwise convolution an instruction instead of 5.6, and a Cortex-M55 took 3 % more instructions for visual wake words."""
    return target.has_masked and target.has_cache and not target.has_vector_length


def heights(nest: Nest, r: Reduce, target: Target, inside: tuple[int, int], choice: WindowChoice, conditions: PaddingConditions,
            shared_out: bool) -> list[Tiles]:
    """Return the tiles of the rows with the least cost of cycles and code. Border tiles have their windows unrolled, or are
    single rows. All tiles may be alike, with some rows computed twice, if the outputs cannot overlay a large tensor that is
    read with the sums, and threads need not divide the rows; with masks, also at the border."""
    extent = nest.axes[-2].extent
    if choice.alone:
        return [Tiles(0, 1, extent)]
    work, m, share = WindowCost.of(nest, r, choice.lanes, target, choice.group), nest.axes[-2], share_of(nest.value)
    low, high = inside
    taps = math.prod(a.extent for a in conditions.tapped)
    inner = conditions.fractions(m)
    step = functools.cache(lambda size: work.step(r, m, size))

    def cycles(tiles: Sequence[Tiles]) -> float:
        terms = sum(t.size * t.count * step(t.size) * (1 if t in tested else mean(inner, t)) for t in tiles)
        return work.vectors / extent * (work.steps * terms + work.result / 2 * sum(t.size * t.count for t in tiles))

    def lines(tiles: Sequence[Tiles]) -> int:
        whole = {t.size for t in tiles if t.size == 1 or low <= t.start <= t.end <= high}
        unrolled = [t.size for t in tiles if t.size > 1 and not low <= t.start <= t.end <= high]
        return work.shapes * (sum(work.lines(n, UNROLLED_STEPS) for n in whole) + sum(work.lines(n, taps) for n in unrolled))

    def cheap(found: Sequence[list[Tiles]]) -> list[Tiles]:
        return cheapest(found, cycles, lines, share=share, dear=target.costs.window_line_fraction)

    tile, again = Tile(choice.rows, 1), may_repeat(nest, r, m) and (has_outer_iterations(nest) or not shared_out)
    found = [peel(balanced(extent, choice.rows), low, high, conditions.by_single_rows)]
    tested: list[Tiles] = []
    if high - low == extent:
        return cheap([*found, repeating(extent, choice.rows)] if again and len(found[0]) > 1 else found)
    if low == high:
        return cheap([*found, [Tiles(0, 1, extent)]])
    if not conditions.by_single_rows and max(low, extent - high) <= choice.rows:
        found += at_ends(extent, inside, tile, again)
    if tests_tiles(target) and (steps := r.axes[-1].extent) <= MAX_TESTED_STEPS:
        most = min(choice.rows, extent // 2, MAX_UNROLLED_SUMS // (steps * -(-choice.columns // choice.lanes)))
        sizes = range(most, max(1, low - 1, extent - high - 1), -1)
        tested += [t for size in sizes if again or extent % size == 0 for t in repeating(extent, size)]
    return cheap([*found, *single_at_ends(extent, inside, tile, again), *([t] for t in tested)])


@dataclass(frozen=True, slots=True)
class WindowTile:
    """The code of one tile."""
    b: Builder
    target: Target
    reduce: Reduce
    conditions: PaddingConditions
    m: Axis | None
    n: Axis
    finish: Finish
    repeats: Repeats

    def tile(self, at: At, line: Tiles, vectors: tuple[Piece, ...]) -> None:
        block = OutputBlock(at, self.m, line.size, self.n, vectors)
        places = [block.place(row, piece.start) for row, piece in block.vectors]
        failing = unsettled(self.conditions.rows, (places[0], places[-1]))
        single = line.size == 1  # then they are loop bounds
        tested = bool(failing) and not single and line.count > 1
        tests = self.conditions.tests if single else (*self.conditions.tests, *failing)
        bounds = (*self.conditions.bounds, *failing) if single else self.conditions.bounds
        unrolled = alike(self.conditions.tapped, failing, places) if failing and not (single or tested) else {}

        def step(here: At, acc: Sequence[Operand]) -> list[Operand]:
            return [add(Vectorizer(self.b, self.target, {**here, **place}, self.n, piece.lanes, piece.active,
                                   repeats=self.repeats), self.reduce, total, tests)
                    for total, place, (_, piece) in zip(acc, moves, block.vectors)]

        moves = [{a: place[a] for a in (self.m, self.n) if a} for place in places]
        inits = [Literal(self.reduce.identity, Type(self.reduce.dtype, piece.lanes)) for _, piece in block.vectors]
        unroll = MAX_UNROLLED_STEPS if len(inits) == 1 or shares(self.reduce, self.m) else 2
        short = MAX_UNROLLED_EXTENT
        if tested:
            short = MAX_TESTED_STEPS
        elif unroll == 2 and operations(self.reduce.body) * len(inits) * self.reduce.axes[-1].extent > MAX_UNROLLED_OPERATIONS:
            unroll, short = 1, 1
        self.finish(Place(at), block, reduce_loops(
            self.b, self.reduce.axes, bounds, at, inits, step, unrolled, unroll, short=short))


def shares(r: Reduce, m: Axis | None) -> bool:
    """True if neighbouring rows read some of the same elements, which are loaded once if the steps are unrolled."""
    k = r.axes[-1]
    for x in nodes(r.body):
        if isinstance(x, Load) and m and (step := abs(x.index[0].coefficient(k))):
            row = abs(x.index[0].coefficient(m))
            if row % step == 0 and 0 < row // step < k.extent:
                return True
    return False
