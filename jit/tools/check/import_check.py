"""Comparison of an imported model with its source: the first stage of `check`. The interpreter runs the graph that a front end
made, and the source's own system (`evaluators`) the source, on the same calls, each with its own state.

They may differ as much as rounding can cause (`rounding`). The source has another order of sums and other functions, so each of
its operators is held to the specification's bounds, and to a unit of the last place where TOSA's operator is exact.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ....lowering.graph.graph import Function, Module, Value
from ....lowering.graph.types import Array
from ....lowering.rewrite.translation_record import RecordedTranslation
from ....runtime.interpreter import Interpreter, InterpreterVariables
from ....runtime.limits import OutOfTime, TooManyIterations
from ...source import ImportedSource, OperatorVerdict, SourceEvaluator, SourceRun, first_line
from .differences import Comparison, Difference, FailedCall, Pick, attempt, faults_differ, found_at
from .rounding_bounds import Errors, Samples
from .tally import Elements, Tally
from .verdict import Agrees, Differs, Verdict, verdict

SOURCE_PART = {"float32": 1e-5, "float16": 2.0**-9, "bfloat16": 2.0**-6}
"""Fractions of an output's range by which other systems may always differ: they have functions and coordinates of their own. In
float32 the coordinates of ONNX Runtime's resize alone are off by 1e-6 of an image's rows. Import errors are larger."""
SOURCE_ERRORS = Errors(units=1.0, steps=1)
"""Other systems round each operator, and each rescaled integer, in their own way: allow a unit, and a step."""


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest difference of an output or a variable over all calls: its position, and the limit there."""
    where: str
    difference: float
    index: tuple[int, ...] = ()
    call: int = 0
    allowed: float = 0.0

    def __str__(self) -> str:
        if not self.difference:
            return f"{self.where}: equal"
        return (f"{self.where}: largest difference {self.difference:.3g} at {list(self.index)} in call {self.call}, "
                f"allowed {self.allowed:.3g}")

    def as_dict(self) -> dict[str, Any]:
        return {"where": self.where, "difference": self.difference, "index": list(self.index), "call": self.call,
                "allowed": self.allowed, "is_within": self.difference <= self.allowed}


@dataclass(frozen=True, slots=True)
class ImportCheck:
    """The verdict on an import: the system that evaluated it, or why none did (`reason`, and no verdict); the largest
    difference of each output; the operator of the source with the first difference, if it could be found."""
    kind: str
    evaluator: str | None
    reason: str = ""
    largest: tuple[Largest, ...] = ()
    verdict: Verdict | None = None
    operator: str | None = None
    caveat: str = ""
    fault: str = ""
    """Fault with which both sides ended the first call that was not compared."""
    operators: int = 0
    """Number of operators of the source that were compared one by one."""
    absent: Mapping[str, int] = field(default_factory=dict)
    """Number of operators without anything to compare with, by name."""
    unlocated: str = ""
    """Reason why operators were not compared one by one."""

    @property
    def difference(self) -> Difference | None:
        """First difference that exceeds its bound."""
        return self.verdict.difference if self.verdict else None

    @property
    def differs(self) -> bool:
        """True if a difference was found, in the whole or in an operator."""
        return isinstance(self.verdict, Differs) or self.operator is not None

    @property
    def agrees(self) -> bool:
        """True if elements were compared, and all of them agree."""
        return isinstance(self.verdict, Agrees) and self.operator is None

    def __str__(self) -> str:
        if self.verdict is None and self.operator is None:
            return f"the import was not checked: {self.reason}"
        verb = "agrees with" if self.agrees else "differs from"
        lines = [f"the import of {self.kind} {verb} {self.evaluator}"]
        lines += [str(self.difference)] if self.difference is not None else []
        lines += [f"the first operator that differs: {self.operator}"] if self.operator else []
        lines += [self.caveat] if self.caveat and not self.agrees else []
        lines += [f"  {self.operators} of its operators compared one by one"] if self.operators else []
        if self.absent:
            named = ", ".join(f"{name} ({count})" for name, count in sorted(self.absent.items()))
            lines.append(f"  compared in whole results alone: {named}")
        lines += [f"  its operators were not compared one by one: {self.unlocated}"] if self.unlocated else []
        lines += [f"  {each}" for each in self.largest]
        lines += [f"  not compared from there on: {self.fault}"] if self.fault else []
        lines += [f"  {reasons}"] if self.verdict and (reasons := self.verdict.elements.reasons) else []
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        elements = self.verdict.elements if self.verdict else Elements()
        return {"kind": self.kind, "evaluator": self.evaluator, "reason": self.reason,
                "agrees": self.agrees if self.verdict else None, "elements": elements.compared,
                "largest": [each.as_dict() for each in self.largest], "operator": self.operator,
                "difference": None if self.difference is None else str(self.difference),
                "uncompared": elements.not_comparable, "caveat": self.caveat, "fault": self.fault,
                "operators": self.operators, "absent": dict(self.absent)}


