"""The micro-kernel of products of bytes, four at a time: sum of u8 * s8 (VNNI), or of s8 * s8 (SDOT), into i32.

The rows of a tile are packed as the bytes that the instruction takes, the sign bit of others flipped, which adds 128 or takes
it away. Rows that are such bytes, and one run of memory, are read where they lie. What flipping and the zero points add to a
sum depends on its column, and is in the sums' initial values, or on its row, where b has a zero point.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .....runtime.records import dataclass
from ....elements.affine import Affine, Axis, Range
from ....elements.expression import Apply, Buffer, Cast, Const, Expr, Load
from ....elements.traverse import computed
from ....loops.builder import Builder
from ....loops.ir import Operand, Type
from ....target.target import Target
from ...nest.constant_data import is_constant
from ...nest.loop_nest import At
from ...nest.padding_conditions import PaddingConditions
from ...nest.tile_axis import Cut, Piece
from ..macro_kernel import Place
from ..pack_a import RowPacking, run_of
from ..pack_b import Panels
from ..pattern import Contraction
from ..row_lanes import ROW_STEPS, in_all_lanes, lanes_of_row
from .vnni_pack_b import GROUP, BytePanels, at_run_time, of_constants

ALL_ROWS_L2_PART, GROUP_L2_PART = 2, 8
"""Rows that are packed at a time take at most this fraction (1/2, 1/8) of the second-level cache: all of them, or a group."""
MIN_TILES_OF_GROUP = 4
"""Register tiles of a group: with fewer, reading each panel for each tile is as well."""
MIN_PASSES = 4
"""Rows that make up for packing b at run time."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """The factors of a product of bytes: x less its zero point is a, y less its own is b; y is of int8."""
    x: Load
    of_x: int
    y: Load
    of_y: int


def byte(e: Expr) -> tuple[Load, int] | None:
    """(x, z) where e is x - z, in int32, and x is a byte."""
    match e:
        case Cast(Load() as x, "int32", False) if x.dtype in ("int8", "uint8"):
            return x, 0
        case Apply("sub", (inner, Const(z))) if (found := byte(inner)) and not found[1]:
            return found[0], int(z)
    return None


def bytes_of(pattern: Contraction) -> Bytes | None:
    """The factors, if a and b are products for `dot4`: a's bytes lie along K, zero points are bytes themselves, and b is
    constant, or worth being packed at run time."""
    a, b = byte(pattern.a), byte(pattern.b)
    if not a or not b or b[0].dtype != "int8":
        return None
    x, of_x = a
    y, of_y = b
    lowest = -128 if x.dtype == "int8" else 0
    plain = not computed(x.index) and x.index[0].coefficient(pattern.reduce.axes[-1]) == 1
    if not plain or not lowest <= of_x < lowest + 256 or not -128 <= of_y < 128 or (pattern.inside and of_y):
        return None
    return Bytes(x, of_x, y, of_y) if is_constant(y) or can_pack(pattern, y) else None


def can_pack(pattern: Contraction, y: Load) -> bool:
    """Whether panels can be packed at run time, and that pays."""
    *outer, last = pattern.reduce.axes
    whole = not outer or last.extent % GROUP == 0
    return whole and not pattern.inside and not computed(y.index) and pattern.passes >= MIN_PASSES


def can_pack_all_rows(pattern: Contraction, target: Target) -> bool:
    """Whether the rows of a product with constants can be packed all at once, and stay in the second-level cache beside a
    panel: so that a panel that is read once passes all of them."""
    plain = is_constant(pattern.b) and not (pattern.batch or pattern.inside or pattern.nest.where)
    return plain and pattern.passes * pattern.depth <= target.l2_bytes // ALL_ROWS_L2_PART


def rows_of_group(pattern: Contraction, tile: int, target: Target) -> int | None:
    """How many rows, of which all groups have as many, are packed together where all cannot be, so that a panel, once read,
    passes that many; None where they are too few, or not all alike."""
    if pattern.m is None or pattern.outer or pattern.reduce.where or pattern.nest.where:
        return None
    most = min(target.l2_bytes // GROUP_L2_PART // pattern.depth, pattern.rows // 2)
    rows = next((r for r in range(most, 0, -1) if pattern.rows % r == 0), 0)
    return rows if rows >= MIN_TILES_OF_GROUP * tile else None


def is_direct(pattern: Contraction, found: Bytes, group: int) -> bool:
    """Whether rows can be read where they lie: they have whole groups, in one run, of which nothing is left out."""
    x, axes = found.x, pattern.reduce.axes
    m = pattern.m
    plain = x.dtype == "int8" and not found.of_y and not pattern.reduce.where and not (m and m in x.index[0].hidden)
    return plain and pattern.depth % group == 0 and run_of(x, axes, ()) == axes


def prefixes(pattern: Contraction, flat: Axis) -> tuple[Range, ...] | None:
    """The conditions on b alone as bounds of K, flat: how far it goes changes evenly along an outer axis. None where that
    cannot be said."""
    result, (outermost, *_) = [], pattern.reduce.axes
    for w in pattern.inside:
        others = [a for a in w.index.axes if a is not outermost]
        if len(others) != 1 or not w.index.coefficient(outermost):
            return None
        (outer,) = others
        holds = [[w.substitute({outer: Affine.of(i), outermost: Affine.of(j)}).known for j in range(outermost.extent)]
                 for i in range(outer.extent)]
        counts = [row.count(True) for row in holds]
        step = counts[1] - counts[0]
        if any(not all(row[:n]) or n != counts[0] + i * step for i, (row, n) in enumerate(zip(holds, counts))):
            return None
        size = pattern.depth // outermost.extent
        reach = Affine.of(flat) - Affine.of(outer) * (step * size)
        result.append(Range(reach, reach.bounds[0], counts[0] * size))
    return tuple(result)


@dataclass(frozen=True, slots=True)
class Dot4:
    """One step of K: total += dot product of four packed bytes with four of b, in each lane."""
    b: Builder
    target: Target
    pattern: Contraction
    cut: Cut
    packed: BytePanels
    x: Load
    rows: RowPacking | None
    """None where rows are read as they lie."""
    conditions: PaddingConditions
    group: int = GROUP
    packs_many_rows: bool = False
    """Whether all rows, or those of a group, are packed, one after the other; else those of a tile are."""
    groups: Axis | None = None

    @staticmethod
    def of(b: Builder, pattern: Contraction, rows: int, target: Target, cut: Cut, packs_many_rows: bool = False,
           groups: Axis | None = None, group: int = GROUP) -> Dot4:
        """For tiles of `rows` rows, and steps of `group` elements."""
        found = bytes_of(pattern)
        assert found
        signed, is_signed = target.dot_product == "s8s8", found.x.dtype == "int8"
        stored = found.of_x + 128 * (is_signed - signed)
        zero_points = stored, found.of_y
        if is_constant(found.y):
            packed = of_constants(b, pattern, found.y, zero_points, cut, group, group=group)
        else:
            packed = at_run_time(b, pattern, found.y, zero_points, cut, target)
        (k,), costs = packed.panels.axes, target.costs
        packed_rows = pattern.passes // (groups.extent if groups else 1) if packs_many_rows else rows
        stride = k.extent + costs.cache_line_bytes * (packs_many_rows and k.extent % costs.few_sets_stride_bytes == 0)
        row_packing = None if signed and is_direct(pattern, found, group) else RowPacking.of(
            b, pattern, found.x, (found.of_x, found.of_y), packed_rows, k.extent, stride, not signed, target, signed=signed)
        conditions = PaddingConditions((), prefixes(pattern, k) or (), (), frozenset())
        return Dot4(b, target, pattern, cut, packed, found.x, row_packing, conditions, group, packs_many_rows, groups)

    @property
    def unroll(self) -> int:
        """Steps whose factors of a row are loaded at once."""
        return ROW_STEPS if self.target.has_lane_products else 1

    @property
    def test_cycles(self) -> float | None:
        return self.rows.test_cycles if self.rows else None

    @property
    def panels(self) -> Panels:
        return self.packed.panels

    @property
    def fill(self) -> Callable[[At], None] | None:
        """What packs b for the batch at a place, where it is not constant."""
        fill = self.packed.fill
        return None if fill is None else lambda at: fill(at, Affine(), self.cut)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """K, flat and filled up to a multiple of four."""
        return self.panels.axes

    def pack(self, place: Place) -> None:
        """Pack the rows of a tile."""
        if self.rows:
            replace(self.rows, first=self.packed_rows(place.at, 0)).pack(place.at, place.rows)

    def packed_rows(self, at: At, row: int) -> Affine:
        """Where a row of the tile at a place is among those that are packed."""
        number = Affine()
        if self.packs_many_rows:
            for axis in (*self.pattern.outer, *([self.pattern.m] if self.pattern.m else [])):
                number = number * axis.extent + at[axis]
        if self.groups:
            number -= Affine.of(self.groups) * (self.pattern.rows // self.groups.extent)
        return number + row

    def initial(self, at: At, row: int, piece: Piece) -> Operand:
        value = self.b.load(self.packed.initial, self.packed.start(at, at[self.pattern.n]), piece.lanes)
        if self.rows and self.rows.terms:
            term = self.b.load(self.rows.terms, self.packed_rows(at, 0 if self.packs_many_rows else row))
            value = self.b.op("add", value, self.b.splat(term, piece.lanes))
        return value

    def row(self, place: Place, row: int) -> Callable[[int], Operand]:
        (k,) = self.axes
        buffer, start = self.place_of(place.at, row)
        if self.target.has_lane_products and not self.conditions.bounds and (found := lanes_of_row(
                self.b, buffer, start, place.at[k], k.extent, GROUP)):
            return lambda count: self.bytes(in_all_lanes(self.b, *found, count))
        word = self.b.op("bits", self.b.load(buffer, start, GROUP), type=Type("int32"))
        return lambda count: self.bytes(self.b.splat(word, count))

    def place_of(self, at: At, row: int) -> tuple[Buffer, Affine]:
        """Where the four bytes of a row of the tile are."""
        (k,) = self.axes
        if self.rows:
            return self.rows.buffer, at[k] + self.packed_rows(at, row) * self.rows.stride
        m, start = self.pattern.m, {a: Affine() for a in self.pattern.reduce.axes}
        here = {**at, **({m: at[m] + row} if m else {}), **start}
        return self.x.buffer, self.x.index[0].substitute(here) + at[k]

    def bytes(self, words: Operand) -> Operand:
        return self.b.op("bits", words, type=Type("int8", GROUP * words.type.lanes))

    def accumulate(self, total: Operand, row: Operand, column: Operand) -> Operand:
        return self.b.op(self.target.dot4, total, row, column, type=total.type)
