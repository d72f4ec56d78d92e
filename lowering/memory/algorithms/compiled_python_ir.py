"""LLVM IR of the planner's inner loops, from their syntax trees in the subset of Python that `compiled` describes."""
from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import textwrap
from collections.abc import Callable, Sequence

from ...machine_code import llvm_writer as ir
from ...target.presets import host

BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
          ast.LShift: "shl", ast.RShift: "ashr", ast.FloorDiv: "sdiv", ast.Mod: "srem"}
COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge"}

Function = Callable[..., int]


def module_text(entry: Function, record: type) -> str:
    """Return the LLVM IR of `i32 @entry(ptr %frame)`: the frame holds the addresses of the record's arrays, then the
    integers."""
    fields = [f.name for f in dataclasses.fields(record)]
    functions = [Emitter(f, fields).function for f in called_from(entry)]
    caller = ir.Function("entry", "i32", {"frame": "ptr"}, linkage="", attributes="")
    frame, = caller.params
    numbers = range(len(fields), len(fields) + len(inspect.signature(entry).parameters) - 1)
    loaded = [caller.load(caller.address(frame, n, "i64"), "i64") for n in numbers]
    caller.give(caller.cast("trunc", caller.call(ir.symbol(entry.__name__), "i64", frame, *loaded), "i32"))
    return ir.module(host().triple, (), *(f.definition() for f in (*functions, caller)), ["!0 = !{}"])


