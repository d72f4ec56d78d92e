"""The pieces of a nest, each with a pattern of its own: cut where guards change and where quotients of an axis become affine,
then merged into as few axes as possible.
"""
from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis, Range
from ...elements.expression import Apply, Const, Expr, Guard, IndexValue, Reduce
from ...elements.traverse import loads, nodes
from ...target.target import Target
from .loop_nest import Nest, Rewriter, indices_of
from .quotient_axes import shared_by
from .tile_axis import breaks, interior

MAX_PIECES, MAX_PIECES_OF_FEW, FEW_ELEMENTS = 64, 16, 1 << 16
"""Maximum number of pieces of a nest, unless one axis alone needs more (a concatenation of many); maximum number of pieces of
a nest with few elements; number of elements below which these are few."""
MAX_OWN_PHASES = 2
"""Maximum number of phases of a transposed convolution that have code of their own in any case."""
MIN_CUT_ROW = 96
"""Minimum number of elements of a row that is cut in addition to other axes; a shorter row is tested element by element."""
MIN_VECTOR_TERMS = 4
"""Minimum number of terms that are worth a vector of terms, where neighbouring outputs would be gathered from anywhere."""
MIN_INNER_PLACES = 4
"""Minimum number of neighbours that are worth an iteration of the innermost loop."""


class PhaseUses(Protocol):
    """The strategies' view of the phases of a nest, which decides how the nest is cut."""
    def share_contraction(self, nests: Sequence[Nest]) -> bool:
        """True if the nests are contractions that can run as the iterations of one loop."""

    def is_elementwise(self, nest: Nest) -> bool:
        """True if a nest runs element by element when no rows are requested separately."""


def split(nest: Nest, by_rows: bool, target: Target, uses: PhaseUses) -> list[Nest]:
    """Return pieces in which guards on one output axis are settled (the border of a padding, the operands of a
    concatenation) and a quotient of an axis is affine (the phases of a transposed convolution). With `by_rows` the first
    axis stays, even with an extent of 1."""
    nest = repeating(nest, by_rows, target)
    if not by_rows and nest.axes and sums_along_terms(nest) and (looped := iterations(nest, 0)) is not nest:
        return cut(looped, by_rows)
    for last in () if by_rows else (1, 2):
        if (looped := iterations(nest, last)) is not nest:
            pieces = phases(looped, by_rows)
            if uses.share_contraction([collapse(piece) for piece in pieces]):
                return pieces
    separate = phases(nest, by_rows)
    many = not by_rows and len(separate) > MAX_OWN_PHASES
    if many and (looped := iterations(nest, 1)) is not nest and are_maps(separate, uses):
        pieces = phases(looped, by_rows)
        return pieces if len(pieces) < len(separate) and are_maps(pieces, uses) else separate
    return separate


def sums_along_terms(nest: Nest) -> bool:
    """True if the last axis has a quotient, and the terms of the sums are contiguous in memory: a sum then goes along its
    terms, because neighbouring outputs would read anywhere."""
    sums = [e for e in nodes(nest.value) if isinstance(e, Reduce)]
    return nest.axes[-1] in quotients(nest, nest.axes) and bool(sums) and all(
        e.axes[-1].extent >= MIN_VECTOR_TERMS and all(x.index[0].coefficient(e.axes[-1]) == 1 for x in loads(e.body))
        for e in sums)


def are_maps(nests: Sequence[Nest], uses: PhaseUses) -> bool:
    """True if every nest with sums is best run element by element: the sums are then the same code in each phase."""
    sums = [nest for nest in nests if any(isinstance(e, Reduce) for e in nodes(nest.value))]
    return bool(sums) and all(uses.is_elementwise(collapse(nest)) for nest in sums)


def phases(nest: Nest, by_rows: bool) -> list[Nest]:
    """Return the phases of axes with a quotient, one or more pieces for each phase."""
    steps = {a: index.divisor for a, index in quotients(nest, nest.axes[:-1]).items() if not (by_rows and a is nest.axes[0])}
    if not steps or math.prod(steps.values()) > MAX_PIECES:
        return cut(nest, by_rows)
    starts = itertools.product(*(range(steps.get(a, 1)) for a in nest.axes))
    return [piece for number, start in enumerate(starts) for piece in cut(
        phase(nest, f"{nest.name}.{number}", start, steps), by_rows)]


