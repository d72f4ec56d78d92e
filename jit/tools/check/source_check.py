"""Comparison of a model's graph with the model in its own dialect, in this package's interpreter of that dialect: the stage of
`check` that needs no other system.

Results and variables are compared call by call, each operation of the source with its own reference on its actual operands
(`source_operators`). If only the whole differs, the first operation whose values depart from the source's is named
(`value_traces`).
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....lowering.graph.graph import Function, Module, Operation
from ....lowering.graph.types import Array
from ....lowering.rewrite.translation_record import RecordedTranslation, Translated
from ....runtime.interpreter import Interpreter, InterpreterVariables
from ...source import Source
from .differences import Difference, FailedCall, Results, attempt
from .following import Follower, Written
from .import_check import SourceComparison
from .source_operators import OperatorChecks
from .value_traces import Trace, first_apart


@dataclass(frozen=True, slots=True)
class SourceCheck:
    """The verdict: the number of compared elements of results and variables, and of operations that were compared with their
    own references; the operations without a reference, by name; the first difference, and the operation that causes it."""
    kind: str
    elements: int
    operators: int
    absent: Mapping[str, int]
    difference: Difference | None = None
    operator: str | None = None
    uncompared: int = 0

    @property
    def agrees(self) -> bool:
        """True if something was compared, and nothing differs."""
        return self.difference is None and self.elements + self.operators > 0

    @property
    def differs(self) -> bool:
        return self.difference is not None

    def __str__(self) -> str:
        if not (self.agrees or self.differs):
            return f"the graph was not compared with its source, {self.kind}: no call gave results on both sides"
        verb = "differs from" if self.differs else "agrees with"
        lines = [f"the graph {verb} its source, {self.kind}: {self.operators} of its operators compared one by one"]
        lines += [str(self.difference)] if self.difference is not None else []
        lines += [f"the first operator that differs: {self.operator}"] if self.operator else []
        if self.absent:
            named = ", ".join(f"{name} ({count})" for name, count in sorted(self.absent.items()))
            lines.append(f"  compared in whole results alone: {named}")
        if self.uncompared:
            lines.append(f"  {self.uncompared} elements could not be compared end to end: any rounding changes them")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "agrees": self.agrees if self.agrees or self.differs else None, "elements": self.elements,
                "operators": self.operators, "absent": dict(self.absent),
                "difference": None if self.difference is None else str(self.difference), "operator": self.operator,
                "uncompared": self.uncompared}


def check_source(source: Source, translation: RecordedTranslation, module: Module, function: Function,
                 calls: Sequence[Sequence[Array]]) -> SourceCheck:
    """Compare `function` of a module with its source, on calls; `translation` is the translation with its record."""
    whole = SourceComparison(module, function, calls, source(), "its source", goes_on=True)
    difference = whole.run()
    checks = OperatorChecks(translation)
    follow_operators(source, checks, calls)
    operator = checks.operator
    if difference is not None and operator is None:
        found = first_to_leave(source, checks, calls)
        operator = translation.label(found) if found is not None else None
    return SourceCheck(source.kind, whole.tally.compared, checks.operators, Counter(checks.absent.values()),
                       checks.difference or difference, operator, whole.tally.elements.not_comparable)


def follow_operators(source: Source, checks: OperatorChecks, calls: Sequence[Sequence[Array]]) -> None:
    """Interpret the translation call by call, and compare each operation on its operands, as long as calls return results."""
    run = TranslatedRun(source, checks.translation)
    for number, arrays in enumerate(calls):
        checks.call = number
        if isinstance(run(arrays, checks.complete, lambda node, name, array: None), FailedCall):
            return


def first_to_leave(source: Source, checks: OperatorChecks, calls: Sequence[Sequence[Array]]) -> Operation | None:
    """Return the first operation whose values depart from the source's: run both with all their values."""
    translation, run = TranslatedRun(source, checks.translation), source()
    places = {r.operation.position: r.operation for r in checks.translation.records}
    for arrays in calls:
        one, other = Trace(), Trace()
        run.observed_by(one.came, one.written)

        def written(node: Operation, name: str, array: Array, trace: Trace = other) -> None:
            trace.written(places.get(node.position, node), name, array)
        results = translation(arrays, other.complete, written), attempt(lambda: run(arrays))
        found = first_apart(one, other, checks.right())
        if found is not None or any(isinstance(r, FailedCall) for r in results):
            return found
    return None


class TranslatedRun:
    """Calls of a recorded translation in the interpreter, on one state."""

    def __init__(self, source: Source, translation: RecordedTranslation) -> None:
        self.translation, self.follower = translation, Follower(translation)
        self.interpreter = Interpreter(translation.module, translation.name, InterpreterVariables())
        self.carried = source.carried(self.run)

    def run(self, arrays: Sequence[Array]) -> Sequence[Array]:
        return self.interpreter(*arrays, observe=self.follower.observe, enter=self.follower.enter)

    def __call__(self, arrays: Sequence[Array], complete: Callable[[Follower, Translated], None], written: Written) -> Results:
        """Return the results of a call. Call `complete` after each operation, and `written` after each write to a variable."""
        self.follower.begin(lambda record: complete(self.follower, record), written)
        results = attempt(lambda: self.carried(arrays))
        if not isinstance(results, FailedCall):
            self.follower.end()
        return results
