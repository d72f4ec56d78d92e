"""Loop IR as text, and back: `print_program(read_program(text)) == text`. One statement a line; values are numbered,
buffers have names.

    buffer @x: float32[8] argument
    buffer @y: float32[8] result
    kernel @y[i 8] "tosa.abs"
    function y(@x, @y) {
      for %0 in 0 to 8 {
        %1: float32 = load @x[%0]
        %2: float32 = abs %1
        store @y[%0] = %2
      }
    }
    steps {
      compute 0
    }

The text has neither the expressions of kernels (`show kernels` has those) nor the positions of operators.
"""
from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ..elements.expression import Buffer
from ..kernels.kernel import (
    Branch,
    CheckTrue,
    CheckWritten,
    Compute,
    Fault,
    Kernel,
    Loop,
    MarkWritten,
    Parallel,
    Step,
    VariableUse,
)
from .ir import (
    INDEX,
    Address,
    Block,
    For,
    Function,
    GatherFrom,
    If,
    Let,
    Literal,
    LoadFrom,
    LoadTile,
    MultiplyFloatTiles,
    MultiplyTiles,
    Operand,
    Prefetch,
    ShapeTiles,
    Shuffle,
    Stmt,
    StoreTile,
    StoreTo,
    Var,
    ZeroTile,
)
from .program import Program

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.$]*")
SHORT = 32
"""Bytes of a constant that are shown where constants are elided."""


def read_program(text: str, source: str = "program") -> Program:
    """Read a program that `print_program` wrote, with all constants, but do not verify it. Raises Problem, with the position,
    for any other text. The kernels have no expressions: the value of each is the element of its output."""
    from .text_reader import LoopsReader
    return LoopsReader(text, source).program()


def print_program(program: Program, constants: bool = False) -> str:
    """Return a program as text; with `constants` all data of constants, otherwise only that of short ones."""
    names = BufferLabels()
    body = [line for f in program.functions for line in names.function(f)]
    head = [f"program {quoted(program.name)}"]
    head += [f"input {names.buffer(b)}" for b in program.inputs]
    head += [f"output {names.buffer(b)}" for b in program.outputs]
    head += [names.variable(v) for v in program.variables]
    head += [fault(f) for f in program.faults]
    head += [names.kernel(k) for k in program.kernels]
    steps = ["steps {", *names.steps(program.steps, "  "), "}"]
    buffers = [declaration(label, b, constants) for b, label in names.buffers.items()]
    return "\n".join([head[0], *buffers, *head[1:], *body, *steps, ""])


def print_function(function: Function) -> str:
    """Return one function as text."""
    return "\n".join([*BufferLabels().function(function), ""])


def quoted(name: str) -> str:
    return name if WORD.fullmatch(name) else json.dumps(name)


def declaration(label: str, b: Buffer, constants: bool) -> str:
    title = "" if label == f"@{b.name}" else f" {json.dumps(b.name)}"
    text = f"buffer {label}{title}: {b.dtype}[{', '.join(map(str, b.shape))}] {b.role}"
    if b.copies > 1:
        text += f" copies {b.copies}"
    if b.data is None:
        return text
    shown = constants or b.nbytes <= SHORT
    return f"{text} = {'0x' + np.ascontiguousarray(b.data).tobytes().hex() if shown else '...'}"


def fault(f: Fault) -> str:
    text = f"fault {json.dumps(f.message)}" + (f" help {json.dumps(f.help)}" if f.help else "")
    return text if f.kind == "variable" else f"{text} kind {quoted(f.kind)}"


def operand(x: Operand) -> str:
    """Return a value by its number, or a constant with its type unless that is an index."""
    if isinstance(x, Var):
        return f"%{x.id}"
    value = str(int(x.value)) if isinstance(x.value, (bool, int, np.bool_, np.integer)) else repr(float(x.value))
    return value if x.type == INDEX else f"{value}:{x.type}"


def typed(x: Var) -> str:
    return f"%{x.id}: {x.type}"


