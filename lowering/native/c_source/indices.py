"""Indices in C: the loop IR says int64, which takes several instructions on 32-bit processors and many on smaller ones. One
that is known to fit is computed in the fastest type of C that has 32 bits, or 16, which processors with 16-bit pointers need.
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
"""Operations that give the same in any type that holds operands and result."""


@dataclass(slots=True)
class Indices:
    """What is known of the integers of one function, and so how wide its indices must be."""
    ranges: Ranges = field(default_factory=Ranges)

    def enter(self, f: Function) -> None:
        """Learn what the integers of the function may be."""
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
        """The narrowest type that holds all of these."""
        return widest([width_of(self.span(x)) for x in values])

    def decided(self, stmt: Stmt) -> bool | None:
        """True if a comparison of integers always holds, False if it never does, None where that depends."""
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
        """True if an index may be computed in a narrow type, in which it does not overflow."""
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
