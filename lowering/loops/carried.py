"""Whether a turn of a loop may read what an earlier turn has stored: scratch that goes from turn to turn. Such a loop is not
divided among threads, because each part begins with scratch of its own.

Nothing goes from turn to turn where all turns are alike: each stores before it loads, and where and under which conditions it
does so is independent of the turn, or moves on with it. Then what the first turn loads, it has stored, and so has every
other. A bound that depends on the turn (of the last block, fewer rows) must be the bound of all loops around what is stored
and loaded. Where a condition and its negation store to the same places (a row, or zeros outside the image), both together
are no condition.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from ...runtime.records import dataclass
from ..elements.expression import Buffer
from ..graph.types import ITEM_SIZES
from .apart import Places
from .ir import Address, Block, For, GatherFrom, If, Let, Literal, LoadFrom, LoadTile, Operand, Shuffle, StoreTile, StoreTo, Var
from .ranges import LIMITS, Form, Interval

Conditions = frozenset[Operand]
Shape = tuple[int, int, frozenset[tuple[int, int | Interval]]]


@dataclass(frozen=True, slots=True)
class Access:
    """A load or a store: how its place moves from turn to turn, None where that is not known, and what of the loops and
    conditions around it depends on the turn. `shape` are its places, whatever the names of loops around it; `span` are the
    first of them and the end, but for what is decided outside."""
    stores: bool
    step: int | None
    around: Conditions
    shape: Shape
    span: Interval = (0, 0)


class Turns:
    """What the turns of a loop do with buffers. A value varies if it depends on the turn; a symbol moves if it does so in a way
    that its form does not say."""

    def __init__(self, loop: For, places: Places) -> None:
        self.ranges, self.tiles = places.ranges, places.shapes
        (self.symbol,) = self.ranges.form(loop.index).terms
        self.varying: set[Var] = {loop.index}
        self.moving: set[int] = set()
        self.inner: set[int] = set()
        self.accesses: dict[Buffer, list[Access]] = defaultdict(list)
        self.block(loop.body, frozenset())

    def carry(self, buffer: Buffer) -> bool:
        """Whether one may load what another has stored."""
        found = self.accesses.get(buffer, [])
        if not any(a.stores for a in found) or all(a.stores for a in found):
            return False
        return not found[0].stores or found[0].step is None or len({(a.step, a.around) for a in found}) > 1

    def covers(self, buffer: Buffer) -> bool:
        """Whether what a turn loads lies between the first and the last place that it stores to."""
        found = self.accesses[buffer]
        stored, loaded = (hull([a.span for a in found if a.stores is stores]) for stores in (True, False))
        return len({outer(a.shape) for a in found}) == 1 and stored[0] <= loaded[0] and loaded[1] <= stored[1]

    # ---- statements --------------------------------------------------------------------------------------------------
    def block(self, block: Block, around: Conditions) -> None:
        negated: dict[Operand, Operand] = {}
        since: dict[Operand, dict[Buffer, slice]] = {}
        for stmt in block:
            match stmt:
                case Let(result, "xor", (x, Literal(value=1))) if result.type.dtype == "bool" and self.those_that_vary(x):
                    negated[result] = x
                    self.vary(result)
                case Let(result=result, args=args) | Shuffle(result=result, args=args):
                    self.inner |= self.own(result, args)
                    if self.those_that_vary(*args):
                        self.vary(result, args)
                case For():
                    self.loop(stmt, around)
                case If(condition=condition):
                    since[condition] = self.conditional(stmt, around)
                    if (first := since.get(negated.get(condition, condition))) is not since[condition] and first is not None:
                        self.either(first, since[condition], around)
                case _:
                    self.access(stmt, around)

    def loop(self, loop: For, around: Conditions) -> None:
        self.inner |= self.symbols(loop.index)
        if self.those_that_vary(loop.low):
            self.vary(loop.index)
        for carried in (*loop.params, *loop.results):
            self.vary(carried)
        self.block(loop.body, around | self.those_that_vary(loop.low, loop.high))

    def conditional(self, stmt: If, around: Conditions) -> dict[Buffer, slice]:
        """A body that may not run, and which of the accesses are its own."""
        before = {buffer: len(found) for buffer, found in self.accesses.items()}
        self.block(stmt.body, around | self.those_that_vary(stmt.condition))
        return {buffer: slice(before.get(buffer, 0), len(found)) for buffer, found in self.accesses.items()}

    def either(self, first: dict[Buffer, slice], second: dict[Buffer, slice], around: Conditions) -> None:
        """Of two bodies one runs: where both store to the same places, that is no condition."""
        for buffer, place in second.items():
            found = self.accesses[buffer]
            one, other = found[first.get(buffer, slice(0))], found[place]
            if all(a.stores for a in (*one, *other)) and Counter(a.shape for a in one) == Counter(a.shape for a in other):
                for span in (first.get(buffer, slice(0)), place):
                    found[span] = [replace(a, around=around) for a in found[span]]

    def access(self, stmt: object, around: Conditions) -> None:
        match stmt:
            case LoadFrom(result=result, address=address, active=active):
                self.vary(result)
                self.note(address, False, active, around)
            case LoadTile(tile, address, stride):
                self.note(address, False, self.extent(tile, address, stride), around)
            case StoreTo(address=address, active=active):
                self.note(address, True, active, around)
            case StoreTile(tile, address, stride):
                self.note(address, True, self.extent(tile, address, stride), around)
            case GatherFrom(result=result, buffer=buffer):
                self.vary(result)
                self.accesses[buffer].append(Access(False, None, around, (0, 0, frozenset())))

    # ---- values ------------------------------------------------------------------------------------------------------
    def those_that_vary(self, *operands: Operand) -> Conditions:
        return frozenset(x for x in operands if isinstance(x, Var) and x in self.varying)

    def vary(self, result: Var, args: Sequence[Operand] = ()) -> None:
        """A value depends on the turn; what symbols it has that its operands have not, move."""
        self.varying.add(result)
        self.moving |= self.own(result, args)

    def own(self, result: Var, args: Sequence[Operand]) -> set[int]:
        """The symbols that an index has and its operands have not."""
        if result.type.dtype not in LIMITS or result.type.lanes > 1:
            return set()
        return self.symbols(result) - {s for x in args if x.type.dtype in LIMITS for s in self.symbols(x)}

    def symbols(self, x: Operand) -> set[int]:
        return set(self.ranges.form(x).terms)

    def extent(self, tile: int, address: Address, stride: int) -> int:
        """Elements from the first to the last of a tile's rows."""
        rows, nbytes = self.tiles[tile]
        return (rows - 1) * stride + nbytes // ITEM_SIZES[address.buffer.dtype]

    def note(self, address: Address, stores: bool, active: int, around: Conditions) -> None:
        form = self.ranges.form(address.base).moved(address.offset)
        step = None if self.moving & form.terms.keys() else form.terms.get(self.symbol, 0)
        within = Form({s: c for s, c in form.terms.items() if s in self.inner}, form.const)
        span = self.ranges.least(within), active - self.ranges.least(within.times(-1))
        self.accesses[address.buffer].append(Access(stores, step, around, self.shape(form, active), span))

    def shape(self, form: Form, active: int) -> Shape:
        places = frozenset((c, self.ranges.intervals[s] if s in self.inner else s) for s, c in form.terms.items())
        return form.const, active, places


def outer(shape: Shape) -> frozenset[tuple[int, int | Interval]]:
    """What of a place the loops outside, and the turn, decide."""
    return frozenset(part for part in shape[2] if isinstance(part[1], int))


def hull(spans: Sequence[Interval]) -> Interval:
    return min(first for first, _ in spans), max(end for _, end in spans)
