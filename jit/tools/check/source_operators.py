"""Comparison of each operation of the source with its own reference: the translated graph is interpreted, and every operation
is computed again from its actual operands. So an error is found at the operation that causes it, whatever its later effect, and
no error carries over to the next operation.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....lowering.dialects.data import Datum
from ....lowering.graph.foreign import spelling
from ....lowering.graph.graph import Operation, Value
from ....lowering.rewrite.translation_record import RecordedTranslation, Translated
from ....runtime.errors import Problem
from .differences import Difference, found_at
from .following import MISSING, Follower
from .operator_bounds import Compute, plain, wrong_elements

NAMES = "translated", "source"
MOST_SAME = 64
"""Maximum number of comparisons of one operation: later iterations of a loop are not compared."""


@dataclass(slots=True, eq=False)
class OperatorChecks:
    """Results so far of the comparison of operations."""
    translation: RecordedTranslation
    call: int = 0
    compared: Counter[Operation] = field(default_factory=Counter)
    absent: dict[Operation, str] = field(default_factory=dict)
    """Operations whose results no independent reference computes, by their names."""
    differing: set[Operation] = field(default_factory=set)
    difference: Difference | None = None
    operator: str | None = None
    makers: dict[Value, Translated] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for record in self.translation.records:
            self.makers.update((d, record) for d in record.results if isinstance(d, Value) and d not in record.operands)

    def complete(self, follower: Follower, record: Translated) -> None:
        """Compare an operation whose results are complete."""
        operation = record.operation
        if self.compared[operation] >= MOST_SAME or self.translation.is_followed(operation):
            return
        operands = [self.operand(follower, d) for d in record.operands]
        results = [follower.datum(d) for d in record.results]
        if any(x is MISSING for x in operands) or all(x is MISSING for x in results):
            return
        if record.is_computed:
            self.absent[operation] = spelling(operation)
            return
        self.compare(operation, results, operands, lambda given: self.translation.reference(operation, given),
                     self.translation.steps(operation), self.translation.label(operation))
        term = self.translation.terms.get(record)
        if term is not None and results[0] is not MISSING:
            given = [self.operand(follower, d) for d in term.operands]
            if not any(x is MISSING for x in given):
                self.compare(operation, [term.result(results[0])], given, lambda g: [term.compute(g)], term.steps, term.label)

    def operand(self, follower: Follower, datum: Datum) -> Any:
        """Return an operand; if the translation has folded it away, compute it by the reference of the operation that defines
        it."""
        found = follower.datum(datum)
        record = self.makers.get(datum) if found is MISSING and isinstance(datum, Value) else None
        if record is None:
            return found
        operands = [self.operand(follower, d) for d in record.operands]
        results = None if any(x is MISSING for x in operands) else computed(
            lambda given: self.translation.reference(record.operation, given), operands)
        return MISSING if results is None else results[record.results.index(datum)]

    def compare(self, operation: Operation, results: Sequence[Any], operands: Sequence[Any], compute: Compute, steps: int,
                label: str) -> None:
        expected = computed(compute, operands)
        if expected is None:
            self.absent.setdefault(operation, spelling(operation))
            return
        self.absent.pop(operation, None)
        self.compared[operation] += 1
        for number, (actual, wanted) in enumerate(zip(results, expected)):
            if actual is MISSING or actual is None or wanted is None:
                continue
            found = self.differ(operation, number, plain(actual), plain(wanted), operands, compute, steps, label)
            if found is not None:
                self.differing.add(operation)
                if self.difference is None:
                    self.difference, self.operator = found, label
                return

    def differ(self, operation: Operation, number: int, actual: Any, expected: Any, operands: Sequence[Any], compute: Compute,
               steps: int, label: str) -> Difference | None:
        where = label if len(operation.results) == 1 else f"result {number} of {label}"
        position = operation.position
        if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
            kinds = [f"{x.dtype}{list(x.shape)}" for x in (actual, expected)]
            return Difference(where, position, self.call, 1, 1, (), 0, 0, NAMES,
                              f"translated it gives {kinds[0]}, its source {kinds[1]},")
        wrong = wrong_elements(spelling(operation), actual, expected, number, operands, compute, steps)
        return found_at(wrong, actual, expected, where, position, self.call, NAMES)

    @property
    def operators(self) -> int:
        """Number of operations of the source that were compared."""
        return len(self.compared)

    def right(self) -> set[Operation]:
        """Return the operations that agree with their references."""
        return {o for o in self.compared if o not in self.differing}


def computed(compute: Compute, operands: Sequence[Any]) -> Sequence[Any] | None:
    """Return the results of a reference; None if it has none for these operands."""
    try:
        with np.errstate(all="ignore"):
            return compute(operands)
    except (Problem, ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError):
        return None

