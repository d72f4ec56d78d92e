"""Panels of words for products by pairs of 16 bits (`dual_multiply`). Words are aligned, so that two are read at once. A word
has four weights as bytes, or two widened weights, in the order in which SXTB16 unpacks rows.
"""
from __future__ import annotations

import numpy as np

from ....elements.affine import Affine
from ....elements.expression import Buffer
from ....graph.types import Array
from ....loops.builder import Builder
from ....loops.ir import Operand, Type
from ..pack_b import Panels, divided
from .byte_factors import GROUP

PAIR_ORDER = [0, 2, 1, 3]
"""Order of the bytes of a word, as SXTB16 widens them."""
PAIRS_PACKED = ".packed.pairs"
"""Suffix of the names of packed weights that are stored as pairs."""
PAIRS = Type("int32", 2)
"""Type of four elements of K: two words of two elements each."""


class WordPanels(Panels):
    """Panels in which four elements of K of a column are one word of bytes, or two words of pairs."""
    __slots__ = ()

    def vector(self, b: Builder, buffer: Buffer, start: Affine, column: int, lanes: int) -> Operand:
        words = PAIRS.lanes if has_pairs(buffer) else 1
        return b.load(buffer, divided(start + column * GROUP, GROUP) * words, words)


def has_pairs(buffer: Buffer) -> bool:
    """True if a constant stores bytes as 16-bit numbers."""
    return buffer.role == "constant" and buffer.name.endswith(PAIRS_PACKED)


def in_words(flat: Array, words: int) -> Array:
    """Return groups of four bytes as one word each, or widened to two words."""
    if words == PAIRS.lanes:
        return np.ascontiguousarray(flat.reshape(-1, GROUP)[:, PAIR_ORDER].astype("<i2")).view("<i4").reshape(-1)
    return np.ascontiguousarray(flat).view("<i4")
