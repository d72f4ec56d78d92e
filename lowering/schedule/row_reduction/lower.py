"""The lowering of softmax and normalisation (`recognise`): one row at a time, all passes over it, while it is in the
first-level cache. Values that a pass stores for a later pass take a row of scratch memory.

Vectors run along the row if the elements of a row are contiguous. If the elements of neighbouring rows are contiguous, vectors
run across rows, a tile of rows at a time, so that no sum needs a horizontal reduction at the end: a softmax over channels
before the columns of a picture.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...elements.expression import Apply, Buffer, Cast, Expr, Load, Reduce
from ...graph.types import ITEM_SIZES
from ...loops.builder import Builder
from ...loops.ir import Literal, Operand, Type
from ...target.target import Target
from ..elementwise.elementwise import lanes_of, streams
from ..nest.loop_nest import At, Nest, is_dense
from ..nest.row_range import RowRange, nested
from ..nest.tile_axis import Piece, Tiles, chunks, over, pieces
from ..strategy import Constraints, Strategy
from ..vectorize.epilogue import EpilogueWriter, OutputBlock
from ..vectorize.vector_reduction import combine, first_lanes, reduce_pairwise
from ..vectorize.vectorize import Vectorizer, interleaved_values
from .recognise import RowPass, RowPattern, position
from .recognise import recognise as row_pattern

SHORT_PASS_OPERATIONS, MEDIUM_PASS_OPERATIONS = 4, 24
"""Maximum operations of a short pass, which takes many vectors at a time since they wait for memory, and of a medium pass,
which takes some; longer passes take few."""
Sums = Sequence[Operand]
"""The sums of each reduction of a pass, one for each vector at a time."""


@dataclass(frozen=True, slots=True)
class RowChoice:
    """`passes` over a row, in vectors of `lanes` elements, or of `lanes` rows with `across`. `stored` are kept in memory."""
    passes: int
    lanes: int
    across: bool
    stored: int
    streaming: bool

    def __str__(self) -> str:
        way = "across rows" if self.across else "along a row"
        kept = f", {self.stored} stored" if self.stored else ""
        return (
            f"row reduction: {self.passes} passes, vectors of {self.lanes} {way}{kept}" + ", streaming stores" * self.streaming
        )


@dataclass(frozen=True, slots=True)
class RowReduction(Strategy):
    """The strategy for softmax and normalisation: all passes over a row while it is in the first-level cache."""
    nest: Nest
    target: Target
    choice: RowChoice

    @staticmethod
    def recognise(nest: Nest, constraints: Constraints) -> RowReduction | None:
        choice = recognise(nest, constraints) if is_dense(nest) else None
        return RowReduction(nest, constraints.target, choice) if choice else None

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        lower(b, self.nest, self.choice, self.target, rows)

    def __str__(self) -> str:
        return str(self.choice)


def recognise(nest: Nest, constraints: Constraints) -> RowChoice | None:
    pattern, target, rows = row_pattern(nest), constraints.target, constraints.by_rows
    if pattern is None or (rows and not (pattern.outer and pattern.outer[0] is nest.axes[0])):
        return None
    if pattern.across and rows and len(pattern.outer) == 1:
        return None  # the requested rows are the lanes
    lanes, stored = lanes_of(nest, target), sum(len(p.stored) for p in pattern.passes)
    return RowChoice(len(pattern.passes), lanes, pattern.across, stored,
                     streams(nest, lanes, target, constraints.divided))


def lower(b: Builder, nest: Nest, choice: RowChoice, target: Target, rows: RowRange | None) -> None:
    pattern = row_pattern(nest)
    assert pattern is not None
    scratch = Scratch(b, nest, pattern, choice.lanes * VECTORS_OF_ROWS if choice.across else 1)
    writer = EpilogueWriter(b, target, nest, streaming=choice.streaming)
    if choice.across:
        lower_across(b, pattern, choice, target, writer, scratch, rows)
    else:
        walk = Along(b, target, pattern, choice.lanes, writer, scratch, early(pattern, target),
                     None if choice.streaming else outputs_ahead(nest, pattern, target))
        nested(b, pattern.outer, {}, walk.row, rows)


VECTORS_OF_ROWS = 2
"""Number of vectors of rows at a time."""


class Scratch:
    """The scratch for values that a later pass needs: one row for each value, `width` neighbouring rows wide."""

    def __init__(self, b: Builder, nest: Nest, pattern: RowPattern, width: int) -> None:
        self.b, self.width = b, width
        self.buffers: dict[int, Buffer] = {}
        for p in pattern.passes:
            for e, number in p.stored.items():
                name = f"{nest.name}.row{len(self.buffers)}"
                self.buffers[number] = b.scratch(Buffer(name, e.dtype, (pattern.extent * width,), "scratch"))

    def place(self, p: RowPass, at: At, start: int) -> Affine:
        return position(p.axes).substitute(at) * self.width + start

    def load(self, p: RowPass, at: At, start: int, lanes: int, active: int) -> dict[Expr, Operand]:
        """Return the values that earlier passes have stored, loaded."""
        i = self.place(p, at, start)
        return {e: self.b.load(self.buffers[n], i, lanes, active) for e, n in p.loaded.items()}

    def store(self, p: RowPass, v: Vectorizer, start: int) -> None:
        for e, number in p.stored.items():
            self.b.store(self.buffers[number], self.place(p, v.at, start), v.vector(e), v.active)


def needed(p: RowPass) -> list[Expr]:
    """Return the expressions that a pass computes for each element, in order."""
    result = list(p.stored)
    for r in p.reductions:
        match r.body:
            case Apply("mul", args, "float32" | "float64") if r.primitive == "add" and not is_kept(p, r.body):
                result += args
            case body:
                result.append(body)
    return result


def is_kept(p: RowPass, e: Expr) -> bool:
    return e in p.stored or e in p.loaded


def added(p: RowPass, r: Reduce, v: Vectorizer, sum: Operand) -> Operand:
    """Return the sum plus the element at the point of v."""
    if is_kept(p, r.body):
        return v.b.op(r.primitive, sum, v.b.splat(v.value(r.body), sum.type.lanes), type=sum.type)
    return combine(v, r, sum)


def vectors_of(p: RowPass, among: int) -> int:
    """Return the number of vectors at a time, out of `among`: a divisor, to leave no remainder, if one is large enough."""
    count = operations(p)
    most = min(8 if count <= SHORT_PASS_OPERATIONS else 4 if count <= MEDIUM_PASS_OPERATIONS else 2, max(1, among))
    least = most // 2 + 1 if count <= SHORT_PASS_OPERATIONS else 2
    return next((n for n in range(most, least - 1, -1) if among % n == 0), most)


def operations(p: RowPass) -> int:
    return sum(isinstance(e, (Apply, Cast)) for e in p.computed)


def results(pattern: RowPattern, p: RowPass, sums: Sequence[Operand]) -> dict[Expr, Operand]:
    """Return the values of the reductions that are known once a pass has run."""
    known = dict(zip(p.reductions, sums))
    return {r: known[twin] for r, twin in pattern.twins.items() if twin in known}


def early(pattern: RowPattern, target: Target) -> dict[RowPass, dict[Load, int]]:
    """Return the loads with which each pass prefetches the next row: otherwise memory would be idle while a row is computed.
    The longest pass over each input prefetches the input's next row."""
    result: dict[RowPass, dict[Load, int]] = {}
    if not (pattern.outer and target.has_cache):
        return result
    where: dict[Buffer, RowPass] = {}
    for p in sorted(pattern.passes, key=operations):
        where |= {e.buffer: p for e in p.computed if isinstance(e, Load) and p.axes}
    for buffer, p in where.items():
        for e in p.computed:
            if isinstance(e, Load) and e.buffer is buffer and e.index[0].coefficient(p.axes[-1]) == 1:
                prefetching = e.index[0].coefficient(pattern.outer[-1])
                if buffer.nbytes > target.l2_bytes // 2 and 0 < prefetching * ITEM_SIZES[e.dtype] <= target.l2_bytes // 4:
                    result.setdefault(p, {})[e] = prefetching
    return result


