"""Stores the values of a tile of outputs: what is done with the sums of a reduction, on registers.

Where so much is done with the sums that a tile's worth of it would be long, these wait in memory, and a loop over the
tile's vectors does it: code is kept small.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...elements.expression import Apply, Buffer, Cast, Const, Expr, Guard, Load, Reduce
from ...elements.traverse import children, loads_beside, nodes
from ...loops.builder import Builder
from ...loops.ir import Operand
from ...target.target import Target
from ..code_size_model import LINE_CYCLES, SLOWDOWN_FRACTION, instructions, price_of, share_of, tolerated
from ..derived_constants import Made, derive
from ..nest.loop_nest import At, Nest
from ..nest.tile_axis import Piece
from .lane_groups import NOTHING as NO_REPEATS
from .lane_groups import Repeats
from .saturating_pack import pack, packable, units
from .vectorize import Vectorizer


@dataclass(frozen=True, slots=True)
class LongEpilogue:
    """Where so much is done with the sums of a tile, a loop does it: from `loop_operations` on if a sum has `steps` enough to
    make up for the loop; from `operations` on if it has `steps` steps of all its terms, and the vectors are few enough that
    the loop, in which each takes `cycles` longer, costs less than the code it saves."""
    operations: int
    loop_operations: int
    steps: int
    cycles: float

    def pays(self, operations: int, steps: int, terms: int, vectors: float) -> bool:
        if operations > self.loop_operations:
            return steps >= self.steps
        is_little = self.cycles * vectors <= LINE_CYCLES * operations
        return operations > self.operations and steps >= self.steps * terms and is_little


LONG, LONG_PACKED = LongEpilogue(300, 900, 24, 3), LongEpilogue(150, 600, 12, 1)
"""Of outputs as they are, and of outputs that are packed: then an iteration of the loop is four vectors."""
STORE_LINES, LOOP_LINES = 3, 15
"""Lines of LLVM's text of a store, and of a loop over vectors. Counted."""
Given = Mapping[Expr, Operand]
NOTHING: Given = {}


def operations(value: Expr, known: Expr | None = None) -> int:
    """About how many instructions the value of a vector takes, where `known` is known."""
    total, seen, stack = 0, set[int](), [value]
    while stack:
        e = stack.pop()
        if id(e) in seen or e is known:
            continue
        seen.add(id(e))
        match e:
            case Apply() | Cast() | Guard():
                total += instructions(e)
        stack.extend(children(e))
    return total


@dataclass(frozen=True, slots=True)
class OutputBlock:
    """A rectangle of outputs: `rows` neighbours along `row`, and along `column` the vectors `pieces`."""
    at: At
    row: Axis | None
    rows: int
    column: Axis | None
    pieces: tuple[Piece, ...]

    def place(self, row: Affine | int, piece: Affine | int) -> At:
        moved = dict(self.at)
        if self.row is not None:
            moved[self.row] = self.at[self.row] + row
        if self.column is not None:
            moved[self.column] = self.at[self.column] + piece
        return moved

    @property
    def vectors(self) -> list[tuple[int, Piece]]:
        """Row and piece of each vector, row by row."""
        return list(itertools.product(range(self.rows), self.pieces))


