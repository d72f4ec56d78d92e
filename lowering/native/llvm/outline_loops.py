"""The choice of loops to outline: LLVM gets them as functions.

A loop that holds many sums in registers is followed by a loop that processes them vector by vector, and other loops enclose
both. LLVM hoists the constants of the second loop out of all loops, and then has too few registers for the sums: some are
spilled and reloaded at every step. It hoists nothing out of a function.
"""
from __future__ import annotations

from collections.abc import Iterator

from ...loops.ir import Block, For, Let, Literal, TileStmt, Type, walk
from ...target.target import Target

STEP = 5
"""Number of registers of a step besides its sums: elements of both operands."""
OF_UPPER_HALVES = Literal(1 << 31, Type("int64")), Literal(1, Type("int32"))
"""Stand-ins for the additional constants of an upper half of a product: the sign mask, and the lanes of a shuffle."""
COUNTS = frozenset({"shl", "ashr", "lshr"})
"""Operations whose second operand is an immediate of the instruction."""


def outlined_loops(block: Block, target: Target) -> frozenset[int]:
    """Return the indices of a block's statements that are loops to outline."""
    loops = [(i, stmt) for i, stmt in enumerate(block) if isinstance(stmt, For)]
    if len(loops) < 2 or target.lanes(1) == 1 or not target.has_int64:
        return frozenset()
    sums = [(i, sum(p.type.lanes > 1 for p in f.params)) for i, f in loops]
    return frozenset(i for i, f in loops if not f.params and any(
        j < i and 2 * n > target.vector_registers and n + STEP + constants(f) > target.vector_registers
        for j, n in sums) and not any(isinstance(stmt, TileStmt) for stmt in walk(f.body)))


def constants(f: For) -> int:
    """Return the number of splat constants that the instructions of a loop take from registers."""
    return len({x for stmt in walk(f.body) if isinstance(stmt, Let) for x in literals(stmt)})


def literals(stmt: Let) -> Iterator[Literal]:
    args = stmt.args[:1] if stmt.op in COUNTS else stmt.args
    yield from (x for x in args if isinstance(x, Literal) and x.type.lanes > 1)
    if stmt.op.startswith("multiply_high"):
        yield from OF_UPPER_HALVES
