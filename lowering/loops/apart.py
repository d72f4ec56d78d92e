"""Whether the turns of a loop keep apart: what one turn stores, no other turn stores or loads. Then they may run at the same
time.

A place in memory is a form over loop indices (`ranges`). Turns keep apart where all places of a turn lie in a window
narrower than the step from turn to turn, at least modulo a number of which everything else is a multiple (the stride of an
outer dimension).
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set

from ...runtime.records import dataclass
from ..elements.expression import Buffer
from ..graph.types import ITEM_SIZES
from .ir import Block, For, Function, GatherFrom, If, Let, LoadFrom, LoadTile, ShapeTiles, Shuffle, StoreTile, StoreTo, Var
from .ranges import Form, Interval, Ranges


@dataclass(frozen=True, slots=True)
class Place:
    """An access to `active` neighbours from `form` on; None where it may be anywhere."""
    buffer: Buffer
    form: Form | None
    active: int


class Places:
    """The accesses of a function, with what is known of its indices."""

    def __init__(self, function: Function) -> None:
        self.ranges = Ranges()
        self.turns: dict[Var, int] = {}
        self.found: dict[int, list[Place]] = {}
        self.shapes: tuple[tuple[int, int], ...] = ()
        if function.rows:
            for var in function.rows:
                self.ranges.given(var, (0, 1 << 40))
        self.block(function.body)

    def block(self, block: Block) -> list[Place]:
        """The accesses in a block and in what stands in it, in the order of the text."""
        found = self.found[id(block)] = []
        for stmt in block:
            match stmt:
                case Let(result=result) | Shuffle(result=result):
                    self.ranges.definitions[result] = stmt
                case LoadFrom(result, address, active):
                    self.ranges.definitions[result] = stmt
                    found.append(Place(address.buffer, self.ranges.form(address.base).moved(address.offset), active))
                case StoreTo(address, _, active):
                    found.append(Place(address.buffer, self.ranges.form(address.base).moved(address.offset), active))
                case ShapeTiles(shapes):
                    self.shapes = shapes
                case LoadTile(tile, address, stride) | StoreTile(tile, address, stride):
                    (rows, nbytes), form = self.shapes[tile], self.ranges.form(address.base)
                    found += [Place(address.buffer, form.moved(address.offset + row * stride),
                                    nbytes // ITEM_SIZES[address.buffer.dtype]) for row in range(rows)]
                case GatherFrom(result=result, buffer=buffer):
                    self.ranges.definitions[result] = stmt
                    found.append(Place(buffer, None, 1))
                case For():
                    low, high = self.ranges.loop(stmt.index, stmt.low, stmt.high)
                    self.turns[stmt.index] = high - low + 1
                    found += self.block(stmt.body)
                case If(body=body):
                    found += self.block(body)
        return found

    def apart(self, loop: For, buffers: Set[Buffer]) -> bool:
        """Whether the turns of a loop, whatever the turns of the loops around it, keep apart in these buffers."""
        places = self.found[id(loop.body)]
        return self.turns[loop.index] == 1 or all(
            self.apart_in(loop, buffer, [p for p in places if p.buffer is buffer]) for buffer in buffers)

    def apart_in(self, loop: For, buffer: Buffer, places: list[Place]) -> bool:
        (symbol,) = self.ranges.form(loop.index).terms
        forms = [p.form for p in places if p.form is not None]
        if len(forms) < len(places):
            return False
        steps = {f.terms.get(symbol, 0) for f in forms}
        if len(steps) != 1 or steps == {0}:
            return not forms
        step, turns = abs(steps.pop()), self.turns[loop.index]
        rest = [(Form({s: c for s, c in f.terms.items() if s != symbol}, f.const), p.active) for f, p in zip(forms, places)]
        return any(width(rest, modulus, bounds) <= min(step, modulus - step * (turns - 1))
                   for bounds in (self.ranges.interval, self.ranges.closest)
                   for modulus in moduli(buffer, (f for f, _ in rest), step * turns))


def width(places: Iterable[tuple[Form, int]], modulus: int, bounds: Callable[[Form], Interval]) -> int:
    """The elements of a window that has all these accesses, modulo a number. `bounds` are of a form, closer or cheaper."""
    first, end, found = [], [], dict[frozenset[tuple[int, int]], Interval]()
    for form, active in places:
        terms = {symbol: c for symbol, c in form.terms.items() if c % modulus}
        known = found.get(key := frozenset(terms.items()))
        if known is None:
            known = found[key] = bounds(Form(terms))
        first.append(form.const % modulus + known[0])
        end.append(form.const % modulus + known[1] + active)
    return max(end) - min(first)


def moduli(buffer: Buffer, forms: Iterable[Form], least: int) -> Iterator[int]:
    """Numbers of which the steps of outer loops may be multiples, no less than `least`; one that is too large to matter
    first."""
    yield 1 << 50
    found = {abs(c) for f in forms for c in f.terms.values()} | {*buffer.strides}
    yield from sorted((n for n in found if n >= least), reverse=True)
