"""The micro-kernel of products of bytes by vectors of columns, one element of K at a time, summed in 32 bits: a vector of b's
columns is widened to 16 bits once for all rows, and a byte of a row is in a scalar register (VWMACC.VX of RISC-V's vectors), or
is one of eight bytes that are widened together (SMLAL by element of 64-bit Arm).

Rows are read in place if nothing is left out, else the rows of a tile are packed (`pack_a`). b is constant; the contribution of
a's zero point to a sum depends on the column, and is part of the initial sums.
"""
from __future__ import annotations

import math
from collections.abc import Callable

from ....elements.affine import Axis
from ....loops.builder import Builder
from ....loops.ir import Operand, Type
from ....target.target import Target
from ...nest.tile_axis import Cut
from ...strategy import Constraints
from ..choice import MAX_PADDED_PLACES, ContractionChoice, places_with_conditions
from ..int8.byte_factors import Bytes, constant_bytes, is_one_run
from ..int8.pack_b import of_constants
from ..macro_kernel import Place
from ..pack_a import RowPacking, run_of
from ..pattern import Contraction
from ..register_tile import Tile
from ..row_lanes import in_all_lanes, lanes_of_row, steps_of_run
from .byte_step import ByteStep

GROUPS = ((2, 3), (1, 6))
"""Machine vectors in one vector of sums, and the rows of a tile that then fit the registers together with b's columns."""
LANES, LANE_TILES = 8, (Tile(5, 2), Tile(9, 1))
"""Lanes, and tiles that fit the registers, if bytes of a row are lanes: sums of a vector of columns take two vectors."""
MIN_PACKED_RUN_BYTES = 16
"""Minimum bytes of a run of packed rows: shorter runs take longer to copy than subtracting their zero points takes. Counted:
with 9 bytes everything took 15 % more instructions, with 16 bytes 14 % fewer."""
MAX_ROW_VECTORS = 3
"""Maximum number of these vectors for a single row: their sums fill the registers."""


def factors_of(pattern: Contraction, target: Target) -> Bytes | None:
    """Return the factors, if b is constant and has no zero point, and rows are read in place or in long runs; else None."""
    found = constant_bytes(pattern) if target.has_widening_products else None
    worthwhile = found and (is_direct(pattern, found) or packed_run(pattern, found) >= MIN_PACKED_RUN_BYTES)
    return found if worthwhile else None


def packed_run(pattern: Contraction, found: Bytes) -> int:
    """Return the bytes of a row that are copied at a time."""
    tested = [a for a in pattern.reduce.axes if any(w.index.coefficient(a) for w in pattern.reduce.where)]
    return math.prod(a.extent for a in run_of(found.x, pattern.reduce.axes, tested))


def tile_of(pattern: Contraction, target: Target) -> tuple[Tile, int]:
    """Return the register tile, and the lanes of its vectors, which are as wide as the columns fill."""
    if target.has_lane_products:
        tile = LANE_TILES[0] if pattern.n.extent > LANES else LANE_TILES[1]
        return Tile(min(tile.rows, pattern.rows), tile.vectors), LANES
    lanes = target.lanes(4)
    wide, rows = next((g for g in GROUPS if pattern.n.extent > lanes * (g[0] - 1)), GROUPS[-1])
    return Tile(min(rows, pattern.rows), 1), lanes * wide


def choose(pattern: Contraction, constraints: Constraints) -> ContractionChoice | None:
    """Return a choice for products of bytes by widened vectors of columns, or None."""
    target = constraints.target
    if not factors_of(pattern, target) or places_with_conditions(pattern) > MAX_PADDED_PLACES:
        return None
    tile, lanes = tile_of(pattern, target)
    return ContractionChoice(tile, lanes, "widen", "compiling", False)


class WideningMultiply(ByteStep):
    """One step of K: multiply a byte of each row by vectors of columns."""
    __slots__ = ()

    @staticmethod
    def of(b: Builder, pattern: Contraction, choice: ContractionChoice, target: Target, cut: Cut,
           _: Axis | None = None) -> WideningMultiply:
        found = factors_of(pattern, target)
        assert found
        packed = of_constants(b, pattern, found.y, (found.of_x, 0), cut, 1, group=1)
        (k,) = packed.panels.axes
        packing = None if is_direct(pattern, found) else RowPacking.of(
            b, pattern, found.x, (found.of_x, 0), choice.tile.rows, k.extent, k.extent, target)
        unroll = LANES if target.has_lane_products else 1
        if pattern.lines and not packing:
            unroll = steps_of_run(pattern.reduce.axes[-1].extent)
        return WideningMultiply(b, target, pattern, found.x, packed, packing, unroll=unroll)

    def row(self, place: Place, row: int) -> Callable[[int], Operand]:
        k, (buffer, start) = self.axes[-1], self.bytes_of(place.at, row)
        if self.target.has_lane_products and (found := lanes_of_row(
                self.b, buffer, start, place.at[k], k.extent, 1, LANES, self.reads_lines)):
            loaded, lane = found
            wide = self.b.op("cast", loaded, type=Type("int16", loaded.type.lanes))
            return lambda count: self.b.op("cast", in_all_lanes(self.b, wide, lane, count), type=Type("int32", count))
        word = self.b.op("cast", self.b.load(buffer, start), type=Type("int32"))
        return lambda lanes: self.b.splat(word, lanes)

    def accumulate(self, total: Operand, row: Operand, column: Operand) -> Operand:
        words = self.b.op("cast", column, type=total.type)
        return self.b.op("add", total, self.b.op("mul", row, words))


def is_direct(pattern: Contraction, found: Bytes) -> bool:
    """True if rows can be read in place: in line buffers, or in one run, of which nothing is left out."""
    is_run = is_one_run(pattern, found.x) and not (pattern.m and pattern.m in found.x.index[0].hidden)
    return pattern.lines is not None or is_run
