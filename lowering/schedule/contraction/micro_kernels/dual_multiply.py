"""The micro-kernel of products of bytes by pairs of 16 bits (SMLAD of Arm's DSP extension). Four bytes are read as one word and
widened to two pairs, bytes 0 and 2 and bytes 1 and 3 (SXTB16), so that the pairs of both factors match.

Rows are widened once, before all columns (`pair_rows`), if that takes fewer instructions; or in each register tile, as they are
read in place: then nothing is copied, and loop bounds skip padding, as in `micro_kernels.multiply`. Weights are packed by
columns at compile time, as bytes, which each step widens, or as pairs, for twice the memory.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .....runtime.records import dataclass
from ....elements.affine import Axis
from ....loops.builder import Builder
from ....loops.ir import Literal, Operand, Type
from ....target.target import Target
from ...nest.padding_conditions import PaddingConditions
from ...nest.tile_axis import Cut
from ...strategy import Constraints
from ..choice import ContractionChoice, in_pairs
from ..int8.byte_factors import GROUP, Bytes, constant_bytes, has_words
from ..int8.pack_b import of_constants
from ..int8.pair_rows import WidenedRows
from ..int8.word_panels import PAIRS
from ..macro_kernel import Place
from ..pattern import Contraction
from ..register_tile import Tile
from .byte_step import NO_CONDITIONS, ByteStep

INT32, FOUR_BYTES = Type("int32"), Type("int8", GROUP)
WIDEN_INSTRUCTIONS, STAGE_INSTRUCTIONS = 2, 5
"""Instructions for four bytes of a row: to widen them in each tile, and to widen them before all columns, with the store and a
share of the loop. Counted."""
UNROLLED_STEPS, UNROLLED_WIDE_STEPS = 8, 16
"""Steps in an iteration of the loop over K. Measured: with weights as bytes, four took 1 to 4 % more instructions, two 2 to 15
%; with weights as pairs, eight took 2 to 10 % more."""


def factors_of(pattern: Contraction, target: Target) -> Bytes | None:
    """Return the factors, or None if this micro-kernel does not apply, as for weights that are kept as four bits."""
    found = constant_bytes(pattern) if target.has_dual_multiply and target.vector_bytes == 1 else None
    if found is None or pattern.reduce.axes[-1] in found.x.index[0].hidden:
        return None
    return None if in_pairs(pattern, target) else found


def tile_of(pattern: Contraction, target: Target) -> Tile:
    """Return a tile that fits the registers."""
    columns = target.costs.dual_tile_columns if pattern.rows > 1 else target.costs.dual_row_columns
    return Tile(min(target.costs.dual_tile_rows, pattern.rows), min(columns, pattern.n.extent))


def is_staged(pattern: Contraction, tile: Tile) -> bool:
    """True if rows are widened before all columns, because the work that this saves in each tile makes up for it. For a single
    row the saving is an eighth of its work, and costs twice the row's memory."""
    if pattern.tested or (pattern.rows == 1 and has_words(pattern)):
        return False
    columns = -(-pattern.n.extent // tile.vectors)
    return not has_words(pattern) or columns * WIDEN_INSTRUCTIONS > STAGE_INSTRUCTIONS


def choose(pattern: Contraction, constraints: Constraints) -> ContractionChoice | None:
    """Return a choice for products of bytes by pairs of 16 bits, with a tile that fits the registers, or None."""
    target = constraints.target
    tile = tile_of(pattern, target)
    if not factors_of(pattern, target):
        return None
    choice = ContractionChoice(tile, 1, "dual", "compiling", False, wide_weights=constraints.weights == "int16")
    if is_staged(pattern, tile):
        return replace(choice, step="pairs")
    return choice if has_words(pattern) else None


@dataclass(frozen=True, slots=True)
class DualMultiply(ByteStep):
    """One step of K: four products, two at a time. Rows that are read in place are widened here, and their zero point is
    subtracted."""
    zero_point: int = 0

    @staticmethod
    def of(b: Builder, pattern: Contraction, choice: ContractionChoice, target: Target, cut: Cut,
           _: Axis | None = None) -> DualMultiply:
        found = factors_of(pattern, target)
        assert found
        packed = of_constants(b, pattern, found.y, (0, 0), cut, words=PAIRS.lanes if choice.wide_weights else 1)
        rows, conditions = None, PaddingConditions.of(pattern.reduce, pattern.m, pattern.n)
        if is_staged(pattern, choice.tile):
            (k,) = packed.panels.axes
            rows = WidenedRows.in_pairs(b, pattern, found.x, found.of_x, choice.tile.rows, k.extent, target)
        steps = UNROLLED_WIDE_STEPS if choice.wide_weights else UNROLLED_STEPS
        return DualMultiply(b, target, pattern, found.x, packed, rows, NO_CONDITIONS if rows else conditions, GROUP, steps,
                            zero_point=found.of_x)

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self.panels.axes if self.rows else self.pattern.reduce.axes

    def row(self, place: Place, row: int) -> Callable[[int], Operand]:
        if isinstance(self.rows, WidenedRows):
            pairs = self.rows.load(place.at[self.axes[0]], row)
        else:
            (i,) = self.x.index
            at = self.pattern.row_at(place.at, row)
            pairs = self.widened(self.b.load(self.x.buffer, i.substitute(at), GROUP), -self.zero_point)
        return lambda _: pairs

    def column(self, weights: Operand) -> Operand:
        """Return the pairs of a column for a step."""
        return weights if weights.type == PAIRS else self.widened(self.b.op("bits", weights, type=FOUR_BYTES), 0)

    def widened(self, four: Operand, offset: int) -> Operand:
        return self.b.op("pairs", four, Literal(offset, INT32), type=PAIRS)

    def accumulate(self, total: Operand, row: Operand, column: Operand) -> Operand:
        return self.b.op("dot_pairs", total, row, self.column(column), type=total.type)
