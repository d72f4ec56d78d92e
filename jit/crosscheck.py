"""Compiled code against the reference interpreter, operator by operator: what `tosaic check` does.

The function is compiled twice. `fused` is what a user runs; `observed` is the same graph with every operator's result
made an output, so that each operator can be checked on the very operands that it had in native code: integers must be
equal, floats within TOSA's own bounds. The first operator that differs is named. The fused outputs are compared with the
interpreter's end to end: integers and state must be equal, floats within 1e-5 of the output's range.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ..lowering.dialects.tosa.compliance import bound, differences
from ..lowering.graph.graph import Block, Function, Module, Operation, Value
from ..lowering.graph.types import Array, TensorType
from ..lowering.native.target import Target
from ..runtime.errors import Position
from ..runtime.interpreter import InterpreterVariables, interpret
from ..runtime.variables import Context
from .external_values import give_external

END_TO_END = 1e-5
"""Allowed error of a float output of the whole function, relative to the range of its values."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A result that is not the reference's: which, in which call, how many elements, and the first of them."""
    where: str
    position: Position | None
    call: int
    count: int
    size: int
    index: tuple[int, ...]
    actual: float
    expected: float

    def __str__(self) -> str:
        place = f"{self.position}: " if self.position else ""
        return (f"{place}{self.where}: {self.count} of {self.size} elements differ in call {self.call}, the first at "
                f"{list(self.index)}: compiled {self.actual}, reference {self.expected}")


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """The verdict over some calls; `operators` is how many operator results were compared."""
    calls: int
    operators: int
    elements: int
    difference: Difference | None

    @property
    def agrees(self) -> bool:
        return self.difference is None

    def __str__(self) -> str:
        checked = f"{self.operators} operator results ({self.elements} elements) in {self.calls} calls"
        if self.difference is None:
            return f"compiled code agrees with the reference: {checked}"
        return f"compiled code differs from the reference after {checked}\n{self.difference}"

    def as_dict(self) -> dict[str, Any]:
        return {"agrees": self.agrees, "calls": self.calls, "operators": self.operators, "elements": self.elements,
                "difference": None if self.difference is None else str(self.difference)}


def observe_all(function: Function) -> tuple[Function, tuple[Operation, ...]]:
    """The function with the results of all its operators as further outputs, and those operators in order."""
    observed = tuple(o for o in function.body.operations if o.results and o.op.name not in (
        "tosa.const", "tosa.const_shape") and all(isinstance(r.type, TensorType) for r in o.results))
    extra = tuple(r for o in observed for r in o.results)
    body: Block = replace(function.body, yields=(*function.body.yields, *extra))
    return replace(function, body=body, result_types=(*function.result_types, *(v.type for v in extra)),
                   result_attributes=()), observed


Build = Callable[[Module, Function, Target | None], Any]


Source = Callable[[], "SourceRun"]
"""Begins a run of what a graph was made from (a graph of TensorFlow), with its variables as they are at first."""


class SourceRun(Protocol):
    """One after the other, calls of the function that the graph was made from."""

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Array]: ...
    @property
    def variables(self) -> Mapping[str, Array | None]: ...


def crosscheck(module: Module, function: Function, calls: Sequence[Sequence[Array]], build: Build,
               target: Target | None = None, source: Source | None = None) -> CrossCheck:
    """Check `function` of a rewritten module on `calls`, one list of arrays each, on one state; against what it was made from,
    too, if there is a `source`.

    `build(module, function, target)` compiles a function into an executable.
    """
    run = source() if source else None
    observed_function, operations = observe_all(function)
    functions = tuple(observed_function if f is function else f for f in module.functions)
    observed_module = replace(module, functions=functions)
    fused, observed = build(module, function, target), build(observed_module, observed_function, target)
    contexts = Context("crosscheck, fused"), Context("crosscheck, observed")
    variables = InterpreterVariables()
    give_external(module, function, contexts, variables)
    count, operators, elements = len(function.body.yields), 0, 0
    for number, arrays in enumerate(calls):
        results = as_tuple(observed(*arrays, context=contexts[1]))
        values = dict(zip(function.arguments, arrays))
        values.update(zip((r for o in operations for r in o.results), results[count:]))
        interpreted: dict[Operation, Sequence[Array]] = {}
        expected = interpret(module, function, arrays, variables=variables, observe=interpreted.__setitem__)
        for operation in operations:
            found = check_operation(operation, values, interpreted[operation], number)
            operators += 1
            elements += sum(r.tensor.size for r in operation.results)
            if found:
                return CrossCheck(number + 1, operators, elements, found)
        actual = as_tuple(fused(*arrays, context=contexts[0]))
        found = (check_outputs(actual, expected, function, number)
                 or check_state(contexts[0].snapshot(), variables.snapshot(), number)
                 or (check_source(actual, contexts[0].snapshot(), run, arrays, function, number) if run else None))
        if found:
            return CrossCheck(number + 1, operators, elements, found)
    return CrossCheck(len(calls), operators, elements, None)


