"""Products of bytes, four at a time (VNNI): sum of u8 * s8 into i32.

The rows of a tile are copied to scratch as unsigned bytes, the sign bit of signed ones flipped, which adds 128;
padding is filled with the zero point. What that and the zero point add to a sum depends on the column only, and is
taken off in the sums' initial value. So any convolution of bytes becomes a plain product of matrices.
"""
from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..elements.affine import Affine, Axis, Range
from ..elements.expression import Apply, Buffer, Cast, Const, Expr, Load, guard
from ..elements.traverse import computed
from ..loops.builder import Builder
from ..loops.ir import Literal, Operand, Type
from ..native.target import Target
from .conditions import Conditions
from .panels import Cut, Panels, is_constant, packed
from .reduce_loops import alike, bounds
from .rows import nested
from .tiles import Piece, Tiles, chunks, over, pieces
from .vectorize import At

if TYPE_CHECKING:
    from collections.abc import Callable

    from .contraction import Contraction

GROUP = 4


def byte(e: Expr) -> tuple[Load, int] | None:
    """(x, z) where e is x - z, in int32, and x is a byte."""
    match e:
        case Cast(Load() as x, "int32", False) if x.dtype in ("int8", "uint8"):
            return x, 0
        case Apply("sub", (inner, Const(z))) if (found := byte(inner)) and not found[1]:
            return found[0], int(z)
    return None


def bytes_of(form: Contraction) -> tuple[Load, int] | None:
    """The signed or unsigned bytes of a and their zero point, if a and b are products for `dot4`."""
    a, w = byte(form.a), byte(form.b)
    if not a or not w or w[1] or w[0].dtype != "int8" or not is_constant(form.b):
        return None
    x, zero_point = a
    lowest = -128 if x.dtype == "int8" else 0
    plain = not computed(x.index) and x.index[0].coefficient(form.reduce.axes[-1]) == 1
    return a if plain and lowest <= zero_point < lowest + 256 else None


def prefixes(form: Contraction, flat: Axis) -> tuple[Range, ...] | None:
    """The conditions on b alone as bounds of K, flat: how far it goes changes evenly along an outer axis. None where that
    cannot be said."""
    result, (outermost, *_) = [], form.reduce.axes
    for w in form.inside:
        others = [a for a in w.index.axes if a is not outermost]
        if len(others) != 1 or not w.index.coefficient(outermost):
            return None
        (outer,) = others
        holds = [[w.substitute({outer: Affine.of(i), outermost: Affine.of(j)}).known for j in range(outermost.extent)]
                 for i in range(outer.extent)]
        counts = [row.count(True) for row in holds]
        step = counts[1] - counts[0]
        if any(not all(row[:n]) or n != counts[0] + i * step for i, (row, n) in enumerate(zip(holds, counts))):
            return None
        size = form.depth // outermost.extent
        reach = Affine.of(flat) - Affine.of(outer) * (step * size)
        result.append(Range(reach, reach.bounds[0], counts[0] * size))
    return tuple(result)


