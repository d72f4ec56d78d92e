"""Loop IR -> LLVM IR text: one instruction or intrinsic for each operation, in the order of the loop IR. The loop IR
says what is a vector, what is hoisted and what is unrolled, so that LLVM needs no optimisation pass.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..elements.expression import Buffer
from ..loops.ir import (
    Address,
    Block,
    For,
    Function,
    GatherFrom,
    If,
    Let,
    Literal,
    LoadFrom,
    Operand,
    Shuffle,
    StoreTo,
    Var,
    buffers_written,
)
from .accesses import Accesses
from .instructions import Instructions
from .llvm_text import SCALARS, Writer, literal, llvm_type, spelled
from .target import Target


@dataclass(frozen=True, slots=True)
class Emitted:
    """Parts of an LLVM module. `names[i]` is the definition of functions[i]; equal functions share one."""
    definitions: list[str]
    names: list[str]
    declarations: list[str]
    attributes: list[str]
    """The attribute group #0 of the definitions."""


def emit_functions(functions: Sequence[Function], target: Target) -> Emitted:
    """Definitions `define internal void @name(ptr %p0, ..., i64 %low, i64 %high) #0`: a pointer for each of params and
    scratch, and the rows where the function takes them."""
    from .narrow import NarrowEmitter
    emitter = Emitter if target.has_int64 else NarrowEmitter
    declared: dict[str, str] = {}
    definitions: list[str] = []
    by_text: dict[str, str] = {}
    names = []
    for function in functions:
        lines = emitter(target, declared).function(function)
        text = "\n".join(lines)
        if text not in by_text:
            by_text[text] = function.name
            definitions += [f"define internal void @{quoted(function.name)}{lines[0]}", *lines[1:]]
        names.append(by_text[text])
    own = [line for text in declared.values() if text.startswith("define") for line in text.splitlines()]
    declarations = [text for text in declared.values() if text.startswith("declare")]
    return Emitted(own + definitions, names, declarations, [attributes(target)])


def quoted(name: str) -> str:
    """A symbol as LLVM reads it."""
    if all(c.isascii() and (c.isalnum() or c in "._$-") for c in name) and not name[:1].isdigit():
        return name
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in name.encode()) + '"'


def attributes(target: Target) -> str:
    """Tuned for no processor: the order of instructions is the schedule's, and LLVM's models of some processors
    (znver4, znver5) move loads up until sums that fit the registers exactly are spilled in the innermost loop."""
    parts = ["nounwind", '"no-builtins"', f'"target-cpu"="{target.cpu}"', '"tune-cpu"="generic"']
    if target.features:
        parts.append(f'"target-features"="{target.features}"')
    if target.architecture == "x86":
        parts.append(f'"prefer-vector-width"="{8 * target.vector_bytes}"')
    return f"attributes #0 = {{ {' '.join(parts)} }}"


