"""The reference interpreter: a function of the tensor graph, run operator by operator with each operator's `reference`.

It is the reference for all compiled code, so it shares nothing with the compiler. The runtime does not import the graph: it
takes any object with the same protocols (`GraphModule`, `Procedure`, `GraphBlock`, `Node`, `Name`). `Interpreter` converts a
function once into a list of instructions over numbered slots; each run then executes that list.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from .errors import Position, Problem, TypeProblem, ValueProblem
from .interpreter_variables import InterpreterVariables, RunVariables, fits
from .limits import Iterations, checkpoint

Array = np.ndarray[Any, np.dtype[Any]]
Observer = Callable[[Any, Sequence[Array]], None]
"""Called after every operation, including those in regions, with the operation and its results."""
BlockObserver = Callable[[Any, Sequence[Array]], None]
"""Called at the beginning of every block, including the function's, with the block and its arguments."""


class Name(Protocol):
    """A value of the graph; values are compared by identity."""
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> Any: ...


class Node(Protocol):
    """An operation of the graph. `op` has `name`, `reference`, `variable_effect`, and its attributes."""
    @property
    def op(self) -> Any: ...
    @property
    def operands(self) -> Sequence[Any]: ...
    @property
    def results(self) -> Sequence[Any]: ...
    @property
    def regions(self) -> Sequence[Any]: ...
    @property
    def position(self) -> Position | None: ...


class GraphBlock(Protocol):
    """A block of the graph."""
    @property
    def arguments(self) -> Sequence[Any]: ...
    @property
    def operations(self) -> Sequence[Any]: ...
    @property
    def yields(self) -> Sequence[Any]: ...


class Procedure(Protocol):
    """A function of the graph."""
    @property
    def name(self) -> str: ...
    @property
    def body(self) -> Any: ...
    def __hash__(self) -> int: ...


class GraphModule(Protocol):
    """A module of the graph."""
    @property
    def declarations(self) -> Sequence[Any]: ...
    def function(self, name: str | None = None) -> Any: ...
    def __hash__(self) -> int: ...


@dataclass(slots=True)
class GraphRun:
    """State of one run, and its observers."""
    slots: list[Any]
    variables: RunVariables
    observe: Observer | None
    iterations: Iterations
    enter: BlockObserver | None = None


Execute = Callable[[GraphRun], None]


@dataclass(frozen=True, slots=True)
class Instruction:
    """One operation, ready to run. A constant's results are in their slots before the run."""
    node: Node
    execute: Execute
    results: tuple[int, ...]
    is_constant: bool = False


@dataclass(frozen=True, slots=True)
class Sequel:
    """A block, ready to run: slots of its arguments and of its yielded values."""
    arguments: tuple[int, ...]
    instructions: tuple[Instruction, ...]
    yields: tuple[int, ...]
    block: GraphBlock | None = None

    def run(self, run: GraphRun) -> None:
        for instruction in self.instructions:
            checkpoint()
            if not instruction.is_constant:
                try:
                    instruction.execute(run)
                except Problem as problem:
                    raise problem.at(instruction.node.position) from None
            if run.observe is not None:
                run.observe(instruction.node, [run.slots[r] for r in instruction.results])

    def call(self, run: GraphRun, values: Sequence[Array]) -> list[Array]:
        """Run the block on these arguments, and return its yielded values."""
        for slot, value in zip(self.arguments, values):
            run.slots[slot] = value
        if run.enter is not None:
            run.enter(self.block, values)
        self.run(run)
        return [run.slots[y] for y in self.yields]


@dataclass(frozen=True, slots=True)
class ReadyFunction:
    """A function, ready to run: the module's declarations, its body, and the slots with the constants in them."""
    declarations: Sequel
    body: Sequel
    initial: list[Any]


class Interpreter:
    """A function of a module, ready to be run many times. `function` is one of the module's functions, its name, or None for
    the module's entry."""

    def __init__(self, module: GraphModule, function: Procedure | str | None = None,
                 variables: InterpreterVariables | None = None) -> None:
        self.variables = InterpreterVariables() if variables is None else variables
        self.function = module.function(function) if function is None or isinstance(function, str) else function
        self._plan = planned(module, self.function)
        self.iterations = 0
        """Iterations of all loops of the last run."""

    def __call__(self, *inputs: Array, observe: Observer | None = None, enter: BlockObserver | None = None
                 ) -> tuple[Array, ...]:
        """Return the results, as new arrays, for inputs of the arguments' dtypes and shapes."""
        arguments = self.function.body.arguments
        if len(inputs) != len(arguments):
            raise TypeProblem(f"{self.function.name} takes {len(arguments)} inputs, not {len(inputs)}", kind="argument")
        values = [checked_input(x, argument) for x, argument in zip(inputs, arguments)]
        run = GraphRun(self._plan.initial.copy(), RunVariables(self.variables), observe, Iterations(), enter)
        with np.errstate(all="ignore"):
            self._plan.declarations.run(run)
            results = self._plan.body.call(run, values)
        self.iterations = run.iterations.count
        self.variables.states = run.variables.states
        return tuple(np.array(r, order="C") for r in results)