@dataclass(frozen=True, slots=True)
class OutputsAhead:
    """The outputs of `nest` that an earlier pass over a row prefetches, at the same positions, for the last pass."""
    nest: Nest
    during: RowPass
    n: Axis

    def place(self, at: At) -> Affine:
        return self.nest.index.substitute({**at, self.n: at[self.during.axes[0]]})


def outputs_ahead(nest: Nest, pattern: RowPattern, target: Target) -> OutputsAhead | None:
    """Return the outputs to prefetch in the longest pass before the last, if the outputs exceed the second-level cache: a store
    to a line in no near cache waits until the line is read. Measured on AMD Zen 5: a softmax took two thirds of the time."""
    *before, last = pattern.passes
    longest = max(before, key=operations, default=None)
    if longest is None or not target.has_cache or nest.out.nbytes <= target.l2_bytes // 2:
        return None
    if len(longest.axes) != 1 or len(last.axes) != 1 or longest.axes[0].extent != last.axes[0].extent:
        return None
    return OutputsAhead(nest, longest, last.axes[0]) if nest.index.coefficient(last.axes[0]) == 1 else None


@dataclass(frozen=True, slots=True)
class Along:
    """The lowering of rows with vectors along the row."""
    b: Builder
    target: Target
    pattern: RowPattern
    lanes: int
    writer: EpilogueWriter
    scratch: Scratch
    early: Mapping[RowPass, Mapping[Load, int]]
    """Loads of each pass that prefetch for the next row, and the prefetch distance in elements."""
    ahead: OutputsAhead | None

    def row(self, at: At) -> None:
        v = Vectorizer(self.b, self.target, at)
        for p in self.pattern.passes:
            for e in p.uniform:
                v.value(e)
            if p.reductions:
                v = Vectorizer(self.b, self.target, at, given=results(self.pattern, p, self.reduce(p, v)), outer=v)
            else:
                self.outputs(p, v)

    # ---- a pass with reductions --------------------------------------------------------------------------------------
    def reduce(self, p: RowPass, v: Vectorizer) -> list[Operand]:
        k = p.axes[-1]
        whole = k.extent // self.lanes
        count = vectors_of(p, whole)
        scalars = bool(k.extent % self.lanes) and not self.target.has_masked
        inits = [Literal(r.identity, Type(r.dtype, lanes)) for r in p.reductions
                 for lanes in [self.lanes] * count * bool(whole or not scalars) + [1] * scalars]
        found = self.outer_loops(p, p.axes, v, inits)
        each = len(inits) // len(p.reductions)
        return [self.reduced(r, found[i * each:(i + 1) * each]) for i, r in enumerate(p.reductions)]

    def outer_loops(self, p: RowPass, axes: tuple[Axis, ...], v: Vectorizer, sums: Sums) -> Sums:
        if len(axes) == 1:
            return self.line(p, v, sums)
        return self.b.loop(axes[0], lambda *sums: self.outer_loops(p, axes[1:], Vectorizer(
            self.b, self.target, {**v.at, axes[0]: Affine.of(axes[0])}, outer=v), sums), sums)

    def line(self, p: RowPass, v: Vectorizer, sums: Sums) -> Sums:
        """Reduce all terms of the last axis."""
        k, lanes, b = p.axes[-1], self.lanes, self.b
        whole, tail = k.extent // lanes * lanes, k.extent % lanes
        for t in chunks(whole, vectors_of(p, whole // lanes) * lanes):
            loop = Axis(k.name, t.count)

            def body(*sums: Operand) -> Sums:
                starts = [Affine.of(loop) * t.size + t.start + i for i in range(0, t.size, lanes)]
                return self.step(p, v, starts, Piece(0, lanes, lanes), sums)

            sums = b.loop(loop, body, sums)
        if tail and self.target.has_masked:
            return self.step(p, v, [Affine.of(whole)], Piece(0, lanes, tail), sums)
        if tail:
            loop = Axis(k.name, tail)
            last = len(sums) // len(p.reductions) - 1
            return b.loop(loop, lambda *sums: self.step(
                p, v, [Affine.of(loop) + whole], Piece(0, 1, 1), sums, last), sums)
        return sums

    def step(self, p: RowPass, v: Vectorizer, starts: Sequence[Affine], piece: Piece, sums: Sums, first: int = 0) -> Sums:
        """Add a vector at each of these positions of the last axis to the sums of each reduction, from sum `first` on."""
        places = [self.at(p, v, s, piece) for s in starts]
        for e in needed(p):
            interleaved_values(places, e)
        result, each = list(sums), len(sums) // len(p.reductions)
        for i, place in enumerate(places):
            self.scratch.store(p, place, 0)
            for number, r in enumerate(p.reductions):
                slot = number * each + first + i
                new = added(p, r, place, sums[slot])
                if piece.active < piece.lanes:
                    new = self.b.op("select", first_lanes(self.b, piece.lanes, piece.active), new, sums[slot])
                result[slot] = new
        return result

    def at(self, p: RowPass, v: Vectorizer, start: Affine, piece: Piece) -> Vectorizer:
        at = {**v.at, p.axes[-1]: start}
        given = self.scratch.load(p, at, 0, piece.lanes, piece.active)
        here = Vectorizer(self.b, self.target, at, p.axes[-1], piece.lanes, piece.active, given, outer=v)
        for e, prefetching in self.early.get(p, {}).items():
            near = prefetching * ITEM_SIZES[e.dtype] <= self.target.l1_bytes // 3  # next to this row and its stored values
            self.b.prefetch(e.buffer, here.place(e.index[0])[0] + prefetching, near)
        if self.ahead and p is self.ahead.during:
            self.b.prefetch(self.ahead.nest.out, self.ahead.place(at), near=True, writes=True)
        return here

    def reduced(self, r: Reduce, sums: Sums) -> Operand:
        """Return all sums of a reduction combined into one scalar."""
        vectors = [s for s in sums if s.type.lanes > 1]
        scalars = [s for s in sums if s.type.lanes == 1]
        if vectors:
            whole = reduce_pairwise(self.b, r.primitive, vectors)
            scalars.insert(0, self.b.op(f"reduce_{r.primitive}", whole, type=Type(r.dtype)))
        return reduce_pairwise(self.b, r.primitive, scalars)

    # ---- the outputs -------------------------------------------------------------------------------------------------
    def outputs(self, p: RowPass, v: Vectorizer) -> None:
        if not p.axes:
            self.writer.write(OutputBlock(v.at, None, 1, None, pieces(1, 1, True)), outer=v)
            return
        *more, n = p.axes
        value, = p.roots

        def line(at: At) -> None:
            def tile(start: Affine, t: Tiles) -> None:
                row_vectors = pieces(t.size, self.lanes, self.target.has_masked)
                places = [self.at(p, here, start + piece.start, piece) for piece in row_vectors]
                for piece, result in zip(row_vectors, interleaved_values(places, value)):
                    self.writer.write(OutputBlock({**at, n: start}, None, 1, n, (piece,)), outer=v, given={value: result})

            here = Vectorizer(self.b, self.target, at, outer=v)
            over(self.b, chunks(n.extent, vectors_of(p, n.extent // self.lanes) * self.lanes), tile)

        nested(self.b, tuple(more), v.at, line)


# ---- vectors across rows: no horizontal reduction at the end ---------------------------------------------------------
def lower_across(b: Builder, pattern: RowPattern, choice: RowChoice, target: Target, writer: EpilogueWriter, scratch: Scratch,
                 rows: RowRange | None) -> None:
    n = pattern.outer[-1]

    def block(at: At) -> None:
        def tile(start: Affine, t: Tiles) -> None:
            row_vectors = pieces(t.size, choice.lanes, target.has_masked)
            Across(b, target, pattern, n, {**at, n: start}, row_vectors, writer, scratch).run()

        over(b, chunks(n.extent, choice.lanes * VECTORS_OF_ROWS), tile)

    nested(b, pattern.outer[:-1], {}, block, rows)


@dataclass(frozen=True, slots=True)
class Across:
    """The lowering of a tile of rows, which `row_vectors` divide into vectors."""
    b: Builder
    target: Target
    pattern: RowPattern
    n: Axis
    start: At
    row_vectors: tuple[Piece, ...]
    writer: EpilogueWriter
    scratch: Scratch

    def run(self) -> None:
        places = [Vectorizer(self.b, self.target, {**self.start, self.n: self.start[self.n] + p.start}, self.n, p.lanes,
                             p.active) for p in self.row_vectors]
        for p in self.pattern.passes:
            for e in p.uniform:
                interleaved_values(places, e)
            if p.reductions:
                places = self.reduced(p, places)
            else:
                self.outputs(p, p.axes, places)

    def reduced(self, p: RowPass, places: Sequence[Vectorizer]) -> list[Vectorizer]:
        """Return the points with the reductions of a pass as known values."""
        inits = [Literal(r.identity, Type(r.dtype, v.lanes)) for r in p.reductions for v in places]
        sums = self.loops(p, p.axes, places, inits)
        each = len(places)
        return [Vectorizer(self.b, self.target, v.at, self.n, v.lanes, v.active, results(
            self.pattern, p, sums[i::each]), outer=v) for i, v in enumerate(places)]

    def loops(self, p: RowPass, axes: tuple[Axis, ...], places: Sequence[Vectorizer], sums: Sequence[Operand]
              ) -> Sequence[Operand]:
        if axes:
            return self.b.loop(axes[0], lambda *sums: self.loops(p, axes[1:], self.moved(places, axes[0]), sums), sums)
        here = self.loaded(p, places)
        for e in needed(p):
            interleaved_values(here, e)
        for v, piece in zip(here, self.row_vectors):
            self.scratch.store(p, v, piece.start)
        terms = [(r, v) for r in p.reductions for v in here]
        return [added(p, r, v, x) for (r, v), x in zip(terms, sums)]

    def moved(self, places: Sequence[Vectorizer], axis: Axis) -> list[Vectorizer]:
        return [v.inner({**v.at, axis: Affine.of(axis)}) for v in places]

    def loaded(self, p: RowPass, places: Sequence[Vectorizer]) -> list[Vectorizer]:
        """Return the points with the values stored by earlier passes as known values."""
        return [Vectorizer(self.b, self.target, v.at, self.n, v.lanes, v.active, self.scratch.load(
            p, v.at, piece.start, piece.lanes, piece.active), outer=v) for v, piece in zip(places, self.row_vectors)]

    def outputs(self, p: RowPass, axes: tuple[Axis, ...], places: Sequence[Vectorizer]) -> None:
        if axes:
            self.b.loop(axes[0], lambda: self.outputs(p, axes[1:], self.moved(places, axes[0])))
            return
        here = self.loaded(p, places)
        value, = p.roots
        for v, piece, result in zip(here, self.row_vectors, interleaved_values(here, value)):
            self.writer.write(OutputBlock(v.at, None, 1, self.n, (Piece(0, piece.lanes, piece.active),)), outer=v,
                              given={value: result})
