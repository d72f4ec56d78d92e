"""The analysis that finds loops, and runs of statements, that only multiply bytes, for `arm_product_loops`: loads with linear
addresses, their widening, and the products that are added to sums, by pairs of 16 bits or one by one.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...graph.types import ITEM_SIZES
from ...loops.ir import (
    INDEX,
    Address,
    Block,
    For,
    GatherFrom,
    If,
    Let,
    Literal,
    LoadFrom,
    Operand,
    Shuffle,
    Stmt,
    StoreTo,
    Type,
    Var,
)
from ...target.target import Target

FOUR_BYTES = Type("int8", 4), Type("uint8", 4)
WORD, TWO_WORDS = Type("int32"), Type("int32", 2)
BYTES = Type("int8"), Type("uint8")
LOADED = *FOUR_BYTES, WORD, TWO_WORDS, *BYTES
"""Types of loads: four numbers as bytes, those of weights as a word, or as pairs of 16 bits; one byte; and the initial values
of sums."""
LOADED_IN_RUNS = *FOUR_BYTES, WORD, TWO_WORDS
"""Types of a run's first load: most runs of single bytes are windows of depthwise convolutions, for which LLVM's own order took
up to 20 % fewer instructions. Measured."""
MIN_PRODUCTS = 2
"""Minimum number of products of a run: the order of fewer does not matter."""
Terms = tuple[Var, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """The address of a load: `offset` bytes from the start of the buffer plus the loop-invariant terms, and `step` bytes more
    in each iteration."""
    buffer: Buffer
    terms: Terms
    step: int
    offset: int


@dataclass(frozen=True, slots=True)
class Products:
    """The body of a product loop, or a run of `count` statements: its loads and the operations on them, in order. `indices` are
    computed before a run."""
    loads: Mapping[Var, Place]
    operations: Mapping[Var, Let]
    indices: Sequence[Let]
    count: int

    @property
    def sums(self) -> list[Let]:
        return [stmt for stmt in self.operations.values() if self.is_sum(stmt)]

    def is_sum(self, stmt: Let) -> bool:
        """True if a statement adds a product to a sum."""
        return stmt.op == "dot_pairs" or (stmt.op == "add" and self.is_product(stmt.args[1]))

    def is_product(self, x: Operand) -> bool:
        return isinstance(x, Var) and x in self.operations and self.operations[x].op == "mul"


def orders_products(target: Target) -> bool:
    """True if product loops are written for a target: one without vectors. Counted on RV64: without these loops sums and
    factors of a register tile were spilled, and convolutions took 1.5 to 1.8 times as many instructions."""
    return target.architecture in ("arm", "riscv") and target.vector_bytes == 1


def of_loop(f: For, target: Target) -> Products | None:
    """Return the products of a loop whose body has nothing else; else None."""
    if not orders_products(target) or not isinstance(f.low, Literal) or not isinstance(f.high, Literal):
        return None
    found = products_of(f.body, f.index, int(f.low.value))
    if found.count < len(f.body) or not found.sums or f.high.value <= f.low.value:
        return None
    known = {*found.loads, *found.operations, *f.params}
    is_closed = all(isinstance(x, Literal) or x in known for stmt in found.operations.values() for x in stmt.args)
    is_carried = all(isinstance(y, Var) and y in known for y in f.yields)
    return found if is_closed and is_carried and all(p.step for p in found.loads.values()) else None


def run_of(block: Block, target: Target) -> Products | None:
    """Return the products at the beginning of a block, if later statements use nothing but their sums."""
    if not isinstance(block[0], LoadFrom) or block[0].result.type not in LOADED_IN_RUNS:
        return None
    longest = products_of(block, None, 0)
    sums = {stmt.result for stmt in longest.sums}
    last = max((i for i, stmt in enumerate(block[:longest.count]) if isinstance(stmt, Let) and stmt.result in sums), default=-1)
    found = products_of(block[:last + 1], None, 0)
    if len(found.sums) < MIN_PRODUCTS:
        return None
    hidden = {*found.loads, *found.operations} - {stmt.result for stmt in found.sums}
    return None if any(x in hidden for x in used(block[last + 1:])) else found


def products_of(block: Block, index: Var | None, low: int) -> Products:
    """Return the products that a block begins with; `index` is that of the enclosing loop, if any, from `low` on."""
    linear: dict[Operand, Linear] = {index: Linear((), 1, 0)} if index else {}
    loads: dict[Var, Place] = {}
    operations: dict[Var, Let] = {}
    indices: list[Let] = []

    def form(x: Operand) -> Linear:
        return Linear((), 0, int(x.value)) if isinstance(x, Literal) else linear.get(x) or Linear((x,), 0, 0)

    for number, stmt in enumerate(block):
        match stmt:
            case Let(result, "mul" | "add" as op, (x, y)) if result.type == INDEX:
                if index is None:
                    indices.append(stmt)
                elif made := combined(op, form(x), form(y)):
                    linear[result] = made
                else:
                    return Products(loads, operations, indices, number)
            case Let(result, "pairs" | "dot_pairs") | Let(result, "bits", (Var(type=Type("int32", 1)),)):
                operations[result] = stmt
            case Let(result, "cast", (x,)) if result.type == WORD and x in loads:
                operations[result] = stmt
            case Let(result, "mul" | "add") if result.type == WORD:
                operations[result] = stmt
            case LoadFrom(result, Address(buffer, base, more), active, None) if (
                    result.type in LOADED and active == result.type.lanes):
                (terms, step, offset), size = form(base), ITEM_SIZES[buffer.dtype]
                loads[result] = Place(buffer, terms, size * step, size * (offset + more + step * low))
            case _:
                return Products(loads, operations, indices, number)
    return Products(loads, operations, indices, len(block))


class Linear(NamedTuple):
    """An index: loop-invariant terms, a multiple of the loop's own index, and a number."""
    terms: Terms
    step: int
    offset: int


def combined(op: str, x: Linear, y: Linear) -> Linear | None:
    """Return a sum, or a product with a number."""
    if op == "add":
        return Linear((*x.terms, *y.terms), x.step + y.step, x.offset + y.offset)
    for some, other in ((x, y), (y, x)):
        if not some.terms and not other.terms and not other.step:
            return Linear((), some.step * other.offset, some.offset * other.offset)
    return None


def used(block: Iterable[Stmt]) -> Iterator[Operand]:
    """Yield the operands of statements."""
    for stmt in block:
        match stmt:
            case Let(args=args) | Shuffle(args=args):
                yield from args
            case LoadFrom(address=address, mask=mask):
                yield from (address.base, *([mask] if mask else []))
            case StoreTo(address=address, value=value):
                yield from (address.base, value)
            case GatherFrom(indices=indices, mask=mask):
                yield from (indices, *([mask] if mask else []))
            case If(condition=condition, body=body):
                yield condition
                yield from used(body)
            case For(low=low, high=high, inits=inits, body=body, yields=yields):
                yield from (low, high, *inits, *yields)
                yield from used(body)