def interpret(module: GraphModule, function: Procedure | str | None, inputs: Sequence[Array],
              variables: InterpreterVariables | None = None, observe: Observer | None = None) -> tuple[Array, ...]:
    """Run a function. Without `variables`, variables live as long as this run."""
    return Interpreter(module, function, variables)(*inputs, observe=observe)


_plans: WeakKeyDictionary[GraphModule, dict[Procedure, ReadyFunction]] = WeakKeyDictionary()


def planned(module: GraphModule, function: Procedure) -> ReadyFunction:
    """Return the plan of a function, kept as long as the module is, so that repeated runs plan it once."""
    plans = _plans.setdefault(module, {})
    if function not in plans:
        builder = PlanBuilder()
        declarations = builder.sequence((), module.declarations, ())
        plans[function] = ReadyFunction(declarations, builder.block(function.body), builder.initial)
    return plans[function]


def checked_input(x: Any, argument: Name) -> Array:
    """Return an input as an array of the argument's type; raise a Problem unless it has that type already."""
    type = argument.type
    if not hasattr(type, "element"):
        raise Problem(f"input {argument.name} is a {type}, not a tensor", kind="unsupported")
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise TypeProblem(f"input {argument.name} is not an array: {error}", kind="argument") from None
    if array.dtype != type.element.dtype:
        raise TypeProblem(f"input {argument.name} is an array of {array.dtype}, not of {type.element.dtype}",
                          kind="argument", help=f"the argument is {type}")
    if not fits(type.shape, array.shape):
        raise ValueProblem(f"input {argument.name} has shape {list(array.shape)}, the argument is {type}", kind="argument")
    return array


class PlanBuilder:
    """Assigns a slot to every value, and converts blocks to instructions."""

    def __init__(self) -> None:
        self.initial: list[Any] = []
        self._slots: dict[Any, int] = {}

    def slot(self, value: Name) -> int:
        if value not in self._slots:
            self._slots[value] = len(self.initial)
            self.initial.append(None)
        return self._slots[value]

    def places(self, values: Sequence[Name]) -> tuple[int, ...]:
        return tuple(map(self.slot, values))

    def block(self, region: GraphBlock) -> Sequel:
        return self.sequence(region.arguments, region.operations, region.yields, region)

    def sequence(self, arguments: Sequence[Name], operations: Sequence[Node], yields: Sequence[Name],
                 block: GraphBlock | None = None) -> Sequel:
        return Sequel(self.places(arguments), tuple(map(self.instruction, operations)), self.places(yields), block)

    def instruction(self, node: Node) -> Instruction:
        results = self.places(node.results)
        is_constant = not node.operands and len(results) == 1 and hasattr(node.op, "values")
        if is_constant:
            try:
                self.initial[results[0]] = checked_result(node.op.reference(), node.results[0])
            except Problem as problem:
                raise problem.at(node.position) from None
        return Instruction(node, self.execute(node, results), results, is_constant)

    def execute(self, node: Node, results: tuple[int, ...]) -> Execute:
        """Return the action of the operation in a run."""
        op = node.op
        match op.variable_effect, op.name:
            case "declare", _:
                return lambda run: run.variables.declare(op.symbol, op.type, op.initial)
            case "read", _:
                return lambda run: store(run, results, [run.variables.read(op.symbol, op.type)])
            case "write", _:
                operand, = self.places(node.operands)
                type = node.operands[0].type
                return lambda run: run.variables.write(op.symbol, run.slots[operand], type)
            case _, "tosa.cond_if":
                return self.branch(node, results)
            case _, "tosa.while_loop":
                return self.loop(node, results)
        return self.call(node, results)

    def call(self, node: Node, results: tuple[int, ...]) -> Execute:
        reference, operands, values = node.op.reference, self.places(node.operands), tuple(node.results)

        def execute(run: GraphRun) -> None:
            found = reference(*[run.slots[o] for o in operands])
            store(run, results, map(checked_result, found if isinstance(found, tuple) else (found,), values))

        return execute

    def branch(self, node: Node, results: tuple[int, ...]) -> Execute:
        condition, *operands = self.places(node.operands)
        then, otherwise = map(self.block, node.regions)

        def execute(run: GraphRun) -> None:
            region = then if run.slots[condition].item() else otherwise
            store(run, results, region.call(run, [run.slots[o] for o in operands]))

        return execute

    def loop(self, node: Node, results: tuple[int, ...]) -> Execute:
        operands = self.places(node.operands)
        test, body = map(self.block, node.regions)

        def execute(run: GraphRun) -> None:
            values = [run.slots[o] for o in operands]
            while test.call(run, values)[0].item():
                run.iterations.next()
                values = body.call(run, values)
            store(run, results, values)

        return execute


def store(run: GraphRun, slots: Sequence[int], values: Any) -> None:
    for slot, value in zip(slots, values):
        run.slots[slot] = value


def checked_result(found: Any, value: Name) -> Array:
    """Return a result as an array; raise a Problem if it does not have the type that the graph declares."""
    array, type = np.asarray(found), value.type
    if hasattr(type, "element") and not (array.dtype == type.element.dtype and fits(type.shape, array.shape)):
        raise Problem(f"%{value.name} is declared as {type}, its operator gives {array.dtype} of shape "
                      f"{list(array.shape)}", kind="type")
    return array


__all__ = ["Interpreter", "InterpreterVariables", "Observer", "interpret"]
