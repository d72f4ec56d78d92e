"""Indices in C. The loop IR's int64 takes several instructions on 32-bit processors and many on smaller ones. An index that is
known to fit is computed in C's fastest type of 32 bits, or of 16 bits, which processors with 16-bit pointers need.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ....runtime.records import dataclass
from ...elements.expression import COMPARISONS
from ...loops.ir import INDEX, For, Function, GatherFrom, Let, Literal, LoadFrom, Operand, Shuffle, Stmt, row_limit, walk
from ...loops.ranges import LIMITS, Interval, Ranges

WIDTHS = ("int16", "int32", "int64")
TYPES = {"int16": "int_fast16_t", "int32": "int_fast32_t", "int64": "int64_t"}
EXACT = frozenset({"add", "sub", "mul", "and", "min", "max", "minimum", "maximum", "minnum", "maxnum", "cast", "splat"})
"""Operations whose result is the same in any type that holds operands and result."""


@dataclass(slots=True)
class Indices:
    """The value ranges of one function's integers, which decide how wide its indices must be."""
    ranges: Ranges = field(default_factory=Ranges)

    def enter(self, f: Function) -> None:
        """Record the value ranges of the function's integers."""
        for row in f.rows or ():
            self.ranges.given(row, (0, f.phases[-1] if f.phases else row_limit(f)))
        for stmt in walk(f.body):
            match stmt:
                case Let(result) | LoadFrom(result) | GatherFrom(result) | Shuffle(result):
                    self.ranges.definitions[result] = stmt
                case For(index, low, high):
                    self.ranges.loop(index, low, high)

    def span(self, x: Operand) -> Interval:
        return self.ranges.span(x)

    def width(self, *values: Operand) -> str:
        """Return the narrowest type that holds all these values."""
        return widest([width_of(self.span(x)) for x in values])

    def decided(self, stmt: Stmt) -> bool | None:
        """Return True if a comparison of integers always holds, False if it never holds, else None."""
        match stmt:
            case Let(op="xor", args=(x, y)) if x is y and x.type.dtype == "bool":
                return False
        if not isinstance(stmt, Let) or stmt.op not in COMPARISONS or stmt.args[0].type.dtype not in LIMITS:
            return None
        x, y = stmt.args
        (low, high), (least, most) = self.span(x), self.span(y)
        if x is y:
            return stmt.op != "lt"
        match stmt.op:
            case "lt" if high < least or low >= most:
                return high < least
            case "le" if high <= least or low > most:
                return high <= least
            case "eq" if high < least or low > most:
                return False
        return None

    def is_exact(self, stmt: Let) -> bool:
        """True if a narrow type can hold an index and its operands, so that its computation does not overflow."""
        integers = [a for a in stmt.args if a.type.dtype in LIMITS]
        if stmt.result.type is not INDEX or self.width(stmt.result, *integers) == "int64":
            return False
        if stmt.op == "div":
            return isinstance(stmt.args[1], Literal) and stmt.args[1].value > 0
        return stmt.op in EXACT and all(a.type is INDEX or stmt.op == "cast" for a in stmt.args)


def width_of(span: Interval) -> str:
    low, high = span
    return next((w for w in WIDTHS if LIMITS[w][0] <= low and high <= LIMITS[w][1]), WIDTHS[-1])


def widest(widths: Sequence[str]) -> str:
    return max(widths, key=WIDTHS.index)
