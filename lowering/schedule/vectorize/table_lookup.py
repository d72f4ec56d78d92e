"""Tables of 256 bytes that a processor with byte permutations holds in four registers: a few instructions look up a vector of
bytes, where loads would take one for each lane.
"""
from __future__ import annotations

from ...elements.affine import Affine, Computed
from ...elements.expression import Apply, Cast, Const, Expr, Load
from ...loops.builder import Builder
from ...loops.ir import Operand
from ...target.target import Target

ENTRIES, QUARTERS = 256, 4


def looked_up(e: Expr, target: Target) -> Expr | None:
    """Return the int8 at whose entry `e` reads a table, counted from -128; None if the lookup does not use registers."""
    if not target.looks_up_bytes:
        return None
    match e:
        case Load(buffer, (Affine(((Computed(Apply("add", (Cast(x, "int32", False), Const(128)))), 1),), 0),)) if (
                buffer.dtype == x.dtype == "int8" and buffer.size == ENTRIES):
            return x
    return None


def look_up(b: Builder, e: Load, x: Operand) -> Operand:
    """Return the table entries of a vector of bytes."""
    size = ENTRIES // QUARTERS
    quarters = [b.load(e.buffer, Affine.of(i * size), size) for i in range(QUARTERS)]
    return b.op("lookup", x, *quarters, type=x.type)