def called_from(entry: Function) -> list[Function]:
    """Return `entry` and the functions that it calls, directly or through others."""
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
    """An emitter of one function. A Python variable is a stack slot, which LLVM turns into a register."""

    def __init__(self, function: Function, fields: Sequence[str]) -> None:
        self.node, self.globals, self.fields = definition(function), function.__globals__, fields
        self.name_of_record, *numbers = (a.arg for a in self.node.args.args)
        params = {"rec": "ptr"} | {f"p{i}": "i64" for i in range(len(numbers))}
        self.function = ir.Function(self.node.name, "i64", params, attributes=" alwaysinline")
        self.record, *given = self.function.params
        stored = [n.id for n in ast.walk(self.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        self.variables = {name: self.function.room(1, "i64") for name in dict.fromkeys([*numbers, *stored])}
        self.loops: list[tuple[ir.Block, ir.Block]] = []
        for name, value in zip(numbers, given):
            self.function.store(value, self.variables[name])
        for statement in self.node.body:
            self.statement(statement)
        self.function.give(ir.constant("i64", 0))

    # ---- statements --------------------------------------------------------------------------------------------------
    def block(self, statements: Sequence[ast.stmt], then: ir.Block) -> None:
        for statement in statements:
            self.statement(statement)
        self.function.jump(then)

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
                self.function.jump(self.loops[-1][isinstance(node, ast.Break)])
                self.begin_unreachable()
            case ast.Return(ast.expr() as value):
                self.function.give(self.value(value))
                self.begin_unreachable()
            case _:
                raise unknown(node)

    def begin_unreachable(self) -> None:
        """Enter a block for the unreachable statements that follow a jump."""
        behind, = self.function.blocks("behind")
        self.function.enter(behind)

    def store(self, target: ast.expr, value: ir.Value) -> None:
        match target:
            case ast.Name(name):
                self.function.store(value, self.variables[name])
            case ast.Subscript():
                self.function.store(value, self.address(target))
            case _:
                raise unknown(target)

    def if_(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        then, other, done = self.function.blocks("then", "else", "end")
        self.branch(test, then, other if orelse else done)
        self.function.enter(then)
        self.block(body, done)
        if orelse:
            self.function.enter(other)
            self.block(orelse, done)
        self.function.enter(done)

    def while_(self, test: ast.expr, body: list[ast.stmt]) -> None:
        head, inside, done = self.function.blocks("test", "body", "end")
        self.function.go_on(head)
        self.branch(test, inside, done)
        self.function.enter(inside)
        self.loop_body(body, head, done)
        self.function.jump(head)
        self.function.enter(done)

    def for_(self, name: str, args: list[ast.expr], body: list[ast.stmt]) -> None:
        first, last = [self.value(a) for a in ([ast.Constant(0), *args] if len(args) == 1 else args)]
        head, inside, following, done = self.function.blocks("head", "body", "next", "end")
        self.function.jump(head(first))
        now, = self.function.enter(head, "i64")
        self.function.branch(self.function.compare("slt", now, last), inside, done)
        self.function.enter(inside)
        self.function.store(now, self.variables[name])
        self.loop_body(body, following, done)
        self.function.go_on(following)
        self.function.jump(head(self.function.op("add", now, 1)))
        self.function.enter(done)

    def loop_body(self, body: list[ast.stmt], following: ir.Block, done: ir.Block) -> None:
        """Emit the statements of a loop; `continue` goes to `following`."""
        self.loops.append((following, done))
        for statement in body:
            self.statement(statement)
        self.loops.pop()

    # ---- expressions -------------------------------------------------------------------------------------------------
    def value(self, node: ast.expr) -> ir.Value:
        """Emit an expression; return its value as an i64."""
        f = self.function
        match node:
            case ast.Constant(int(number)):
                return ir.constant("i64", int(number))
            case ast.Name(name):
                return self.variable(name)
            case ast.Subscript():
                return f.load(self.address(node), "i64")
            case ast.UnaryOp(ast.USub(), operand):
                return f.op("sub", 0, self.value(operand))
            case ast.BinOp(left, op, right) if type(op) in BINARY:
                return f.op(BINARY[type(op)], self.value(left), self.value(right))
            case ast.IfExp(test, body, orelse):
                return self.choice(test, body, orelse)
            case ast.Call(ast.Name("min" | "max" as which), [left, right]):
                a, b = self.value(left), self.value(right)
                return f.select(f.compare("slt" if which == "min" else "sgt", a, b), a, b)
            case ast.Call(ast.Name(name), [ast.Name(self.name_of_record), *args]):
                return f.call(ir.symbol(name), "i64", self.record, *map(self.value, args))
        raise unknown(node)

    def choice(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> ir.Value:
        then, other, done = self.function.blocks("then", "else", "end")
        self.branch(test, then, other)
        for block, value in ((then, body), (other, orelse)):
            self.function.enter(block)
            self.function.jump(done(self.value(value)))
        return self.function.enter(done, "i64")[0]

    def variable(self, name: str) -> ir.Value:
        number = self.globals.get(name)
        if isinstance(number, int):
            return ir.constant("i64", number)
        return self.function.load(self.variables[name], "i64")

    def address(self, node: ast.Subscript) -> ir.Value:
        """Return the address of an element of one of the record's arrays. LLVM may keep array addresses: they never change."""
        if not isinstance(node.value, ast.Attribute):
            raise unknown(node)
        field = self.function.address(self.record, self.fields.index(node.value.attr), "ptr")
        array = ir.Value("ptr", self.function.put(f"load ptr, {field}, !invariant.load !0"))
        return self.function.address(array, self.value(node.slice), "i64")

    def condition(self, node: ast.expr) -> ir.Value:
        """Return an i1, for a condition that needs no branch."""
        match node:
            case ast.Compare(left, [op], [right]):
                return self.function.compare(COMPARE[type(op)], self.value(left), self.value(right))
        return self.function.compare("ne", self.value(node), 0)

    def branch(self, node: ast.expr, yes: ir.Block, no: ir.Block) -> None:
        """Go to `yes` or `no`; the right operand of `and` and `or` is evaluated only if it matters."""
        match node:
            case ast.BoolOp(op, values):
                for value in values[:-1]:
                    rest, = self.function.blocks("rest")
                    self.branch(value, *((rest, no) if isinstance(op, ast.And) else (yes, rest)))
                    self.function.enter(rest)
                self.branch(values[-1], yes, no)
            case ast.UnaryOp(ast.Not(), operand):
                self.branch(operand, no, yes)
            case _:
                self.function.branch(self.condition(node), yes, no)


def loaded(target: ast.expr) -> ast.expr:
    """Return the expression that reads the target of an assignment."""
    match target:
        case ast.Name(name):
            return ast.Name(name, ast.Load())
        case ast.Subscript(value, index):
            return ast.Subscript(value, index, ast.Load())
    raise unknown(target)


def unknown(node: ast.AST) -> AssertionError:
    return AssertionError(f"no part of the planner's kernels: {ast.unparse(node)}")
