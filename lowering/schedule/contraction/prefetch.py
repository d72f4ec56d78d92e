"""What a tile of a contraction asks for before it is read, so that nothing waits for memory: the constant panel of the next
columns, a share with each tile of this one, and what the epilogue adds to the sums. `contraction` writes the loops around it.
"""
from __future__ import annotations

from collections.abc import Iterator

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...elements.expression import Buffer
from ...elements.traverse import loads_beside
from ...graph.types import ITEM_SIZES
from ...loops.builder import Builder
from ...loops.ir import INDEX, Literal
from ...target.target import Target
from ..nest.loop_nest import At
from ..nest.tile_axis import Piece
from .pattern import Contraction

MAX_TILES_OF_PANEL = 20
"""Tiles that a panel is read for: with more of them it matters little that the first one waits."""
MIN_STEPS = 64
"""Steps of K that are long enough for memory to answer."""


def is_worthwhile(form: Contraction, rows: int, target: Target) -> bool:
    """Whether panels of constants are asked for ahead: they are read by few tiles of so many rows, and by more than one row,
    which would leave no time for it."""
    return target.has_cache and not form.batch and 1 < form.passes <= MAX_TILES_OF_PANEL * rows


@dataclass(frozen=True, slots=True)
class Ahead:
    """`panels` are the packed constants, if these are asked for; `beside` the places of what the epilogue reads and writes."""
    b: Builder
    form: Contraction
    panels: Buffer | None
    beside: tuple[tuple[Buffer, Affine], ...]
    group: int
    line_bytes: int

    @staticmethod
    def of(b: Builder, form: Contraction, panels: Buffer | None, target: Target, group: int) -> Ahead:
        """For steps of so many terms."""
        return Ahead(b, form, panels, tuple(beside(form, target)), group, target.costs.cache_line_bytes)

    def panel(self, at: At, k: Affine, rows: int, vectors: tuple[Piece, ...]) -> None:
        """For step `k` of a tile of so many rows: its share of what comes next."""
        if self.panels is None:
            return
        form, width = self.form, sum(piece.lanes for piece in vectors)
        line, depth = self.line_bytes // ITEM_SIZES[self.panels.dtype], -(-self.form.depth // self.group) * self.group
        each = -(-depth * width // form.passes)  # elements for a row
        share = -(-rows * each // depth)  # for each term
        start = (at[form.n] + width) * depth + self.passed(at) * each + k * share
        for first in range(0, share * self.group, line):
            self.b.prefetch(self.panels, start + first)

    def passed(self, at: At) -> Affine:
        """Rows that have read the panel before this tile."""
        number = Affine()
        for axis in (*self.form.outer, *([self.form.m] if self.form.m else [])):
            number = number * axis.extent + at[axis]
        return number

    def epilogue(self, at: At, k: Affine, rows: int, vectors: tuple[Piece, ...]) -> None:
        """For step `k` of a tile: a row of what is read with its sums, and of where these go; the last row at further steps."""
        if not self.beside or rows == 1:
            return
        b, row, (m, n) = self.b, Axis("row", rows), (self.form.m, self.form.n)
        assert m
        b.place(row, b.op("min", b.index(k), Literal(rows - 1, INDEX)))
        for buffer, index in self.beside:
            for piece in vectors:
                b.prefetch(buffer, index.substitute({**at, m: at[m] + Affine.of(row), n: at[n] + piece.start}))


def beside(form: Contraction, target: Target) -> Iterator[tuple[Buffer, Affine]]:
    """What the epilogue reads, a vector for each of the sums, and where it writes, if K is but one axis: a window has steps
    enough to hide that. In buffers that are large for the cache; nothing without vectors, when it would be as much work as
    the sums."""
    if form.m is None or form.depth < MIN_STEPS or not target.has_cache or target.lanes(ITEM_SIZES[form.reduce.dtype]) == 1:
        return
    found = [(x.buffer, x.index[0]) for x in loads_beside(form.nest.value, form.reduce) if x.buffer.data is None]
    if len(form.reduce.axes) == 1:
        found.append((form.nest.out, form.nest.index))
    for buffer, index in found:
        if buffer.nbytes > target.l2_bytes // 4 and moves(form, index):
            yield buffer, index


def moves(form: Contraction, index: Affine) -> bool:
    """Whether an index is another one in each row, and columns are neighbours."""
    plain = all(isinstance(t, Axis) for t, _ in index.terms)
    return plain and form.m is not None and index.coefficient(form.m) != 0 and index.coefficient(form.n) == 1
