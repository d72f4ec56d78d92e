"""The loops of a convolution by a minimal filter, block by block: inputs are copied into a frame of zeros; tiles of inputs are
transformed, multiplied by the transformed weights, and transformed back; the epilogue follows in registers."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Range
from ...loops.builder import Builder
from ...loops.ir import Literal, Operand, Type
from ...target.target import Target
from ..contraction.contraction_strategies import ContractionStrategy
from ..nest.loop_nest import At
from ..nest.row_range import nested
from ..nest.tile_axis import Piece, Tiles, chunks, interior, over, pieces
from ..vectorize.epilogue import EpilogueWriter, OutputBlock
from ..vectorize.vectorize import Vectorizer
from .minimal_filter import TAPS, MinimalFilter
from .recognise import Convolution
from .tiling import Tiling
from .transform import transformed

FLOAT = "float32"


def lower(b: Builder, convolution: Convolution, tiling: Tiling, product: ContractionStrategy, target: Target) -> None:
    for buffer in (tiling.halo, tiling.inputs, tiling.products):
        b.scratch(buffer)
    writer = EpilogueWriter(b, target, convolution.nest, convolution.contraction.reduce, tiling.filter * target.lanes(4))
    written = BlockLoops(b, convolution, tiling, product, target, MinimalFilter.of(tiling.filter), writer)
    nested(b, convolution.batch, {}, written.image)


@dataclass(frozen=True, slots=True)
class BlockLoops:
    """The loops over blocks of rows of tiles, and the code of one block."""
    b: Builder
    convolution: Convolution
    tiling: Tiling
    product: ContractionStrategy
    target: Target
    filter: MinimalFilter
    writer: EpilogueWriter

    def image(self, at: At) -> None:
        block = Axis("block", self.tiling.tile_rows // self.tiling.rows)
        self.b.loop(block, lambda: self.block(at, Affine.of(block) * self.tiling.rows if block.extent > 1 else Affine()))

    def block(self, at: At, first: Affine) -> None:
        """Write a block: the rows of tiles from `first` on."""
        self.fill(at, first * self.filter.size)
        self.over_tiles(self.convolution.channels.extent, self.transform_inputs)
        self.product.lower(self.b, None)
        self.outputs(at, first)

    def over_tiles(self, extent: int, run: Callable[[Affine, Affine, Affine, Piece], None]) -> None:
        """Call `run` with the row and the column of each tile, and each vector of `extent` channels."""
        row, column = Axis("row", self.tiling.rows), Axis("column", self.tiling.columns)

        def channels() -> None:
            self.vectors(extent, lambda start, piece: run(Affine.of(row), Affine.of(column), start, piece))

        self.b.loop(row, lambda: self.b.loop(column, channels))

    def vectors(self, extent: int, run: Callable[[Affine, Piece], None]) -> None:
        """Call `run` for each vector of `extent` channels, with the start of its chunk and its position in the chunk."""
        lanes = self.target.lanes(4)

        def chunk(start: Affine, t: Tiles) -> None:
            for piece in pieces(t.size, lanes, self.target.has_masked):
                run(start, piece)

        over(self.b, chunks(extent, lanes), chunk)

    # ---- inputs ------------------------------------------------------------------------------------------------------
    def fill(self, at: At, first: Affine) -> None:
        """Copy the inputs of a block, from output row `first` on; write zeros where there are none."""
        c, width = self.convolution, self.tiling.halo.shape[1]
        row, column = Axis("row", self.tiling.halo.shape[0]), Axis("column", width)
        here = {**at, c.height: first + row, c.rows: Affine(), c.columns: Affine()}
        exists = Range(first + row, 0, c.height.extent + TAPS - 1)
        where = [w for w in (exists, *(w.substitute(here) for w in c.conditions(c.rows))) if w.known is not True]
        beside = [Range(Affine.of(column), 0, c.width.extent + TAPS - 1), *(
            w.substitute({c.width: Affine.of(column), c.columns: Affine()}) for w in c.conditions(c.columns))]
        low, high = interior(column, beside)

        def one() -> None:
            self.zeros(Affine.of(row), 0, low)
            self.zeros(Affine.of(row), high, width)
            if not where:
                self.row(here, Affine.of(row), low, high, True)
                return
            holds = self.b.holds(where)
            self.b.when(holds, lambda: self.row(here, Affine.of(row), low, high, True))
            self.b.when(self.b.op("xor", holds, Literal(1, holds.type)), lambda: self.row(
                here, Affine.of(row), low, high, False))

        self.b.loop(row, one)

    def row(self, here: At, row: Affine, low: int, high: int, exists: bool) -> None:
        """Copy columns from `low` to `high` of a row of inputs, or write zeros in the same loops."""
        columns = Axis("column", high - low)
        if columns.extent:
            self.b.loop(columns, lambda: self.copy(here, row, Affine.of(columns) + low, exists))

    def copy(self, here: At, row: Affine, column: Affine, exists: bool) -> None:
        """Copy all channels of an input."""
        c = self.convolution

        def vector(start: Affine, piece: Piece) -> None:
            place = {**here, c.width: column, c.channels: start + piece.start}
            value: Operand = Literal(0.0, Type(FLOAT, piece.lanes))
            if exists:
                value = Vectorizer(self.b, self.target, place, c.channels, piece.lanes, piece.active).vector(c.contraction.a)
            self.b.store(self.tiling.halo, self.halo(row, column) + start + piece.start, value, piece.active)

        self.vectors(c.channels.extent, vector)

    def zeros(self, row: Affine, low: int, high: int) -> None:
        """Write zeros to columns from `low` to `high` of a row."""
        depth = self.convolution.channels.extent
        self.vectors((high - low) * depth, lambda start, piece: self.b.store(
            self.tiling.halo, self.halo(row, Affine() + low) + start + piece.start, Literal(0.0, Type(FLOAT, piece.lanes)),
            piece.active))

    def halo(self, row: Affine, column: Affine) -> Affine:
        _, width, depth = self.tiling.halo.shape
        return (row * width + column) * depth

    def transform_inputs(self, row: Affine, column: Affine, channel: Affine, piece: Piece) -> None:
        """Transform a vector of channels of a tile."""
        size, width = self.filter.size, self.filter.width
        start = self.halo(row * size, column * size) + channel + piece.start
        tile = [[self.b.load(self.tiling.halo, start + self.halo(Affine() + y, Affine() + x), piece.lanes, piece.active)
                 for x in range(width)] for y in range(width)]
        for place, value in enumerate(both_ways(self.b, self.filter.inputs, tile)):
            to = self.tiling.input_place(Affine() + place, self.tile(row, column), channel + piece.start)
            self.b.store(self.tiling.inputs, to, value, piece.active)

    def tile(self, row: Affine, column: Affine) -> Affine:
        """Return the number of a tile in its block."""
        return row * self.tiling.columns + column

    # ---- outputs -----------------------------------------------------------------------------------------------------
    def outputs(self, at: At, first: Affine) -> None:
        """Write the outputs of a block whose first row of tiles is `first`."""
        row, c = Axis("row", self.tiling.rows), self.convolution

        def tile(column: Affine, t: Tiles) -> None:
            self.vectors(c.contraction.n.extent, lambda channel, piece: self.tile_outputs(
                at, first, Affine.of(row), column, t.size, channel, piece))

        self.b.loop(row, lambda: over(self.b, chunks(c.width.extent, self.filter.size), tile))

    def tile_outputs(self, at: At, first: Affine, row: Affine, column: Affine, count: int, channel: Affine,
                     piece: Piece) -> None:
        """Write a vector of channels of `count` columns of outputs of a tile, from `column` on; skip rows that do not exist."""
        c, width = self.convolution, self.filter.width
        tile = self.tile(row, divided(column, self.filter.size))
        values = [[self.b.load(self.tiling.products, self.tiling.product_place(
            Affine() + y * width + x, tile, channel + piece.start), piece.lanes, piece.active) for x in range(width)]
            for y in range(width)]
        sums = both_ways(self.b, self.filter.outputs, values)
        for y in range(self.filter.size):
            place = (first + row) * self.filter.size + y
            block = OutputBlock({**at, c.height: place, c.width: column, c.contraction.n: channel}, c.width, count,
                                c.contraction.n, (piece,))
            line = sums[y * self.filter.size:y * self.filter.size + count]
            exists = Range(place, 0, c.height.extent)
            if exists.known:
                self.writer.write(block, line)
            elif exists.known is None:
                self.b.when(self.b.holds([exists]), lambda: self.writer.write(block, line))


def both_ways(b: Builder, matrix: Sequence[Sequence[float]], tile: Sequence[Sequence[Operand]]) -> list[Operand]:
    """Return matrix x tile x matrix', row by row."""
    columns = [transformed(b, matrix, column) for column in zip(*tile)]
    return [x for row in zip(*columns) for x in transformed(b, matrix, row)]


def divided(place: Affine, by: int) -> Affine:
    """Return a multiple of `by`, divided by `by`."""
    found = place.divide(by)
    assert found is not None and not found[1].terms and not found[1].const
    return found[0]
