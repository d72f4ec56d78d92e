"""Programs of `unwritten` for other front doors: a Python function for `tosaic.jit`, and TensorFlow's dialect, where branches
and loops name functions (`tf.If`, `tf.While`) that are given all that is visible where they stand."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import tosaic
from tosaic import ops

from .unwritten import (
    CONDITIONS,
    I1,
    I32,
    VARIABLES,
    Apply,
    Assertion,
    Below,
    Body,
    If,
    Program,
    Read,
    Statement,
    While,
    Write,
)

IN_PYTHON = {"add": "{} + {}", "sub": "{} - {}", "maximum": "ops.maximum({}, {})", "bitwise_xor": "{} ^ {}"}
IN_TENSORFLOW = {"add": "tf.AddV2", "sub": "tf.Sub", "maximum": "tf.Maximum", "bitwise_xor": "tf.BitwiseXor"}


# ---- Python ----------------------------------------------------------------------------------------------------------
def python_of(program: Program, prefix: str) -> Any:
    """A function for `tosaic.jit`; its variables are named `prefix` and their own name."""
    lines = [f"def main(x, {', '.join(CONDITIONS)}):", *(f" {line}" for line in in_python(plus_one(program.body)))]
    names: dict[str, Any] = {"tosaic": tosaic, "ops": ops}
    for name, initial in program.initials.items():
        names[f"variable_{name}"] = tosaic.Variable(prefix + name, initial, (), "int32")
    exec("\n".join(lines), names)
    return names["main"]


def plus_one(body: Body) -> Body:
    """The result of a program is one more than its body's value."""
    return Body(body.statements, f"{body.value} + 1")


def in_python(body: Body) -> Iterator[str]:
    for statement in body.statements:
        yield from python_lines(statement)
    yield f"return {body.value}"


def defined(heading: str, lines: Iterator[str]) -> Iterator[str]:
    yield f"def {heading}:"
    yield from (f" {line}" for line in lines)


def python_lines(statement: Statement) -> Iterator[str]:
    match statement:
        case Apply(result, operator, a, b):
            yield f"{result} = {IN_PYTHON[operator].format(a, b)}"
        case Read(result, variable):
            yield f"{result} = variable_{variable}.read()"
        case Write(variable, value):
            yield f"variable_{variable}.write({value})"
        case Below(result, counter, limit):
            yield f"{result} = {counter} < {limit}"
        case Assertion(condition, message):
            yield f"tosaic.check({condition}, {message!r})"
        case If(result, condition, then, otherwise):
            yield from defined(f"then_{result}()", in_python(then))
            yield from defined(f"otherwise_{result}()", in_python(otherwise))
            yield f"{result} = tosaic.cond({condition}, then_{result}, otherwise_{result})"
        case While(result, count, condition, counter, carried, first, test, body):
            last = f"return ({counter} < {count}) & {condition}"
            yield from defined(f"test_{result}({counter}, {carried})",
                               iter([*(line for s in test for line in python_lines(s)), last]))
            inner = list(in_python(body))
            inner[-1] = f"return {counter} + 1, {body.value}"
            yield from defined(f"body_{result}({counter}, {carried})", iter(inner))
            yield f"_, {result} = tosaic.while_loop(test_{result}, body_{result}, 0, {first})"


# ---- TensorFlow ------------------------------------------------------------------------------------------------------
HANDLE = "tensor<!tf_type.resource<tensor<i32>>>"


def tensorflow_of(program: Program) -> str:
    """The program as a module of TensorFlow's dialect with the entry @main; it has no assertions and no initial values."""
    writer = TensorFlowText()
    visible = {"x": I32} | dict.fromkeys(CONDITIONS, I1)
    line, one = writer.constant(1)
    last = f'%result = "tf.AddV2"(%{program.body.value}, %{one}) : ({I32}, {I32}) -> {I32}'
    writer.function("main", visible, program.body.statements, ["result"], public=True, ending=(line, last))
    return "module {\n" + "\n".join(writer.functions) + "\n}\n"


def for_tensorflow(program: Program) -> Program:
    """The program without initial values, in which what a read gives is always used, because TensorFlow runs no other one."""
    return Program(dict.fromkeys(program.initials), all_used(program.body))


def all_used(body: Body) -> Body:
    """The body with the sum of all its results as its value; tests of loops lose their statements."""
    statements: list[Statement] = []
    total = "x"
    for statement in body.statements:
        match statement:
            case If(result, condition, then, otherwise):
                statements.append(If(result, condition, all_used(then), all_used(otherwise)))
            case While():
                statements.append(replace(statement, test=(), body=all_used(statement.body)))
            case _:
                statements.append(statement)
        if isinstance(statement, Read | If | While):
            statements.append(Apply(f"{statement.result}_s", "add", total, statement.result))
            total = f"{statement.result}_s"
    return Body((*statements, Apply(f"{total}_{body.value}", "add", total, body.value)), f"{total}_{body.value}")


