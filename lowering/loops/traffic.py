"""The bytes that a run loads from and stores to each buffer. The planner weighs several memories by these numbers, and the
report prints them.

Each execution of a load or store of the loop IR counts, with the lanes that it touches. No cache is modelled: an element that
is loaded twice counts twice, and a prefetch does not count. Loop bounds, conditions and masks that follow from indices count
as they are; a condition or mask that depends on the contents of memory counts as true, so that a gather under it counts all
its lanes. In a program, the body of a loop counts once, and so does each side of a branch.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from ...runtime.records import dataclass
from ..elements.expression import Buffer
from ..graph.types import ITEM_SIZES, Array
from ..kernels.kernel import Compute, Step, walk
from .cost import ASSUMED_ITERATIONS, bound
from .interpret import dtype_of, literal
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
    Operand,
    ShapeTiles,
    StoreTile,
    StoreTo,
    Var,
)
from .lane_operations import OPERATIONS, converted
from .program import Program
from .verify_steps import row_count

Call = tuple[int, int]
"""Range of rows that a function is called for."""
FEW = 64
"""Number of iterations up to which merging equal ones is not worth the time."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that a run reads and writes."""
    read: int = 0
    written: int = 0

    @property
    def moved(self) -> int:
        return self.read + self.written

    def plus(self, other: Traffic) -> Traffic:
        return Traffic(self.read + other.read, self.written + other.written)


def program_traffic(program: Program) -> dict[Buffer, Traffic]:
    """Return the traffic of one run of a program, for each buffer that its kernels use."""
    calls: dict[int, list[Call]] = {}
    for step in walk(program.steps):
        for kernel, call in calls_of(program, step):
            calls.setdefault(kernel, []).append(call)
    found: dict[Buffer, Traffic] = {}
    for kernel, some in calls.items():
        for buffer, moved in traffic(program.functions[kernel], some).items():
            found[buffer] = found.get(buffer, Traffic()).plus(moved)
    return found


