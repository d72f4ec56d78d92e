"""Random small loop nests for tests of the dependence analysis, and what they do when every iteration is gone through."""
from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hypothesis import strategies as st
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.loops.ir import (
    BOOL,
    INDEX,
    Address,
    Block,
    For,
    Function,
    If,
    Let,
    Literal,
    LoadFrom,
    Operand,
    StoreTo,
    Type,
    Var,
)

BUFFERS = Buffer("x", "int8", (6, 8), "argument"), Buffer("y", "int8", (6, 8), "result"), Buffer("s", "int8", (48,), "scratch")
OPERATIONS = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "min": min, "max": max,
              "and": lambda x, y: x & y, "div": lambda x, y: x // y, "lt": lambda x, y: x < y, "xor": lambda x, y: x ^ y}


@dataclass(frozen=True)
class Event:
    """An access to elements of a buffer, in an iteration of each of the loops around it."""
    iterations: Mapping[Var, int]
    buffer: Buffer
    is_store: bool
    elements: frozenset[int]


def events(function: Function) -> list[Event]:
    """What a run does, in order. What is loaded has no effect."""
    return list(run(function.body, {}, {}))


def run(block: Block, values: dict[Operand, int], around: dict[Var, int]) -> Iterator[Event]:
    def value(x: Operand) -> int:
        return int(x.value) if isinstance(x, Literal) else values[x]

    for stmt in block:
        match stmt:
            case Let(result, op, args):
                values[result] = int(OPERATIONS[op](*map(value, args)))
            case LoadFrom(address=address, active=active) | StoreTo(address=address, active=active):
                first = value(address.base) + address.offset
                yield Event(dict(around), address.buffer, isinstance(stmt, StoreTo), frozenset(range(first, first + active)))
            case For(index, low, high, body=body):
                for i in range(value(low), value(high)):
                    yield from run(body, {**values, index: i}, {**around, index: i})
            case If(condition, body):
                if value(condition):
                    yield from run(body, values, around)


def loops(block: Block) -> Iterator[For]:
    for stmt in block:
        if isinstance(stmt, (For, If)):
            yield from [stmt] if isinstance(stmt, For) else []
            yield from loops(stmt.body)


@st.composite
def functions(draw: st.DrawFn, conditions: bool = True, filled: bool = False) -> Function:
    """Two or three loops, one in the other or one behind the other, of few iterations; places are sums of multiples of indices,
    smallest of two, remainders; some accesses stand under conditions. If scratch is to be `filled`, only that is touched, near
    its beginning, and most iterations begin with stores to much of it."""
    numbers = itertools.count()
    buffers, steps = (BUFFERS[2:], [0, 0, 0, 1]) if filled else (BUFFERS, [0, 0, 1, 1, 2, 3, 8, 8, -1, -8])

    def let(block: Block, op: str, x: Operand, y: Operand | int, type: Type = INDEX) -> Var:
        other = Literal(y, x.type) if isinstance(y, int) else y
        result = Var(next(numbers), type, depth)
        block.append(Let(result, op, (x, other)))
        return result

    def place(block: Block, indices: list[Var]) -> Operand:
        total: Operand = Literal(0, INDEX)
        for index in indices:
            by = draw(st.sampled_from(steps))
            x: Operand = index
            match draw(st.sampled_from(["", "", "", "", "min", "and", "div"])):
                case "":
                    pass
                case op:
                    x = let(block, op, x, draw(st.integers(1, 3)))
            if by:
                term = let(block, "mul", x, by)
                total = let(block, "add", total, term)
        return total

    def access(block: Block, indices: list[Var], fills: bool = False) -> None:
        buffer, base = draw(st.sampled_from(buffers)), place(block, indices)
        address = Address(buffer, base, draw(st.integers(0, 0 if fills else 4 if filled else 9)))
        active = draw(st.integers(6, 12) if fills else st.integers(1, 3))
        type = Type("int8", active)
        if fills or draw(st.booleans()):
            block.append(StoreTo(address, Literal(1, type), active))
        else:
            block.append(LoadFrom(Var(next(numbers), type, depth), address, active))

    depth = 0

    def statements(indices: list[Var], most: int) -> Block:
        nonlocal depth
        block: Block = []
        for _ in range(draw(st.integers(1, most))):
            kind = draw(st.sampled_from(["access", "access", "loop", *(["if"] if conditions else [])]))
            if kind == "loop" and len(indices) < 3:
                high: Operand = Literal(draw(st.integers(1, 4)), INDEX)
                if indices and draw(st.booleans()):
                    rest = let(block, "sub", Literal(draw(st.integers(3, 5)), INDEX), indices[-1])
                    high = let(block, "min", rest, high)
                depth += 1
                index = Var(next(numbers), INDEX, depth)
                body = statements([*indices, index], 3)
                depth -= 1
                block.append(For(index, Literal(0, INDEX), high, (), (), (), body, ()))
            elif kind == "if" and indices:
                condition = let(block, "lt", draw(st.sampled_from(indices)), draw(st.integers(0, 3)), BOOL)
                if draw(st.booleans()):
                    condition = let(block, "xor", condition, 1, BOOL)
                depth += 1
                body = statements(indices, 2)
                depth -= 1
                block.append(If(condition, body))
            else:
                access(block, indices)
        return block

    depth = 1
    outer = Var(next(numbers), INDEX, 1)
    body: Block = []
    if filled and draw(st.integers(0, 9)):
        access(body, [outer], fills=True)
    body += statements([outer], 4)
    depth = 0
    loop = For(outer, Literal(0, INDEX), Literal(draw(st.integers(1, 5)), INDEX), (), (), (), body, ())
    return Function("f", BUFFERS[:2], BUFFERS[2:], [loop])
