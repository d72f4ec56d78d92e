"""Comparison of compiled code with the reference interpreter, operator by operator: the implementation of `tosaic check`.

The function is compiled twice. `fused` is the code that a user runs; `observed` is the same graph with every operator's result
made an output, so that each operator can be checked on its actual operands in native code: integers must be equal, floats
within TOSA's own bounds. The first operator that differs is named. The fused outputs and the state are compared with the
interpreter's end to end: they may differ as much as rounding within these bounds can cause (`rounding`). A call that ends with
an error in only one of the two is a difference. A graph of a dialect that this package interprets is first compared with that,
operation by operation (`source_check`), and an imported model with its own system (`import_check`).
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....lowering.dialects.tosa.compliance import bound, differences
from ....lowering.graph.graph import Block, Function, Module, Operation, Value
from ....lowering.graph.types import Array, TensorType
from ....lowering.options import CompileOptions
from ....runtime.errors import Problem
from ....runtime.interpreter import Interpreter, InterpreterVariables
from ....runtime.interrupts import process as interrupts
from ....runtime.limits import OutOfTime
from ....runtime.progress import counted, report_progress
from ....runtime.variables import Context
from ...source import ImportedSource, Source
from .calls import checked_calls
from .differences import Comparison, Difference, FailedCall, Results, attempt, faults_differ, found_at
from .external_values import give_external
from .forbidden_indices import Violation, Watch
from .import_check import ImportCheck, check_import
from .rounding_bounds import Samples
from .source_check import SourceCheck, check_source
from .tally import UNBOUNDED, Tally
from .verdict import Agrees, Verdict, nothing_compared, verdict


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """The verdict over some calls. `operators` is the number of operator results that were compared, with `elements` elements;
    `results` the number of elements of outputs and variables; `faults` are errors with which both sides ended a call.
    `violations` are operands that the specification forbids: the result is unpredictable. `source` and `imported` are the
    stages before: the translation of the model's own dialect, and the model in its own system."""
    calls: int
    operators: int
    elements: int
    results: int
    verdict: Verdict
    imported: ImportCheck | None = None
    violations: tuple[Violation, ...] = ()
    faults: tuple[str, ...] = ()
    source: SourceCheck | None = None

    def __repr__(self) -> str:
        verdict = "agrees" if self.agrees else "differs"
        return f"<CrossCheck {verdict}: {self.operators} operator results in {self.calls} calls>"

    @property
    def difference(self) -> Difference | None:
        """First difference between compiled code and the reference."""
        return self.verdict.difference

    @property
    def uncompared(self) -> int:
        """Number of elements that could not be compared."""
        return self.verdict.elements.not_comparable

    @property
    def agrees(self) -> bool:
        """True if compiled code agrees with the reference, and the reference with the model's source."""
        return (isinstance(self.verdict, Agrees) and not (self.imported is not None and self.imported.differs)
                and not (self.source is not None and self.source.differs))

    @property
    def passes(self) -> bool:
        """True if it agrees, and the specification forbids no operand."""
        return self.agrees and not self.violations

    def __str__(self) -> str:
        checked = (f"{self.operators:,} operator results ({self.elements:,} elements) and {self.results:,} elements of outputs "
                   f"and variables in {self.calls} call{'s' * (self.calls != 1)}")
        if self.difference is None:
            lines = [f"compiled code agrees with the reference: {checked}"]
        else:
            lines = [f"compiled code differs from the reference after {checked}", str(self.difference)]
        lines += [reasons] if (reasons := self.verdict.elements.reasons) else []
        lines += [f"both end call {text}" for text in self.faults]
        lines += [str(violation) for violation in self.violations]
        lines += [str(stage) for stage in (self.source, self.imported) if stage is not None]
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        return {"agrees": self.agrees, "passes": self.passes, "calls": self.calls, "operators": self.operators,
                "elements": self.elements, "results": self.results,
                "difference": None if self.difference is None else str(self.difference),
                "violations": [str(v) for v in self.violations], "faults": list(self.faults), "uncompared": self.uncompared,
                "reasons": dict(self.verdict.elements.uncompared),
                "source": None if self.source is None else self.source.as_dict(),
                "import": None if self.imported is None else self.imported.as_dict()}


