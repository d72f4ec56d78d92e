"""The micro-kernel of products of bytes on processors that multiply one number at a time: bytes are widened as they are loaded.
Where padding leaves nothing out, the zero point of a row's elements is not taken away from each: what it adds to a sum depends
on the column, and is in the sum's initial value, with the bias.
"""
from __future__ import annotations

from collections.abc import Callable

from .....runtime.records import dataclass
from ....elements.affine import Axis
from ....elements.expression import Load
from ....elements.traverse import computed
from ....loops.builder import Builder
from ....loops.ir import Literal, Operand, Type
from ....target.target import Target
from ...nest.constant_data import is_constant
from ...nest.padding_conditions import PaddingConditions
from ...nest.tile_axis import Cut
from ..choice import ContractionChoice
from ..int8.byte_factors import byte
from ..int8.pack_b import of_constants
from ..macro_kernel import Place
from ..pattern import Contraction
from ..row_lanes import MAX_RUN_STEPS
from .byte_step import ByteStep

INT32 = Type("int32")
UNROLLED_STEPS = 4
"""Steps in an iteration of the loop over K. Chosen."""


def factors_of(pattern: Contraction, target: Target) -> tuple[Load, int, Load] | None:
    """x, its zero point, and y: a is x less that, b is y, constant and of int8."""
    a, b = byte(pattern.a), byte(pattern.b)
    if target.vector_bytes > 1 or not a or not b or pattern.reduce.dtype != "int32" or pattern.inside or pattern.tested:
        return None
    (x, zero_point), (y, of_y) = a, b
    return None if y.dtype != "int8" or of_y or not is_constant(y) or computed(x.index) else (x, zero_point, y)


@dataclass(frozen=True, slots=True)
class ByteMultiply(ByteStep):
    """One element at a time. `offset` is what is added to each of a row's."""
    offset: int = 0

    @staticmethod
    def of(b: Builder, pattern: Contraction, _: ContractionChoice, target: Target, cut: Cut,
           groups: Axis | None = None) -> ByteMultiply:
        found = factors_of(pattern, target)
        assert found
        x, zero_point, y = found
        folded = 0 if pattern.reduce.where else zero_point
        packed = of_constants(b, pattern, y, (folded, 0), cut, 1, group=1)
        run = pattern.reduce.axes[-1].extent
        unroll = run if pattern.lines and run <= MAX_RUN_STEPS else UNROLLED_STEPS
        return ByteMultiply(b, target, pattern, x, packed, None, PaddingConditions.of(pattern.reduce, pattern.m, pattern.n), 1,
                            unroll, offset=folded - zero_point)

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
