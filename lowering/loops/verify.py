"""Checks loop IR, on every compile: each value is defined once, before its uses, with the right type; each access is
inside its buffer; nothing is read that was not written. A failure is a fault of tosaic, a Problem of kind "internal".

Every index without a condition around it is proved to be in range. Under a mask or an If, the proof uses the condition;
where the condition does not suffice (it may depend on data), the access counts as guarded, unless it is never in range.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import Any, NoReturn

from ...runtime.errors import Problem
from ...runtime.limits import checkpoint
from ...runtime.records import dataclass
from ..elements.expression import Buffer
from .feasible import can_be
from .ir import (
    BOOL,
    INDEX,
    Address,
    Block,
    For,
    Function,
    GatherFrom,
    If,
    Let,
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
    TileAccess,
    Type,
    Var,
    ZeroTile,
    first_of,
    row_limit,
)
from .program import Program
from .ranges import LIMITS, Facts, Interval, LinearForm, Ranges, by_newest
from .signatures import FAMILIES, mismatch
from .verify_tiles import TileShapes, shapes_fault

WRITABLE = frozenset({"result", "temporary", "variable", "scratch"})


@dataclass(frozen=True, slots=True)
class Proof:
    """The number of accesses of a function, and the number of those that only a condition keeps in range. `needs` are the
    buffers that the function reads before it has written to them."""
    accesses: int
    guarded: int
    needs: frozenset[Buffer]


def verify(function: Function, rows: Interval | None = None) -> Proof:
    """Check a function. `rows` are the least low and the greatest high of its calls (by default, all rows of the buffer
    that it writes). Raises Problem, of kind "internal", for the first fault."""
    return Verifier(function).run(rows)


def verify_program(program: Program) -> tuple[Proof, ...]:
    """Check every function of a program, with the rows that the steps ask for, and check that each step reads only what
    an earlier step has written. Raises Problem, of kind "internal", for the first fault."""
    from .verify_steps import rows_of, verify_steps
    checkpoint()
    spans = rows_of(program)
    known: dict[tuple[Function, Interval | None], tuple[Function, Proof]] = {}
    proofs = tuple(proof_of(f, spans.get(i), known) for i, f in enumerate(program.functions))
    verify_steps(program, [p.needs for p in proofs])
    return proofs


def proof_of(function: Function, rows: Interval | None, known: dict[tuple[Function, Interval | None], tuple[Function, Proof]]
             ) -> Proof:
    """Return the proof of `verify`. Of functions that differ only in their buffers, check one; for the others, check only
    that the buffers are alike. Where the data of constants matters, check each function."""
    checkpoint()
    key = first_of(function), rows
    if key in known:
        other, proof = known[key]
        buffers = dict(zip(memory_of(other), memory_of(function)))
        alike = list(map(kind_of, buffers)) == list(map(kind_of, memory_of(function)))
        if alike and len(set(buffers.values())) == len(buffers):
            return replace(proof, needs=frozenset(buffers[b] for b in proof.needs))
    verifier = Verifier(function)
    proof = verifier.run(rows)
    if not verifier.ranges.data:
        known[key] = function, proof
    return proof


def memory_of(function: Function) -> tuple[Buffer, ...]:
    return *function.params, *function.scratch


def kind_of(buffer: Buffer) -> tuple[str, str, int]:
    return buffer.role, buffer.dtype, size_of(buffer)


@dataclass(slots=True)
class Verifier:
    """The check of one function. `own` are the values of the open block, `facts` the facts of the open conditions, `known`
    the bounds found under those conditions."""
    function: Function
    ranges: Ranges = field(default_factory=Ranges)
    visible: set[Var] = field(default_factory=set)
    defined: set[int] = field(default_factory=set)
    memory: frozenset[Buffer] = frozenset()
    own: list[Var] = field(default_factory=list)
    touched: set[tuple[Buffer, str, str]] = field(default_factory=set)
    signatures: set[tuple] = field(default_factory=set)
    needs: set[Buffer] = field(default_factory=set)
    facts: Facts = field(default_factory=dict)
    known: dict[tuple, Interval] = field(default_factory=dict)
    depth: int = 0
    conditions: int = 0
    tiles: TileShapes = field(default_factory=TileShapes)
    dead: bool = False
    accesses: int = 0
    guarded: int = 0

    def run(self, rows: Interval | None) -> Proof:
        f = self.function
        self.memory = frozenset((*f.params, *f.scratch))
        if len(self.memory) != len(f.params) + len(f.scratch):
            self.fail("a buffer is a parameter twice")
        if f.rows:
            low, high = rows or (0, f.phases[-1] if f.phases else row_limit(f))
            for var in f.rows:
                self.define(var)
                self.ranges.given(var, (low, high))
            self.ranges.below(*f.rows)
        self.block(f.body)
        return Proof(self.accesses, self.guarded, frozenset(self.needs))

    def fail(self, what: str) -> NoReturn:
        raise Problem(f"{self.function.name}: {what}", kind="internal")

    # ---- values ------------------------------------------------------------------------------------------------------
    def define(self, var: Var) -> None:
        if var.id in self.defined:
            self.fail(f"value {var.id} is defined twice")
        if var.depth != self.depth:
            self.fail(f"value {var.id} is at depth {self.depth}, and says {var.depth}")
        self.defined.add(var.id)
        self.visible.add(var)
        self.own.append(var)

    def use(self, x: Operand) -> None:
        if isinstance(x, Var):
            if x not in self.visible:
                self.fail(f"value {x.id} is used where it is not defined")
            return
        dtype = x.type.dtype
        if dtype not in FAMILIES:
            self.fail(f"{x.type} is no type of a value")
        if dtype in LIMITS:
            low, high = LIMITS[dtype]
            if x.value % 1 or not min(low, -high - 1) <= x.value <= high:
                self.fail(f"{x.value} is no {dtype}")

    def index(self, x: Operand) -> None:
        self.use(x)
        self.same("an index", x.type, INDEX)

    def same(self, what: str, x: Type, y: Type) -> None:
        if x is not y:
            self.fail(f"{what} is {x}, not {y}")

    # ---- statements --------------------------------------------------------------------------------------------------
    def block(self, block: Block) -> None:
        for stmt in block:
            RULES[type(stmt)](self, stmt)

    def inside(self, block: Block, names: tuple[Var, ...] = (), yields: tuple[Operand, ...] = ()) -> None:
        """Check a nested block; the values that it defines are not visible outside."""
        outer, self.own = self.own, []
        self.depth += 1
        for var in names:
            self.define(var)
        self.block(block)
        for x in yields:
            self.use(x)
        self.visible.difference_update(self.own)
        self.own = outer
        self.depth -= 1

    def let(self, stmt: Let) -> None:
        """Check an operation; check each combination of types once."""
        result = stmt.result
        for x in stmt.args:
            self.use(x)
        types = tuple([x.type for x in stmt.args])
        signature = (stmt.op, result.type, *types)
        if signature not in self.signatures:
            if fault := mismatch(stmt.op, result.type, types):
                self.fail(f"{result.type} = {stmt.op}({', '.join(map(str, types))}): {fault}")
            self.signatures.add(signature)
        self.define(result)
        self.ranges.definitions[result] = stmt

    def load(self, stmt: LoadFrom) -> None:
        result, address = stmt.result, stmt.address
        self.index(address.base)
        self.lanes(result.type, stmt.active, stmt.mask)
        self.access(address.buffer, result.type, "read")
        self.place(address, result.type.lanes, stmt.active, stmt.mask)
        self.define(result)
        self.ranges.definitions[result] = stmt

    def store(self, stmt: StoreTo) -> None:
        type = stmt.value.type
        self.index(stmt.address.base)
        self.use(stmt.value)
        self.lanes(type, stmt.active, None)
        self.access(stmt.address.buffer, type, "written")
        self.place(stmt.address, type.lanes, stmt.active, None)

    def prefetch(self, stmt: Prefetch) -> None:
        self.index(stmt.address.base)
        if stmt.address.buffer not in self.memory:
            self.fail(f"{stmt.address.buffer.name} is prefetched, and is no parameter")

    def shuffle(self, stmt: Shuffle) -> None:
        a, b = stmt.args
        self.use(a)
        self.use(b)
        self.same("the second operand of a shuffle", b.type, a.type)
        self.same("the result of a shuffle", stmt.result.type, Type(a.type.dtype, len(stmt.lanes)))
        if not 0 <= min(stmt.lanes) <= max(stmt.lanes) < 2 * a.type.lanes:
            self.fail(f"a shuffle of {2 * a.type.lanes} lanes takes lanes {stmt.lanes}")
        self.define(stmt.result)
        self.ranges.definitions[stmt.result] = stmt

    def gather(self, stmt: GatherFrom) -> None:
        type = stmt.result.type
        self.use(stmt.indices)
        self.same("the indices of a gather", stmt.indices.type, Type("int64", type.lanes))
        self.lanes(type, stmt.active, stmt.mask)
        self.access(stmt.buffer, type, "read")
        low, high = self.ranges.span(stmt.indices)
        if low < 0 or high >= size_of(stmt.buffer):
            low, high = self.bounds(stmt.indices, type.lanes, stmt.active, stmt.mask)
        self.prove(stmt.buffer, low, high, stmt.mask, lambda: self.cases(stmt.indices, type.lanes, stmt.active, stmt.mask))
        self.define(stmt.result)
        self.ranges.definitions[stmt.result] = stmt

    def loop(self, f: For) -> None:
        self.index(f.low)
        self.index(f.high)
        for init in f.inits:
            self.use(init)
        if not len(f.params) == len(f.inits) == len(f.results) == len(f.yields):
            self.fail("a loop carries as many values as it starts with, yields and gives")
        self.same("a loop's index", f.index.type, INDEX)
        dead, (low, high) = self.dead, self.ranges.loop(f.index, f.low, f.high)
        self.dead |= low > high
        self.inside(f.body, (f.index, *f.params), f.yields)
        self.dead = dead
        for result, *others in zip(f.results, f.params, f.inits, f.yields):
            for x in others:
                self.same("a value that a loop carries", x.type, result.type)
            self.define(result)

    def when(self, stmt: If) -> None:
        self.use(stmt.condition)
        self.same("a condition", stmt.condition.type, BOOL)
        outer, known = self.facts, self.known
        self.facts, self.known = by_newest(self.ranges.conditions(stmt.condition), outer), {}
        self.conditions += 1
        self.inside(stmt.body)
        self.conditions -= 1
        self.facts, self.known = outer, known

    # ---- memory ------------------------------------------------------------------------------------------------------
    def lanes(self, type: Type, active: int, mask: Operand | None) -> None:
        if not 1 <= active <= type.lanes:
            self.fail(f"{active} of {type.lanes} lanes are accessed")
        if mask is not None:
            self.use(mask)
            self.same("a mask", mask.type, Type("bool", type.lanes))

    def access(self, buffer: Buffer, type: Type, how: str) -> None:
        """Check, once per buffer, that it belongs to this function, has this element type, and permits the access."""
        if (buffer, type.dtype, how) in self.touched:
            return
        self.touched.add((buffer, type.dtype, how))
        if buffer not in self.memory:
            self.fail(f"{buffer.name} is {how}, and is no parameter")
        if buffer.dtype != type.dtype:
            self.fail(f"{type.dtype} is {how} in {buffer!r}")
        if how == "written":
            if buffer.role not in WRITABLE:
                self.fail(f"{buffer.name} is written, and is {'an' if buffer.role[0] == 'a' else 'a'} {buffer.role}")
        elif buffer.role in WRITABLE and (buffer, type.dtype, "written") not in self.touched:
            if buffer.role == "scratch" or buffer in self.function.scratch:
                self.fail(f"scratch {buffer.name} is read before anything is written to it")
            self.needs.add(buffer)

    def place(self, address: Address, lanes: int, active: int, mask: Operand | None) -> None:
        """Check that buffer[base + offset] and its neighbours are in range; in most cases intervals alone prove it."""
        base, offset, size = address.base, address.offset, size_of(address.buffer)
        low, high = self.ranges.span(base)
        if low + offset >= 0 and high + offset + active <= size:
            self.accesses += 1
            return
        low, high = self.bounds(base, lanes, active, mask, step=1)
        if active > lanes:  # rows of a tile
            high += active - 1
        self.prove(address.buffer, low + offset, high + offset, mask, lambda: [
            (a + offset, b + offset) for a, b in self.cases(base, lanes, active, mask, step=1)])

    def bounds(self, base: Operand, lanes: int, active: int, mask: Operand | None, step: int = 0) -> Interval:
        """Return the least and greatest base + step * lane where the mask and the enclosing conditions hold."""
        key = (base, lanes, active, mask, step)
        if key not in self.known:
            self.known[key] = self.least_and_greatest(
                base, lanes, active, self.ranges.conditions(mask) if mask is not None else [], step)
        return self.known[key]

    def cases(self, base: Operand, lanes: int, active: int, mask: Operand | None, step: int = 0) -> list[Interval]:
        """Return the `bounds` for each case of the mask that is feasible under the enclosing conditions."""
        found = [self.least_and_greatest(base, lanes, active, facts, step)
                 for facts in (self.ranges.cases(mask) if mask is not None else [[]])
                 if can_be(self.ranges, [*facts, *self.accessed(lanes, active)], self.facts)]
        return [(low, high) for low, high in found if low <= high]

    def accessed(self, lanes: int, active: int) -> list[LinearForm]:
        """Return the facts about the lanes of an access."""
        return [self.ranges.lane(lanes).times(-1).moved(active - 1)] if active < lanes else []

    def least_and_greatest(self, base: Operand, lanes: int, active: int, facts: list[LinearForm], step: int) -> Interval:
        """Return the least and greatest base + step * lane under these facts and those of the open conditions."""
        ranges = self.ranges
        facts = [*facts, *self.accessed(lanes, active)]
        all_facts = by_newest(facts, self.facts) if facts else self.facts
        form = ranges.form(base)
        if step and lanes > 1:
            form = form.plus(ranges.lane(lanes))
        return ranges.least(form, all_facts), -ranges.least(form.times(-1), all_facts)

    def prove(self, buffer: Buffer, low: int, high: int, mask: Operand | None, cases: Callable[[], list[Interval]]) -> None:
        """Check that an access from low to high is in range. An access that a condition guards may be out of range, unless
        it certainly is in every feasible case of the mask."""
        self.accesses += 1
        size, guarded = size_of(buffer), bool(self.conditions or mask is not None)
        if self.dead or (low >= 0 and high < size):
            return
        if guarded and low < size and high >= 0:
            self.guarded += 1
        elif low <= high and (not guarded or ((found := cases()) and all(b < 0 or a >= size for a, b in found))):
            self.fail(f"{buffer!r} is accessed at {low} to {high}, and has {size} elements")


def size_of(buffer: Buffer) -> int:
    """Return the number of elements of a buffer that a function sees: one copy of a buffer with copies."""
    return buffer.size // buffer.copies


# ---- statements of a matrix unit -------------------------------------------------------------------------------------
def shape_tiles(v: Verifier, stmt: ShapeTiles) -> None:
    refuse(v, "tiles get their shapes inside of a block" if v.depth else shapes_fault(stmt))
    v.tiles = TileShapes(stmt.shapes)


def zero_tile(v: Verifier, stmt: ZeroTile) -> None:
    refuse(v, v.tiles.missing(stmt.tile))


def multiply_tiles(v: Verifier, stmt: MultiplyTiles | MultiplyFloatTiles) -> None:
    refuse(v, v.tiles.product_fault(stmt))


def move_tile(v: Verifier, stmt: TileAccess) -> None:
    buffer = stmt.address.buffer
    refuse(v, v.tiles.access_fault(stmt))
    v.index(stmt.address.base)
    v.access(buffer, Type(buffer.dtype), "read" if isinstance(stmt, LoadTile) else "written")
    v.place(stmt.address, 1, v.tiles.span(stmt), None)


def refuse(v: Verifier, fault: str | None) -> None:
    if fault is not None:
        v.fail(fault)


RULES: dict[type, Callable[[Verifier, Any], None]] = {
    Let: Verifier.let, LoadFrom: Verifier.load, StoreTo: Verifier.store, GatherFrom: Verifier.gather,
    Shuffle: Verifier.shuffle, For: Verifier.loop, If: Verifier.when, Prefetch: Verifier.prefetch,
    ShapeTiles: shape_tiles, ZeroTile: zero_tile, MultiplyTiles: multiply_tiles, MultiplyFloatTiles: multiply_tiles,
    LoadTile: move_tile, StoreTile: move_tile,
}
