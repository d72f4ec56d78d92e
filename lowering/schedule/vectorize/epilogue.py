"""The epilogue of a tile: compute the outputs from the sums of a reduction, in registers, and store them.

If the code for a whole tile would be long, spill the sums to memory and process them in a loop over the tile's vectors, which
keeps the code small.
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
    """Thresholds above which a loop runs the epilogue of a tile. Above `loop_operations` it does if a sum has at least `steps`
    steps, which make up for the loop. Above `operations` it does if a sum has at least `steps` steps of all the terms
    that a lane adds at once, and the loop, in which each vector takes `cycles` longer, costs less than the code it saves."""
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
"""Thresholds for plain outputs, and for packed outputs, where an iteration of the loop processes four vectors."""
STORE_LINES, LOOP_LINES = 3, 15
"""Lines of LLVM's text for a store, and for a loop over vectors. Counted."""
Given = Mapping[Expr, Operand]
NOTHING: Given = {}


def operations(value: Expr, known: Expr | None = None) -> int:
    """Return the approximate number of instructions for a vector of `value`, given the value of `known`."""
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
    """A rectangle of outputs: `rows` neighbours along `row` by the vectors `pieces` along `column`."""
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
    """The writer of the blocks of one nest. `reduce` is the reduction whose values come with each block, if any. `known` is the
    expression that has these values, if it is more than `reduce`. `largest` is the maximum number of elements of a block."""

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
        """Compute and store a block. `sums` are the reduction's values, vector by vector. `outer` holds the values computed
        outside the block, `given` the known values of a block of one vector."""
        if self.is_long(len(sums)) or self.is_less_code(block, len(sums)):
            self.in_loops(block, sums, outer)
            return
        numbers = itertools.count()
        for row, unit in itertools.product(range(block.rows), self.units(block)):
            known = [given if self.known is None else {self.known: sums[next(numbers)]} for _ in unit]
            self.store(block, row, 0, unit, known, [outer] * len(unit))

    def is_long(self, sums: int) -> bool:
        """True if a loop saves enough code to pay."""
        vectors = math.prod(a.extent for a in self.nest.axes) / self.target.lanes(4)
        long = LONG if self.packable is None else LONG_PACKED
        return long.pays(self.operations * sums, self.steps, self.terms, vectors)

    def is_less_code(self, block: OutputBlock, sums: int) -> bool:
        """True if a loop saves enough code to pay, where narrow floats make the code of each vector long."""
        if self.steps == 0 or sums < 2 or self.share == SLOWDOWN_FRACTION:
            return False
        kinds = len({(p.lanes, p.active) for p in block.pieces})
        saved = sums * (self.operations + STORE_LINES) - 2 * sums - kinds * (self.operations + LOOP_LINES)
        vectors = math.prod(a.extent for a in self.nest.axes) / block.pieces[0].lanes
        slower = self.target.costs.spilled_vector_cycles * vectors
        return slower <= min(price_of(self.share) * saved, tolerated(vectors * self.steps / 2, self.share))

    def units(self, block: OutputBlock) -> list[tuple[Piece, ...]]:
        """Return the groups of vectors of a row that are stored at once."""
        column, index = block.column, self.nest.index
        if self.packable is None or column is None or index.coefficient(column) != 1 or column in index.hidden:
            return [(piece,) for piece in block.pieces]
        return units(block.pieces, self.target.lanes(4))

    def store(self, block: OutputBlock, row: Affine | int, moved: Affine | int, unit: Sequence[Piece], given: Sequence[Given],
              outer: Sequence[Vectorizer | None]) -> None:
        """Compute and store the neighbouring vectors of `unit` in a row, shifted by `moved` columns."""
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
        """Write the block one vector after the other, with its sums spilled to memory."""
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
        """Write the same vectors of each row, and read once what all rows share."""
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
        """Write a block whose sums are in memory, rows `width` apart, the first at `first`. Read once what all rows share."""
        assert self.known is not None
        for piece in block.pieces:
            shared = self.vectorizer(block, 0, 0, piece, NOTHING, None)
            for x in self.of_columns(block):
                shared.vector(x)
            for row in range(block.rows):
                sums = self.b.load(waiting, first + (row * width + piece.start), piece.lanes)
                self.store(block, row, 0, [piece], [{self.known: sums}], [shared])

    def of_columns(self, block: OutputBlock) -> list[Load]:
        """Return the unconditional loads, apart from the sums, that are equal in all rows."""
        if block.rows == 1 or self.known is None or any(isinstance(e, Guard) for e in nodes(self.nest.value)):
            return []
        given = block.at.keys() - {block.row}
        return [x for x in loads_beside(self.nest.value, self.known) if x.index[0].axes <= given]

    def constants(self) -> Given:
        """Load the constants of a long computation from memory: as literals they would take registers from enclosing loops."""
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
