"""The micro-kernel of products of bytes, four at a time: sum of u8 * s8 (VNNI), or of s8 * s8 (SDOT), into i32.

The rows of a tile are packed with the signedness that the instruction takes: other bytes have their sign bit flipped, which
adds or subtracts 128. Rows that already have this signedness, and are one run of memory, are read in place. The contribution of
flipping and of the zero points to a sum depends on its column, and is part of the initial sums; if b has a zero point, part of
it depends on the row.
"""
from __future__ import annotations

from collections.abc import Callable

from ....elements.affine import Axis
from ....loops.builder import Builder
from ....loops.ir import Operand, Type
from ....target.target import Target
from ...nest.constant_data import is_constant
from ...nest.loop_nest import At
from ...nest.padding_conditions import PaddingConditions
from ...nest.tile_axis import Cut, Piece
from ...strategy import Constraints
from ..choice import (
    ContractionChoice,
    aliased,
    code_of,
    has_byte_products,
    lanes_of_sums,
    machine,
    may_repeat,
    packing_of,
)
from ..int8.byte_factors import GROUP, Bytes, bytes_of, is_one_run, prefixes
from ..int8.pack_b import at_run_time, of_constants
from ..macro_kernel import Place
from ..pack_a import RowPacking
from ..pattern import Contraction
from ..prefetch import is_worthwhile
from ..register_tile import choose_tile
from ..row_lanes import ROW_STEPS, in_all_lanes, lanes_of_row, steps_of_run
from .byte_step import ByteStep

ALL_ROWS_L2_PART, GROUP_L2_PART = 2, 8
"""Divisors: rows packed at a time, all of them or a group, take at most this fraction (1/2, 1/8) of the second-level cache."""
MIN_TILES_OF_GROUP = 4
"""Minimum register tiles of a group: with fewer, reading each panel for each tile is as good."""
DOT8_GROUP = 8
"""Elements of K in a step of `dot8`, which has the same operands."""
MAX_INT8_TERMS_FOR_LESS_CODE = 1 << 25
"""Maximum terms of a product for which code size matters; a larger product has the fastest tile."""


# ---- choice ----------------------------------------------------------------------------------------------------------
def choose(pattern: Contraction, constraints: Constraints) -> ContractionChoice | None:
    """Return a choice for products of bytes, four at a time in each lane, or None."""
    return by_packed_rows(pattern, "dot4", 1, constraints) if has_byte_products(pattern, constraints.target) else None


def by_packed_rows(pattern: Contraction, step: str, row_bytes: int, constraints: Constraints) -> ContractionChoice:
    """Return a choice for sums of several products in each lane, if an element of a packed row has `row_bytes` bytes."""
    target = constraints.target
    lanes, packing, seen = lanes_of_sums(pattern, target), packing_of(pattern), machine(pattern, step, target)
    much = pattern.passes * pattern.n.extent * pattern.depth > MAX_INT8_TERMS_FOR_LESS_CODE
    prices, code = (target.costs.int8_tile_prices, None) if much else (target.costs.tile_prices, code_of(pattern))
    tile = choose_tile(
        pattern.rows, pattern.n.extent, lanes, seen, aliased(pattern, target), prices, code, may_repeat(pattern, lanes)
    )
    large = not constraints.by_rows and pattern.n.extent * pattern.depth > target.l2_bytes // 3
    if large and not can_pack_all_rows(pattern, row_bytes, target):
        group = rows_of_group(pattern, tile.rows, row_bytes, target)
        return ContractionChoice(tile, lanes, step, packing, group is not None, group=group)
    soon = packing == "compiling" and is_worthwhile(pattern, tile.rows, target)
    return ContractionChoice(tile, lanes, step, packing, large and pattern.passes > tile.rows, None, large and soon)


def can_pack_all_rows(pattern: Contraction, row_bytes: int, target: Target) -> bool:
    """True if the rows of a product with constants can be packed all at once, and stay in the second-level cache beside a
    panel, so that a panel is read once for all rows."""
    plain = is_constant(pattern.b) and not (pattern.batch or pattern.inside or pattern.nest.where)
    return plain and pattern.passes * pattern.depth * row_bytes <= target.l2_bytes // ALL_ROWS_L2_PART


