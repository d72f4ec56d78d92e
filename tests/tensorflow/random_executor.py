"""Random executor graphs, well-formed and without races: conditions in conditions, Merges that no pattern of TensorFlow's has,
loops that test before, in and behind their body, that dead values enter, loops in loops, writes under conditions, islands of
several operations of which some take values that may be dead and give nothing that is read (`random_islands.py`).

The generator knows of each value when it is live, as a function of the predicates, so that a Merge never has two live inputs
and what is fetched is always live.
"""
from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tosaic.lowering.rewrite.functionalize.decision_diagrams import FALSE, TRUE, Atom, Bit, Bits

RESOURCE = "tensor<!tf_type.resource<tensor<i32>>>"


@dataclass(frozen=True)
class Number:
    """A value of i32 and when it is live; `controls` go with it."""
    name: str
    live: Bit
    control: str = ""


@dataclass
class Frame:
    """What may be used in a frame."""
    numbers: list[Number] = field(default_factory=list)
    predicates: list[tuple[str, Bit, Bit]] = field(default_factory=list)
    """Name, the function that it is, and when it is live."""


class Writer:
    """One random graph."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.bits = Bits()
        self.lines: list[str] = []
        self.count = 0
        self.last_effect: str | None = ""
        """The control result of the last write; None where nothing may be written."""
        self.islands: Callable[[Frame], None] | None = None
        """Adds an island of several operations to a frame, where the graph has them."""
        self.adds_in_loops = False
        """True if loops add to the variable, which nothing else changes or reads then: the order does not matter."""
        self.anchor = ""
        """What keeps a constant in the frame of a loop: a control result that is live in each iteration."""

    def name(self, prefix: str = "v") -> str:
        self.count += 1
        return f"%{prefix}{self.count}"

    # ---- operations --------------------------------------------------------------------------------------------------
    def island(self, op: str, operands: list[Number], results: str = "tensor<i32>", properties: str = "",
               controls: Sequence[str] = ()) -> Number:
        out, control = self.name(), self.name("c")
        arguments = ", ".join(n.name for n in operands)
        types = ", ".join("tensor<i32>" for _ in operands)
        waits = f"({', '.join(controls)})" if controls else ""
        self.lines.append(f'{out}, {control} = tf_executor.island{waits} wraps "{op}"({arguments}) {properties} : '
                          f"({types}) -> {results}")
        return Number(out, self.bits.conjunction(*(n.live for n in operands)), control)

    def constant(self, value: int, control: Number | None = None) -> Number:
        controls = [control.control] if control and control.control else [self.anchor] if self.anchor else []
        found = self.island("tf.Const", [], properties=f"<{{value = dense<{value}> : tensor<i32>}}>", controls=controls)
        return Number(found.name, control.live if control and control.control else TRUE, found.control)

    def arithmetic(self, frame: Frame) -> Number:
        first = self.random.choice(frame.numbers)
        others = [n for n in frame.numbers if self.bits.conjunction(n.live, first.live) != FALSE]
        second = self.random.choice(others) if self.random.random() < 0.6 and others else self.constant(
            self.random.randint(-3, 3), first if self.random.random() < 0.5 else None)
        return self.island(self.random.choice(["tf.AddV2", "tf.Sub", "tf.Maximum", "tf.Mul"]), [first, second])

    def predicate(self, frame: Frame) -> tuple[str, Bit, Bit]:
        """One that is there, or a new one."""
        if frame.predicates and self.random.random() < 0.7:
            return self.random.choice(frame.predicates)
        left = self.random.choice(frame.numbers)
        limit = self.constant(self.random.randint(-2, 4))
        found = self.island("tf.Less", [left, limit], "tensor<i1>")
        made = found.name, self.bits.atom(Atom("test", found.name)), found.live
        frame.predicates.append(made)
        return made

    def switch(self, value: Number, predicate: tuple[str, Bit, Bit]) -> tuple[Number, Number]:
        name, p, live = predicate
        false, true, control = self.name("f"), self.name("t"), self.name("c")
        self.lines.append(f"{false}, {true}, {control} = tf_executor.Switch {value.name}, {name} : "
                          "(tensor<i32>, tensor<i1>) -> (tensor<i32>, tensor<i32>, !tf_executor.control)")
        both = self.bits.conjunction(value.live, live)
        return (Number(false, self.bits.conjunction(both, self.bits.negation(p))), Number(true, self.bits.conjunction(both, p)))

    def merge(self, values: list[Number], live: Bit | None = None) -> tuple[Number, Number]:
        out, index, control = self.name("m"), self.name("i"), self.name("c")
        self.lines.append(f"{out}, {index}, {control} = tf_executor.Merge {', '.join(v.name for v in values)} : tensor<i32>")
        bit = self.bits.disjunction(*(v.live for v in values)) if live is None else live
        return Number(out, bit, control), Number(index, bit)

    # ---- structure ---------------------------------------------------------------------------------------------------
    def block(self, frame: Frame, size: int, depth: int) -> None:
        """Random operations in a frame."""
        for _ in range(size):
            if self.islands is not None and self.random.random() < 0.4:
                self.islands(frame)
                continue
            kind = self.random.random()
            if kind < 0.35:
                frame.numbers.append(self.arithmetic(frame))
            elif kind < 0.6:
                value, predicate = self.random.choice(frame.numbers), self.predicate(frame)
                if self.bits.conjunction(value.live, predicate[2]) != FALSE:
                    frame.numbers += [n for n in self.switch(value, predicate) if n.live != FALSE]
            elif kind < 0.8:
                self.join(frame)
            elif kind < 0.9:
                self.write(frame)
            elif depth and self.lines:
                frame.numbers += self.loop(frame, depth - 1)

    def join(self, frame: Frame) -> None:
        """A Merge of values of which no two are live at once."""
        chosen: list[Number] = []
        live = FALSE
        for value in self.random.sample(frame.numbers, len(frame.numbers)):
            if value.live != FALSE and value.live != TRUE and self.bits.conjunction(live, value.live) == FALSE:
                chosen.append(value)
                live = self.bits.disjunction(live, value.live)
            if len(chosen) == 3:
                break
        if len(chosen) > 1:
            merged, index = self.merge(chosen)
            frame.numbers += [merged, index] if self.random.random() < 0.3 else [merged]

    def write(self, frame: Frame) -> None:
        """Add to the variable, after every write before."""
        if self.last_effect is None:
            return
        value = self.random.choice(frame.numbers)
        control = self.name("c")
        waits = f"({self.last_effect})" if self.last_effect else ""
        self.lines.append(f'{control} = tf_executor.island{waits} wraps "tf.AssignAddVariableOp"(%v, {value.name}) '
                          f": ({RESOURCE}, tensor<i32>) -> ()")
        trigger = self.name("c")  # a dead write must not keep the next one from running
        self.lines.append(f"{trigger} = tf_executor.ControlTrigger {control}")
        self.last_effect = trigger

    def loop(self, outer: Frame, depth: int) -> list[Number]:
        """A frame of a few iterations: a counter and some other values."""
        name, live_values = f"frame{self.count}", [n for n in outer.numbers if n.live != FALSE]
        first = self.random.choice(live_values)
        entered = [first, *(n for n in live_values if n is not first and n.live == first.live)][:self.random.randint(1, 3)]
        start = self.constant(self.random.randint(0, 2))
        gated = self.island("tf.AddV2", [start, self.island("tf.Mul", [first, self.constant(0)])])
        frame, merges, tokens = Frame(), [], []
        fading = [False, *(self.random.random() < 0.3 for _ in entered)]
        for number, value in enumerate((gated, *entered)):
            enter, control = self.name("e"), self.name("c")
            self.lines.append(f'{enter}, {control} = tf_executor.Enter {value.name} frame "{name}" : tensor<i32>')
            source, token, control = self.name("s"), self.name("k"), self.name("c")
            self.lines.append(f"{source}, {token}, {control} = tf_executor.NextIteration.Source : tensor<i32>")
            live = self.bits.atom(Atom("still", (name, number))) if fading[number] else TRUE
            merged, index = self.merge([Number(enter, TRUE), Number(source, TRUE)], live)
            frame.numbers += [merged] + ([index] if self.random.random() < 0.2 else [])
            merges.append(merged)
            tokens.append(token)
        kept, self.last_effect = self.last_effect, None  # writes stay out of loops
        anchor, self.anchor = self.anchor, merges[0].control
        counter = merges[0]
        if self.random.random() < 0.5:  # work before the test
            self.block(frame, self.random.randint(1, 4), depth)
            if self.random.random() < 0.7:  # else each iteration gives what it was given, behind the last one, too
                counter = self.island("tf.AddV2", [counter, self.constant(1)])
        limit = self.constant(self.random.randint(1, 4))
        test = self.island("tf.Less", [counter, limit], "tensor<i1>")
        condition, control = self.name("l"), self.name("c")
        self.lines.append(f"{condition}, {control} = tf_executor.LoopCond {test.name} : (tensor<i1>) -> (tensor<i1>, "
                          "!tf_executor.control)")
        go = condition, self.bits.atom(Atom("test", test.name)), TRUE
        always = [n for n in frame.numbers if n.live == TRUE]
        carried = [counter, *(m if m.live != TRUE else self.random.choice([m, self.random.choice(always)])
                              for m in merges[1:])]
        exits, inside = [], Frame(predicates=[])
        for value in carried:
            false, true = self.switch(value, go)
            exits.append(false)
            inside.numbers.append(Number(true.name, self.bits.restrict(true.live, go[1])))
        self.block(inside, self.random.randint(0, 5), depth)
        always = [n for n in inside.numbers if n.live == TRUE]
        following = [self.island("tf.AddV2", [inside.numbers[0], self.constant(1)]),
                     *(self.random.choice(inside.numbers if fades else always) for fades in fading[1:])]
        for token, value in zip(tokens, following):
            self.lines.append(f"tf_executor.NextIteration.Sink[{token}] {value.name} : tensor<i32>")
        self.last_effect, self.anchor = kept, anchor
        results = []
        for value, fades in zip(exits, fading):
            if fades:  # in TensorFlow what never arrives is not even dead: nothing may wait for it
                continue
            last = self.handed_on(value.name) if self.adds_in_loops and self.random.random() < 0.3 else value.name
            out, control = self.name("x"), self.name("c")
            self.lines.append(f"{out}, {control} = tf_executor.Exit {last} : tensor<i32>")
            results.append(Number(out, first.live))
        return results

    def handed_on(self, value: str) -> str:
        """The same value, from an island that adds it to the variable."""
        out, copy, control = self.name(), self.name("o"), self.name("c")
        self.lines += [f"{out}, {control} = tf_executor.island {{",
                       f'  "tf.AssignAddVariableOp"(%v, {value}) : ({RESOURCE}, tensor<i32>) -> ()',
                       f'  {copy} = "tf.Identity"({value}) : (tensor<i32>) -> tensor<i32>',
                       f"  tf_executor.yield {copy} : tensor<i32>", "}"]
        return out


def random_graph(seed: int, size: int = 14, prepare: Callable[[Writer], None] | None = None) -> str:
    """A module whose @main takes %x, %y (i32), %p, %q (i1) and a variable, and gives every value that is always live.
    `prepare` says more about what the graph has."""
    w = Writer(seed)
    if prepare is not None:
        prepare(w)
    frame = Frame([Number("%x", TRUE), Number("%y", TRUE)],
                  [(f"%{p}", w.bits.atom(Atom("argument", p)), TRUE) for p in ("p", "q")])
    w.block(frame, size, 2)
    live = [n.name for n in frame.numbers if n.live == TRUE][-6:]
    fetched = ", ".join([*live, *([w.last_effect] if w.last_effect else [])])
    types = ", ".join("tensor<i32>" for _ in live)
    all_types = types + (", !tf_executor.control" if w.last_effect else "")
    body = "\n    ".join(w.lines)
    results = ", ".join(f"%g#{i}" for i in range(len(live))) if len(live) > 1 else "%g"
    return f"""func.func @main(%x: tensor<i32>, %y: tensor<i32>, %p: tensor<i1>, %q: tensor<i1>, %v: {RESOURCE}) -> ({types}) {{
  %g{f':{len(live)}' if len(live) > 1 else ''} = tf_executor.graph {{
    {body}
    tf_executor.fetch {fetched} : {all_types}
  }}
  return {results} : {types}
}}"""
