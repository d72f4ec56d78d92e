"""Programs over variables without initial values, read and written in nested branches and loops, as a tree that several front
doors can say: `text_of` is TOSA as MLIR text, `python_of` a function for `tosaic.jit`, `tensorflow_of` TensorFlow's dialect
with `tf.If`.

Values are i32 scalars, conditions are inputs or compare the counter of a loop with a number. Faults are common: a read of what
no run has written, and in some programs an assertion, before and behind writes of other variables.
"""
from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

VARIABLES = ("u", "v", "w", "z")
CONDITIONS = ("c0", "c1", "c2", "c3")
DEEPEST = 3
OPERATORS = ("add", "sub", "maximum", "bitwise_xor")


@dataclass(frozen=True, slots=True)
class Apply:
    """result = operator(a, b)."""
    result: str
    operator: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class Read:
    result: str
    variable: str


@dataclass(frozen=True, slots=True)
class Write:
    variable: str
    value: str


@dataclass(frozen=True, slots=True)
class Below:
    """result = counter < limit, a condition."""
    result: str
    counter: str
    limit: int


@dataclass(frozen=True, slots=True)
class Assertion:
    condition: str
    message: str


@dataclass(frozen=True, slots=True)
class Body:
    """Statements, and the value that they end in."""
    statements: tuple[Statement, ...]
    value: str


@dataclass(frozen=True, slots=True)
class If:
    result: str
    condition: str
    then: Body
    otherwise: Body


@dataclass(frozen=True, slots=True)
class While:
    """`count` iterations at most, fewer where `condition` (an input) is false at first; `counter` and `carried` are what test
    and body are given, `result` the last value."""
    result: str
    count: int
    condition: str
    counter: str
    carried: str
    first: str
    test: tuple[Statement, ...]
    body: Body


Statement = Apply | Read | Write | Below | Assertion | If | While


@dataclass(frozen=True, slots=True)
class Program:
    initials: dict[str, int | None]
    body: Body


class Generator:
    """Random choices for one program."""

    def __init__(self, seed: int, assertions: bool = True) -> None:
        self.rng = random.Random(seed)
        self.assertions = assertions and self.rng.random() < 0.5
        self.count = 0
        self.assigned: list[str] = []

    def program(self) -> Program:
        initials = {v: self.rng.randint(-9, 9) if self.rng.random() < 0.2 else None for v in VARIABLES}
        return Program(initials, self.body(["x"], list(CONDITIONS), 0))

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def body(self, values: list[str], conditions: list[str], depth: int, size: int = 6) -> Body:
        values, conditions = list(values), list(conditions)
        statements = tuple(self.statements(values, conditions, depth, self.rng.randint(1, size)))
        return Body(statements, self.value(values))

    def statements(self, values: list[str], conditions: list[str], depth: int, size: int) -> Iterator[Statement]:
        """Some statements, whose results join `values`."""
        for _ in range(size):
            statement = self.statement(values, conditions, depth)
            if isinstance(statement, Apply | Read | If | While):
                values.append(statement.result)
            yield statement

    def statement(self, values: list[str], conditions: list[str], depth: int) -> Statement:
        match self.rng.choices(("read", "write", "apply", "if", "while", "assert"),
                               (3, 4, 1, 1.4 * (DEEPEST - depth), 0.9 * (DEEPEST - depth), 0.7 * self.assertions))[0]:
            case "read":
                usual = self.assigned if self.assigned and self.rng.random() < 0.8 else VARIABLES
                return Read(self.name("r"), self.rng.choice(usual))
            case "write":
                self.assigned.append(self.rng.choice(VARIABLES))
                return Write(self.assigned[-1], self.value(values))
            case "apply":
                return Apply(self.name("a"), self.rng.choice(OPERATORS), self.value(values), self.value(values))
            case "assert":
                condition = self.rng.choice(conditions)
                return Assertion(condition, f"check {self.name('')} of {condition}")
            case "if":
                return If(self.name("i"), self.rng.choice(conditions), self.body(values, conditions, depth + 1, 3),
                          self.body(values, conditions, depth + 1, 2))
            case _:
                return self.loop(values, conditions, depth)

    def loop(self, values: list[str], conditions: list[str], depth: int) -> While:
        result, counter, carried = self.name("l"), self.name("n"), self.name("k")
        inside = [*values, carried]
        test = tuple(self.statements(list(inside), conditions, DEEPEST, self.rng.choice((0, 0, 0, 1))))
        below = Below(self.name("b"), counter, self.rng.randint(1, 2))
        body = self.body(inside, [*conditions, below.result], depth + 1, 3)
        return While(result, self.rng.randint(0, 3), self.rng.choice(CONDITIONS), counter, carried, self.value(values), test,
                     Body((below, *body.statements), body.value))

    def value(self, values: list[str]) -> str:
        return values[-1] if self.rng.random() < 0.4 else self.rng.choice(values)


