"""The elementwise strategy: each output by itself, in vectors along the contiguous axis. It is also the fallback for nests that
fit no other strategy: reductions are computed where the axes that they depend on are known.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Computed
from ...elements.expression import Apply, Cast, Expr, IndexValue, Load, Reduce
from ...elements.traverse import children, loads, loads_beside, nodes
from ...graph.types import ITEM_SIZES
from ...loops.builder import Builder
from ...target.target import Target
from ..code_size_model import cheapest, instructions, share_of
from ..nest.loop_nest import At, Nest, exposed, free_axes, indices_of
from ..nest.padding_conditions import bounds_and_tests
from ..nest.quotient_axes import shared_by
from ..nest.reduction_loops import MAX_UNROLLED_EXTENT
from ..nest.row_range import RowRange, nested
from ..nest.tile_axis import Tiles, chunks, over, pieces, repeating
from ..strategy import Constraints, Strategy
from ..vectorize.epilogue import EpilogueWriter, OutputBlock
from ..vectorize.lane_groups import NOTHING, group_of, repeats, whole_groups
from ..vectorize.strided_load import MAX_SHUFFLED_STRIDE
from ..vectorize.table_lookup import looked_up
from ..vectorize.vectorize import NARROW, Vectorizer, interleaved_values

MAX_PREFETCHED_INPUTS = 4
"""Maximum number of input tensors that are prefetched."""
LONG_OPERATIONS, MAX_INTERLEAVED_OPERATIONS = 16, 150
"""Operations above which two vectors are interleaved, since those of the next vector would wait too long; operations above
which one vector is code enough."""
HEAVY_INSTRUCTIONS = 12
"""Instructions of a vector from which on code size limits the number of vectors at a time."""
MAX_FREE_LINES = 50
"""Maximum lines of LLVM's text, remainder included, for which code size does not limit the number of vectors at a time."""
LONG_TAIL_INSTRUCTIONS = 30
"""Instructions of a vector from which on the remainder gets no second copy of them."""
MAX_REPEATED_RESULT_BYTES = 1 << 18
"""Maximum bytes of a result of which some elements may be computed twice: so small that it need not overlay an argument."""
MAX_UNDIVIDED_INSTRUCTIONS = 1 << 18
"""Maximum instructions of a nest that threads do not divide."""
MAX_SINGLE_TERMS = 1 << 16
"""Maximum terms of sums of small elements that are added one at a time rather than by masked loads."""


@dataclass(frozen=True, slots=True)
class MapChoice:
    """`unroll` vectors of `lanes` neighbouring outputs at a time, rounded to whole groups of `group` outputs. With
    `interleaved`, the vectors alternate operation by operation. With `streaming`, stores bypass the caches."""
    lanes: int
    unroll: int
    streaming: bool
    interleaved: bool = False
    group: int = 1

    @property
    def columns(self) -> int:
        """Number of outputs at a time."""
        return whole_groups(self.unroll * self.lanes, self.group)

    def __str__(self) -> str:
        groups = f", in groups of {self.group}" if self.group > 1 else ""
        return f"elementwise: {self.unroll} vectors of {self.lanes}{groups}" + ", streaming stores" * self.streaming


ONE_BY_ONE = MapChoice(1, 1, False)
"""The choice for outputs that are not contiguous along the innermost axis, among others."""


@dataclass(frozen=True, slots=True)
class Elementwise(Strategy):
    """The elementwise strategy, which fits every nest."""
    nest: Nest
    target: Target
    choice: MapChoice

    @staticmethod
    def recognise(nest: Nest, constraints: Constraints) -> Elementwise:
        return Elementwise(nest, constraints.target, choose(nest, constraints))

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        lower(b, self.nest, self.choice, self.target, rows)

    def alternatives(self) -> Iterator[Elementwise]:
        if self.choice.lanes > 1:
            yield from (replace(self, choice=replace(self.choice, unroll=unroll)) for unroll in (1, 2, 4, 8))
            if self.choice.streaming:
                yield replace(self, choice=replace(self.choice, streaming=False))

    def __str__(self) -> str:
        return str(self.choice)


