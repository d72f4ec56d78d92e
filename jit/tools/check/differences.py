"""A difference between two results, in words, and the comparison of two results."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from ....lowering.dialects.tosa.compliance import differences
from ....lowering.graph.types import Array
from ....runtime.errors import Position, Problem
from ....runtime.limits import OutOfTime, TooManyIterations
from .rounding_bounds import CallResults, Limits, limits
from .tally import ROUNDING, Tally


@dataclass(frozen=True, slots=True)
class Difference:
    """A result that differs from the reference's: which, in which call, how many elements, and the first of them."""
    where: str
    position: Position | None
    call: int
    count: int
    size: int
    index: tuple[int, ...]
    actual: float
    expected: float
    names: tuple[str, str] = ("compiled", "reference")
    note: str = ""

    def __str__(self) -> str:
        place = f"{self.position}: " if self.position else ""
        if self.note:
            return f"{place}{self.where}: {self.note} in call {self.call}"
        return (f"{place}{self.where}: {self.count} of {self.size} elements differ in call {self.call}, the first at "
                f"{list(self.index)}: {self.names[0]} {self.actual}, {self.names[1]} {self.expected}")


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A call that ended with an error instead of results."""
    error: Exception

    @property
    def kind(self) -> str:
        return self.error.kind if isinstance(self.error, Problem) else type(self.error).__name__

    @property
    def message(self) -> str:
        return self.error.message if isinstance(self.error, Problem) else f"{type(self.error).__name__}: {self.error}"


Results: TypeAlias = "Sequence[Array] | FailedCall"


def attempt(call: Callable[[], Sequence[Array]]) -> Results:
    """Return the results of a call, or its fault. Bounds on all work are no fault of the call."""
    try:
        return call()
    except (OutOfTime, TooManyIterations):
        raise
    except Exception as error:  # of any kind: the other engine may not raise it
        return FailedCall(error)


def faults_differ(actual: Results, expected: Results, where: str, call: int,
                  names: tuple[str, str] = ("compiled code", "the reference")) -> Difference | None:
    """Return the difference of two calls of which only one ended with a fault, or which ended with different faults."""
    match actual, expected:
        case FailedCall(), FailedCall():
            if actual.kind == expected.kind and (actual.kind != "check" or actual.message == expected.message):
                return None  # the two engines word faults differently, but the program's own checks the same
            note = f"{names[0]} ends with \"{actual.message}\", {names[1]} with \"{expected.message}\","
        case FailedCall(), _:
            note = f"{names[0]} ends with \"{actual.message}\", {names[1]} gives results,"
        case _, FailedCall():
            note = f"{names[1]} ends with \"{expected.message}\", {names[0]} gives results,"
        case _:
            return None
    fault = actual if isinstance(actual, FailedCall) else expected
    position = fault.error.position if isinstance(fault, FailedCall) and isinstance(fault.error, Problem) else None
    return Difference(where, position, call, 1, 1, (), float("nan"), float("nan"), note=note)


Pick: TypeAlias = Callable[[CallResults], "Array | None"]
"""Picks the result of a sample that corresponds to the compared one."""


@dataclass(slots=True)
class Comparison:
    """A comparison with results of the interpreter; an element may differ as much as samples of `pairs` do, which are made only
    if something differs. Its tally counts the compared elements, and those that the samples leave undecided."""
    pairs: Callable[[], Iterable[list[CallResults | None]]]
    call: int
    names: tuple[str, str] = ("compiled", "reference")
    has_steps: bool = False
    tally: Tally = field(default_factory=Tally)

    def compare(self, actual: Array, expected: Array, pick: Pick, where: str, position: Position | None = None
                ) -> Difference | None:
        if actual.shape != expected.shape:
            note = f"{self.names[0]} has shape {list(actual.shape)}, {self.names[1]} {list(expected.shape)},"
            return Difference(where, position, self.call, 1, 1, (), 0, 0, self.names, note)
        wrong, _ = self.wrong(actual, expected, pick)
        return found_at(wrong, actual, expected, where, position, self.call, self.names)

    def wrong(self, actual: Array, expected: Array, pick: Pick) -> tuple[Array, Limits]:
        """Return a mask of the elements that differ by more than is allowed, and the limits."""
        shape = expected.shape
        found, allowed = differences(actual, expected, None), Limits(np.zeros(shape), np.zeros(shape, bool))
        for outcomes in self.pairs() if found.any() else ():
            allowed = limits(expected, [None if o is None else pick(o) for o in outcomes], self.has_steps)
            found = beyond(actual, expected, allowed)
            if not found.any():
                break
        self.tally.add(actual, expected, allowed.free, ROUNDING)
        return found, allowed


def beyond(actual: Array, expected: Array, allowed: Limits) -> Array:
    """Return a mask of the elements of two results that differ by more than is allowed."""
    if expected.dtype.kind in "iu" and allowed.allowed.any():
        found = np.abs(actual.astype(np.int64) - expected.astype(np.int64)) > allowed.allowed
    else:
        found = differences(actual, expected, None if expected.dtype.kind in "iub" else allowed.allowed)
    return np.asarray(found & ~allowed.free)


def found_at(wrong: Array, actual: Array, expected: Array, where: str, position: Position | None, call: int,
             names: tuple[str, str] = ("compiled", "reference")) -> Difference | None:
    """Return the difference of two results, at the first element that is wrong."""
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    values = float(actual[index]), float(expected[index])
    return Difference(where, position, call, int(wrong.sum()), wrong.size, index, *values, names)