class TensorFlowText:
    """Writes functions, those of branches and loops too."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self.count = 0

    def function(self, name: str, visible: dict[str, str], statements: tuple[Statement, ...], results: list[str],
                 public: bool = False, ending: tuple[str, ...] = ()) -> None:
        """One that takes `visible`, runs `statements` and then the lines `ending`, and returns `results`."""
        types = dict(visible)
        lines = [f'%handle_{v} = "tf.VarHandleOp"() <{{container = "", shared_name = "{v}"}}> : () -> {HANDLE}'
                 for v in VARIABLES]
        for statement in statements:
            lines += self.lines(statement, types)
        types |= dict.fromkeys((r for r in results if r not in types), I1 if name.startswith("test_") else I32)
        given = ", ".join(types[r] for r in results)
        head = f"func.func {'' if public else 'private '}@{name}({typed(visible)}) -> ({given}) {{"
        last = f"return {names(results)} : {given}"
        self.functions.append("\n ".join([head, *lines, *ending, last]) + "\n}")

    def constant(self, number: int) -> tuple[str, str]:
        """The line of a constant, and its name."""
        self.count += 1
        name = f"q{self.count}"
        return f'%{name} = "tf.Const"() <{{value = dense<{number}> : {I32}}}> : () -> {I32}', name

    def lines(self, statement: Statement, types: dict[str, str]) -> list[str]:
        match statement:
            case Apply(result, operator, a, b):
                types[result] = I32
                return [f'%{result} = "{IN_TENSORFLOW[operator]}"(%{a}, %{b}) : ({I32}, {I32}) -> {I32}']
            case Read(result, variable):
                types[result] = I32
                return [f'%{result} = "tf.ReadVariableOp"(%handle_{variable}) : ({HANDLE}) -> {I32}']
            case Write(variable, value):
                return [f'"tf.AssignVariableOp"(%handle_{variable}, %{value}) : ({HANDLE}, {I32}) -> ()']
            case Below(result, counter, limit):
                types[result] = I1
                line, name = self.constant(limit)
                return [line, f'%{result} = "tf.Less"(%{counter}, %{name}) : ({I32}, {I32}) -> {I1}']
            case If():
                return self.branch(statement, types)
            case While():
                return self.loop(statement, types)
        raise AssertionError(statement)

    def branch(self, s: If, types: dict[str, str]) -> list[str]:
        visible = dict(types)
        for name, body in (("then", s.then), ("otherwise", s.otherwise)):
            self.function(f"{name}_{s.result}", visible, body.statements, [body.value])
        types[s.result] = I32
        return [f'%{s.result} = "tf.If"({names([s.condition, *visible])}) <{{else_branch = @otherwise_{s.result}, '
                f'is_stateless = false, then_branch = @then_{s.result}}}> : '
                f'({", ".join([I1, *visible.values()])}) -> {I32}']

    def loop(self, s: While, types: dict[str, str]) -> list[str]:
        carried = {s.counter: I32, s.carried: I32} | types
        limit, most = self.constant(s.count)
        test = (limit, f'%{s.result}_m = "tf.Less"(%{s.counter}, %{most}) : ({I32}, {I32}) -> {I1}',
                f'%{s.result}_g = "tf.LogicalAnd"(%{s.result}_m, %{s.condition}) : ({I1}, {I1}) -> {I1}')
        self.function(f"test_{s.result}", carried, s.test, [f"{s.result}_g"], ending=test)
        one, step = self.constant(1)
        following = (one, f'%{s.result}_o = "tf.AddV2"(%{s.counter}, %{step}) : ({I32}, {I32}) -> {I32}')
        self.function(f"body_{s.result}", carried, s.body.statements, [f"{s.result}_o", s.body.value, *types], ending=following)
        zero, start = self.constant(0)
        all_types = ", ".join(carried.values())
        line = (f'%{s.result}_r:{len(carried)} = "tf.While"({names([start, s.first, *types])}) <{{body = @body_{s.result}, '
                f'cond = @test_{s.result}, is_stateless = false}}> : ({all_types}) -> ({all_types})')
        types[s.result] = I32
        return [zero, line, f'%{s.result} = "tf.Identity"(%{s.result}_r#1) : ({I32}) -> {I32}']


def typed(visible: dict[str, str]) -> str:
    return ", ".join(f"%{name}: {type}" for name, type in visible.items())


def names(values: list[str]) -> str:
    return ", ".join(f"%{value}" for value in values)
