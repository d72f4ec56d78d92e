"""The micro-kernel of products of bytes as 16-bit numbers, two at a time: sum of s16 * s16 into i32 (VPMADDWD). It is for
vector machines that do not multiply bytes.

The rows of a tile are packed as 16-bit numbers less their zero point. b is constant. If several tiles read b, it is widened at
compile time, for twice its memory: MobileNets, ResNet-50 and products of 512 and 1024 took 2 to 12 % less with AVX2 and
AVX-512, 6 to 9 % less with SSE2. Else b is widened as it is loaded, since memory is the bottleneck.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ....elements.affine import Axis
from ....loops.builder import Builder
from ....loops.ir import Operand, Type
from ....target.target import Target
from ...nest.constant_data import is_constant
from ...nest.padding_conditions import PaddingConditions
from ...nest.tile_axis import Cut
from ...strategy import Constraints
from ..choice import MAX_PADDED_PLACES, ContractionChoice, lanes_of_sums, places_with_conditions
from ..int8.byte_factors import Bytes, bytes_of, prefixes
from ..int8.int16_panels import PAIR, of_constants
from ..macro_kernel import Place
from ..pack_a import RowPacking
from ..pattern import Contraction
from .byte_step import ByteStep
from .dot4 import by_packed_rows

ROW_BYTES = 2
"""Bytes of an element of a packed row."""


def factors_of(pattern: Contraction, target: Target) -> Bytes | None:
    """Return the factors, if b is constant and the target multiplies pairs of int16; else None."""
    if not target.multiplies_int16_pairs or pattern.reduce.dtype != "int32" or lanes_of_sums(pattern, target) < 4:
        return None
    found = bytes_of(pattern)
    return found if found and is_constant(found.y) and places_with_conditions(pattern) <= MAX_PADDED_PLACES else None


def choose(pattern: Contraction, constraints: Constraints) -> ContractionChoice | None:
    """Return a choice for products of bytes as 16-bit numbers, two at a time in each lane, or None."""
    if not factors_of(pattern, constraints.target):
        return None
    choice = by_packed_rows(pattern, "dot2", ROW_BYTES, constraints)
    return replace(choice, wide_weights=pattern.passes > choice.tile.rows)


class Dot2(ByteStep):
    """One step of K: total += dot product of two numbers of a row with two of b, in each lane."""
    __slots__ = ()

    @staticmethod
    def of(b: Builder, pattern: Contraction, choice: ContractionChoice, target: Target, cut: Cut,
           groups: Axis | None = None) -> Dot2:
        found, costs = factors_of(pattern, target), target.costs
        assert found
        packed = of_constants(b, pattern, found, cut, choice.wide_weights)
        (k,) = packed.panels.axes
        rows = pattern.passes // (groups.extent if groups else 1) if choice.columns_first else choice.tile.rows
        is_crowded = choice.columns_first and k.extent * ROW_BYTES % costs.few_sets_stride_bytes == 0
        stride = k.extent + is_crowded * costs.cache_line_bytes // ROW_BYTES
        packing = RowPacking.of(b, pattern, found.x, (found.of_x, 0), rows, k.extent, stride, target, "int16")
        conditions = PaddingConditions((), prefixes(pattern, k) or (), (), frozenset())
        return Dot2(b, target, pattern, found.x, packed, packing, conditions, PAIR, 1, choice.columns_first, groups)

    def row(self, place: Place, row: int) -> Callable[[int], Operand]:
        buffer, start = self.bytes_of(place.at, row)
        pair = self.b.op("bits", self.b.load(buffer, start, PAIR), type=Type("int32"))
        return lambda lanes: self.b.op("bits", self.b.splat(pair, lanes), type=Type("int16", PAIR * lanes))

    def accumulate(self, total: Operand, row: Operand, column: Operand) -> Operand:
        return self.b.op("dot2", total, row, column, type=total.type)