def observe_all(function: Function) -> tuple[Function, tuple[Operation, ...]]:
    """Return the function with the results of all its operators as further outputs, and those operators in order."""
    observed = tuple(o for o in function.body.operations if o.results and o.op.name not in (
        "tosa.const", "tosa.const_shape") and all(isinstance(r.type, TensorType) for r in o.results))
    extra = tuple(r for o in observed for r in o.results)
    body: Block = replace(function.body, yields=(*function.body.yields, *extra))
    return replace(function, body=body, result_types=(*function.result_types, *(v.type for v in extra)),
                   result_attributes=()), observed


Build = Callable[[Module, Function, CompileOptions | None], Any]


def crosscheck(module: Module, function: Function, calls: Sequence[Any], build: Build,
               options: CompileOptions | None = None, source: Source | None = None,
               imported: ImportedSource | None = None) -> CrossCheck:
    """Check `function` of a rewritten module on `calls`, one list of arrays each, on one state. Also check it against its
    origin: a `source`, in the interpreters of this package, or, if it is `imported`, a file or another system.

    `build(module, function, options)` compiles a function into an executable.
    """
    calls = checked_calls(function, calls)
    report_progress("source")
    translation = source.recorded([v.type for v in function.arguments]) if source else None
    origin = check_source(source, translation, module, function, calls) if source and translation else None
    found = check_import(imported, module, function, calls, translation) if imported else None
    engines, difference = Engines(module, function, calls, build, options), None
    for number, arrays in enumerate(counted("calls", calls)):
        try:
            difference = engines.call(number, arrays)
        except OutOfTime as problem:
            raise engines.out_of_time(number, len(calls), problem) from None
        if difference:
            break
    return engines.verdict(difference, found, origin)


class Engines:
    """The interpreter, observed code and fused code, each with its own state, call after call."""

    def __init__(self, module: Module, function: Function, calls: Sequence[Sequence[Array]], build: Build,
                 options: CompileOptions | None) -> None:
        observed, self.operations = observe_all(function)
        functions = tuple(observed if f is function else f for f in module.functions)
        self.function, self.watch = function, Watch()
        self.fused = build(module, function, options)
        self.observed = build(replace(module, functions=functions), observed, options)
        self.contexts = Context("crosscheck, fused"), Context("crosscheck, observed")
        variables = InterpreterVariables()
        give_external(module, function, self.contexts, variables)
        self.interpreter = Interpreter(self.watch.module(module), function.name, variables)
        self.samples = Samples(module, function, calls)
        self.tally, self.operators, self.elements, self.count = Tally(), 0, 0, 0
        self.faults: list[str] = []

    def verdict(self, difference: Difference | None, imported: ImportCheck | None, source: SourceCheck | None) -> CrossCheck:
        """Return the verdict after the last call. Raise a Problem if nothing was compared."""
        elements = self.tally.elements
        if difference is None and not elements.compared and self.faults:
            raise nothing_compared(f"both engines end call {self.faults[0]}")
        return CrossCheck(self.count, self.operators, self.elements, elements.compared - self.elements,
                          verdict(elements, difference), imported, tuple(self.watch.found), tuple(self.faults), source)

    def out_of_time(self, number: int, calls: int, problem: OutOfTime) -> Problem:
        """Return the Problem of a check that ran out of time, with the amount that was compared."""
        return OutOfTime(f"the time of the check is over: {number} of {calls} calls were compared whole, "
                         f"{self.tally.compared:,} elements, without a difference", problem.position, kind="limit",
                         help="give --limits more seconds, fewer calls, or inputs with which loops run less often")

    def call(self, number: int, arrays: Sequence[Array]) -> Difference | None:
        """Return the first difference in a call."""
        self.count, self.watch.call = number + 1, number
        interpreted: dict[Value, Array] = {}

        def observe(operation: Operation, results: Sequence[Array]) -> None:
            interpreted.update(zip(operation.results, results))

        report_progress("the interpreter")
        expected = attempt(lambda: self.interpreter(*arrays, observe=observe))
        self.samples.iterations = max(self.samples.iterations, self.interpreter.iterations)
        report_progress("compiled code")
        with interrupts.until_deadline():
            observed = attempt(lambda: as_tuple(self.observed(*arrays, context=self.contexts[1])))
            fused = attempt(lambda: as_tuple(self.fused(*arrays, context=self.contexts[0])))
        report_progress("comparing")
        comparison = Comparison(lambda: self.samples.pairs(number), number, tally=self.tally)
        return (faults_differ(observed, expected, f"{self.function.name}, all results observed", number)
                or self.check_operators(arrays, observed, interpreted, comparison)
                or faults_differ(fused, expected, self.function.name, number)
                or self.check_results(fused, expected, comparison))

    def check_operators(self, arrays: Sequence[Array], observed: Results, interpreted: Mapping[Value, Array],
                        comparison: Comparison) -> Difference | None:
        if isinstance(observed, FailedCall):
            return None
        values = dict(zip(self.function.arguments, arrays))
        values.update(zip((r for o in self.operations for r in o.results), observed[len(self.function.body.yields):]))
        for operation in self.operations:
            before = self.tally.compared
            found = check_operation(operation, values, interpreted, comparison)
            self.operators += 1
            self.elements += self.tally.compared - before
            if found:
                return found
        return None

    def check_results(self, fused: Results, expected: Results, comparison: Comparison) -> Difference | None:
        """Compare outputs and variables after the call; only the variables if both sides ended with the same fault."""
        if isinstance(expected, FailedCall):
            if not any(text.startswith(f"{comparison.call} ") for text in self.faults):
                self.faults.append(f"{comparison.call} with \"{expected.message}\"")
        elif not isinstance(fused, FailedCall):
            found = check_outputs(fused, expected, self.function, comparison)
            if found:
                return found
        return check_state(self.contexts[0].snapshot(), self.interpreter.variables.snapshot(), comparison.call, comparison)


