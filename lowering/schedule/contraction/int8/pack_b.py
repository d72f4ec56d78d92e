"""Pack B for products of bytes (`micro_kernels`): panels of bytes in groups of four along K, and what the zero
points add to the sums of each column: Sum over K of (a - x) (b - y) is Sum of a b, less x times the column's sum of b, less y
times the row's sum of a, plus K x y. Constant data is packed while compiling; other data by loops, which add up the columns,
too.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from .....runtime.records import dataclass
from ....elements.affine import Affine, Axis
from ....elements.expression import Buffer, Expr, Load, guard
from ....graph.types import Array
from ....loops.builder import Builder
from ....loops.ir import INDEX, Literal, Operand, Type
from ....target.target import Target
from ...code_size_model import LINE_CYCLES
from ...derived_constants import Made, derive
from ...elementwise.transpose import iteration
from ...nest.constant_data import constant
from ...nest.loop_nest import At, number_of
from ...nest.tile_axis import Cut, Piece, Tiles, in_steps, over
from ...vectorize.vectorize import Vectorizer
from ..initial_sums import biased, sum_of
from ..layout import PanelLayout
from ..pack_b import Panels
from ..pattern import Contraction
from .byte_factors import GROUP

BLOCK = 16
"""Groups, and columns, that are exchanged at a time where b lies along K."""
EXCHANGE_LINES = 150
"""Lines of LLVM's text of an exchange of rows and columns beside packing them one by one. Counted."""


@dataclass(frozen=True, slots=True)
class BytePanels:
    """Packed b, and for each column (padding included, batch by batch) what the sums start from. Where they are not constant,
    `fill` makes both, for the batch at a place, and panels of the columns from one on."""
    panels: Panels
    initial: Buffer
    known: Expr
    """What sums are the values of that start so: the reduction, or that plus constants."""
    is_zero: bool
    """Whether all of them start from 0."""
    fill: Callable[[At, Affine, Cut], None] | None = None

    def start(self, at: At, column: Affine) -> Affine:
        """Where initial values of a column are."""
        return self.panels.number_of_batch(at) * self.panels.layout.columns + column


