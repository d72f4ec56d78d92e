"""Loop-carried dependences through scratch: an iteration may load what an earlier one has stored. Such a loop is not divided
among threads, because each task begins with scratch of its own.

Nothing is carried where all iterations are alike: each stores before it loads, and where and under which conditions it does so
is independent of the iteration, or moves on with it. Then what the first iteration loads, it has stored (a function loads
nothing that has not been stored), and so has every other. A bound that depends on the iteration (of the last block, fewer rows)
must be the bound of all loops around what is stored and loaded. Where a condition and its negation store to the same places (a
row, or zeros outside the image), both together are no condition.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ..ir import Block, For, GatherFrom, If, Let, Literal, LoadFrom, Operand, Shuffle, Var
from ..ranges import Interval, LinearForm
from .accesses import Access, Accesses

Conditions = frozenset[Operand]
Shape = tuple[int, int, frozenset[tuple[int, int | Interval]]]
Slices = dict[Buffer, slice]


@dataclass(frozen=True, slots=True)
class Moving:
    """An access of one iteration: how its place moves from iteration to iteration, None where that is not known, and what of
    the loops and conditions around it depends on the iteration. `shape` are its places, whatever the names of loops around it;
    `span` are the first of them and the end, but for what is decided outside."""
    is_store: bool
    step: int | None
    around: Conditions
    shape: Shape
    span: Interval


class Iteration:
    """What one iteration of a loop does with some buffers. A value varies if it depends on the iteration."""

    def __init__(self, accesses: Accesses, loop: For, buffers: frozenset[Buffer]) -> None:
        self.known, self.symbols, self.buffers = accesses, accesses.symbols, buffers
        self.index, self.symbol = loop.index, accesses.symbol(loop)
        self.varying: dict[Var, bool] = {loop.index: True}
        self.found: dict[Buffer, list[Moving]] = defaultdict(list)
        self.block(loop.body, frozenset())

    def is_carried(self, buffer: Buffer) -> bool:
        """True if one iteration may load what another has stored, or what was stored before the loop."""
        return self.stores_late(buffer) or not self.covers(buffer)

    def stores_late(self, buffer: Buffer) -> bool:
        """True if an iteration may load a place before it has stored there."""
        found = self.found[buffer]
        if not any(a.is_store for a in found) or all(a.is_store for a in found):
            return False
        return not found[0].is_store or found[0].step is None or len({(a.step, a.around) for a in found}) > 1

    def covers(self, buffer: Buffer) -> bool:
        """True if what an iteration loads lies between the first and the last place that it stores to."""
        found = self.found[buffer]
        stored, loaded = (hull([a.span for a in found if a.is_store is is_store]) for is_store in (True, False))
        return len({outer(a.shape) for a in found}) == 1 and stored[0] <= loaded[0] and loaded[1] <= stored[1]

    # ---- the walk ----------------------------------------------------------------------------------------------------
    def block(self, block: Block, around: Conditions) -> None:
        since: dict[Operand, Slices] = {}
        for event in self.known.inside(block).events:
            match event:
                case For(low=low, high=high, body=body):
                    self.block(body, around | self.those_that_vary(low, high))
                case If(condition=condition):
                    since[condition] = self.conditional(event, around)
                    first = since.get(self.negated(condition))
                    if first is not None and first is not since[condition]:
                        self.either(first, since[condition], around)
                case Access(buffer=buffer) if buffer in self.buffers:
                    self.found[buffer].append(self.moving(event, around))

    def conditional(self, stmt: If, around: Conditions) -> Slices:
        """A body that may not run, and which of the accesses are its own."""
        before = {buffer: len(found) for buffer, found in self.found.items()}
        self.block(stmt.body, around | self.those_that_vary(stmt.condition))
        return {buffer: slice(before.get(buffer, 0), len(found)) for buffer, found in self.found.items()}

    def either(self, first: Slices, second: Slices, around: Conditions) -> None:
        """Of two bodies one runs: where both store to the same places, that is no condition."""
        for buffer, place in second.items():
            found = self.found[buffer]
            one, other = found[first.get(buffer, slice(0))], found[place]
            if all(a.is_store for a in (*one, *other)) and Counter(a.shape for a in one) == Counter(a.shape for a in other):
                for span in (first.get(buffer, slice(0)), place):
                    found[span] = [replace(a, around=around) for a in found[span]]

    def negated(self, condition: Operand) -> Operand:
        """What a condition is the negation of, where that varies; else itself."""
        match self.symbols.definitions.get(condition) if isinstance(condition, Var) else None:
            case Let(result, "xor", (x, Literal(value=1))) if result.type.dtype == "bool" and self.those_that_vary(x):
                return x
        return condition

    # ---- values ------------------------------------------------------------------------------------------------------
    def those_that_vary(self, *operands: Operand) -> Conditions:
        return frozenset(x for x in operands if isinstance(x, Var) and self.varies(x))

    def varies(self, x: Var) -> bool:
        """True if a value depends on the iteration: what is loaded, or goes from iteration to iteration of an inner loop,
        may."""
        if not self.is_inside(x):
            return x is self.index
        if x not in self.varying:
            self.varying[x] = self.found_to_vary(x)
        return self.varying[x]

    def found_to_vary(self, x: Var) -> bool:
        if x in self.known.loops:
            return bool(self.those_that_vary(self.known.loops[x].low))
        match self.symbols.definitions.get(x):
            case Let(args=args) | Shuffle(args=args):
                return bool(self.those_that_vary(*args))
            case LoadFrom() | GatherFrom() | None:
                return True

    def is_inside(self, x: Var) -> bool:
        """True if a value is defined in the loop's body: of those that can be used there, the ones that are as deep."""
        return x.depth >= self.index.depth and x is not self.index

    def is_inner(self, symbol: int) -> bool:
        """True if a symbol is an index of an inner loop, or made of what is known there by an operation."""
        x = self.symbols.origins.get(symbol)
        return x is not None and self.is_inside(x) and (
            x in self.known.loops or isinstance(self.symbols.definitions.get(x), Let | Shuffle))

    # ---- places ------------------------------------------------------------------------------------------------------
    def moving(self, access: Access, around: Conditions) -> Moving:
        if access.base is None:
            return Moving(access.is_store, None, around, (0, 0, frozenset()), (0, 0))
        terms, const = access.base.terms, access.base.const + access.offset
        inner = {s for s in terms if self.is_inner(s)}
        step = None if any(self.moves(s) for s in terms) else terms.get(self.symbol, 0)
        within = LinearForm({s: c for s, c in terms.items() if s in inner}, const)
        span = self.symbols.least(within), access.extent - self.symbols.least(within.times(-1))
        places = frozenset((c, self.symbols.intervals[s] if s in inner else s) for s, c in terms.items())
        return Moving(access.is_store, step, around, (const, access.extent, places), span)

    def moves(self, symbol: int) -> bool:
        """True if a symbol depends on the iteration in a way that a form does not say."""
        x = self.symbols.origins.get(symbol)
        return symbol != self.symbol and (x is None or self.varies(x))


def outer(shape: Shape) -> frozenset[tuple[int, int | Interval]]:
    """What of a place the loops outside, and the iteration, decide."""
    return frozenset(part for part in shape[2] if isinstance(part[1], int))


def hull(spans: Sequence[Interval]) -> Interval:
    return min(first for first, _ in spans), max(end for _, end in spans)