def as_tuple(results: Any) -> tuple[Array, ...]:
    return results if isinstance(results, tuple) else (results,)


def data_of(value: Value, values: Mapping[Value, Array]) -> Array:
    return value.constant if value.constant is not None else values[value]


def check_operation(operation: Operation, values: Mapping[Value, Array], interpreted: Mapping[Value, Array],
                    comparison: Comparison) -> Difference | None:
    """Compare one operator on its operands in native code. The results of an operator with regions, or of one that accesses a
    variable, depend on more than operands: compare them with the interpreter's, as outputs are."""
    if operation.regions or operation.op.variable_effect:
        for result in operation.results:
            found = comparison.compare(values[result], interpreted[result], lambda o: o.observed.get(result), str(operation),
                                       operation.position)
            if found:
                return found
        return None
    operands = [data_of(v, values) for v in operation.operands]
    with np.errstate(all="ignore"):
        references = as_tuple(operation.op.reference(*operands))
    for result, reference in zip(operation.results, references, strict=True):
        expected = np.asarray(reference)
        allowed = bound(operation.op, operands, expected, result.tensor.element)
        comparison.tally.add(values[result], expected, allowed is not None and np.isinf(allowed), UNBOUNDED)
        wrong = differences(values[result], expected, allowed)
        found = found_at(wrong, values[result], expected, str(operation), operation.position, comparison.call)
        if found:
            return found
    return None


def check_outputs(actual: Sequence[Array], expected: Sequence[Array], function: Function,
                  comparison: Comparison) -> Difference | None:
    for number, (a, e) in enumerate(zip(actual, expected)):
        found = comparison.compare(a, e, lambda o: o.outputs[number], f"output {number} of {function.name}",
                                   function.body.terminator_position)
        if found:
            return found
    return None


def check_state(actual: Mapping[str, Array | None], expected: Mapping[str, Array | None], call: int,
                comparison: Comparison | None = None) -> Difference | None:
    """Compare the variables after a call, which must be equal if there is no `comparison`. A variable that only one side has
    written is a difference."""
    comparison = comparison or Comparison(lambda: (), call)
    for name, right in expected.items():
        value = actual.get(name)
        if value is not None and right is not None:
            found = comparison.compare(value, right, lambda o: o.state.get(name), f"variable @{name}")
            if found:
                return found
        elif value is not None or right is not None:
            what = "has not been written by compiled code" if value is None else "has been written by compiled code alone"
            written = float(value is not None), float(right is not None)
            return Difference(f"variable @{name} {what}", None, call, 1, 1, (), *written)
    return None
