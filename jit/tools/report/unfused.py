"""A function of the graph as steps, one for each operator, with every value stored: its needs without fusion.

It uses the planner's steps and buffers, so that lifetimes in branches and loops follow the planner's own rules.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....lowering.elements.expression import Buffer
from ....lowering.graph.graph import Block, Function, Operation, Value
from ....lowering.graph.types import ITEM_SIZES, TensorType
from ....lowering.kernels.kernel import Branch, Compute, Loop, Step
from ....lowering.memory.lifetimes import KernelAccess


def compilable(function: Function) -> bool:
    """True if the size of every value of a function is known."""
    values = [*function.arguments, *(v for op in function.body.walk() for v in op.results),
              *(v for op in function.body.walk() for region in op.regions for v in region.arguments)]
    return all(v.type.is_static and v.type.element.storage in ITEM_SIZES
               for v in values if isinstance(v.type, TensorType))


class Unfused:
    """The steps of a function, and the buffers that each accesses. `homes` maps a value to its buffer: None for a constant or a
    shape."""

    def __init__(self, function: Function) -> None:
        self.accesses: list[KernelAccess] = []
        self.homes: dict[Value, Buffer | None] = {}
        for value in function.arguments:
            self.homes[value] = stored(value, "argument")
        for value in function.body.yields:
            self.homes.setdefault(value, stored(value, "result"))
        self.steps = tuple(self.block(function.body))

    def block(self, block: Block) -> Iterator[Step]:
        for operation in block.operations:
            yield from self.operation(operation)

    def operation(self, operation: Operation) -> Iterator[Step]:
        match operation.op.name:
            case "tosa.cond_if":
                yield from self.branch(operation)
            case "tosa.while_loop":
                yield from self.loop(operation)
            case _:
                yield from self.step(operation.operands, operation.results)

    def branch(self, operation: Operation) -> Iterator[Step]:
        then, otherwise = (tuple(self.region(region, operation)) for region in operation.regions)
        condition = self.home(operation.operands[0])
        if condition is None:  # a constant condition selects the branch that runs
            constant = operation.operands[0].constant
            yield from then if constant is not None and constant.reshape(-1)[0] else otherwise
        else:
            yield Branch(condition, then, otherwise)

    def region(self, region: Block, operation: Operation) -> Iterator[Step]:
        """Yield the steps of a branch; the values that it yields are copied to the operator's results."""
        for argument, operand in zip(region.arguments, operation.operands[1:]):
            self.homes[argument] = self.home(operand)
        yield from self.block(region)
        yield from self.step(region.yields, operation.results)

    def loop(self, operation: Operation) -> Iterator[Step]:
        """Yield the steps of a loop; its results hold the carried values from iteration to iteration."""
        yield from self.step(operation.operands, operation.results)
        test, body = operation.regions
        for region in (test, body):
            self.homes.update(zip(region.arguments, map(self.home, operation.results)))
        tested = tuple(self.block(test))
        iteration = (*self.block(body), *self.step(body.yields, operation.results))
        condition = self.home(test.yields[0])
        yield from tested if condition is None else (Loop(tested, condition, iteration),)

    def step(self, reads: Iterable[Value], writes: Iterable[Value]) -> Iterator[Step]:
        """Yield one operator, or the copy of values to their buffers."""
        access = KernelAccess(tuple(self.buffers(reads)), tuple(self.buffers(writes)))
        if access.reads or access.writes:
            self.accesses.append(access)
            yield Compute(len(self.accesses) - 1)

    def buffers(self, values: Iterable[Value]) -> dict[Buffer, None]:
        return {home: None for home in map(self.home, values) if home is not None}

    def home(self, value: Value) -> Buffer | None:
        if value not in self.homes:
            self.homes[value] = stored(value, "temporary")
        return self.homes[value]


def stored(value: Value, role: str) -> Buffer | None:
    """Return the buffer of a value, if it needs memory when the function runs."""
    if value.constant is not None or not isinstance(value.type, TensorType):
        return None
    return Buffer(value.name, value.type.element.storage, value.type.dims, role)  # type: ignore[arg-type]
