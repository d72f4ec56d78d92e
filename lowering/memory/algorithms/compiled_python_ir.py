"""The planner's inner loops as LLVM IR: from the part of Python that `compiled` describes, by its syntax tree."""
from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import textwrap
from collections.abc import Callable, Sequence

BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
          ast.LShift: "shl", ast.RShift: "ashr", ast.FloorDiv: "sdiv", ast.Mod: "srem"}
COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge"}

Function = Callable[..., int]


def module_text(entry: Function, record: type) -> str:
    """LLVM IR of `i32 @entry(ptr %frame)`: the frame holds the addresses of the record's arrays, then the integers."""
    fields = [f.name for f in dataclasses.fields(record)]
    functions = called_from(entry)
    numbers = range(len(inspect.signature(entry).parameters) - 1)
    lines = ["define i32 @entry(ptr %frame) {"]
    for i in numbers:
        lines += [f" %a{i} = getelementptr i64, ptr %frame, i64 {len(fields) + i}", f" %n{i} = load i64, ptr %a{i}"]
    args = ", ".join(["ptr %frame", *(f"i64 %n{i}" for i in numbers)])
    lines += [f" %r = call i64 @{entry.__name__}({args})", " %t = trunc i64 %r to i32", " ret i32 %t", "}"]
    return "\n".join([*(line for f in functions for line in Emitter(f, fields).lines()), *lines, "!0 = !{}", ""])


