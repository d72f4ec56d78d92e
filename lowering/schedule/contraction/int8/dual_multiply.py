"""The micro-kernel of products of bytes by pairs of 16 bits (SMLAD of Arm's DSP extension). Four bytes of a row are read where
they lie, as one word, and widened to two pairs as their zero point is taken away; so are four of b's, which are packed by
columns while compiling. Nothing is copied, and padding is left out by the bounds of loops, as in `micro_kernels.multiply`.
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
from ...nest.constant_data import constant, is_constant
from ...nest.loop_nest import At
from ...nest.padding_conditions import PaddingConditions
from ...nest.tile_axis import Cut, Piece
from ..macro_kernel import Place
from ..pack_b import Panels, have_four_bits
from ..pattern import Contraction
from .vnni import byte
from .vnni_pack_b import GROUP, BytePanels, of_constants


@dataclass(frozen=True, slots=True)
class ByteRows:
    """The factors: x less its zero point is a, y is b, constant and of int8."""
    x: Load
    zero_point: int
    y: Load


def factors_of(pattern: Contraction, target: Target) -> ByteRows | None:
    """The factors, if rows can be read by words: bytes along the last axis of K are neighbours, of which there are whole words,
    and padding leaves out none of a word. Weights that are kept as four bits stay so."""
    a, b = byte(pattern.a), byte(pattern.b)
    if not target.has_dual_multiply or target.vector_bytes != 1 or not a or not b or pattern.reduce.dtype != "int32":
        return None
    (x, zero_point), (y, of_y), last = a, b, pattern.reduce.axes[-1]
    if y.dtype != "int8" or of_y or not is_constant(y) or pattern.inside or computed(x.index):
        return None
    by_words = x.index[0].coefficient(last) == 1 and last.extent % GROUP == 0 and last not in x.index[0].hidden
    if not by_words or any(w.index.coefficient(last) or last in w.index.hidden for w in pattern.reduce.where):
        return None
    is_four_bits = target.keeps_int4 and have_four_bits(constant(pattern.b, (*pattern.batch, pattern.n, *pattern.reduce.axes)))
    return None if is_four_bits else ByteRows(x, zero_point, y)


@dataclass(frozen=True, slots=True)
class DualMultiply:
    """One step of K: four products, two at a time."""
    b: Builder
    pattern: Contraction
    factors: ByteRows
    packed: BytePanels
    conditions: PaddingConditions
    group: int = GROUP
    unroll: int = 1

    @staticmethod
    def of(b: Builder, pattern: Contraction, target: Target, cut: Cut, conditions: PaddingConditions) -> DualMultiply:
        found = factors_of(pattern, target)
        assert found
        return DualMultiply(b, pattern, found, of_constants(b, pattern, found.y, (0, 0), cut), conditions)

    @property
    def panels(self) -> Panels:
        return self.packed.panels

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self.pattern.reduce.axes

    def initial(self, at: At, row: int, piece: Piece) -> Operand:
        if self.packed.is_zero:
            return Literal(0, Type("int32", piece.lanes))
        return self.b.load(self.packed.initial, self.packed.start(at, at[self.pattern.n]), piece.lanes)

    def row(self, place: Place, row: int) -> Callable[[int], Operand]:
        m = self.pattern.m
        at = place.at if m is None else {**place.at, m: place.at[m] + row}
        word = self.b.load(self.factors.x.buffer, self.factors.x.index[0].substitute(at), GROUP)
        return lambda _: word

    def accumulate(self, total: Operand, row: Operand, column: Operand) -> Operand:
        offset = Literal(-self.factors.zero_point, Type("int32"))
        return self.b.op("dot4_offset", total, row, column, offset, type=total.type)
