"""Each output on its own: vectors along the contiguous axis. Also the form of everything that fits no other:
reductions inside are computed where the axes that they depend on are known.
"""
from __future__ import annotations

from dataclasses import dataclass

from ..elements.affine import Affine, Axis, Computed
from ..elements.expression import Apply, Expr, IndexValue, Load, Reduce
from ..elements.traverse import children, nodes
from ..graph.types import ITEM_SIZES
from ..loops.builder import Builder
from ..native.target import Target
from .byte_table import looked_up
from .loading import MOST_STRIDE
from .nest import Nest, exposed, free_axes, indices_of
from .rows import Rows
from .tiles import Tiles, chunks, over, pieces
from .vectorize import NARROW, At, Vectorizer, together
from .write import Block, Writer

LONG, LONGEST = 16, 150
"""Operations so many that those of the next vector wait too long for them, unless they come by turns; and so many that one
vector is code enough."""


@dataclass(frozen=True, slots=True)
class MapChoice:
    """`unroll` vectors of `lanes` neighbouring outputs at a time, with `by_turns` an operation of each after the other;
    `streaming` past the caches."""
    lanes: int
    unroll: int
    streaming: bool
    by_turns: bool = False

    def __str__(self) -> str:
        return f"map: {self.unroll} vectors of {self.lanes}" + ", streaming stores" * self.streaming


def lanes_of(nest: Nest, target: Target) -> int:
    """As many lanes as the widest type has in a vector: of 8 bytes only if the output has, because exact paths and
    indices are wide and rare."""
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


def choose(nest: Nest, target: Target, rows: bool) -> MapChoice:
    inner = nest.axes[1:] if rows else nest.axes
    if not inner or nest.index.coefficient(inner[-1]) != 1 or by_terms(nest, inner[-1], target):
        return MapChoice(1, 1, False)
    lanes = lanes_of(nest, target)
    operations = sum(isinstance(e, (Apply, Reduce)) for e in nodes(nest.value))
    streaming = streams(nest, lanes, target)
    if scattered(nest.value, inner[-1], target):
        return MapChoice(min(lanes, target.lanes(4)), 1, False)
    plain = LONG < operations <= LONGEST and not any(isinstance(e, Reduce) for e in nodes(nest.value))
    unroll = 1 if lanes == 1 else 2 if plain or 8 < operations <= LONG else 4 if operations <= 8 else 1
    return MapChoice(lanes, unroll, streaming, plain)


def streams(nest: Nest, lanes: int, target: Target) -> bool:
    """Whether the outputs go past the caches: more than these hold, in whole vectors, and not what another kernel is going
    to read."""
    n = nest.axes[-1] if nest.axes else None
    large = nest.out.role != "temporary" and nest.out.nbytes >= target.streaming_bytes
    whole = lanes * ITEM_SIZES[nest.out.dtype] == target.vector_bytes
    return large and whole and n is not None and n.extent % lanes == 0 and all(
        c % lanes == 0 for t, c in nest.index.terms if t is not n) and nest.index.const % lanes == 0


def scattered(value: Expr, axis: Axis, target: Target | None = None) -> bool:
    """Whether neighbours along the axis read small elements too far apart for shuffles, or anywhere: one by one, so more lanes
    are only more code."""
    return any(isinstance(e, Load) and e.dtype in NARROW and not (target and looked_up(e, target)) and (
        axis in e.index[0].hidden or abs(e.index[0].coefficient(axis)) > MOST_STRIDE) for e in nodes(value))


def by_terms(nest: Nest, axis: Axis, target: Target) -> bool:
    """Whether the reductions are better walked along their terms, one output at a time: where neighbouring outputs
    read far apart, and neighbouring terms do not."""
    for r in (e for e in nodes(nest.value) if isinstance(e, Reduce)):
        k = r.axes[-1]
        for x in (e for e in nodes(r.body) if isinstance(e, Load)):
            i = x.index[0]
            if abs(i.coefficient(axis)) > 1 and abs(i.coefficient(k)) == 1 and k.extent >= target.lanes(4) // 2:
                return True
    return False


def lower(b: Builder, nest: Nest, choice: MapChoice, target: Target, rows: Rows | None) -> None:
    """Loops over all axes but the last, which goes by vectors; `rows` bounds the first."""
    lanes = choice.lanes
    writer = Writer(b, target, nest, streaming=choice.streaming)
    reductions = bool(exposed(nest.value))

    def level(axes: tuple[Axis, ...], at: At, outer: Vectorizer | None, first: bool = False) -> None:
        outer = hoisted(at, outer) if reductions else None
        if not axes:
            writer.write(Block(at, None, 1, None, pieces(1, 1, True)), outer=outer)
        elif len(axes) == 1 and not (first and rows):
            vectors(axes[0], at, outer)
        else:
            low, high = (rows.low, rows.high) if first and rows else (None, None)
            b.loop(axes[0], lambda: level(axes[1:], {**at, axes[0]: Affine.of(axes[0])}, outer), (), low, high)

    def hoisted(at: At, outer: Vectorizer | None) -> Vectorizer:
        """What reductions are known from here on inwards."""
        v = Vectorizer(b, target, at, outer=outer)
        placed = frozenset(at)
        for r in exposed(nest.value):
            if v.known(r) is None and free_axes(r) <= placed:
                v.value(r)
        return v

    def vectors(axis: Axis, at: At, outer: Vectorizer | None) -> None:
        def tile(start: Affine, t: Tiles) -> None:
            here = {**at, axis: start}
            parts = pieces(t.size, lanes, target.has_masked)
            if len(parts) == 1 or not choice.by_turns:
                writer.write(Block(here, None, 1, axis, parts), outer=outer)
                return
            places = [Vectorizer(b, target, {**here, axis: start + p.start}, axis, p.lanes, p.active, outer=outer)
                      for p in parts]
            for piece, value in zip(parts, together(places, nest.value)):
                writer.write(Block(here, None, 1, axis, (piece,)), outer=outer, given={nest.value: value})

        over(b, chunks(axis.extent, lanes * choice.unroll), tile)

    level(nest.axes, {}, None, first=True)
