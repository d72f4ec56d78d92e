"""Pack B for products by pairs of 16 bits (`dual_multiply`): the panels of `pack_b` as words, which are aligned, so that
two are read at once: four weights as they are, or two that are widened already, in the order in which SXTB16 unpacks rows.
"""
from __future__ import annotations

import functools

import numpy as np

from .....runtime.records import dataclass
from ....elements.affine import Affine, Axis
from ....elements.expression import Buffer, Expr, Load
from ....graph.types import Array
from ....loops.builder import Builder
from ....loops.ir import Operand, Type
from ....target.target import Target
from ...derived_constants import Made, derive
from ...nest.tile_axis import Cut
from ..initial_sums import biased
from ..layout import PanelLayout
from ..macro_kernel import Place
from ..pack_b import PACKED, Panels, divided
from ..pattern import Contraction
from .byte_factors import GROUP
from .pack_b import BytePanels, packed

PAIR_ORDER = [0, 2, 1, 3]
"""Of the bytes of a word, as SXTB16 widens them."""
PAIRS_PACKED = ".packed.pairs"
"""What names of packed weights end in that are kept as pairs."""
PAIRS = Type("int32", 2)
"""Four elements of K: two words of two each."""


@dataclass(frozen=True, slots=True)
class WordPanels(Panels):
    """Panels of words: one, of bytes, or two, of pairs, have four elements of K of a column."""
    words: int = 1

    def load(self, b: Builder, target: Target, place: Place, k: Affine) -> list[Operand]:
        assert self.buffer is not None
        width = sum(piece.lanes for piece in place.vectors if piece.start < place.panel)
        start = self.place(place.at, place.column, k, width)
        result: list[Operand] = []
        for piece in place.vectors:
            panels, column = divmod(piece.start, place.panel)
            four = start + panels * place.panel * self.layout.depth + column * GROUP
            result.append(b.load(self.buffer, divided(four, GROUP) * self.words, self.words))
        return result


def of_constants(b: Builder, pattern: Contraction, y: Load, cut: Cut, are_wide: bool) -> BytePanels:
    """Panels of `y`, and what the sums of each column start from."""
    total, bias = biased(pattern.nest, pattern.reduce, (*pattern.batch, pattern.n))
    depth = Axis("k", -(-pattern.depth // GROUP) * GROUP)
    layout = PanelLayout(cut, depth.extent, GROUP)
    make = functools.partial(in_words, pattern.batch, pattern.n, pattern.reduce.axes, layout, are_wide)
    names = f"{pattern.nest.name}{PAIRS_PACKED if are_wide else PACKED}", f"{pattern.nest.name}.initial"
    (buffer, initial), is_zero = derive(b, names, (y, *bias), make)
    panels = WordPanels(pattern.n, (depth,), "int32", y, layout, buffer, pattern.batch, words=2 if are_wide else 1)
    return BytePanels(panels, initial, total, bool(is_zero))


def in_words(batch: tuple[Axis, ...], n: Axis, axes: tuple[Axis, ...], layout: PanelLayout, are_wide: bool, y: Expr,
             *bias: Expr) -> Made:
    made = packed(y, *bias, batch=batch, n=n, axes=axes, zero_points=(0, 0), layout=layout, step=0)
    flat, initial = made.arrays
    return Made((as_words(flat, are_wide), initial), made.facts)


def has_pairs(buffer: Buffer) -> bool:
    """Whether a constant has bytes as numbers of 16 bits."""
    return buffer.role == "constant" and buffer.name.endswith(PAIRS_PACKED)


def as_words(flat: Array, are_wide: bool) -> Array:
    """Groups of four bytes as one word each, or widened as two."""
    if are_wide:
        return np.ascontiguousarray(flat.reshape(-1, GROUP)[:, PAIR_ORDER].astype("<i2")).view("<i4").reshape(-1)
    return np.ascontiguousarray(flat).view("<i4")
