"""The micro-kernel of products of bytes on processors that multiply one number at a time: bytes are widened as they are loaded.
If padding leaves nothing out, the zero point is not subtracted from each element of a row: its contribution to a sum depends on
the column, and is part of the sum's initial value, with the bias.
"""
from __future__ import annotations

from collections.abc import Callable

from .....runtime.records import dataclass
from ....elements.affine import Axis
from ....elements.traverse import computed
from ....loops.builder import Builder
from ....loops.ir import Literal, Operand, Type
from ....target.target import Target
from ...nest.constant_data import is_constant
from ...nest.padding_conditions import PaddingConditions
from ...nest.tile_axis import Cut
from ..choice import ContractionChoice
from ..int8.byte_factors import Bytes, byte
from ..int8.pack_b import of_constants
from ..macro_kernel import Place
from ..pattern import Contraction
from ..row_lanes import MAX_RUN_STEPS
from .byte_step import ByteStep

INT32 = Type("int32")
UNROLLED_STEPS = 4
"""Steps in an iteration of the loop over K. Chosen."""


def factors_of(pattern: Contraction, target: Target) -> Bytes | None:
    """Return the factors, if b is constant, of int8 and without a zero point; else None."""
    a, b = byte(pattern.a), byte(pattern.b)
    if target.vector_bytes > 1 or not a or not b or pattern.reduce.dtype != "int32" or pattern.inside or pattern.tested:
        return None
    found = Bytes(*a, *b)
    plain = found.y.dtype == "int8" and not found.of_y and is_constant(found.y) and not computed(found.x.index)
    return found if plain else None


@dataclass(frozen=True, slots=True)
class ByteMultiply(ByteStep):
    """One step of one element of K. `offset` is added to each element of a row."""
    offset: int = 0

    @staticmethod
    def of(b: Builder, pattern: Contraction, _: ContractionChoice, target: Target, cut: Cut,
           groups: Axis | None = None) -> ByteMultiply:
        found = factors_of(pattern, target)
        assert found
        folded = 0 if pattern.reduce.where else found.of_x
        packed = of_constants(b, pattern, found.y, (folded, 0), cut, 1, group=1)
        run = pattern.reduce.axes[-1].extent
        unroll = run if pattern.lines and run <= MAX_RUN_STEPS else UNROLLED_STEPS
        conditions = PaddingConditions.of(pattern.reduce, pattern.m, pattern.n)
        return ByteMultiply(b, target, pattern, found.x, packed, None, conditions, 1, unroll, offset=folded - found.of_x)

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self.pattern.reduce.axes

    def row(self, place: Place, row: int) -> Callable[[int], Operand]:
        at = self.pattern.row_at(place.at, row)
        value = self.widened(self.b.load(self.x.buffer, self.x.index[0].substitute(at)))
        if self.offset:
            value = self.b.op("add", value, Literal(self.offset, INT32))
        return lambda _: value

    def widened(self, x: Operand) -> Operand:
        return self.b.op("cast", x, type=INT32)

    def accumulate(self, total: Operand, row: Operand, column: Operand) -> Operand:
        return self.b.op("add", total, self.b.op("mul", row, self.widened(column)))
