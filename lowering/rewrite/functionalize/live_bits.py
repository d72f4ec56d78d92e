"""Executor graph -> frames with their items in order, and the live bit of every value.

The order of a frame is topological, and otherwise as in the text; a nested frame is one item. Bits follow the executor's rules:
an operation is live if all its inputs are, a Merge if one is, a Switch divides by its predicate. If a Sink is live whenever
another iteration follows, its Source is live in every iteration but the first. The analysis assumes this of every Source; a
Source for which the assumption proves wrong gets a bit of its own.
"""
from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Sequence

from ....runtime.errors import Problem
from ...dialects.tf_executor.frames import Frame, Frames
from ...dialects.tf_executor.operators import (
    ControlTrigger,
    Enter,
    Exit,
    Merge,
    NextIterationSink,
    NextIterationSource,
    Switch,
    SwitchN,
    control_operands,
    control_result,
    data_operands,
    data_results,
    is_receive,
    is_send,
    token_of,
)
from ...graph.graph import Module, Operation, Value
from .decision_diagrams import FALSE, TRUE, Atom, Bit, Bits
from .items import Effect, Item, LoopFrame, Message, canonical, merge_of, message_of
from .touching import Touching

Unit = Operation | Frame


class Liveness:
    """The liveness analysis of one graph. `bits` has the bits of all values that the graph defines. `rfc_merge`: whether a
    Merge with a dead control input is dead, as in the dialect's design document; in TensorFlow it is live."""

    def __init__(self, module: Module, graph: Operation, rfc_merge: bool = False) -> None:
        self.module, self.block, self.rfc_merge = module, graph.regions[0], rfc_merge
        self.touching = Touching(module)
        self.manager = Bits()
        self.frames = Frames(self.block)
        self.makers: dict[Value, Operation] = {v: o for o in self.block.operations for v in o.results}
        self.places = {o: n for n, o in enumerate(self.block.operations)}
        self.bits: dict[Value, Bit] = {}
        self.latched: dict[Operation, Bit] = {}
        self.sinks = {token_of(o): o for o in self.block.operations if isinstance(o.op, NextIterationSink)}
        self.inside: dict[Frame, list[Operation]] = {}
        self.enters: dict[Frame, list[Operation]] = {}
        self.children: dict[Frame, list[Frame]] = {}
        for operation in self.block.operations:
            if isinstance(operation.op, Enter):
                self.enters.setdefault(self.frames.of[operation.results[0]], []).append(operation)
            else:
                self.inside.setdefault(self.frames.at[operation], []).append(operation)
        for frame in dict.fromkeys((*self.inside, *self.enters)):
            if frame.parent is not None:
                self.children.setdefault(frame.parent, []).append(frame)
        self.sends = {message_of(o): o for o in self.block.operations if is_send(o)}
        self.root = self.loop(self.frames.root)

    # ---- bits --------------------------------------------------------------------------------------------------------
    def bit(self, value: Value) -> Bit:
        """Return the live bit of a value. Values from outside the graph are always live."""
        return self.bits.get(value, TRUE)

    def condition(self, value: Value) -> Bit:
        """Return the bit of a predicate."""
        return self.manager.atom(Atom("value", canonical(value, self.makers)))

    def all_live(self, operation: Operation) -> Bit:
        return self.manager.conjunction(*(self.bit(v) for v in self.frames.inputs[operation]))

    def settle(self, operation: Operation, care: Bit) -> Bit:
        """Set the live bits of the results of an operation of a frame; return the bit of the operation itself."""
        bits, own = self.manager, self.all_live(operation)
        data = data_operands(operation)
        results: Sequence[Bit] = [own] * len(data_results(operation))
        match operation.op:
            case Switch():
                p = self.condition(data[1])
                results = [bits.conjunction(own, bits.negation(p)), bits.conjunction(own, p)]
            case SwitchN(num_outs=count):
                results = self.cases(data[1], count, own)
            case Merge():
                own = bits.disjunction(*(self.bit(v) for v in data))
                if self.rfc_merge:
                    own = bits.conjunction(own, *(self.bit(v) for v in control_operands(operation)))
                results = [own, own]
            case ControlTrigger():
                own = TRUE
            case _ if is_receive(operation):
                own = self.received(operation)
                results = [own] * len(data_results(operation))
        for value, bit in zip(data_results(operation), results, strict=True):
            self.bits[value] = bits.restrict(bit, care)
        control = control_result(operation)
        if control is not None:
            self.bits[control] = bits.restrict(own, care)
        return bits.restrict(own, care)

    def cases(self, index: Value, count: int, own: Bit) -> list[Bit]:
        """Return the bits of the outputs of a SwitchN: output j is live if the index is j, the last output for every other
        index."""
        bits, rest, found = self.manager, own, []
        for number in range(count - 1):
            here = bits.atom(Atom("case", (canonical(index, self.makers), number)))
            found.append(bits.conjunction(rest, here))
            rest = bits.conjunction(rest, bits.negation(here))
        return [*found, rest]

    def received(self, operation: Operation) -> Bit:
        send = self.sends.get(message_of(operation))
        if send is None or self.frames.at[send] is not self.frames.at[operation]:
            raise Problem(f"a Recv waits for {message_of(operation).name!r}, which nothing in its frame of the graph sends",
                          operation.position, kind="unsupported", help="compile both sides in one graph, or interpret them")
        return self.all_live(send)

    # ---- frames ------------------------------------------------------------------------------------------------------
    def loop(self, frame: Frame) -> LoopFrame:
        """Return a frame. Assume that every Source is live in all iterations but the first, until one proves not to be."""
        sources = {o for o in self.inside.get(frame, ()) if isinstance(o.op, NextIterationSource)}
        if frame.parent is None:
            return self.attempt(frame, TRUE, sources)[0]
        bits = self.manager
        entered = bits.disjunction(*(self.all_live(e) for e in self.enters.get(frame, ())))
        if any(isinstance(o.op, ControlTrigger) or is_send(o) for o in self.inside.get(frame, ())):
            entered = TRUE
        while True:
            found, right = self.attempt(frame, entered, sources)
            if right == sources:
                return found
            sources = right

    def attempt(self, frame: Frame, entered: Bit, lasting: set[Operation]) -> tuple[LoopFrame, set[Operation]]:
        """Return the frame under the assumption that the Sources in `lasting` are live in every iteration but the first, and
        those of them that are."""
        bits, own = self.manager, self.inside.get(frame, [])
        sources = [o for o in own if isinstance(o.op, NextIterationSource)]
        first = bits.atom(Atom("first", frame)) if frame.parent is not None else TRUE
        later = bits.negation(first)
        again = [later if s in lasting else bits.atom(Atom("source", s)) for s in sources]
        care = bits.conjunction(entered, bits.choice(first, bits.negation(bits.disjunction(*again)), bits.disjunction(*again))
                                ) if sources and lasting != set(sources) else entered
        self.begin(frame, sources, again, first, care)
        items = tuple(self.items(frame, care))
        sinks = {s: self.sinks[token_of(s)] for s in sources}
        goes = {source: bits.restrict(self.all_live(sink), care) for source, sink in sinks.items()}
        exits = tuple(o for o in own if isinstance(o.op, Exit))
        go = bits.disjunction(*goes.values())
        right = {s for s in lasting if goes[s] == go}
        ending = frozenset(e for e in exits if bits.conjunction(care, self.all_live(e)) == bits.conjunction(
            care, bits.negation(go)))
        self.leave(exits, ending, entered)
        starts = self.starts([s for s in sources if s in lasting])
        return LoopFrame(frame, items, tuple(self.enters.get(frame, ())), tuple(sources), sinks, exits, entered, care, go,
                         starts,
                         ending, frozenset(lasting)), right

    def begin(self, frame: Frame, sources: Sequence[Operation], again: Sequence[Bit], first: Bit, care: Bit) -> None:
        """Set the live bits of the values that an iteration starts with."""
        bits = self.manager
        for enter in self.enters.get(frame, ()):
            live = self.all_live(enter)
            inside = live if enter.op.is_constant else bits.conjunction(live, first)  # type: ignore[attr-defined]
            for value in enter.results:
                self.bits[value] = bits.restrict(inside, care)
        for source, bit in zip(sources, again, strict=True):
            for value in source.results:
                self.bits[value] = bits.restrict(bit, care)

    def leave(self, exits: Iterable[Operation], ending: frozenset[Operation], entered: Bit) -> None:
        """Set the live bits of the results of a frame."""
        bits = self.manager
        for operation in exits:
            latched = TRUE if operation in ending else bits.atom(Atom("latched", operation))
            for value in operation.results:
                self.bits[value] = bits.conjunction(entered, latched)

    def starts(self, sources: Sequence[Operation]) -> dict[Operation, Operation]:
        """Return the Enter of each Merge of a Source and an Enter that is live in every iteration."""
        found = {}
        for source in sources:
            merge = merge_of(source, self.frames.users)
            if merge is None or self.bit(merge.results[0]) != TRUE or len(self.frames.users.get(merge.results[1], ())):
                continue
            other, = (v for v in data_operands(merge) if v is not source.results[0])
            enter = self.makers.get(other)
            if enter is not None and isinstance(enter.op, Enter) and not enter.op.is_constant:
                found[merge] = enter
        return found

    def is_effect(self, unit: Unit) -> bool:
        """True if the unit must stay in order with others that touch state that outlives the graph."""
        if isinstance(unit, Frame):
            return any(map(self.is_effect, (*self.inside.get(unit, ()), *self.children.get(unit, ()))))
        return any(map(self.touching.block, unit.regions)) and not is_send(unit) and not is_receive(unit)

    # ---- items -------------------------------------------------------------------------------------------------------
    def items(self, frame: Frame, care: Bit) -> Iterable[Item]:
        """Yield the items of a frame in order, with their bits."""
        effects = 0
        for unit in self.ordered(frame):
            loop = self.loop(unit) if isinstance(unit, Frame) else None
            bit = loop.entered if loop else self.settle(unit, care)  # type: ignore[arg-type]
            reads, writes = self.reads(unit), self.writes(unit)
            if self.is_effect(unit):
                reads, effects = [*reads, Effect(effects)], effects + 1
                writes = [*writes, Effect(effects)]
            atoms = self.atoms(unit, bit)
            yield Item(None if loop else unit, loop, self.manager.restrict(bit, care),  # type: ignore[arg-type]
                       tuple(dict.fromkeys((*reads, *atoms))), tuple(writes))

    def ordered(self, frame: Frame) -> list[Unit]:
        """Return operations and nested frames, each after the units that it reads, otherwise as in the text."""
        ends = NextIterationSource | NextIterationSink | Exit
        units: list[Unit] = [o for o in self.inside.get(frame, ()) if not isinstance(o.op, ends)]
        units += self.children.get(frame, [])
        makers = {v: unit for unit in units for v in self.writes(unit)}
        waits = {unit: {makers[v] for v in self.reads(unit) if v in makers and makers[v] is not unit} for unit in units}
        users: dict[Unit, list[Unit]] = {}
        for unit, needed in waits.items():
            for other in needed:
                users.setdefault(other, []).append(unit)
        ready = [(self.place(unit), n, unit) for n, unit in enumerate(units) if not waits[unit]]
        heapq.heapify(ready)
        numbers = {unit: n for n, unit in enumerate(units)}
        found: list[Unit] = []
        while ready:
            _, _, unit = heapq.heappop(ready)
            found.append(unit)
            for user in users.get(unit, ()):
                waits[user].discard(unit)
                if not waits[user]:
                    heapq.heappush(ready, (self.place(user), numbers[user], user))
        if len(found) != len(units):
            missing = next(unit for unit in units if unit not in found)
            raise Problem(f"{missing} waits for itself", getattr(missing, "position", None), kind="executor")
        return found

    def place(self, unit: Unit) -> int:
        """Return the position of a unit in the text: the position of its last Enter for a frame."""
        if isinstance(unit, Frame):
            return max((self.places[e] for e in self.enters.get(unit, ())), default=0)
        return self.places[unit]

    def reads(self, unit: Unit) -> list[Hashable]:
        if isinstance(unit, Frame):
            return [v for e in self.enters.get(unit, ()) for v in self.frames.inputs[e]]
        found: list[Hashable] = list(self.frames.inputs[unit])
        return [*found, message_of(unit)] if is_receive(unit) else found

    def writes(self, unit: Unit) -> list[Hashable]:
        if isinstance(unit, Frame):
            exits = [o for o in self.inside.get(unit, ()) if isinstance(o.op, Exit)]
            return [*(v for o in exits for v in o.results), *(Atom("latched", o) for o in exits)]
        return [*unit.results, *([message_of(unit)] if is_send(unit) else [])]

    def atoms(self, unit: Unit, bit: Bit) -> list[Hashable]:
        """Return the values and atoms that the conditions of an item depend on."""
        found = [bit]
        if isinstance(unit, Operation) and isinstance(unit.op, Merge):
            found += [self.bit(v) for v in data_operands(unit)]
        if isinstance(unit, Frame):
            found += [self.all_live(e) for e in self.enters.get(unit, ())]
        return [need for b in found for atom in sorted(self.manager.support(b), key=self.manager.atoms.index)
                for need in needs(atom)]


def needs(atom: Atom) -> list[Hashable]:
    """Return the values that must be computed before an atom is known."""
    match atom.kind, atom.key:
        case "value", value:
            return [value]
        case "case", (value, int()):
            return [value]
        case "latched", _:
            return [atom]
        case _:
            return []


__all__ = ["FALSE", "TRUE", "Effect", "Item", "Liveness", "LoopFrame", "Message"]
