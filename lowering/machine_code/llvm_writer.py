"""The writer of LLVM IR: all that tosaic compiles is written with it, whether it comes from loops (`native/llvm`), runs a
program (`native/driver`, `native/c_object`), or serves the process (`native/process`).

Blocks take parameters, as in MLIR: a jump says what it gives them, and the writer makes the phis. A value of a hand-written
function has its type with it, so that instructions need not say it; the emitter of kernels, which knows the types and writes
very many instructions, hands `put` their text. (`llvmlite.ir` would do for the first, not for the second: it has an object for
each value and type, and takes many times as long. It also has to be loaded, which code from a cache does without.)
"""
from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import NamedTuple

from ...runtime.records import dataclass

NOT_PLAIN = re.compile(r"[^A-Za-z0-9._$-]")
ALIGNMENTS = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "ptr": 8}
"""Alignment in bytes of atomic accesses; pointers are atomic on 64-bit processors only."""


class Value(NamedTuple):
    """An operand with its type, such as `i64 %t1` or `ptr @table`."""
    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


class Member(NamedTuple):
    """A member of a structure in memory: a `type` at `offset` bytes from the start."""
    offset: int
    type: str = "ptr"


Operand = Value | int | bool
"""An operand; a number is a constant of the other operand's type."""
NULL = Value("ptr", "null")


def constant(type: str, number: int) -> Value:
    return Value(type, f"{number}")


def symbol(name: str) -> Value:
    """Return the address of a function or of data of the module."""
    return Value("ptr", f"@{quoted(name)}")


def quoted(name: str) -> str:
    """Return a symbol as LLVM reads it."""
    if all(c.isascii() and (c.isalnum() or c in "._$-") for c in name) and not name[:1].isdigit():
        return name
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in name.encode()) + '"'


def plain(name: str) -> str:
    """Return a model name as a part of a symbol that is unique otherwise: linkers, debuggers and disassemblers show it."""
    return NOT_PLAIN.sub("_", name)


def spelled(x: Operand | str) -> str:
    """Return an operand without its type."""
    if isinstance(x, str):
        return x
    if isinstance(x, Value):
        return x.name
    return f"{x}".lower()


def weights(likely: bool) -> str:
    """Return the branch weights of a likely or unlikely branch."""
    yes, no = (1000, 1) if likely else (1, 1000)
    return f'!prof !{{!"branch_weights", i32 {yes}, i32 {no}}}'


@dataclass(slots=True, eq=False)
class Block:
    """A basic block. `incoming` holds the labels of its predecessors, with the values that each passes for the parameters."""
    label: str
    incoming: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def __call__(self, *given: Operand | str) -> Edge:
        """Return a jump to the block with these arguments."""
        return Edge(self, tuple(map(spelled, given)))


class Edge(NamedTuple):
    """A target of a branch: a block, and the values that the branch passes to it."""
    block: Block
    given: tuple[str, ...] = ()


Target = Block | Edge