def calls_of(program: Program, step: Step) -> Iterator[tuple[int, Call]]:
    """Yield the calls of functions that a step makes itself, not those of steps inside it."""
    match step:
        case Compute(kernel, _, tasks) if tasks > 1:
            for start, end in itertools.pairwise((0, *program.functions[kernel].phases)):
                for i in range(tasks):
                    yield kernel, (start + (end - start) * i // tasks, start + (end - start) * (i + 1) // tasks)
        case Compute(kernel, rows):
            whole = program.functions[kernel].rows is not None and rows is None
            yield kernel, (0, row_count(program.kernels[kernel])) if whole else rows or (0, 0)


def traffic(function: Function, calls: Sequence[Call] = ((0, 0),)) -> dict[Buffer, Traffic]:
    """Return the total traffic of these calls of a function, for each buffer."""
    low, high = np.array(calls, np.int64).reshape(-1, 2).T
    run = Count(function)
    run.block(function.body, Iterations(np.ones(len(calls), np.int64), dict(zip(function.rows or (), (low, high)))))
    return {b: Traffic(run.read.get(b, 0), run.written.get(b, 0)) for b in dict.fromkeys([*run.read, *run.written])}


@dataclass(frozen=True, slots=True)
class Iterations:
    """All executions of a block, as rows of arrays: the number of executions that each row represents (`times`), and the
    values of variables in the row; the lanes of a vector are along the second axis. A value equal in all rows has one row."""
    times: Array
    values: Mapping[Var, Array]

    def take(self, rows: Array) -> Iterations:
        return Iterations(self.times[rows], {v: a if len(a) == 1 else a[rows] for v, a in self.values.items()})

    def grouped(self, needed: set[Var]) -> Iterations:
        """Return the iterations with only the variables needed, and with equal rows merged."""
        values = {v: a for v, a in self.values.items() if v in needed}
        if len(self.times) <= FEW:
            return Iterations(self.times, values)
        table = [np.broadcast_to(a.reshape(len(a), -1), (len(self.times), a.size // len(a))) for a in values.values()]
        if not table:
            return Iterations(self.times.sum(keepdims=True), values)
        _, first, which = np.unique(np.concatenate(table, axis=1), axis=0, return_index=True, return_inverse=True)
        times = np.zeros(len(first), np.int64)
        np.add.at(times, which.reshape(-1), self.times)
        return Iterations(times, {v: a if len(a) == 1 else a[first] for v, a in values.items()})


class Count:
    """A count of the bytes that the blocks of one function load and store."""

    def __init__(self, function: Function) -> None:
        self.read: dict[Buffer, int] = {}
        self.written: dict[Buffer, int] = {}
        self.tiles: tuple[tuple[int, int], ...] = ()
        self.definitions: dict[Var, Let] = {}
        self.needed_by: dict[int, set[Var]] = {}
        self.decisive: set[Var] = set()
        self.define(function.body)
        self.need(function.body)

    # ---- operands that decide numbers of executions -------------------------------------------------------------------
    def define(self, block: Block) -> None:
        for stmt in block:
            match stmt:
                case Let(result=result):
                    self.definitions[result] = stmt
                case For(body=body) | If(body=body):
                    self.define(body)
        waiting = [x for stmt in block for x in decisions(stmt) if isinstance(x, Var)]
        while waiting:
            x = waiting.pop()
            if x not in self.decisive:
                self.decisive.add(x)
                if x in self.definitions:
                    waiting += [a for a in self.definitions[x].args if isinstance(a, Var)]

    def need(self, block: Block) -> set[Var]:
        """Return the decisive variables that a block uses."""
        found: set[Var] = set()
        for stmt in block:
            found.update(x for x in decisions(stmt) if isinstance(x, Var))
            if isinstance(stmt, Let) and stmt.result in self.decisive:
                found.update(a for a in stmt.args if isinstance(a, Var))
            elif isinstance(stmt, (For, If)):
                found |= self.need(stmt.body)
        self.needed_by[id(block)] = found
        return found

    # ---- statements ---------------------------------------------------------------------------------------------------
    def block(self, block: Block, now: Iterations) -> None:
        values = dict(now.values)
        now = Iterations(now.times, values)
        for stmt in block:
            match stmt:
                case Let(result=result) if result in self.decisive:
                    if (found := self.value_of(stmt, now)) is not None:
                        values[result] = found
                case LoadFrom(result, address, active, mask):
                    self.note(self.read, address.buffer, self.lanes(min(active, result.type.lanes), mask, now))
                case GatherFrom(result, buffer, _, active, mask):
                    self.note(self.read, buffer, self.lanes(min(active, result.type.lanes), mask, now))
                case StoreTo(address, _, active):
                    self.note(self.written, address.buffer, self.lanes(active, None, now))
                case ShapeTiles(shapes):
                    self.tiles = shapes
                case LoadTile(tile, address) | StoreTile(tile, address):
                    rows, nbytes = self.tiles[tile]
                    into = self.written if isinstance(stmt, StoreTile) else self.read
                    self.note(into, address.buffer, self.lanes(rows * nbytes // ITEM_SIZES[address.buffer.dtype], None, now))
                case For():
                    self.loop(stmt, now)
                case If():
                    self.condition(stmt, now)

    def note(self, into: dict[Buffer, int], buffer: Buffer, elements: int) -> None:
        into[buffer] = into.get(buffer, 0) + elements * ITEM_SIZES[buffer.dtype]

    def lanes(self, active: int, mask: Operand | None, now: Iterations) -> int:
        """Return the number of elements that an access touches in all iterations."""
        on = None if mask is None else self.value(mask, now)
        if on is None:
            return active * int(now.times.sum())
        return int((on.reshape(len(on), -1)[:, :active].sum(axis=1) * now.times).sum())

    def loop(self, stmt: For, now: Iterations) -> None:
        low, high = self.value(stmt.low, now), self.value(stmt.high, now)
        if low is None or high is None:  # memory decides
            most = bound(stmt.high, "min", self.definitions)
            low, high = np.zeros(1, np.int64), np.array([ASSUMED_ITERATIONS if most is None else most], np.int64)
        count = np.broadcast_to(np.maximum(high - low, 0), now.times.shape)
        needed = self.needed_by[id(stmt.body)]
        if stmt.index not in needed:
            inside = Iterations(now.times * count, now.values)
        else:
            rows = np.repeat(np.arange(len(count)), count)
            begun = np.cumsum(count) - count
            inside = now.take(rows)
            index = np.broadcast_to(low, now.times.shape)[rows] + np.arange(len(rows)) - begun[rows]
            inside = Iterations(inside.times, {**inside.values, stmt.index: index})
        if inside.times.any():
            self.block(stmt.body, inside.grouped(needed))

    def condition(self, stmt: If, now: Iterations) -> None:
        holds = self.value(stmt.condition, now)
        if holds is not None:
            now = now.take(np.flatnonzero(np.broadcast_to(holds, now.times.shape)))
        if now.times.any():
            self.block(stmt.body, now.grouped(self.needed_by[id(stmt.body)]))

    # ---- values -------------------------------------------------------------------------------------------------------
    def value(self, x: Operand, now: Iterations) -> Array | None:
        """Return the value as a row for each iteration, or one row for all; None if it depends on memory."""
        if isinstance(x, Literal):
            return np.full((1,) if x.type.lanes == 1 else (1, x.type.lanes), literal(x), dtype_of(x.type.dtype))
        return now.values.get(x)

    def value_of(self, let: Let, now: Iterations) -> Array | None:
        known = [self.value(a, now) for a in let.args]
        args = [a for a in known if a is not None]
        if len(args) < len(known):
            return None
        lanes = let.result.type.lanes
        match let.op:
            case "cast":
                return converted(args[0], dtype_of(let.result.type.dtype))
            case "splat":
                return np.repeat(args[0][:, None], lanes, axis=1)
            case "lanes":
                return np.asarray(args[0][:, None] + np.arange(lanes, dtype=args[0].dtype))
            case "any_false":
                return np.logical_not(np.asarray(args[0].all(axis=1)))
            case op if op in OPERATIONS:
                return np.asarray(OPERATIONS[op](*args))
        return None


def decisions(stmt: object) -> Iterable[Operand]:
    """Return the operands that decide how many times, and how many elements, a statement or its body accesses."""
    match stmt:
        case For(low=low, high=high):
            return low, high
        case If(condition=condition):
            return (condition,)
        case LoadFrom(mask=mask) | GatherFrom(mask=mask) if mask is not None:
            return (mask,)
    return ()
