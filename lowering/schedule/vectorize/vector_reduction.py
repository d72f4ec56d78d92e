"""One reduction at one point: the general lowering of a `Reduce` node, in any context.

If the lanes hold neighbouring outputs that differ, each lane has its own sum. If the sum is equal for all lanes, the lanes
hold neighbouring terms instead, and are reduced at the end.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from ...elements.affine import Affine, Axis, Range
from ...elements.expression import Apply, Expr, Load, Reduce
from ...elements.traverse import nodes
from ...graph.types import ITEM_SIZES
from ...loops.builder import Builder
from ...loops.ir import Literal, Operand, Type
from ...target.target import Target
from ..nest.loop_nest import At, exposed, free_axes
from ..nest.padding_conditions import bounds_and_tests
from ..nest.reduction_loops import reduce_loops
from ..nest.tile_axis import chunks

INDEPENDENT_SUMS = 4
"""Number of independent sums, so that no addition waits for the one before."""


class ReductionPlace(Protocol):
    """The interface that a reduction needs of the point where it is computed: `vectorize.Vectorizer`."""
    b: Builder
    target: Target
    at: At
    axis: Axis | None
    lanes: int

    def value(self, e: Expr) -> Operand: ...

    def holds(self, where: Iterable[Range]) -> Operand | bool: ...

    def choose(self, condition: Operand, yes: Operand, no: Operand) -> Operand: ...

    def inner(self, at: At) -> ReductionPlace: ...

    def under(self, condition: Operand) -> ReductionPlace: ...

    def along(self, at: At, axis: Axis, lanes: int, active: int) -> ReductionPlace: ...


def reduced(v: ReductionPlace, r: Reduce) -> Operand:
    """Return the value of r at the point of v."""
    free = free_axes(r)
    for e in exposed(r.body):  # compute values that are invariant in the loops of r once
        if not free_axes(e) & set(r.axes):
            v.value(e)
    if v.axis in free:
        return lane_by_lane(v, r)
    if v.lanes > 1:
        v = v.along(v.at, r.axes[-1], 1, 1)
    lanes = lanes_of_terms(v, r)
    return scalar(v, r) if lanes == 1 else along_terms(v, r, lanes)


def lane_by_lane(v: ReductionPlace, r: Reduce) -> Operand:
    bound, rest = bounds_and_tests(r, v.axis)
    init = Literal(r.identity, Type(r.dtype, v.lanes))

    def step(at: At, acc: Sequence[Operand]) -> list[Operand]:
        return [add(v.inner(at), r, acc[0], rest)]

    return reduce_loops(v.b, r.axes, bound, v.at, [init], step)[0]


def scalar(v: ReductionPlace, r: Reduce) -> Operand:
    """Add one term after the other."""
    bound, rest = bounds_and_tests(r)

    def step(at: At, acc: Sequence[Operand]) -> list[Operand]:
        return [add(v.inner(at), r, acc[0], rest)]

    return reduce_loops(v.b, r.axes, bound, v.at, [Literal(r.identity, Type(r.dtype))], step)[0]


def lanes_of_terms(v: ReductionPlace, r: Reduce) -> int:
    """Return the number of terms to take at a time: a vector of them if terms are contiguous and fill at least one vector."""
    k = r.axes[-1]
    read = [x for x in nodes(r.body) if isinstance(x, Load)]
    lanes = v.target.lanes(max(ITEM_SIZES[e.dtype] for e in nodes(r.body)))
    near = all(abs(x.index[0].coefficient(k)) <= 1 and k not in x.index[0].hidden for x in read)
    return lanes if near and k.extent >= lanes else 1


def along_terms(v: ReductionPlace, r: Reduce, lanes: int) -> Operand:
    b, (*outer, k) = v.b, r.axes
    bound, rest = bounds_and_tests(r, k)
    whole = k.extent - k.extent % lanes
    count = min(INDEPENDENT_SUMS, whole // lanes)
    tail = k.extent - whole

    def row(at: At, acc: Sequence[Operand]) -> list[Operand]:
        """Add all terms of the last axis."""
        acc = list(acc)
        for t in chunks(whole, count * lanes):
            loop = Axis(k.name, t.count)

            def body(*acc: Operand) -> list[Operand]:
                start = Affine.of(loop) * t.size + t.start
                vectors = [v.along({**at, k: start + i * lanes}, k, lanes, lanes) for i in range(t.size // lanes)]
                return [add(x, r, a, rest) for a, x in zip(acc, vectors)] + list(acc[len(vectors):])

            acc = list(b.loop(loop, body, acc))
        if tail and v.target.has_masked:
            tail_values = v.along({**at, k: Affine.of(whole)}, k, lanes, tail)
            acc[0] = b.op("select", first_lanes(b, lanes, tail), add(tail_values, r, acc[0], rest), acc[0])
        elif tail:
            acc[-1] = ends(at, acc[-1])
        return acc

    def ends(at: At, acc: Operand) -> Operand:
        loop = Axis(k.name, tail)
        return b.loop(loop, lambda acc: [add(v.inner({**at, k: Affine.of(loop) + whole}), r, acc, rest)], [acc])[0]

    inits = [Literal(r.identity, Type(r.dtype, lanes))] * count
    if tail and not v.target.has_masked:
        inits.append(Literal(r.identity, Type(r.dtype)))
    *sums, last = reduce_loops(b, tuple(outer), bound, v.at, inits, row)
    vectors = [*sums, last] if last.type.lanes == lanes else sums
    total = b.op(f"reduce_{r.primitive}", reduce_pairwise(b, r.primitive, vectors), type=Type(r.dtype))
    return total if last.type.lanes == lanes else b.op(r.primitive, total, last)


def reduce_pairwise(b: Builder, primitive: str, sums: Sequence[Operand]) -> Operand:
    while len(sums) > 1:
        pairs = [b.op(primitive, x, y) for x, y in zip(sums[::2], sums[1::2])]
        sums = pairs + list(sums[len(pairs) * 2:])
    return sums[0]


def first_lanes(b: Builder, lanes: int, count: int) -> Operand:
    ramp = b.op("lanes", Literal(0, Type("int32")), type=Type("int32", lanes), hoist=True)
    return b.op("lt", ramp, Literal(count, ramp.type), hoist=True)


def add(v: ReductionPlace, r: Reduce, acc: Operand, where: Sequence[Range]) -> Operand:
    """Return acc plus the term at the point of v; acc unchanged where a condition does not hold."""
    return under(v, where, lambda v: combine(v, r, acc), acc)


def under(v: ReductionPlace, where: Sequence[Range], run: Callable[[ReductionPlace], Operand], otherwise: Operand) -> Operand:
    holds = v.holds(where)
    if isinstance(holds, bool):
        return run(v) if holds else otherwise
    return v.choose(holds, run(v.under(holds)), otherwise)


def combine(v: ReductionPlace, r: Reduce, acc: Operand) -> Operand:
    """Return acc plus one more term; a float product is added without rounding it."""
    lanes = acc.type.lanes

    def wide(e: Expr) -> Operand:
        return v.b.splat(v.value(e), lanes)

    match r.body:
        case Apply("mul", (x, y), "float32" | "float64") if r.primitive == "add":
            return v.b.op("fma", wide(x), wide(y), acc)
    return v.b.op(r.primitive, acc, wide(r.body), type=acc.type)
