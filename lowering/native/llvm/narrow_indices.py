"""Indices on 32-bit processors: one that is known to fit is computed in 32 bits, though the loop IR says int64."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from ....runtime.records import dataclass
from ...loops.ir import INDEX, For, Function, Let, LoadFrom, Operand, Var, row_limit
from ...loops.ranges import LIMITS, Ranges
from ...machine_code.llvm_writer import Writer
from ...target.target import Target
from .conversions import convert
from .llvm_text import KINDS, Arithmetic, constant

LOW, HIGH = LIMITS["int32"]
SAME = {"add": "add", "sub": "sub", "mul": "mul", "and": "and"}
EXTREMES = {"min": "smin", "minimum": "smin", "minnum": "smin", "max": "smax", "maximum": "smax", "maxnum": "smax"}
COMPARISONS = {"lt": "icmp slt", "le": "icmp sle", "eq": "icmp eq"}


@dataclass(slots=True)
class NarrowIndices:
    """The indices of one function. `names` are LLVM's names of those that are kept in 32 bits; `value` gives any operand as the
    type that it has in the loop IR."""
    writer: Writer
    target: Target
    value: Callable[[Operand], str]
    ranges: Ranges = field(default_factory=Ranges)
    names: dict[Var, str] = field(default_factory=dict)

    def enter(self, f: Function) -> None:
        """Record the value ranges of the function's rows."""
        for row in f.rows or ():
            self.ranges.given(row, (0, f.phases[-1] if f.phases else row_limit(f)))

    def loaded(self, stmt: LoadFrom) -> None:
        self.ranges.definitions[stmt.result] = stmt

    def fits(self, x: Operand) -> bool:
        low, high = self.ranges.span(x)
        return low >= LOW and high <= HIGH

    def widened(self, x: Var) -> str:
        """One that is kept in 32 bits, as an int64."""
        return self.writer.put(f"sext i32 {self.names[x]} to i64")

    def index(self, x: Operand) -> tuple[str, str]:
        """An index with its type."""
        return ("i32", self.name(x)) if self.fits(x) else ("i64", self.value(x))

    def name(self, x: Operand) -> str:
        """An index that fits, in 32 bits."""
        if not isinstance(x, Var):
            return constant("i32", 1, int(x.value))
        return self.names[x] if x in self.names else self.writer.put(f"trunc i64 {self.value(x)} to i32")

    def bounds(self, f: For) -> tuple[str, str, str] | None:
        """The type in which a loop counts, and its bounds; None where they may not fit."""
        self.ranges.loop(f.index, f.low, f.high)
        return ("i32", self.name(f.low), self.name(f.high)) if self.fits(f.low) and self.fits(f.high) else None

    def let(self, stmt: Let) -> str | None:
        """Write a statement over indices that fit: the name of a result that is no index; empty where it is one, and kept here;
        None where the statement is as any other."""
        result, args, one = stmt.result, stmt.args, Arithmetic(self.writer, 1)
        self.ranges.definitions[result] = stmt
        if result.type is INDEX and self.is_narrow(stmt):
            self.names[result] = self.computed(stmt)
            return ""
        if args[0].type is INDEX and stmt.op == "cast" and self.fits(args[0]):
            return convert(one, self.target, self.name(args[0]), "int32", result.type.dtype)
        if args[0].type is INDEX and stmt.op in COMPARISONS and all(map(self.fits, args)):
            return one.op(COMPARISONS[stmt.op], "i32", *map(self.name, args))
        return None

    def is_narrow(self, stmt: Let) -> bool:
        """True if the result and the operands fit, and the operation gives the same in 32 bits."""
        if stmt.op == "cast":
            return KINDS[stmt.args[0].type.dtype] in ("signed", "unsigned", "bool") and self.fits(stmt.result)
        return (stmt.op in SAME or stmt.op in EXTREMES) and all(map(self.fits, (stmt.result, *stmt.args)))

    def computed(self, stmt: Let) -> str:
        one = Arithmetic(self.writer, 1)
        if stmt.op == "cast":
            return convert(one, self.target, self.value(stmt.args[0]), stmt.args[0].type.dtype, "int32")
        x, y = map(self.name, stmt.args)
        return one.op(SAME[stmt.op], "i32", x, y) if stmt.op in SAME else one.call(EXTREMES[stmt.op], "i32", x, y)
