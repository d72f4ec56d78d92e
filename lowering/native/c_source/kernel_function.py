"""A function of the loop IR as a C function: loops become for-loops, conditions ifs, and each value a named constant.
Consecutive lane-wise operations share one loop over the lanes, which compilers vectorize.

Memory that several buffers share has no type of its own: elements of more than one byte are read and written there by functions
that copy bytes, which keeps C's strict aliasing rule. Memory that has a type (constants, variables, the caller's tensors) is
read and written as an array.
"""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import field

from ....runtime.errors import Problem
from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...graph.types import ITEM_SIZES
from ...loops.ir import (
    INDEX,
    Block,
    For,
    Function,
    GatherFrom,
    If,
    Let,
    Literal,
    LoadFrom,
    Operand,
    Prefetch,
    Shuffle,
    Stmt,
    StoreTo,
    Type,
    Var,
    buffers_written,
    walk,
)
from ..llvm.llvm_text import KINDS
from .c_text import COLUMNS, SCALARS, c_type, literal, memory_type
from .helpers import Helpers
from .indices import TYPES, Indices
from .operations import Operations

LONGEST_INDEX = 60
"""Maximum number of characters of an index that is written at its use instead of being named."""
BY_LANES = frozenset({"lookup", "pack", "dot4", "dot4_signed", "dot2", "pairs", "dot_pairs", "dot8", "dot", "any_false",
                      "bits"})
"""Vector operations that are not lane-wise."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A buffer as a function sees it: `is_shared` if other buffers use its bytes at other times, `is_alone` if it shares no
    bytes with the other buffers of this call."""
    is_shared: bool
    is_alone: bool


def placeholder(number: int) -> str:
    """Return the placeholder for the name of parameter `number`: functions that differ in names alone are one."""
    return f"@{number}@"


PLACEHOLDER = re.compile(r"@(\d+)@")


@dataclass(slots=True)
class LaneLoop:
    """The statements of the open loop over lanes, and the declarations of the vectors that they define."""
    lanes: int
    declared: list[str] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)


