"""An estimate of the cycles that a function of the loop IR takes: accurate enough to decide whether its work is worth dividing
among threads, and how to divide it evenly. Caches are not modelled, so memory-bound code takes longer than estimated. The cost
of each statement is in `target.costs`.
"""
from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from ..elements.expression import Buffer
from ..target.costs import Costs
from ..target.target import Target
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

ASSUMED_ITERATIONS = 8
"""Iterations assumed for a loop without a known bound."""

_known: WeakKeyDictionary[Function, tuple[Costs, float]] = WeakKeyDictionary()


def cycles(function: Function, costs: Costs) -> float:
    """Return the cycles of a whole run; cached."""
    if (known := _known.get(function)) is not None and known[0] is costs:
        return known[1]
    found = CostModel(function, costs).block(function.body)
    _known[function] = costs, found
    return found


class CostModel:
    """The cycles of the statements of one function on a machine with these costs; each block is evaluated once."""

    def __init__(self, function: Function, costs: Costs) -> None:
        self.costs = costs
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
        costs = self.costs
        match stmt:
            case Let(op="div" | "sqrt"):
                return costs.division_cycles
            case Let():
                return costs.operation_cycles
            case LoadFrom(mask=mask):
                return costs.load_cycles if mask is None else costs.masked_load_cycles
            case StoreTo():
                return costs.store_cycles
            case GatherFrom(active=active):
                return active * costs.gathered_lane_cycles
            case MultiplyTiles() | MultiplyFloatTiles() | StoreTile():
                return costs.tile_operation_cycles
            case LoadTile():
                return costs.tile_load_cycles
            case For(body=body):
                return self.iterations(stmt) * (self.block(body) + costs.iteration_cycles)
            case If(body=body, likely=likely):
                return costs.branch_cycles if likely is False else costs.branch_cycles + self.block(body)
            case _:
                return costs.operation_cycles

    def stored(self, block: Block, buffer: Buffer) -> int:
        """Return the number of elements of a buffer that a block stores, repeated stores included, stores of tiles excluded."""
        total = 0
        for stmt in block:
            match stmt:
                case StoreTo(address=address, active=active) if address.buffer is buffer:
                    total += active
                case For(body=body):
                    total += self.iterations(stmt) * self.stored(body, buffer)
                case If(body=body):
                    total += self.stored(body, buffer)
        return total

    def iterations(self, loop: For) -> int:
        """Return the most iterations that the bounds of a loop allow, or `ASSUMED_ITERATIONS` without an upper bound."""
        low, high = bound(loop.low, "max", self.definitions), bound(loop.high, "min", self.definitions)
        return ASSUMED_ITERATIONS if high is None else max(high - (low or 0), 0)


def tile_step_cycles(rows: int, vectors: int, target: Target) -> float:
    """Return the cycles of one K step in a register tile: its products, its loads, or the latency of a sum, whichever is most.
    """
    return max(rows * vectors / target.fma_per_cycle, (rows + vectors) / target.loads_per_cycle, target.fma_latency)


def bound(x: Operand, limit: str, definitions: Mapping[Var, Let]) -> int | None:
    """Return the constant that an operand is, or that limits it; None if there is none."""
    if isinstance(x, Literal):
        return int(x.value)
    let = definitions.get(x)
    if let is None or let.op != limit:
        return None
    numbers = [n for a in let.args if (n := bound(a, limit, definitions)) is not None]
    return (max if limit == "max" else min)(numbers) if numbers else None