def iterations(nest: Nest, last: int) -> Nest:
    """Return the nest with a loop over the phases of each axis with a quotient, except for the `last` innermost axes. The
    phases then share one loop body."""
    at: dict[Axis, Affine] = {}
    outermost, axes, where = [], list(nest.axes), list(nest.where)
    turned = nest.axes[:len(nest.axes) - last]
    for a, found in quotients(nest, turned).items():
        if found.index.terms == ((a, 1),):
            by, before = found.divisor, found.index.const % found.divisor
            phase, iteration = Axis(f"{a.name}_phase", by), Axis(a.name, -(-(a.extent + before) // by))
            at[a] = Affine.of(iteration) * by + phase - before
            outermost.append(phase)
            axes[axes.index(a)] = iteration
            where.append(Range(at[a], 0, a.extent))
    if not at:
        return nest
    rewriter = Rewriter(at)
    kept = tuple(a for a in (*outermost, *axes) if a.extent > 1)
    return Nest(nest.name, nest.out, kept, rewriter.index(nest.index), rewriter.value(nest.value), nest.low,
                tuple(r for r in where if r.known is not True))


def repeating(nest: Nest, by_rows: bool, target: Target) -> Nest:
    """Return the nest with each axis that repeats the same positions split in two: the turn and the position in it. The
    quotient and the remainder of the axis are then axes (a tile, rows that are gathered). With reductions, `iterations`
    and `phases` do better, except for a last axis along which many neighbours share what they read."""
    every = list(nodes(nest.value))
    reductions = any(isinstance(e, Reduce) for e in every)
    last, shared = nest.axes[-1:], bool(nest.axes) and are_shared(every, nest.axes[-1])
    if reductions and not shared:
        return nest
    at: dict[Axis, Affine] = {}
    axes = list(nest.axes)
    for e in every:
        match e:
            case Apply("div", (IndexValue(Affine(terms=((Axis() as a, 1),), const=0)), Const(value))) if a in axes:
                if reductions and a not in last:
                    continue
                places = int(value)
                least = 2 if a not in last else least_shared(target, reductions) if shared else MIN_INNER_PLACES
                if least <= places < a.extent and a.extent % places == 0 and not (by_rows and a is nest.axes[0]):
                    iteration, place = Axis(f"{a.name}_turn", a.extent // places), Axis(a.name, places)
                    at[a] = Affine.of(iteration) * places + place
                    axes[axes.index(a):axes.index(a) + 1] = [iteration, place]
    if not at:
        return nest
    rewriter = Rewriter(at)
    return Nest(nest.name, nest.out, tuple(axes), rewriter.index(nest.index), rewriter.value(nest.value), nest.low,
                rewriter.conditions(nest.where))


def are_shared(every: Sequence[Expr], axis: Axis) -> bool:
    """True if groups of neighbours along an axis share what they read at a quotient of the axis, and no remainder is used."""
    hidden = [i for e in every for i in indices_of(e) if axis in i.hidden]
    return bool(hidden) and all(shared_by(i, axis) for i in hidden)


def least_shared(target: Target, sums: bool) -> int:
    """Return the minimum size of a group of neighbours with shared reads that is worth a loop of its own: so many that no
    vector holds two groups; for sums, more than two vectors; without vectors, any group."""
    lanes = target.lanes(4)
    return 2 if lanes == 1 else 2 * lanes + 1 if sums else lanes // 2 + 1


def shortened(nest: Nest) -> Nest:
    """Return the nest with its reduction axes cut to the range in which conditions on them alone hold."""
    at: dict[Axis, Affine] = {}
    reductions = [e for e in nodes(nest.value) if isinstance(e, Reduce)]
    for e in reductions:
        for a in e.axes:
            alone = [r for r in e.where if len(r.index.terms) == 1 and r.index.terms[0][0] is a]
            low, high = interior(a, alone)
            if alone and low < high and sum(a in other.axes for other in reductions) == 1:
                at[a] = Affine.of(Axis(a.name, high - low)) + low
    if not at:
        return nest
    return dataclasses.replace(nest, value=Rewriter(at).value(nest.value))


@dataclass(frozen=True, slots=True)
class Quotient:
    """A dividend and its divisor."""
    index: Affine
    divisor: int


def quotients(nest: Nest, axes: Sequence[Axis]) -> dict[Axis, Quotient]:
    """Return those of `axes` of which the expression computes a quotient, each with its quotient."""
    result: dict[Axis, Quotient] = {}
    for e in nodes(nest.value):
        match e:
            case Apply("div", (IndexValue(index), Const(divisor))):
                for a in axes:
                    if index.coefficient(a) == 1 and a not in result and 1 < divisor <= a.extent:
                        result[a] = Quotient(index, int(divisor))
    return result


def phase(nest: Nest, name: str, starts: tuple[int, ...], steps: Mapping[Axis, int]) -> Nest:
    """Return the piece at every `steps[axis]`-th position of these axes, beginning at `starts`."""
    axes = [Axis(a.name, -(-(a.extent - s) // steps[a])) if a in steps else a for a, s in zip(nest.axes, starts)]
    rewriter = Rewriter({a: Affine.of(b) * steps[a] + s for a, b, s in zip(nest.axes, axes, starts) if a in steps})
    kept = tuple(b for d, (a, b) in enumerate(zip(nest.axes, axes)) if b.extent > 1 or a not in steps)
    return Nest(name, nest.out, kept, rewriter.index(nest.index), rewriter.value(nest.value), nest.low,
                rewriter.conditions(nest.where))


def cut(nest: Nest, by_rows: bool) -> list[Nest]:
    """Return pieces in which guards on one output axis are settled."""
    nest = shortened(nest)
    where = [*deciding(nest.value), *nest.where]
    cuts = {a: len(breaks(a, where)) for a in nest.axes}
    most = MAX_PIECES if math.prod(a.extent for a in nest.axes) >= FEW_ELEMENTS else MAX_PIECES_OF_FEW
    chosen = sorted((a for a in nest.axes if cuts[a] > 2), key=lambda a: -cuts[a])
    if len(chosen) > 1 and nest.axes[-1].extent < MIN_CUT_ROW and not any(isinstance(e, Reduce) for e in nodes(nest.value)):
        chosen = [a for a in chosen if a is not nest.axes[-1]]
    pieces = cut_along(nest, chosen, by_rows)
    while len(pieces) > most and len(chosen) > 1:
        chosen.pop()
        pieces = cut_along(nest, chosen, by_rows)
    if pieces == [nest]:
        return pieces
    return [dataclasses.replace(piece, name=f"{nest.name}.{number}") for number, piece in enumerate(pieces)]


def cut_along(nest: Nest, chosen: Sequence[Axis], by_rows: bool) -> list[Nest]:
    """Return pieces along the chosen axes, outermost first. A piece that one cut has settled is not cut again along other axes:
    a padding gives two pieces for each axis, and the interior."""
    if any(r.known is False for r in nest.where):
        return []
    where = [*deciding(nest.value), *nest.where]
    for a in nest.axes:
        if a in chosen and len(cuts := breaks(a, where)) > 2:
            return [piece for low, high in itertools.pairwise(cuts) for piece in cut_along(
                piece_of(nest, a, low, high, by_rows), chosen, by_rows)]
    return [nest]


def deciding(value: Expr) -> list[Range]:
    """Return the conditions that decide how a nest is cut: those of and around reductions; all, if there is no reduction."""
    every = list(nodes(value))
    reductions = any(isinstance(e, Reduce) for e in every)
    return [r for e in every if isinstance(e, Reduce) or (isinstance(e, Guard) and (not reductions or any(
        isinstance(inner, Reduce) for inner in nodes(e)))) for r in e.where]


def piece_of(nest: Nest, axis: Axis, low: int, high: int, by_rows: bool) -> Nest:
    """Return the piece where the axis is in [low, high)."""
    shorter = Axis(axis.name, high - low)
    rewriter = Rewriter({axis: Affine.of(shorter) + low})
    axes = tuple(shorter if a is axis else a for a in nest.axes)
    kept = tuple(a for d, a in enumerate(axes) if a.extent > 1 or (by_rows and d == 0))
    return Nest(nest.name, nest.out, kept, rewriter.index(nest.index), rewriter.value(nest.value),
                nest.low + (low if axis is nest.axes[0] else 0),
                tuple(r for r in rewriter.conditions(nest.where) if r.known is not True))


def collapse(nest: Nest, keep: Axis | None = None) -> Nest:
    """Merge neighbouring axes that every access and every condition walks as one axis, but not `keep`."""
    every = list(nodes(nest.value))
    indices = [nest.index, *(r.index for r in nest.where), *(i for e in every for i in indices_of(e))]
    coefficients = [dict(i.terms) for i in indices]
    at: dict[Axis, Affine] = {}

    def merged(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        result: list[list[Axis]] = []
        for axis in axes:
            if result and keep is not axis and keep is not result[-1][-1] and all(
                    c.get(result[-1][-1], 0) == c.get(axis, 0) * axis.extent for c in coefficients):
                result[-1].append(axis)
            else:
                result.append([axis])
        return tuple(group[0] if len(group) == 1 else one(group) for group in result)

    def one(group: list[Axis]) -> Axis:
        if group[-1] in at:  # a reduction that shares its axes with another
            return at[group[-1]].terms[0][0]  # type: ignore[return-value]
        both = Axis("_".join(a.name for a in group), math.prod(a.extent for a in group))
        at.update({a: Affine() for a in group[:-1]})
        at[group[-1]] = Affine(((both, 1),))
        return both

    axes = merged(nest.axes)
    for e in every:
        if isinstance(e, Reduce):
            merged(e.axes)
    if not at:
        return nest
    rewriter = Rewriter(at)
    return Nest(nest.name, nest.out, axes, rewriter.index(nest.index), rewriter.value(nest.value), nest.low,
                rewriter.conditions(nest.where))