class BufferLabels:
    """Labels of buffers: their names, with a number where two buffers have the same name."""

    def __init__(self) -> None:
        self.buffers: dict[Buffer, str] = {}
        self.taken: set[str] = set()

    def buffer(self, b: Buffer) -> str:
        if b not in self.buffers:
            plain = "@" + (re.sub(r"[^A-Za-z0-9_.$-]", "_", b.name) or "_")
            label, number = plain, 1
            while label in self.taken:
                label, number = f"{plain}.{number}", number + 1
            self.taken.add(label)
            self.buffers[b] = label
        return self.buffers[b]

    def listed(self, buffers: Iterable[Buffer]) -> str:
        return ", ".join(map(self.buffer, buffers))

    def variable(self, v: VariableUse) -> str:
        initial = f" = {self.buffer(v.initial)}" if v.initial else ""
        return f"variable {self.buffer(v.buffer)}: {v.element}{initial}{' external' if v.external else ''}"

    def kernel(self, k: Kernel) -> str:
        axes = ", ".join(f"{quoted(a.name)} {a.extent}" for a in k.axes)
        return f"kernel {self.buffer(k.out)}[{axes}] {json.dumps(k.origin)}"

    def function(self, f: Function) -> Iterator[str]:
        scratch = f" scratch({self.listed(f.scratch)})" if f.scratch else ""
        rows = f" rows({', '.join(map(operand, f.rows))})" if f.rows else ""
        phases = f" phases [{', '.join(map(str, f.phases))}]" if f.phases else ""
        yield f"function {quoted(f.name)}({self.listed(f.params)}){scratch}{rows}{phases} {{"
        yield from self.block(f.body, "  ")
        yield "}"

    def block(self, block: Block, indent: str) -> Iterator[str]:
        for stmt in block:
            match stmt:
                case For():
                    yield from self.loop(stmt, indent)
                case If(condition, body, likely):
                    hint = {True: " likely", False: " unlikely", None: ""}[likely]
                    yield f"{indent}if {operand(condition)}{hint} {{"
                    yield from self.block(body, indent + "  ")
                    yield f"{indent}}}"
                case _:
                    yield indent + self.statement(stmt)

    def loop(self, f: For, indent: str) -> Iterator[str]:
        carried = ", ".join(f"{typed(p)} = {operand(i)}" for p, i in zip(f.params, f.inits))
        yield (f"{indent}for {operand(f.index)} in {operand(f.low)} to {operand(f.high)}"
               f"{' with ' + carried if carried else ''} {{")
        yield from self.block(f.body, indent + "  ")
        if not carried:
            yield f"{indent}}}"
            return
        yield f"{indent}  yield {', '.join(map(operand, f.yields))}"
        yield f"{indent}}} gives {', '.join(map(operand, f.results))}"

    def statement(self, stmt: Stmt) -> str:
        match stmt:
            case Let(result, op, args):
                return f"{typed(result)} = {op} {', '.join(map(operand, args))}"
            case Shuffle(result, args, lanes):
                return f"{typed(result)} = shuffle {', '.join(map(operand, args))} [{', '.join(map(str, lanes))}]"
            case LoadFrom(result, address, active, mask):
                return f"{typed(result)} = load {self.address(address)}{lanes_of(result, active, mask)}"
            case GatherFrom(result, buffer, indices, active, mask):
                where = f"{self.buffer(buffer)}[{operand(indices)}]"
                return f"{typed(result)} = gather {where}{lanes_of(result, active, mask)}"
            case StoreTo(address, value, active, streaming):
                return (f"store {self.address(address)} = {operand(value)}{lanes_of(value, active, None)}"
                        f"{' streaming' if streaming else ''}")
            case Prefetch(address, near, writes):
                return f"prefetch {self.address(address)}{' near' * near}{' writes' * writes}"
            case ShapeTiles(shapes):
                return f"shape_tiles [{', '.join(f'{rows}, {nbytes}' for rows, nbytes in shapes)}]"
            case ZeroTile(tile):
                return f"zero_tile {tile}"
            case LoadTile(tile, address, stride):
                return f"load_tile {tile} = {self.address(address)} stride {stride}"
            case StoreTile(tile, address, stride):
                return f"store_tile {self.address(address)} = {tile} stride {stride}"
            case MultiplyTiles(total, x, y, signed):
                return f"multiply_tiles {total} = {x}, {y} {'signed' if signed else 'unsigned'}"
            case MultiplyFloatTiles(total, x, y):
                return f"multiply_float_tiles {total} = {x}, {y}"
        raise TypeError(stmt)

    def address(self, a: Address) -> str:
        if isinstance(a.base, Literal) and a.base.value == 0:
            return f"{self.buffer(a.buffer)}[{a.offset}]"
        offset = f" {'-' if a.offset < 0 else '+'} {abs(a.offset)}" if a.offset or isinstance(a.base, Literal) else ""
        return f"{self.buffer(a.buffer)}[{operand(a.base)}{offset}]"

    def steps(self, steps: Sequence[Step], indent: str) -> Iterator[str]:
        for step in steps:
            match step:
                case Compute(kernel, rows, tasks):
                    yield (f"{indent}compute {kernel}" + (f" rows {rows[0]} to {rows[1]}" if rows else "")
                           + (f" tasks {tasks}" if tasks > 1 else ""))
                case Parallel(own):
                    yield f"{indent}parallel {{"
                    for task in own:
                        yield f"{indent}  task {{"
                        yield from self.steps(task, indent + "    ")
                        yield f"{indent}  }}"
                    yield f"{indent}}}"
                case Branch(condition, then, otherwise):
                    yield f"{indent}if {self.buffer(condition)} {{"
                    yield from self.steps(then, indent + "  ")
                    yield f"{indent}}} else {{"
                    yield from self.steps(otherwise, indent + "  ")
                    yield f"{indent}}}"
                case Loop(test, condition, body):
                    yield f"{indent}loop {{"
                    yield from self.steps(test, indent + "  ")
                    yield f"{indent}}} while {self.buffer(condition)} {{"
                    yield from self.steps(body, indent + "  ")
                    yield f"{indent}}}"
                case CheckWritten(variable, fault):
                    yield f"{indent}check {self.buffer(variable)} fault {fault}"
                case CheckTrue(condition, fault):
                    yield f"{indent}assert {self.buffer(condition)} fault {fault}"
                case MarkWritten(variable):
                    yield f"{indent}mark {self.buffer(variable)}"


def lanes_of(value: Operand, active: int, mask: Operand | None) -> str:
    """Return the text that restricts the lanes accessed; empty if all are."""
    few = f" active {active}" if active != value.type.lanes else ""
    return few + (f" mask {operand(mask)}" if mask is not None else "")
