"""The loops over reduction axes, shared by all strategies.

A condition that mentions the tiled axis is settled at compile time (its reduction axis is unrolled, the tiles at the
border have constant positions); any other becomes the bounds of the loop over the last axis that it mentions. So no
element is tested.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from ...elements.affine import Affine, Axis, Range
from ...loops.builder import Builder
from ...loops.ir import INDEX, Literal, Operand
from .loop_nest import At

Accumulators = Sequence[Operand]
Step = Callable[[At, Accumulators], Accumulators]
Runs = Mapping[Axis, Sequence[range]]
"""Runs of values of unrolled axes: a run of one value is a constant, a longer run a loop."""
NOTHING: Runs = {}


LONG_UNROLL = 8
"""Unroll factor above which a quarter of the factor is tried, too, before 3."""
MAX_UNROLLED_EXTENT, MAX_UNROLLED_SUMS = 4, 64
"""Maximum extent of a last axis that is unrolled, and maximum number of sums that its steps update: more is too much code."""


def unsettled(where: Iterable[Range], places: Sequence[At]) -> tuple[Range, ...]:
    """Return the conditions that can fail at one of these points (the first and the last point of a tile are enough)."""
    return tuple(w for w in where if any(w.substitute(p).known is not True for p in places))


def alike(axes: Iterable[Axis], where: Sequence[Range], places: Sequence[At], tested: bool = False) -> Runs:
    """Return the runs of values of each axis. Neighbouring values share a run if each condition is known for them, and holds
    or fails at the same points; with `tested`, a condition may be unknown, too, if it is unknown for all of them."""
    def ways(axis: Axis, at: Affine) -> tuple[bool | None, ...]:
        here = [{**p, axis: at} for p in places]
        return tuple([w.substitute(p).known for w in where if w.index.coefficient(axis) for p in here])

    def settled(axis: Axis, run: range) -> bool:
        """True if what is known of each value is known of the whole run: not if a condition fails below its range for some
        values and above it for others."""
        found = ways(axis, Affine.of(Axis(axis.name, len(run))) + run.start)
        return (tested or None not in found) and found == ways(axis, Affine.of(run.start))

    result: dict[Axis, Sequence[range]] = {}
    for axis in axes:
        groups = [list(run) for _, run in itertools.groupby(range(axis.extent), lambda i: ways(axis, Affine.of(i)))]
        runs = [range(group[0], group[-1] + 1) for group in groups]
        result[axis] = [piece for run in runs for piece in ([run] if settled(axis, run) else [range(i, i + 1) for i in run])]
    return result


def reduce_loops(b: Builder, axes: tuple[Axis, ...], where: Sequence[Range], at: At, inits: Accumulators, step: Step,
                 unrolled: Runs = NOTHING, unroll: int = 2, group: int = 1, short: int = MAX_UNROLLED_EXTENT) -> Accumulators:
    """Write `step` for all values of the reduction axes for which the conditions `where` hold, and return the sums. An axis in
    `unrolled` goes run by run. The last axis goes in steps of `group` elements, unrolled if it has at most `short` steps."""
    homes = [next(a for a in reversed(axes) if w.index.coefficient(a)) for w in where]

    def values(depth: int, run: range, at: At, acc: Accumulators, mine: Sequence[Range]) -> Accumulators:
        """Write a run of values of an axis."""
        loop = Axis(axes[depth].name, len(run))
        place = {**at, axes[depth]: Affine.of(loop) + run.start}
        known = [w.substitute(place).known for w in mine]
        if False in known:
            return acc
        if None in known:
            low, high = bounds(b, axes[depth], [w.substitute(at) for w in mine])
            low, high = (b.op("sub", x, Literal(run.start, INDEX), hoist=True) for x in (low, high))
            first = b.op("max", low, Literal(0, INDEX), hoist=True)
            end = b.op("min", high, Literal(len(run), INDEX), hoist=True)
            return b.loop(loop, lambda *acc: level(depth + 1, place, acc), acc, first, end)
        return level(depth + 1, place, acc) if len(run) == 1 else b.loop(
            loop, lambda *acc: level(depth + 1, place, acc), acc)

    def grouped(depth: int, at: At, acc: Accumulators, high: Operand) -> Accumulators:
        """Write the last axis from 0 on, in whole steps."""
        loop = Axis(axes[depth].name, axes[depth].extent // group)
        end = b.op("div", b.op("add", high, Literal(group - 1, INDEX), hoist=True), Literal(group, INDEX), hoist=True)
        place = {**at, axes[depth]: Affine.of(loop) * group}
        return b.loop(loop, lambda *acc: level(depth + 1, place, acc), acc, Literal(0, INDEX), end)

    def level(depth: int, at: At, acc: Accumulators) -> Accumulators:
        if depth == len(axes):
            return step(at, acc)
        axis, last = axes[depth], depth == len(axes) - 1
        size = group if last else 1
        mine = [w for w, home in zip(where, homes) if home is axis]
        few = axis.extent // size <= short and axis.extent // size * len(inits) <= MAX_UNROLLED_SUMS
        if axis in unrolled or (last and not mine and few):
            whole = axis in unrolled and not last and not mine
            for run in unrolled[axis] if whole else [range(i, i + 1) for i in range(0, axis.extent, size)]:
                acc = values(depth, run, at, acc, mine)
            return acc
        if mine:
            low, high = bounds(b, axis, [w.substitute(at) for w in mine])
            if size > 1:
                return grouped(depth, at, acc, high)
            if isinstance(low, Literal) and isinstance(high, Literal) and high.value - low.value == 1:
                return level(depth + 1, {**at, axis: Affine.of(int(low.value))}, acc)
            return b.loop(axis, lambda *acc: level(depth + 1, {**at, axis: Affine.of(axis)}, acc), acc, low, high)
        steps = axis.extent // size
        fewer = (unroll // 2, unroll // 4) if unroll > LONG_UNROLL else (unroll // 2,)
        times = next(u for u in (unroll, *fewer, 3, 2, 1) if 0 < u <= unroll and steps % u == 0) if last else 1
        loop = Axis(axis.name, steps // times)

        def body(*acc: Operand) -> Accumulators:
            for u in range(times):
                acc = tuple(level(depth + 1, {**at, axis: Affine.of(loop) * (times * size) + u * size}, acc))
            return acc

        return b.loop(loop, body, acc)

    return level(0, at, inits)


def bounds(b: Builder, axis: Axis, where: Sequence[Range]) -> tuple[Operand, Operand]:
    """Return the range of values of `axis` for which all conditions hold, given the enclosing loops."""
    lows, highs = [Affine()], [Affine.of(axis.extent)]
    divided_lows: list[tuple[Affine, int]] = []
    divided_highs: list[tuple[Affine, int]] = []
    for r in where:
        c, rest = r.index.coefficient(axis), r.index.without(axis)
        if c > 0:
            divided_lows.append((Affine.of(r.low) - rest, c))
            divided_highs.append((Affine.of(r.high) - rest, c))
        else:
            divided_lows.append((rest - (r.high - 1), -c))
            divided_highs.append((rest - (r.low - 1), -c))
    low = extreme(b, "max", lows[0], divided_lows)
    return low, extreme(b, "min", highs[0], divided_highs)


def extreme(b: Builder, which: str, first: Affine, others: Sequence[tuple[Affine, int]]) -> Operand:
    """Return the greatest or least of `first` and the others, each divided and rounded up. Fold constants at compile time."""
    choose = max if which == "max" else min
    number = choose([first.const, *(-(-x.const // by) for x, by in others if not x.terms)])
    result: Operand = Literal(number, INDEX)
    for x, by in others:
        if x.terms:
            result = b.op(which, result, ceil_divide(b, x, by), hoist=True)
    return result


def ceil_divide(b: Builder, x: Affine, by: int) -> Operand:
    if by == 1:
        return b.index(x)
    shift = max(0, -(x.bounds[0] // by)) + 1  # the dividend is never negative
    quotient = b.op("div", b.index(x + shift * by + by - 1), Literal(by, INDEX), hoist=True)
    return b.op("sub", quotient, Literal(shift, INDEX), hoist=True)
