"""Loop-carried dependences through scratch: an iteration may load what an earlier one has stored. A loop with such a dependence
is not divided among threads, because each task begins with scratch of its own.

No value is carried where all iterations are alike: each stores before it loads, at offsets and under conditions that do not
depend on the iteration, or at offsets that advance with it. Then the first iteration loads only what it has stored (a function
loads nothing that has not been stored), and so does every other. A bound that depends on the iteration (the last block has
fewer rows) must be the bound of all loops around the stores and loads. Where a condition and its negation store to the same
offsets (a row, or zeros outside the image), both together count as no condition.
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
    """An access in one iteration. `step` is the change of its offset from iteration to iteration (None: not known), `around`
    are the bounds and conditions around the access that depend on the iteration. `shape` are its offsets, independent of the
    names of loops around it; `span` is the first offset and the end, without the terms that are decided outside."""
    is_store: bool
    step: int | None
    around: Conditions
    shape: Shape
    span: Interval


class Iteration:
    """The accesses of one iteration of a loop to some buffers. A value varies if it depends on the iteration."""

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
        """True if an iteration may load an element before it has stored to that element."""
        found = self.found[buffer]
        if not any(a.is_store for a in found) or all(a.is_store for a in found):
            return False
        return not found[0].is_store or found[0].step is None or len({(a.step, a.around) for a in found}) > 1

    def covers(self, buffer: Buffer) -> bool:
        """True if an iteration loads only between the first and the last element that it stores to."""
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
        """Walk a body that may not run; return the slice of each buffer's accesses that are the body's own."""
        before = {buffer: len(found) for buffer, found in self.found.items()}
        self.block(stmt.body, around | self.those_that_vary(stmt.condition))
        return {buffer: slice(before.get(buffer, 0), len(found)) for buffer, found in self.found.items()}

    def either(self, first: Slices, second: Slices, around: Conditions) -> None:
        """Drop the condition of two bodies, exactly one of which runs, where both store to the same offsets."""
        for buffer, place in second.items():
            found = self.found[buffer]
            one, other = found[first.get(buffer, slice(0))], found[place]
            if all(a.is_store for a in (*one, *other)) and Counter(a.shape for a in one) == Counter(a.shape for a in other):
                for span in (first.get(buffer, slice(0)), place):
                    found[span] = [replace(a, around=around) for a in found[span]]

    def negated(self, condition: Operand) -> Operand:
        """Return the value that a condition negates, if that value varies; otherwise the condition itself."""
        match self.symbols.definitions.get(condition) if isinstance(condition, Var) else None:
            case Let(result, "xor", (x, Literal(value=1))) if result.type.dtype == "bool" and self.those_that_vary(x):
                return x
        return condition

    # ---- values ------------------------------------------------------------------------------------------------------
    def those_that_vary(self, *operands: Operand) -> Conditions:
        return frozenset(x for x in operands if isinstance(x, Var) and self.varies(x))

    def varies(self, x: Var) -> bool:
        """True if a value may depend on the iteration. A loaded value, and one that an inner loop carries, may."""
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
        """True if a value is defined in the loop's body: of the values visible there, those that are at least as deep."""
        return x.depth >= self.index.depth and x is not self.index

    def is_inner(self, symbol: int) -> bool:
        """True if a symbol is the index of an inner loop, or the result of an operation in the loop's body."""
        x = self.symbols.origins.get(symbol)
        return x is not None and self.is_inside(x) and (
            x in self.known.loops or isinstance(self.symbols.definitions.get(x), Let | Shuffle))

    # ---- offsets -----------------------------------------------------------------------------------------------------
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
        """True if a symbol depends on the iteration in a way that a form does not express."""
        x = self.symbols.origins.get(symbol)
        return symbol != self.symbol and (x is None or self.varies(x))


def outer(shape: Shape) -> frozenset[tuple[int, int | Interval]]:
    """Return the terms of an offset that the outer loops, and the iteration, decide."""
    return frozenset(part for part in shape[2] if isinstance(part[1], int))


def hull(spans: Sequence[Interval]) -> Interval:
    return min(first for first, _ in spans), max(end for _, end in spans)
