"""Matrix times vector (GEMV): sums over k of a[m, k] * x[k] where the terms of a row are contiguous. Several rows of a large
matrix are processed at a time, so that memory is read in as many streams at once, and x is read once for all these rows. The
lanes of a vector hold neighbouring terms.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...elements.expression import Apply, Expr, Load, Reduce, is_float
from ...elements.traverse import loads, nodes
from ...graph.types import ITEM_SIZES
from ...loops.builder import Builder
from ...loops.ir import Literal, Operand, Type
from ...target.target import Target
from ..nest.loop_nest import At, Nest, free_axes, is_dense, main_reduction
from ..nest.row_range import RowRange, nested
from ..nest.tile_axis import Piece, balanced, over
from ..strategy import Constraints, Strategy
from ..vectorize.epilogue import EpilogueWriter, OutputBlock
from ..vectorize.vectorize import Vectorizer

MAX_ROWS, VECTORS_OF_A_ROW = 8, 2
"""Maximum number of rows at a time, and number of vectors of terms of each row: enough sums to hide the latency of one."""


@dataclass(frozen=True, slots=True)
class MatrixVectorChoice:
    """The choice of `rows` rows at a time, and `vectors` vectors of `lanes` terms of each row."""
    rows: int
    vectors: int
    lanes: int

    def __str__(self) -> str:
        return f"gemv: {self.rows} rows, {self.vectors} vectors of {self.lanes} terms"


@dataclass(frozen=True, slots=True)
class Gemv(Strategy):
    """The strategy for a matrix times a vector, along the rows of the matrix."""
    nest: Nest
    target: Target
    choice: MatrixVectorChoice

    @staticmethod
    def recognise(nest: Nest, constraints: Constraints) -> Gemv | None:
        choice = recognise(nest, constraints.target, constraints.by_rows) if is_dense(nest) else None
        return Gemv(nest, constraints.target, choice) if choice else None

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        lower(b, self.nest, self.choice, self.target, rows)

    def alternatives(self) -> Iterator[Gemv]:
        yield from (replace(self, choice=replace(self.choice, rows=rows)) for rows in (1, 2, 3, 4, 6, 8)
                    if rows <= self.choice.rows)

    def __str__(self) -> str:
        return str(self.choice)


@dataclass(frozen=True, slots=True)
class GemvPattern:
    """The pattern: the reduction, its axis, the factor that differs between rows, and the other factor."""
    reduce: Reduce
    k: Axis
    a: Expr
    x: Expr


def pattern_of(nest: Nest) -> GemvPattern | None:
    m = nest.axes[-1]
    match main_reduction(nest, m):
        case Reduce("add", (k,), Apply("mul", factors), ()) as r if r.dtype in ("float32", "float64", "int32"):
            for a, x in (factors, factors[::-1]):
                if m not in free_axes(x) and all(plain(load, m, k) for load in loads(r.body)) and not any(
                        isinstance(e, Reduce) for e in nodes(r.body)):
                    return GemvPattern(r, k, a, x)
    return None


def plain(x: Load, m: Axis, k: Axis) -> bool:
    """True if terms are contiguous or equal, and the index is plain, with rows at least K elements apart."""
    i = x.index[0]
    return all(isinstance(t, Axis) for t, _ in i.terms) and i.coefficient(k) in (0, 1) and (
        i.coefficient(m) == 0 or abs(i.coefficient(m)) >= k.extent)


def recognise(nest: Nest, target: Target, rows: bool) -> MatrixVectorChoice | None:
    """Return a choice if rows have vectors of terms, else None. Products of integers take longer than their loads, so for these
    the matrix must exceed the second-level cache."""
    inner = nest.axes[1:] if rows else nest.axes
    pattern = pattern_of(nest) if inner and not nest.where else None
    if pattern is None or not target.has_cache:
        return None
    lanes = target.lanes(max(ITEM_SIZES[e.dtype] for e in nodes(pattern.reduce.body)))
    size = inner[-1].extent * pattern.k.extent * max(ITEM_SIZES[x.dtype] for x in loads(pattern.a))
    if (
        lanes == 1
        or pattern.k.extent < VECTORS_OF_A_ROW * lanes
        or not (is_float(pattern.reduce.dtype) or size > target.l2_bytes)
    ):
        return None
    most = (target.vector_registers - 1) // (VECTORS_OF_A_ROW + 1)
    return MatrixVectorChoice(min(MAX_ROWS, most, inner[-1].extent), VECTORS_OF_A_ROW, lanes)


def lower(b: Builder, nest: Nest, choice: MatrixVectorChoice, target: Target, rows: RowRange | None) -> None:
    pattern, (*outer, m) = pattern_of(nest), nest.axes
    assert pattern is not None
    writer = EpilogueWriter(b, target, nest, pattern.reduce, choice.rows)

    def tile(at: At, count: int) -> None:
        sums = Sums(b, target, pattern, choice, at, [{**at, m: at[m] + r} for r in range(count)]).all()
        writer.write(OutputBlock(at, m, count, None, (Piece(0, 1, 1),)), sums)

    nested(b, tuple(outer), {}, lambda at: over(b, balanced(m.extent, choice.rows), lambda start, t: tile(
        {**at, m: start}, t.size)), rows)


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of the rows at `places`."""
    b: Builder
    target: Target
    pattern: GemvPattern
    choice: MatrixVectorChoice
    at: At
    places: Sequence[At]

    def all(self) -> list[Operand]:
        b, dtype, lanes, each = self.b, self.pattern.reduce.dtype, self.choice.lanes, self.choice.lanes * self.choice.vectors
        extent, count = self.pattern.k.extent, len(self.places)
        inits: list[Operand] = [Literal(0, Type(dtype, lanes))] * (count * self.choice.vectors)
        sums = self.loop(extent // each, each, 0, inits, lanes)
        for start in range(extent // each * each, extent - lanes + 1, lanes):
            sums[:count] = self.step(Affine.of(start), sums[:count], lanes)
        while len(sums) > count:
            sums = [*[b.op("add", x, y) for x, y in zip(sums, sums[count:])], *sums[2 * count:]]
        totals: list[Operand] = [b.op("reduce_add", x, type=Type(dtype)) for x in sums]
        return self.loop(extent % lanes, 1, extent - extent % lanes, totals, 1)

    def loop(self, iterations: int, each: int, start: int, sums: list[Operand], lanes: int) -> list[Operand]:
        """Add the terms from `start` on, `each` terms an iteration, in vectors of `lanes` lanes."""
        if not iterations:
            return sums
        axis, count = Axis(self.pattern.k.name, iterations), len(self.places)

        def body(*acc: Operand) -> list[Operand]:
            first = Affine.of(axis) * each + start
            return [x for u in range(len(acc) // count) for x in self.step(
                first + u * lanes, acc[u * count:(u + 1) * count], lanes)]

        return list(self.b.loop(axis, body, sums))

    def step(self, k: Affine, sums: Sequence[Operand], lanes: int) -> list[Operand]:
        """Add one vector of terms for each row."""
        x = self.value(self.pattern.x, {**self.at, self.pattern.k: k}, lanes)
        return [self.accumulate(total, self.value(self.pattern.a, {**place, self.pattern.k: k}, lanes), x)
                for total, place in zip(sums, self.places)]

    def value(self, e: Expr, place: At, lanes: int) -> Operand:
        return Vectorizer(self.b, self.target, place, self.pattern.k, lanes).vector(e)

    def accumulate(self, total: Operand, a: Operand, x: Operand) -> Operand:
        if is_float(total.type.dtype):
            return self.b.op("fma", a, x, total)
        return self.b.op("add", total, self.b.op("mul", a, x))
