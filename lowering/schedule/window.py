"""A reduction whose lanes are neighbouring outputs: depthwise convolution, pools, sums over outer axes. A tile of
outputs has its sums in registers, and loads that its rows share are made once.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..elements.affine import Axis
from ..elements.expression import Load, Reduce
from ..elements.traverse import nodes
from ..loops.builder import Builder
from ..loops.ir import Literal, Operand, Type
from ..native.target import Target
from .conditions import Conditions
from .map import lanes_of
from .nest import Nest, exposed, free_axes
from .reduce_loops import reduce_loops, taken_apart, unsettled
from .reduction import add
from .rows import Rows, nested
from .tiles import Piece, Tiles, balanced, chunks, interior, over, peel, pieces
from .vectorize import At, Vectorizer
from .write import Block, Writer, operations

MOST_OPERATIONS = 8
"""Of a term, for tiles of the full size."""


@dataclass(frozen=True, slots=True)
class WindowChoice:
    """Tiles of `rows` outputs along the last but one axis by `vectors` of `lanes` along the last."""
    rows: int
    vectors: int
    lanes: int

    @property
    def largest(self) -> int:
        """Elements of a whole tile."""
        return self.rows * self.vectors * self.lanes

    def __str__(self) -> str:
        return f"window: tiles of {self.rows} rows by {self.vectors} vectors of {self.lanes}"


def main_reduction(nest: Nest, axis: Axis) -> Reduce | None:
    """The one reduction that differs along `axis`, if no guard stands before it."""
    found = [r for r in nodes(nest.value) if isinstance(r, Reduce) and axis in free_axes(r)]
    return found[0] if len(found) == 1 and found[0] in exposed(nest.value) else None


def recognise(nest: Nest, target: Target, rows: bool) -> WindowChoice | None:
    inner = nest.axes[1:] if rows else nest.axes
    r = main_reduction(nest, inner[-1]) if inner else None
    if r is None or any(isinstance(e, Reduce) for e in nodes(r.body)):
        return None
    for x in nodes(r.body):
        if isinstance(x, Load) and (abs(x.index[0].coefficient(inner[-1])) > 1 or inner[-1] in x.index[0].hidden):
            return None
    most, lanes = 8 if operations(r.body) <= MOST_OPERATIONS else 4, lanes_of(nest, target)
    return WindowChoice(most, 1, lanes) if len(inner) > 1 else WindowChoice(1, most // 2, lanes)


def lower(b: Builder, nest: Nest, choice: WindowChoice, target: Target, rows: Rows | None) -> None:
    outer = nest.axes[:1] if rows else ()
    *more, n = nest.axes[len(outer):]
    m = more.pop() if more else None
    r = main_reduction(nest, n)
    assert r is not None
    conditions = Conditions.of(r, m, n)
    window = Window(b, target, r, conditions, m, n, Writer(b, target, nest, r, choice.largest))
    lines = [Tiles(0, 1, 1)]
    if m:
        lines = peel(balanced(m.extent, choice.rows), *interior(m, conditions.rows), conditions.by_single_rows)
    columns = peel(chunks(n.extent, choice.lanes * choice.vectors), *interior(n, conditions.tests))

    def tile(at: At) -> None:
        over(b, lines, lambda y, line: over(b, columns, lambda x, column: window.tile(
            {**at, **({m: y} if m else {}), n: x}, line, pieces(column.size, choice.lanes, target.has_masked))))

    nested(b, (*outer, *more), {}, tile, rows)


@dataclass(frozen=True, slots=True)
class Window:
    """The body of one tile."""
    b: Builder
    target: Target
    reduce: Reduce
    conditions: Conditions
    m: Axis | None
    n: Axis
    writer: Writer

    def tile(self, at: At, line: Tiles, vectors: tuple[Piece, ...]) -> None:
        block = Block(at, self.m, line.size, self.n, vectors)
        places = [block.place(row, piece.start) for row, piece in block.vectors]
        failing = unsettled(self.conditions.rows, (places[0], places[-1]))
        single = line.size == 1  # then the loops' bounds hold them
        tests = self.conditions.tests if single else (*self.conditions.tests, *failing)
        bounds = (*self.conditions.bounds, *failing) if single else self.conditions.bounds
        apart = taken_apart(self.conditions.tapped) if failing and not single else {}

        def step(here: At, acc: Sequence[Operand]) -> list[Operand]:
            return [add(Vectorizer(self.b, self.target, {**here, **place}, self.n, piece.lanes, piece.active),
                        self.reduce, total, tests)
                    for total, place, (_, piece) in zip(acc, moves, block.vectors)]

        moves = [{a: place[a] for a in (self.m, self.n) if a} for place in places]
        inits = [Literal(self.reduce.identity, Type(self.reduce.dtype, piece.lanes)) for _, piece in block.vectors]
        unroll = 8 if len(inits) == 1 or self.shares() else 2
        self.writer.write(block, reduce_loops(self.b, self.reduce.axes, bounds, at, inits, step, apart, unroll))

    def shares(self) -> bool:
        """Whether neighbouring rows read some of the same elements, which are loaded once where the steps are unrolled."""
        k = self.reduce.axes[-1]
        for x in nodes(self.reduce.body):
            if isinstance(x, Load) and self.m and (step := abs(x.index[0].coefficient(k))):
                row = abs(x.index[0].coefficient(self.m))
                if row % step == 0 and 0 < row // step < k.extent:
                    return True
        return False
