"""The micro-kernel of a contraction, the sum over K of a[m, k] * b[n, k] for one register tile (MR rows, NR columns): its sums
stay in registers while a loop runs over K, KR elements a step; b comes from panels, and an element of a row of a is multiplied
with all vectors of columns. `MicroKernel` is the common part of all micro-kernels; each has a `Step` of its own in
`micro_kernels`.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Range
from ...elements.expression import Expr
from ...loops.builder import Builder
from ...loops.ir import Literal, Operand
from ...target.target import Target
from ..nest.loop_nest import At, number_of
from ..nest.padding_conditions import PaddingConditions
from ..nest.reduction_loops import alike, reduce_loops, unsettled
from ..nest.tile_axis import Piece
from ..vectorize.epilogue import EpilogueWriter, OutputBlock
from .border_tiles import sums_beside
from .macro_kernel import Place
from .pack_b import Panels
from .pattern import Contraction
from .prefetch import Prefetching

MIN_SUMS_OF_ONE_STEP = 6
"""Minimum number of sums for which one step of K hides the cost of its loop: further unrolling would only add code."""
Finish = Callable[[Place, OutputBlock, Sequence[Operand]], None]
"""The epilogue: the use of a tile's sums."""


class Step(Protocol):
    """One step of K and its operands. `axes` and `conditions` are K and its conditions as the step sees them; `group` (KR) is
    the number of elements of K in a step."""
    @property
    def panels(self) -> Panels: ...

    @property
    def fills(self) -> Callable[[At], None] | None:
        """Function that packs panels for the batch at a point, or None if they are packed at compile time or not at all."""

    @property
    def packs_rows(self) -> bool:
        """True if rows are packed."""

    def pack(self, place: Place) -> None:
        """Pack the rows of a tile."""

    @property
    def test_cycles(self) -> float | None:
        """Cycles of a test of a row, if rows are packed."""

    @property
    def known(self) -> Expr:
        """Subexpression of the nest's value that the sums are the values of."""

    @property
    def axes(self) -> tuple[Axis, ...]: ...

    @property
    def conditions(self) -> PaddingConditions: ...

    @property
    def group(self) -> int: ...

    @property
    def unroll(self) -> int:
        """Minimum number of steps in an iteration of the loop over K."""

    def initial(self, at: At, row: int, piece: Piece) -> Operand:
        """Return the initial sums of a vector in a row of the tile."""

    def row(self, place: Place, row: int) -> Callable[[int], Operand]:
        """Return a function that broadcasts the element of a (or a group of elements) to a number of lanes."""

    def accumulate(self, total: Operand, row: Operand, column: Operand) -> Operand: ...


@dataclass(frozen=True, slots=True)
class MicroKernel:
    """The sums of one tile and their epilogue. With `beside`, a single row has several copies of its few sums."""
    b: Builder
    pattern: Contraction
    step: Step
    target: Target
    finish: Finish
    prefetching: Prefetching
    beside: bool = True

    def tile(self, place: Place) -> None:
        """Write one tile of rows by some vectors of columns."""
        block = OutputBlock(place.at, self.pattern.m, place.rows, self.pattern.n, place.vectors)
        inits = [self.step.initial(block.place(row, piece.start), row, piece) for row, piece in block.vectors]
        self.finish(place, block, self.sums(place, block, inits))

    def sums(self, place: Place, block: OutputBlock, inits: Sequence[Operand]) -> Sequence[Operand]:
        """Write the loops over K and return the sums. Conditions on rows are settled for the tile; those of a single row are
        loop bounds, and if it has few sums, several steps are summed independently."""
        conditions, rows = self.step.conditions, place.rows
        places = [block.place(row, 0) for row in range(rows)]
        failing = unsettled(conditions.rows, (places[0], places[-1]))
        single = rows == 1
        bounds = (*conditions.bounds, *failing) if single else conditions.bounds
        runs = alike(conditions.tapped, failing, places) if failing and not single else {}
        axes, group, n = self.step.axes, self.step.group, len(inits)
        last = axes[-1]
        whole = single and self.beside and not any(w.index.coefficient(last) for w in bounds)
        beside = sums_beside(n, last.extent // group, self.most_beside(place.vectors)) if whole else 1
        tested = () if single else failing

        def steps(at: At, sums: Sequence[Operand]) -> list[Operand]:
            k = number_of(axes, at)
            return [total for i in range(beside) for total in self.products(
                place.moved({**at, last: at[last] + i * group}), k + i * group, sums[i * n:(i + 1) * n], tested)]

        zeros = [Literal(0, x.type) for x in inits] * (beside - 1)
        unroll = max(1 if n >= MIN_SUMS_OF_ONE_STEP else 2, self.step.unroll)
        sums = reduce_loops(self.b, axes, bounds, place.at, [*inits, *zeros], steps, runs, unroll, group * beside)
        return [self.added(sums[i::n]) for i in range(n)]

    def most_beside(self, vectors: tuple[Piece, ...]) -> int:
        """Return the number of copies of a row's sums that fit the registers, with one vector of b."""
        each = sum(max(1, piece.lanes // self.target.lanes(4)) for piece in vectors)
        return max(1, (self.target.vector_registers - 1) // each)

    def added(self, sums: Sequence[Operand]) -> Operand:
        """Return the total of the sums."""
        total = sums[0]
        for x in sums[1:]:
            total = self.b.op("add", total, x)
        return total

    def products(self, place: Place, k: Affine, sums: Sequence[Operand], failing: Sequence[Range] = ()) -> list[Operand]:
        """Write one step of K for all sums of the tile; a row for which a condition fails has no term."""
        result, vectors = list(sums), place.vectors
        columns = self.step.panels.load(self.b, self.target, place, k)
        self.prefetching.panel(place.at, k, place.rows, vectors)
        self.prefetching.epilogue(place.at, k, place.rows, vectors)
        for r in range(place.rows):
            if failing and self.pattern.m:
                at = self.pattern.row_at(place.at, r)
                if any(w.substitute(at).known is False for w in failing):
                    continue
            row = self.step.row(place, r)
            for v, piece in enumerate(vectors):
                position = r * len(vectors) + v
                result[position] = self.step.accumulate(result[position], row(piece.lanes), columns[v])
        return result


def epilogue(writer: EpilogueWriter) -> Finish:
    """Return the epilogue that turns the sums into outputs."""
    return lambda place, block, sums: writer.write(block, sums)


def in_vectors(b: Builder, lanes: int, finish: Finish) -> Finish:
    """Return the epilogue for sums in vectors of more than `lanes` lanes, which are split."""
    def cut(place: Place, block: OutputBlock, sums: Sequence[Operand]) -> None:
        pieces = [[Piece(p.start + first, min(lanes, p.lanes), max(0, min(p.active - first, lanes)))
                   for first in range(0, p.lanes, lanes)] for p in block.pieces]
        vectors = [x if x.type.lanes <= lanes else b.shuffle(x, x, tuple(range(i * lanes, (i + 1) * lanes)))
                   for x, some in zip(sums, itertools.cycle(pieces)) for i in range(len(some))]
        finish(place, replace(block, pieces=tuple(itertools.chain(*pieces))), vectors)

    return cut
