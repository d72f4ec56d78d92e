"""Random islands of several operations, in the frames of random executor graphs.

Each operation takes values of the island or of the frame around it, which may be dead; what it gives is read, yielded, or
neither. An island may write to the variable, wait for control, be dead in every run, and hold operations with regions: branches
and a graph of its own, which take values that only one branch reads. It may compute or hand on a predicate, and give it several
times.
"""
from __future__ import annotations

from tosaic.lowering.rewrite.functionalize.decision_diagrams import FALSE, Atom, Bit

from .random_executor import RESOURCE, Frame, Number, Writer, random_graph

I32, BOOL = "tensor<i32>", "tensor<i1>"
BINARY = ("tf.AddV2", "tf.Sub", "tf.Maximum", "tf.Mul")


class Islands:
    """Adds islands to the graph of a writer. `regions`: whether operations with regions are among theirs; `predicates`: whether
    some give predicates."""

    def __init__(self, writer: Writer, regions: bool, predicates: bool) -> None:
        self.w, self.random, self.regions, self.predicates = writer, writer.random, regions, predicates
        writer.adds_in_loops = self.random.random() < 0.5

    def __call__(self, frame: Frame) -> None:
        if self.predicates and self.random.random() < 0.4:
            self.copied_predicate(frame)
            return
        taken: list[Bit] = []
        lines: list[str] = []
        local: list[str] = []
        effects = False
        for _ in range(self.random.randint(0, 5)):
            kind = self.random.random()
            if kind < 0.15:
                local.append(self.constant(lines))
            elif kind < 0.35 and self.may_write:
                effects = True
                self.effect(lines, frame, local, taken)
            elif kind < 0.5 and self.regions:
                local.append(self.with_regions(lines, frame, local, taken))
            elif kind < 0.65:
                local.append(self.operation(lines, "tf.Identity", [self.operand(frame, local, taken)]))
            else:
                operands = [self.operand(frame, local, taken) for _ in range(2)]
                local.append(self.operation(lines, self.random.choice(BINARY), operands))
        yields = [self.operand(frame, local, taken) for _ in range(self.random.randint(0 if effects else 1, 3))]
        self.add(frame, lines, yields, taken, effects)

    @property
    def may_write(self) -> bool:
        """In the root frame, where writes are in order, or where their order does not matter."""
        return self.w.last_effect is not None or self.w.adds_in_loops

    # ---- operations --------------------------------------------------------------------------------------------------
    def operand(self, frame: Frame, local: list[str], taken: list[Bit]) -> str:
        if local and self.random.random() < 0.6:
            return self.random.choice(local)
        for _ in range(4):  # an island that can never live tells little
            value = self.random.choice(frame.numbers)
            if self.w.bits.conjunction(value.live, *taken) != FALSE or self.random.random() < 0.1:
                break
        taken.append(value.live)
        return value.name

    def operation(self, lines: list[str], name: str, operands: list[str]) -> str:
        result = self.w.name("o")
        lines.append(f'{result} = "{name}"({", ".join(operands)}) : ({", ".join([I32] * len(operands))}) -> {I32}')
        return result

    def constant(self, lines: list[str]) -> str:
        result = self.w.name("k")
        lines.append(f'{result} = "tf.Const"() <{{value = dense<{self.random.randint(-3, 3)}> : {I32}}}> : () -> {I32}')
        return result

    def effect(self, lines: list[str], frame: Frame, local: list[str], taken: list[Bit]) -> None:
        if not self.w.adds_in_loops and self.random.random() < 0.3:
            result = self.w.name("r")
            lines.append(f'{result} = "tf.ReadVariableOp"(%v) : ({RESOURCE}) -> {I32}')
            local.append(result)
            return
        add = self.w.adds_in_loops or self.random.random() < 0.5
        kind, value = "tf.AssignAddVariableOp" if add else "tf.AssignVariableOp", self.operand(frame, local, taken)
        lines.append(f'"{kind}"(%v, {value}) : ({RESOURCE}, {I32}) -> ()')

    def with_regions(self, lines: list[str], frame: Frame, local: list[str], taken: list[Bit]) -> str:
        """A branch, or a graph: not all that it takes is read when it runs."""
        first, second, third = (self.operand(frame, local, taken) for _ in range(3))
        result, test, inner = self.w.name("o"), self.w.name("b"), [self.w.name("n") for _ in range(8)]
        lines.append(f'{test} = "tf.Less"({first}, {second}) : ({I32}, {I32}) -> tensor<i1>')
        if self.random.random() < 0.5:
            lines.append(f'''{result} = "tf.IfRegion"({test}) ({{
      {inner[0]} = "tf.Neg"({second}) : ({I32}) -> {I32}
      "tf.Yield"({inner[0]}) : ({I32}) -> ()
    }}, {{
      {inner[1]} = "tf.AddV2"({third}, {first}) : ({I32}, {I32}) -> {I32}
      "tf.Yield"({inner[1]}) : ({I32}) -> ()
    }}) {{is_stateless = true}} : (tensor<i1>) -> {I32}''')
            return result
        f, t, c, d, ct, m, i, cm = inner
        lines.append(f'''{result} = tf_executor.graph {{
      {f}, {t}, {c} = tf_executor.Switch {first}, {test} : ({I32}, tensor<i1>) -> ({I32}, {I32}, !tf_executor.control)
      {d}, {ct} = tf_executor.island {{
        {d}u = "tf.Neg"({t}) : ({I32}) -> {I32}
        {d}v = "tf.Sub"({second}, {third}) : ({I32}, {I32}) -> {I32}
        tf_executor.yield {d}v : {I32}
      }}
      {m}, {i}, {cm} = tf_executor.Merge {f}, {d} : {I32}
      tf_executor.fetch {m} : {I32}
    }}''')
        return result

    def copied_predicate(self, frame: Frame) -> None:
        """A predicate of the frame or a new one, given under several names, beside a number that may be dead."""
        w, taken, lines = self.w, list[Bit](), list[str]()
        if frame.predicates and self.random.random() < 0.5:
            first, function, live = self.random.choice(frame.predicates)
            taken.append(live)
            same = [first]
        else:
            same = [w.name("b")]
            limit = self.constant(lines)
            lines.append(f'{same[0]} = "tf.Less"({self.operand(frame, [], taken)}, {limit}) : ({I32}, {I32}) -> {BOOL}')
            function = w.bits.atom(Atom("test", same[0]))
        for _ in range(self.random.randint(1, 3)):
            copy = w.name("b")
            lines.append(f'{copy} = "tf.Identity"({self.random.choice(same)}) : ({BOOL}) -> {BOOL}')
            same.append(copy)
        number = self.operation(lines, "tf.Neg", [self.operand(frame, [], taken)])
        yields = self.random.choices(same, k=self.random.randint(1, 3))
        place = self.random.randint(0, len(yields))
        names = self.lines_of(lines, [*yields[:place], number, *yields[place:]],
                              [*[BOOL] * place, I32, *[BOOL] * (len(yields) - place)], [])
        live = w.bits.conjunction(*taken)
        if live != FALSE:
            frame.predicates += [(name, function, live) for n, name in enumerate(names) if n not in (place, len(names) - 1)]
            frame.numbers.append(Number(names[place], live, names[-1]))

    # ---- the island --------------------------------------------------------------------------------------------------
    def add(self, frame: Frame, lines: list[str], yields: list[str], taken: list[Bit], effects: bool) -> None:
        w, waits = self.w, []
        for value in self.random.sample(frame.numbers, min(len(frame.numbers), self.random.choice((0, 0, 1, 2)))):
            if value.control:
                waits.append(value.control)
                taken.append(value.live)
        if not taken and w.anchor:  # in a loop: a constant needs a place in its frame
            waits.append(w.anchor)
        in_order = effects and bool(w.last_effect) and w.last_effect is not None
        waits += [str(w.last_effect)] if in_order else []
        *results, control = self.lines_of(lines, yields, [I32] * len(yields), waits)
        live = w.bits.conjunction(*taken)
        if live != FALSE:
            frame.numbers += [Number(name, live, control) for name in results]
        if effects and w.last_effect is not None:
            trigger = w.name("c")  # a dead write must not keep the next one from running
            w.lines.append(f"{trigger} = tf_executor.ControlTrigger {control}")
            w.last_effect = trigger

    def lines_of(self, lines: list[str], yields: list[str], types: list[str], waits: list[str]) -> list[str]:
        """Write an island of these lines; the names of its results, control last."""
        w = self.w
        results = [*(w.name() for _ in yields), w.name("c")]
        typed = f" {', '.join(yields)} : {', '.join(types)}" if yields else ""
        w.lines.append(f"{', '.join(results)} = tf_executor.island{f'({chr(44).join(waits)})' if waits else ''} {{")
        w.lines += [*(f"  {line}" for line in lines), f"  tf_executor.yield{typed}", "}"]
        return results


def random_islands(seed: int, size: int = 14, regions: bool = True, predicates: bool = False) -> str:
    """A random graph with islands of several operations, as `random_graph` gives it."""
    def prepare(writer: Writer) -> None:
        writer.islands = Islands(writer, regions, predicates)
    return random_graph(seed, size, prepare)