@dataclass(slots=True)
class Writer:
    """The instructions of one function. `declared` collects the module's other declarations, by name."""
    declared: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    label: str = "entry"
    count: int = 0
    entered: list[tuple[Block, int, list[Value]]] = field(default_factory=list)

    # ---- text --------------------------------------------------------------------------------------------------------
    def new(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def put(self, text: str) -> str:
        """Write an instruction with a result; return the result's name."""
        self.count += 1
        result = f"%t{self.count}"
        self.lines.append(f" {result} = {text}")
        return result

    def do(self, text: str) -> None:
        """Write an instruction without a result."""
        self.lines.append(f" {text}")

    def intrinsic(self, name: str, returns: str, args: Sequence[tuple[str, str]]) -> str:
        """Call a function that the module declares; return the name of its result, empty if it has none."""
        if name not in self.declared:
            self.declared[name] = f"declare {returns} @{name}({', '.join([t for t, _ in args])})"
        text = f"call {returns} @{name}({', '.join([f'{t} {v}' for t, v in args])})"
        if returns != "void":
            return self.put(text)
        self.lines.append(f" {text}")
        return ""

    def above(self, line: int, make: Callable[[], str]) -> str:
        """Move the instructions that `make` writes to an earlier line."""
        first = len(self.lines)
        value = make()
        made = self.lines[first:]
        del self.lines[first:]
        self.lines[line] = "\n".join([self.lines[line], *made] if self.lines[line] else made)
        return value

    # ---- blocks ------------------------------------------------------------------------------------------------------
    def blocks(self, *names: str) -> list[Block]:
        """Return new blocks, whose labels share a number."""
        self.count += 1
        return [Block(f"{name}{self.count}") for name in names]

    def enter(self, block: Block, *types: str) -> list[Value]:
        """Begin a block with parameters of these types. The block before must have ended."""
        self.label = block.label
        self.lines.append(f"{block.label}:")
        params = [Value(t, self.new()) for t in types]
        self.entered.append((block, len(self.lines), params))
        self.lines += [""] * len(params)
        return params

    def go_on(self, block: Block) -> None:
        """End the current block with a jump to `block`, and begin that."""
        self.jump(block)
        self.enter(block)

    def jump(self, to: Target) -> None:
        self.lines.append(f" br label %{self._joined(to)}")

    def branch(self, condition: Value | str, yes: Target, no: Target, likely: bool | None = None) -> None:
        hint = "" if likely is None else f", {weights(likely)}"
        self.lines.append(f" br i1 {spelled(condition)}, label %{self._joined(yes)}, label %{self._joined(no)}{hint}")

    def switch(self, number: Value, cases: Mapping[int, Block], otherwise: Block) -> None:
        """Jump to the block of a number."""
        listed = " ".join(f"{number.type} {case}, label %{self._joined(block)}" for case, block in cases.items())
        self.do(f"switch {number}, label %{self._joined(otherwise)} [{listed}]")

    def _joined(self, to: Target) -> str:
        block, given = to if isinstance(to, Edge) else (to, ())
        block.incoming.append((self.label, given))
        return block.label

    def give(self, result: Operand | None = None) -> None:
        """Return from the function."""
        self.do("ret void" if result is None else f"ret {result}")

    def finished(self) -> list[str]:
        """Return the lines, with the phis of all parameters."""
        for block, first, params in self.entered:
            labels, gifts = [label for label, _ in block.incoming], [given for _, given in block.incoming]
            wrong = [label for label, given in block.incoming if len(given) != len(params)]
            assert not wrong, f"{', '.join(wrong)} jumps to {block.label} without its {len(params)} parameters"
            for line, (type, name), values in zip(itertools.count(first), params, zip(*gifts)):
                incoming = ", ".join([f"[{value}, %{label}]" for value, label in zip(values, labels)])
                self.lines[line] = f" {name} = phi {type} {incoming}"
        self.entered.clear()
        return self.lines

    # ---- control -----------------------------------------------------------------------------------------------------
    @contextmanager
    def when(self, condition: Value | str, likely: bool | None = None) -> Iterator[None]:
        """Run the instructions written inside if the condition is true."""
        then, end = self.blocks("then", "end")
        self.branch(condition, then, end, likely)
        self.enter(then)
        yield
        self.go_on(end)

    def require(self, condition: Value | str, otherwise: Target) -> None:
        """Go on if the condition is true."""
        further, = self.blocks("further")
        self.branch(condition, further, otherwise)
        self.enter(further)

    @contextmanager
    def loop(self, end: Value, first: Operand = 0, once: bool = False) -> Iterator[Value]:
        """Run the instructions written inside for each number from `first` up to, but not including, `end`; `once` means at
        least one iteration, and only tests after each."""
        head, body, done = self.blocks("head", "body", "done")
        self.jump(head(first))
        index, = self.enter(head, end.type)
        if not once:
            self.branch(self.compare("ult", index, end), body, done)
            self.enter(body)
        yield index
        following = self.op("add", index, 1)
        if once:
            self.branch(self.compare("ult", following, end), head(following), done)
        else:
            self.jump(head(following))
        self.enter(done)

    # ---- arithmetic --------------------------------------------------------------------------------------------------
    def op(self, name: str, x: Operand, y: Operand) -> Value:
        """Write a binary instruction; at least one operand is a value."""
        type = x.type if isinstance(x, Value) else y.type if isinstance(y, Value) else ""
        assert type, f"{name} of two numbers"
        return Value(type, self.put(f"{name} {type} {spelled(x)}, {spelled(y)}"))

    def compare(self, predicate: str, x: Value, y: Operand) -> Value:
        return Value("i1", self.put(f"icmp {predicate} {x}, {spelled(y)}"))

    def select(self, condition: Value, x: Operand, y: Operand, type: str = "i64") -> Value:
        return Value(type, self.put(f"select {condition}, {type} {spelled(x)}, {type} {spelled(y)}"))

    def cast(self, name: str, x: Value, type: str) -> Value:
        return Value(type, self.put(f"{name} {x} to {type}"))

    def either(self, conditions: Sequence[Value]) -> Value:
        """Return a value that is true if one of the conditions holds."""
        first, *others = conditions
        for other in others:
            first = self.op("or", first, other)
        return first

    def every(self, conditions: Sequence[Value]) -> Value:
        """Return a value that is true if all of the conditions hold."""
        first, *others = conditions
        for other in others:
            first = self.op("and", first, other)
        return first

    # ---- memory ------------------------------------------------------------------------------------------------------
    def address(self, pointer: Value, index: Operand, element: str = "i8") -> Value:
        """Return the address of element `index` from a pointer."""
        if isinstance(index, int) and not index:
            return pointer
        place = index if isinstance(index, Value) else constant("i64", index)
        return Value("ptr", self.put(f"getelementptr {element}, {pointer}, {place}"))

    def load(self, pointer: Value, what: str | Member, order: str = "", align: int = 0) -> Value:
        """Load a value of a type, or a member of the structure at the pointer; `order` is that of an atomic load."""
        if isinstance(what, Member):
            pointer, what = self.address(pointer, what.offset), what.type
        atomic, end = access(what, order, align)
        return Value(what, self.put(f"load {atomic}{what}, {pointer}{end}"))

    def store(self, value: Value, pointer: Value, order: str = "", align: int = 0) -> None:
        atomic, end = access(value.type, order, align)
        self.do(f"store {atomic}{value}, {pointer}{end}")

    def keep(self, value: Operand, pointer: Value, member: Member, order: str = "") -> None:
        """Store to a member of the structure at a pointer."""
        self.store(Value(member.type, spelled(value)), self.address(pointer, member.offset), order)

    def update(self, operation: str, pointer: Value, value: Value, order: str) -> Value:
        """Change memory atomically; return the old value."""
        return Value(value.type, self.put(f"atomicrmw {operation} {pointer}, {value} {order}"))

    def exchange(self, pointer: Value, expected: Value, desired: Operand, orders: str) -> tuple[Value, Value]:
        """Write `desired` if memory holds `expected`; return the old value, and whether it was `expected`."""
        t = expected.type
        pair = self.put(f"cmpxchg {pointer}, {expected}, {t} {spelled(desired)} {orders}")
        return (Value(t, self.put(f"extractvalue {{ {t}, i1 }} {pair}, 0")),
                Value("i1", self.put(f"extractvalue {{ {t}, i1 }} {pair}, 1")))

    def copy(self, to: Value, source: Value, nbytes: Operand) -> None:
        size = nbytes if isinstance(nbytes, Value) else constant("i64", nbytes)
        self.intrinsic("llvm.memcpy.p0.p0.i64", "void", [to, source, size, ("i1", "false")])

    def fill(self, to: Value, byte: int, nbytes: int) -> None:
        self.intrinsic("llvm.memset.p0.i64", "void", [to, constant("i8", byte), constant("i64", nbytes), ("i1", "false")])

    # ---- calls -------------------------------------------------------------------------------------------------------
    def call(self, function: Value, returns: str, *args: Value) -> Value:
        """Call a function of the module, or one whose address is known. `returns` is the whole function type if it is
        variadic."""
        text = f"call {returns} {function.name}({', '.join(map(str, args))})"
        if returns == "void":
            self.do(text)
            return NULL
        return Value(returns.split(" ")[0], self.put(text))

    def call_c(self, name: str, returns: str, *args: Value, variadic: bool = False) -> Value:
        """Call a C function; if it is `variadic`, only its first parameter is fixed."""
        types = f"{args[0].type}, ..." if variadic else ", ".join(a.type for a in args)
        self.declared.setdefault(name, f"declare {returns} @{name}({types})")
        return self.call(symbol(name), f"{returns} ({types})" if variadic else returns, *args)


    def assembly(self, code: str, constraints: str, returns: str, *args: Value) -> Value:
        """Write an instruction that LLVM has no intrinsic for."""
        return self.call(Value("ptr", f'asm sideeffect "{code}", "{constraints}"'), returns, *args)


def access(type: str, order: str, align: int) -> tuple[str, str]:
    """Return the parts of an access before the type and after the pointer."""
    if order:
        return "atomic ", f" {order}, align {ALIGNMENTS[type]}"
    return "", f", align {align}" if align else ""


class Function(Writer):
    """A function that is written instruction by instruction; its parameters are values of the same names."""

    def __init__(self, name: str, returns: str, params: Mapping[str, str], declared: dict[str, str] | None = None,
                 linkage: str = "internal ", attributes: str = " #0") -> None:
        super().__init__({} if declared is None else declared)
        self.name, self.returns, self.linkage, self.attributes = name, returns, linkage, attributes
        self.params = [Value(type, f"%{param}") for param, type in params.items()]
        self.lines.append("entry:")

    @property
    def pointer(self) -> Value:
        """Address of the function."""
        return symbol(self.name)

    def room(self, count: int, element: str, align: int = 0) -> Value:
        """Allocate memory on the function's stack, at its beginning, so that its frame has one size."""
        text = f"alloca [{count} x {element}]{f', align {align}' if align else ''}"
        return Value("ptr", self.above(0, lambda: self.put(text)))

    def definition(self) -> list[str]:
        params = ", ".join(map(str, self.params))
        head = f"define {self.linkage}{self.returns} @{quoted(self.name)}({params}){self.attributes} {{"
        return [head, *self.finished(), "}"]


def data(name: str, kind: str, type: str, value: str = "", section: str = "", align: int = 0) -> str:
    """Return the definition of constants or variables: `kind` is linkage and "constant" or "global"."""
    initial, placed = f" {value}" if value else "", f', section "{section}"' if section else ""
    return f"@{quoted(name)} = {kind} {type}{initial}{placed}{f', align {align}' if align else ''}"


def numbers(values: Iterable[int], type: str = "i32") -> tuple[str, str]:
    """Return the type and the value of an array of integers."""
    items = [f"{type} {n}" for n in values]
    return f"[{len(items)} x {type}]", f"[{', '.join(items)}]"


OWN_ATTRIBUTES = "nounwind", '"no-builtins"'
"""Attributes of the functions of every module: none unwinds, and no loop becomes a call of a C function."""


def attribute_group(*attributes: str) -> str:
    """Return attribute group #0."""
    return f"attributes #0 = {{ {' '.join(attributes)} }}"


def module(triple: str, declarations: Iterable[str], *lines: Iterable[str]) -> str:
    """Return the text of a module: declarations, then definitions and attribute groups."""
    return "\n".join([f'target triple = "{triple}"', *declarations, *(line for some in lines for line in some), ""])
