"""Pack B for products of bytes (`micro_kernels`): panels of bytes in groups of four along K, and the contribution of the zero
points to the sums of each column: Sum over K of (a - x) (b - y) is Sum of a b, less x times the column's sum of b, less y
times the row's sum of a, plus K x y. Constant data is packed at compile time; other data by loops, which also sum the columns.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence

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
from ...nest.constant_data import constant
from ...nest.loop_nest import At, number_of
from ...nest.reduction_loops import reduce_loops
from ...nest.tile_axis import Cut, Piece, Tiles, in_steps, over
from ..initial_sums import biased, sum_of
from ..layout import PanelLayout, width_of
from ..pack_b import PACKED, Panels
from ..pack_panels import PanelPacking, over_panels, repeated
from ..pattern import Contraction
from .byte_factors import GROUP
from .word_panels import PAIRS_PACKED, WordPanels, in_words

BLOCK = 16
"""Number of groups, and of columns, that are transposed at a time if b is contiguous along K."""
EXCHANGE_LINES = 150
"""Lines of LLVM's text that a transposition of rows and columns adds to packing them one by one. Counted."""


@dataclass(frozen=True, slots=True)
class BytePanels:
    """Packed b, and the initial sums of each column (padding included, batch by batch). If they are not constant, `fill` makes
    both, for the batch at a point, and for the panels of the columns from one on."""
    panels: Panels
    initial: Buffer
    known: Expr
    """Expression that sums have the value of if they start from `initial`: the reduction, or that plus constants."""
    is_zero: bool
    """True if all sums start from 0."""
    fill: Callable[[At, Affine, Cut], None] | None = None

    def start(self, at: At, column: Affine) -> Affine:
        """Return the offset of the initial sums of a column."""
        return self.panels.number_of_batch(at) * self.panels.layout.columns + column


