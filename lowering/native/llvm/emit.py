"""Loop IR -> LLVM IR text: one instruction or intrinsic for each operation, in the order of the loop IR. The loop IR decides
vectorization, hoisting and unrolling, so that LLVM needs no optimisation pass.
"""
from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import repeat

from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...graph.types import ITEM_SIZES
from ...loops.ir import (
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
    StoreTile,
    StoreTo,
    Var,
    ZeroTile,
    buffers_written,
    first_of,
)
from ...machine_code.llvm_writer import OWN_ATTRIBUTES, Writer, attribute_group, quoted
from ...machine_code.split_module import FunctionText
from ...target.target import Target
from .amx import TileInstructions
from .arm_product_loops import ProductLoopWriter, reach_of
from .arm_products import Products, of_loop, orders_products, run_of
from .helper_functions import writer_for
from .instructions import Instructions
from .llvm_text import SCALARS, lane_numbers, literal, llvm_type, spelled
from .memory_accesses import MemoryAccesses
from .narrow_indices import NarrowIndices
from .outline_loops import outlined_loops
from .pointers import BlockEntry, Pointers
from .riscv import BLOCK_BITS

POINTER = re.compile(r"%p\d+\b")
"""Pattern of the pointer to a buffer in a function's text."""
POSTPONED = frozenset({"add"}), frozenset({"add", "splat", "cast"})
"""Operations on indices, scalars and vectors, that pointers usually replace."""


@dataclass(frozen=True, slots=True)
class EmittedEarlier:
    """Functions that are written before the others of their module, and compiled elsewhere. `texts` maps each to its text from
    the parameters on, by the first of the functions that differ only in buffers; `definitions` maps a text to its function."""
    texts: dict[Function, str] = field(default_factory=dict)
    definitions: dict[str, FunctionText] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Emitted:
    """Functions in an LLVM module. `names[i]` is the definition of functions[i], or its declaration if it is defined elsewhere;
    equal functions share one."""
    definitions: list[str]
    names: list[str]
    declarations: list[str]
    attributes: list[str]
    """Attribute group #0 of the definitions."""


def emit_functions(functions: Sequence[Function], target: Target, over: Sequence[frozenset[Buffer]] = (),
                   names: Sequence[str] = (), earlier: EmittedEarlier | None = None) -> Emitted:
    """Return definitions `define internal void @name(ptr %p0, ..., i64 %low, i64 %high) #0`: a pointer for each of params and
    scratch, and the row range if the function takes one. `over[i]` are buffers that functions[i] writes over others that it
    reads; the others that it writes share no byte with any buffer. `names[i]` is its name, if not its own; functions emitted
    `earlier` are declared."""
    declared: dict[str, str] = {}
    definitions: list[str] = []
    by_text: dict[str, str] = {}
    by_form: dict[tuple[Function, tuple[bool, ...]], str] = {}
    elsewhere: dict[str, None] = {}
    found = []
    for function, shared, name in zip(functions, over or repeat(frozenset()), names or [f.name for f in functions]):
        form = first_of(function), tuple([b in shared for b in (*function.params, *function.scratch)] if shared else ())
        text = (earlier.texts.get(form[0]) if earlier and not shared else None) or by_form.get(form)
        text = by_form[form] = text or emit_function(function, target, declared, shared)
        known = earlier.definitions.get(text) if earlier else None
        if known is not None:
            by_text[text] = known.name.strip('"')
            elsewhere[known.declaration] = None
        elif text not in by_text:
            by_text[text] = name
            definitions += f"define internal void @{quoted(name)}{text}".split("\n")
        found.append(by_text[text])
    declarations = [text for text in declared.values() if text.startswith("declare")]
    return Emitted(own_definitions(declared) + definitions, found, [*declarations, *elsewhere], [attributes(target)])


def emit_function(function: Function, target: Target, declared: dict[str, str], over: frozenset[Buffer] = frozenset()) -> str:
    """Return a function from its parameters on: equal texts are the same function. `declared` collects the module's other
    declarations."""
    return "\n".join(Emitter(target, declared).function(function, over))


