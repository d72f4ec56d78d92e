"""Items of a frame -> TOSA: an item that is always live is emitted directly, an item that is live under a condition goes into
COND_IF, and a Merge becomes its one live input.

`care` is the condition that holds at the point of emission: in the region for true of a condition, it includes that condition.
The first item that is not always live chooses the condition: the outermost that its bit depends on. Every item that is live
only if that condition is true, or only if it is false, moves into its two regions, as far as the order allows. Values that are
used after the regions are their results.
"""
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from ....runtime.errors import Problem
from ....runtime.records import dataclass
from ...dialects.control_flow import branch
from ...dialects.data import Datum
from ...dialects.tf_executor.operators import (
    ControlTrigger,
    Enter,
    Island,
    LoopCond,
    Merge,
    Switch,
    SwitchN,
    data_operands,
    data_results,
    fetched,
    is_receive,
    is_send,
    wrapped,
)
from ...graph.graph import Operation, Value, captures
from ..tensorflow.special import Scope
from .conditions import Conditions, Known
from .decision_diagrams import FALSE, TRUE, Bit
from .items import Item, LoopFrame, canonical, is_free, message_of
from .live_bits import Liveness, needs

if TYPE_CHECKING:
    from ..tensorflow.translate import Translation

EmitLoop = Callable[["Functionalization", LoopFrame, Bit, Known], None]
"""A function that emits a frame as WHILE_LOOP: from `loops`, which is a layer above this module."""


@dataclass(frozen=True, slots=True)
class ItemGroup:
    """Items before a condition's regions, in them (true, false), and after them."""
    before: list[Item]
    sides: tuple[list[Item], list[Item]]
    after: list[Item]


