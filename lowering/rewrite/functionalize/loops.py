"""A frame -> WHILE_LOOP.

The loop carries these values: for a Merge of an Enter and a Source that is live in every iteration, the Merge; for other
Sources, their value and, where they differ, their bit; for each Exit, the last value that came out; whether this is the first
iteration, where that matters. The loop is a do-while, carried by a bool that tells whether another iteration follows. It
becomes a while loop, which is TensorFlow's own form, if the condition needs only carried values, the Exits give carried values,
and nothing has an effect in the last iteration.
"""
from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...dialects.control_flow import loop as while_loop
from ...dialects.data import Datum
from ...dialects.tf_executor.operators import Island, Merge, Switch, data_operands
from ...graph.graph import Operation, Value
from .decision_diagrams import FALSE, TRUE, Atom, Bit
from .items import Effect, Item, LoopFrame, canonical

if TYPE_CHECKING:
    from .conditions import Known
    from .emit import Functionalization


def emit_loop(f: Functionalization, loop: LoopFrame, care: Bit, known: Known) -> None:
    """Emit a frame where `care` holds; its Exits are known afterwards."""
    inside = dict(known)
    for enter in loop.enters:
        value = data_operands(enter)[0]
        if f.is_known([value], known):
            inside[enter.results[0]] = f.datum(value, known)
    Emission(f, loop, f.bits.conjunction(care, loop.care), inside).emit(known)
    for exit in loop.exits:
        f.record(exit, known)


