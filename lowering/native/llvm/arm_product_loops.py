"""Product loops by pairs of 16 bits (SMLAD) on 32-bit Arm, and of bytes on processors without vectors, written so that LLVM
keeps the order and the registers of the schedule (`schedule/contraction/micro_kernels`).

LLVM has few registers here (fourteen of Arm, on RISC-V about 26), and spends them otherwise where it can: loop strength
reduction shares one index among all streams and keeps a base for each, and the scheduler moves loads up until sums are spilled.
So each stream has its own pointer, and an opaque intrinsic hides its next value from strength reduction; loads are volatile,
and load two words where possible (LDRD); and before a load the computed sums pass through an empty piece of assembly, across
which nothing is moved. None of it is an instruction.
"""
from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...graph.types import ITEM_SIZES
from ...loops.ir import For, Let, Literal, Operand, Var
from ...machine_code.llvm_writer import Writer
from ...target.target import Target
from .arm import widened
from .arm_products import BYTES, WORD, Place, Products, Terms
from .pointers import OPAQUE

WORD_BYTES = 4
REACH_BYTES, THUMB_REACH_BYTES = 1000, 28
"""Maximum offset in bytes of a load from the pointer of its stream: of two words, 1020 (LDRD); on Thumb without Thumb-2, of a
byte, 31. Known."""
Index = Callable[[Operand], tuple[str, str]]


@dataclass(slots=True)
class Stream:
    """Loads of one stride: the pointer to the first of them, at `low` bytes from the buffer's terms."""
    low: int
    step: int
    pointer: str
    now: str = ""


