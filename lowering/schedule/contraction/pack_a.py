"""Pack A: copies the rows of a register tile of bytes to scratch, so that any convolution of bytes becomes a plain product of
matrices (the im2col of one tile): K lies flat in memory, the zero point stands where a condition fails, zeros fill K up.
The micro-kernels of bytes read the rows there.
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
"""Elements that are copied at a time where there are no vectors: bytes of a register. Vectors in an iteration of a loop that
copies."""
Value = Callable[[Affine, int, int], Operand]
"""What belongs at places of a run: from one on, so many lanes, of which some are active."""


@dataclass(frozen=True, slots=True)
class RowPacking:
    """Where rows of `x` go: `depth` elements each, `stride` apart. Where these are `stored` as other bytes than they are, as
    signed or as unsigned ones, they become 128 less or more; as int16, less their zero point. Where b has a zero point, `terms`
    holds what it adds to each row's sums."""
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
    """Where the first row goes."""
    fills: bool = True
    """True if `pack` fills K up; else `fill_up` does, once for all tiles."""

    @staticmethod
    def of(b: Builder, pattern: Contraction, x: Load, zero_points: tuple[int, int], rows: int, depth: int, stride: int,
           target: Target, stored: str | None = None, fills: bool = True) -> RowPacking:
        """With scratch for `rows` rows, of the type of signed bytes where it is said how they are `stored`. `zero_points` are
        those of a and b."""
        name, size, dtype = pattern.nest.name, (rows - 1) * stride + depth, "int8" if stored == "uint8" else stored or x.dtype
        buffer = b.scratch(Buffer(f"{name}.rows", dtype, (size,), "scratch"))
        terms = b.scratch(Buffer(f"{name}.terms", "int32", (rows,), "scratch")) if zero_points[1] else None
        return RowPacking(b, target, pattern, x, zero_points[0], buffer, depth, stride, stored or x.dtype, -zero_points[1],
                          terms, fills=fills)

    def pack(self, at: At, rows: int) -> None:
        """buffer[r, k] = a[m + r, k]; the zero point where a condition fails. Rows whose conditions hold for all of K
        are copied in longer runs than those around."""
        where = [w for w in self.pattern.reduce.where if w not in self.pattern.inside and any(
            w.substitute(self.pattern.row_at(at, r)).known is not True for r in (0, rows - 1))]
        self.pack_rows(at, rows, where)
        if self.fills:
            self.fill_up(rows)
        if self.terms:
            over(self.b, [Tiles(0, 1, rows)], lambda start, _: self.term(self.first + start))

    def fill_up(self, rows: int) -> None:
        """Zeros behind the elements of rows."""
        if rest := self.depth - self.pattern.depth:
            over(self.b, [Tiles(0, 1, rows)], lambda row, _: self.run(
                0, self.first + row, Affine.of(self.pattern.depth), rest))

    def pack_rows(self, at: At, rows: int, where: Sequence[Range]) -> None:
        """Rows that meet conditions, and those between; one by one where it is not known which do."""
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
        """These rows. Axes of K in conditions on them are unrolled, so that these are settled when compiling; others are
        tested once for many elements."""
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
        """What tests of a row take, for each element of K."""
        axes = self.pattern.reduce.axes
        run = self.run_of([a for a in axes if any(w.index.coefficient(a) for w in self.pattern.reduce.where)])
        return self.target.costs.condition_test_cycles / math.prod(a.extent for a in run)

    def on_rows(self, w: Range) -> bool:
        return self.pattern.m is not None and bool(w.index.coefficient(self.pattern.m))

    def run_of(self, excluded: Sequence[Axis]) -> tuple[Axis, ...]:
        """The last axes of K, as many as lie in memory as one run; none of the `excluded`."""
        return run_of(self.x, self.pattern.reduce.axes, excluded)

    def cases(self, at: At, rows: range, where: Sequence[Range]) -> list[tuple[range, tuple[Range, ...] | None]]:
        """Neighbouring rows with the conditions that must be tested for them; None where one fails for sure."""
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
        """Copy, or fill, these rows for all values of the axes `looped`."""
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
        """One run of each row."""
        k = number_of(self.pattern.reduce.axes, at)

        def line(row: Affine, _: Tiles) -> None:
            source = self.x.index[0].substitute(self.pattern.row_at(at, row))
            self.run(source if inside else self.filled, self.first + row, k, length)

        over(self.b, [Tiles(rows.start, 1, len(rows))], line)

    def run(self, source: Affine | int, row: Affine, k: Affine, length: int) -> None:
        """Elements of a row from k on: from a place in memory, or a number."""
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
        """The zero point as it is stored."""
        if self.stored == "int16":
            return 0
        value = self.zero_point + 128 * (self.stored != self.x.dtype) * (1 if self.stored == "uint8" else -1)
        return (value + 128) % 256 - 128 if self.buffer.dtype == "int8" else value

    def term(self, row: Affine) -> None:
        """What b's zero point adds to the sums of a row: factor * its sum."""
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
    """Store what belongs at some places of a run, which begins at `start`, in vectors."""
    lanes = max(WORD, target.lanes(ITEM_SIZES[buffer.dtype]))

    def some(first: Affine, t: Tiles) -> None:
        for piece in pieces(t.size, lanes, target.has_masked):
            at = first + (places.start + piece.start)
            b.store(buffer, start + at, value(at, piece.lanes, piece.active), piece.active)

    over(b, chunks(len(places), COPIED_VECTORS * lanes), some)


def run_of(x: Load, axes: tuple[Axis, ...], excluded: Sequence[Axis]) -> tuple[Axis, ...]:
    """The last axes of K, as many as lie in memory as one run; none of the `excluded`."""
    i = x.index[0]
    first = len(axes) if axes[-1] in excluded else len(axes) - 1
    while 0 < first < len(axes) and axes[first - 1] not in excluded and (
            i.coefficient(axes[first - 1]) == i.coefficient(axes[first]) * axes[first].extent):
        first -= 1
    return axes[first:]
