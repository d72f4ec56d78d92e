"""Panels of constants for products of bytes by pairs of 16 bits in vectors (`micro_kernels.dot2`): numbers less their zero
point, so that padding of K is 0.
"""
from __future__ import annotations

import functools
import math

import numpy as np

from ....elements.affine import Axis
from ....elements.expression import Expr, guard
from ....loops.builder import Builder
from ...derived_constants import Made, derive
from ...nest.constant_data import constant
from ...nest.tile_axis import Cut
from ..initial_sums import biased, sum_of
from ..layout import PanelLayout
from ..pack_b import PACKED, Panels
from ..pattern import Contraction
from .byte_factors import Bytes
from .pack_b import BytePanels, with_sums

PAIR = 2
"""Number of elements of K that are multiplied at a time in a lane."""


def of_constants(b: Builder, pattern: Contraction, found: Bytes, cut: Cut, is_wide: bool) -> BytePanels:
    """Return panels of b with the initial sums of each column. Elements are 16-bit numbers, or bytes if all of them fit, which
    are widened as they are loaded."""
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
    """Return the elements of the panels, the initial sums, and whether all sums start from 0."""
    data = constant(y, (*batch, n, *axes)).reshape(-1, n.extent, math.prod(a.extent for a in axes)).astype(np.int16)
    data = data - np.int16(zero_point)
    sums = sum_of(bias, (*batch, n)).reshape(data.shape[:2])
    dtype = "int8" if not is_wide and data.min() >= -128 and data.max() < 128 else "int16"
    return Made(with_sums(data, sums, layout, dtype), not sums.any())