def rows_of_group(pattern: Contraction, tile: int, row_bytes: int, target: Target) -> int | None:
    """Return the number of rows of a group that are packed together if all rows cannot be, so that a panel is read once for a
    group. All groups have equally many rows. Return None if a group would be too small, or rows are not all alike."""
    if pattern.m is None or pattern.outer or pattern.reduce.where or pattern.nest.where:
        return None
    most = min(target.l2_bytes // GROUP_L2_PART // (pattern.depth * row_bytes), pattern.rows // 2)
    rows = next((r for r in range(most, 0, -1) if pattern.rows % r == 0), 0)
    return rows if rows >= MIN_TILES_OF_GROUP * tile else None


def is_direct(pattern: Contraction, found: Bytes, group: int) -> bool:
    """True if rows can be read in place: they have whole groups, in one run, of which nothing is left out."""
    x, m = found.x, pattern.m
    plain = x.dtype == "int8" and not found.of_y and not (m and m in x.index[0].hidden)
    whole = pattern.reduce.axes[-1].extent if pattern.lines else pattern.depth
    return plain and whole % group == 0 and (pattern.lines is not None or is_one_run(pattern, x))


def step_of(pattern: Contraction, found: Bytes, target: Target, group: int) -> int:
    """Return the number of elements to whose multiple K is padded: a group, or two groups that are loaded together."""
    pairs = target.has_lane_products and group == GROUP < pattern.depth and not is_direct(pattern, found, group)
    return 2 * group if pairs else group


# ---- a step ----------------------------------------------------------------------------------------------------------
class Dot4(ByteStep):
    """One step of K: total += dot product of four bytes of a row with four of b, in each lane."""
    __slots__ = ()

    @staticmethod
    def of(b: Builder, pattern: Contraction, choice: ContractionChoice, target: Target, cut: Cut,
           groups: Axis | None = None) -> Dot4:
        found = bytes_of(pattern)
        assert found
        signed, is_signed = target.dot_product == "s8s8", found.x.dtype == "int8"
        stored = found.of_x + 128 * (is_signed - signed)
        zero_points = stored, found.of_y
        group = GROUP if choice.step == "dot4" else DOT8_GROUP
        if is_constant(found.y):
            packed = of_constants(b, pattern, found.y, zero_points, cut, step_of(pattern, found, target, group), group=group)
        else:
            packed = at_run_time(b, pattern, found.y, zero_points, cut, target)
        (k,), costs = packed.panels.axes, target.costs
        packs_many_rows = choice.columns_first
        packed_rows = pattern.passes // (groups.extent if groups else 1) if packs_many_rows else choice.tile.rows
        stride = k.extent + costs.cache_line_bytes * (packs_many_rows and k.extent % costs.few_sets_stride_bytes == 0)
        row_packing = None if signed and is_direct(pattern, found, group) else RowPacking.of(
            b, pattern, found.x, (found.of_x, found.of_y), packed_rows, k.extent, stride, target,
            "int8" if signed else "uint8")
        conditions = PaddingConditions((), () if pattern.lines else prefixes(pattern, k) or (), (), frozenset())
        unroll = ROW_STEPS if target.has_lane_products else 1
        if pattern.lines and not row_packing:
            unroll = steps_of_run(pattern.reduce.axes[-1].extent // group)
        return Dot4(b, target, pattern, found.x, packed, row_packing, conditions, group, unroll, packs_many_rows, groups)

    def initial(self, at: At, row: int, piece: Piece) -> Operand:
        value = self.b.load(self.packed.initial, self.packed.start(at, at[self.pattern.n]), piece.lanes)
        if self.rows and self.rows.terms:
            term = self.b.load(self.rows.terms, self.packed_row(at, 0 if self.packs_many_rows else row))
            value = self.b.op("add", value, self.b.splat(term, piece.lanes))
        return value

    def row(self, place: Place, row: int) -> Callable[[int], Operand]:
        k = self.axes[-1]
        buffer, start = self.bytes_of(place.at, row)
        if self.target.has_lane_products and not self.conditions.bounds and (found := lanes_of_row(
                self.b, buffer, start, place.at[k], k.extent, GROUP, beyond=self.reads_lines)):
            return lambda count: self.as_bytes(in_all_lanes(self.b, *found, count))
        word = self.b.op("bits", self.b.load(buffer, start, GROUP), type=Type("int32"))
        return lambda count: self.as_bytes(self.b.splat(word, count))

    def as_bytes(self, words: Operand) -> Operand:
        return self.b.op("bits", words, type=Type("int8", GROUP * words.type.lanes))

    def accumulate(self, total: Operand, row: Operand, column: Operand) -> Operand:
        return self.b.op(self.target.dot4, total, row, column, type=total.type)
