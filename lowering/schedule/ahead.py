"""What a tile of a contraction asks for before it is read, so that nothing waits for memory: the constant panel of the next
columns, a share with each tile of this one, and what the epilogue adds to the sums. `contraction` writes the loops around it.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..elements.affine import Affine, Axis
from ..elements.expression import Buffer, Expr, Load
from ..elements.traverse import children
from ..graph.types import ITEM_SIZES
from ..loops.builder import Builder
from ..native.target import Target
from .tiles import Piece
from .vectorize import At
from .write import Block

if TYPE_CHECKING:
    from .contraction import Contraction

LINE = 64
"""Bytes of a line of a cache."""
MOST_TILES = 20
"""Tiles that a panel is read for: with more of them it matters little that the first one waits."""
FEWEST_STEPS = 64
"""Steps of K that are long enough for memory to answer."""


def is_worthwhile(form: Contraction, rows: int, target: Target) -> bool:
    """Whether panels of constants are asked for ahead: they are read by few tiles of so many rows, and by more than one row,
    which would leave no time for it."""
    return target.has_cache and not form.batch and 1 < form.passes <= MOST_TILES * rows


@dataclass(frozen=True, slots=True)
class Ahead:
    """`panels` are the packed constants, if these are asked for; `added` the places of what the epilogue reads."""
    b: Builder
    form: Contraction
    panels: Buffer | None
    added: tuple[Load, ...]

    @staticmethod
    def of(b: Builder, form: Contraction, panels: Buffer | None, target: Target) -> Ahead:
        return Ahead(b, form, panels, tuple(added(form, target)) if form.m and form.depth >= FEWEST_STEPS else ())

    def panel(self, at: At, k: Affine, rows: int, vectors: tuple[Piece, ...]) -> None:
        """For step `k` of a tile of so many rows: its share of what comes next."""
        if self.panels is None:
            return
        form, width = self.form, sum(piece.lanes for piece in vectors)
        line = LINE // ITEM_SIZES[self.panels.dtype]
        each = -(-form.depth * width // form.passes)  # elements for a row
        share = -(-rows * each // form.depth)
        start = (at[form.n] + width) * form.depth + self.passed(at) * each + k * share
        for first in range(0, share, line):
            self.b.prefetch(self.panels, start + first)

    def passed(self, at: At) -> Affine:
        """Rows that have read the panel before this tile."""
        number = Affine()
        for axis in (*self.form.outer, *([self.form.m] if self.form.m else [])):
            number = number * axis.extent + at[axis]
        return number

    def epilogue(self, block: Block) -> None:
        """For a tile: all that is read with its sums."""
        for load in self.added:
            for row, piece in block.vectors if block.rows > 1 else ():
                self.b.prefetch(load.buffer, load.index[0].substitute(block.place(row, piece.start)))


def added(form: Contraction, target: Target) -> list[Load]:
    """What the epilogue reads, a vector for each of the sums, from a buffer that is large for the cache."""
    found: list[Load] = []
    seen: set[int] = set()
    stack: list[Expr] = [form.nest.value]
    while stack:
        e = stack.pop()
        if id(e) in seen or e is form.reduce:
            continue
        seen.add(id(e))
        stack.extend(children(e))
        if isinstance(e, Load) and e.buffer.data is None and e.buffer.nbytes > target.l2_bytes // 4 and moves(form, e.index[0]):
            found.append(e)
    return found


def moves(form: Contraction, index: Affine) -> bool:
    """Whether an index is another one in each row, and columns are neighbours."""
    plain = all(isinstance(t, Axis) for t, _ in index.terms)
    return plain and form.m is not None and index.coefficient(form.m) != 0 and index.coefficient(form.n) == 1
