"""The operands of products of bytes by pairs of 16 bits in vectors (`micro_kernels.dot2`): rows in scratch and panels of
constants, both less their zero points, so that 0 stands for what padding leaves out and for what fills K up.
"""
from __future__ import annotations

import functools
import math

import numpy as np

from ....elements.affine import Affine, Axis
from ....elements.expression import Buffer, Expr, guard
from ....loops.builder import Builder
from ....loops.ir import Literal, Operand, Type
from ....target.target import Target
from ...derived_constants import Made, derive
from ...nest.constant_data import constant
from ...nest.tile_axis import Cut
from ..initial_sums import biased, sum_of
from ..layout import PanelLayout
from ..pack_a import RowPacking, store_run
from ..pack_b import PACKED, Panels
from ..pattern import Contraction
from .byte_factors import Bytes
from .pack_b import BytePanels, with_sums

PAIR = 2
"""Elements of K that are multiplied at a time in a lane."""


class WideRows(RowPacking):
    """Rows of bytes, copied as numbers of 16 bits less their zero point."""
    __slots__ = ()

    @staticmethod
    def wide(b: Builder, pattern: Contraction, found: Bytes, rows: int, depth: int, stride: int, target: Target) -> WideRows:
        """With scratch for `rows` rows."""
        buffer = b.scratch(Buffer(f"{pattern.nest.name}.rows", "int16", ((rows - 1) * stride + depth,), "scratch"))
        return WideRows(b, target, pattern, found.x, found.of_x, buffer, depth, stride, found.x.dtype)

    def run(self, source: Affine | int, row: Affine, k: Affine, length: int) -> None:
        """Elements of a row, less their zero point; 0 where a number stands for them."""
        def value(place: Affine, lanes: int, active: int) -> Operand:
            wide = Type("int16", lanes)
            if isinstance(source, int):
                return Literal(0, wide)
            x = self.b.op("cast", self.b.load(self.x.buffer, source + place, lanes, active), type=wide)
            return self.b.op("sub", x, Literal(self.zero_point, wide)) if self.zero_point else x

        store_run(self.b, self.target, self.buffer, row * self.stride + k, range(length), value)


def of_constants(b: Builder, pattern: Contraction, found: Bytes, cut: Cut, is_wide: bool) -> BytePanels:
    """Panels of b, and what the sums of each column start from; as numbers of 16 bits, or as bytes where all of them are
    such, which are widened as they are loaded."""
    y = guard(pattern.inside, found.y, found.of_y) if pattern.inside else found.y
    total, bias = biased(pattern.nest, pattern.reduce, (*pattern.batch, pattern.n))
    depth = Axis("k", -(-pattern.depth // PAIR) * PAIR)
    layout = PanelLayout(cut, depth.extent, PAIR)
    make = functools.partial(in_pairs, batch=pattern.batch, n=pattern.n, axes=pattern.reduce.axes, zero_point=found.of_y,
                             layout=layout, is_wide=is_wide)
    names = f"{pattern.nest.name}{PACKED}", f"{pattern.nest.name}.initial"
    (buffer, initial), is_zero = derive(b, names, (y, *bias), make)
    return BytePanels(Panels(pattern.n, (depth,), "int16", y, layout, buffer, pattern.batch), initial, total, bool(is_zero))


def in_pairs(y: Expr, *bias: Expr, batch: tuple[Axis, ...], n: Axis, axes: tuple[Axis, ...], zero_point: int,
             layout: PanelLayout, is_wide: bool) -> Made:
    """The elements of both; whether all sums start from 0."""
    data = constant(y, (*batch, n, *axes)).reshape(-1, n.extent, math.prod(a.extent for a in axes)).astype(np.int16)
    data = data - np.int16(zero_point)
    sums = sum_of(bias, (*batch, n)).reshape(data.shape[:2])
    dtype = "int8" if not is_wide and data.min() >= -128 and data.max() < 128 else "int16"
    return Made(with_sums(data, sums, layout, dtype), not sums.any())
