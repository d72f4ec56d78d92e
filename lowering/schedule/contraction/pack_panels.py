"""Pack B at run time, into scratch. One packer for every micro-kernel: the layout gives the offsets, and a group of K of the
columns of a vector is read in place, or transposed in registers. Subclasses store different data: plain elements, here; groups
of bytes with the sums of columns (`int8.pack_b`); limbs, with flags for values out of range (`bf16_split.pack_b`).
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...elements.expression import Buffer, Expr, is_float
from ...elements.traverse import loads
from ...graph.types import ITEM_SIZES
from ...loops.builder import Builder
from ...loops.ir import Literal, Operand, Type
from ...target.target import Target
from ..code_size_model import price_of, share_of
from ..elementwise.elementwise import scattered
from ..elementwise.transpose import iteration
from ..nest.axis_blocks import Terms
from ..nest.loop_nest import At, free_axes, number_of
from ..nest.reduction_loops import reduce_loops
from ..nest.tile_axis import Cut, Piece, over
from ..vectorize.vectorize import Vectorizer
from .layout import PanelLayout, width_of
from .pack_b import Panels, narrow
from .pattern import Contraction

GATHER_LINES = 500
"""Number of lines of LLVM's text that assemble vectors from elements that are far apart. Counted."""
SINGLE_PACK_CYCLES, SINGLE_FLOAT8_PACK_CYCLES = 0.5, 8
"""Additional cycles of an element that is packed singly, and of an 8-bit float, which is converted singly. Chosen."""
Each = Callable[[Callable[[Affine], Sequence[Operand] | None]], object]
"""A loop that calls a function with the number of each panel or tile."""


