"""Pack A: copy the rows of a register tile of bytes to scratch, so that any convolution of bytes becomes a plain matrix product
(the im2col of one tile). K is flat in memory, with the zero point where a condition fails, and zeros as padding. The
micro-kernels of bytes read the rows there.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Range
from ...elements.expression import Buffer, Load
from ...graph.types import ITEM_SIZES
from ...loops.builder import Builder
from ...loops.ir import Literal, Operand, Type
from ...target.target import Target
from ..nest.loop_nest import At, number_of
from ..nest.reduction_loops import alike, reduce_loops
from ..nest.row_range import nested
from ..nest.tile_axis import Tiles, chunks, in_steps, over, pieces
from .pattern import Contraction

START = Affine()
WORD, COPIED_VECTORS = 4, 4
"""Number of elements that are copied at a time without vectors: the bytes of a register. Number of vectors in an iteration of a
copy loop."""
Value = Callable[[Affine, int, int], Operand]
"""Function that returns the values of a run from a position on, given the lanes and the active lanes."""


@dataclass(frozen=True, slots=True)
class RowPacking:
    """The packing of rows of `x`, each of `depth` elements, `stride` elements apart. If the bytes are `stored` with the other
    signedness, 128 is subtracted or added; if as int16, the zero point is subtracted. If b has a zero point, `terms` holds its
    contribution to each row's sums."""
    b: Builder
    target: Target
    pattern: Contraction
    x: Load
    zero_point: int
    buffer: Buffer
    depth: int
    stride: int
    stored: str
    factor: int = 0
    terms: Buffer | None = None
    first: Affine = START
    """Number of the first row in the buffer."""
    fills: bool = True
    """True if `pack` pads K; else `fill_up` does, once for all tiles."""

    @staticmethod
    def of(b: Builder, pattern: Contraction, x: Load, zero_points: tuple[int, int], rows: int, depth: int, stride: int,
           target: Target, stored: str | None = None, fills: bool = True) -> RowPacking:
        """Return a packing with scratch for `rows` rows. The scratch has type int8 if bytes are `stored` as uint8.
        `zero_points` are those of a and b."""
        name, size, dtype = pattern.nest.name, (rows - 1) * stride + depth, "int8" if stored == "uint8" else stored or x.dtype
        buffer = b.scratch(Buffer(f"{name}.rows", dtype, (size,), "scratch"))
        terms = b.scratch(Buffer(f"{name}.terms", "int32", (rows,), "scratch")) if zero_points[1] else None
        return RowPacking(b, target, pattern, x, zero_points[0], buffer, depth, stride, stored or x.dtype, -zero_points[1],
                          terms, fills=fills)

    def pack(self, at: At, rows: int) -> None:
        """Write buffer[r, k] = a[m + r, k], or the zero point where a condition fails. Rows whose conditions hold for all of K
        are copied in longer runs than the rows before and after them."""
        where = [w for w in self.pattern.reduce.where if w not in self.pattern.inside and any(
            w.substitute(self.pattern.row_at(at, r)).known is not True for r in (0, rows - 1))]
        self.pack_rows(at, rows, where)
        if self.fills:
            self.fill_up(rows)
        if self.terms:
            over(self.b, [Tiles(0, 1, rows)], lambda start, _: self.term(self.first + start))

    def fill_up(self, rows: int) -> None:
        """Write zeros after the elements of each row."""
        if rest := self.depth - self.pattern.depth:
            over(self.b, [Tiles(0, 1, rows)], lambda row, _: self.run(
                0, self.first + row, Affine.of(self.pattern.depth), rest))

    def pack_rows(self, at: At, rows: int, where: Sequence[Range]) -> None:
        """Pack the rows that meet conditions, and those between them; row by row if it is unknown which rows do."""
        if rows > 1 and self.pattern.m and at[self.pattern.m].terms and any(map(self.on_rows, where)):
            over(self.b, [Tiles(0, 1, rows)], lambda start, _: replace(self, first=self.first + start).lines(
                self.pattern.row_at(at, start), range(1), where))
            return
        free = [r for r in range(rows) if all(w.substitute(self.pattern.row_at(at, r)).known for w in where if self.on_rows(w))]
        low, high = (free[0], free[-1] + 1) if free else (0, 0)
        around = [w for w in where if not self.on_rows(w)]
        for span, conditions in ((range(low), where), (range(low, high), around), (range(high, rows), where)):
            if span:
                self.lines(at, span, conditions)

    def lines(self, at: At, rows: range, where: Sequence[Range]) -> None:
        """Pack these rows. Axes of K in conditions on rows are unrolled, so that the conditions are settled at compile time;
        other conditions are tested once for many elements."""
        axes = self.pattern.reduce.axes
        unrolled = [a for a in axes if any(w.index.coefficient(a) for w in where if self.on_rows(w))]
        run = self.run_of([a for a in axes if any(w.index.coefficient(a) for w in where)])
        looped = [a for a in axes[:len(axes) - len(run)] if a not in unrolled]
        runs = alike(unrolled, where, [self.pattern.row_at(at, r) for r in rows], tested=True)
        for position in itertools.product(*(runs[a] for a in unrolled)):
            loops = [Axis(a.name, len(values)) for a, values in zip(unrolled, position)]
            here = {**at, **{a: Affine.of(loop) + values.start for a, loop, values in zip(unrolled, loops, position)},
                    **{a: Affine() for a in run}}
            for members, condition in self.cases(here, rows, where):
                nested(self.b, tuple(loops), {}, lambda _: self.pack_axes(here, members, condition, looped, run))

    @property
    def test_cycles(self) -> float:
        """Cycles of the tests of a row, for each element of K."""
        axes = self.pattern.reduce.axes
        run = self.run_of([a for a in axes if any(w.index.coefficient(a) for w in self.pattern.reduce.where)])
        return self.target.costs.condition_test_cycles / math.prod(a.extent for a in run)

    def on_rows(self, w: Range) -> bool:
        return self.pattern.m is not None and bool(w.index.coefficient(self.pattern.m))

    def run_of(self, excluded: Sequence[Axis]) -> tuple[Axis, ...]:
        """Return the last axes of K that form one contiguous run in memory, without the `excluded`."""
        return run_of(self.x, self.pattern.reduce.axes, excluded)

    def cases(self, at: At, rows: range, where: Sequence[Range]) -> list[tuple[range, tuple[Range, ...] | None]]:
        """Return groups of neighbouring rows with the conditions to test for them; None instead if a condition always fails."""
        result: list[tuple[range, tuple[Range, ...] | None]] = []
        if not where:
            return [(rows, ())]
        for r in rows:
            placed = [w.substitute(self.pattern.row_at(at, r)) for w in where]
            failing = any(w.known is False for w in placed)
            condition = None if failing else tuple(w for w in placed if w.known is None)
            if result and result[-1][1] == condition:
                result[-1] = (range(result[-1][0].start, r + 1), condition)
            else:
                result.append((range(r, r + 1), condition))
        return result

    def pack_axes(self, at: At, rows: range, condition: tuple[Range, ...] | None, looped: Sequence[Axis],
                  run: tuple[Axis, ...]) -> None:
        """Copy these rows, or fill them with the zero point, for all values of the axes `looped`."""
        length = math.prod(a.extent for a in run)

        def step(at: At, _: Sequence[Operand]) -> tuple[()]:
            if condition:
                holds = self.b.holds([w.substitute(at) for w in condition])
                self.b.when(holds, lambda: self.copy(at, rows, length, True))
                self.b.when(self.b.op("xor", holds, Literal(1, holds.type)), lambda: self.copy(at, rows, length, False))
            else:
                self.copy(at, rows, length, condition is not None)
            return ()

        bounds = [w for w in self.pattern.inside if any(w.index.coefficient(a) for a in looped)]
        reduce_loops(self.b, tuple(looped), bounds, at, (), step, unroll=1, short=0)

    def copy(self, at: At, rows: range, length: int, inside: bool) -> None:
        """Copy one run of each row."""
        k = number_of(self.pattern.reduce.axes, at)

        def line(row: Affine, _: Tiles) -> None:
            source = self.x.index[0].substitute(self.pattern.row_at(at, row))
            self.run(source if inside else self.filled, self.first + row, k, length)

        over(self.b, [Tiles(rows.start, 1, len(rows))], line)

    def run(self, source: Affine | int, row: Affine, k: Affine, length: int) -> None:
        """Store elements of a row from k on: from an offset in memory, or a constant."""
        def value(place: Affine, lanes: int, active: int) -> Operand:
            type = Type(self.buffer.dtype, lanes)
            if isinstance(source, int):
                return Literal(source, type)
            found: Operand = self.b.load(self.x.buffer, source + place, lanes, active)
            if self.stored == "int16":
                wide = self.b.op("cast", found, type=type)
                return self.b.op("sub", wide, Literal(self.zero_point, type)) if self.zero_point else wide
            if found.type != type:
                found = self.b.op("bits", found, type=type)
            return found if self.stored == self.x.dtype else self.b.op("xor", found, Literal(-128, type))

        store_run(self.b, self.target, self.buffer, row * self.stride + k, range(length), value)

    @property
    def filled(self) -> int:
        """Zero point as it is stored."""
        if self.stored == "int16":
            return 0
        value = self.zero_point + 128 * (self.stored != self.x.dtype) * (1 if self.stored == "uint8" else -1)
        return (value + 128) % 256 - 128 if self.buffer.dtype == "int8" else value

    def term(self, row: Affine) -> None:
        """Store the contribution of b's zero point to the sums of a row: factor * the sum of the row."""
        assert self.terms
        lanes = max(1, self.target.vector_bytes // 4)

        def summed(vector: Affine, count: int, totals: Sequence[Operand]) -> list[Operand]:
            x = self.b.load(self.buffer, row * self.stride + vector * (4 * lanes), 4 * lanes, count)
            ones = Literal(1, Type("int8", 4 * lanes))
            factors = (x, ones) if self.stored == "uint8" else (ones, x)
            return [self.b.op(self.target.dot4, *totals, *factors, type=totals[0].type)]

        (total,) = in_steps(self.b, self.depth, 4 * lanes, summed, [Literal(0, Type("int32", lanes))])
        one = self.b.op("reduce_add", total, type=Type("int32")) if lanes > 1 else total
        self.b.store(self.terms, row, self.b.op("mul", one, Literal(self.factor, one.type)))


def store_run(b: Builder, target: Target, buffer: Buffer, start: Affine, places: range, value: Value) -> None:
    """Store the values of these positions of a run, which begins at `start`, in vectors."""
    lanes = max(WORD, target.lanes(ITEM_SIZES[buffer.dtype]))

    def some(first: Affine, t: Tiles) -> None:
        for piece in pieces(t.size, lanes, target.has_masked):
            at = first + (places.start + piece.start)
            b.store(buffer, start + at, value(at, piece.lanes, piece.active), piece.active)

    over(b, chunks(len(places), COPIED_VECTORS * lanes), some)


def run_of(x: Load, axes: tuple[Axis, ...], excluded: Sequence[Axis]) -> tuple[Axis, ...]:
    """Return the last axes of K that form one contiguous run in memory, without the `excluded`."""
    i = x.index[0]
    first = len(axes) if axes[-1] in excluded else len(axes) - 1
    while 0 < first < len(axes) and axes[first - 1] not in excluded and (
            i.coefficient(axes[first - 1]) == i.coefficient(axes[first]) * axes[first].extent):
        first -= 1
    return axes[first:]
