"""Calls of a model, recorded for the example of a project: inputs that a user gives or random ones, and the results of the
reference interpreter, so that the example compares compiled code with a reference that shares nothing with it. The tolerance of
floats follows from the graph, as in `check`.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...lowering.graph.external import external_reads
from ...lowering.graph.graph import Function, Module
from ...lowering.graph.types import Array
from ...lowering.native.c_object.recorded_data import FLOATS, ExpectedOutput, RecordedCall, Recording
from ...lowering.pipeline import rewritten
from ...runtime.errors import Problem
from ...runtime.interpreter import Interpreter
from ...runtime.interpreter_variables import InterpreterVariables
from ..stage_data import LoweredData
from ..tools.check.rounding_bounds import COMPILED, SAMPLES, CallResults, Limits, PerturbedRun, limits
from ..tools.random_array import random_array

STATEFUL_CALLS = 3
"""Default number of calls of a model with variables: one call would not show the effect of its state."""
Calls = Sequence[Sequence[Array]]


@dataclass(frozen=True, slots=True)
class RecordedEntry:
    """An entry function whose calls are recorded: its graph, and the faults with which its compiled form may end."""
    module: Module
    function: Function
    calls: Calls
    faults: tuple[str, ...]


def usual_count(entry: LoweredData) -> int:
    """Return the default number of recorded calls of an entry."""
    return STATEFUL_CALLS if entry.program.variables else 1


def random_calls(entry: LoweredData, count: int, seed: int = 0) -> list[list[Array]]:
    """Return random inputs of some calls of an entry."""
    function = entry.traced.interface
    return [[random_array(function, v, number, seed + call) for number, v in enumerate(function.arguments)]
            for call in range(count)]


def record(entries: Sequence[LoweredData], calls: Sequence[Calls]) -> Recording:
    """Record the calls of the entries of one model, interleaved and on one state."""
    found = [recorded_entry(e, c) for e, c in zip(entries, calls, strict=True)]
    if len({len(e.calls) for e in found}) != 1 or not found[0].calls:
        raise Problem("entries are recorded with different numbers of calls, or with none", kind="argument",
                      help="give each entry as many")
    exact, variables = [], InterpreterVariables()
    interpreters = [Interpreter(e.module, e.function, variables) for e in found]
    for number in range(len(found[0].calls)):
        exact.append([outcome(run, e, e.calls[number]) for run, e in zip(interpreters, found)])
    samples = erring(found) if any(may_round(e.function) for e in found) else None
    recorded = [[recorded_call(e, number, exact[number][i], None if samples is None else [run[number][i] for run in samples])
                 for number in range(len(e.calls))] for i, e in enumerate(found)]
    return Recording(tuple(map(tuple, recorded)))


def recorded_entry(entry: LoweredData, calls: Calls) -> RecordedEntry:
    module = rewritten(entry.traced.module)
    function = module.function(entry.traced.name)
    check_own_state(module, function)
    return RecordedEntry(module, function, calls, tuple(f.message for f in entry.program.faults))


def check_own_state(module: Module, function: Function) -> None:
    """Raise a Problem for a function that reads a variable of another model: an example cannot run alone then."""
    for name, read in external_reads(module).items():
        raise Problem(f"{function.name} reads @{name}, which another model declares", read.position, kind="variable",
                      help="write the object and the header without a project, or declare the variable in this model")


def outcome(run: Interpreter, entry: RecordedEntry, inputs: Sequence[Array]) -> tuple[tuple[Array, ...], int]:
    """Return the outputs of a call and 0, or no outputs and the number of the fault with which it ends."""
    try:
        return run(*inputs), 0
    except Problem as problem:
        code = next((n for n, message in enumerate(entry.faults, 1) if says_the_same(message, problem.message)), 0)
        if not code:
            raise
        return (), code


def says_the_same(compiled: str, interpreted: str) -> bool:
    """True if two messages are of the same fault: those of checks are equal, those of an unwritten variable have the same
    beginning."""
    return compiled == interpreted or (compiled.startswith("variable @")
                                       and compiled.split(" is read")[0] == interpreted.split(" is read")[0])


def may_round(function: Function) -> bool:
    """True if an operator of a function has a result that may be rounded differently."""
    return any(r.tensor.element.is_float for o in function.body.walk() for r in o.results if hasattr(r.type, "element"))


def erring(entries: Sequence[RecordedEntry]) -> list[list[list[CallResults | None]]]:
    """Return the results of the same calls with perturbed operators, by sample, call and entry."""
    found = []
    for sample in SAMPLES:
        variables = InterpreterVariables()
        runs = [PerturbedRun(e.module, e.function.name, COMPILED, *sample, variables) for e in entries]
        found.append([[run(e.calls[number]) for run, e in zip(runs, entries)] for number in range(len(entries[0].calls))])
    return found


def recorded_call(entry: RecordedEntry, number: int, exact: tuple[tuple[Array, ...], int],
                  samples: Sequence[CallResults | None] | None) -> RecordedCall:
    outputs, code = exact
    erred = [None if samples is None else [None if s is None else np.asarray(s.outputs[i]) for s in samples]
             for i in range(len(outputs))]
    expected = tuple(map(expected_output, outputs, erred))
    return RecordedCall(tuple(map(np.ascontiguousarray, entry.calls[number])), expected, code)


def expected_output(exact: Array, samples: Sequence[Array | None] | None) -> ExpectedOutput:
    """Return an output, with its bounds if it may vary."""
    if samples is None:
        return ExpectedOutput(exact)
    found = limits(exact, samples)
    if not (found.allowed.any() or found.free.any()):
        return ExpectedOutput(exact)
    bounds = integer_bounds if exact.dtype.kind in "iub" else float_bounds if exact.dtype.name in FLOATS else power_bounds
    return ExpectedOutput(exact, *bounds(exact, found))


def integer_bounds(exact: Array, found: Limits) -> tuple[Array, Array]:
    """Return the bounds of integers, which are exact or free: the lower bound of a free element is above its upper bound."""
    return np.where(found.free, 1, exact).astype(exact.dtype), np.where(found.free, 0, exact).astype(exact.dtype)


def float_bounds(exact: Array, found: Limits) -> tuple[Array, Array]:
    """Return bounds in the output's own type, rounded inwards. A NaN or an infinity must be the same."""
    wide = exact.astype(np.float64)
    with np.errstate(all="ignore"):
        bounds = [np.where(np.isfinite(wide), wide + sign * found.allowed, wide) for sign in (-1, 1)]
        least, most = (np.where(np.isfinite(wide), inward(bound, exact.dtype, sign), exact)
                       for bound, sign in zip(bounds, (1, -1)))
    largest = np.array(FLOATS[exact.dtype.name][1], f"u{exact.dtype.itemsize}").view(exact.dtype)
    return (np.where(found.free, largest, least).astype(exact.dtype),
            np.where(found.free, -largest, most).astype(exact.dtype))