def rounded_values(translation: RecordedTranslation) -> Iterator[Value]:
    """Yield the values of a translation whose integers are rounded products with a scale."""
    for record in translation.records:
        if translation.steps(record.operation) or record in translation.terms:
            yield from (d for d in record.results if isinstance(d, Value))


def span(x: Array) -> float:
    """Return the larger of the greatest finite magnitude and the range of an output."""
    finite = x[np.isfinite(x)].astype(np.float64) if x.dtype.kind not in "iub" else x.astype(np.float64).reshape(-1)
    return float(max(np.ptp(finite), np.abs(finite).max())) if finite.size else 0.0


def near(a: Array, b: Array, distance: float) -> Array:
    """Return a mask of the elements of two results that are within a distance of each other."""
    if not distance:
        return np.zeros(a.shape, bool)
    with np.errstate(all="ignore"):
        return np.asarray(np.abs(a.astype(np.float64) - b.astype(np.float64)) <= distance)


def is_nan(x: Array) -> Array:
    return np.zeros(x.shape, bool) if x.dtype.kind in "iub" else np.isnan(x.astype(np.float64))


def check_import(source: ImportedSource, module: Module, function: Function, calls: Sequence[Sequence[Array]],
                 translation: RecordedTranslation | None = None) -> ImportCheck:
    """Compare `function` with its source on calls. A `translation` tells which of its integers are rounded."""
    reasons = []
    for evaluator in source.evaluators:
        if not evaluator.is_installed:
            reasons.append(f"install {evaluator.install}")
            continue
        try:
            run = evaluator.start(function.name)
            first = [[np.asarray(x) for x in run(calls[0])]] if calls else []
        except (OutOfTime, TooManyIterations):
            raise
        except Exception as error:  # of any kind that another system has
            reasons.append(f"{evaluator} cannot run it ({first_line(error)})")
            continue
        if first and any(x.dtype.kind in "OUS" for x in first[0]):
            reasons.append(f"{evaluator} gives something that is no tensor")
            continue
        stage = SourceComparison(module, function, calls, evaluator.start(function.name), evaluator.name, translation)
        return compared(source, evaluator, function, stage)
    return ImportCheck(source.kind, None, ", or ".join(reasons) or source.absent or "nothing here can run it")


def compared(source: ImportedSource, evaluator: SourceEvaluator, function: Function, stage: SourceComparison) -> ImportCheck:
    found, operators = stage.run(), OperatorVerdict(0)
    if source.locate is not None and stage.calls and (found is not None or source.is_located_always):
        operators = source.locate(function.name, stage.calls[found.call if found is not None else 0])
    elements = stage.tally.elements
    if found is None and not elements.compared and operators.first is None:
        reason = elements.reasons or stage.fault or "it gives no elements"
        return ImportCheck(source.kind, None, f"{evaluator} was asked, and nothing could be compared: {reason}")
    return ImportCheck(source.kind, str(evaluator), "", tuple(stage.largest.values()), verdict(elements, found)
                       if found is not None or elements.compared else None, operators.first, evaluator.caveat, stage.fault,
                       operators.compared, operators.absent, operators.reason)


