"""Pack A for products in cache blocks: copy the rows of one or more tiles, for a block of K, to cached scratch."""
from __future__ import annotations

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...elements.expression import Buffer, Expr
from ...loops.builder import Builder
from ...loops.ir import Operand
from ...target.target import Target
from ..nest.axis_blocks import Terms
from ..nest.loop_nest import At
from ..nest.tile_axis import Piece, pieces
from ..vectorize.vectorize import Vectorizer
from .macro_kernel import Place
from .pack_panels import Each
from .row_lanes import lanes_of_row


@dataclass(frozen=True, slots=True)
class PackedRows:
    """The packed rows of a tile of `source`, [row][term] in `scratch`, or of several tiles, [tile][term][row], if rows are
    `interleaved`. `m` is the axis of rows, `terms` are the terms of the block."""
    b: Builder
    target: Target
    scratch: Buffer
    source: Expr
    m: Axis
    terms: Terms
    lanes: int
    interleaved: bool

    @staticmethod
    def size(rows: int, tiles: int, depth: int, lanes: int, interleaved: bool) -> int:
        """Return the elements of scratch for `rows` rows of `depth` terms."""
        return rows * (tiles * depth if interleaved else row_stride(depth, lanes))

    def fill(self, at: At, rows: int, tiles: Each) -> None:
        """Copy the rows from at[m] on."""
        if self.interleaved:
            self.terms.loop(lambda term: self.across(at, term, rows, tiles))
        else:
            row = Axis("row", rows)
            self.b.loop(row, lambda: self.along(at, Affine.of(row)))

    def across(self, at: At, term: Affine, rows: int, tiles: Each) -> None:
        """Copy one term of all rows."""
        def tile(number: Affine) -> None:
            for piece in pieces(rows, self.lanes, self.target.has_masked):
                place = {**at, self.m: at[self.m] + number * rows + piece.start, self.terms.axis: self.terms.start + term}
                value = Vectorizer(self.b, self.target, place, self.m, piece.lanes, piece.active).vector(self.source)
                to = (number * self.terms.size + term) * rows + piece.start
                self.b.store(self.scratch, to, value, piece.active)

        tiles(tile)

    def along(self, at: At, row: Affine) -> None:
        """Copy all terms of one row."""
        here, start, k = {**at, self.m: at[self.m] + row}, row * row_stride(self.terms.size, self.lanes), self.terms.axis

        def copy_vector(term: Affine, piece: Piece) -> None:
            v = Vectorizer(self.b, self.target, {**here, k: self.terms.start + term}, k, piece.lanes, piece.active)
            self.b.store(self.scratch, start + term, v.vector(self.source), piece.active)

        def rest(first: int, count: int) -> None:
            for piece in pieces(count, self.lanes, self.target.has_masked):
                copy_vector(Affine.of(first + piece.start), piece)

        self.terms.loop(lambda term: copy_vector(term, Piece(0, self.lanes, self.lanes)), step=self.lanes)
        self.terms.tail(self.lanes, rest)

    def lanes_of(self, place: Place, row: int) -> tuple[Operand, int] | None:
        """Return a vector that contains an element of a row of the tile, and the element's lane; other lanes hold other rows or
        terms. Return None if there is no such vector."""
        if self.scratch.dtype != "float32":
            return None
        if not self.interleaved:
            start = place.term + row * row_stride(self.terms.size, self.lanes)
            return lanes_of_row(self.b, self.scratch, start, place.term, self.terms.size, 1)
        first = row - row % self.lanes
        count = min(self.lanes, place.rows - first)
        if count & (count - 1) or count == 1:
            return None
        start = (place.tile * self.terms.size + place.term) * place.rows + first
        return self.b.load(self.scratch, start, count), row - first

    def load(self, place: Place, row: int) -> Operand:
        """Load one element of a row of the tile."""
        if self.interleaved:
            return self.b.load(self.scratch, (place.tile * self.terms.size + place.term) * place.rows + row)
        return self.b.load(self.scratch, place.term + row * row_stride(self.terms.size, self.lanes))


def row_stride(depth: int, lanes: int) -> int:
    """Return the stride of rows in elements: no multiple of many cache lines."""
    return (depth // lanes | 1) * lanes + (2 * lanes if depth // lanes % 2 else 0)