@dataclass(slots=True)
class Emitter:
    """Writes one function. `values` are LLVM's names of variables, `pointers` of addresses made in the open block."""
    target: Target
    declared: dict[str, str]
    writer: Writer = field(init=False)
    accesses: Accesses = field(init=False)
    instructions: Instructions = field(init=False)
    values: dict[Var, str] = field(default_factory=dict)
    buffers: dict[Buffer, str] = field(default_factory=dict)
    pointers: dict[tuple[Buffer, Operand], str] = field(default_factory=dict)
    streams: bool = False

    def __post_init__(self) -> None:
        self.writer = Writer(self.declared)
        self.accesses = Accesses(self.writer, self.target)
        self.instructions = Instructions(self.writer, self.target, self.target.enabled)

    def function(self, f: Function) -> list[str]:
        """The function from its parameters on: equal texts are the same function."""
        memory = (*f.params, *f.scratch)
        self.buffers = {b: f"%p{i}" for i, b in enumerate(memory)}
        alone = buffers_written(f) if len(self.buffers) == len(memory) else frozenset()
        params = [f"ptr{' noalias' if b in alone else ''} %p{i}" for i, b in enumerate(memory)]
        if f.rows:
            self.values |= {f.rows[0]: "%low", f.rows[1]: "%high"}
            params += ["i64 %low", "i64 %high"]
        self.writer.lines += [f"({', '.join(params)}) #0 {{", "entry:"]
        self.enter(f)
        self.block(f.body)
        if self.streams:  # what was written past the caches is seen by other threads once this is through
            self.writer.call("llvm.x86.sse.sfence", "void", [])
        return [*self.writer.lines, " ret void", "}"]

    # ---- values, and how wide an index is ----------------------------------------------------------------------------
    def enter(self, f: Function) -> None:
        """Look at the function before its first statement."""

    def value(self, x: Operand) -> str:
        return self.values[x] if isinstance(x, Var) else literal(x.value, x.type)

    def index(self, x: Operand) -> tuple[str, str]:
        """An index with its type."""
        return "i64", self.value(x)

    def count(self, f: For) -> tuple[str, str, str]:
        """A loop's bounds, and the type that it counts in."""
        return "i64", self.value(f.low), self.value(f.high)

    def counter(self, f: For, name: str, type: str) -> None:
        """A loop's index is `name`, of the type that it counts in."""
        self.values[f.index] = name

    def let(self, stmt: Let) -> None:
        self.values[stmt.result] = self.instructions.op(
            stmt.op, stmt.result.type, stmt.args, [self.value(a) for a in stmt.args])

    # ---- statements --------------------------------------------------------------------------------------------------
    def block(self, block: Block) -> None:
        for stmt in block:
            match stmt:
                case Let():
                    self.let(stmt)
                case Shuffle():
                    self.shuffle(stmt)
                case LoadFrom():
                    self.load(stmt)
                case StoreTo():
                    self.store(stmt)
                case GatherFrom():
                    self.gather(stmt)
                case For():
                    self.loop(stmt)
                case If():
                    self.when(stmt)

    def inner(self, block: Block) -> None:
        """A block of its own: pointers are made again where they are used, so that none is kept across a loop."""
        outer, self.pointers = self.pointers, {}
        self.block(block)
        self.pointers = outer

    def shuffle(self, stmt: Shuffle) -> None:
        (x, y), t, result = stmt.args, llvm_type(stmt.args[0].type), stmt.result
        if x.type.lanes == 1:
            t = spelled(SCALARS[x.type.dtype], 1)
            pair = f"<2 x {t}>"
            first = self.writer.put(f"insertelement {pair} poison, {t} {self.value(x)}, i32 0")
            both = self.writer.put(f"insertelement {pair} {first}, {t} {self.value(y)}, i32 1")
            t, operands = pair, f"{pair} {both}, {pair} poison"
        else:
            operands = f"{t} {self.value(x)}, {t} {self.value(y)}"
        if result.type.lanes > 1:
            numbers = ", ".join([f"i32 {i}" for i in stmt.lanes])
            self.values[result] = self.writer.put(f"shufflevector {operands}, <{len(stmt.lanes)} x i32> <{numbers}>")
            return
        (lane,), n = stmt.lanes, x.type.lanes
        source = operands.split(", ")[0] if n == 1 else f"{t} {self.value(x if lane < n else y)}"
        self.values[result] = self.writer.put(f"extractelement {source}, i32 {lane if n == 1 else lane % n}")

    # ---- memory ------------------------------------------------------------------------------------------------------
    def address(self, a: Address) -> str:
        """A pointer to buffer[base + offset]; the part without the offset is made once in a block."""
        scalar = memory_scalar(a.buffer.dtype)
        if isinstance(a.base, Literal):
            pointer, offset = self.buffers[a.buffer], a.offset + int(a.base.value)
        else:
            key, offset = (a.buffer, a.base), a.offset
            if key not in self.pointers:
                t, index = self.index(a.base)
                self.pointers[key] = self.writer.put(
                    f"getelementptr {scalar}, ptr {self.buffers[a.buffer]}, {t} {index}")
            pointer = self.pointers[key]
        return self.writer.put(f"getelementptr {scalar}, ptr {pointer}, i64 {offset}") if offset else pointer

    def mask(self, mask: Operand | None) -> str:
        """The mask of an access; empty where it is always true."""
        return "" if mask is None or (isinstance(mask, Literal) and mask.value) else self.value(mask)

    def loaded(self, result: Var, value: str) -> None:
        """A value as it lies in memory becomes a value of the loop IR."""
        if result.type.dtype == "bool":
            t = spelled("i8", result.type.lanes)
            value = self.writer.put(f"icmp ne {t} {value}, {'0' if result.type.lanes == 1 else 'zeroinitializer'}")
        self.values[result] = value

    def load(self, stmt: LoadFrom) -> None:
        type, pointer = stmt.result.type, self.address(stmt.address)
        self.loaded(stmt.result, self.accesses.load(memory_scalar(type.dtype), type.lanes, pointer, stmt.active,
                                                    self.mask(stmt.mask)))

    def gather(self, stmt: GatherFrom) -> None:
        type = stmt.result.type
        self.loaded(stmt.result, self.accesses.gather(
            memory_scalar(type.dtype), type.lanes, self.buffers[stmt.buffer], self.value(stmt.indices), stmt.active,
            self.mask(stmt.mask)))

    def store(self, stmt: StoreTo) -> None:
        type, pointer, value = stmt.value.type, self.address(stmt.address), self.value(stmt.value)
        scalar = memory_scalar(type.dtype)
        if type.dtype == "bool":
            value = self.writer.put(f"zext {llvm_type(type)} {value} to {spelled(scalar, type.lanes)}")
        if stmt.streaming and stmt.active == type.lanes and self.accesses.can_stream(scalar, type.lanes):
            self.streams = True
            self.accesses.stream(scalar, type.lanes, pointer, value)
        else:
            self.accesses.store(scalar, type.lanes, pointer, value, stmt.active)

    # ---- control -----------------------------------------------------------------------------------------------------
    def when(self, stmt: If) -> None:
        _, _, done = self.writer.branch(self.value(stmt.condition), stmt.likely)
        self.inner(stmt.body)
        self.writer.join(done)

    def loop(self, f: For) -> None:
        """The test is at the end; it is made before the loop too, unless the bounds are known."""
        known = isinstance(f.low, Literal) and isinstance(f.high, Literal)
        if known and f.low.value >= f.high.value:  # type: ignore[union-attr]
            self.values |= {r: self.value(i) for r, i in zip(f.results, f.inits)}
            return
        w, (t, low, high) = self.writer, self.count(f)
        inits, before = [self.value(i) for i in f.inits], w.label
        w.count += 1
        head, done = f"loop{w.count}", f"done{w.count}"
        if known:
            w.lines.append(f" br label %{head}")
        else:
            w.lines.append(f" br i1 {w.put(f'icmp slt {t} {low}, {high}')}, label %{head}, label %{done}")
        w.start(head)
        at, index = len(w.lines), w.new()
        self.values |= {p: w.new() for p in f.params}
        w.lines += [""] * (1 + len(f.params))
        self.counter(f, index, t)
        self.inner(f.body)
        following = w.put(f"add nsw {t} {index}, 1")
        yields = [self.value(y) for y in f.yields]
        for i, (type, name, init, again) in enumerate([(t, index, low, following), *zip(
                [llvm_type(p.type) for p in f.params], [self.values[p] for p in f.params], inits, yields)]):
            w.lines[at + i] = f" {name} = phi {type} [{init}, %{before}], [{again}, %{w.label}]"
        last = w.label
        w.lines.append(f" br i1 {w.put(f'icmp slt {t} {following}, {high}')}, label %{head}, label %{done}")
        w.start(done)
        for result, init, value in zip(f.results, inits, yields):
            skipped = "" if known else f", [{init}, %{before}]"
            self.values[result] = w.put(f"phi {llvm_type(result.type)} [{value}, %{last}]{skipped}")


def memory_scalar(dtype: str) -> str:
    """How an element lies in memory: a bool is a byte."""
    return "i8" if dtype == "bool" else SCALARS[dtype]
