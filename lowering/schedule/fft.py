"""Fourier transforms over two axes: sums with a table of roots of unity (`elements.roots`), computed in n log n steps.

A transform of W columns starts with sums of as many elements as a vector has lanes, one lane for each frequency: a product
with a small matrix. The remaining transforms have vectors as elements: the W / lanes vectors of a row, then H vectors of
neighbouring columns. If a row is shorter than a vector, the initial sums are over two axes, and no row transforms remain.

Transforms of vectors are radix 2 and alternate between the two halves of a work buffer. A step adds and subtracts element b
and element b + n/2, and stores the results side by side, at 2b and 2b + 1 (Pease, 1968), so that all steps are iterations of
one loop. The final order is bit-reversed.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...runtime.records import dataclass
from ..elements.affine import Affine, Axis
from ..elements.expression import Apply, Buffer, Expr, Load, Reduce
from ..elements.roots import Roots, roots
from ..graph.types import Array
from ..kernels.kernel import Kernel
from ..loops.builder import Builder
from ..loops.ir import INDEX, Literal, Operand, Type
from ..target.target import Target
from .nest.loop_nest import Nest, flat_values, flatten
from .nest.row_range import RowRange, nested
from .strategy import Constraints, Strategy
from .vectorize.vectorize import Vectorizer

MAX_INDEPENDENT_VECTORS, MIN_VECTORS_FOR_THEM = 2, 256
"""Maximum number of interleaved vectors of sums, none of which waits for the one before; minimum number of vectors of a
transform that is worth that code."""
MAX_MATRIX_POINTS, MAX_MATRIX_PRODUCTS = 8, 1 << 12
"""A transform is a product with a matrix, which is less code, if it has at most this number of points, or if all transforms
of its kind together have at most this number of products."""


@dataclass(frozen=True, slots=True)
class FourierChoice:
    """A transform of `height` rows of `width` elements, in vectors of `lanes` frequencies; the output has `columns` columns.
    `parts` are the real and perhaps the imaginary part of the input, elements on the axes `batch`, `y` and `x`."""
    lanes: int
    height: int
    width: int
    columns: int
    inverse: bool
    batch: Axis
    y: Axis
    x: Axis
    parts: tuple[Expr, ...]

    def __str__(self) -> str:
        return f"Fourier transform of {self.height} by {self.width}: vectors of {self.lanes}"


@dataclass(frozen=True, slots=True)
class FourierTransform(Strategy):
    """The strategy of a whole kernel that is a Fourier transform, in n log n steps."""
    nest: Nest
    target: Target
    choice: FourierChoice

    @staticmethod
    def recognise(kernel: Kernel, constraints: Constraints) -> FourierTransform | None:
        choice = recognise(kernel, constraints.target, constraints.by_rows)
        return FourierTransform(flatten(kernel), constraints.target, choice) if choice else None

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        lower(b, self.nest, self.choice, self.target, rows)

    def __str__(self) -> str:
        return str(self.choice)


def recognise(kernel: Kernel, target: Target, by_rows: bool) -> FourierChoice | None:
    match kernel.value:
        case Reduce("add", (y, x), body, ()):
            parts = inputs(body)
        case _:
            return None
    if parts is None or (by_rows and kernel.out.shape[0] == 1):
        return None
    (_, table), (batch, columns) = parts[0], (kernel.out.shape[0], kernel.out.shape[3])
    lanes = min(target.lanes(4), y.extent * x.extent)
    if columns % min(lanes, x.extent):
        return None
    return FourierChoice(lanes, y.extent, x.extent, columns, table.inverse, kernel.axes[0] if batch > 1 else Axis("n", 1), y, x,
                         tuple(flat_values(kernel, [e for e, _ in parts])))


def inputs(body: Expr) -> list[tuple[Load, Roots]] | None:
    """Return the parts of the input with their roots; None if the body is not that of a transform."""
    match body:
        case Apply("add", (one, other)):
            first, second = inputs(one), inputs(other)
            return first + second if first and second else None
        case Apply("mul", (Load() as x, Load(buffer=Roots() as table))):
            return [(x, table)]
    return None


def lower(b: Builder, nest: Nest, choice: FourierChoice, target: Target, rows: RowRange | None) -> None:
    """Write the transforms of the batch, one after the other."""
    f = Fourier(b, nest, choice, target)
    if choice.batch.extent == 1:
        f.transform(Affine())
    else:
        nested(b, (choice.batch,), {}, lambda at: f.transform(Affine.of(choice.batch)), rows)


class Fourier:
    """The loops of one kernel. Each half of `work` holds the vectors of a transform, real parts before imaginary ones; `lines`
    holds the transformed rows, in the same order."""

    def __init__(self, b: Builder, nest: Nest, choice: FourierChoice, target: Target) -> None:
        self.b, self.out, self.name, self.choice, self.target = b, nest.out, nest.name, choice, target
        v, h, w = choice.lanes, choice.height, choice.width
        self.sign = -1.0 if choice.inverse else 1.0
        self.short = w < v
        self.type = Type("float32", v)
        self.first = h * w // v if self.short else w // v
        size = max(self.first, 1 if self.short else h)
        self.place = 2 * size * v
        self.work = b.scratch(Buffer(f"{self.name}.work", "float32", (2 * self.place,), "scratch"))
        both = not self.short and h > 1
        self.lines = b.scratch(Buffer(f"{self.name}.lines", "float32", (2 * h * choice.columns,), "scratch")) if both else None

    def transform(self, batch: Affine) -> None:
        c, v = self.choice, self.choice.lanes
        start = batch * (2 * c.height * c.columns)
        if self.short:  # rows and some of the columns at once
            self.sums(batch, Affine(), Affine())
            self.vectors(self.first, self.first, 1, lambda k: start + k * v, self.out, c.height * c.width)
            return
        y, block, plane = Axis("y", c.height), Axis("block", c.columns // v), c.height * c.columns
        target, origin = (self.lines, Affine()) if self.lines else (self.out, start)

        def row() -> None:
            self.sums(batch, Affine.of(y), Affine())
            self.vectors(self.first, c.columns // v, c.height, lambda k: origin + Affine.of(y) * c.columns + k * v, target,
                         plane)

        def column() -> None:
            lines = self.lines
            assert lines
            k, place = Axis("k", c.height), Affine.of(block) * v

            def last(k: Affine) -> Affine:
                return start + k * c.columns + place

            if self.is_short(c.height, block.extent):
                self.products(c.height, c.height, lines, (place, c.columns, plane), last, self.out, plane)
                return
            self.b.loop(k, lambda: self.copied(lines, Affine.of(k) * c.columns + place, plane,
                                          self.work, Affine.of(k) * v, c.height * v))
            self.vectors(c.height, c.height, block.extent, last, self.out, plane)

        self.b.loop(y, row)
        if self.lines:
            self.b.loop(block, column)

    # ---- sums of a few elements ----------------------------------------------------------------------------------
    def sums(self, batch: Affine, y: Affine, x: Affine) -> None:
        """Write the initial sums, multiplied by their twiddle factors, to the first half of `work`."""
        c = self.choice
        beside = min(MAX_INDEPENDENT_VECTORS if c.height * c.width >= MIN_VECTORS_FOR_THEM * c.lanes else 1, self.first)
        turn = Axis("turn", self.first // beside)
        self.b.loop(turn, lambda: self.some_sums(batch, y, [Affine.of(turn) * beside + i for i in range(beside)]))

    def some_sums(self, batch: Affine, y: Affine, places: list[Affine]) -> None:
        c, b, v = self.choice, self.b, self.choice.lanes
        matrix = self.table("matrix", self.matrix())
        width = c.width if self.short else 1
        j, i = Axis("j", v // width), Axis("i", width)

        def term(*sums: Operand) -> list[Operand]:
            row = (Affine.of(j) * width + i) * (2 * v)
            cosine, sine = (b.load(matrix, row + q * v, v) for q in range(2))
            result: list[Operand] = []
            for place, (real, imaginary) in zip(places, zip(sums[::2], sums[1::2])):
                element = Affine.of(j) * self.first + place
                at = {c.batch: batch, c.y: element if self.short else y, c.x: Affine.of(i) if self.short else element}
                element_at = Vectorizer(b, self.target, at)
                for q, part in enumerate(c.parts):
                    value = b.splat(element_at.value(part), v)
                    real = b.op("fma", value, sine if q else cosine, real)
                    imaginary = b.op("fma", value, cosine, imaginary) if q else b.op(
                        "fma", value, self.negative(sine), imaginary)
                result += [real, imaginary]
            return result

        zeros = [Literal(0.0, self.type)] * (2 * len(places))
        found = b.loop(j, lambda *sums: b.loop(i, term, sums), zeros)
        turns = self.table("turns", self.turns()) if self.first > 1 else None
        for place, real, imaginary in zip(places, found[::2], found[1::2]):
            if turns:
                cosine, sine = (b.load(turns, place * (2 * v) + q * v, v) for q in range(2))
                real, imaginary = self.turned(real, imaginary, cosine, sine)
            self.store(self.work, place * v, self.first * v, real, imaginary)

    # ---- transforms of vectors -----------------------------------------------------------------------------------
    def vectors(self, n: int, kept: int, times: int, to: Callable[[Affine], Affine], target: Buffer, plane: int) -> None:
        """Write the first `kept` vectors of the transform of the n vectors in `work`; there are `times` such transforms."""
        if n > 1 and self.is_short(n, times):
            self.products(n, kept, self.work, (Affine(), self.choice.lanes, n * self.choice.lanes), to, target, plane)
            return
        if n > 1:
            self.steps(n)
        self.reordered(n, kept, to, target, plane)

    def is_short(self, n: int, times: int) -> bool:
        return n <= MAX_MATRIX_POINTS or n * n * times <= MAX_MATRIX_PRODUCTS

    def products(self, n: int, kept: int, source: Buffer, place: tuple[Affine, int, int], to: Callable[[Affine], Affine],
                 target: Buffer, plane: int) -> None:
        """Write the same vectors as sums of n products. `place` has the offset of the first vector, the stride between vectors,
        and the distance from real to imaginary parts."""
        b, v, (start, stride, between) = self.b, self.choice.lanes, place
        table = self.table(f"matrix{n}", np.stack(roots(n, np.outer(np.arange(kept), np.arange(n)), self.sign), 2))
        k, at = Axis("k", kept), Axis("at", n)

        def term(*sums: Operand) -> list[Operand]:
            turn = [b.splat(b.load(table, Affine.of(k) * (2 * n) + Affine.of(at) * 2 + q), v) for q in range(2)]
            parts = self.load(source, start + Affine.of(at) * stride, between)
            factors = [(x, by) for x in parts for by in turn]
            return [b.op("fma", x, by, total) for (x, by), total in zip(factors, sums)]

        def one() -> None:
            xc, xs, yc, ys = b.loop(at, term, [Literal(0.0, self.type)] * 4)
            self.store(target, to(Affine.of(k)), plane, b.op("add", xc, ys), b.op("sub", yc, xs))

        b.loop(k, one)

    def steps(self, n: int) -> None:
        """Transform the n vectors in the first half of `work`. The result, in bit-reversed order, is in the first half again
        after an even number of steps."""
        steps = n.bit_length() - 1
        b, v, half = self.b, self.choice.lanes, n // 2
        cosine, sine = roots(n, np.arange(half), self.sign)
        table = self.table(f"roots{n}", np.stack([cosine, sine], 1))
        masks = Buffer(f"{self.name}.masks{n}", "int64", (steps,), "constant",
                       np.array([-1 << s & (half - 1) for s in range(steps)], np.int64))
        step, at = Axis("step", steps), Axis("at", half)

        def one() -> None:
            source = self.moved("source", b.op("and", b.index(Affine.of(step)), Literal(1, INDEX)))
            result = self.moved("result", b.op("and", b.index(Affine.of(step) + 1), Literal(1, INDEX)))
            mask = b.load(masks, Affine.of(step))

            def butterfly() -> None:
                angle = self.placed("angle", b.op("min", b.op("max", b.op("and", b.index(Affine.of(at)), mask),
                                                              Literal(0, INDEX)), Literal(half - 1, INDEX)), half)
                turn = [b.splat(b.load(table, angle * 2 + q), v) for q in range(2)]
                (x, y), (z, w) = (self.load(self.work, source + Affine.of(at) * v + part, n * v) for part in (0, half * v))
                self.store(self.work, result + Affine.of(at) * (2 * v), n * v, b.op("add", x, z), b.op("add", y, w))
                difference = self.turned(b.op("sub", x, z), b.op("sub", y, w), *turn)
                self.store(self.work, result + Affine.of(at) * (2 * v) + v, n * v, *difference)

            b.loop(at, butterfly)

        b.loop(step, one)

    def moved(self, name: str, number: Operand) -> Affine:
        """Return the offset of the first or the second half of `work`."""
        return self.placed(name, number, 2) * self.place

    def placed(self, name: str, value: Operand, extent: int) -> Affine:
        """Return an index whose value is computed here."""
        axis = Axis(name, extent)
        if extent == 1:
            return Affine()
        self.b.place(axis, value)
        return Affine.of(axis)

    def reordered(self, n: int, kept: int, to: Callable[[Affine], Affine], target: Buffer, plane: int) -> None:
        """Copy the first `kept` vectors of a transform, in the order of frequencies."""
        b, v, bits = self.b, self.choice.lanes, n.bit_length() - 1
        k, start = Axis("k", kept), bits % 2 * self.place
        if bits < 2:
            b.loop(k, lambda: self.copied(self.work, Affine.of(k) * v + start, n * v, target, to(Affine.of(k)), plane))
            return
        order = Buffer(f"{self.name}.order{n}", "int64", (n,), "constant",
                       np.array([int(f"{i:0{bits}b}"[::-1], 2) * v for i in range(n)], np.int64))

        def one() -> None:
            axis = Axis("from", (n - 1) * v + 1)
            b.place(axis, b.load(order, Affine.of(k)))
            self.copied(self.work, Affine.of(axis) + start, n * v, target, to(Affine.of(k)), plane)

        b.loop(k, one)

    # ---- complex numbers -----------------------------------------------------------------------------------------
    def load(self, buffer: Buffer, index: Affine, plane: int) -> tuple[Operand, Operand]:
        """Return a vector of real parts, and the vector of imaginary parts `plane` elements after it."""
        v = self.choice.lanes
        return self.b.load(buffer, index, v), self.b.load(buffer, index + plane, v)

    def store(self, buffer: Buffer, index: Affine, plane: int, real: Operand, imaginary: Operand) -> None:
        self.b.store(buffer, index, real)
        self.b.store(buffer, index + plane, imaginary)

    def copied(self, source: Buffer, index: Affine, plane: int, target: Buffer, to: Affine, other: int) -> None:
        self.store(target, to, other, *self.load(source, index, plane))

    def turned(self, x: Operand, y: Operand, cosine: Operand, sine: Operand) -> tuple[Operand, Operand]:
        """Return (x + iy) (cosine - i sine)."""
        b = self.b
        return (b.op("fma", x, cosine, b.op("mul", y, sine)),
                b.op("fma", y, cosine, self.negative(b.op("mul", x, sine))))

    def negative(self, x: Operand) -> Operand:
        return self.b.op("mul", x, Literal(-1.0, x.type))

    # ---- constants -----------------------------------------------------------------------------------------------
    def table(self, what: str, values: Array) -> Buffer:
        data = np.ascontiguousarray(values, np.float32).reshape(-1)
        return Buffer(f"{self.name}.{what}", "float32", data.shape, "constant", data)

    def matrix(self) -> Array:
        """Return the roots of the initial sums, as [element, part, lane]. Elements, and frequencies in the lanes, have two axes
        if rows are short."""
        v, w = self.choice.lanes, self.choice.width if self.short else 1
        at = np.arange(v)
        turns = np.outer(at // w, at // w) * w + np.outer(at % w, at % w) * (v // w)
        return np.stack(roots(v, turns, self.sign), 1)

    def turns(self) -> Array:
        """Return the twiddle factors of the initial sums, as [vector, part, lane]."""
        v, w = self.choice.lanes, self.choice.width if self.short else 1
        return np.stack(roots(self.first * (v // w), np.outer(np.arange(self.first), np.arange(v) // w), self.sign), 1)