class EpilogueWriter:
    """Writes the blocks of one nest. `reduce` is the reduction whose values come with each block, if there is one, and
    `known` what these are the values of, if that is more than it; `largest` how many elements a block has at most."""

    def __init__(self, b: Builder, target: Target, nest: Nest, reduce: Reduce | None = None, largest: int = 0,
                 streaming: bool = False, known: Expr | None = None, repeats: Repeats = NO_REPEATS) -> None:
        self.b, self.target, self.nest, self.streaming, self.repeats = b, target, nest, streaming, repeats
        self.known = known or reduce
        self.largest = largest
        self.steps = math.prod(a.extent for a in reduce.axes) if reduce else 0
        self.terms = target.products_in_a_lane if reduce and reduce.dtype == "int32" else 1
        self.share = share_of(nest.value)
        self.packable = packable(nest, target)
        self.operations = operations(self.packable or nest.value, self.known)
        self.scratch: Buffer | None = None

    def write(self, block: OutputBlock, sums: Sequence[Operand] = (), outer: Vectorizer | None = None,
              given: Given = NOTHING) -> None:
        """Compute and store a block; `sums` are the reduction's values, vector by vector. `outer` knows what is
        computed around it, `given` what is known of a block of one vector."""
        if self.is_long(len(sums)) or self.is_less_code(block, len(sums)):
            self.in_loops(block, sums, outer)
            return
        numbers = itertools.count()
        for row, unit in itertools.product(range(block.rows), self.units(block)):
            known = [given if self.known is None else {self.known: sums[next(numbers)]} for _ in unit]
            self.store(block, row, 0, unit, known, [outer] * len(unit))

    def is_long(self, sums: int) -> bool:
        """True if a loop is so much less code that it pays."""
        vectors = math.prod(a.extent for a in self.nest.axes) / self.target.lanes(4)
        long = LONG if self.packable is None else LONG_PACKED
        return long.pays(self.operations * sums, self.steps, self.terms, vectors)

    def is_less_code(self, block: OutputBlock, sums: int) -> bool:
        """True if a loop is so much less code that it pays, where narrow floats make the code of each vector long."""
        if self.steps == 0 or sums < 2 or self.share == SLOWDOWN_FRACTION:
            return False
        kinds = len({(p.lanes, p.active) for p in block.pieces})
        saved = sums * (self.operations + STORE_LINES) - 2 * sums - kinds * (self.operations + LOOP_LINES)
        vectors = math.prod(a.extent for a in self.nest.axes) / block.pieces[0].lanes
        slower = self.target.costs.spilled_vector_cycles * vectors
        return slower <= min(price_of(self.share) * saved, tolerated(vectors * self.steps / 2, self.share))

    def units(self, block: OutputBlock) -> list[tuple[Piece, ...]]:
        """The vectors of a row that are stored at once."""
        column, index = block.column, self.nest.index
        if self.packable is None or column is None or index.coefficient(column) != 1 or column in index.hidden:
            return [(piece,) for piece in block.pieces]
        return units(block.pieces, self.target.lanes(4))

    def store(self, block: OutputBlock, row: Affine | int, moved: Affine | int, unit: Sequence[Piece], given: Sequence[Given],
              outer: Sequence[Vectorizer | None]) -> None:
        """Neighbouring vectors of a row, `moved` from where they are in the block."""
        value = self.nest.value if len(unit) == 1 or self.packable is None else self.packable
        every = [self.vectorizer(block, row, moved, p, known, around)
                 for p, known, around in zip(unit, given, outer, strict=True)]
        vectors = [v.vector(value) for v in every]
        i, stride, differing = every[0].place(self.nest.index)
        assert unit[0].lanes == 1 or (stride == 1 and not differing), f"{self.nest.name} is not contiguous along {block.column}"
        stored = vectors[0] if len(vectors) == 1 else pack(self.b, vectors)
        self.b.store(self.nest.out, i, stored, sum(p.active for p in unit), self.streaming)

    def vectorizer(self, block: OutputBlock, row: Affine | int, moved: Affine | int, piece: Piece, given: Given,
                   outer: Vectorizer | None) -> Vectorizer:
        return Vectorizer(self.b, self.target, block.place(row, moved + piece.start), block.column, piece.lanes, piece.active,
                          given, outer, repeats=self.repeats)

    def in_loops(self, block: OutputBlock, sums: Sequence[Operand], outer: Vectorizer | None) -> None:
        """The block, one vector after the other; the sums wait in memory."""
        width = block.pieces[-1].start + block.pieces[-1].lanes
        for x, (row, piece) in zip(sums, block.vectors):
            self.b.store(self.spilled(), Affine.of(row * width + piece.start), x)
        constants = self.constants()
        for _, group in itertools.groupby(self.units(block), key=lambda unit: [(p.lanes, p.active) for p in unit]):
            same = list(group)
            number, step = Axis("vector", len(same)), same[1][0].start - same[0][0].start if len(same) > 1 else 0
            self.b.loop(number, lambda: self.columns_in_loops(
                block, Affine.of(number) * step, same[0], width, outer, constants))

    def columns_in_loops(self, block: OutputBlock, moved: Affine, unit: Sequence[Piece], width: int, outer: Vectorizer | None,
                         constants: Given) -> None:
        """The same vectors of each row; what all rows share is read once."""
        shared = [self.vectorizer(block, 0, moved, p, NOTHING, outer) for p in unit]
        for v, x in itertools.product(shared, self.of_columns(block)):
            v.vector(x)
        loop = Axis("row", block.rows)

        def one() -> None:
            row = Affine.of(loop)
            assert self.known is not None
            sums = [self.b.load(self.spilled(), row * width + moved + p.start, p.lanes) for p in unit]
            self.store(block, row, moved, unit, [{**constants, self.known: x} for x in sums], shared)

        self.b.loop(loop, one)

    def write_waiting(self, block: OutputBlock, waiting: Buffer, first: Affine, width: int) -> None:
        """A block whose sums wait in memory, rows `width` apart, the first at `first`. What all rows share is read once."""
        assert self.known is not None
        for piece in block.pieces:
            shared = self.vectorizer(block, 0, 0, piece, NOTHING, None)
            for x in self.of_columns(block):
                shared.vector(x)
            for row in range(block.rows):
                sums = self.b.load(waiting, first + (row * width + piece.start), piece.lanes)
                self.store(block, row, 0, [piece], [{self.known: sums}], [shared])

    def of_columns(self, block: OutputBlock) -> list[Load]:
        """What is read beside the sums at any rate, and is the same for all rows."""
        if block.rows == 1 or self.known is None or any(isinstance(e, Guard) for e in nodes(self.nest.value)):
            return []
        given = block.at.keys() - {block.row}
        return [x for x in loads_beside(self.nest.value, self.known) if x.index[0].axes <= given]

    def constants(self) -> Given:
        """The constants of a long computation, read from memory here: as constants they would take registers from the loops
        around."""
        found = [e for e in nodes(self.nest.value) if isinstance(e, Const) and e.dtype == "float32"]
        if not found:
            return NOTHING
        values = np.array([e.value for e in found], np.float32)
        (table,), _ = derive(self.b, (f"{self.nest.name}.constants",), (), lambda: Made((values,)))
        return {e: self.b.load(table, Affine.of(i)) for i, e in enumerate(found)}

    def spilled(self) -> Buffer:
        if self.scratch is None:
            assert self.known is not None
            sums = Buffer(f"{self.nest.name}.sums", self.known.dtype, (self.largest,), "scratch")
            self.scratch = self.b.scratch(sums)
        return self.scratch