def lanes_of(nest: Nest, target: Target) -> int:
    """Return the vector lanes of the widest type. Types of 8 bytes count only if the output has 8 bytes, because exact paths
    and indices are wide and rare."""
    stack, seen, sizes = [nest.value], set(), {ITEM_SIZES[nest.out.dtype]}
    while stack:
        e = stack.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        sizes.add(ITEM_SIZES[e.dtype])
        if (byte := looked_up(e, target)) is not None:
            stack.append(byte)
            continue
        if isinstance(e, IndexValue) or any(isinstance(t, Computed) for i in indices_of(e) for t, _ in i.terms):
            sizes.add(4)
        stack.extend(children(e))
    small = [s for s in sizes if s <= 4]
    return target.lanes(8 if ITEM_SIZES[nest.out.dtype] == 8 or not small else max(small))


def choose(nest: Nest, constraints: Constraints) -> MapChoice:
    target, inner = constraints.target, nest.axes[1:] if constraints.by_rows else nest.axes
    if not inner or nest.index.coefficient(inner[-1]) != 1 or by_terms(nest, inner[-1], target):
        return ONE_BY_ONE
    if loads_under_masks(nest, inner[-1]):
        return ONE_BY_ONE
    lanes = lanes_of(nest, target)
    operations = sum(isinstance(e, (Apply, Reduce)) for e in nodes(nest.value))
    group = group_of(repeats(nest.value, inner[-1])) if lanes > 1 else 1
    streaming = streams(nest, lanes, target, constraints.divided) and lanes % group == 0
    if scattered(nest.value, inner[-1], target):
        return MapChoice(min(lanes, target.lanes(4)), 1, False, group=group)
    sums = any(isinstance(e, Reduce) for e in nodes(nest.value))
    plain = LONG_OPERATIONS < operations <= MAX_INTERLEAVED_OPERATIONS and not sums
    few = 2 if streaming else 4
    unroll = 1 if lanes == 1 else 2 if plain or 8 < operations <= LONG_OPERATIONS else few if operations <= 8 else 1
    unroll = vectors_at_a_time(nest, inner[-1], lanes, unroll, waits(nest, inner[-1], target) if plain else (
        target.costs.single_vector_fraction))
    return MapChoice(lanes, unroll, streaming, plain and unroll > 1, group)


