"""The prefetches of a tile of a contraction, so that nothing waits for memory: the constant panel of the next columns, a share
of it with each tile of this panel, and the operands of the epilogue. `micro_kernel` prefetches in each step of K. Other
prefetches are next to their loops: the next rows of blocks in `blocked_loops`, of a row reduction in `row_reduction.lower`, and
large inputs of elementwise kernels in `elementwise`, at `target.costs.prefetch_distance_bytes`.
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
from .layout import width_of
from .pattern import Contraction

MAX_TILES_OF_PANEL = 20
"""Maximum tiles that read a panel: with more, it matters little that the first one waits."""
MIN_STEPS = 64
"""Minimum steps of K that are long enough to hide the memory latency."""


def is_worthwhile(pattern: Contraction, rows: int, target: Target) -> bool:
    """True if constant panels are prefetched: few tiles of `rows` rows read each panel, and more than one row does, since one
    row would leave no time to prefetch."""
    return target.has_cache and not pattern.batch and 1 < pattern.passes <= MAX_TILES_OF_PANEL * rows


@dataclass(frozen=True, slots=True)
class Prefetching:
    """The prefetches of a tile. `panels` are the packed constants, if they are prefetched; `beside` are the buffers and indices
    that the epilogue reads and writes."""
    b: Builder
    pattern: Contraction
    panels: Buffer | None
    beside: tuple[tuple[Buffer, Affine], ...]
    group: int
    line_bytes: int

    @staticmethod
    def of(b: Builder, pattern: Contraction, panels: Buffer | None, target: Target, group: int) -> Prefetching:
        """Return the prefetches for steps of `group` terms."""
        return Prefetching(b, pattern, panels, tuple(beside(pattern, target)), group, target.costs.cache_line_bytes)

    def panel(self, at: At, k: Affine, rows: int, vectors: tuple[Piece, ...]) -> None:
        """In step `k` of a tile of `rows` rows, prefetch the tile's share of the next panel."""
        if self.panels is None:
            return
        pattern, width = self.pattern, width_of(vectors)
        line, depth = self.line_bytes // ITEM_SIZES[self.panels.dtype], -(-self.pattern.depth // self.group) * self.group
        each = -(-depth * width // pattern.passes)  # elements for a row
        share = -(-rows * each // depth)  # for each term
        start = (at[pattern.n] + width) * depth + pattern.number_of_row(at) * each + k * share
        for first in range(0, share * self.group, line):
            self.b.prefetch(self.panels, start + first)

    def epilogue(self, at: At, k: Affine, rows: int, vectors: tuple[Piece, ...]) -> None:
        """In step `k` of a tile, prefetch a row of the operands that are read with its sums, and of the outputs; after the last
        row, prefetch that row again."""
        if not self.beside or rows == 1:
            return
        b, row, (m, n) = self.b, Axis("row", rows), (self.pattern.m, self.pattern.n)
        assert m
        b.place(row, b.op("min", b.index(k), Literal(rows - 1, INDEX)))
        for buffer, index in self.beside:
            for piece in vectors:
                b.prefetch(buffer, index.substitute({**at, m: at[m] + Affine.of(row), n: at[n] + piece.start}))


def beside(pattern: Contraction, target: Target) -> Iterator[tuple[Buffer, Affine]]:
    """Yield the buffers and indices that the epilogue reads, a vector for each sum, and those that it writes, if K is a single
    axis: a window has enough steps to hide the writes. Only buffers that are large for the cache; none without vectors, because
    prefetches would be as much work as the sums."""
    if (
        pattern.m is None
        or pattern.depth < MIN_STEPS
        or not target.has_cache
        or target.lanes(ITEM_SIZES[pattern.reduce.dtype]) == 1
    ):
        return
    found = [(x.buffer, x.index[0]) for x in loads_beside(pattern.nest.value, pattern.reduce) if x.buffer.data is None]
    if len(pattern.reduce.axes) == 1:
        found.append((pattern.nest.out, pattern.nest.index))
    for buffer, index in found:
        if buffer.nbytes > target.l2_bytes // 4 and moves(pattern, index):
            yield buffer, index


def moves(pattern: Contraction, index: Affine) -> bool:
    """True if an index differs in each row, and columns are contiguous."""
    plain = all(isinstance(t, Axis) for t, _ in index.terms)
    return plain and pattern.m is not None and index.coefficient(pattern.m) != 0 and index.coefficient(pattern.n) == 1