def power_bounds(exact: Array, found: Limits) -> tuple[Array, Array]:
    """Return the bounds of powers of two, which are scales of blocks and have no sign."""
    wide = exact.astype(np.float64)
    with np.errstate(all="ignore"):
        least = np.exp2(np.ceil(np.log2(np.maximum(wide - found.allowed, 2.0 ** -127))))
        most = np.exp2(np.floor(np.log2(wide + found.allowed)))
    least = np.where(np.isfinite(least), least, wide)
    return np.where(found.free, 2.0, least).astype(exact.dtype), np.where(found.free, 1.0, most).astype(exact.dtype)


def inward(bound: Array, dtype: np.dtype[Any], sign: int) -> Array:
    """Return the nearest number of a type that is not outside a bound: above it for a sign of 1, below for -1."""
    rounded = bound.astype(dtype)
    outside = sign * rounded.astype(np.float64) < sign * bound
    bits = rounded.view(f"i{dtype.itemsize}")
    up = np.where((rounded.astype(np.float64) < 0) == (sign > 0), -1, 1)  # a step away from zero adds one to the bits
    smallest = np.full(bound.shape, 1, bits.dtype).view(dtype) * np.asarray(sign, dtype)
    moved = np.where(rounded.astype(np.float64) == 0, smallest, (bits + up.astype(bits.dtype)).view(dtype))
    return np.asarray(np.where(outside, moved, rounded))
