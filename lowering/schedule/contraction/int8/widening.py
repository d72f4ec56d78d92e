"""The micro-kernel of products of bytes by vectors of columns, one element of K at a time, summed in 32 bits: a vector of b's
columns is widened to 16 bits once for all rows, and a byte of a row is a scalar register (VWMACC.VX of RISC-V's vectors), or
one of eight that are widened together (SMLAL by element of 64-bit Arm).

Rows are read where they lie where nothing is left out, else those of a tile are packed (`pack_a`). b is constant; what the zero
point of a adds to a sum depends on its column, and is in the sums' initial values.
"""
from __future__ import annotations

import math
from collections.abc import Callable

from .....runtime.records import dataclass
from ....elements.affine import Affine, Axis
from ....elements.expression import Buffer, Load
from ....loops.builder import Builder
from ....loops.ir import Literal, Operand, Type
from ....target.target import Target
from ...nest.constant_data import is_constant
from ...nest.loop_nest import At
from ...nest.padding_conditions import PaddingConditions
from ...nest.tile_axis import Cut, Piece
from ..macro_kernel import Place
from ..pack_a import RowPacking, run_of
from ..pack_b import Panels
from ..pattern import Contraction
from ..register_tile import Tile
from ..row_lanes import in_all_lanes, lanes_of_row
from .vnni import Bytes, bytes_of
from .vnni_pack_b import BytePanels, of_constants

GROUPS = ((2, 3), (1, 6))
"""Vectors of the machine that are one here, and the rows of a tile that then fit the registers beside b's columns."""
LANES, LANE_TILES = 8, (Tile(5, 2), Tile(9, 1))
"""The same where bytes of a row are lanes: sums of a vector of columns are two of the machine's. Tiles that fit registers."""
MIN_PACKED_RUN_BYTES = 16
"""Rows that lie in shorter runs take longer to copy than their zero points to take away. Counted: with 9 bytes all took 15 %
more instructions, with 16 bytes 14 % fewer."""
MAX_ROW_VECTORS = 3
"""Such vectors of a single row, at most: their sums fill the registers."""


def factors_of(pattern: Contraction, target: Target) -> Bytes | None:
    """The factors, if b is constant and has no zero point."""
    if not target.has_widening_products or pattern.reduce.dtype != "int32" or pattern.inside:
        return None
    found = bytes_of(pattern)
    if found is None or found.of_y or not is_constant(found.y):
        return None
    return found if is_direct(pattern, found) or packed_run(pattern, found) >= MIN_PACKED_RUN_BYTES else None


def packed_run(pattern: Contraction, found: Bytes) -> int:
    """Bytes of a row that are copied at a time."""
    tested = [a for a in pattern.reduce.axes if any(w.index.coefficient(a) for w in pattern.reduce.where)]
    return math.prod(a.extent for a in run_of(found.x, pattern.reduce.axes, tested))


def tile_of(pattern: Contraction, target: Target) -> tuple[Tile, int]:
    """The register tile, and the lanes of its vectors: as wide as the columns fill."""
    if target.has_lane_products:
        tile = LANE_TILES[0] if pattern.n.extent > LANES else LANE_TILES[1]
        return Tile(min(tile.rows, pattern.rows), tile.vectors), LANES
    lanes = target.lanes(4)
    wide, rows = next((g for g in GROUPS if pattern.n.extent > lanes * (g[0] - 1)), GROUPS[-1])
    return Tile(min(rows, pattern.rows), 1), lanes * wide


@dataclass(frozen=True, slots=True)
class WideningMultiply:
    """One step of K: the product of a byte of each row and of columns."""
    b: Builder
    target: Target
    pattern: Contraction
    x: Load
    packed: BytePanels
    rows: RowPacking | None
    """None where rows are read as they lie."""
    conditions: PaddingConditions
    group: int = 1

    @staticmethod
    def of(b: Builder, pattern: Contraction, rows: int, target: Target, cut: Cut) -> WideningMultiply:
        """For tiles of `rows` rows."""
        found = factors_of(pattern, target)
        assert found
        packed = of_constants(b, pattern, found.y, (found.of_x, 0), cut, 1, group=1)
        (k,) = packed.panels.axes
        packing = None if is_direct(pattern, found) else RowPacking.of(
            b, pattern, found.x, (found.of_x, 0), rows, k.extent, k.extent, False, target)
        return WideningMultiply(b, target, pattern, found.x, packed, packing, PaddingConditions((), (), (), frozenset()))

    @property
    def unroll(self) -> int:
        """Steps whose bytes of a row are loaded at once."""
        return LANES if self.target.has_lane_products else 1

    @property
    def panels(self) -> Panels:
        return self.packed.panels

    @property
    def axes(self) -> tuple[Axis, ...]:
        """K, flat."""
        return self.panels.axes

    @property
    def test_cycles(self) -> float | None:
        return self.rows.test_cycles if self.rows else None

    def pack(self, place: Place) -> None:
        """Pack the rows of a tile."""
        if self.rows:
            self.rows.pack(place.at, place.rows)

    def initial(self, at: At, row: int, piece: Piece) -> Operand:
        if self.packed.is_zero:
            return Literal(0, Type("int32", piece.lanes))
        return self.b.load(self.packed.initial, self.packed.start(at, at[self.pattern.n]), piece.lanes)

    def row(self, place: Place, row: int) -> Callable[[int], Operand]:
        (k,) = self.axes
        buffer, start = self.place_of(place.at, row)
        if self.target.has_lane_products and (found := lanes_of_row(self.b, buffer, start, place.at[k], k.extent, 1, LANES)):
            loaded, lane = found
            wide = self.b.op("cast", loaded, type=Type("int16", loaded.type.lanes))
            return lambda count: self.b.op("cast", in_all_lanes(self.b, wide, lane, count), type=Type("int32", count))
        word = self.b.op("cast", self.b.load(buffer, start), type=Type("int32"))
        return lambda lanes: self.b.splat(word, lanes)

    def place_of(self, at: At, row: int) -> tuple[Buffer, Affine]:
        """Where a byte of a row of the tile is."""
        (k,), m = self.axes, self.pattern.m
        if self.rows:
            return self.rows.buffer, at[k] + row * self.rows.stride
        here = {**at, **({m: at[m] + row} if m else {}), **{a: Affine() for a in self.pattern.reduce.axes}}
        return self.x.buffer, self.x.index[0].substitute(here) + at[k]

    def accumulate(self, total: Operand, row: Operand, column: Operand) -> Operand:
        words = self.b.op("cast", column, type=total.type)
        return self.b.op("add", total, self.b.op("mul", row, words))


def is_direct(pattern: Contraction, found: Bytes) -> bool:
    """Whether rows can be read where they lie: in one run, of which nothing is left out."""
    x, m = found.x, pattern.m
    plain = not pattern.reduce.where and not (m and m in x.index[0].hidden)
    return plain and run_of(x, pattern.reduce.axes, ()) == pattern.reduce.axes