class Functionalization(Conditions):
    """The functionalization of one graph, in the scope of the function that holds it."""

    def __init__(self, t: Translation, graph: Operation, scope: Scope, emit_loop: EmitLoop) -> None:
        self.t, self.graph, self.scope, self.emit_loop = t, graph, scope, emit_loop
        self.live = Liveness(t.module, graph, t.bindings.rfc_merge)
        self.bits = self.live.manager
        self.users: dict[Hashable, int] = {}
        """Number of items, Sinks, Exits and fetches that read each value."""
        self.count(self.live.root)

    def results(self) -> list[Datum]:
        known: Known = {}
        self.items(list(self.live.root.items), TRUE, known)
        return [self.fetch(v, known) for v in fetched(self.graph)[0]]

    def fetch(self, value: Value, known: Known) -> Datum:
        """Return a fetched value, which must be live."""
        bit = self.live.bit(value)
        place = self.graph.regions[0].terminator_position
        if bit == FALSE:
            raise Problem(f"%{value.name} is fetched, but it is always dead", place, kind="executor")
        if bit != TRUE:
            self.t.require(self.condition(bit, known), f"%{value.name} is fetched, but it is dead", place)
        return self.datum(value, known)

    def count(self, loop: LoopFrame) -> None:
        ends: list[Hashable] = [v for o in (*loop.sinks.values(), *loop.exits) for v in self.live.frames.inputs[o]]
        ends += dict.fromkeys(canonical(data_operands(o)[0], self.live.makers) for o in loop.sinks.values())
        bits = [self.live.all_live(o) for o in (*loop.sinks.values(), *loop.exits)]
        if loop.frame.parent is None:
            ends += fetched(self.graph)[0]
            bits += [self.live.bit(v) for v in fetched(self.graph)[0]]
        ends += [n for b in bits for a in self.bits.support(b) for n in needs(a)]
        for read in (*ends, *(r for i in loop.items for r in i.reads)):
            self.users[read] = self.users.get(read, 0) + 1
        for item in loop.items:
            if item.loop:
                self.count(item.loop)

    # ---- values ------------------------------------------------------------------------------------------------------
    def is_known(self, values: Iterable[Hashable], known: Known) -> bool:
        return all(v in known or v in self.scope for v in values)

    # ---- items -------------------------------------------------------------------------------------------------------
    def items(self, pending: list[Item], care: Bit, known: Known) -> None:
        """Emit items in order where `care` holds; their results are then known."""
        while pending:
            item = pending[0]
            bit = self.bits.restrict(item.bit, care)
            if bit == FALSE and not self.is_always(item):
                pending = pending[1:]
            elif bit == TRUE or (item.operation is not None and is_free(item.operation)):
                self.item(item, care, known)
                pending = pending[1:]
            else:
                pending = self.under_condition(pending, self.chosen(bit), care, known)

    def is_always(self, item: Item) -> bool:
        """True if the item is emitted even if it is dead: a dead message is sent, too."""
        return item.operation is not None and (is_send(item.operation) or is_receive(item.operation))

    def chosen(self, bit: Bit) -> Bit:
        """Return the condition to branch on: the outermost atom of a bit if the bit implies it or its negation, else the bit
        itself."""
        atom, low, high = self.bits.top(bit)
        return self.bits.atom(atom) if FALSE in (low, high) else bit

    def under_condition(self, pending: list[Item], chosen: Bit, care: Bit, known: Known) -> list[Item]:
        """Emit a condition's two regions after the items that must precede them; return the items that remain after the
        regions."""
        group = self.divided(pending, chosen, care)
        self.items(group.before, care, known)
        sides = [self.bits.conjunction(care, b) for b in (chosen, self.bits.negation(chosen))]
        exported = self.exported(group)
        inside: list[Known] = [dict(known), dict(known)]

        def emit(side: int) -> list[Datum]:
            self.items(list(group.sides[side]), sides[side], inside[side])
            return [inside[side].get(v) for v in exported]
        found = branch(self.t.emitter, self.condition(chosen, known), lambda: emit(0), lambda: emit(1))
        known.update((v, datum) for v, datum in zip(exported, found) if datum is not None)
        return group.after

    def divided(self, pending: list[Item], chosen: Bit, care: Bit) -> ItemGroup:
        """Divide the items into regions, before and after. The regions get the items that are live on one side only and need
        nothing that comes after; Merges of values in the regions go into both."""
        sides: tuple[list[Item], list[Item]] = ([], [])
        before: list[Item] = []
        after: list[Item] = []
        made: set[Hashable] = set()
        late: set[Hashable] = set()
        for item in pending:
            side = self.side(item, chosen, care)
            if late.intersection(item.reads):
                after.append(item)
                late.update(item.writes)
            elif side is not None:
                sides[side].append(item)
                made.update(item.writes)
            elif not made.intersection(item.reads):
                before.append(item)
            elif item.operation is not None and isinstance(item.operation.op, Merge):
                sides[0].append(item)
                sides[1].append(item)
                made.update(item.writes)
            else:
                after.append(item)
                late.update(item.writes)
        return ItemGroup(before, sides, after)

    def side(self, item: Item, chosen: Bit, care: Bit) -> int | None:
        """Return 0 if the item is live only if the condition holds, 1 if it is live only if the condition does not hold."""
        live = self.bits.conjunction(care, item.bit)
        if live == FALSE or self.is_always(item):
            return None
        if self.bits.implies(live, chosen):
            return 0
        return 1 if self.bits.implies(live, self.bits.negation(chosen)) else None

    def exported(self, group: ItemGroup) -> list[Hashable]:
        """Return the values that are defined in the regions and read outside them."""
        inside = {id(i): i for side in group.sides for i in side}.values()
        reads: dict[Hashable, int] = {}
        for item in inside:
            for read in item.reads:
                reads[read] = reads.get(read, 0) + 1
        made = dict.fromkeys(w for item in inside for w in item.writes)
        return [w for w in made if self.users.get(w, 0) > reads.get(w, 0)]

    # ---- one item ----------------------------------------------------------------------------------------------------
    def item(self, item: Item, care: Bit, known: Known) -> None:
        if item.loop is not None:
            self.emit_loop(self, item.loop, care, known)
            return
        operation = item.operation
        assert operation is not None
        try:
            self.operation(operation, care, known)
            self.record(operation, known)
        except Problem as problem:
            raise problem.at(operation.position) from None

    def record(self, operation: Operation, known: Known) -> None:
        """Record the data for the data results of an executor operation, as far as they are known."""
        self.t.record(operation, [known.get(v) for v in data_operands(operation)],
                      [known.get(v) for v in data_results(operation)])

    def operation(self, operation: Operation, care: Bit, known: Known) -> None:
        """Emit one operation. An operand that it needs and that is not known was dead."""
        data = data_operands(operation)
        match operation.op:
            case Merge():
                self.merge(operation, care, known)
            case Switch() | SwitchN() | LoopCond():
                if self.is_known(data[:1], known):
                    known.update((v, self.datum(data[0], known)) for v in data_results(operation))
            case ControlTrigger():
                pass
            case Island() if is_send(operation):
                self.send(operation, known)
            case Island() if is_receive(operation):
                if message_of(operation) in known:
                    known[data_results(operation)[0]] = known[message_of(operation)]
            case Island():
                read = captures(operation)
                if self.is_known(read, known):
                    scope = {v: self.datum(v, known) for v in read}
                    known.update(zip(operation.results, self.t.block(operation.regions[0], scope)))
            case _:
                assert not isinstance(operation.op, Enter), operation

    def send(self, operation: Operation, known: Known) -> None:
        inner = wrapped(operation)
        assert inner is not None
        if self.is_known(inner.operands, known):
            known[message_of(operation)] = self.datum(inner.operands[0], known)

    def merge(self, operation: Operation, care: Bit, known: Known) -> None:
        """Emit the first live input and its number."""
        choices: list[tuple[Bit, Datum, int]] = []
        rest = care
        for number, value in enumerate(data_operands(operation)):
            live = self.bits.restrict(self.live.bit(value), rest) if rest != FALSE else FALSE
            if live != FALSE and self.is_known([value], known):
                choices.append((live, self.datum(value, known), number))
                rest = self.bits.conjunction(rest, self.bits.negation(live))
        if not choices:
            return
        value, index, _ = operation.results
        known[value] = self.first([(bit, datum) for bit, datum, _ in choices], known)
        if self.users.get(index):
            numbers = [(bit, self.t.emitter.constant(np.array(n, np.int32))) for bit, _, n in choices]
            known[index] = self.first(numbers, known)