def of_constants(b: Builder, pattern: Contraction, y: Load, zero_points: tuple[int, int], cut: Cut, step: int = GROUP,
                 overlap: bool = False, group: int = GROUP) -> BytePanels:
    """Panels of `y`, which b is less its zero point; `zero_points` are those of a, as it is stored, and of b. K is filled up
    to a multiple of `step`, and `group` elements of it lie together. With `overlap` the last step has the last elements of K,
    those that an earlier one has as 0."""
    name, of_b = pattern.nest.name, zero_points[1]
    known = guard(pattern.inside, y, of_b) if pattern.inside else y
    total, bias = biased(pattern.nest, pattern.reduce, (*pattern.batch, pattern.n))
    depth = Axis("k", -(-pattern.depth // step) * step)
    layout = PanelLayout(cut, depth.extent, group)
    make = functools.partial(packed, batch=pattern.batch, n=pattern.n, axes=pattern.reduce.axes, zero_points=zero_points,
                             layout=layout, step=step if overlap else 0)
    (buffer, initial), is_zero = derive(b, (f"{name}.packed", f"{name}.initial"), (known, *bias), make)
    return BytePanels(Panels(pattern.n, (depth,), "int8", y, layout, buffer, pattern.batch), initial, total, bool(is_zero))


def packed(y: Expr, *bias: Expr, batch: tuple[Axis, ...], n: Axis, axes: tuple[Axis, ...], zero_points: tuple[int, int],
           layout: PanelLayout, step: int) -> Made:
    """The elements of both; whether all sums start from 0."""
    of_a, of_b = zero_points
    data = constant(y, (*batch, n, *axes)).reshape(-1, n.extent, math.prod(a.extent for a in axes))
    sums = data.shape[2] * of_a * of_b - of_a * data.astype(np.int64).sum(axis=2)
    sums += sum_of(bias, (*batch, n)).reshape(sums.shape)
    return Made(with_sums(overlapping(data, step) if step else data, sums, layout), not sums.any())


def with_sums(data: Array, sums: Array, layout: PanelLayout) -> tuple[Array, Array]:
    """[batch, n, k] as panels, and [batch, n] initial sums; of columns that are padding they are 0."""
    initial = wrapped(np.pad(sums, ((0, 0), (0, layout.columns - sums.shape[1]))))
    return layout.packed(data[:, None], "int8").reshape(-1), initial.reshape(-1)


def wrapped(sums: Array) -> Array:
    return (sums & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def overlapping(data: Array, step: int) -> Array:
    """[batch, n, k] in whole steps of K, of which the last begins with zeros and ends with the last elements."""
    whole = data.shape[2] - data.shape[2] % step
    zeros = np.zeros((*data.shape[:2], -data.shape[2] % step), np.int8)
    return np.concatenate([data[:, :, :whole], zeros, data[:, :, whole:]], axis=2)


def at_run_time(b: Builder, pattern: Contraction, y: Load, zero_points: tuple[int, int], cut: Cut, target: Target,
                step: int = GROUP) -> BytePanels:
    """Scratch for these panels of `y`, and what fills them."""
    name, depth = pattern.nest.name, -(-pattern.depth // step) * step
    layout = PanelLayout(cut, depth, GROUP)
    packed = b.scratch(Buffer(f"{name}.packed", "int8", (layout.size,), "scratch"))
    initial = b.scratch(Buffer(f"{name}.initial", "int32", (layout.columns,), "scratch"))
    packing = Packing(b, pattern, y, zero_points, target, packed, initial, layout)
    panels = Panels(pattern.n, (Axis("k", depth),), "int8", y, layout, packed)
    return BytePanels(panels, initial, pattern.reduce, not zero_points[0], packing.fill)


@dataclass(frozen=True, slots=True)
class Packing:
    """Packs one batch of `y` into scratch."""
    b: Builder
    pattern: Contraction
    y: Load
    zero_points: tuple[int, int]
    target: Target
    packed: Buffer
    initial: Buffer
    layout: PanelLayout

    def fill(self, at: At, first: Affine, cut: Cut) -> None:
        """The panels of the columns from `first` on."""
        at = {**at, self.pattern.n: first}
        for t, vectors in cut:
            lanes, width = vectors[0].lanes, sum(p.lanes for p in vectors)
            if self.is_along_k and lanes == BLOCK and not (self.is_little and len(vectors) == 1):
                over(self.b, [t], lambda start, _: self.panel_along_k(at, start, vectors, width))
            elif self.y.index[0].coefficient(self.pattern.n) == 1 and all(p.active == lanes == p.lanes for p in vectors):
                self.several(at, t, lanes, width)
            else:
                over(self.b, [t], lambda start, _: self.panel(at, start, vectors, width))

    def panel_along_k(self, at: At, start: Affine, vectors: tuple[Piece, ...], width: int) -> None:
        for first, count, active in runs(vectors):
            number = Axis("vector", count)
            self.b.loop(number, lambda: self.exchanged(
                at, start, Piece(0, BLOCK, active), Affine.of(number) * BLOCK + first, width))

    def panel(self, at: At, start: Affine, vectors: tuple[Piece, ...], width: int) -> None:
        for piece in vectors:
            self.interleaved(at, start, piece, piece.lanes, width)

    def several(self, at: At, t: Tiles, lanes: int, width: int) -> None:
        """Whole panels of neighbours, as many at a time as fill a vector of bytes."""
        each = max(1, self.target.vector_bytes // width)
        whole, single = divmod(t.count, each)
        for first, panels, count in ((0, each, whole), (whole * each, 1, single)):
            if count:
                over(self.b, [Tiles(t.start + first * width, panels * width, count)], lambda start, tile: self.interleaved(
                    at, start, Piece(0, tile.size, tile.size), lanes, width))

    @property
    def is_along_k(self) -> bool:
        i, (*_, k) = self.y.index[0], self.pattern.reduce.axes
        return len(self.pattern.reduce.axes) == 1 and i.coefficient(k) == 1 and i.coefficient(self.pattern.n) > 1

    @property
    def is_little(self) -> bool:
        """Whether columns one by one take hardly longer than the exchange, which is more code."""
        return self.pattern.depth * self.pattern.n.extent * self.target.costs.column_pack_cycles <= EXCHANGE_LINES * LINE_CYCLES

    @property
    def has_groups(self) -> bool:
        """Whether the elements of a group are neighbours, and those of a row are not."""
        i, k = self.y.index[0], self.pattern.reduce.axes[-1]
        return i.coefficient(k) == 1 and abs(i.coefficient(self.pattern.n)) > 1 and not {k, self.pattern.n} & i.hidden

    def place(self, start: Affine, group: Affine, first: Affine | int, width: int) -> Affine:
        """Where the groups lie of the columns from start + first on."""
        if isinstance(first, int):
            start, first = start + first // width * width, Affine.of(first % width)
        return self.layout.place(start, group * GROUP, width) + first * GROUP

    def store(self, start: Affine, group: Affine, first: Affine | int, width: int, value: Operand) -> None:
        """A vector of groups, one for each column from start + first on."""
        self.b.store(self.packed, self.place(start, group, first, width), value)

    def added(self, total: Operand, packed: Operand) -> Operand:
        """The sums of columns with those of four more rows."""
        if not self.zero_points[0]:
            return total
        return self.b.op(self.target.dot4, total, Literal(1, packed.type), packed, type=total.type)

    def fill_up(self, start: Affine, first: Affine | int, lanes: int, width: int) -> None:
        """Zeros behind the last group."""
        last = -(-self.pattern.depth // GROUP)
        if last * GROUP < self.layout.depth:
            empty = Literal(0, Type("int8", GROUP * lanes))
            over(self.b, [Tiles(last, 1, self.layout.depth // GROUP - last)], lambda group, _: self.store(
                start, group, first, width, empty))

    def finish(self, place: Affine, total: Operand) -> None:
        """Sums of columns become initial values."""
        of_a, of_b = self.zero_points
        constant = int(wrapped(np.array([self.pattern.depth * of_a * of_b]))[0])
        value: Operand = Literal(constant, total.type)
        if of_a:  # else nobody has added up
            value = self.b.op("sub", value, self.b.op("mul", total, Literal(of_a, total.type)))
        self.b.store(self.initial, place, value)

    # ---- b with neighbours along n -----------------------------------------------------------------------------------
    def interleaved(self, at: At, start: Affine, piece: Piece, lanes: int, width: int) -> None:
        """The columns of a piece, `lanes` to a vector of sums: four rows at a time."""
        *outer, last = self.pattern.reduce.axes
        totals: Sequence[Operand] = [Literal(0, Type("int32", lanes))] * (piece.lanes // lanes)

        def level(axes: Sequence[Axis], at: At, totals: Sequence[Operand]) -> Sequence[Operand]:
            if axes:
                loop = Axis(axes[0].name, axes[0].extent)
                return self.b.loop(loop, lambda *t: level(axes[1:], {**at, axes[0]: Affine.of(loop)}, t), totals)
            return in_steps(self.b, last.extent, GROUP, lambda group, rows, t: self.four(
                at, start, piece, group, rows, width, t), totals)

        for i, total in enumerate(level(outer, at, totals)):
            self.fill_up(start, piece.start + i * lanes, lanes, width)
            self.finish(start + piece.start + i * lanes, total)

    def four(self, at: At, start: Affine, piece: Piece, group: Affine, rows: int, width: int,
             totals: Sequence[Operand]) -> list[Operand]:
        """One group, of which the first `rows` rows exist."""
        *outer, last = self.pattern.reduce.axes
        flat = number_of(outer, at) * (last.extent // GROUP) + group
        if self.has_groups and len(totals) == 1:
            place = {**at, last: group * GROUP}
            return [self.column_by_column(place, start, piece, flat, rows, width, totals[0])]
        read: list[Operand] = []
        for i in range(GROUP):
            place = {**at, self.pattern.n: at[self.pattern.n] + start + piece.start, last: group * GROUP + i}
            v = Vectorizer(self.b, self.target, place, self.pattern.n, piece.lanes, piece.active)
            read.append(v.vector(self.y) if i < rows else Literal(0, Type("int8", piece.lanes)))
        result = []
        for i, (total, packed) in enumerate(zip(totals, self.zipped(read, totals[0].type.lanes), strict=True)):
            self.store(start, flat, piece.start + i * total.type.lanes, width, packed)
            result.append(self.added(total, packed))
        return result

    def column_by_column(self, at: At, start: Affine, piece: Piece, group: Affine, rows: int, width: int, total: Operand
                         ) -> Operand:
        """One group of each column, at one place of K; columns that do not exist are like the last."""
        loop, n = Axis("column", piece.lanes), self.pattern.n

        def one() -> None:
            column = Affine.of(loop)
            if piece.active < piece.lanes:
                column = Affine.of(there := Axis("there", piece.active))
                self.b.place(there, self.b.op("min", self.b.index(Affine.of(loop)), Literal(piece.active - 1, INDEX)))
            place = self.y.index[0].substitute({**at, n: at[n] + start + piece.start + column})
            x = self.b.load(self.y.buffer, place, GROUP, rows)
            self.b.store(self.packed, self.place(start, group, piece.start, width) + Affine.of(loop) * GROUP, x)

        self.b.loop(loop, one)
        if not self.zero_points[0]:
            return total
        return self.added(total, self.b.load(self.packed, self.place(start, group, piece.start, width), GROUP * piece.lanes))

    def zipped(self, rows: Sequence[Operand], lanes: int) -> list[Operand]:
        """Four rows, column by column, in vectors of `lanes` columns."""
        width = rows[0].type.lanes
        by_two = tuple(i // 2 + width * (i % 2) for i in range(2 * width))
        first, second = (self.b.op("bits", self.b.shuffle(rows[i], rows[i + 1], by_two), type=Type("int16", width))
                         for i in (0, 2))
        columns = [tuple(start + i // 2 + width * (i % 2) for i in range(2 * lanes)) for start in range(0, width, lanes)]
        return [self.b.op("bits", self.b.shuffle(first, second, c), type=Type("int8", GROUP * lanes)) for c in columns]

    # ---- b with neighbours along K -----------------------------------------------------------------------------------
    def exchanged(self, at: At, start: Affine, piece: Piece, first: Affine, width: int) -> None:
        """16 columns, 64 elements of K at a time: rows and columns of groups change places."""
        (total,) = in_steps(self.b, self.pattern.depth, GROUP * BLOCK, lambda block, active, totals: [self.block(
            at, start, piece, first, width, block, active, totals[0])], [Literal(0, Type("int32", BLOCK))])
        self.fill_up(start, first, BLOCK, width)
        self.finish(start + first, total)

    def block(self, at: At, start: Affine, piece: Piece, first: Affine, width: int, number: Affine, active: int,
              total: Operand) -> Operand:
        """One block of K, of which the first `active` elements exist."""
        (k,) = self.pattern.reduce.axes
        words: list[Operand] = []
        for column in range(BLOCK):
            if column >= piece.active:
                words.append(Literal(0, Type("int32", BLOCK)))
                continue
            place = self.y.index[0].substitute(
                {**at, self.pattern.n: at[self.pattern.n] + start + first + column, k: number * (GROUP * BLOCK)})
            x = self.b.load(self.y.buffer, place, GROUP * BLOCK, active)
            words.append(self.b.op("bits", x, type=Type("int32", BLOCK)))
        for i, word in enumerate(iteration(self.b, words)[:-(-active // GROUP)]):
            packed = self.b.op("bits", word, type=Type("int8", GROUP * BLOCK))
            self.store(start, number * BLOCK + i, first, width, packed)
            total = self.added(total, packed)
        return total


def runs(vectors: Sequence[Piece]) -> list[tuple[int, int, int]]:
    """Neighbouring vectors that are alike: first column, how many, active columns of each."""
    result: list[tuple[int, int, int]] = []
    for p in vectors:
        if result and result[-1][2] == p.active:
            result[-1] = (result[-1][0], result[-1][1] + 1, p.active)
        else:
            result.append((p.start, 1, p.active))
    return result