def called_from(entry: Function) -> list[Function]:
    """`entry` and the functions that it calls, directly or through others."""
    found = [entry]
    for function in found:
        for node in ast.walk(definition(function)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                called = function.__globals__.get(node.func.id)
                if inspect.isfunction(called) and called not in found:
                    found.append(called)
    return found


@functools.cache
def definition(function: Function) -> ast.FunctionDef:
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


class Emitter:
    """Writes one function. A Python variable is a slot on the stack, which LLVM turns into registers."""

    def __init__(self, function: Function, fields: Sequence[str]) -> None:
        self.node, self.globals, self.fields = definition(function), function.__globals__, fields
        self.record, *self.numbers = (a.arg for a in self.node.args.args)
        self.out: list[str] = []
        self.names = itertools.count()
        self.slots: list[str] = []
        self.loops: list[tuple[str, str]] = []

    def lines(self) -> list[str]:
        """The definition."""
        for statement in self.node.body:
            self.statement(statement)
        stored = [n.id for n in ast.walk(self.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        params = ", ".join(["ptr %rec", *(f"i64 %p{i}" for i in range(len(self.numbers)))])
        variables = (f"%v.{name}" for name in dict.fromkeys([*self.numbers, *stored]))
        slots = [f" {slot} = alloca i64" for slot in (*variables, *self.slots)]
        stores = [f" store i64 %p{i}, ptr %v.{name}" for i, name in enumerate(self.numbers)]
        return [f"define internal i64 @{self.node.name}({params}) alwaysinline {{", *slots, *stores, *self.out,
                " ret i64 0", "}"]

    # ---- instructions ------------------------------------------------------------------------------------------------
    def put(self, text: str) -> str:
        name = f"%t{next(self.names)}"
        self.out.append(f" {name} = {text}")
        return name

    def slot(self) -> str:
        """A variable without a name in Python."""
        self.slots.append(f"%s{len(self.slots)}")
        return self.slots[-1]

    def label(self) -> str:
        return f"b{next(self.names)}"

    def go(self, label: str) -> None:
        self.out.append(f" br label %{label}")

    def begin(self, label: str) -> None:
        self.out.append(f"{label}:")

    # ---- statements --------------------------------------------------------------------------------------------------
    def block(self, statements: Sequence[ast.stmt], then: str) -> None:
        for statement in statements:
            self.statement(statement)
        self.go(then)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(ast.Constant()):
                pass
            case ast.Expr(ast.Call() as call):
                self.value(call)
            case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)):
                for target, value in zip(targets, [self.value(v) for v in values], strict=True):
                    self.store(target, value)
            case ast.Assign([target], value):
                self.store(target, self.value(value))
            case ast.AugAssign(target, op, value):
                old = ast.copy_location(ast.BinOp(loaded(target), op, value), node)
                self.store(target, self.value(old))
            case ast.If(test, body, orelse):
                self.if_(test, body, orelse)
            case ast.While(test, body, []):
                self.while_(test, body)
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), args), body, []):
                self.for_(name, args, body)
            case ast.Break() | ast.Continue():
                self.go(self.loops[-1][isinstance(node, ast.Break)])
                self.begin(self.label())
            case ast.Return(ast.expr() as value):
                self.out.append(f" ret i64 {self.value(value)}")
                self.begin(self.label())
            case _:
                raise unknown(node)

    def store(self, target: ast.expr, value: str) -> None:
        match target:
            case ast.Name(name):
                self.out.append(f" store i64 {value}, ptr %v.{name}")
            case ast.Subscript():
                self.out.append(f" store i64 {value}, ptr {self.address(target)}")
            case _:
                raise unknown(target)

    def if_(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        then, other, done = self.label(), self.label(), self.label()
        self.branch(test, then, other if orelse else done)
        self.begin(then)
        self.block(body, done)
        if orelse:
            self.begin(other)
            self.block(orelse, done)
        self.begin(done)

    def while_(self, test: ast.expr, body: list[ast.stmt]) -> None:
        head, inside, done = self.label(), self.label(), self.label()
        self.go(head)
        self.begin(head)
        self.branch(test, inside, done)
        self.begin(inside)
        self.loops.append((head, done))
        self.block(body, head)
        self.loops.pop()
        self.begin(done)

    def for_(self, name: str, args: list[ast.expr], body: list[ast.stmt]) -> None:
        first, last = [self.value(a) for a in ([ast.Constant(0), *args] if len(args) == 1 else args)]
        count = self.slot()
        head, inside, step, done = self.label(), self.label(), self.label(), self.label()
        self.out += [f" store i64 {first}, ptr {count}", f" br label %{head}", f"{head}:"]
        now = self.put(f"load i64, ptr {count}")
        self.out += [f" br i1 {self.put(f'icmp slt i64 {now}, {last}')}, label %{inside}, label %{done}", f"{inside}:",
                     f" store i64 {now}, ptr %v.{name}"]
        self.loops.append((step, done))
        self.block(body, step)
        self.loops.pop()
        self.begin(step)
        self.out += [f" store i64 {self.put(f'add i64 {now}, 1')}, ptr {count}", f" br label %{head}", f"{done}:"]

    # ---- expressions -------------------------------------------------------------------------------------------------
    def value(self, node: ast.expr) -> str:
        """The name of an i64."""
        match node:
            case ast.Constant(int(number)):
                return str(int(number))
            case ast.Name(name):
                return self.variable(name)
            case ast.Subscript():
                return self.put(f"load i64, ptr {self.address(node)}")
            case ast.UnaryOp(ast.USub(), operand):
                return self.put(f"sub i64 0, {self.value(operand)}")
            case ast.BinOp(left, op, right) if type(op) in BINARY:
                return self.put(f"{BINARY[type(op)]} i64 {self.value(left)}, {self.value(right)}")
            case ast.IfExp(test, body, orelse):
                return self.choice(test, body, orelse)
            case ast.Call(ast.Name("min" | "max" as which), [left, right]):
                a, b = self.value(left), self.value(right)
                less = self.put(f"icmp {'slt' if which == 'min' else 'sgt'} i64 {a}, {b}")
                return self.put(f"select i1 {less}, i64 {a}, i64 {b}")
            case ast.Call(ast.Name(name), [ast.Name(self.record), *args]):
                values = ", ".join(["ptr %rec", *(f"i64 {self.value(a)}" for a in args)])
                return self.put(f"call i64 @{name}({values})")
        raise unknown(node)

    def choice(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> str:
        result, then, other, done = self.slot(), self.label(), self.label(), self.label()
        self.branch(test, then, other)
        for label, value in ((then, body), (other, orelse)):
            self.begin(label)
            self.out += [f" store i64 {self.value(value)}, ptr {result}", f" br label %{done}"]
        self.begin(done)
        return self.put(f"load i64, ptr {result}")

    def variable(self, name: str) -> str:
        number = self.globals.get(name)
        return str(number) if isinstance(number, int) else self.put(f"load i64, ptr %v.{name}")

    def address(self, node: ast.Subscript) -> str:
        """Of an element of one of the record's arrays. Where an array lies never changes, so that LLVM may keep it."""
        if not isinstance(node.value, ast.Attribute):
            raise unknown(node)
        field = self.put(f"getelementptr ptr, ptr %rec, i64 {self.fields.index(node.value.attr)}")
        array = self.put(f"load ptr, ptr {field}, !invariant.load !0")
        return self.put(f"getelementptr i64, ptr {array}, i64 {self.value(node.slice)}")

    def condition(self, node: ast.expr) -> str:
        """The name of an i1, of a condition that needs no branch."""
        match node:
            case ast.Compare(left, [op], [right]):
                return self.put(f"icmp {COMPARE[type(op)]} i64 {self.value(left)}, {self.value(right)}")
        return self.put(f"icmp ne i64 {self.value(node)}, 0")

    def branch(self, node: ast.expr, yes: str, no: str) -> None:
        """Go to `yes` or `no`; what follows `and` and `or` is looked at only where it matters."""
        match node:
            case ast.BoolOp(op, values):
                for value in values[:-1]:
                    rest = self.label()
                    self.branch(value, *((rest, no) if isinstance(op, ast.And) else (yes, rest)))
                    self.begin(rest)
                self.branch(values[-1], yes, no)
            case ast.UnaryOp(ast.Not(), operand):
                self.branch(operand, no, yes)
            case _:
                self.out.append(f" br i1 {self.condition(node)}, label %{yes}, label %{no}")


def loaded(target: ast.expr) -> ast.expr:
    """The expression that reads what an assignment writes."""
    match target:
        case ast.Name(name):
            return ast.Name(name, ast.Load())
        case ast.Subscript(value, index):
            return ast.Subscript(value, index, ast.Load())
    raise unknown(target)


def unknown(node: ast.AST) -> AssertionError:
    return AssertionError(f"no part of the planner's kernels: {ast.unparse(node)}")
