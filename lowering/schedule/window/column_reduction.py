"""Sums over an outer axis of a tensor that no cache holds: its rows are read one after the other, in memory order, while the
sums of all columns stay in the first-level cache.

A tile of columns with its sums in registers (`window`) would read a few cache lines of each row: each from a page of its own,
and all from one cache set if the row stride is a power of two.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...elements.expression import Buffer, Load, Reduce
from ...elements.traverse import nodes
from ...graph.types import ITEM_SIZES
from ...loops.builder import Builder
from ...loops.ir import Literal, Operand, Type
from ...target.target import Target
from ..elementwise.elementwise import lanes_of
from ..nest.loop_nest import At, Nest, is_dense, main_reduction
from ..nest.row_range import RowRange, nested
from ..nest.tile_axis import Piece, Tiles, chunks, over, pieces
from ..row_reduction.recognise import plain
from ..strategy import Constraints, Strategy
from ..vectorize.epilogue import EpilogueWriter, OutputBlock
from ..vectorize.vector_reduction import combine
from ..vectorize.vectorize import Vectorizer

ROWS_AT_A_TIME, VECTORS_OF_A_ROW = 8, 2
"""Number of rows that are added to a sum at a time, and of vectors of columns: as many streams as a processor prefetches."""
MAX_SUM_BYTES = 8 << 10
"""Maximum bytes of sums that are kept in memory at a time."""
MIN_ROW_STRIDE_BYTES = 1 << 12
"""Minimum bytes from a row to the next: those of a page."""


@dataclass(frozen=True, slots=True)
class OuterSumsChoice:
    """`rows` rows of terms at a time, of blocks of `columns` columns that go by `vectors` vectors of `lanes`."""
    rows: int
    columns: int
    vectors: int
    lanes: int

    def __str__(self) -> str:
        return f"column reduction: {self.rows} rows of {self.columns} by {self.vectors} vectors of {self.lanes}"


@dataclass(frozen=True, slots=True)
class ColumnReduction(Strategy):
    """The strategy for sums over an outer axis of a tensor that no cache holds."""
    nest: Nest
    target: Target
    choice: OuterSumsChoice

    @staticmethod
    def recognise(nest: Nest, constraints: Constraints) -> ColumnReduction | None:
        choice = recognise(nest, constraints.target, constraints.by_rows) if is_dense(nest) else None
        return ColumnReduction(nest, constraints.target, choice) if choice else None

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        lower(b, self.nest, self.choice, self.target)

    def __str__(self) -> str:
        return str(self.choice)


def recognise(nest: Nest, target: Target, rows: bool) -> OuterSumsChoice | None:
    """Return a choice if the nest has the pattern and no rows of the result are requested separately, else None."""
    r = main_reduction(nest, nest.axes[-1]) if nest.axes and not rows and target.has_cache else None
    every = list(nodes(nest.value))
    if r is None or len(r.axes) != 1 or sum(isinstance(e, Reduce) for e in every) > 1 or not all(map(plain, every)):
        return None
    n, (k,), lanes = nest.axes[-1], r.axes, lanes_of(nest, target)
    read = [e for e in nodes(r.body) if isinstance(e, Load)]
    beside = all(e.index[0].coefficient(n) in (0, 1) and not {n, k} & e.index[0].hidden for e in read)
    far = any(e.index[0].coefficient(n) and abs(e.index[0].coefficient(k)) * ITEM_SIZES[e.dtype] >= MIN_ROW_STRIDE_BYTES
              and e.buffer.nbytes > target.l2_bytes for e in read)
    if not beside or not far or k.extent < 2 * ROWS_AT_A_TIME or n.extent < VECTORS_OF_A_ROW * lanes:
        return None
    return OuterSumsChoice(ROWS_AT_A_TIME, min(n.extent, MAX_SUM_BYTES // ITEM_SIZES[r.dtype]), VECTORS_OF_A_ROW, lanes)


def lower(b: Builder, nest: Nest, choice: OuterSumsChoice, target: Target) -> None:
    r = main_reduction(nest, nest.axes[-1])
    assert r is not None
    room = Buffer(f"{nest.name}.sums", r.dtype, (choice.columns + choice.lanes,), "scratch")
    pattern = OuterSums(b, target, choice, r, nest.axes[-1], b.scratch(room), EpilogueWriter(b, target, nest, r, choice.lanes))
    columns = chunks(pattern.n.extent, choice.columns)
    nested(b, nest.axes[:-1], {}, lambda at: over(b, columns, lambda start, t: pattern.run({**at, pattern.n: start}, t.size)))


@dataclass(frozen=True, slots=True)
class OuterSums:
    """The loops for a block of neighbouring columns."""
    b: Builder
    target: Target
    choice: OuterSumsChoice
    reduce: Reduce
    n: Axis
    sums: Buffer
    writer: EpilogueWriter

    def run(self, at: At, size: int) -> None:
        first, *others = self.blocks()
        self.columns(size, lambda x, vectors: self.terms(at, x, vectors, Affine(), first.size, is_first=True))
        over(self.b, others, lambda row, t: self.columns(
            size, lambda x, vectors: self.terms(at, x, vectors, row, t.size)))
        self.columns(size, lambda x, vectors: self.outputs(at, x, vectors))

    def blocks(self) -> list[Tiles]:
        """Return the blocks of rows of terms; the first block is separate, because it initializes the sums."""
        rows, (k,) = self.choice.rows, self.reduce.axes
        return [Tiles(0, rows, 1), *(Tiles(t.start + rows, t.size, t.count) for t in chunks(k.extent - rows, rows))]

    def columns(self, size: int, run: Callable[[Affine, Sequence[Piece]], None]) -> None:
        """Call `run` for each tile of `size` columns."""
        lanes = self.choice.lanes
        over(self.b, chunks(size, lanes * self.choice.vectors),
             lambda x, t: run(x, pieces(t.size, lanes, self.target.has_masked)))

    def terms(self, at: At, x: Affine, vectors: Sequence[Piece], row: Affine, rows: int, is_first: bool = False) -> None:
        """Add rows of terms to the sums of a tile."""
        (k,), total = self.reduce.axes, [self.begun(p) if is_first else self.waiting(x, p) for p in vectors]
        for i in range(rows):
            places = [Vectorizer(self.b, self.target, {**at, self.n: at[self.n] + x + p.start, k: row + i}, self.n, p.lanes,
                                 p.active) for p in vectors]
            total = [combine(v, self.reduce, sum) for v, sum in zip(places, total)]
        for p, sum in zip(vectors, total):
            self.b.store(self.sums, x + p.start, sum, p.active)

    def begun(self, p: Piece) -> Operand:
        return Literal(self.reduce.identity, Type(self.reduce.dtype, p.lanes))

    def waiting(self, x: Affine, p: Piece) -> Operand:
        return self.b.load(self.sums, x + p.start, p.lanes, p.active)

    def outputs(self, at: At, x: Affine, vectors: Sequence[Piece]) -> None:
        for p in vectors:
            self.writer.write(OutputBlock({**at, self.n: at[self.n] + x}, None, 1, self.n, (p,)), [self.waiting(x, p)])