def generated(seed: int, assertions: bool = True) -> Program:
    return Generator(seed, assertions).program()


# ---- TOSA text -------------------------------------------------------------------------------------------------------
I32, I1 = "tensor<i32>", "tensor<i1>"


class Text:
    """Writes a program as TOSA; constants are numbered."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

    def put(self, line: str) -> None:
        self.lines.append(line)

    def constant(self, number: int) -> str:
        self.count += 1
        self.put(f'%q{self.count} = "tosa.const"() {{values = dense<{number}> : {I32}}} : () -> {I32}')
        return f"%q{self.count}"

    def statements(self, statements: tuple[Statement, ...]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        match statement:
            case Apply(result, operator, a, b):
                self.put(f"%{result} = tosa.{operator} %{a}, %{b} : ({I32}, {I32}) -> {I32}")
            case Read(result, variable):
                self.put(f"%{result} = tosa.variable_read @{variable} : {I32}")
            case Write(variable, value):
                self.put(f"tosa.variable_write @{variable}, %{value} : {I32}")
            case Below(result, counter, limit):
                self.put(f"%{result} = tosa.greater {self.constant(limit)}, %{counter} : ({I32}, {I32}) -> {I1}")
            case Assertion(condition, message):
                self.put(f'"tosaic.assert"(%{condition}) <{{message = "{message}"}}> : ({I1}) -> ()')
            case If(result, condition, then, otherwise):
                self.put(f"%{result} = tosa.cond_if %{condition} : {I1} -> {I32} {{")
                self.region(then)
                self.put("} else {")
                self.region(otherwise)
                self.put("}")
            case While():
                self.loop(statement)

    def region(self, body: Body) -> None:
        self.statements(body.statements)
        self.put(f"tosa.yield %{body.value} : {I32}")

    def loop(self, s: While) -> None:
        zero = self.constant(0)
        self.put(f"%{s.result}_n, %{s.result} = tosa.while_loop (%{s.counter}_t = {zero}, %{s.carried}_t = %{s.first}) : "
                 f"({I32}, {I32}) -> ({I32}, {I32}) {{")
        names = {s.counter: f"{s.counter}_t", s.carried: f"{s.carried}_t"}
        self.statements(tuple(renamed(inner, names) for inner in s.test))
        self.put(f"%{s.result}_m = tosa.greater {self.constant(s.count)}, %{s.counter}_t : ({I32}, {I32}) -> {I1}")
        self.put(f"%{s.result}_g = tosa.logical_and %{s.result}_m, %{s.condition} : ({I1}, {I1}) -> {I1}")
        self.put(f"tosa.yield %{s.result}_g : {I1}")
        self.put("} do {")
        self.put(f"^bb0(%{s.counter}: {I32}, %{s.carried}: {I32}):")
        self.statements(s.body.statements)
        self.put(f"%{s.result}_o = tosa.add %{s.counter}, {self.constant(1)} : ({I32}, {I32}) -> {I32}")
        self.put(f"tosa.yield %{s.result}_o, %{s.body.value} : {I32}, {I32}")
        self.put("}")


def renamed(statement: Statement, names: dict[str, str]) -> Statement:
    """A statement of a test (which holds no regions) with other names for what it takes."""
    match statement:
        case Apply(result, operator, a, b):
            return Apply(result, operator, names.get(a, a), names.get(b, b))
        case Write(variable, value):
            return Write(variable, names.get(value, value))
        case _:
            return statement


def text_of(program: Program, shows_variables: bool = False) -> str:
    """The program as a module of TOSA text; if it `shows_variables`, their last values are results too."""
    text = Text()
    for variable, initial in program.initials.items():
        text.put(f"tosa.variable @{variable} {'' if initial is None else f'= dense<{initial}> '}: {I32}")
    shown = list(program.initials) if shows_variables else []
    arguments = ", ".join([f"%x: {I32}", *(f"%{c}: {I1}" for c in CONDITIONS)])
    text.put(f"func.func @main({arguments}) -> ({', '.join([I32] * (1 + len(shown)))}) {{")
    text.statements(program.body.statements)
    text.put(f"%result = tosa.add %{program.body.value}, {text.constant(1)} : ({I32}, {I32}) -> {I32}")
    text.statements(tuple(Read(f"end_{name}", name) for name in shown))
    results = ", ".join(["%result", *(f"%end_{name}" for name in shown)])
    text.put(f"return {results} : {', '.join([I32] * (1 + len(shown)))}")
    text.put("}")
    return "\n".join(text.lines) + "\n"
