"""Emission for 32-bit processors: an index that is known to fit is computed in 32 bits, though the loop IR says int64.
"""
from __future__ import annotations

from dataclasses import field

from ....runtime.records import dataclass
from ...loops.ir import INDEX, For, Function, Let, LoadFrom, Operand, Var, row_limit
from ...loops.ranges import LIMITS, Ranges
from .conversions import convert
from .emit import Emitter
from .llvm_text import KINDS, Arithmetic, constant

LOW, HIGH = LIMITS["int32"]
SAME = {"add": "add", "sub": "sub", "mul": "mul", "and": "and"}
EXTREMES = {"min": "smin", "minimum": "smin", "minnum": "smin", "max": "smax", "maximum": "smax", "maxnum": "smax"}
COMPARISONS = {"lt": "icmp slt", "le": "icmp sle", "eq": "icmp eq"}


@dataclass(slots=True)
class NarrowEmitter(Emitter):
    """`narrow` are LLVM's names of indices in 32 bits; what has such a name is widened where it is used as an int64."""
    ranges: Ranges = field(default_factory=Ranges)
    narrow: dict[Var, str] = field(default_factory=dict)

    def enter(self, f: Function) -> None:
        for row in f.rows or ():
            self.ranges.given(row, (0, f.phases[-1] if f.phases else row_limit(f)))

    def fits(self, x: Operand) -> bool:
        low, high = self.ranges.span(x)
        return low >= LOW and high <= HIGH

    def value(self, x: Operand) -> str:
        if isinstance(x, Var) and x in self.narrow:
            return self.writer.put(f"sext i32 {self.narrow[x]} to i64")
        return Emitter.value(self, x)

    def index(self, x: Operand) -> tuple[str, str]:
        return ("i32", self.name(x)) if self.fits(x) else ("i64", self.value(x))

    def name(self, x: Operand) -> str:
        """An index that fits, in 32 bits."""
        if not isinstance(x, Var):
            return constant("i32", 1, int(x.value))
        return self.narrow[x] if x in self.narrow else self.writer.put(f"trunc i64 {Emitter.value(self, x)} to i32")

    def count(self, f: For) -> tuple[str, str, str]:
        self.ranges.loop(f.index, f.low, f.high)
        if self.fits(f.low) and self.fits(f.high):
            return "i32", self.name(f.low), self.name(f.high)
        return Emitter.count(self, f)

    def counter(self, f: For, name: str, type: str) -> None:
        (self.narrow if type == "i32" else self.values)[f.index] = name

    def load(self, stmt: LoadFrom) -> None:
        self.ranges.definitions[stmt.result] = stmt
        Emitter.load(self, stmt)

    def let(self, stmt: Let) -> None:
        result, args = stmt.result, stmt.args
        self.ranges.definitions[result] = stmt
        if result.type is INDEX and self.is_narrow(stmt):
            self.narrow[result] = self.computed(stmt)
        elif args[0].type is INDEX and stmt.op == "cast" and self.fits(args[0]):
            one = Arithmetic(self.writer, 1)
            self.values[result] = convert(one, self.target, self.name(args[0]), "int32", result.type.dtype)
        elif args[0].type is INDEX and stmt.op in COMPARISONS and all(map(self.fits, args)):
            one = Arithmetic(self.writer, 1)
            self.values[result] = one.op(COMPARISONS[stmt.op], "i32", *map(self.name, args))
        else:
            Emitter.let(self, stmt)

    def is_narrow(self, stmt: Let) -> bool:
        """Whether the result and the operands fit, and the operation gives the same in 32 bits."""
        if stmt.op == "cast":
            return KINDS[stmt.args[0].type.dtype] in ("signed", "unsigned", "bool") and self.fits(stmt.result)
        return (stmt.op in SAME or stmt.op in EXTREMES) and all(map(self.fits, (stmt.result, *stmt.args)))

    def computed(self, stmt: Let) -> str:
        one = Arithmetic(self.writer, 1)
        if stmt.op == "cast":
            return convert(one, self.target, self.value(stmt.args[0]), stmt.args[0].type.dtype, "int32")
        x, y = map(self.name, stmt.args)
        return one.op(SAME[stmt.op], "i32", x, y) if stmt.op in SAME else one.call(EXTREMES[stmt.op], "i32", x, y)