@dataclass
class Emission:
    """The emission of one frame; `known` maps the values from outside that its iterations know."""
    f: Functionalization
    loop: LoopFrame
    care: Bit
    known: Known

    def emit(self, outside: Known) -> None:
        rotated = self.closure()
        if rotated is not None:
            self.while_do(*rotated, outside)
        else:
            self.do_while(outside)

    # ---- while: the condition first ----------------------------------------------------------------------------------
    def closure(self) -> tuple[Bit, list[Item]] | None:
        """Return the condition and the items that compute it if the condition needs only carried values, the Exits give carried
        values, and nothing is lost with the rest of the last iteration; None if the loop cannot be rotated."""
        bits, loop = self.f.bits, self.loop
        if len(loop.starts) != len(loop.sources) or loop.again in (FALSE, TRUE):
            return None
        if loop.ending != set(loop.exits) or any(self.carried(e) is None for e in loop.exits) or not loop.exits:
            return None
        atoms = bits.support(loop.again)
        if any(a.kind != "value" for a in atoms):
            return None
        items = self.needed([a.key for a in atoms])
        pure = all(i.loop is None and i.bit == TRUE and not has_effect(i) for i in items)
        return (loop.again, items) if pure and not any(map(self.acts_at_the_end, self.rest())) else None

    def acts_at_the_end(self, item: Item) -> bool:
        """True if an item has an effect in the last iteration, too: a loop that tests first would skip it."""
        bits = self.f.bits
        return has_effect(item) and bits.conjunction(self.care, item.bit, bits.negation(self.loop.again)) != FALSE

    def needed(self, values: Sequence[Hashable]) -> list[Item]:
        """Return the items of an iteration that some values need, in order; Merges that the loop carries need none."""
        wanted, found = set(values), []
        for item in reversed(self.loop.items):
            if wanted.intersection(item.writes) and item.operation not in self.loop.starts:
                found.append(item)
                wanted.update(item.reads)
        return found[::-1]

    def carried(self, exit: Operation) -> Operation | None:
        """Return the Merge whose value an Exit gives back."""
        value = data_operands(exit)[0]
        maker = self.f.live.makers.get(value)
        if maker is None or not isinstance(maker.op, Switch | Island | Merge):
            return None
        found = self.f.live.makers.get(canonical(value, self.f.live.makers))
        return found if found in self.loop.starts else None

    def while_do(self, again: Bit, items: list[Item], outside: Known) -> None:
        f, merges = self.f, list(self.loop.starts)
        state: list[Datum] = [self.known.get(e.results[0]) for e in self.loop.starts.values()]

        def test(values: list[Datum]) -> Datum:
            known = self.with_merges(merges, values)
            self.record(merges, known)
            f.items(list(items), self.care, known)
            return f.condition(again, known)

        def body(values: list[Datum]) -> list[Datum]:
            known = self.with_merges(merges, values)
            f.items(self.rest(), f.bits.conjunction(self.care, again), known)
            return [self.given(self.sink_of(m), known) for m in merges]
        found = dict(zip(merges, while_loop(f.t.emitter, state, test, body)))
        for exit in self.loop.exits:
            merge = self.carried(exit)
            assert merge is not None
            if found[merge] is not None:
                outside[exit.results[0]] = found[merge]

    def with_merges(self, merges: Sequence[Operation], values: Sequence[Datum]) -> Known:
        return {**self.known, **{m.results[0]: v for m, v in zip(merges, values) if v is not None}}

    def record(self, merges: Sequence[Operation], known: Known) -> None:
        for merge in merges:
            self.f.record(merge, known)

    def rest(self) -> list[Item]:
        """Return the items of an iteration without the Merges that are carried."""
        return [i for i in self.loop.items if i.operation not in self.loop.starts]

    def sink_of(self, merge: Operation) -> Operation:
        source = next(s for s in self.loop.sources if s.results[0] in data_operands(merge))
        return self.loop.sinks[source]

    # ---- do-while ----------------------------------------------------------------------------------------------------
    def do_while(self, outside: Known) -> None:
        f, t, loop = self.f, self.f.t.emitter, self.loop
        slots = self.slots()
        state: list[Datum] = [t.constant(np.array(True))]
        state += [self.start(slot) for slot in slots]

        def body(values: list[Datum]) -> list[Datum]:
            known = dict(self.known)
            known.update((slot, v) for slot, v in zip(slots, values[1:]) if v is not None and not is_exit(slot))
            before = dict(zip(slots, values[1:]))
            self.record(list(loop.starts), known)
            f.items(self.rest(), self.care, known)
            return [f.condition(loop.again, known), *(self.next(slot, before[slot], known) for slot in slots)]
        _, *results = while_loop(f.t.emitter, state, lambda values: values[0], body)
        found = {slot: datum for slot, datum in zip(slots, results) if datum is not None}
        for exit in loop.exits:
            datum = found.get(self.twin(exit) or exit)
            if datum is not None:
                outside[exit.results[0]] = datum
        outside.update((slot, datum) for slot, datum in found.items() if isinstance(slot, Atom) and slot.kind == "latched")

    def twin(self, exit: Operation) -> Value | None:
        """Return the slot that holds, after the last iteration, the value that an Exit gives back."""
        if exit not in self.loop.ending:
            return None
        value = self.origin(exit)
        source = next((s for s, sink in self.loop.sinks.items() if self.origin(sink) is value), None)
        if source is None:
            return None
        merge = next((m for m in self.loop.starts if source.results[0] in data_operands(m)), None)
        return (merge or source).results[0]

    def origin(self, operation: Operation) -> Value:
        """Return the operand of a Sink or an Exit, through operations that forward it."""
        return canonical(data_operands(operation)[0], self.f.live.makers)

    def slots(self) -> list[Hashable]:
        """Return the slots that the loop carries: values of Merges and Sources, atoms, and Exits (the operations)."""
        loop, merged = self.loop, {s.results[0] for s in self.loop.sources for m in self.loop.starts
                                   if s.results[0] in data_operands(m)}
        found: list[Hashable] = [m.results[0] for m in loop.starts]
        for source in loop.sources:
            if source.results[0] not in merged:
                found.append(source.results[0])
            if source not in loop.lasting:
                found.append(Atom("source", source))
        first = Atom("first", loop.frame)
        found += [first] if first in self.atoms() else []
        found += [e for e in loop.exits if self.twin(e) is None]
        return [*found, *(Atom("latched", e) for e in loop.exits if e not in loop.ending)]

    def atoms(self) -> set[Atom]:
        """Return the atoms that the conditions of an iteration depend on."""
        f = self.f
        operations = [*self.loop.sinks.values(), *self.loop.exits]
        found = [*(i.bit for i in self.rest()), *map(f.live.all_live, operations)]
        found += [f.live.bit(v) for i in self.rest() if i.operation is not None and isinstance(i.operation.op, Merge)
                  for v in data_operands(i.operation)]
        found += [f.live.all_live(e) for i in self.rest() if i.loop for e in i.loop.enters]
        return {atom for bit in found for atom in f.bits.support(f.bits.restrict(bit, self.care))}

    def start(self, slot: Hashable) -> Datum:
        """Return the datum of a slot in the first iteration; None for a value that is dead there."""
        match slot:
            case Atom(kind=kind):
                return self.f.t.emitter.constant(np.array(kind == "first"))
            case Value():
                merge = next((m for m in self.loop.starts if m.results[0] is slot), None)
                return None if merge is None else self.known.get(self.loop.starts[merge].results[0])
            case _:
                return None

    def next(self, slot: Hashable, before: Datum, known: Known) -> Datum:
        """Return the datum of a slot after an iteration."""
        f = self.f
        match slot:
            case Atom(kind="first"):
                return f.t.emitter.constant(np.array(False))
            case Atom(kind="source", key=Operation() as source):
                return f.condition(f.bits.restrict(f.live.all_live(self.loop.sinks[source]), self.care), known)
            case Atom(kind="latched", key=Operation() as exit):
                live = f.condition(f.bits.restrict(f.live.all_live(exit), self.care), known)
                return live if before is None else f.t.emitter("logical_or", before, live)  # type: ignore[arg-type]
            case Operation() as exit:
                return self.latch(exit, before, known)
            case _:
                merge = next((m for m in self.loop.starts if m.results[0] is slot), None)
                sink = self.sink_of(merge) if merge is not None else next(
                    self.loop.sinks[s] for s in self.loop.sources if s.results[0] is slot)
                return self.given(sink, known) or before

    def given(self, operation: Operation, known: Known) -> Datum:
        """Return the operand of a Sink or an Exit; None if it was dead. A slot is the twin of an Exit in the last iteration,
        when the operation that forwards the value to the Sink is dead: so look the operand up at its origin."""
        value, origin = data_operands(operation)[0], self.origin(operation)
        return known.get(origin) or known.get(value, self.f.scope.get(value))

    def latch(self, exit: Operation, before: Datum, known: Known) -> Datum:
        """Return the last live value of an Exit: that of this iteration, if the Exit is live whenever the loop ends."""
        f, found = self.f, self.given(exit, known)
        if exit in self.loop.ending or before is None or found is None:
            return before if found is None else found
        live = f.bits.restrict(f.live.all_live(exit), self.care)
        return f.selected(live, found, before, known)


def has_effect(item: Item) -> bool:
    """True if the item is an effect that must stay in order."""
    return any(isinstance(r, Effect) for r in item.reads)


def is_exit(slot: Hashable) -> bool:
    return isinstance(slot, Operation) or (isinstance(slot, Atom) and slot.kind == "latched")