@dataclass(frozen=True, slots=True)
class PanelPacking:
    """The packing of `source`, whose columns are `n`, into `buffer`. `k` is the axis of K along which groups run."""
    b: Builder
    target: Target
    source: Expr
    n: Axis
    k: Axis
    layout: PanelLayout
    buffer: Buffer

    def rows(self, at: At, piece: Piece, count: int = 1) -> Iterator[Operand]:
        """Yield vectors of the columns from at[n] on, for each of `count` elements of K from at[k] on."""
        for place in ({**at, self.k: at[self.k] + i} for i in range(count)):
            yield Vectorizer(self.b, self.target, place, self.n, piece.lanes, piece.active).vector(self.source)

    def turned(self, at: At, piece: Piece, active: int) -> Sequence[Operand]:
        """Return vectors of columns, one for each group of K from at[k] on, up to as many groups as a vector has columns;
        `active` elements of K exist. Load vectors along K and transpose them in registers. Columns that do not exist are 0."""
        lanes, group = piece.lanes, self.layout.group
        type = Type(self.source.dtype if group == 1 else "int32", lanes)
        lines: list[Operand] = [Literal(0, type)] * lanes
        for column in range(piece.active):
            v = Vectorizer(self.b, self.target, {**at, self.n: at[self.n] + column}, self.k, lanes * group, active)
            line = v.vector(self.source)
            lines[column] = line if group == 1 else self.b.op("bits", line, type=type)
        return iteration(self.b, lines)[:-(-active // group)]

    def place(self, column: Affine, first: Affine | int, k: Affine, width: int) -> Affine:
        """Return the offset of the elements of K from k on, of the columns from `first` on, in the panel that begins with
        `column` and is `width` columns wide."""
        return self.layout.place(column, k, width) + first * self.layout.group


@dataclass(frozen=True, slots=True)
class PlainPacking(PanelPacking):
    """The packing of plain elements, of floats and of integers."""

    def row(self, at: At, column: Affine, k: Affine, vectors: Sequence[Piece], width: int) -> None:
        """Pack one element of K of the columns of some vectors of a panel, which begins at the point `at`."""
        for piece, count in repeated(vectors, scattered(self.source, self.n)):
            number = Axis("vector", count)

            def store(piece: Piece = piece, number: Axis = number) -> None:
                first = Affine.of(number) * piece.lanes + piece.start
                (value,) = self.rows({**at, self.n: at[self.n] + first}, piece)
                self.b.store(self.buffer, self.place(column, first, k, width), value)

            self.b.loop(number, store)

    def singly(self, at: At, column: Affine, k: Affine, vectors: Sequence[Piece], width: int) -> None:
        """Pack one element of K of these columns, element by element."""
        columns, (*_, last) = sum(piece.active for piece in vectors), vectors
        if width > columns:
            self.b.store(self.buffer, self.place(column, last.start, k, width), Literal(0, Type(self.buffer.dtype, last.lanes)))
        self.row(at, column, k, [Piece(i, 1, 1) for i in range(columns)], width)


@dataclass(frozen=True, slots=True)
class BlockPacking(PlainPacking):
    """The packing of plain elements for the terms of a block, with panels in vectors of `lanes` columns."""
    terms: Terms
    lanes: int

    @property
    def is_along_k(self) -> bool:
        """True if terms are contiguous in memory, and columns are not."""
        found = [x.index[0] for x in loads(self.source)]
        return self.lanes >= 4 and all(i.coefficient(self.k) in (0, 1) for i in found) and any(
            i.coefficient(self.n) not in (0, 1) for i in found)

    def fill_block(self, at: At, each: Each, size: int, vectors: tuple[Piece, ...], offset: int) -> None:
        """Pack panels of `size` columns from at[n] on, to scratch from column `offset` on."""
        width, terms, lanes = width_of(vectors), self.terms, self.lanes
        turned = [p for p in vectors if self.is_along_k and p.lanes == lanes]
        others = [p for p in vectors if p not in turned]

        def there(panel: Affine, term: Affine) -> At:
            return {**at, self.n: at[self.n] + panel * size, self.k: terms.start + term}

        def row(term: Affine, some: list[Piece]) -> None:
            each(lambda panel: self.row(there(panel, term), panel * width + offset, term, some, width))

        def square(panel: Affine, term: Affine) -> None:
            for piece in turned:
                here = there(panel, term)
                for r, line in enumerate(self.turned({**here, self.n: here[self.n] + piece.start}, piece, lanes)):
                    self.b.store(self.buffer, self.place(panel * width + offset, piece.start, term + r, width), line)

        def rest(first: int, count: int) -> None:
            for term in range(first, first + count):
                row(Affine.of(term), turned)

        if others:
            terms.loop(lambda term: row(term, others))
        if turned:
            each(lambda panel: terms.loop(lambda term: square(panel, term), step=lanes))
            terms.tail(lanes, rest)


def pack_at_run_time(b: Builder, pattern: Contraction, cut: Cut, target: Target) -> tuple[Panels, Callable[[At], None]]:
    """Return panels in scratch, and a function that packs them for the batch at a point, for the values of K for which the
    conditions on b hold."""
    source, n, axes, layout = narrow(pattern.b), pattern.n, pattern.reduce.axes, PanelLayout(cut, pattern.depth)
    scratch = b.scratch(Buffer(f"{pattern.nest.name}.packed", source.dtype, (layout.size,), "scratch"))
    packing = PlainPacking(b, target, source, n, axes[-1], layout, scratch)
    row = packing.singly if is_packed_singly(source, n, layout) else packing.row

    def panel(at: At, start: Affine, vectors: tuple[Piece, ...]) -> None:
        def step(at: At, _: Sequence[Operand]) -> tuple[()]:
            row(at, start, number_of(axes, at), vectors, width_of(vectors))
            return ()

        reduce_loops(b, axes, pattern.inside, {**at, n: start}, (), step, unroll=1)

    return Panels(n, axes, pattern.reduce.dtype, source, layout, scratch), lambda at: over_panels(
        b, cut, lambda start, vectors: panel(at, start, vectors))


def over_panels(b: Builder, cut: Cut, run: Callable[[Affine, tuple[Piece, ...]], None]) -> None:
    """Call `run` with the first column of each panel, and its vectors."""
    for t, vectors in cut:
        over(b, [t], lambda start, _: run(start, vectors))


def is_packed_singly(source: Expr, n: Axis, layout: PanelLayout) -> bool:
    """True if elements that are far apart are packed one by one, which is little code, because that takes hardly longer."""
    slower = SINGLE_FLOAT8_PACK_CYCLES if any(ITEM_SIZES[x.dtype] == 1 and is_float(x.dtype) for x in loads(source)) else (
        SINGLE_PACK_CYCLES)
    return scattered(source, n) and n.extent * layout.depth * slower <= price_of(share_of(source)) * GATHER_LINES


def repeated(vectors: Sequence[Piece], alike: bool) -> list[tuple[Piece, int]]:
    """Return the vectors one by one; or, with `alike`, the first vector of each run of equal size, and the length of the run,
    so that the vectors of a run share their code."""
    if not alike:
        return [(piece, 1) for piece in vectors]
    groups = [list(group) for _, group in itertools.groupby(vectors, lambda piece: (piece.lanes, piece.active))]
    return [(group[0], len(group)) for group in groups]


def depth_of_panels(b: Builder, pattern: Contraction) -> int:
    """Return the number of open loops that panels depend on. Panels are packed outside the others, unless these store the
    source."""
    if any(x.buffer.role == "scratch" for x in loads(pattern.b)):
        return b.depth
    outer = {*free_axes(pattern.b), *(a for w in pattern.inside for a in w.index.axes)} - {pattern.n, *pattern.reduce.axes}
    return b.depth_of(outer)