def own_definitions(declared: Mapping[str, str]) -> list[str]:
    """Return the lines of definitions that functions need in their module."""
    return [line for text in declared.values() if text.startswith(("define", "@")) for line in text.splitlines()]


def attributes(target: Target) -> str:
    """Return the attributes, tuned for no processor: the schedule fixes the order of instructions, and LLVM's models of some
    processors (znver4, znver5) move loads up until sums that fit the registers exactly are spilled in the innermost loop."""
    attributes = [*OWN_ATTRIBUTES, f'"target-cpu"="{target.cpu}"', '"tune-cpu"="generic"']
    if target.features:
        attributes.append(f'"target-features"="{target.features}"')
    if target.has_vector_width:
        attributes.append(f'"prefer-vector-width"="{8 * target.vector_bytes}"')
    if scale := target.vector_register_bits // BLOCK_BITS:  # gives frames with vectors a known size
        attributes.append(f"vscale_range({scale},{scale})")
    return attribute_group(*attributes)


@dataclass(slots=True)
class Emitter:
    """The emitter of one function. `values` holds LLVM's names of variables; `postponed` the indices that may only be needed
    for pointers, with the lines where they are written otherwise; `alone` the buffers that share no byte with others; `outside`
    the values that an outlined loop takes from around it; `narrow` the 32-bit indices, on processors with such registers."""
    target: Target
    declared: dict[str, str]
    writer: Writer = field(init=False)
    accesses: MemoryAccesses = field(init=False)
    instructions: Instructions = field(init=False)
    pointers: Pointers = field(init=False)
    values: dict[Var, str] = field(default_factory=dict)
    postponed: dict[Var, tuple[Let, int]] = field(default_factory=dict)
    alone: frozenset[Buffer] = frozenset()
    outside: dict[Var, str] = field(default_factory=dict)
    tiles: TileInstructions = field(init=False)
    narrow: NarrowIndices | None = field(init=False)

    def __post_init__(self) -> None:
        self.writer = writer_for(self.target, self.declared)
        self.accesses = MemoryAccesses(self.writer, self.target)
        self.instructions = Instructions(self.writer, self.target)
        self.pointers = Pointers(self.writer, self.index, self.value)
        self.tiles = TileInstructions(self.writer)
        self.narrow = None if self.target.has_int64 else NarrowIndices(self.writer, self.target, self.value)

    def function(self, f: Function, over: frozenset[Buffer] = frozenset()) -> list[str]:
        """Return the function from its parameters on: equal texts are the same function. `over` are buffers that overlap
        others."""
        memory = (*f.params, *f.scratch)
        self.pointers.buffers = {b: f"%p{i}" for i, b in enumerate(memory)}
        self.alone = buffers_written(f) - over if len(self.pointers.buffers) == len(memory) else frozenset()
        params = [f"ptr{' noalias' if b in self.alone else ''} %p{i}" for i, b in enumerate(memory)]
        if f.rows:
            self.values |= {f.rows[0]: "%low", f.rows[1]: "%high"}
            params += ["i64 %low", "i64 %high"]
        self.writer.lines += [f"({', '.join(params)}) #0 {{", "entry:"]
        if self.narrow is not None:
            self.narrow.enter(f)
        self.block(f.body)
        self.accesses.finish()
        self.tiles.release()
        return [*filter(None, self.writer.finished()), " ret void", "}"]

    # ---- values, and how wide an index is ----------------------------------------------------------------------------
    def value(self, x: Operand) -> str:
        if not isinstance(x, Var):
            return literal(x.value, x.type)
        return self.values[x] if x in self.values else self.written(x)

    def written(self, x: Var) -> str:
        """Return the name of a value that is not written yet: a postponed value, written at its definition; a 32-bit index,
        widened; or a parameter, for a value defined around an outlined loop."""
        if self.narrow is not None and x in self.narrow.names:
            return self.narrow.widened(x)
        if x not in self.postponed:
            self.values[x] = self.outside[x] = f"%x{len(self.outside)}"
            return self.values[x]
        stmt, line = self.postponed.pop(x)
        self.writer.above(line, lambda: self.compute(stmt))
        return self.values[x]

    def index(self, x: Operand) -> tuple[str, str]:
        """Return an index with its type."""
        return self.narrow.index(x) if self.narrow is not None else ("i64", self.value(x))

    def bounds(self, f: For) -> tuple[str, str, str]:
        """Return the type of a loop's index, and its bounds."""
        narrow = self.narrow.bounds(f) if self.narrow is not None else None
        return narrow or ("i64", self.value(f.low), self.value(f.high))

    def let(self, stmt: Let) -> None:
        value = self.narrow.let(stmt) if self.narrow is not None else None
        if value is not None:
            if value:
                self.values[stmt.result] = value
        elif stmt.op in POSTPONED[stmt.result.type.lanes > 1] and stmt.result.type.dtype == "int64":
            self.postponed[stmt.result] = stmt, len(self.writer.lines)
            self.writer.lines.append("")
        else:
            self.compute(stmt)

    def compute(self, stmt: Let) -> str:
        value = self.values[stmt.result] = self.instructions.op(
            stmt.op, stmt.result.type, stmt.args, [self.value(a) for a in stmt.args])
        return value

    # ---- statements --------------------------------------------------------------------------------------------------
    def block(self, block: Block) -> None:
        outlined, behind = outlined_loops(block, self.target), 0
        for number, stmt in enumerate(block):
            if number < behind:
                continue
            if isinstance(stmt, LoadFrom) and orders_products(self.target) and (run := run_of(block[number:], self.target)):
                behind = number + run.count
                for index in run.indices:
                    self.pointers.let(index)
                    self.let(index)
                self.values |= self.products(run).run()
                continue
            match stmt:
                case Let():
                    self.pointers.let(stmt)
                    self.let(stmt)
                case Shuffle():
                    self.shuffle(stmt)
                case LoadFrom():
                    self.load(stmt)
                case StoreTo():
                    self.store(stmt)
                case Prefetch(address, near, writes):
                    self.accesses.prefetch(self.address(address), near, writes)
                case GatherFrom():
                    self.gather(stmt)
                case For() if number in outlined:
                    self.outline(stmt)
                case For():
                    self.loop(stmt)
                case If():
                    self.when(stmt)
                case ShapeTiles(shapes):
                    self.tiles.shape(shapes)
                case ZeroTile(tile):
                    self.tiles.zero(tile)
                case LoadTile(tile, address, stride):
                    self.tiles.load(tile, self.address(address), stride * ITEM_SIZES[address.buffer.dtype])
                case StoreTile(tile, address, stride):
                    self.tiles.store(tile, self.address(address), stride * ITEM_SIZES[address.buffer.dtype])
                case MultiplyTiles(total, x, y, signed):
                    self.tiles.multiply(total, x, y, signed)
                case MultiplyFloatTiles(total, x, y):
                    self.tiles.multiply_floats(total, x, y)

    def inner(self, block: Block) -> None:
        """Write an inner block. It makes its pointers again at their uses, so that none is live across a loop."""
        outer, self.pointers.made = self.pointers.made, {}
        self.block(block)
        self.pointers.made = outer

    def shuffle(self, stmt: Shuffle) -> None:
        (x, y), t, result = stmt.args, llvm_type(stmt.args[0].type), stmt.result
        if x.type.lanes == 1:
            t = spelled(SCALARS[x.type.dtype], 1)
            pair = f"<2 x {t}>"
            first = self.writer.put(f"insertelement {pair} poison, {t} {self.value(x)}, i32 0")
            both = self.writer.put(f"insertelement {pair} {first}, {t} {self.value(y)}, i32 1")
            if stmt.lanes == (0, 1):
                self.values[result] = both
                return
            t, operands = pair, f"{pair} {both}, {pair} poison"
        else:
            operands = f"{t} {self.value(x)}, {t} {self.value(y)}"
        if result.type.lanes > 1:
            self.values[result] = self.writer.put(f"shufflevector {operands}, {lane_numbers(stmt.lanes)}")
            return
        (lane,), n = stmt.lanes, x.type.lanes
        source = operands.split(", ")[0] if n == 1 else f"{t} {self.value(x if lane < n else y)}"
        self.values[result] = self.writer.put(f"extractelement {source}, i32 {lane if n == 1 else lane % n}")

    # ---- memory ------------------------------------------------------------------------------------------------------
    def address(self, a: Address) -> str:
        """Return a pointer to buffer[base + offset]; a block computes the address without the offset once."""
        scalar = memory_scalar(a.buffer.dtype)
        if isinstance(a.base, Literal):
            pointer, offset = self.pointers.buffers[a.buffer], a.offset + int(a.base.value)
        else:
            pointer, offset = self.pointers.to(a.buffer, scalar, a.base), a.offset
        return self.writer.put(f"getelementptr {scalar}, ptr {pointer}, i64 {offset}") if offset else pointer

    def mask(self, mask: Operand | None) -> str:
        """Return the mask of an access; empty if it is always true."""
        return "" if mask is None or (isinstance(mask, Literal) and mask.value) else self.value(mask)

    def loaded(self, result: Var, value: str) -> None:
        """Convert a value in memory to a value of the loop IR."""
        if result.type.dtype == "bool":
            t = spelled("i8", result.type.lanes)
            value = self.writer.put(f"icmp ne {t} {value}, {'0' if result.type.lanes == 1 else 'zeroinitializer'}")
        self.values[result] = value

    def load(self, stmt: LoadFrom) -> None:
        if self.narrow is not None:
            self.narrow.loaded(stmt)
        type, pointer = stmt.result.type, self.address(stmt.address)
        self.loaded(stmt.result, self.accesses.load(memory_scalar(type.dtype), type.lanes, pointer, stmt.active,
                                                    self.mask(stmt.mask)))

    def gather(self, stmt: GatherFrom) -> None:
        type, scalar = stmt.result.type, memory_scalar(stmt.result.type.dtype)
        pointer, index, indices = self.pointers.spread(stmt.buffer, scalar, stmt.indices)
        self.loaded(stmt.result, self.accesses.gather(
            scalar, type.lanes, pointer, (index, indices), stmt.active, self.mask(stmt.mask)))

    def store(self, stmt: StoreTo) -> None:
        type, pointer, value = stmt.value.type, self.address(stmt.address), self.value(stmt.value)
        scalar = memory_scalar(type.dtype)
        if type.dtype == "bool":
            value = self.writer.put(f"zext {llvm_type(type)} {value} to {spelled(scalar, type.lanes)}")
        if stmt.streaming and stmt.active == type.lanes and self.accesses.can_stream(scalar, type.lanes):
            self.accesses.stream(scalar, type.lanes, pointer, value)
        else:
            self.accesses.store(scalar, type.lanes, pointer, value, stmt.active)

    # ---- control -----------------------------------------------------------------------------------------------------
    def when(self, stmt: If) -> None:
        condition = self.value(stmt.condition)
        self.pointers.enter()
        with self.writer.when(condition, stmt.likely):
            self.inner(stmt.body)
            self.pointers.leave()

    def loop(self, f: For) -> None:
        """Write a loop with its test at the end; test before the loop too, unless the bounds are known."""
        known = isinstance(f.low, Literal) and isinstance(f.high, Literal)
        if known and f.low.value >= f.high.value:  # type: ignore[union-attr]
            self.values |= {r: self.value(i) for r, i in zip(f.results, f.inits)}
            return
        if products := of_loop(f, self.target):
            self.values |= self.products(products).loop(f)
            return
        if known and f.high.value - f.low.value == 1:  # type: ignore[union-attr]
            self.once(f)
            return
        w, (t, low, high) = self.writer, self.bounds(f)
        every, kept = list(zip(f.params, map(self.value, f.inits), f.yields, f.results)), unchanged(f)
        carried = [c for c in every if c[0] not in kept]  # an unchanged value needs no phi
        self.values |= {v: init for p, init, _, r in every if p in kept for v in (p, r)}
        head, done = w.blocks("loop", "done")
        inits, types = [init for _, init, _, _ in carried], [llvm_type(p.type) for p, *_ in carried]
        entered = "" if known else w.put(f"icmp slt {t} {low}, {high}")
        self.pointers.enter()
        if known:
            w.jump(head(low, *inits))
        else:
            w.branch(entered, head(low, *inits), done(*inits))
        index, *params = [x.name for x in w.enter(head, t, *types)]
        self.values |= {p: name for (p, *_), name in zip(carried, params)}
        (self.narrow.names if self.narrow is not None and t == "i32" else self.values)[f.index] = index
        self.inner(f.body)
        self.pointers.leave()
        following = w.put(f"add nsw {t} {index}, 1")
        again = [self.value(y) for _, _, y, _ in carried]
        more = w.put(f"icmp slt {t} {following}, {high}")
        w.branch(more, head(following, *again), done if known else done(*again))
        results = again if known else [x.name for x in w.enter(done, *types)]
        if known:
            w.enter(done)
        self.values |= {result: value for (*_, result), value in zip(carried, results)}

    def once(self, f: For) -> None:
        """Write the body alone. Loops of one iteration exist to be divided among threads. LLVM does not remove all of them, and
        keeps more values in registers around those that stay."""
        t, low, _ = self.bounds(f)
        self.values |= {p: self.value(i) for p, i in zip(f.params, f.inits)}
        (self.narrow.names if self.narrow is not None and t == "i32" else self.values)[f.index] = low
        self.pointers.enter()
        self.inner(f.body)
        self.pointers.leave()
        self.values |= {r: self.value(y) for r, y in zip(f.results, f.yields)}

    def products(self, found: Products) -> ProductLoopWriter:
        return ProductLoopWriter(self.writer, found, self.index, self.value, self.pointers.buffers,
                                 reach=reach_of(self.target))

    def outline(self, f: For) -> None:
        """Replace the loop by a call of a function with the loop. Equal loops share one function."""
        inner = Emitter(self.target, self.declared)
        inner.pointers.buffers, inner.alone = self.pointers.buffers, self.alone
        inner.writer.lines += ["entry:", ""]
        inner.pointers.entries += [BlockEntry(1)] * len(self.pointers.entries)
        inner.loop(f)
        self.accesses.streams |= inner.accesses.streams
        lines = [*filter(None, inner.writer.finished()), " ret void", "}"]
        used = set(POINTER.findall("\n".join(lines)))
        pointers = [(f"ptr{' noalias' if b in self.alone else ''}", name)
                    for b, name in self.pointers.buffers.items() if name in used]
        taken = pointers + [(llvm_type(x.type), name) for x, name in inner.outside.items()]
        text = "\n".join([f"({', '.join(f'{t} {name}' for t, name in taken)}) #0 {{", *lines])
        name = f"loop.{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
        self.declared[name] = f"define internal void @{name}{text}"
        given = [name for _, name in pointers] + [self.value(x) for x in inner.outside]
        arguments = ", ".join(f"{t.removesuffix(' noalias')} {value}" for (t, _), value in zip(taken, given))
        self.writer.do(f"call void @{name}({arguments})")


def unchanged(f: For) -> frozenset[Var]:
    """Return the parameters of a loop that each iteration yields unchanged, perhaps through inner loops that do the same."""
    source: dict[Operand, Operand] = {}
    for stmt in f.body:
        if isinstance(stmt, For):
            kept = unchanged(stmt)
            source |= {r: source.get(i, i) for p, i, r in zip(stmt.params, stmt.inits, stmt.results) if p in kept}
    return frozenset([p for p, y in zip(f.params, f.yields) if source.get(y, y) is p])


def memory_scalar(dtype: str) -> str:
    """Return LLVM's type of an element in memory: a bool is a byte."""
    return "i8" if dtype == "bool" else SCALARS[dtype]
