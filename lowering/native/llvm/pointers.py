"""Pointers into buffers, for the emitter: if an index is the sum of a loop-invariant term and a term of the open block, the
pointer to the first is made once, before the loop, and only the second is added inside.

LLVM's loop strength reduction would find that too, but it tries every way to split every sum, which was more than half of the
compile time. It does not look through `strip.invariant.group`, which costs no instruction, and which alias analysis does look
through.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import field

from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...loops.ir import Let, Operand, Type, Var
from ...machine_code.llvm_writer import Writer
from .llvm_text import llvm_type

Index = Callable[[Operand], tuple[str, str]]
"""A function that returns an index as LLVM's type and value; it may write instructions."""
OPAQUE = "llvm.strip.invariant.group.p0"


@dataclass(slots=True)
class BlockEntry:
    """The line of a block after which an inner block begins, and the pointers made there."""
    line: int
    pointers: dict[tuple[Buffer, Operand], str] = field(default_factory=dict)


@dataclass(slots=True)
class Pointers:
    """The pointers of one function. `entries[d]` is the entry from the open block at depth d to that at depth d + 1, `sums` are
    the indices that are sums, `vectors` those of many lanes, `made` the pointers of the open block."""
    writer: Writer
    index: Index
    value: Callable[[Operand], str]
    buffers: dict[Buffer, str] = field(default_factory=dict)
    entries: list[BlockEntry] = field(default_factory=list)
    sums: dict[Var, tuple[Var, Var]] = field(default_factory=dict)
    vectors: dict[Operand, Let] = field(default_factory=dict)
    made: dict[tuple[Buffer, Operand], str] = field(default_factory=dict)

    def let(self, stmt: Let) -> None:
        """Record the definition of an index."""
        result = stmt.result
        if result.type.lanes > 1:
            if result.type.dtype == "int64":
                self.vectors[result] = stmt
        elif stmt.op == "add":
            x, y = stmt.args
            if isinstance(x, Var) and isinstance(y, Var):
                self.sums[result] = x, y

    def enter(self) -> None:
        """Begin an inner block after the next line, which is empty for now."""
        self.entries.append(BlockEntry(len(self.writer.lines)))
        self.writer.lines.append("")

    def leave(self) -> None:
        self.entries.pop()

    def to(self, buffer: Buffer, scalar: str, base: Var) -> str:
        """Return a pointer to buffer[base], made once in a block."""
        key = buffer, base
        if key not in self.made:
            self.made[key] = self.inside(buffer, scalar, base)
        return self.made[key]

    def inside(self, buffer: Buffer, scalar: str, base: Var) -> str:
        depth = len(self.entries)
        if base.depth < depth:
            return self.outside(buffer, scalar, base)
        outer, inner = self.terms(base)
        if outer is None:
            return self.moved(scalar, self.buffers[buffer], base)
        pointer = self.outside(buffer, scalar, outer)
        for x in inner:
            pointer = self.moved(scalar, pointer, x)
        return pointer

    def terms(self, base: Var) -> tuple[Var | None, list[Var]]:
        """Split a sum into its one term from outside the block of `base`, and its terms of that block; None if there is not
        exactly one."""
        outer, inner, stack = [], [], [base]
        while stack:
            x = stack.pop()
            if x.depth < base.depth:
                outer.append(x)
            elif x in self.sums:
                stack += self.sums[x]
            else:
                inner.append(x)
        return (outer[0], inner[::-1]) if len(outer) == 1 else (None, [])

    def outside(self, buffer: Buffer, scalar: str, base: Var) -> str:
        """Return the pointer to buffer[base], made in the block where `base` is known, before an inner block begins."""
        entry, key = self.entries[base.depth], (buffer, base)
        if key not in entry.pointers:
            entry.pointers[key] = self.writer.above(entry.line, lambda: self.writer.intrinsic(
                OPAQUE, "ptr", [("ptr", self.moved(scalar, self.buffers[buffer], base))]))
        return entry.pointers[key]

    def spread(self, buffer: Buffer, scalar: str, indices: Operand) -> tuple[str, str, str]:
        """Return the addresses of buffer[indices]: a pointer for the part that is equal in all lanes, and LLVM's index type and
        the vector for the rest. The indices have 32 bits if possible: processors gather as many lanes at a time as a vector has
        indices."""
        equal, different, stack = [], [], [indices]
        while stack:
            x = stack.pop()
            match self.vectors.get(x):
                case Let(op="add", args=(a, b)):
                    stack += [b, a]
                case Let(op="splat", args=(Var() as a,)):
                    equal.append(a)
                case _:
                    different.append(x)
        if not equal or not different:
            return self.buffers[buffer], "i64", self.value(indices)
        pointer = self.to(buffer, scalar, equal[0])
        for x in equal[1:]:
            pointer = self.moved(scalar, pointer, x)
        match [self.vectors.get(x) for x in different]:
            case [Let(op="cast", args=(Var(type=Type("int32")) as narrow,))]:
                return pointer, "i32", self.value(narrow)
        first, *others = map(self.value, different)
        t = llvm_type(indices.type)
        return pointer, "i64", functools.reduce(lambda x, y: self.writer.put(f"add {t} {x}, {y}"), others, first)

    def moved(self, scalar: str, pointer: str, by: Var) -> str:
        t, index = self.index(by)
        return self.writer.put(f"getelementptr {scalar}, ptr {pointer}, {t} {index}")
