"""Products of bytes on a matrix unit (AMX): 2 x 2 tiles of sums, up to 32 rows by 32 columns, 64 elements of K at a step.
`tile_shape` says when, and in which shapes.

Rows of a are read where they lie, if K is one run of memory there, else they are staged; b is packed as for `dot`. Sums go to
scratch in the first-level cache, and from there a loop over rows of vectors makes outputs of them, so that what is done with a
sum is little code; or, where nothing is done with them, straight to the output.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..elements.affine import Affine, Axis
from ..elements.expression import Buffer, Expr, Reduce
from ..elements.traverse import nodes
from ..loops.builder import Builder
from ..loops.ir import TILE_BYTES, Operand
from ..native.target import Target
from .byte_panels import GROUP, BytePanels, at_run_time, filled, of_constants
from .dot import Bytes, bytes_of
from .nest import free_axes, operands
from .panels import Cut, is_constant
from .rows import Rows, nested
from .staging import Staging
from .tile_shape import LANES, Shape, columns, groups, is_direct, is_plain, lines, narrow
from .tiles import Piece, Tiles, over
from .vectorize import At, Vectorizer
from .write import Block, Writer

if TYPE_CHECKING:
    from .contraction import Contraction

TOTALS, ROWS, COLUMNS = ((0, 1), (2, 3)), (4, 5), (6, 7)
"""Tiles of sums, of a and of b."""


def lower(b: Builder, form: Contraction, target: Target, rows: Rows | None) -> None:
    found = bytes_of(form)
    assert found
    TileProduct.of(b, form, found, target).lower(rows)


@dataclass(frozen=True, slots=True)
class Known:
    """Of a vector of a block: what is the same in all rows, and what is added to the sums, if not 0."""
    outer: Vectorizer
    initial: Operand | None


@dataclass(frozen=True, slots=True)
class TileProduct:
    """The product. `staging` is none where a is read as it lies; `sums` hold those of one block, and are none where they go
    straight to the output."""
    b: Builder
    form: Contraction
    found: Bytes
    target: Target
    shape: Shape
    groups: list[tuple[Tiles, Cut]]
    packed: BytePanels
    staging: Staging | None
    sums: Buffer | None
    writer: Writer

    @staticmethod
    def of(b: Builder, form: Contraction, found: Bytes, target: Target) -> TileProduct:
        shape, cut, name, direct = Shape.of(form), columns(form.n.extent, 2 * LANES), form.nest.name, is_direct(form, found)
        zero_points = found.of_x, found.of_y
        overlap = direct and form.depth > shape.step
        together = groups(form, shape, cut, target)
        if is_constant(found.y):
            packed = of_constants(form, found.y, zero_points, narrow(cut), shape.step, overlap)
        else:
            largest = max((narrow(panels) for _, panels in together), key=filled)
            packed = at_run_time(b, form, found.y, zero_points, largest, target, shape.step)
        staging = None
        if not direct:
            stride = shape.depth + (TILE_BYTES if shape.depth % 512 == 0 else 0)
            staging = Staging.of(b, form, found.x, zero_points, shape.rows, shape.depth, stride, False, target)
        sums = None
        if not is_plain(form, found, packed.known):
            sums = b.scratch(Buffer(f"{name}.tiles", "int32", (shape.rows * 2 * LANES,), "scratch"))
        writer = Writer(b, target, form.nest, form.reduce, 2 * LANES, known=packed.known)
        return TileProduct(b, form, found, target, shape, together, packed, staging, sums, writer)

    def lower(self, rows: Rows | None) -> None:
        """All of it: for each batch of b, for as many panels at a time as stay in the second-level cache."""
        outer, fill = self.form.outer, self.packed.fill
        first: tuple[Axis, ...] = ()
        if fill:
            first = tuple(a for d, a in enumerate(outer) if a in self.form.batch or (rows and d == 0 and self.form.batch))
        rest = tuple(a for a in outer if a not in first)
        self.b.shape_tiles(self.shape.tiles)
        nested(self.b, first, {}, lambda at: self.product(at, rest, None if first else rows), rows if first else None,
               self.form.nest.where)

    def product(self, at: At, axes: tuple[Axis, ...], rows: Rows | None) -> None:
        for t, cut in self.groups:
            over(self.b, [t], lambda start, _: self.group(at, axes, rows, start, cut))

    def group(self, at: At, axes: tuple[Axis, ...], rows: Rows | None, first: Affine, cut: Cut) -> None:
        """All rows, for the panels from column `first` on."""
        if self.packed.fill:
            self.packed.fill(at, first, narrow(cut))
        nested(self.b, axes, at, lambda at: self.blocks(at, first, cut), rows, self.form.nest.where)

    def blocks(self, at: At, first: Affine, cut: Cut) -> None:
        m = self.form.m
        assert m

        def block(start: Affine, _: Tiles) -> None:
            place = {**at, m: start}
            if self.staging:
                self.staging.stage(place, self.shape.rows)
            for t, vectors in cut:
                over(self.b, [t], lambda column, _: self.block(
                    {**place, self.form.n: first + column}, column if self.packed.fill else first + column, vectors))

        over(self.b, lines(self.form, self.shape.rows), block)

    @property
    def halves(self) -> list[tuple[int, int]]:
        """The first row and the number of each tile of rows."""
        first, second = self.shape.heights
        return [(0, 0), (first, 1)] if second else [(0, 0)]

    def block(self, at: At, column: Affine, vectors: tuple[Piece, ...]) -> None:
        """One block of rows, one panel, which is packed as `column`."""
        for _, i in self.halves:
            for j, piece in enumerate(vectors):
                if self.sums is None and not self.packed.is_zero:
                    self.b.load_tile(TOTALS[i][j], self.packed.initial, self.packed.start(at, column) + piece.start, 0)
                else:
                    self.b.zero_tile(TOTALS[i][j])
        short = self.form.depth % self.shape.step if self.staging is None else 0
        loop = Axis("step", self.shape.count - bool(short))
        self.b.loop(loop, lambda: self.step(at, column, vectors, Affine.of(loop), Affine.of(loop) * self.shape.step))
        if short:  # the last step begins earlier, and b has zeros for what comes again
            self.step(at, column, vectors, Affine.of(loop.extent), Affine.of(self.form.depth - self.shape.step))
        if self.sums is None:
            self.store(self.form.nest.out, self.form.nest.index.substitute(at), self.stride_out, vectors)
            return
        self.store(self.sums, Affine(), 2 * LANES, vectors)
        known = [self.known(at, column, piece) for piece in vectors]
        row = Axis("row", self.shape.rows)
        self.b.loop(row, lambda: self.write(at, Affine.of(row), vectors, known))

    def step(self, at: At, column: Affine, vectors: tuple[Piece, ...], number: Affine, k: Affine) -> None:
        """64 elements of K, from k on, or all of it."""
        panels, which = self.packed.panels, Affine()
        for a in panels.batch:
            which = which * a.extent + at[a]
        packed = which * panels.batch_size + column * self.shape.depth + number * (self.shape.step * LANES)
        assert panels.buffer
        for first, i in self.halves:
            self.load_rows(at, first, i, k)
            for j in range(len(vectors)):
                if i == 0:
                    self.b.load_tile(COLUMNS[j], panels.buffer, packed + j * LANES * self.shape.depth, LANES * GROUP)
                self.b.multiply_tiles(TOTALS[i][j], ROWS[i], COLUMNS[j], self.found.x.dtype == "int8")

    def load_rows(self, at: At, first: int, which: int, k: Affine) -> None:
        """A tile of rows, from the block's row `first` on."""
        if self.staging:
            stride = self.staging.stride
            self.b.load_tile(ROWS[which], self.staging.buffer, k + first * stride, stride)
            return
        x, m, start = self.found.x, self.form.m, {a: Affine() for a in self.form.reduce.axes}
        assert m
        place = x.index[0].substitute({**at, **start, m: at[m] + first})
        self.b.load_tile(ROWS[which], x.buffer, place + k, x.index[0].coefficient(m))

    # ---- what becomes of the sums ------------------------------------------------------------------------------------
    @property
    def stride_out(self) -> int:
        assert self.form.m
        return self.form.nest.index.coefficient(self.form.m)

    def store(self, buffer: Buffer, place: Affine, stride: int, vectors: tuple[Piece, ...]) -> None:
        for first, i in self.halves:
            for j, piece in enumerate(vectors):
                self.b.store_tile(TOTALS[i][j], buffer, place + first * stride + piece.start, stride)

    def known(self, at: At, column: Affine, piece: Piece) -> Known:
        at = {**at, self.form.n: at[self.form.n] + piece.start}
        v = Vectorizer(self.b, self.target, at, self.form.n, piece.lanes, piece.active)
        for e in unchanging(self.form.nest.value, self.form, self.packed.known):
            v.value(e)
        start = self.packed.start(at, column) + piece.start
        return Known(v, None if self.packed.is_zero else self.b.load(self.packed.initial, start, LANES))

    def write(self, at: At, row: Affine, vectors: tuple[Piece, ...], known: Sequence[Known]) -> None:
        """The outputs of one row of the block."""
        assert self.sums and self.form.m
        place = {**at, self.form.m: at[self.form.m] + row}
        for piece, k in zip(vectors, known, strict=True):
            value: Operand = self.b.load(self.sums, row * (2 * LANES) + piece.start, LANES)
            if k.initial is not None:
                value = self.b.op("add", value, k.initial)
            if self.staging and self.staging.terms:
                term = self.b.splat(self.b.load(self.staging.terms, row), LANES)
                value = self.b.op("add", value, term)
            self.writer.write(Block(place, self.form.m, 1, self.form.n, (piece,)), [value], k.outer)


def unchanging(value: Expr, form: Contraction, known: Expr) -> Iterator[Expr]:
    """The largest parts of a value, under arithmetic, that are the same in all rows, where `known` is known."""
    stack, seen = [value], set[int]()
    while stack:
        e = stack.pop()
        if id(e) in seen or e is known:
            continue
        seen.add(id(e))
        if not any(isinstance(x, Reduce) for x in nodes(e)) and form.m not in free_axes(e):
            yield e
        else:
            stack.extend(operands(e))