def vectors_at_a_time(nest: Nest, axis: Axis, lanes: int, most: int, alone: float) -> int:
    """Return the number of vectors at a time: `most`, or fewer if each takes much code and there are few vectors. `alone` is
    the additional fraction of time of one vector at a time."""
    each = weight(nest.value, axis)
    count, n = math.prod(a.extent for a in nest.axes) / lanes, axis.extent

    def cycles(unroll: int) -> float:
        return count * each / 2 * (1 + alone * (1 / unroll - 1 / most))

    def lines(unroll: int) -> int:
        return 2 * each * (unroll * (n >= unroll * lanes) + -(-(n % (unroll * lanes)) // lanes))

    if each < HEAVY_INSTRUCTIONS and lines(most) <= MAX_FREE_LINES:
        return most
    return cheapest([u for u in (4, 2, 1) if u <= most], cycles, lines, share=share_of(nest.value))


def waits(nest: Nest, axis: Axis, target: Target) -> float:
    """Return the additional fraction of time that vectors take one after the other rather than interleaved."""
    costs = target.costs
    if not target.has_masked:  # the best available sign of in-order execution
        return costs.in_order_single_vector_fraction
    return costs.out_of_order_single_vector_fraction if weight(nest.value, axis) <= costs.out_of_order_instructions else (
        costs.long_single_vector_fraction)


def weight(value: Expr, axis: Axis) -> int:
    """Return the approximate number of instructions of a vector, with the terms of short sums unrolled."""
    every = list(nodes(value))
    terms = math.prod(a.extent for e in every if isinstance(e, Reduce) for a in e.axes[-1:] if a.extent <= MAX_UNROLLED_EXTENT)
    shuffles = sum(3 * min(abs(e.index[0].coefficient(axis)), MAX_SHUFFLED_STRIDE) for e in every if isinstance(e, Load)
                   and abs(e.index[0].coefficient(axis)) > 1)
    return (sum(instructions(e) for e in every if isinstance(e, (Apply, Cast, Load))) + shuffles) * terms


def streams(nest: Nest, lanes: int, target: Target, divided: bool) -> bool:
    """True if stores of the outputs bypass the caches: the outputs exceed the caches, consist of whole vectors, and no other
    kernel reads them. If threads have `divided` the work, their shared cache may hold the outputs and the inputs."""
    n = nest.axes[-1] if nest.axes else None
    large = nest.out.role != "temporary" and nest.out.nbytes >= target.streaming_bytes
    if large and divided:
        read = {x.buffer for x in loads(nest.value)}
        large = nest.out.nbytes + sum(b.nbytes for b in read) > target.costs.shared_cache_bytes
    whole = lanes * ITEM_SIZES[nest.out.dtype] == target.vector_bytes
    return large and whole and n is not None and n.extent % lanes == 0 and all(
        c % lanes == 0 for t, c in nest.index.terms if t is not n) and nest.index.const % lanes == 0


def large_inputs(nest: Nest, target: Target) -> list[Load]:
    """Return the contiguous loads along the last axis of buffers too large for the second-level cache."""
    found = {e.buffer: e for e in nodes(nest.value) if isinstance(e, Load) and e.buffer.nbytes > target.l2_bytes // 2
             and all(isinstance(t, Axis) for t, _ in e.index[0].terms) and e.index[0].coefficient(nest.axes[-1]) == 1}
    return [e for e in found.values() if e.index[0].axes <= set(nest.axes)][:MAX_PREFETCHED_INPUTS]


def scattered(value: Expr, axis: Axis, target: Target | None = None) -> bool:
    """True if neighbours along the axis read small elements too far apart for shuffles, or anywhere. These are read one by one,
    so that more lanes only mean more code."""
    return any(isinstance(e, Load) and e.dtype in NARROW and not (target and looked_up(e, target))
               and is_strided(e.index[0], axis) for e in nodes(value))


def is_strided(index: Affine, axis: Axis) -> bool:
    """True if neighbours read elements that are too far apart for shuffles, or anywhere."""
    if axis in index.hidden:
        return shared_by(index, axis) is None
    return abs(index.coefficient(axis)) > MAX_SHUFFLED_STRIDE


def by_terms(nest: Nest, axis: Axis, target: Target) -> bool:
    """True if reductions are faster along their terms, one output at a time: neighbouring outputs read far apart, and
    neighbouring terms do not."""
    for r in (e for e in nodes(nest.value) if isinstance(e, Reduce)):
        k = r.axes[-1]
        for x in (e for e in nodes(r.body) if isinstance(e, Load)):
            i = x.index[0]
            if abs(i.coefficient(axis)) > 1 and abs(i.coefficient(k)) == 1 and k.extent >= target.lanes(4) // 2:
                return True
    return False


def loads_under_masks(nest: Nest, axis: Axis) -> bool:
    """True if a small nest sums small elements that neighbouring outputs read with a stride, under conditions that differ
    between neighbours and without which an index may leave its buffer. Each element would then need a masked load of its own,
    which is much code and no faster than one sum at a time with loop bounds."""
    for r in (e for e in nodes(nest.value) if isinstance(e, Reduce)):
        bounds, _ = bounds_and_tests(r)
        little = math.prod(a.extent for a in (*nest.axes, *r.axes)) <= MAX_SINGLE_TERMS
        if little and any(axis in w.index.axes for w in bounds) and any(
                x.dtype in NARROW and abs(x.index[0].coefficient(axis)) > 1 and not stays_inside(x) for x in loads(r.body)):
            return True
    return False


def stays_inside(x: Load) -> bool:
    """True if an index stays in its buffer even where conditions fail."""
    low, high = x.index[0].bounds
    return low >= 0 and high < x.buffer.size


def columns(nest: Nest, axis: Axis, size: int, group: int) -> list[Tiles]:
    """Return the tiles of the last axis: overlapping tiles of one size if each has sums of its own or takes much code, else
    whole tiles and a remainder."""
    alike = axis.extent > size and axis.extent % group == 0 and (
        (len(nest.axes) > 1 and may_repeat(nest, axis)) or is_long(nest, axis))
    return repeating(axis.extent, size) if alike else chunks(axis.extent, size)


def is_long(nest: Nest, axis: Axis) -> bool:
    """True if the remainder takes so much code that some outputs are rather computed twice. The outputs must not overlay
    anything that is read, so they must be a result's own memory. Nests that threads divide are cut elsewhere."""
    each, count = weight(nest.value, axis), math.prod(a.extent for a in nest.axes)
    divided = len(nest.axes) == 1 and count * each > MAX_UNDIVIDED_INSTRUCTIONS
    is_small = nest.out.role == "result" and nest.out.nbytes <= MAX_REPEATED_RESULT_BYTES
    return each >= LONG_TAIL_INSTRUCTIONS and is_small and not divided and not any(
        x.buffer is nest.out for x in loads(nest.value))


def may_repeat(nest: Nest, axis: Axis) -> bool:
    """True if outputs with sums may be computed twice: they cannot overlay anything that is read together with the sums."""
    sums = [e for e in exposed(nest.value) if axis in free_axes(e)]
    return len(sums) == 1 and not any(x.buffer.data is None and axis in x.index[0].axes
                                      for x in loads_beside(nest.value, sums[0]))


def lower(b: Builder, nest: Nest, choice: MapChoice, target: Target, rows: RowRange | None) -> None:
    """Write loops over all axes but the last, and vectors along the last; `rows` bounds the first axis."""
    lanes = choice.lanes
    shared = repeats(nest.value, nest.axes[-1]) if nest.axes and choice.lanes > 1 else NOTHING
    writer = EpilogueWriter(b, target, nest, streaming=choice.streaming, repeats=shared)
    reductions = bool(exposed(nest.value))
    early = large_inputs(nest, target) if choice.streaming else []

    def level(axes: tuple[Axis, ...], at: At, outer: Vectorizer | None, first: bool = False) -> None:
        outer = hoisted(at, outer) if reductions else None
        if not axes:
            writer.write(OutputBlock(at, None, 1, None, pieces(1, 1, True)), outer=outer)
        elif len(axes) == 1 and not (first and rows) and not any(axes[0] in w.index.axes for w in nest.where):
            vectors(axes[0], at, outer)
        else:
            nested(b, axes[:1], at, lambda at: level(axes[1:], at, outer), rows if first else None, nest.where)

    def hoisted(at: At, outer: Vectorizer | None) -> Vectorizer:
        """Compute the reductions whose axes are all known here, once for all inner loops."""
        v = Vectorizer(b, target, at, outer=outer)
        placed = frozenset(at)
        for r in exposed(nest.value):
            if v.known(r) is None and free_axes(r) <= placed:
                v.value(r)
        return v

    def vectors(axis: Axis, at: At, outer: Vectorizer | None) -> None:
        def tile(start: Affine, t: Tiles) -> None:
            here = {**at, axis: start}
            vectors = pieces(t.size, lanes, target.has_masked)
            for e in early:
                distance = target.costs.prefetch_distance_bytes
                for line in range(0, t.size, target.costs.cache_line_bytes // ITEM_SIZES[e.dtype]):
                    b.prefetch(e.buffer, e.index[0].substitute(here) + (line + distance // ITEM_SIZES[e.dtype]), near=True)
            if len(vectors) == 1 or not choice.interleaved:
                writer.write(OutputBlock(here, None, 1, axis, vectors), outer=outer)
                return
            places = [Vectorizer(b, target, {**here, axis: start + p.start}, axis, p.lanes, p.active, outer=outer,
                                 repeats=shared) for p in vectors]
            for piece, value in zip(vectors, interleaved_values(places, nest.value)):
                writer.write(OutputBlock(here, None, 1, axis, (piece,)), outer=outer, given={nest.value: value})

        over(b, columns(nest, axis, choice.columns, choice.group), tile, choice.group)

    level(nest.axes, {}, None, first=True)