@dataclass(slots=True)
class SourceComparison:
    """The comparison of the interpreter and the source, call after call."""
    module: Module
    function: Function
    calls: Sequence[Sequence[Array]]
    source: SourceRun
    name: str
    translation: RecordedTranslation | None = None
    largest: dict[str, Largest] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    fault: str = ""
    goes_on: bool = False
    """True if calls after one that ends in both sides with a fault are compared, too."""

    def run(self) -> Difference | None:
        """Return the first difference that exceeds its bound."""
        interpreter = Interpreter(self.module, self.function.name, InterpreterVariables())
        samples = self.samples()
        names = "imported", self.name
        for number, arrays in enumerate(self.calls):
            actual = attempt(lambda: interpreter(*arrays))
            samples.iterations = max(samples.iterations, interpreter.iterations)
            expected = attempt(lambda: [np.asarray(x) for x in self.source(arrays)])
            comparison = Comparison(lambda: samples.pairs(number), number, names, has_steps=True, tally=self.tally)
            if isinstance(actual, FailedCall) and isinstance(expected, FailedCall):
                self.fault = self.fault or f"both end call {number}, {self.name} with \"{expected.message}\""
                if not self.goes_on:
                    return None
                found = self.state(comparison, interpreter)
            elif isinstance(actual, FailedCall) or isinstance(expected, FailedCall):
                return faults_differ(actual, expected, self.function.name, number, ("the import", self.name))
            else:
                found = self.outputs(comparison, actual, expected) or self.state(comparison, interpreter)
            if found:
                return found
        return None

    def samples(self) -> Samples:
        """Return perturbed runs of the function. For a quantized model, whose integers another system may round differently,
        return perturbed runs of its translation."""
        made = self.translation
        rounded = frozenset(rounded_values(made)) if made else frozenset()
        if made is None or not rounded or len(made.module.function(made.name).arguments) != len(self.function.arguments):
            return Samples(self.module, self.function, self.calls, SOURCE_ERRORS)
        return Samples(made.module, made.module.function(made.name), self.calls, replace(SOURCE_ERRORS, at=rounded))

    def outputs(self, comparison: Comparison, actual: Sequence[Array], expected: Sequence[Array]) -> Difference | None:
        if len(actual) != len(expected):
            note = f"the import gives {len(actual)} results, {self.name} {len(expected)},"
            return Difference(self.function.name, None, comparison.call, 1, 1, (), 0, 0, note=note)
        found = [self.one(comparison, a, e, lambda o: o.outputs[n], f"output {n}")
                 for n, (a, e) in enumerate(zip(actual, expected))]
        return next((f for f in found if f), None)

    def state(self, comparison: Comparison, interpreter: Interpreter) -> Difference | None:
        held = interpreter.variables.snapshot()
        found: list[Difference | None] = []
        for name, value in self.source.variables.items():
            mine = held.get(name)
            if name in held and (mine is None) != (value is None):
                note = "is written by " + (self.name if mine is None else "the import") + " alone,"
                found.append(Difference(f"variable @{name}", None, comparison.call, 1, 1, (), 0, 0, note=note))
            elif mine is not None and value is not None:
                found.append(self.one(comparison, mine, value, lambda o: o.state.get(name), f"variable @{name}"))
        return next((f for f in found if f), None)

    def one(self, comparison: Comparison, actual: Array, expected: Array, pick: Pick, where: str) -> Difference | None:
        """Compare one output. The bound is that of the interpreter's own result, around which the samples are distributed."""
        if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
            kinds = [f"{x.dtype}{list(x.shape)}" for x in (actual, expected)]
            note = f"the import gives {kinds[0]}, {self.name} {kinds[1]},"
            return Difference(where, None, comparison.call, 1, 1, (), 0, 0, note=note)
        wrong, allowed = comparison.wrong(expected, actual, pick)
        floor = SOURCE_PART.get(actual.dtype.name, 0.0) * span(actual)
        wrong, allowed = wrong & ~near(actual, expected, floor), replace(allowed, allowed=np.maximum(allowed.allowed, floor))
        wrong |= is_nan(actual) != is_nan(expected)  # a sample's NaN does not excuse a NaN of exact operators
        self.note(actual, expected, np.where(allowed.free, np.inf, allowed.allowed), where, comparison.call)
        return found_at(wrong, actual, expected, where, None, comparison.call, comparison.names)

    def note(self, actual: Array, expected: Array, allowed: Array, where: str, call: int) -> None:
        """Record the largest difference."""
        wide = np.float64 if expected.dtype.kind not in "iu" else np.int64
        known = self.largest.setdefault(where, Largest(where, 0.0))
        if not actual.size:
            return
        with np.errstate(all="ignore"):
            a, e = actual.astype(wide), expected.astype(wide)
            size = np.where((a == e) | ((a != a) & (e != e)), 0, np.abs(a - e)).astype(np.float64)
        size = np.where(np.isnan(size), np.inf, size)
        place = np.unravel_index(int(np.argmax(size)), size.shape)
        if size[place] > known.difference:
            self.largest[where] = Largest(where, float(size[place]), tuple(map(int, place)), call, float(allowed[place]))
