"""About how many cycles a function of the loop IR takes: enough to say whether its work is worth dividing among threads, and
how to divide it evenly. Caches are not looked at, so that what waits for memory takes longer than this.
"""
from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from ..elements.expression import Buffer
from .ir import (
    Block,
    For,
    Function,
    GatherFrom,
    If,
    Let,
    Literal,
    LoadFrom,
    LoadTile,
    MultiplyFloatTiles,
    MultiplyTiles,
    Operand,
    Stmt,
    StoreTile,
    StoreTo,
    Var,
)

SLOW = {"div": 8.0, "sqrt": 8.0}
"""Operations that take longer than the half of a cycle of most."""
MOST_TURNS = 8
"""Of a loop of which no bound is known."""

_known: WeakKeyDictionary[Function, float] = WeakKeyDictionary()


def cycles(function: Function) -> float:
    """Cycles of a whole run; found once."""
    if function not in _known:
        _known[function] = Costs(function).block(function.body)
    return _known[function]


class Costs:
    """The cycles of the statements of one function, each block looked at once."""

    def __init__(self, function: Function) -> None:
        self.definitions: dict[Var, Let] = {}
        self.blocks: dict[int, float] = {}
        self.define(function.body)

    def define(self, block: Block) -> None:
        for stmt in block:
            match stmt:
                case Let(result=result):
                    self.definitions[result] = stmt
                case For(body=body) | If(body=body):
                    self.define(body)

    def block(self, block: Block) -> float:
        if id(block) not in self.blocks:
            self.blocks[id(block)] = sum(map(self.statement, block))
        return self.blocks[id(block)]

    def statement(self, stmt: Stmt) -> float:
        match stmt:
            case Let(op=op):
                return SLOW.get(op, 0.5)
            case LoadFrom(mask=mask):
                return 0.5 if mask is None else 1.0
            case StoreTo():
                return 1.0
            case GatherFrom(active=active):
                return float(active)
            case MultiplyTiles() | MultiplyFloatTiles() | StoreTile():
                return 16.0
            case LoadTile():
                return 8.0
            case For(body=body):
                return self.turns(stmt) * (self.block(body) + 1)
            case If(body=body, likely=likely):
                return 1.0 if likely is False else 1 + self.block(body)
            case _:
                return 0.5

    def stored(self, block: Block, buffer: Buffer) -> int:
        """How many elements of a buffer a block stores, those that it stores again among them; not those of tiles."""
        total = 0
        for stmt in block:
            match stmt:
                case StoreTo(address=address, active=active) if address.buffer is buffer:
                    total += active
                case For(body=body):
                    total += self.turns(stmt) * self.stored(body, buffer)
                case If(body=body):
                    total += self.stored(body, buffer)
        return total

    def turns(self, loop: For) -> int:
        """The most turns that the bounds of a loop allow, as far as they say."""
        low, high = bound(loop.low, "max", self.definitions), bound(loop.high, "min", self.definitions)
        return MOST_TURNS if high is None else max(high - (low or 0), 0)


def bound(x: Operand, limit: str, definitions: Mapping[Var, Let]) -> int | None:
    """The number that an operand is, or that limits it."""
    if isinstance(x, Literal):
        return int(x.value)
    let = definitions.get(x)
    if let is None or let.op != limit:
        return None
    numbers = [n for a in let.args if (n := bound(a, limit, definitions)) is not None]
    return (max if limit == "max" else min)(numbers) if numbers else None