@dataclass(frozen=True, slots=True)
class Dot4:
    """One step of K: total += dot product of four staged bytes with four of b, in each lane."""
    b: Builder
    target: Target
    form: Contraction
    x: Load
    zero_point: int
    panels: Panels
    staged: Buffer
    """One tile of rows."""
    correction: Buffer
    conditions: Conditions
    group: int = GROUP

    @staticmethod
    def of(b: Builder, form: Contraction, rows: int, target: Target, cut: Cut) -> Dot4:
        name, found = form.nest.name, bytes_of(form)
        assert found
        x, zero_point = found
        known = guard(form.inside, form.b, 0) if form.inside else form.b
        panels, data = packed(name, known, form.n, form.reduce.axes, form.batch, cut, "int8", GROUP)
        depth = panels.axes[0].extent
        staged = b.scratch(Buffer(f"{name}.rows", "int8", (rows * depth,), "scratch"))
        flipped = 128 if x.dtype == "int8" else 0
        sums = -(flipped + zero_point) * data.astype(np.int64).sum(axis=2)
        filled = sum(t.count * sum(p.lanes for p in vectors) for t, vectors in cut)
        sums = np.pad(sums, ((0, 0), (0, filled - sums.shape[1]))).astype(np.int32)
        correction = Buffer(f"{name}.initial", "int32", (sums.size,), "constant", sums.reshape(-1))
        conditions = Conditions((), prefixes(form, panels.axes[0]) or (), (), frozenset())
        return Dot4(b, target, form, x, zero_point, panels, staged, correction, conditions)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """K, flat and filled up to a multiple of four."""
        return self.panels.axes

    @property
    def depth(self) -> int:
        return self.axes[0].extent

    # ---- staging -----------------------------------------------------------------------------------------------------
    def stage(self, at: At, rows: int) -> None:
        """staged[r, k] = a[m + r, k] + 128; the zero point where a condition fails. Axes of K in conditions on the rows of
        the tile are taken apart, so that these are settled when compiling; others are tested once for many elements."""
        where = [w for w in self.form.reduce.where if w not in self.form.inside and any(
            w.substitute(self.row_at(at, r)).known is not True for r in (0, rows - 1))]
        axes = self.form.reduce.axes
        apart = [a for a in axes if any(w.index.coefficient(a) for w in where if self.on_rows(w))]
        run = self.run_of([a for a in axes if any(w.index.coefficient(a) for w in where)])
        looped = [a for a in axes[:len(axes) - len(run)] if a not in apart]
        runs = alike(apart, where, [self.row_at(at, r) for r in range(rows)])
        for position in itertools.product(*(runs[a] for a in apart)):
            loops = [Axis(a.name, len(values)) for a, values in zip(apart, position)]
            here = {**at, **{a: Affine.of(loop) + values.start for a, loop, values in zip(apart, loops, position)},
                    **{a: Affine() for a in run}}
            for members, condition in self.cases(here, rows, where):
                nested(self.b, tuple(loops), {}, lambda _: self.part(here, members, condition, looped, run))
        if rest := self.depth - self.form.depth:  # what fills K up meets zeros of b
            over(self.b, [Tiles(0, 1, rows)], lambda start, _: self.vectors(
                Affine(), start * self.depth + self.form.depth, rest, False))

    def on_rows(self, w: Range) -> bool:
        return self.form.m is not None and bool(w.index.coefficient(self.form.m))

    def run_of(self, apart: Sequence[Axis]) -> tuple[Axis, ...]:
        """The last axes of K, as many as lie in memory as one run; none of those `apart`."""
        axes, i = self.form.reduce.axes, self.x.index[0]
        first = len(axes) if axes[-1] in apart else len(axes) - 1
        while 0 < first < len(axes) and axes[first - 1] not in apart and (
                i.coefficient(axes[first - 1]) == i.coefficient(axes[first]) * axes[first].extent):
            first -= 1
        return axes[first:]

    def cases(self, at: At, rows: int, where: Sequence[Range]) -> list[tuple[range, tuple[Range, ...] | None]]:
        """Neighbouring rows with the conditions that must be tested for them; None where one fails for sure."""
        result: list[tuple[range, tuple[Range, ...] | None]] = []
        if not where:
            return [(range(rows), ())]
        for r in range(rows):
            placed = [w.substitute(self.row_at(at, r)) for w in where]
            failing = any(w.known is False for w in placed)
            condition = None if failing else tuple(w for w in placed if w.known is None)
            if result and result[-1][1] == condition:
                result[-1] = (range(result[-1][0].start, r + 1), condition)
            else:
                result.append((range(r, r + 1), condition))
        return result

    def part(self, at: At, rows: range, condition: tuple[Range, ...] | None, looped: Sequence[Axis],
             run: tuple[Axis, ...]) -> None:
        """Copy, or fill, these rows for all values of the axes `looped`."""
        if looped:
            axis, *rest = looped
            loop, low, high = Axis(axis.name, axis.extent), None, None
            inside = {**at, axis: Affine.of(loop)}
            if mine := [w.substitute(inside) for w in self.form.inside if w.index.coefficient(axis)]:
                low, high = bounds(self.b, loop, mine)
            self.b.loop(loop, lambda: self.part(inside, rows, condition, rest, run), (), low, high)
            return
        copy = functools.partial(self.copy, at, rows, math.prod(a.extent for a in run))
        if condition:
            holds = self.b.holds([w.substitute(at) for w in condition])
            self.b.when(holds, lambda: copy(True))
            self.b.when(self.b.op("xor", holds, Literal(1, holds.type)), lambda: copy(False))
        else:
            copy(condition is not None)

    def copy(self, at: At, rows: range, length: int, inside: bool) -> None:
        """One run of each row."""
        k = Affine()
        for axis in self.form.reduce.axes:
            k = k * axis.extent + at[axis]

        def line(start: Affine, _: Tiles) -> None:
            source = self.x.index[0].substitute(self.row_at(at, start))
            over(self.b, chunks(length, 4 * self.target.vector_bytes), lambda s, t: self.vectors(
                source + s, start * self.depth + k + s, t.size, inside))

        over(self.b, [Tiles(rows.start, 1, len(rows))], line)

    def vectors(self, source: Affine, target: Affine, length: int, inside: bool) -> None:
        signed = self.x.dtype == "int8"
        fill = (self.zero_point + (128 if signed else 0) + 128) % 256 - 128
        for piece in pieces(length, self.target.vector_bytes, self.target.has_masked):
            value: Operand = Literal(fill, Type("int8", piece.lanes))
            if inside:
                value = self.b.load(self.x.buffer, source + piece.start, piece.lanes, piece.active)
                if signed:
                    value = self.b.op("xor", value, Literal(-128, value.type))
                else:
                    value = self.b.op("bits", value, type=Type("int8", piece.lanes))
            self.b.store(self.staged, target + piece.start, value, piece.active)

    def row_at(self, at: At, row: Affine | int) -> At:
        return {**at, self.form.m: at[self.form.m] + row} if self.form.m else at

    # ---- the step ----------------------------------------------------------------------------------------------------
    def initial(self, at: At, piece: Piece) -> Operand:
        which = Affine()
        for a in self.panels.batch:
            which = which * a.extent + at[a]
        count = self.correction.size // math.prod(a.extent for a in self.panels.batch)
        return self.b.load(self.correction, which * count + at[self.form.n], piece.lanes)

    def row(self, at: At, row: int) -> Callable[[int], Operand]:
        (k,) = self.axes
        four = self.b.load(self.staged, at[k] + row * k.extent, GROUP)
        word = self.b.op("bits", four, type=Type("int32"))

        def lanes(count: int) -> Operand:
            return self.b.op("bits", self.b.splat(word, count), type=Type("int8", GROUP * count))

        return lanes

    def accumulate(self, total: Operand, row: Operand, column: Operand) -> Operand:
        return self.b.op("dot4", total, row, column, type=total.type)