@dataclass(slots=True)
class ProductLoopWriter:
    """The writer of one loop, or a run of products. `waiting` holds the sums that were computed since the last pin."""
    writer: Writer
    product: Products
    index: Index
    value: Callable[[Operand], str]
    buffers: Mapping[Buffer, str]
    values: dict[Var, str] = field(default_factory=dict)
    words: dict[Var, tuple[str, str]] = field(default_factory=dict)
    streams: dict[Var, Stream] = field(default_factory=dict)
    waiting: list[Var] = field(default_factory=list)
    reach: int = REACH_BYTES

    def run(self) -> dict[Var, str]:
        """Write a run of products; return its values."""
        for stream in self.entered():
            stream.now = stream.pointer
        self.body()
        return self.values

    def body(self) -> None:
        for stmt in self.product.sums:
            self.product_of(stmt)
        self.pin()

    def loop(self, f: For) -> dict[Var, str]:
        """Write the loop as a function of its streams' pointers and its sums' initial values; return its results. Around an
        inline loop LLVM keeps other values in the registers that the sums need. Equal loops share one function."""
        assert isinstance(f.low, Literal) and isinstance(f.high, Literal)
        streams, inits, count = self.entered(), [self.value(i) for i in f.inits], int(f.high.value) - int(f.low.value)
        given = [("ptr", s.pointer) for s in streams] + [("i32", i) for i in dict.fromkeys(inits)]
        taken = {value: f"%x{i}" for i, (_, value) in enumerate(given)}
        for stream in streams:
            stream.pointer = taken[stream.pointer]
        w, t = Writer(self.writer.declared), record(len(inits))
        inner = replace(self, writer=w, values={}, words={}, waiting=[])
        made = inner.iterations(f, streams, [taken[i] for i in inits], count)
        w.do(f"ret {t} {in_record(w, made)}")
        parameters = ", ".join(f"{type} {taken[value]}" for type, value in given)
        text = "\n".join([f"({parameters}) #0 {{", "entry:", *filter(None, w.finished()), "}"])
        name = f"products.{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
        self.writer.declared[name] = f"define internal {t} @{name}{text}"
        arguments = ", ".join(f"{type} {value}" for type, value in given)
        return dict(zip(f.results, self.parts(self.writer.put(f"call {t} @{name}({arguments})"), len(made))))

    def iterations(self, f: For, streams: Sequence[Stream], inits: Sequence[str], count: int) -> list[str]:
        """Write all iterations; return the sums after them."""
        w = self.writer
        head, done = w.blocks("products", "done")
        w.jump(head(f"{count}", *[s.pointer for s in streams], *inits))
        left, *params = [x.name for x in w.enter(head, "i32", *["ptr"] * len(streams), *["i32"] * len(inits))]
        for stream, now in zip(streams, params):
            stream.now = now
        self.values |= dict(zip(f.params, params[len(streams):]))
        self.body()
        moved = [w.intrinsic(OPAQUE, "ptr", [("ptr", w.put(f"getelementptr i8, ptr {s.now}, i32 {s.step}"))]) for s in streams]
        following = w.put(f"sub i32 {left}, 1")
        again = [self.values[y] for y in f.yields if isinstance(y, Var)]
        w.branch(w.put(f"icmp ne i32 {following}, 0"), head(following, *moved, *again), done)
        w.enter(done)
        return again

    def parts(self, made: str, count: int) -> list[str]:
        """Return the values of a record."""
        return [made] if count == 1 else [self.writer.put(f"extractvalue {record(count)} {made}, {i}") for i in range(count)]

    # ---- streams -----------------------------------------------------------------------------------------------------
    def entered(self) -> list[Stream]:
        """Return the streams, and assign each load to one."""
        found: list[Stream] = []
        open_streams: dict[tuple[Buffer, Terms, int], Stream] = {}
        for load, place in sorted(self.product.loads.items(), key=lambda item: item[1].offset):
            key = place.buffer, place.terms, place.step
            stream = open_streams.get(key)
            if stream is None or place.offset - stream.low > self.reach:
                stream = open_streams[key] = Stream(place.offset, place.step, self.start(place))
                found.append(stream)
            self.streams[load] = stream
        return found

    def start(self, place: Place) -> str:
        """Return the pointer of a stream before the loop."""
        pointer, size = self.buffers[place.buffer], ITEM_SIZES[place.buffer.dtype]
        for term in place.terms:
            t, index = self.index(term)
            pointer = self.writer.put(f"getelementptr i{8 * size}, ptr {pointer}, {t} {index}")
        return self.writer.put(f"getelementptr i8, ptr {pointer}, i32 {place.offset}") if place.offset else pointer

    # ---- the body ----------------------------------------------------------------------------------------------------
    def product_of(self, stmt: Let) -> None:
        total, *factors = stmt.args
        if stmt.op == "add":
            self.add_product(stmt, total, factors[0])
            return
        words = zip(*map(self.pair, factors))
        made = self.word(total)
        for two in words:
            made = self.writer.intrinsic("llvm.arm.smlad", "i32", [("i32", w) for w in (*two, made)])
        self.values[stmt.result] = made
        self.waiting = [x for x in self.waiting if x is not total] + [stmt.result]

    def add_product(self, stmt: Let, total: Operand, product: Operand) -> None:
        """Add one product to a sum (MLA)."""
        assert isinstance(product, Var)
        x, y = map(self.number, self.product.operations[product].args)
        made = self.writer.put(f"mul i32 {x}, {y}")
        self.values[stmt.result] = self.writer.put(f"add i32 {self.word(total)}, {made}")
        self.waiting = [x for x in self.waiting if x is not total] + [stmt.result]

    def number(self, x: Operand) -> str:
        """Return a factor: a widened byte, perhaps plus an offset."""
        if not isinstance(x, Var) or x in self.values:
            return self.value(x) if not isinstance(x, Var) else self.values[x]
        match self.product.operations.get(x):
            case Let(op="cast", args=(byte,)):
                extend = "zext" if byte.type.dtype == "uint8" else "sext"
                self.values[x] = self.writer.put(f"{extend} i8 {self.word(byte)} to i32")
            case Let(op=op, args=(a, b)):
                self.values[x] = self.writer.put(f"{op} i32 {self.number(a)}, {self.number(b)}")
            case _:
                return self.word(x)
        return self.values[x]

    def pair(self, x: Operand) -> tuple[str, str]:
        """Return both words of a factor; load or widen them at the first use."""
        assert isinstance(x, Var)
        if x not in self.words:
            match self.product.operations.get(x):
                case Let(args=(four, offset)):
                    extend, word, added = "uxt" if four.type.dtype == "uint8" else "sxt", self.word(four), self.value(offset)
                    first, second = (widened(self.writer, extend, word, rotated, added) for rotated in (False, True))
                    self.words[x] = first, second
                case _ if x in self.product.loads:
                    self.pin()
                    self.words[x] = self.two(x)
                case _:
                    first, second = (self.writer.put(f"extractelement <2 x i32> {self.value(x)}, i32 {i}") for i in range(2))
                    self.words[x] = first, second
        return self.words[x]

    def word(self, x: Operand) -> str:
        """Return a word: a sum, or four bytes."""
        if isinstance(x, Var) and x not in self.values:
            match self.product.operations.get(x):
                case Let(args=(word,)):
                    return self.word(word)
                case _ if x in self.product.loads:
                    self.load(x)
        if isinstance(x, Var) and x in self.values:
            return self.values[x]
        return self.writer.put(f"bitcast <4 x i8> {self.value(x)} to i32") if x.type.lanes > 1 else self.value(x)

    # ---- loads -------------------------------------------------------------------------------------------------------
    def load(self, x: Var) -> None:
        """Load a word, together with the next word if both are aligned."""
        self.pin()
        place = self.product.loads[x]
        if x.type in BYTES:
            self.values[x] = self.writer.put(f"load volatile i8, ptr {self.pointer(x)}, align 1")
            return
        beside = next((y for y, p in self.product.loads.items() if self.streams[y] is self.streams[x] and y not in self.values
                       and y.type == x.type == WORD and p.offset == place.offset + WORD_BYTES), None)
        if beside is not None:
            self.values[x], self.values[beside] = self.two(x)
        else:
            align = WORD_BYTES if x.type == WORD else 1
            self.values[x] = self.writer.put(f"load volatile i32, ptr {self.pointer(x)}, align {align}")

    def two(self, x: Var) -> tuple[str, str]:
        """Load two words at once."""
        w = self.writer
        both = w.put(f"load volatile i64, ptr {self.pointer(x)}, align {WORD_BYTES}")
        return w.put(f"trunc i64 {both} to i32"), w.put(f"trunc i64 {w.put(f'lshr i64 {both}, 32')} to i32")

    def pointer(self, x: Var) -> str:
        stream = self.streams[x]
        by = self.product.loads[x].offset - stream.low
        return self.writer.put(f"getelementptr i8, ptr {stream.now}, i32 {by}") if by else stream.now

    def pin(self) -> None:
        """Write a barrier for code motion: sums before it are computed before the loads after it."""
        if not self.waiting:
            return
        count = len(self.waiting)
        given = ", ".join(f"i32 {self.values[x]}" for x in self.waiting)
        constraints = ",".join([*["=r"] * count, *map(str, range(count))])
        made = self.writer.put(f'call {record(count)} asm sideeffect "", "{constraints}"({given})')
        self.values |= dict(zip(self.waiting, self.parts(made, count)))
        self.waiting = []


def reach_of(target: Target) -> int:
    is_short = target.triple.startswith("thumb") and "thumb2" not in target.enabled
    return THUMB_REACH_BYTES if is_short else REACH_BYTES


def record(count: int) -> str:
    """Return LLVM's type of `count` words."""
    return "i32" if count == 1 else f"{{ {', '.join(['i32'] * count)} }}"


def in_record(w: Writer, values: Sequence[str]) -> str:
    """Return words as one value."""
    if len(values) == 1:
        return values[0]
    made = "poison"
    for i, x in enumerate(values):
        made = w.put(f"insertvalue {record(len(values))} {made}, i32 {x}, {i}")
    return made