@dataclass(slots=True)
class KernelFunction:
    """The writer of one function. `names` holds the names of values, `inlined` the indices that are written at their use."""
    function: Function
    memory: Sequence[Memory]
    helpers: Helpers
    has_fma: bool = False
    indices: Indices = field(default_factory=Indices)
    operations: Operations = field(init=False)
    buffers: dict[Buffer, int] = field(init=False)
    uses: Counter[Var] = field(init=False)
    yielded: frozenset[Var] = field(init=False)
    names: dict[Var, str] = field(default_factory=dict)
    unsigned: dict[Var, str] = field(default_factory=dict)
    """Signed variables that are stored as unsigned; their entry in `names` is their value as a signed integer."""
    inlined: dict[Var, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    loops: int = 0
    open: LaneLoop | None = None

    def __post_init__(self) -> None:
        f = self.function
        self.operations = Operations(self.helpers, self.indices.span, self.has_fma)
        self.buffers = {b: i for i, b in reversed(list(enumerate((*f.params, *f.scratch))))}
        self.indices.enter(f)
        self.uses = live_uses(f, self.indices)
        self.yielded = frozenset(y for s in walk(f.body) if isinstance(s, For) for y in s.yields if isinstance(y, Var))

    def body(self) -> str:
        """Return the function's statements, with placeholders for parameters."""
        f = self.function
        self.names |= dict(zip(f.rows or (), ("low", "high")))
        self.block(f.body)
        self.flush()
        return "\n".join(self.lines)

    def parameters(self) -> list[str]:
        """Return the parameters: a pointer for each buffer, and the row range if the function takes one."""
        f, written = self.function, buffers_written(self.function)
        found = []
        for i, (b, memory) in enumerate(zip((*f.params, *f.scratch), self.memory, strict=True)):
            t = "void" if memory.is_shared and ITEM_SIZES[b.dtype] > 1 else memory_type(b.dtype)
            const, alone = "" if b in written else "const ", " restrict " if memory.is_alone else ""
            found.append(f"{const}{t} *{alone.lstrip()}{placeholder(i)}")
        return found + [f"{TYPES[self.indices.width(*f.rows)]} {name}" for name in ("low", "high") if f.rows]

    def unused(self) -> list[str]:
        """Return the parameters that no statement reads or writes."""
        text, f = "\n".join(self.lines), self.function
        named = [placeholder(i) for i in range(len(f.params) + len(f.scratch)) if placeholder(i) not in text]
        return named + [name for name in ("low", "high") if f.rows and not re.search(rf"\b{name}\b", text)]

    # ---- lines -------------------------------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        self.flush()
        self.lines.append("    " * self.depth + text)

    def lane(self, lanes: int, statement: str, declared: str = "") -> None:
        """Add a statement for each lane `l`."""
        if self.open is None or self.open.lanes != lanes:
            self.flush()
            self.open = LaneLoop(lanes)
        self.open.declared += [declared] * bool(declared)
        self.open.statements.append(statement)

    def flush(self) -> None:
        loop, self.open = self.open, None
        if loop is None:
            return
        indent = "    " * self.depth
        self.lines += [indent + text for text in loop.declared]
        head = f"for (int l = 0; l < {loop.lanes}; ++l)"
        if len(loop.statements) == 1:
            self.lines += [f"{indent}{head}", f"{indent}    {loop.statements[0]}"]
        else:
            self.lines += [f"{indent}{head} {{", *(f"{indent}    {s}" for s in loop.statements), f"{indent}}}"]

    # ---- values ------------------------------------------------------------------------------------------------------
    def named(self, x: Var, stem: str) -> str:
        self.names[x] = f"{stem}{x.id}"
        return self.names[x]

    def value(self, x: Operand) -> str:
        """Return a scalar operand, or a whole vector that has a name."""
        if not isinstance(x, Var):
            return literal(x.value, x.type.dtype)
        if x in self.inlined:
            return f"({self.inlined[x]})"
        return self.names[x]

    def one(self, x: Operand, lane: str = "l") -> str:
        """Return one lane of an operand."""
        return self.value(x) if x.type.lanes == 1 or not isinstance(x, Var) else f"{self.value(x)}.at[{lane}]"

    def whole(self, x: Operand) -> str:
        """Return the C variable of an operand; define one for a literal."""
        self.flush()
        if isinstance(x, Var):
            return self.value(x)
        name = f"literal{len(self.lines)}"
        if x.type.lanes == 1:
            self.line(f"const {c_type(x.type)} {name} = {self.value(x)};")
            return name
        self.line(f"{self.type(x.type)} {name};")
        self.lane(x.type.lanes, f"{name}.at[l] = {self.value(x)};")
        self.flush()
        return name

    def type(self, type: Type) -> str:
        return c_type(type) if type.lanes == 1 else self.helpers.vector(type)

    def define(self, x: Var, expression: str, stem: str = "t") -> None:
        """Define a scalar, or each lane of a vector."""
        name = self.named(x, stem)
        if x.type.lanes == 1:
            self.line(f"const {c_type(x.type)} {name} = {expression};")
        else:
            self.lane(x.type.lanes, f"{name}.at[l] = {expression};", f"{self.type(x.type)} {name};")

    # ---- statements --------------------------------------------------------------------------------------------------
    def block(self, block: Block) -> None:
        for stmt in block:
            match stmt:
                case Let(result) | LoadFrom(result) | GatherFrom(result) | Shuffle(result):
                    if self.uses[result]:
                        self.definition(stmt)
                case StoreTo():
                    self.store(stmt)
                case For():
                    self.loop(stmt)
                case If(condition, body):
                    self.line(f"if ({self.value(condition)}) {{")
                    self.inner(body)
                    self.line("}")
                case Prefetch():
                    pass
                case _:
                    raise tiles(self.function)

    def inner(self, body: Block) -> None:
        self.depth += 1
        self.block(body)
        self.flush()
        self.depth -= 1

    def definition(self, stmt: Let | LoadFrom | GatherFrom | Shuffle) -> None:
        match stmt:
            case Let(result) if (known := self.indices.decided(stmt)) is not None:
                self.define(result, "true" if known else "false")
            case Let() if stmt.op in BY_LANES or stmt.op.startswith("reduce_"):
                self.by_lanes(stmt)
            case Let(result, "lanes", (first,)):
                lane = "" if result.type.lanes == 1 else f" + ({c_type(Type(result.type.dtype))})l"
                self.define(result, f"{self.value(first)}{lane}")
            case Let() if stmt.result.type is INDEX:
                self.index(stmt)
            case Let(result, op, args):
                self.define(result, self.operations.expression(op, result.type, args, [self.one(a) for a in args]))
            case LoadFrom():
                self.load(stmt)
            case GatherFrom(result, buffer, indices, active, mask):
                self.read(result, buffer, self.one(indices), active, mask)
            case Shuffle(result, (x, y), lanes):
                pairs = [(x, n) if n < x.type.lanes else (y, n - x.type.lanes) for n in lanes]
                texts = [self.one(v, str(n)) for v, n in pairs]
                self.flush()
                if result.type.lanes == 1:
                    self.define(result, texts[0], "lane")
                else:
                    self.line(f"const {self.type(result.type)} {self.named(result, 't')} = {{{{")
                    self.lines += filled(texts, self.depth + 1)
                    self.line("}};")

    def by_lanes(self, stmt: Let) -> None:
        """Define the result of an operation that is not lane-wise."""
        (first, *others), result, n = stmt.args, stmt.result, stmt.result.type.lanes
        match stmt.op:
            case "bits" if first.type.lanes == n:
                self.define(result, self.operations.expression("bits", result.type, stmt.args, [self.one(first)]))
            case "bits":
                source, name = self.whole(first), self.named(result, "t")
                self.line(f"{self.type(result.type)} {name};")
                self.line(f"COPY(&{name}, &{source}, sizeof {name});")
            case "lookup":
                quarters = ", ".join(f"&{self.whole(q)}" for q in others)
                self.define(result, f"{self.helpers.lookup()}({self.one(first)}, {quarters})")
            case "pack":
                self.pack(result, first, others[0])
            case "dot4" | "dot4_signed":
                self.dot4("uint8" if stmt.op == "dot4" else "int8", result, first, *others)
            case "dot2":
                self.dot2(result, first, *others)
            case "pairs":
                self.pairs(result, first, *others)
            case "dot_pairs":
                self.dot_pairs(result, first, *others)
            case "dot8":
                self.dot8(result, first, *others)
            case "dot":
                self.dot(result, first, *others)
            case "any_false":
                self.folded(result, first, "and", "!")
            case _:
                self.folded(result, first, stmt.op.removeprefix("reduce_"))

    def pack(self, result: Var, x: Operand, y: Operand) -> None:
        """Saturate both operands to half the size, and interleave them in groups of 16 bytes."""
        group, name = 16 // ITEM_SIZES[x.type.dtype], self.named(result, "t")
        clip = self.helpers.saturated(x.type.dtype, result.type.dtype)
        at = f"l / {group} * {2 * group} + l % {group}"
        self.lane(x.type.lanes, f"{name}.at[{at}] = {clip}({self.one(x)});", f"{self.type(result.type)} {name};")
        self.lane(x.type.lanes, f"{name}.at[{at} + {group}] = {clip}({self.one(y)});")
        self.flush()

    def dot4(self, dtype: str, result: Var, total: Operand, x: Operand, y: Operand) -> None:
        """acc + four products in each lane, of bytes of type `dtype` and signed bytes."""
        lanes = 4 * result.type.lanes
        a, b = self.as_bits(result, x, Type(dtype, lanes), "x"), self.as_bits(result, y, Type("int8", lanes), "y")
        add, at, terms = self.helpers.wrapping("add", "int32"), "" if lanes == 4 else "4 * l + ", self.one(total)
        for i in range(4):
            terms = f"{add}({terms}, (int32_t){a}.at[{at}{i}] * {b}.at[{at}{i}])"
        self.define(result, terms)

    def dot2(self, result: Var, total: Operand, x: Operand, y: Operand) -> None:
        """acc + two products of 16-bit numbers in each lane."""
        add, (a, b), terms = self.helpers.wrapping("add", "int32"), (self.whole(x), self.whole(y)), self.one(total)
        at = "" if result.type.lanes == 1 else "2 * l + "
        for i in range(2):
            terms = f"{add}({terms}, (int32_t){a}.at[{at}{i}] * {b}.at[{at}{i}])"
        self.define(result, terms)

    def as_bits(self, result: Var, x: Operand, type: Type, which: str) -> str:
        """Return the name of a bit-cast copy of an operand."""
        name, source = f"bits{result.id}{which}", self.whole(x)
        self.line(f"{self.type(type)} {name};")
        self.line(f"COPY(&{name}, &{source}, sizeof {name});")
        return name

    def pairs(self, result: Var, x: Operand, offset: Operand) -> None:
        """Four bytes, each plus an offset, as pairs of 16 bits in two words."""
        word = self.as_bits(result, x, Type("uint32"), "w")
        rotated = f"{word} >> 8 * l | {word} << (32 - 8 * l) % 32"
        self.define(result, f"{self.helpers.pair(x.type.dtype)}({rotated}, {self.value(offset)})")

    def dot_pairs(self, result: Var, total: Operand, x: Operand, y: Operand) -> None:
        """acc + the products of all 16-bit numbers."""
        terms, dot = self.value(total), self.helpers.dot_pair()
        for i in range(x.type.lanes):
            terms = f"{dot}({terms}, {self.one(x, str(i))}, {self.one(y, str(i))})"
        self.define(result, terms)

    def dot8(self, result: Var, total: Operand, x: Operand, y: Operand) -> None:
        """2 x 2 sums: acc + the products of two rows and two columns of eight bytes."""
        add, (a, b) = self.helpers.wrapping("add", "int32"), (self.whole(x), self.whole(y))
        terms = self.one(total)
        for i in range(8):
            terms = f"{add}({terms}, {a}.at[l / 2 * 8 + {i}] * {b}.at[l % 2 * 8 + {i}])"
        self.define(result, terms)

    def dot(self, result: Var, total: Operand, x: Operand, y: Operand) -> None:
        """acc + the products of all lanes."""
        name, add = self.named(result, "t"), self.helpers.wrapping("add", "int32")
        if x.type.lanes == 1:
            self.define(result, f"{add}({self.one(total)}, {self.one(x)} * {self.one(y)})")
            return
        self.lane(x.type.lanes, f"{name} = {add}({name}, {self.one(x)} * {self.one(y)});",
                  f"int32_t {name} = {self.value(total)};")
        self.flush()

    def folded(self, result: Var, x: Operand, op: str, sign: str = "") -> None:
        """Reduce all lanes: combine lane i with lane i + n/2 and repeat for the half; take an odd number of lanes one after the
        other."""
        n, element = x.type.lanes, Type(x.type.dtype)
        if n == 1:
            self.define(result, f"{sign}{self.value(x)}")
            return
        source, name = self.whole(x), f"folded{result.id}"
        self.line(f"{self.type(x.type)} {name} = {source};")
        while n > 1:
            count, other = (n // 2, f"l + {n // 2}") if n % 2 == 0 else (n - 1, "l + 1")
            left = f"{name}.at[l]" if n % 2 == 0 else f"{name}.at[0]"
            texts = [left, f"{name}.at[{other}]"]
            unknown = [Var(-1, element, 0), Var(-1, element, 0)]
            combined = self.operations.expression(op, element, unknown, texts)
            if count == 1:
                self.line(f"{left} = {combined};".replace("[l + 1]", "[1]").replace("[l]", "[0]"))
            else:
                self.lane(count, f"{left} = {combined};")
                self.flush()
            n = n // 2 if n % 2 == 0 else 1
        self.define(result, f"{sign}{name}.at[0]")

    # ---- indices -----------------------------------------------------------------------------------------------------
    def index(self, stmt: Let) -> None:
        """Define an index in the narrowest type that holds it, or write it inline if it is short and used once."""
        result, args, spans = stmt.result, stmt.args, self.indices
        if not spans.is_exact(stmt):
            texts = [self.value(a) for a in args]
            wide = [f"(int64_t){t}" if a.type is INDEX and isinstance(a, Var) and spans.width(a) != "int64" else t
                    for a, t in zip(args, texts)]
            self.define(result, self.operations.expression(stmt.op, result.type, args, wide), "i")
            return
        kept = spans.width(result)
        if stmt.op == "cast":
            text = self.operations.expression("cast", INDEX, args, [self.value(args[0])])
            text = self.value(args[0]) if KINDS[args[0].type.dtype] != "float" and args[0].type.dtype != "bool" else text
        else:
            text = self.sum(stmt, spans.width(result, *args), kept)
        if self.uses[result] == 1 and len(text) <= LONGEST_INDEX and stmt.op in ("add", "sub", "mul") and (
                result not in self.yielded):
            self.inlined[result] = text
        else:
            self.line(f"const {TYPES[kept]} {self.named(result, 'i')} = {text};")

    def sum(self, stmt: Let, needed: str, kept: str) -> str:
        """Return an index computed in the type `needed`, which holds operands and result."""
        texts = [self.value(a) for a in stmt.args]
        if stmt.op == "splat":
            return texts[0]
        if needed != "int16" and not any(self.indices.width(a) == needed for a in stmt.args if isinstance(a, Var)):
            first = next(i for i, a in enumerate(stmt.args) if isinstance(a, Var)) if any(
                isinstance(a, Var) for a in stmt.args) else 0
            texts[first] = f"({TYPES[needed]}){texts[first]}"
        signs = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&"}
        if stmt.op in signs:
            return f"{texts[0]} {signs[stmt.op]} {texts[1]}"
        x, y = texts
        return f"{y} {'<' if stmt.op.startswith('min') else '>'} {x} ? {y} : {x}"

    def place(self, base: Operand, offset: int) -> str:
        """Return the index of an element: base + offset."""
        if isinstance(base, Literal):
            return str(int(base.value) + offset)
        text = self.inlined.get(base) or self.names[base]
        return text if not offset else f"{text} {'+' if offset > 0 else '-'} {abs(offset)}"

    # ---- memory ------------------------------------------------------------------------------------------------------
    def is_shared(self, buffer: Buffer) -> bool:
        return self.memory[self.buffers[buffer]].is_shared and ITEM_SIZES[buffer.dtype] > 1

    def element(self, buffer: Buffer, index: str) -> str:
        """Return the load of the buffer's element at an index."""
        pointer = placeholder(self.buffers[buffer])
        if self.is_shared(buffer):
            return f"{self.helpers.get(buffer.dtype)}({pointer}, {index})"
        return f"{pointer}[{index}]" + (" != 0" if buffer.dtype == "bool" else "")

    def load(self, stmt: LoadFrom) -> None:
        index = self.place(stmt.address.base, stmt.address.offset)
        self.read(stmt.result, stmt.address.buffer, lane_of(index, stmt.result.type.lanes), stmt.active,
                  stmt.mask)

    def read(self, result: Var, buffer: Buffer, index: str, active: int, mask: Operand | None) -> None:
        """Load elements of a buffer; lanes that are inactive or masked out are 0."""
        element, conditions = self.element(buffer, index), []
        if active < result.type.lanes:
            conditions.append(f"l < {active}")
        if mask is not None and not (isinstance(mask, Literal) and mask.value):
            conditions.append(self.one(mask))
        if conditions:
            element = f"{' && '.join(conditions)} ? {element} : 0"
        self.define(result, element, "x")

    def store(self, stmt: StoreTo) -> None:
        """Store a value. Each vector has a loop of its own, because its bytes may overlap those that other statements load."""
        buffer, lanes = stmt.address.buffer, stmt.value.type.lanes
        value = self.one(stmt.value)
        index = lane_of(self.place(stmt.address.base, stmt.address.offset), lanes)
        pointer = placeholder(self.buffers[buffer])
        text = f"{self.helpers.put(buffer.dtype)}({pointer}, {index}, {value});" if self.is_shared(buffer) else (
            f"{pointer}[{index}] = {value};")
        self.flush()
        if lanes == 1:
            self.line(text)
        else:
            self.lane(stmt.active, text)
            self.flush()

    # ---- loops -------------------------------------------------------------------------------------------------------
    def loop(self, f: For) -> None:
        """Write a loop; its loop-carried values are variables, which keep their values after the loop."""
        width = self.indices.width(f.low, f.high)
        carried = list(zip(f.params, f.inits, f.yields, f.results))
        for param, init, last, result in carried:
            first = self.value(init) if param.type.lanes == 1 or isinstance(init, Var) else ""
            self.names[result] = self.named(param, "sum")
            if param.type.lanes > 1 and not isinstance(init, Var):
                self.line(f"{self.type(param.type)} {self.names[param]};")
                self.lane(param.type.lanes, f"{self.names[param]}.at[l] = {self.value(init)};")
            elif self.wraps(f, last):
                name, own = self.names[param], SCALARS[param.type.dtype]
                self.unsigned[param] = name
                self.line(f"u{own} {name} = (u{own}){first};")
                self.names[param] = self.names[result] = f"({own}){name}"
            else:
                self.line(f"{self.type(param.type)} {self.names[param]} = {first};")
        i = self.named(f.index, "i")
        self.line(f"for ({TYPES[width]} {i} = {self.value(f.low)}; {i} < {self.value(f.high)}; ++{i}) {{")
        self.depth += 1
        self.block(f.body)
        self.yields(f)
        self.flush()
        self.depth -= 1
        self.line("}")
        for param, _, _, result in carried:
            if not self.uses[result] and not self.uses[param]:
                self.line(f"(void){self.unsigned.get(param, self.names[param])};")

    def wraps(self, f: For, value: Operand) -> bool:
        """True if a loop carries a signed integer that a wrapping operator computes. It is stored as unsigned, the type in
        which the operator computes: gcc 12 drops half of the sums where a loop carries several signed ones, x =
        (int)((unsigned)x + (unsigned)y) four times in a loop (int32 with AVX2, int16 and int8 with SSE2), and computes them
        correctly without the conversions."""
        if not isinstance(value, Var) or value.type.lanes > 1 or value.type is INDEX or KINDS[value.type.dtype] != "signed":
            return False
        for stmt in f.body:
            match stmt:
                case Let(result=result, op=op, args=args) if result is value:
                    return self.operations.wraps(op, value.type.dtype, args)
                case For() if value in stmt.results:
                    return self.wraps(stmt, stmt.yields[stmt.results.index(value)])
                case _:
                    pass
        return False

    def yields(self, f: For) -> None:
        """Assign the initial values of the next iteration; copy those first that an earlier assignment would overwrite."""
        changed = [(p, y) for p, y in zip(f.params, f.yields) if y is not p]
        behind: set[Var] = set()
        copies: dict[Var, str] = {}
        for p, y in changed:
            if isinstance(y, Var) and y in behind and y not in copies:
                copies[y] = f"last{y.id}"
            behind.add(p)
        for y, name in copies.items():
            self.line(f"const {self.type(y.type)} {name} = {self.names[y]};")
        for p, y in changed:
            if isinstance(y, Var) or p.type.lanes == 1:
                value = copies[y] if isinstance(y, Var) and y in copies else self.value(y)
                if p in self.unsigned:
                    self.line(f"{self.unsigned[p]} = (u{SCALARS[p.type.dtype]}){value};")
                else:
                    self.line(f"{self.names[p]} = {value};")
            else:
                self.lane(p.type.lanes, f"{self.names[p]}.at[l] = {self.value(y)};")


def live_uses(f: Function, indices: Indices) -> Counter[Var]:
    """Count the uses of each value, except uses by dead values and by conditions with a known result."""
    uses = Counter(x for stmt in walk(f.body) if indices.decided(stmt) is None for x in operands(stmt) if isinstance(x, Var))
    definitions = {s.result: s for s in walk(f.body) if isinstance(s, Let | LoadFrom | GatherFrom | Shuffle)}
    dead = [x for x in definitions if not uses[x]]
    while dead:
        stmt = definitions[dead.pop()]
        for x in operands(stmt) if indices.decided(stmt) is None else ():
            if isinstance(x, Var):
                uses[x] -= 1
                if not uses[x] and x in definitions:
                    dead.append(x)
    return uses


def operands(stmt: Stmt) -> Sequence[Operand]:
    """Return the operands of a statement."""
    match stmt:
        case Let(args=args):
            return args
        case Shuffle(args=(x, y), lanes=lanes):  # only the operands whose lanes it takes
            return [v for v, taken in ((x, min(lanes) < x.type.lanes), (y, max(lanes) >= x.type.lanes)) if taken]
        case LoadFrom(address=address, mask=mask):
            return [address.base, *([mask] if mask is not None else [])]
        case GatherFrom(indices=indices, mask=mask):
            return [indices, *([mask] if mask is not None else [])]
        case StoreTo(address=address, value=value):
            return [address.base, value]
        case For(low=low, high=high, inits=inits, yields=yields):
            return [low, high, *inits, *yields]
        case If(condition=condition):
            return [condition]
    return []


def lane_of(index: str, lanes: int) -> str:
    """Return the index of lane l of consecutive elements that begin at `index`."""
    return index if lanes == 1 else "l" if index == "0" else f"{index} + l"


def filled(texts: Sequence[str], depth: int) -> list[str]:
    """Return the texts, separated by commas, in lines filled to the line width."""
    indent, lines = "    " * depth, [""]
    for text in texts:
        piece = f"{text}, "
        if len(indent) + len(lines[-1]) + len(piece) > COLUMNS and lines[-1]:
            lines.append("")
        lines[-1] += piece
    lines[-1] = lines[-1].removesuffix(", ")
    return [indent + line.rstrip() for line in lines]


def tiles(function: Function) -> Problem:
    return Problem(f"kernel {function.name} uses a matrix unit, which C has no words for", kind="option",
                   help="compile C source for a machine without one: without --target, it is for any machine")