def of_constants(b: Builder, pattern: Contraction, y: Load, zero_points: tuple[int, int], cut: Cut, step: int = GROUP,
                 overlap: bool = False, group: int = GROUP, words: int = 0) -> BytePanels:
    """Return panels of `y`, where b is `y` less its zero point; `zero_points` are those of a, as stored, and of b. K is padded
    to a multiple of `step`, and `group` elements of K are contiguous, or in `words` words. With `overlap` the last step has the
    last elements of K, with zeros for those that an earlier step has."""
    known = guard(pattern.inside, y, zero_points[1]) if pattern.inside else y
    total, bias = biased(pattern.nest, pattern.reduce, (*pattern.batch, pattern.n))
    depth = Axis("k", -(-pattern.depth // step) * step)
    layout = PanelLayout(cut, depth.extent, group)
    make = functools.partial(packed, batch=pattern.batch, n=pattern.n, axes=pattern.reduce.axes, zero_points=zero_points,
                             layout=layout, step=step if overlap else 0, words=words)
    names = f"{pattern.nest.name}{PAIRS_PACKED if words == 2 else PACKED}", f"{pattern.nest.name}.initial"
    (buffer, initial), is_zero = derive(b, names, (known, *bias), make)
    kind, dtype = (WordPanels, "int32") if words else (Panels, "int8")
    return BytePanels(kind(pattern.n, (depth,), dtype, y, layout, buffer, pattern.batch), initial, total, bool(is_zero))


def packed(y: Expr, *bias: Expr, batch: tuple[Axis, ...], n: Axis, axes: tuple[Axis, ...], zero_points: tuple[int, int],
           layout: PanelLayout, step: int, words: int) -> Made:
    """Return the elements of the panels, the initial sums, and whether all sums start from 0."""
    of_a, of_b = zero_points
    data = constant(y, (*batch, n, *axes)).reshape(-1, n.extent, math.prod(a.extent for a in axes))
    sums = data.shape[2] * of_a * of_b - of_a * data.astype(np.int64).sum(axis=2)
    sums += sum_of(bias, (*batch, n)).reshape(sums.shape)
    flat, initial = with_sums(overlapping(data, step) if step else data, sums, layout)
    return Made((in_words(flat, words) if words else flat, initial), not sums.any())


def with_sums(data: Array, sums: Array, layout: PanelLayout, dtype: str = "int8") -> tuple[Array, Array]:
    """Return [batch, n, k] as panels, and the initial sums [batch, n]; those of padding columns are 0."""
    initial = wrapped(np.pad(sums, ((0, 0), (0, layout.columns - sums.shape[1]))))
    return layout.packed(data[:, None], dtype).reshape(-1), initial.reshape(-1)


def wrapped(sums: Array) -> Array:
    return (sums & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def overlapping(data: Array, step: int) -> Array:
    """Return [batch, n, k] in whole steps of K; the last step begins with zeros and ends with the last elements."""
    whole = data.shape[2] - data.shape[2] % step
    zeros = np.zeros((*data.shape[:2], -data.shape[2] % step), np.int8)
    return np.concatenate([data[:, :, :whole], zeros, data[:, :, whole:]], axis=2)


def at_run_time(b: Builder, pattern: Contraction, y: Load, zero_points: tuple[int, int], cut: Cut, target: Target,
                step: int = GROUP) -> BytePanels:
    """Return panels of `y` in scratch, with the function that packs them."""
    name, depth = pattern.nest.name, -(-pattern.depth // step) * step
    layout = PanelLayout(cut, depth, GROUP)
    buffer = b.scratch(Buffer(f"{name}.packed", "int8", (layout.size,), "scratch"))
    initial = b.scratch(Buffer(f"{name}.initial", "int32", (layout.columns,), "scratch"))
    packing = BytePacking(b, target, y, pattern.n, pattern.reduce.axes[-1], layout, buffer, pattern, zero_points, initial)
    panels = Panels(pattern.n, (Axis("k", depth),), "int8", y, layout, buffer)
    return BytePanels(panels, initial, pattern.reduce, not zero_points[0], packing.fill)


@dataclass(frozen=True, slots=True)
class BytePacking(PanelPacking):
    """The packing of groups of four bytes. If a has a zero point, the sums of columns give the `initial` sums."""
    source: Load
    pattern: Contraction
    zero_points: tuple[int, int]
    initial: Buffer

    def fill(self, at: At, first: Affine, cut: Cut) -> None:
        """Pack the panels of the columns from `first` on."""
        for t, vectors in cut:
            lanes, width = vectors[0].lanes, width_of(vectors)
            is_turned = self.has_groups and len(self.pattern.reduce.axes) == 1 and lanes == BLOCK and not (
                self.is_little and len(vectors) == 1)
            are_rows = self.source.index[0].coefficient(self.n) == 1 and all(p.active == lanes == p.lanes for p in vectors)
            panels = self.several(t, width) if are_rows else [(t, vectors)]
            over_panels(self.b, panels, lambda start, pieces: self.panel(
                {**at, self.n: first + start}, start, pieces, lanes, width, is_turned))

    def several(self, t: Tiles, width: int) -> Cut:
        """Return whole neighbouring panels, as many at a time as fill a vector of bytes, and the remaining panels."""
        each = max(1, self.target.vector_bytes // width)
        whole, single = divmod(t.count, each)
        sizes = (0, each * width, whole), (whole * each, width, single)
        return [(Tiles(t.start + start * width, size, count), (Piece(0, size, size),)) for start, size, count in sizes if count]

    @property
    def is_little(self) -> bool:
        """True if packing columns one by one takes hardly longer than the transposition, which is more code."""
        return self.pattern.depth * self.n.extent * self.target.costs.column_pack_cycles <= EXCHANGE_LINES * LINE_CYCLES

    @property
    def has_groups(self) -> bool:
        """True if the elements of a group are contiguous, and those of a row are not."""
        i = self.source.index[0]
        return i.coefficient(self.k) == 1 and abs(i.coefficient(self.n)) > 1 and not {self.k, self.n} & i.hidden

    def panel(self, at: At, start: Affine, pieces: Sequence[Piece], lanes: int, width: int, is_turned: bool) -> None:
        """Pack one panel, or several that are one piece."""
        for piece, count in repeated(pieces, is_turned):
            number, first = Axis("vector", count), Affine.of(piece.start)
            if is_turned:
                self.b.loop(number, lambda: self.columns(
                    at, start, Affine.of(number) * BLOCK + first, piece, BLOCK, width, True))
            else:
                self.columns(at, start, first, piece, min(lanes, piece.lanes), width, False)

    def columns(self, at: At, start: Affine, first: Affine, piece: Piece, lanes: int, width: int, is_turned: bool) -> None:
        """Pack the columns of a piece for all of K, with `lanes` columns in a vector of sums."""
        (*outer, last), size = self.pattern.reduce.axes, GROUP * lanes if is_turned else GROUP
        vectors = [(start + i // width * width, first + i % width) for i in range(0, piece.lanes, lanes)]
        totals: Sequence[Operand] = [Literal(0, Type("int32", lanes))] * len(vectors)

        def along(at: At, totals: Sequence[Operand]) -> Sequence[Operand]:
            return in_steps(self.b, last.extent, size, lambda number, active, t: self.step(
                {**at, last: number * size}, vectors, piece, active, width, is_turned, t), totals)

        totals = reduce_loops(self.b, tuple(outer), (), {**at, self.n: at[self.n] + first}, totals, along, unroll=1, short=0)
        for (column, place), total in zip(vectors, totals, strict=True):
            self.finish(column, place, width, total)

    def step(self, at: At, vectors: Sequence[tuple[Affine, Affine]], piece: Piece, active: int, width: int, is_turned: bool,
             totals: Sequence[Operand]) -> Sequence[Operand]:
        """Pack groups of four elements of K for each of the vectors; the first `active` elements exist. Return the new sums."""
        k, result = number_of(self.pattern.reduce.axes, at), list(totals)
        if self.has_groups and not is_turned and len(vectors) == 1:
            return [self.column_by_column(at, self.place(*vectors[0], k, width), piece, active, totals[0])]
        groups = self.exchanged(at, piece, active) if is_turned else self.zipped(at, piece, active, totals[0].type.lanes)
        for g, group in enumerate(groups):
            for i, (packed, vector) in enumerate(zip(group, vectors, strict=True)):
                self.b.store(self.buffer, self.place(*vector, k + g * GROUP, width), packed)
                result[i] = self.added(result[i], packed)
        return result

    def finish(self, start: Affine, first: Affine, width: int, total: Operand) -> None:
        """Write zeros after the last group, and turn the sums of columns into initial sums."""
        last, (of_a, of_b) = -(-self.pattern.depth // GROUP), self.zero_points
        if last * GROUP < self.layout.depth:
            empty = Literal(0, Type("int8", GROUP * total.type.lanes))
            over(self.b, [Tiles(last, 1, self.layout.depth // GROUP - last)], lambda group, _: self.b.store(
                self.buffer, self.place(start, first, group * GROUP, width), empty))
        constant = int(wrapped(np.array([self.pattern.depth * of_a * of_b]))[0])
        value: Operand = Literal(constant, total.type)
        if of_a:  # else there are no sums of columns
            value = self.b.op("sub", value, self.b.op("mul", total, Literal(of_a, total.type)))
        self.b.store(self.initial, start + first, value)

    def added(self, total: Operand, packed: Operand) -> Operand:
        """Return the sums of columns plus four more rows."""
        if not self.zero_points[0]:
            return total
        return self.b.op(self.target.dot4, total, Literal(1, packed.type), packed, type=total.type)

    def exchanged(self, at: At, piece: Piece, active: int) -> Iterator[Sequence[Operand]]:
        """Yield the groups of 16 columns that are contiguous along K, transposed."""
        for words in self.turned(at, piece, active):
            yield [self.b.op("bits", words, type=Type("int8", GROUP * BLOCK))]

    def zipped(self, at: At, piece: Piece, active: int, lanes: int) -> list[Sequence[Operand]]:
        """Return four rows interleaved column by column, in vectors of `lanes` columns."""
        width = piece.lanes
        rows = [*self.rows(at, piece, active), *[Literal(0, Type("int8", width))] * (GROUP - active)]
        by_two = tuple(i // 2 + width * (i % 2) for i in range(2 * width))
        first, second = (self.b.op("bits", self.b.shuffle(rows[i], rows[i + 1], by_two), type=Type("int16", width))
                         for i in (0, 2))
        columns = [tuple(start + i // 2 + width * (i % 2) for i in range(2 * lanes)) for start in range(0, width, lanes)]
        return [[self.b.op("bits", self.b.shuffle(first, second, c), type=Type("int8", GROUP * lanes)) for c in columns]]

    def column_by_column(self, at: At, to: Affine, piece: Piece, active: int, total: Operand) -> Operand:
        """Pack one group of each column; columns that do not exist repeat the last."""
        loop = Axis("column", piece.lanes)

        def one() -> None:
            column = Affine.of(loop)
            if piece.active < piece.lanes:
                column = Affine.of(there := Axis("there", piece.active))
                self.b.place(there, self.b.op("min", self.b.index(Affine.of(loop)), Literal(piece.active - 1, INDEX)))
            place = self.source.index[0].substitute({**at, self.n: at[self.n] + column})
            self.b.store(self.buffer, to + Affine.of(loop) * GROUP, self.b.load(self.source.buffer, place, GROUP, active))

        self.b.loop(loop, one)
        return self.added(total, self.b.load(self.buffer, to, GROUP * piece.lanes)) if self.zero_points[0] else total