def as_tuple(results: Any) -> tuple[Array, ...]:
    return results if isinstance(results, tuple) else (results,)


def data_of(value: Value, values: Mapping[Value, Array]) -> Array:
    return value.constant if value.constant is not None else values[value]


def check_operation(operation: Operation, values: Mapping[Value, Array], interpreted: Sequence[Array],
                    call: int) -> Difference | None:
    """One operator on the operands that it had in native code. What an operator with regions or a variable's value give
    follows from more than operands: they are compared with what the interpreter had there, as outputs are."""
    if operation.regions or operation.op.variable_effect:
        for result, expected in zip(operation.results, interpreted, strict=True):
            found = compare(values[result], expected, end_to_end(expected), str(operation), operation.position, call)
            if found:
                return found
        return None
    operands = [data_of(v, values) for v in operation.operands]
    with np.errstate(all="ignore"):
        references = as_tuple(operation.op.reference(*operands))
    for result, reference in zip(operation.results, references, strict=True):
        expected = np.asarray(reference)
        allowed = bound(operation.op, operands, expected, result.tensor.element)
        found = compare(values[result], expected, allowed, str(operation), operation.position, call)
        if found:
            return found
    return None


def check_outputs(actual: Sequence[Array], expected: Sequence[Array], function: Function,
                  call: int) -> Difference | None:
    for number, (a, e) in enumerate(zip(actual, expected)):
        where = f"output {number} of {function.name}"
        found = compare(a, e, end_to_end(e), where, function.body.terminator_position, call)
        if found:
            return found
    return None


def check_state(actual: Mapping[str, Array | None], expected: Mapping[str, Array | None], call: int) -> Difference | None:
    """The variables after a call; one that only one side has written is a difference, too."""
    for name, right in expected.items():
        value = actual.get(name)
        if value is not None and right is not None:
            found = compare(value, right, end_to_end(right), f"variable @{name}", None, call)
            if found:
                return found
        elif value is not None or right is not None:
            what = "has not been written by compiled code" if value is None else "has been written by compiled code alone"
            written = float(value is not None), float(right is not None)
            return Difference(f"variable @{name} {what}", None, call, 1, 1, (), *written)
    return None


def check_source(actual: Sequence[Array], state: Mapping[str, Array | None], run: SourceRun, arrays: Sequence[Array],
                 function: Function, call: int) -> Difference | None:
    """Outputs and variables against those of what the graph was made from."""
    expected = [np.asarray(x) for x in run(arrays)]
    used = {name: value for name, value in run.variables.items() if name in state}
    found = check_outputs(actual, expected, function, call) or check_state(state, used, call)
    return replace(found, where=f"{found.where}, as TensorFlow has it") if found else None


def end_to_end(expected: Array) -> Array | None:
    if expected.dtype.kind in "iub":
        return None
    values = expected.astype(np.float64)
    finite = values[np.isfinite(values)]
    with np.errstate(over="ignore"):
        span = float(finite.max() - finite.min()) if finite.size else 0.0
    return np.full(expected.shape, END_TO_END * max(span, float(np.abs(finite).max(initial=0.0))))


def compare(actual: Array, expected: Array, allowed: Array | None, where: str, position: Position | None,
            call: int) -> Difference | None:
    if actual.shape != expected.shape:
        return Difference(f"{where} has shape {actual.shape}, not {expected.shape}", position, call, 1, 1, (), 0, 0)
    wrong = differences(actual, expected, allowed)
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return Difference(where, position, call, int(wrong.sum()), wrong.size, index, float(actual[index]),
                      float(expected[index]))
